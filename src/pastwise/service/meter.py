"""Counts what the engine does, for its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pastwise.service.changes import News
from pastwise.service.metrics import Metrics, Number
from pastwise.service.monitor import AnswerTime, PolicyMonitor
from pastwise.service.problems import Problem


class Meter:
    """Turns what happened into metrics.

    Parameters
    ----------
    metrics : Metrics
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._decisions: dict[tuple[str, int, str], Number] = {}
        self._decision_seconds = metrics.decision_seconds.child()
        self._commit_seconds = metrics.commit_seconds.child()
        self._commit_batch = metrics.commit_batch.child()
        self._outcome_lag = metrics.outcome_lag_seconds.child()

    def happened(self, policy: str, news: News) -> None:
        """Something was committed."""
        if news.kind == "decision":
            self._decided(policy, news.body)
        elif news.kind == "outcome":
            self._closed(policy, news.body)

    def _decided(self, policy: str, body: Mapping[str, Any]) -> None:
        key = (policy, body["policy_version"], body["mode"])
        number = self._decisions.get(key)
        if number is None:
            _, version, mode = key
            number = self._metrics.decisions.child(policy=policy, version=version, mode=mode)
            self._decisions[key] = number
        number.add()
        if body["weak"]:
            self._metrics.weak_decisions.add(policy=policy)
        if body["unseen"]:
            self._metrics.unknown_states.add(policy=policy)

    def _closed(self, policy: str, body: Mapping[str, Any]) -> None:
        self._metrics.outcomes.add(policy=policy, status=body["status"])
        lag = body.get("lag_s")
        if lag is not None:
            self._outcome_lag.observe(lag)

    def answered(self, seconds: float) -> None:
        """A decision was answered."""
        self._decision_seconds.observe(seconds)

    def answer_time(self) -> AnswerTime | None:
        """How long decisions took; None before the first one."""
        seconds = self._decision_seconds
        if seconds.count == 0:
            return None
        return AnswerTime(seconds.count, seconds.quantile(0.5), seconds.quantile(0.99))

    def repeated(self, policy: str) -> None:
        """A request was answered again because of its key."""
        self._metrics.idempotent_replays.add(policy=policy)

    def refused(self, policy: str, problem: Problem) -> None:
        """A decision was refused, perhaps since its state is not known."""
        is_of_state = any(part.pointer == "/state" for part in problem.errors)
        if problem.slug == "unknown-label" and is_of_state:
            self._metrics.unknown_states.add(policy=policy)

    def committed(self, writes: int, seconds: float) -> None:
        """The store committed; called in its thread."""
        self._commit_batch.observe(writes)
        self._commit_seconds.observe(seconds)

    def loaded(self, policy: str, seconds: float) -> None:
        """A policy was read from the store."""
        self._metrics.replay_seconds.set(seconds, policy=policy)

    def watched(self, policy: str, monitor: PolicyMonitor) -> None:
        """What the monitor of a policy has found."""
        self._metrics.alarm.set(float(monitor.alarm), policy=policy)
        self._metrics.change_evidence.set(monitor.detector.evidence, policy=policy)
        wanted = monitor.wanted_today
        if wanted is not None:
            self._metrics.share_wanted.set(wanted, policy=policy)
