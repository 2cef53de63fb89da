"""What other learners and libraries make of the same logs."""
