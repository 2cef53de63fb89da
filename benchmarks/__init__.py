"""The benchmark suite: pastwise next to what one would use instead. ``python -m benchmarks`` runs it."""
