"""Engines of the decision service on a real store, with a clock that tests can set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from pastwise.service.engine import Engine
from pastwise.service.problems import Problem
from pastwise.service.store import open_store
from pastwise.service.types import (
    DecideRequest,
    DecisionView,
    OutcomeRequest,
    OutcomeView,
    PolicySettings,
    SettingsPatch,
)

ROOM = "thermostat"
"""Name of the policy that `room_engine` serves."""

STATES = ("cold", "mild", "warm", "off")
ACTIONS = ("heat", "idle", "vent")


@cache
def room_file(method: str = "TL", records: int = 200, seed: int = 0) -> bytes:
    """A policy file learned from a random log of rooms, in which episodes end in ``off``."""
    rng = np.random.default_rng(seed)
    log = {
        "room": rng.choice(STATES[:3], records).tolist(),
        "did": rng.choice(ACTIONS, records).tolist(),
        "then": rng.choice(STATES, records, p=[0.3, 0.4, 0.2, 0.1]).tolist(),
    }
    learner = pw.TransferLearner(pw.Goal(prefer={"mild": 1.0, "warm": 0.4}), method=method)
    learner.fit(log, state="room", action="did", next_state="then", terminal=["off"])
    return saved(learner)


def saved(learner: pw.TransferLearner) -> bytes:
    """The bytes of a policy file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.safetensors"
        learner.save(path)
        return path.read_bytes()


def refused(slug: str) -> Any:
    """A context in which a problem with this slug must come up."""
    return pytest.raises(Problem, check=lambda problem: problem.slug == slug)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * 1000)


@dataclass
class Bench:
    """An engine with one policy, and what it published."""

    engine: Engine
    clock: Clock
    news: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    async def decide(
        self, state: Any = "cold", key: str | None = None, **members: Any
    ) -> DecisionView:
        """A decision."""
        request = DecideRequest(state=state, **members)
        view, _ = await self.engine.decide(ROOM, request, "tok", key)
        return view

    async def outcome(
        self, decision: DecisionView | str, next_state: Any = "mild", **members: Any
    ) -> OutcomeView:
        """The answer to an outcome."""
        decision_id = decision if isinstance(decision, str) else decision.decision_id
        request = OutcomeRequest(next_state=next_state, **members)
        view, _ = await self.engine.outcome(decision_id, request, "tok")
        return view

    def status(self, decision: DecisionView) -> str:
        """The status of a decision in the store."""
        row = self.engine.store.decision(decision.decision_id)
        assert row is not None
        return row.status

    def kinds(self) -> list[str]:
        """Kinds of all that happened to the policy, without its creation."""
        history = self.engine.store.history(ROOM)
        return [item.kind for item in history if item.seq > 1]

    async def rule(self, state: str = "cold") -> dict[str, float]:
        """What would be decided in a state."""
        return (await self.engine.rule(ROOM, state)).rule

    async def change(self, **settings: Any) -> None:
        """Change settings of the policy."""
        etag = self.engine.policy(ROOM).etag
        await self.engine.change_settings(ROOM, SettingsPatch(**settings), "tester", etag)


@asynccontextmanager
async def opened(
    folder: Path | str, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Bench]:
    """An engine on the store in a folder; it is stopped at the end."""
    news: list[tuple[str, str, dict[str, Any]]] = []
    clock = clock or Clock()
    engine = Engine(
        open_store(folder),
        clock,
        publish=lambda policy, kind, body: news.append((policy, kind, dict(body))),
        **options,
    )
    await engine.start()
    try:
        yield Bench(engine, clock, news)
    finally:
        await engine.stop()


@asynccontextmanager
async def room_engine(
    folder: Path | str,
    *,
    method: str = "TL",
    clock: Clock | None = None,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """An engine that serves one new policy, live."""
    async with opened(folder, clock, **(options or {})) as bench:
        given = PolicySettings(**{"mode": "live", "outcome_due_s": 60.0, **settings})
        await bench.engine.create_policy(ROOM, given, "tester")
        await bench.engine.add_version(ROOM, room_file(method), b"seed", "", "tester")
        yield bench
