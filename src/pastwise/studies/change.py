"""Whether the test of change keeps its run length, and how soon it finds a change.

In each system somebody leaves a log (`planner_tasks`). TL learns from it, then acts and learns on,
with a small floor of exploration, while a `ChangeDetector` of the log watches. *Quiet* systems stay
as they are. In the others, after a while,

- *everything* changes: every row moves towards the row of another state;
- or *an action*, the one that was taken most: its rows move towards those of another action;
- or *a row*, the one that was visited most: it moves towards that of another state;

each by a share that is sampled. The *size* of a change is the share of outcomes that come out
otherwise: the total variation distance of the rows, weighted by how often they were visited before.
A change of size 0, such as another action where actions have no effect, must not raise alarms.

The constants of the detector were chosen on families of the group *chosen*; tables are of the group
*reported*.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.evaluation.change import ChangeDetector
from pastwise.methods.base import LiveRows
from pastwise.methods.tl import TL
from pastwise.models.dense import DenseModel
from pastwise.policy.choice import conditioned
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.families import FAMILIES, of_group
from pastwise.studies.output import save_json
from pastwise.studies.planner_tasks import PASTS, Place, counts_of, ideal_of, places
from pastwise.studies.runner import Runner
from pastwise.studies.synthetic import System

QUIET = "nothing"

KINDS = (QUIET, "everything", "an action", "a row")
"""What changes."""

RUN_LENGTHS = (100.0, 1e3, 1e4, 1e5, 1e6)
"""Run lengths whose alarms are noted."""

SIZES = (0.01, 0.1, 0.3, 1.0)
"""Bounds of the sizes of changes in tables. Smaller ones are in none: they may be in rows that were
hardly visited before, and are visited more often since."""

ROUNDING = 1e-9
"""Changes of a smaller size are none."""

EFFECT, NO_EFFECT, HIDDEN = "actions have effects", "actions have no effect", "hidden types"


@dataclass(frozen=True)
class ChangeStudy:
    """Settings of the study.

    Parameters
    ----------
    families : names
    systems : int
        Number of systems of each family; in each, every length of log meets every kind of change.
    records : numbers
        Lengths of the logs.
    before : int
        Outcomes before a change.
    outcomes : int
        Outcomes of a quiet system, or after a change.
    shares : (float, float)
        Range of how far rows move; by the factor, small ones are as frequent as large ones.
    floor : float
        Smallest probability of each action.
    memory, share : float
        Constants of the detector; by default its own.
    seed : int
    """

    families: Sequence[str] = field(default_factory=lambda: of_group("reported"))
    systems: int = 4
    records: Sequence[int] = (40, 400, 4000)
    before: int = 1000
    outcomes: int = 5000
    shares: tuple[float, float] = (0.1, 1.0)
    floor: float = 0.02
    memory: float = 50.0
    share: float = 0.2
    seed: int = 0


# A policy in a loop.


class Loop:
    """A policy that acts and learns in a system, one outcome at a time.

    Parameters
    ----------
    system : synthetic.System
        May be exchanged for another one with the same states and actions.
    rows : LiveRows
        The policy.
    floor : float
        Smallest probability of each action.
    rng : Generator
    """

    def __init__(
        self, system: System, rows: LiveRows, floor: float, rng: np.random.Generator
    ) -> None:
        self._rows = rows
        self._floor = min(floor, 1 / system.num_actions)
        self._actions = range(system.num_actions)
        self._uniform = _uniform_numbers(rng)
        self.change(system)
        self._begin()

    def change(self, system: System) -> None:
        """Go on in another system."""
        self._system = system
        self._cumulative: dict[tuple[int, int, int], list[float]] = {}

    def _begin(self) -> None:
        """Begin an episode."""
        system = self._system
        self._type = _sampled(system.type_weights.cumsum().tolist(), next(self._uniform))
        self._state = _sampled(system.initial.cumsum().tolist(), next(self._uniform))
        shortest, longest = system.lengths
        self._left = shortest + int(next(self._uniform) * (longest + 1 - shortest))

    def step(self) -> tuple[int, int, int]:
        """The next outcome: state, action and next state."""
        # Act.
        state = self._state
        rule = conditioned(self._rows[state], self._actions, self._floor)
        action = _sampled(list(accumulate(rule)), next(self._uniform))

        # See what follows.
        place = (self._type, state, action)
        row = self._cumulative.get(place)
        if row is None:
            row = self._system.model.transition[place].cumsum().tolist()
            self._cumulative[place] = row
        next_state = _sampled(row, next(self._uniform))

        # Learn, and go on.
        self._rows.observe(state, action, next_state)
        self._state = next_state
        self._left -= 1
        if self._left == 0 or not self._system.goes_on[next_state]:
            self._begin()
        return state, action, next_state


def _uniform_numbers(rng: np.random.Generator, block: int = 4096) -> Iterator[float]:
    while True:
        yield from rng.random(block).tolist()


def _sampled(cumulative: list[float], uniform: float) -> int:
    """An index by its cumulative probability; the last of them may be below 1 by rounding."""
    return min(bisect_right(cumulative, uniform * cumulative[-1]), len(cumulative) - 1)


# Changes.


def changed(
    system: System,
    kind: str,
    share: float,
    visits: Counter[tuple[int, int]],
    rng: np.random.Generator,
) -> System:
    """The system after a change.

    Parameters
    ----------
    visits : number of visits by state and action
        What happened before: the action and the row that change are the most frequent ones.
    """
    transition = system.model.transition
    other = transition.copy()
    states = np.flatnonzero(system.goes_on)
    if kind == "everything":
        other[:, states] = transition[:, np.roll(rng.permutation(states), 1)]
    elif kind == "an action":
        actions: Counter[int] = Counter()
        for (_, action), number in visits.items():
            actions[action] += number
        [(action, _)] = actions.most_common(1)
        others = [a for a in range(system.num_actions) if a != action]
        if others:
            other[:, states, action] = transition[:, states, rng.choice(others)]
    elif kind == "a row":
        [((state, action), _)] = visits.most_common(1)
        other[:, state, action] = transition[:, rng.choice(states), action]
    return replace(system, model=DenseModel((1 - share) * transition + share * other))


def size_of_change(before: System, after: System, visits: Counter[tuple[int, int]]) -> float:
    """Share of outcomes that come out otherwise, with the visits that there were before."""
    distance = np.abs(before.mean_transition - after.mean_transition).sum(axis=-1) / 2
    total = sum(number * float(distance[row]) for row, number in visits.items())
    return total / sum(visits.values())


# Cases.


@dataclass(frozen=True)
class Case:
    """One policy in one system.

    Attributes
    ----------
    family, index, past, records
        The system, and the log that was left in it.
    group : str
        Whether actions have effects, or episodes have hidden types.
    kind : str
        What changes: one of `KINDS`.
    size : float
        Size of the change.
    watched : int
        Outcomes that were watched after the change; of a quiet system, all.
    early : list
        Whether there was an alarm before the change, for each of `RUN_LENGTHS`.
    delays : list
        Outcomes from the change to the alarm; None where there was none.
    """

    family: str
    index: int
    past: str
    records: int
    group: str
    kind: str
    size: float
    watched: int
    early: list[bool]
    delays: list[int | None]


def _group(place: Place, system: System) -> str:
    if len(system.type_weights) > 1:
        return HIDDEN
    return NO_EFFECT if FAMILIES[place.family].is_null else EFFECT


def run_case(study: ChangeStudy, place: Place, records: int, kind: str) -> Case:
    """Watch a policy in a system."""
    # The log, and the policy that was learned from it.
    system = place.system()
    past = PASTS[place.index % len(PASTS)]
    log = place.log(system, past, records)
    counts = counts_of(Transitions(log.state, log.action, log.next_state), system)
    ideal = ideal_of(system)
    method = TL()
    rows = method.live_rows(method.plan(method.start(counts, ideal)), ideal)
    own = [*place.seeds(past).spawn_key, records, KINDS.index(kind)]
    rng = np.random.default_rng([place.seed, *own])
    loop = Loop(system, rows, study.floor, rng)
    detector = ChangeDetector(
        counts, run_length=RUN_LENGTHS[0], memory=study.memory, share=study.share
    )
    watch = _Watch(detector)

    # Before the change.
    size = 0.0
    early = [False] * len(RUN_LENGTHS)
    if kind != QUIET:
        visits: Counter[tuple[int, int]] = Counter()
        for _ in range(study.before):
            state, action, next_state = loop.step()
            visits[state, action] += 1
            watch.observe(state, action, next_state)
        early = [time is not None for time in watch.alarms]
        share = float(np.exp(rng.uniform(*np.log(study.shares))))
        after = changed(system, kind, share, visits, rng)
        size = size_of_change(system, after, visits)
        loop.change(after)

    # After it.
    start = watch.observed
    for _ in range(study.outcomes):
        watch.observe(*loop.step())
        if watch.is_done:
            break
    delays = [
        None if time is None or is_early else time - start
        for time, is_early in zip(watch.alarms, early, strict=True)
    ]
    return Case(
        family=place.family,
        index=place.index,
        past=past,
        records=records,
        group=_group(place, system),
        kind=kind,
        size=size,
        watched=watch.observed - start,
        early=early,
        delays=delays,
    )


class _Watch:
    """A detector, and when its evidence first reached each of `RUN_LENGTHS`."""

    def __init__(self, detector: ChangeDetector) -> None:
        self._detector = detector
        self.alarms: list[int | None] = [None] * len(RUN_LENGTHS)
        self._reached = 0

    @property
    def observed(self) -> int:
        """Number of outcomes so far."""
        return self._detector.observed

    @property
    def is_done(self) -> bool:
        """Whether the evidence has reached all of them."""
        return self._reached == len(RUN_LENGTHS)

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Watch one outcome."""
        detector = self._detector
        detector.observe(state, action, next_state)
        if not detector.alarm:
            return
        evidence = 10**detector.evidence
        while not self.is_done and evidence >= RUN_LENGTHS[self._reached] * (1 - 1e-9):
            self.alarms[self._reached] = detector.observed
            self._reached += 1
        detector.run_length = inf if self.is_done else RUN_LENGTHS[self._reached]
        detector.alarm = False


# The study.


def study_change(study: ChangeStudy, runner: Runner | None = None) -> ChangeResult:
    """Run the study."""
    if not study.records or study.systems < 1:
        raise ParameterError("the study needs at least one system and one length of log")
    parts = [
        partial(_part, study, place)
        for place in places(study.families, PASTS, study.systems, study.seed)
    ]
    settings = {"study": "change", **_plain(study)}
    blocks = (runner or Runner()).run("Watching", parts, settings)
    return ChangeResult(settings, [Case(**row) for block in blocks for row in block])


def _plain(study: ChangeStudy) -> dict[str, Any]:
    settings = asdict(study)
    return {k: list(v) if isinstance(v, tuple | list) else v for k, v in settings.items()}


def _part(study: ChangeStudy, place: Place) -> list[dict[str, Any]]:
    """All cases of one system, as plain values."""
    return [
        asdict(run_case(study, place, records, kind)) for records in study.records for kind in KINDS
    ]


@dataclass(frozen=True)
class ChangeResult:
    """Cases of the study, and tables of them."""

    settings: dict[str, Any]
    cases: list[Case]

    def quiet_table(self) -> list[list[str]]:
        """Outcomes per false alarm, by group of families and run length.

        Systems in which what changed has no effect are among them.
        """
        header = ["systems", "outcomes", *(f"{length:,.0f}" for length in RUN_LENGTHS)]
        rows = [header]
        for group in (EFFECT, NO_EFFECT, HIDDEN):
            cases = [c for c in self.cases if c.group == group and c.size < ROUNDING]
            if not cases:
                continue
            cells = [_per_alarm(cases, place) for place in range(len(RUN_LENGTHS))]
            watched = sum(case.watched for case in cases)
            rows.append([group, f"{watched:,}", *cells])
        return rows

    def delay_table(self, run_length: float) -> list[list[str]]:
        """Changes that were found and median delay, by kind, size and length of log.

        Systems with hidden types are left out, and those with an alarm before the change.
        """
        place = RUN_LENGTHS.index(run_length)
        lengths = sorted({case.records for case in self.cases})
        rows = [["what changes", "size", *(f"log of {n:,}" for n in lengths)]]
        for kind in KINDS[1:]:
            for low, high in pairwise(SIZES):
                cells = []
                for records in lengths:
                    found = [
                        case.delays[place]
                        for case in self.cases
                        if (case.kind, case.records) == (kind, records)
                        and low <= case.size < (high if high < 1 else inf)
                        and case.group != HIDDEN
                        and not case.early[place]
                    ]
                    cells.append(_delay(found))
                rows.append([kind, f"{low:g} to {high:g}", *cells])
        return rows

    def page(self) -> str:
        """The tables as Markdown."""
        header, *rows = self.quiet_table()
        lines = ["Outcomes per false alarm, by run length.", "", *markdown_table(header, rows), ""]
        for length in (RUN_LENGTHS[2], RUN_LENGTHS[-1]):
            header, *rows = self.delay_table(length)
            lines += [
                f"Changes found with a run length of {length:,.0f}, and median number of "
                "outcomes until then, if half of them were.",
                "",
                *markdown_table(header, rows),
                "",
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "settings": self.settings,
            "quiet": self.quiet_table(),
            "delays": {f"{n:g}": self.delay_table(n) for n in RUN_LENGTHS},
        }

    def write(self, folder: Path) -> None:
        """Write the cases, the tables and a page."""
        rows = []
        for case in self.cases:
            row = asdict(case)
            early = row.pop("early")
            delays = row.pop("delays")
            for length, is_early, delay in zip(RUN_LENGTHS, early, delays, strict=True):
                row[f"early_{length:g}"] = is_early
                row[f"delay_{length:g}"] = delay
            rows.append(row)
        write_csv(folder / "cases.csv", rows)
        save_json(folder / "change.json", self.to_dict())
        (folder / "change.md").write_text(self.page(), encoding="utf-8")


def _per_alarm(cases: Sequence[Case], place: int) -> str:
    """Outcomes per alarm of quiet systems, watched until the first alarm."""
    outcomes = 0
    alarms = 0
    for case in cases:
        delay = case.delays[place]
        if case.early[place]:
            continue
        outcomes += case.watched if delay is None else delay
        alarms += delay is not None
    return f"{outcomes / alarms:,.0f}" if alarms else f"none in {outcomes:,}"


def _delay(found: Sequence[int | None]) -> str:
    """How many of the changes were found, and the median delay if half of them were."""
    if not found:
        return ""
    delays = sorted(inf if delay is None else delay for delay in found)
    number = sum(delay < inf for delay in delays)
    median = float(np.quantile(delays, 0.5, method="inverted_cdf"))
    found_of_all = f"{number} of {len(delays)}"
    return f"{found_of_all}: {median:,.0f}" if median < inf else found_of_all
