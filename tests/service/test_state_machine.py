"""A state machine drives an engine and a small model of it, which must agree at every step.

The model is written from the specification: a dictionary of decisions, and for each version the
list of records that it has learned. What a version decides by is checked against a learner of the
library that observes the same records, without the service and without live policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import pastwise as pw
from pastwise.service.engine import Engine
from pastwise.service.problems import Problem
from pastwise.service.store import open_store
from pastwise.service.types import (
    DecideRequest,
    DecisionView,
    OutcomeRequest,
    PolicySettings,
    SettingsPatch,
    TakenRequest,
)
from tests.helpers.engines import ACTIONS, ROOM, STATES, Clock, room_file

WINDOW = 60
Result = TypeVar("Result")


@dataclass
class Decided:
    """What the model knows of a decision."""

    view: DecisionView
    state: str
    due: int
    status: str = "open"
    taken: str | None = None
    next_state: str | None = None
    answer: tuple[str, int] | None = None

    @property
    def record(self) -> tuple[str, str, str]:
        """What would be learned of it."""
        assert self.next_state is not None
        return self.state, self.taken or self.view.action, self.next_state


@dataclass
class Model:
    """What should be true of the service."""

    decisions: dict[str, Decided] = field(default_factory=dict)
    by_key: dict[str, tuple[str, str]] = field(default_factory=dict)
    learned: dict[int, list[tuple[str, str, str]]] = field(default_factory=lambda: {1: [], 2: []})
    version: int = 1
    mode: str = "live"
    waits: bool = False

    def learns(self, decided: Decided) -> bool:
        """Whether an outcome of a decision is learned now."""
        is_live = decided.view.mode == "live" and self.mode != "shadow"
        return is_live and decided.view.policy_version == self.version

    def learn(self, decided: Decided) -> None:
        """Learn the record of a decision."""
        self.learned[self.version].append(decided.record)


class Service(RuleBasedStateMachine):
    """An engine on a real store, step by step."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.model = Model()
        self.engine = self.run(self.started())

    def run(self, step: Coroutine[Any, Any, Result]) -> Result:
        """Do a step of the engine."""
        return self.loop.run_until_complete(step)

    async def started(self) -> Engine:
        """An engine on what is stored; a snapshot every few events."""
        engine = Engine(open_store(Path(self.folder.name) / "data"), self.clock, snapshot_every=9)
        await engine.start()
        return engine

    @initialize()
    def make_policy(self) -> None:
        """A policy with two versions."""
        given = PolicySettings(mode="live", outcome_due_s=WINDOW)
        self.run(self.engine.create_policy(ROOM, given, "tester"))
        for number in (1, 2):
            artefact = room_file(seed=number)
            self.run(self.engine.add_version(ROOM, artefact, b"seed", "", "tester"))

    # Deciding.

    @rule(target=ids, state=st.sampled_from(STATES[:3]))
    def decide(self, state: str) -> str:
        """A decision without a key."""
        request = DecideRequest(state=state)
        view, replayed = self.run(self.engine.decide(ROOM, request, "tok", None))
        assert not replayed
        return self.decided(view, state)

    @rule(target=ids, state=st.sampled_from(STATES[:2]), key=st.sampled_from("abc"))
    def decide_with_key(self, state: str, key: str) -> Any:
        """A decision with a key, new or used before."""
        request = DecideRequest(state=state)
        known = self.model.by_key.get(key)
        if known is None:
            view, replayed = self.run(self.engine.decide(ROOM, request, "tok", key))
            assert not replayed
            self.model.by_key[key] = (state, view.decision_id)
            return self.decided(view, state)
        first_state, first_id = known
        if first_state == state:
            view, replayed = self.run(self.engine.decide(ROOM, request, "tok", key))
            assert replayed
            assert view == self.model.decisions[first_id].view
        else:
            self.refuses("idempotency-key-reused", self.engine.decide(ROOM, request, "tok", key))
        return multiple()

    def decided(self, view: DecisionView, state: str) -> str:
        """Keep a decision in the model."""
        model = self.model
        assert (view.policy_version, view.mode) == (model.version, model.mode)
        assert view.evidence == len(model.learned[model.version])
        due = self.clock.now + WINDOW * 1000
        model.decisions[view.decision_id] = Decided(view, state, due)
        return view.decision_id

    # What follows.

    @rule(decision=ids, next_state=st.sampled_from(STATES))
    def report(self, decision: str, next_state: str) -> None:
        """An outcome: the first, the same again, another one, a late one."""
        decided = self.model.decisions[decision]
        call = self.engine.outcome(decision, OutcomeRequest(next_state=next_state), "tok")
        if decided.status == "cancelled":
            self.refuses("decision-cancelled", call)
            return
        if decided.next_state is not None and decided.next_state != next_state:
            self.refuses("outcome-conflict", call)
            return
        view, replayed = self.run(call)
        if decided.next_state is not None:
            assert replayed
            assert (view.status, view.evidence) == decided.answer
            return

        # The first one.
        assert not replayed
        decided.next_state = next_state
        if decided.status == "missing" or self.clock.now > decided.due:
            decided.status = "late"
        elif not self.model.learns(decided):
            decided.status = "recorded"
        elif self.model.waits:
            decided.status = "waiting"
        else:
            decided.status = "learned"
            self.model.learn(decided)
        decided.answer = (decided.status, len(self.model.learned[self.model.version]))
        assert (view.status, view.evidence) == decided.answer

    @rule(decision=ids, action=st.sampled_from(ACTIONS))
    def take(self, decision: str, action: str) -> None:
        """Another action was taken."""
        decided = self.model.decisions[decision]
        call = self.engine.taken(decision, TakenRequest(action=action, by="me"), "tester")
        if self.is_changeable(decided, call):
            assert self.run(call).taken == action
            decided.taken = action

    @rule(decision=consumes(ids))
    def cancel(self, decision: str) -> None:
        """Nothing was done."""
        decided = self.model.decisions[decision]
        call = self.engine.cancel(decision, "tester")
        if decided.status == "cancelled" or self.is_changeable(decided, call):
            assert self.run(call).status == "cancelled"
            decided.status = "cancelled"

    def is_changeable(self, decided: Decided, call: Coroutine[Any, Any, Any]) -> bool:
        """Whether a decision is open; if not, the call must be refused."""
        if decided.status == "open":
            return True
        cancelled = decided.status == "cancelled"
        self.refuses("decision-cancelled" if cancelled else "decision-closed", call)
        return False

    def refuses(self, slug: str, call: Coroutine[Any, Any, Any]) -> None:
        """A call must be refused with this problem."""
        with pytest.raises(Problem) as raised:
            self.run(call)
        assert raised.value.slug == slug

    # Time.

    @rule(seconds=st.sampled_from([1, WINDOW // 2, WINDOW, WINDOW + 1]))
    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.clock.pass_seconds(seconds)

    @rule()
    def sweep(self) -> None:
        """Close what is due."""
        number = 0
        due = [each for each in self.model.decisions.values() if each.due < self.clock.now]
        for decided in sorted(due, key=lambda each: each.due):
            if decided.status == "open":
                decided.status = "missing"
                number += 1
            elif decided.status == "waiting":
                is_learned = self.model.learns(decided)
                decided.status = "learned" if is_learned else "recorded"
                if is_learned:
                    self.model.learn(decided)
                number += 1
        assert self.run(self.engine.sweep()) == number

    # Settings and versions.

    @rule(mode=st.sampled_from(["live", "shadow"]), waits=st.booleans())
    def change_settings(self, mode: Any, waits: bool) -> None:
        """Another mode, or another time to learn."""
        patch = SettingsPatch(mode=mode, learn_delay="window" if waits else "none")
        etag = self.engine.policy(ROOM).etag
        self.run(self.engine.change_settings(ROOM, patch, "tester", etag))
        self.model.mode = mode
        self.model.waits = waits

    @rule(version=st.sampled_from([1, 2]))
    def roll_back(self, version: int) -> None:
        """Use a version, which continues from what it had learned."""
        view = self.run(self.engine.rollback(ROOM, version, "tester"))
        self.model.version = version
        assert view.evidence == len(self.model.learned[version])

    @rule()
    def restart(self) -> None:
        """Stop, and start on what is stored."""
        self.run(self.engine.stop())
        self.engine = self.run(self.started())

    @precondition(lambda self: self.model.decisions)
    @rule()
    def crash(self) -> None:
        """Start on what is stored without a last snapshot."""
        self.engine.store.close()
        self.engine = self.run(self.started())

    # What must be true.

    @invariant()
    def statuses_agree(self) -> None:
        """Every decision has the status that the model says."""
        for decision, decided in self.model.decisions.items():
            row = self.engine.store.decision(decision)
            assert row is not None
            assert (row.status, row.taken) == (decided.status, decided.taken)

    def teardown(self) -> None:
        """At the end: the rule of the version in use, and the replay of everything."""
        try:
            if self.model.decisions:
                self.rules_agree()
                assert self.run(self.engine.replay(ROOM)).equal
            self.run(self.engine.stop())
        finally:
            self.loop.close()
            self.folder.cleanup()

    def rules_agree(self) -> None:
        """The version in use decides like a learner that observed the same records."""
        path = Path(self.folder.name) / "expected.safetensors"
        path.write_bytes(room_file(seed=self.model.version))
        learner = pw.load(path)
        for record in self.model.learned[self.model.version]:
            learner.observe(*record)
        for state in STATES[:3]:
            view = self.run(self.engine.rule(ROOM, state))
            assert view.rule == pytest.approx(learner.rule(state), abs=1e-12)


TestService = Service.TestCase
TestService.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
