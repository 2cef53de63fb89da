"""What jobs do: each kind of job is a function of its arguments and of a `Control`.

They run in worker processes, see `worker`. A function writes files into the folder of its job, and
returns what the job's ``result`` shows. Logs and policy files come from
users: DuckDB is locked down to the one file that is read.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from pastwise._files import replacing, safe_rows
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import key_of
from pastwise.errors import LogError, ParameterError
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Reading
from pastwise.logs.read import read_log
from pastwise.logs.sql import EngineLimits, locked_down
from pastwise.logs.validate import validate_log
from pastwise.policy.file import load_counts
from pastwise.policy.learner import TransferLearner, load
from pastwise.service.keys import KnownKeys, as_in, label_of, leave_out
from pastwise.service.replay import replay as replay_history
from pastwise.service.store import open_store
from pastwise.service.tables import described
from pastwise.service.worker import SPILL

if TYPE_CHECKING:
    from pastwise.service.store.base import Store
    from pastwise.service.store.rows import VersionRow

DECISIONS = "decisions.parquet"
POLICY = "policy.safetensors"
"""Names of files in the folder of a job."""

Result = dict[str, object]


class Control(Protocol):
    """What a job reports while it runs, whether it is to stop, and where its files go."""

    folder: Path

    def progress(self, done: int, of: int | None = None) -> None:
        """Say how far the job is."""
        ...

    def partial(self, result: Result) -> None:
        """Say what is known already."""
        ...

    def should_stop(self) -> bool:
        """Whether to come to an end with what there is."""
        ...


class Arguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of the arguments of a job."""


class Decisions(Arguments):
    """The decisions of a policy that have an outcome.

    Attributes
    ----------
    store : str
        Folder or address of the store; it is opened for reading.
    policy : str
        Name of the policy.
    since, until : int, optional
        Milliseconds since 1970: decisions made from then on, and before then.
    """

    store: str
    policy: str
    since: int | None = None
    until: int | None = None


class Version(Arguments):
    """A version of a policy in a store."""

    store: str
    policy: str
    version: int


# Summaries of logs.


class Summarise(Arguments):
    """Look at an uploaded log.

    Attributes
    ----------
    log : str
        Path of the file.
    columns : dict, optional
        What `Columns.of` takes: the log is then read as it would be to learn from it, and the
        result says what was found. Without, the result describes the columns of the table.
    """

    log: str
    columns: dict[str, Any] | None = None


def summarise(arguments: Summarise, control: Control) -> Result:
    """What is in an uploaded log."""
    with _reading(arguments.log, control):
        if arguments.columns is not None:
            return validate_log(arguments.log, arguments.columns).to_dict()
        return described(arguments.log)


# Evaluations.


class Evaluate(Arguments):
    """Evaluate a version on the decisions that were made, or on an uploaded log.

    Attributes
    ----------
    version : Version
        What to evaluate.
    decisions : Decisions, optional
    log : str, optional
        Path of a log or of a file of counts; instead of decisions.
    preview : int
        A first result, the job's ``partial``, rests on one in so many of the samples.
    """

    version: Version
    decisions: Decisions | None = None
    log: str | None = None
    samples: int = 2000
    horizon: int | None = None
    seed: int = 0
    preview: int = 10


FEWEST_SAMPLES = 40
"""A verdict needs so many."""


def evaluate(arguments: Evaluate, control: Control) -> Result:
    """Whether a version is better than what was done."""
    learner = _learner(_stored(arguments.version), control)
    with _collected_warnings() as messages:
        judged_by = _judged_by(arguments, learner, control)
        done = 0
        samples = arguments.samples

        def step(number: int) -> None:
            nonlocal done
            done += number
            control.progress(done, samples)

        options: dict[str, Any] = {
            "horizon": arguments.horizon,
            "seed": arguments.seed,
            "should_stop": control.should_stop,
            "threads": 1,
        }

        control.progress(0, samples)

        # A first result from a part of the samples, which are the first of all.
        first = max(FEWEST_SAMPLES, samples // arguments.preview)
        if 2 * first <= samples:
            preview = learner.evaluate(judged_by, samples=first, **options)
            if control.should_stop():
                return {**preview.to_dict(), "warnings": messages}
            control.partial({**preview.to_dict(), "warnings": messages})
        result = learner.evaluate(judged_by, samples=samples, on_step=step, **options)
    return {**result.to_dict(), "warnings": messages}


def _judged_by(
    arguments: Evaluate, learner: TransferLearner, control: Control
) -> Reading | TransitionCounts:
    """What the version is evaluated on."""
    if arguments.decisions is not None:
        own = learner.counts_
        known = KnownKeys(own.states.has, own.actions.has)
        return _decided(arguments.decisions, learner, control, known)
    if arguments.log is None:
        raise ParameterError("evaluate on what? Give decisions or a log")
    if Path(arguments.log).suffix == ".safetensors":
        return load_counts(arguments.log)[0]
    with _reading(arguments.log, control):
        return learner.read(arguments.log)


# Learning.


class Learn(Arguments):
    """Make a new policy file from a version and the decisions since.

    Decisions count from the time at which the version was added, unless ``since`` is given: the
    version may have been learned from earlier ones, which must not count twice.
    """

    version: Version
    decisions: Decisions


def learn(arguments: Learn, control: Control) -> Result:
    """A policy learned from the counts of a version and of what followed its decisions."""
    row = _stored(arguments.version)
    learner = _learner(row, control)
    own = learner.counts_
    if own.tasks is not None or own.decay is not None:
        raise ParameterError(
            "this policy was learned from a log of several tasks, or with weights that fall with "
            "age, and decisions have neither; add decisions.parquet to the log and learn again"
        )
    decisions = arguments.decisions
    if decisions.since is None:
        decisions = msgspec.structs.replace(decisions, since=row.at)
    with _collected_warnings() as messages:
        can_be = KnownKeys(
            lambda key: label_of(own.states, key) is not None,
            lambda key: label_of(own.actions, key) is not None,
        )
        reading = _decided(decisions, learner, control, can_be)
        counts = replace(
            reading.counts,
            states=as_in(own.states, reading.counts.states),
            actions=as_in(own.actions, reading.counts.actions),
        )
        learner.merge(counts)
        learner.save(control.folder / POLICY)
    known = set(own.states.labels)
    return {
        "file": POLICY,
        "sha256": hashlib.sha256((control.folder / POLICY).read_bytes()).hexdigest(),
        "records": learner.counts_.num_records,
        "new_records": learner.counts_.num_records - own.num_records,
        "new_states": [
            key_of(label) for label in learner.counts_.states.labels if label not in known
        ],
        "warnings": messages,
    }


# Exports and replays.


class Export(Arguments):
    """Write decisions as a file; ``format`` is ``parquet`` or ``csv``."""

    decisions: Decisions
    format: str = "parquet"


def export(arguments: Export, control: Control) -> Result:
    """The decisions of a policy as a file that `pastwise learn` takes as it is."""
    if arguments.format not in ("parquet", "csv"):
        raise ParameterError(f"format is 'parquet' or 'csv', not {arguments.format!r}")
    path = control.folder / DECISIONS
    records = _export(arguments.decisions, path)
    if arguments.format == "csv":
        table = path
        path = table.with_suffix(".csv")
        _write_csv(table, path)
        table.unlink()
    control.progress(records, records)
    return {"file": path.name, "records": records, "bytes": path.stat().st_size}


def _write_csv(source: Path, target: Path) -> None:
    """A Parquet file as CSV, in batches; no cell becomes a formula of a spreadsheet."""
    import pyarrow.parquet as pq

    def rows() -> Iterator[list[object]]:
        table = pq.ParquetFile(source)
        yield list(table.schema_arrow.names)
        for batch in table.iter_batches():
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield [_cell(value) for value in row]

    with replacing(target) as unfinished:
        safe_rows(unfinished, rows())


def _cell(value: Any) -> object:
    return value.isoformat() if hasattr(value, "isoformat") else value


class Replay(Arguments):
    """Decide and learn everything again, and compare."""

    store: str
    policy: str
    version: int | None = None
    to_seq: int | None = None


def replay(arguments: Replay, control: Control) -> Result:
    """Whether the stored history comes out again, to the last bit."""
    with _opened(arguments.store) as store:
        view = replay_history(
            store, arguments.policy, arguments.version, arguments.to_seq, control.progress
        )
    result: Result = msgspec.to_builtins(view)
    return result


# What several kinds need.


@contextmanager
def _reading(path: str | Path, control: Control) -> Iterator[None]:
    """Lock DuckDB down to one file; what does not fit into memory goes to the job's folder."""
    with locked_down(EngineLimits((path,), spill_to=control.folder / SPILL)):
        yield


@contextmanager
def _opened(place: str) -> Iterator[Store]:
    """A store, to look only."""
    store = open_store(place, create=False, read_only=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """The texts of warnings, each once."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages += dict.fromkeys(str(warning.message) for warning in caught)


def _stored(version: Version) -> VersionRow:
    """A version as the store has it."""
    with _opened(version.store) as store:
        row = store.version(version.policy, version.version)
    if row is None:
        raise ParameterError(f"policy {version.policy!r} has no version {version.version}")
    return row


def _learner(row: VersionRow, control: Control) -> TransferLearner:
    """The policy of a version."""
    path = control.folder / "version.safetensors"
    path.write_bytes(row.artefact)
    try:
        return load(path)
    finally:
        path.unlink()


def _export(decisions: Decisions, path: Path) -> int:
    """Write decisions to a file, and return their number."""
    with _opened(decisions.store) as store:
        return store.export_parquet(
            decisions.policy, path, since=decisions.since, until=decisions.until
        )


def _decided(
    decisions: Decisions, learner: TransferLearner, control: Control, known: KnownKeys
) -> Reading:
    """Decisions as a log. Labels are the keys of the policy's labels."""
    path = control.folder / DECISIONS
    number = _export(decisions, path)
    if number == 0:
        raise LogError("no decision of that time has an outcome; there is nothing to learn from")
    left_out = leave_out(path, known)
    if left_out == number:
        raise LogError("no decision of that time has labels that the version can use")
    if left_out:
        warnings.warn(
            f"{left_out:,} of {number:,} decisions have labels that the version lacks; they are "
            "left out",
            stacklevel=2,
        )

    columns = Columns.of(
        state="state",
        action="action",
        next_state="next_state",
        episode="episode",
        time="time",
        reward="reward" if learner.counts_.has_rewards else None,
    )
    with _reading(path, control):
        reading = read_log(path, columns)
    path.unlink()
    return reading


TASKS: dict[str, tuple[type[Arguments], Callable[[Any, Control], Result]]] = {
    "summarise": (Summarise, summarise),
    "evaluate": (Evaluate, evaluate),
    "learn": (Learn, learn),
    "export": (Export, export),
    "replay": (Replay, replay),
}
"""For each kind of job, its arguments and what it does."""
