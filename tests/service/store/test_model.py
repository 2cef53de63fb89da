"""Random writes, compared with dictionaries."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pastwise.errors import StoreError
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.rows import (
    CloseDecision,
    DecisionRow,
    EventRow,
    Insert,
    OutcomeRow,
    Write,
)
from tests.helpers.postgres import PostgresServer
from tests.helpers.service_rows import decision, decision_id, event, outcome

POLICIES = ("thermostat", "other")

LABELS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=5)

ACTIONS = st.sampled_from(["decide", "outcome", "close", "event", "again", "commit", "reopen"])

STEPS = st.tuples(ACTIONS, st.sampled_from(POLICIES), st.integers(0, 30), LABELS, st.floats(0, 1))


@dataclass
class Model:
    """What a store should hold; a copy is what it holds if a transaction fails."""

    decisions: dict[tuple[str, int], DecisionRow] = field(default_factory=dict)
    outcomes: dict[str, OutcomeRow] = field(default_factory=dict)
    events: dict[tuple[str, int], EventRow] = field(default_factory=dict)

    def copy(self) -> "Model":
        return Model(dict(self.decisions), dict(self.outcomes), dict(self.events))

    def last_seq(self, policy: str) -> int:
        return max(self.seqs(policy), default=0)

    def seqs(self, policy: str) -> list[int]:
        rows: list[DecisionRow | OutcomeRow | EventRow] = []
        rows.extend(self.decisions.values())
        rows.extend(self.outcomes.values())
        rows.extend(self.events.values())
        return sorted(row.seq for row in rows if row.policy == policy)


class Comparison:
    """A store and its model, and the writes that are not committed yet."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.store: Store = open_store(place)
        self.model = Model()
        self.planned = Model()
        self.writes: list[Write] = []
        self.fails = False

    def step(self, action: str, policy: str, number: int, label: str, share: float) -> None:
        seq = self.planned.last_seq(policy) + 1
        made = sorted(key for key in self.planned.decisions if key[0] == policy)
        chosen = made[number % len(made)] if made else None
        match action:
            case "decide":
                row = decision(seq, policy, state=label, propensity=share, key=label or None)
                has_key = row.key is not None and any(
                    (each.policy, each.key) == (policy, row.key)
                    for each in self.planned.decisions.values()
                )
                self.fails = self.fails or has_key
                self.planned.decisions[policy, seq] = row
                self.writes.append(Insert(row))
            case "outcome" if chosen is not None:
                result = outcome(seq, chosen[1], policy, next_state=label, reward=share)
                self.fails = self.fails or result.decision in self.planned.outcomes
                self.planned.outcomes[result.decision] = result
                self.writes.append(Insert(result))
            case "close" if chosen is not None:
                changed = self.planned.decisions[chosen]._replace(status="learned", taken=label)
                self.planned.decisions[chosen] = changed
                self.writes.append(CloseDecision(policy, chosen[1], "learned", label))
            case "event":
                happened = event(seq, "alarm", policy=policy, body=label)
                self.planned.events[policy, seq] = happened
                self.writes.append(Insert(happened))
            case "again" if chosen is not None:
                self.fails = True
                self.writes.append(Insert(self.planned.decisions[chosen]))
            case "commit" | "reopen":
                self.commit()
                if action == "reopen":
                    self.store.close()
                    self.store = open_store(self.place, create=False)

    def commit(self) -> None:
        """Commit the writes together; they are stored all, or none of them."""
        committed = self.store.submit(self.writes)
        if self.fails:
            with pytest.raises(StoreError):
                committed.result()
            self.store.resume()
        else:
            committed.result()
            self.model = self.planned
        self.planned = self.model.copy()
        self.writes = []
        self.fails = False

    def compare(self) -> None:
        """Everything that can be read is as the model has it."""
        for policy in POLICIES:
            assert self.store.last_seq(policy) == self.model.last_seq(policy)
            made = [row for key, row in sorted(self.model.decisions.items()) if key[0] == policy]
            assert self.store.decisions(policy, limit=100).items == made[::-1]
            history = [item.seq for item in self.store.history(policy)]
            assert history == self.model.seqs(policy)
            is_open = [row for row in made if row.status == "open"]
            assert self.store.due(policy, 2**60, 100) == is_open
            for row in made:
                found = self.model.outcomes.get(decision_id(row.seq, policy))
                assert self.store.outcome_of(row.id) == found
                if row.key is not None:
                    assert self.store.decision_by_key(policy, "t1", row.key) == row


def check(place: str, steps: list[tuple[str, str, int, str, float]]) -> None:
    comparison = Comparison(place)
    try:
        for step in steps:
            comparison.step(*step)
        comparison.commit()
        comparison.compare()
    finally:
        comparison.store.close()


@settings(max_examples=30)
@given(st.lists(STEPS, max_size=40))
def test_sqlite_holds_what_the_model_holds(steps: list[tuple[str, str, int, str, float]]) -> None:
    with TemporaryDirectory() as folder:
        check(str(Path(folder) / "data"), steps)


@settings(max_examples=20)
@given(steps=st.lists(STEPS, max_size=40))
def test_postgres_holds_what_the_model_holds(
    postgres: PostgresServer, steps: list[tuple[str, str, int, str, float]]
) -> None:
    check(postgres.url(), steps)
