"""What is wanted: in words, as an ideal, as a utility."""
