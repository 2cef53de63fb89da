"""Arrays, checks, random streams, threads and compiled loops; no word of the domain."""
