"""Benchmarks of pastwise next to what one would use instead; run ``python -m benchmarks``."""
