"""What was seen: labels, records, counts."""
