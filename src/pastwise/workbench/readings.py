"""What the reader process does: look at a table, show rows, count by a mapping.

Each function reads one file, with DuckDB locked down to it, by the library's own calls. Counts are
stored as the policy of a goal that wants nothing in particular, because a policy file remembers the
columns and the episodes of its log, which a file of counts does not. Its rule is what was done.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.logs.behind import rows_behind
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Reading
from pastwise.logs.look import look_at, rows_of
from pastwise.logs.read import read_log
from pastwise.logs.sql import EngineLimits, locked_down
from pastwise.logs.usable import usable
from pastwise.policy.file import load_counts
from pastwise.policy.learner import TransferLearner
from pastwise.workbench.beginnings import beginning_of


@contextmanager
def _locked(file: str) -> Iterator[None]:
    """Lock DuckDB down to one file; what does not fit into memory goes to a temporary folder."""
    with _temporary_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # findings say the same
        with locked_down(EngineLimits((file,), spill_to=folder)):
            yield


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pastwise-") as folder:
        yield Path(folder)


def ready() -> dict[str, Any]:
    """Nothing; what reading needs is imported by now."""
    return {}


def look(file: str) -> object:
    """Columns of a table, with a guess of their roles."""
    with _locked(file):
        return look_at(file)


def rows(
    file: str,
    columns: dict[str, Any] | None,
    offset: int,
    limit: int,
) -> object:
    """Rows of a table as text, and the next state of each by the columns."""
    with _locked(file):
        mapped = None if columns is None else columns_of(columns)
        return rows_of(file, mapped, offset, limit)


def use(file: str, columns: dict[str, Any], save_to: str) -> object:
    """What is usable of a table, which is counted as well."""
    with _locked(file):
        mapped = columns_of(columns)
        found = usable(file, mapped)
        save_base(read_log(file, mapped), save_to)
        return found


def try_out(file: str, columns: dict[str, Any], first: int) -> dict[str, Any]:
    """What is usable of the first rows of a table."""
    with _temporary_folder() as folder:
        part = beginning_of(file, first, folder)
        with _locked(part or file):
            found = usable(part or file, columns_of(columns)).to_dict()
    return {**found, "sampled": found["rows"] if part else None}


def behind(
    file: str, counts: str, state: str, limit: int, first: int = 200_000
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Rows behind the transitions of a state, by action and next state.

    They are examples, so only the ``first`` rows of a log are searched: as many as are read in
    about a second.
    """
    _, columns = load_counts(counts)
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if columns is None:
        return found
    with _temporary_folder() as folder:
        part = beginning_of(file, first, folder) or file
        with _locked(part):
            rows = rows_behind(part, columns, state, limit=limit)
    for each in rows:
        place = {"row": each.row, "episode": each.episode, "time": each.time}
        found.setdefault(each.action, {}).setdefault(each.next_state, []).append(place)
    return found


def adopt(file: str, save_to: str) -> dict[str, Any]:
    """Take over a file of counts or of a policy."""
    counts, columns = load_counts(file)
    base = TransferLearner(no_preference(counts), method="TL").fit_counts(counts, columns)
    base.save(save_to)
    return {
        "records": counts.num_records,
        "states": len(counts.states),
        "actions": len(counts.actions),
    }


def columns_of(arguments: dict[str, Any]) -> Columns:
    """Columns from JSON, in which a list stands for a tuple."""
    terminal = [
        tuple(label) if isinstance(label, list) else label
        for label in arguments.get("terminal", ())
    ]
    return Columns.of(**{**arguments, "terminal": terminal})


def save_base(reading: Reading, path: str) -> None:
    """Store what was read as a policy that wants nothing in particular."""
    TransferLearner(no_preference(reading.counts), method="TL").fit(reading).save(path)


def no_preference(counts: TransitionCounts) -> Goal:
    """A goal to which all transitions are equal."""
    return Goal(prefer_actions=dict.fromkeys(counts.actions.labels, 1.0))


READINGS: dict[str, Callable[..., object]] = {
    "ready": ready,
    "look": look,
    "rows": rows,
    "use": use,
    "try_out": try_out,
    "behind": behind,
    "adopt": adopt,
}
"""All functions by name."""
