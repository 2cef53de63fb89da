"""Arrays, checks, random streams, threads and compiled loops: nothing about decisions."""
