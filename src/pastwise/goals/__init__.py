"""What is wanted: stated by labels, as an ideal distribution, as a utility."""
