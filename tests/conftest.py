"""Hypothesis draws the same examples in every run, and no test is timed."""

from hypothesis import settings

settings.register_profile("pastwise", derandomize=True, deadline=None)
settings.load_profile("pastwise")
