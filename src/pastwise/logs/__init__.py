"""Tables to counts: files, data frames and queries become `TransitionCounts`.

The names listed in ``__init__.pyi`` are loaded when they are first used. The libraries that read
tables (DuckDB, narwhals, pyarrow) take a while to load; a program that only decides never needs
them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
