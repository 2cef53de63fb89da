"""The benchmark suite: pastwise beside what a user would take instead. ``python -m benchmarks`` runs it."""
