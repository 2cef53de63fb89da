"""The outside world: tables, files and environments."""
