"""The names of this package, for type checkers; `__init__.py` loads each when it is first used."""

from .columns import Columns
from .decode import Reading
from .episodes import read_episodes
from .findings import CATALOGUE, Finding, FindingKind, Remedy
from .look import RoleGuess, RowsLook, TableLook, look_at, rows_of
from .read import count_transitions, read_log, warn_of
from .sources import library_of
from .usable import Usable, usable
from .validate import Validation, validate_log

__all__ = [
    "CATALOGUE",
    "Columns",
    "Finding",
    "FindingKind",
    "Reading",
    "Remedy",
    "RoleGuess",
    "RowsLook",
    "TableLook",
    "Usable",
    "Validation",
    "count_transitions",
    "library_of",
    "look_at",
    "read_episodes",
    "read_log",
    "rows_of",
    "usable",
    "validate_log",
    "warn_of",
]
