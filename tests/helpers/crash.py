"""Load on a server that is killed under it, and what must hold of its store afterwards.

`Load` decides and reports outcomes in threads, and remembers what was acknowledged. `Stored` is
what a database has, read without pastwise. `require_durable` compares them:

- every acknowledged decision and outcome is stored, as it was acknowledged;
- the stored ones are a prefix of what happened: their numbers have no gap;
- no idempotency key has two decisions, and no outcome precedes its decision.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self, TypeVar

from pastwise.errors import ServiceError
from pastwise.service.client import REPEATED, Client
from tests.helpers.server import POLICY, STATES

DATABASE = "service.sqlite"

Answer = TypeVar("Answer")


class Unanswered(Exception):
    """The load ended before a request was answered."""


class Decided(NamedTuple):
    """A decision as it was acknowledged."""

    key: str
    state: str
    action: str
    propensity: float
    evidence: int


class Reported(NamedTuple):
    """An outcome as it was acknowledged."""

    next_state: str
    status: str
    evidence: int


class Load:
    """Clients that decide, report outcomes and repeat themselves, each in a thread.

    A request is repeated until it is answered or the load ends, however long a restart takes.

    Parameters
    ----------
    clients : int
        Number of threads; the default keeps a server busy.
    """

    def __init__(self, url: str, token: str, *, clients: int = 6, seed: int = 0) -> None:
        self.decisions: dict[str, Decided] = {}
        self.outcomes: dict[str, Reported] = {}
        self.errors: list[Exception] = []
        self._url = url
        self._token = token
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(f"{seed}-{number}",), daemon=True)
            for number in range(clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the load; an error of the block itself is not hidden by those of the threads."""
        if error is None:
            self.end()
            return
        self._end_threads()
        for each in self.errors:
            error.add_note(f"A client failed, too: {each!r}")

    def end(self) -> None:
        """Finish the requests that are under way; what went wrong in a thread is raised here."""
        self._end_threads()
        if self.errors:
            raise self.errors[0]

    def _end_threads(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, number: int, patience: float = 120.0) -> None:
        """Wait until so many more decisions are acknowledged, or until a thread has failed."""
        target = len(self.decisions) + number
        until = time.monotonic() + patience
        while len(self.decisions) < target and not self.errors:
            assert time.monotonic() < until
            time.sleep(0.01)

    def _run(self, name: str) -> None:
        rng = random.Random(name)
        waiting: list[str] = []
        number = 0
        with Client(self._url, self._token, retries=5, first_wait=0.01) as client:
            while not self._ends.is_set():
                try:
                    if waiting and rng.random() < 0.5:
                        self._report(client, waiting.pop(rng.randrange(len(waiting))), rng)
                    else:
                        number += 1
                        waiting.append(self._decide(client, f"{name}-{number}", rng))
                except Unanswered:
                    return
                except Exception as error:
                    self.errors.append(error)
                    return

    def _answered(self, call: Callable[[], Answer]) -> Answer:
        """The answer to a request, which is sent again until there is one or the load ends."""
        while True:
            try:
                return call()
            except ServiceError as error:
                if error.status not in REPEATED:
                    raise
                if self._ends.is_set():
                    raise Unanswered from error

    def _decide(self, client: Client, key: str, rng: random.Random) -> str:
        state = rng.choice(STATES)
        answer = self._answered(lambda: client.decide(POLICY, state, key=key))
        if rng.random() < 0.1:
            again = self._answered(lambda: client.decide(POLICY, state, key=key))
            assert again == answer
        decided = Decided(key, state, answer.action, answer.propensity, answer.evidence)
        self.decisions[answer.decision_id] = decided
        return answer.decision_id

    def _report(self, client: Client, decision_id: str, rng: random.Random) -> None:
        next_state = rng.choice(STATES)
        answer = self._answered(lambda: client.outcome(decision_id, next_state))
        if rng.random() < 0.1:
            again = self._answered(lambda: client.outcome(decision_id, next_state))
            assert again == answer
        self.outcomes[decision_id] = Reported(next_state, answer.status, answer.evidence)


@dataclass(frozen=True)
class Stored:
    """What a database has of the policy.

    Attributes
    ----------
    seqs : list of int
        Numbers of all that happened, in order.
    decided_at, reported_at : dict
        The number of each decision, and of each decision's outcome.
    learned : list
        State, action and next state of what was learned, in order.
    """

    decisions: dict[str, Decided]
    outcomes: dict[str, Reported]
    seqs: list[int]
    decided_at: dict[str, int]
    reported_at: dict[str, int]
    learned: list[tuple[str, str, str]]

    @classmethod
    def read(cls, query: Callable[[str], Iterable[Sequence[Any]]]) -> Stored:
        """Read it by a function that runs SQL and returns rows."""
        decisions = list(
            query("select id, seq, key, state, action, propensity, evidence from decision")
        )
        outcomes = list(query("select decision, seq, next_state, status, evidence from outcome"))
        events = list(query("select seq from event"))
        learned = query(
            "select d.state, d.action, o.next_state from outcome o "
            "join decision d on d.id = o.decision where o.status = 'learned' order by o.seq"
        )
        seqs = [row[1] for row in (*decisions, *outcomes)] + [row[0] for row in events]
        return cls(
            {row[0]: Decided(*row[2:]) for row in decisions},
            {row[0]: Reported(*row[2:]) for row in outcomes},
            sorted(seqs),
            {row[0]: row[1] for row in decisions},
            {row[0]: row[1] for row in outcomes},
            [(state, action, after) for state, action, after in learned],
        )


def stored_in(folder: Path) -> Stored:
    """What the SQLite database in a folder has.

    A copy is read: whoever opens the database itself repairs it on the way.
    """
    with TemporaryDirectory() as copies:
        for file in folder.glob(f"{DATABASE}*"):
            shutil.copy(file, copies)
        database = sqlite3.connect(Path(copies) / DATABASE)
        try:
            assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
            return Stored.read(lambda sql: database.execute(sql).fetchall())
        finally:
            database.close()


def require_prefix(stored: Stored) -> None:
    """What is stored has no gap, nothing twice, and no effect before its cause."""
    assert stored.seqs == list(range(1, len(stored.seqs) + 1))
    keys = [decided.key for decided in stored.decisions.values()]
    assert len(set(keys)) == len(keys)
    for decision, seq in stored.reported_at.items():
        assert stored.decided_at[decision] < seq


def require_durable(load: Load, stored: Stored) -> None:
    """What was acknowledged is stored as it was, and what is stored is a prefix."""
    require_prefix(stored)
    for decision, decided in dict(load.decisions).items():
        assert stored.decisions.get(decision) == decided
    for decision, reported in dict(load.outcomes).items():
        assert stored.outcomes.get(decision) == reported
