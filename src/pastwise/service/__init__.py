"""The decision service: decide and learn over HTTP, and lose nothing."""
