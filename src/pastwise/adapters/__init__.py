"""The outside world: files now, tables and environments to come."""
