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
    RuleBasedStateMachine,
    initialize,
    invariant,
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
SECONDS = [0, WINDOW // 2, WINDOW, WINDOW + 1]
PLACES = st.integers(0, 9)
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

    decisions: list[Decided] = field(default_factory=list)
    by_key: dict[str, Decided] = field(default_factory=dict)
    learned: dict[int, list[tuple[str, str, str]]] = field(default_factory=lambda: {1: [], 2: []})
    version: int = 1
    mode: str = "live"
    waits: bool = False

    def at(self, place: int) -> Decided:
        """One of the decisions, counted from the last."""
        return self.decisions[-1 - place % len(self.decisions)]

    def learns(self, decided: Decided) -> bool:
        """Whether an outcome of a decision is learned now."""
        is_live = decided.view.mode == "live" and self.mode != "shadow"
        return is_live and decided.view.policy_version == self.version

    def learn(self, decided: Decided) -> None:
        """Learn the record of a decision."""
        self.learned[self.version].append(decided.record)


class Service(RuleBasedStateMachine):
    """An engine on a real store, step by step."""

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

    @initialize(waits=st.booleans())
    def make_policy(self, waits: bool) -> None:
        """A policy with two versions."""
        delay: Any = "window" if waits else "none"
        given = PolicySettings(mode="live", outcome_due_s=WINDOW, learn_delay=delay)
        self.model.waits = waits
        self.run(self.engine.create_policy(ROOM, given, "tester"))
        for number in (1, 2):
            artefact = room_file(seed=number)
            self.run(self.engine.add_version(ROOM, artefact, b"seed", "", "tester"))

    # Deciding.

    @rule(
        state=st.sampled_from(STATES[:3]),
        taken=st.none() | st.sampled_from(ACTIONS),
        seconds=st.sampled_from(SECONDS),
        next_state=st.none() | st.sampled_from(STATES),
    )
    def decide(self, state: str, taken: str | None, seconds: int, next_state: str | None) -> None:
        """A decision, and perhaps what was done and what followed after some time."""
        request = DecideRequest(state=state)
        view, replayed = self.run(self.engine.decide(ROOM, request, "tok", None))
        assert not replayed
        decided = self.decided(view, state)
        if taken is not None:
            self.take_for(decided, taken)
        self.clock.pass_seconds(seconds)
        if next_state is not None:
            self.report_for(decided, next_state)

    @rule(state=st.sampled_from(STATES[:2]), key=st.sampled_from("abc"))
    def decide_with_key(self, state: str, key: str) -> None:
        """A decision with a key, new or used before."""
        request = DecideRequest(state=state)
        call = self.engine.decide(ROOM, request, "tok", key)
        first = self.model.by_key.get(key)
        if first is not None and first.state != state:
            self.refuses("idempotency-key-reused", call)
            return
        view, replayed = self.run(call)
        assert replayed == (first is not None)
        if first is None:
            self.model.by_key[key] = self.decided(view, state)
        else:
            assert view == first.view

    def decided(self, view: DecisionView, state: str) -> Decided:
        """Keep a decision in the model."""
        model = self.model
        assert (view.policy_version, view.mode) == (model.version, model.mode)
        assert view.evidence == len(model.learned[model.version])
        due = self.clock.now + WINDOW * 1000
        decided = Decided(view, state, due)
        model.decisions.append(decided)
        return decided

    # What follows.

    @precondition(lambda self: self.model.decisions)
    @rule(place=PLACES, next_state=st.sampled_from(STATES))
    def report(self, place: int, next_state: str) -> None:
        """An outcome: the first, the same again, another one, a late one."""
        self.report_for(self.model.at(place), next_state)

    @precondition(lambda self: self.model.decisions)
    @rule(place=PLACES)
    def report_again(self, place: int) -> None:
        """The same outcome again."""
        decided = self.model.at(place)
        if decided.next_state is not None:
            self.report_for(decided, decided.next_state)

    def report_for(self, decided: Decided, next_state: str) -> None:
        """An outcome of a decision."""
        request = OutcomeRequest(next_state=next_state)
        call = self.engine.outcome(decided.view.decision_id, request, "tok")
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

    @precondition(lambda self: self.model.decisions)
    @rule(place=PLACES, action=st.sampled_from(ACTIONS))
    def take(self, place: int, action: str) -> None:
        """Another action was taken."""
        self.take_for(self.model.at(place), action)

    def take_for(self, decided: Decided, action: str) -> None:
        """Another action was taken than a decision said."""
        request = TakenRequest(action=action, by="me")
        call = self.engine.taken(decided.view.decision_id, request, "tester")
        if self.is_changeable(decided, call):
            assert self.run(call).taken == action
            decided.taken = action

    @precondition(lambda self: self.model.decisions)
    @rule(place=PLACES)
    def cancel(self, place: int) -> None:
        """Nothing was done."""
        decided = self.model.at(place)
        call = self.engine.cancel(decided.view.decision_id, "tester")
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

    @rule()
    def sweep(self) -> None:
        """Close what is due."""
        number = 0
        due = [each for each in self.model.decisions if each.due < self.clock.now]
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
        for decided in self.model.decisions:
            row = self.engine.store.decision(decided.view.decision_id)
            assert row is not None
            assert (row.status, row.taken) == (decided.status, decided.taken)

    def teardown(self) -> None:
        """At the end: the rules of both versions, and the replay of everything."""
        try:
            if self.model.decisions:
                self.clock.pass_seconds(WINDOW + 1)
                self.sweep()
                self.statuses_agree()
                self.rules_agree()
                self.crash()
                self.rules_agree()
                self.roll_back(3 - self.model.version)
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
TestService.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
