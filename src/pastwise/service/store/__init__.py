"""Where the service keeps what happened: SQLite in a folder, or PostgreSQL."""
