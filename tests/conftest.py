"""Hypothesis draws the same examples in every run, and no test is timed.

The profile ``fuzz`` draws others in each run, from a seed that can be given. Linear algebra has one
thread, as in the processes of a study: with another number of threads it rounds differently.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("pastwise", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("pastwise")
