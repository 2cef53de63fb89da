"""Hypothesis samples the same examples in every run, and no test is timed.

The profile ``fuzz`` has more of them, and others in each run, from a seed that can be given. Linear
algebra has one thread, as in the processes of a study: with another number it rounds differently.
Ctrl-C reaches the programs that tests start, also where a shell in the background runs the tests
and ignores it.
"""

import os
import signal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("pastwise", derandomize=True, deadline=None, max_examples=50)
settings.register_profile(
    "fuzz", derandomize=False, deadline=None, print_blob=True, max_examples=200
)
settings.load_profile("pastwise")
