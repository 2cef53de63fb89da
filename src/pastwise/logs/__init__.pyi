"""The names of this package, for type checkers; `__init__.py` loads each when it is first used."""

from .columns import Columns
from .decode import Reading
from .episodes import read_episodes
from .findings import CATALOGUE, Finding, FindingKind
from .read import count_transitions, read_log, warn_of
from .sources import library_of
from .validate import Validation, validate_log

__all__ = [
    "CATALOGUE",
    "Columns",
    "Finding",
    "FindingKind",
    "Reading",
    "Validation",
    "count_transitions",
    "library_of",
    "read_episodes",
    "read_log",
    "validate_log",
    "warn_of",
]
