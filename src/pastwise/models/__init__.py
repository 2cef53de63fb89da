"""What follows an action: known, learned, uncertain."""
