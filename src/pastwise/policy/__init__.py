"""What a user holds: a learner, its rule, the evidence, a file."""
