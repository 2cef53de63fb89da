"""Metrics in Prometheus' text format (version 0.0.4).

A metric has one child for each combination of its labels' values; a child holds the numbers.
`Metric.child` looks it up, so code that runs often keeps the child and pays for an addition only.
`Metrics` names all metrics of the service, and `Metrics.render` writes them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from pastwise.errors import ParameterError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What `Metrics.render` returns."""

OTHER = "other"
"""Value of every label once a metric has as many children as it may have."""

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds for durations of requests. The goals for latency, 2, 15, 25 and 50 ms, are among
them, so that a share within a goal can be read off exactly."""

LAGS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0)
"""Upper bounds for the time from a decision to its outcome: a second to a week."""

BATCHES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0)
"""Upper bounds for the number of writes in a commit."""


class Number:
    """A number that goes up, or is set."""

    __slots__ = ("_lock", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self._lock = threading.Lock()

    def add(self, amount: float = 1.0) -> None:
        """Add to the number; threads do not lose each other's additions."""
        with self._lock:
            self.value += amount

    def set(self, value: float) -> None:
        """Replace the number."""
        self.value = value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """What Prometheus reads."""
        yield f"{name}{_braces(labels)} {_number(self.value)}"


class Distribution:
    """Counts of observations by upper bounds, and their sum."""

    __slots__ = ("_bounds", "_counts", "_lock", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Count an observation."""
        place = bisect_left(self._bounds, value)
        with self._lock:
            self._counts[place] += 1
            self._sum += value

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self._counts)

    def quantile(self, share: float) -> float:
        """The value that so many observations do not exceed, by interpolation between bounds."""
        with self._lock:
            counts = list(self._counts)
        left = share * sum(counts)
        low = 0.0
        for bound, count in zip(self._bounds, counts[:-1], strict=True):
            if count and left <= count:
                return low + (bound - low) * left / count
            left -= count
            low = bound
        return low

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """What Prometheus reads: each bucket counts all observations up to its bound."""
        with self._lock:
            counts = list(self._counts)
            total = self._sum
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            below += count
            with_bound = ",".join(part for part in (labels, f'le="{_number(bound)}"') if part)
            yield f"{name}_bucket{_braces(with_bound)} {below}"
        yield f"{name}_sum{_braces(labels)} {_number(total)}"
        yield f"{name}_count{_braces(labels)} {below}"


Child = TypeVar("Child", Number, Distribution)


class Metric(Generic[Child]):
    """A named metric and its children.

    Parameters
    ----------
    labels : names
        A label that is not given is empty, which to Prometheus is the same as none.
    most : int
        Largest number of children: a metric must not grow with what clients send. Further
        combinations of labels share one child whose labels are all ``other``.
    """

    kind = "untyped"

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), *, most: int = 1000):
        self.name = name
        self.help_text = help_text
        self.labels = tuple(labels)
        self.most = most
        self._children: dict[tuple[str, ...], Child] = {}
        self._lock = threading.Lock()
        if not self.labels:
            self.child()

    def _new_child(self) -> Child:
        raise NotImplementedError

    def child(self, **labels: object) -> Child:
        """The child for these values of the labels; keep it where it is needed often."""
        values = tuple([str(labels.pop(name, "")) for name in self.labels])
        if labels:
            raise ParameterError(
                f"{self.name} has no label {', '.join(labels)}; it has {', '.join(self.labels)}"
            )
        child = self._children.get(values)
        return self._added(values) if child is None else child

    def _added(self, values: tuple[str, ...]) -> Child:
        with self._lock:
            if len(self._children) >= self.most:
                values = (OTHER,) * len(self.labels)
            return self._children.setdefault(values, self._new_child())

    def forget(self) -> None:
        """Remove all children, before a gauge is set anew for those that are still there."""
        with self._lock:
            self._children.clear()

    def lines(self) -> Iterator[str]:
        """What Prometheus reads."""
        yield f"# HELP {self.name} {_escaped(self.help_text)}"
        yield f"# TYPE {self.name} {self.kind}"
        with self._lock:
            children = list(self._children.items())
        for values, child in children:
            pairs = zip(self.labels, values, strict=True)
            labels = ",".join(f'{name}="{_escaped_value(value)}"' for name, value in pairs)
            yield from child.lines(self.name, labels)


class Counter(Metric[Number]):
    """A number of events since the start."""

    kind = "counter"

    def _new_child(self) -> Number:
        return Number()

    def add(self, amount: float = 1.0, **labels: object) -> None:
        """Count ``amount`` more events."""
        self.child(**labels).add(amount)


class Gauge(Metric[Number]):
    """A number as it is now."""

    kind = "gauge"

    def _new_child(self) -> Number:
        return Number()

    def set(self, value: float, **labels: object) -> None:
        """Replace the number."""
        self.child(**labels).set(value)

    def add(self, amount: float, **labels: object) -> None:
        """Change the number by ``amount``."""
        self.child(**labels).add(amount)


class Histogram(Metric[Distribution]):
    """Observations counted by upper bounds."""

    kind = "histogram"

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        self.bounds = tuple(bounds)
        super().__init__(name, help_text, labels)

    def _new_child(self) -> Distribution:
        return Distribution(self.bounds)

    def observe(self, value: float, **labels: object) -> None:
        """Count an observation."""
        self.child(**labels).observe(value)


class Metrics:
    """All metrics of the service."""

    def __init__(self) -> None:
        by_policy = ("policy",)
        self.decisions = Counter(
            "pastwise_decisions_total", "Decisions made.", ("policy", "version", "mode")
        )
        self.decision_seconds = Histogram(
            "pastwise_decision_seconds",
            "Time from a parsed request to its committed decision.",
            bounds=SECONDS,
        )
        self.commit_seconds = Histogram(
            "pastwise_commit_seconds", "Duration of a commit of the store.", bounds=SECONDS
        )
        self.commit_batch = Histogram(
            "pastwise_commit_batch", "Number of writes in a commit.", bounds=BATCHES
        )
        self.outcomes = Counter(
            "pastwise_outcomes_total", "Outcomes by what became of them.", ("policy", "status")
        )
        self.outcomes_open = Gauge(
            "pastwise_outcomes_open", "Decisions whose outcome is awaited.", by_policy
        )
        self.outcome_lag_seconds = Histogram(
            "pastwise_outcome_lag_seconds", "Time from a decision to its outcome.", bounds=LAGS
        )
        self.idempotent_replays = Counter(
            "pastwise_idempotent_replays_total",
            "Requests answered again because of their idempotency key.",
            by_policy,
        )
        self.weak_decisions = Counter(
            "pastwise_weak_decisions_total", "Decisions that rest on few records.", by_policy
        )
        self.unknown_states = Counter(
            "pastwise_unknown_states_total", "Requests with a state that is not known.", by_policy
        )
        self.change_evidence = Gauge(
            "pastwise_change_evidence",
            "Evidence that the world has changed, as a logarithm to base 10.",
            by_policy,
        )
        self.alarm = Gauge("pastwise_alarm", "1 while a policy's alarm is on.", by_policy)
        self.share_wanted = Gauge(
            "pastwise_share_wanted", "Share of outcomes of today that were wanted.", by_policy
        )
        self.replay_seconds = Gauge(
            "pastwise_replay_seconds", "Duration of the replay at the start.", by_policy
        )
        self.store_bytes = Gauge("pastwise_store_bytes", "Size of the store.", ("file",))
        self.jobs = Gauge("pastwise_jobs", "Jobs by state.", ("state",))
        self.http_requests = Counter(
            "pastwise_http_requests_total", "Answers by route and status.", ("route", "status")
        )
        self.http_seconds = Histogram(
            "pastwise_http_seconds", "Duration of a request.", ("route",), bounds=SECONDS
        )

    def render(self) -> str:
        """All metrics as text."""
        lines = []
        for metric in vars(self).values():
            lines += metric.lines()
        return "\n".join(lines) + "\n"


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _number(value: float) -> str:
    """A number as Prometheus writes it."""
    value = float(value)
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    if value != value:
        return "NaN"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escaped_value(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
