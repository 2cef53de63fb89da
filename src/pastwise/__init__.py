"""Turn yesterday's decisions into a policy for today's goal.

From a log of past transitions and a new goal, pastwise learns a stochastic decision policy for
that goal. Public names are listed in ``__init__.pyi``; each is loaded when it is first used, so
that a program waits only for what it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
