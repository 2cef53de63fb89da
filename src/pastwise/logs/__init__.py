"""Tables to counts."""
