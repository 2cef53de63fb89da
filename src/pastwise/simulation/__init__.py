"""Worlds to act in: simulated systems, environments of gymnasium, datasets of Minari."""
