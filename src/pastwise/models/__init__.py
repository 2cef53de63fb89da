"""What follows an action: transition models that are known, learned, or uncertain."""
