"""Watching a version run: whether its outcomes are those that its log predicts.

A `PolicyMonitor` is fed with the decisions and outcomes of one version in the order in which they
are stored, and can be stored itself; so a restart finds the same numbers. It watches

- *the world*: a sequential test of whether outcomes have changed (`evaluation.change`);
- *the goal*: the utility of the outcomes of each day next to what the log predicts for the very
  states and actions they came from (`evaluation.forecast`);
- *the rule*: how often each action was decided, next to the sum of its probabilities;
- *the support*: how many decisions rested on little evidence.

Outcomes count if they came in time, of decisions that were made live: nobody acted on a decision in
shadow. How decisions ended, by day and action, is counted by the store.

After an alarm the test starts again when decisions are live once more after a time in shadow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import sqrt
from typing import NamedTuple

import msgspec
from scipy.special import chdtrc, ndtri, pdtrc

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import key_of
from pastwise.errors import ParameterError
from pastwise.evaluation.change import ChangeDetector
from pastwise.evaluation.forecast import OutcomeForecast
from pastwise.goals.goal import Goal
from pastwise.service.store.rows import DayRow
from pastwise.service.trace import Batch, Trace
from pastwise.service.types import View
from pastwise.service.views import time_text

DAY = 86_400_000
"""Milliseconds of a day."""


# What is answered.


class ActionCounts(View):
    """Decisions for an action by how they ended."""

    action: str
    decisions: int
    in_time: int
    late: int
    missing: int
    cancelled: int
    open: int


class WantedView(View):
    """Mean utility of the outcomes of a day, or of a batch.

    Attributes
    ----------
    outcomes : int
        Outcomes that came then, in time.
    observed : float
    predicted, low, high : float
        What the log of the version predicts for the states and actions of these outcomes, with
        its interval.
    """

    outcomes: int
    observed: float
    predicted: float
    low: float
    high: float


class DayView(View):
    """One day, in UTC: its decisions, of all versions, and outcomes of the version in use."""

    day: str
    actions: list[ActionCounts]
    wanted: WantedView | None = None


class BatchView(View):
    """Outcomes that came one after another.

    Attributes
    ----------
    since, until : str
        When the first and the last of them came.
    evidence : float
        Evidence of a change after the last of them; see `ChangeView`.
    """

    since: str
    until: str
    outcomes: int
    evidence: float
    wanted: WantedView | None = None


class ChangedRow(View):
    """Evidence of a change in one state after one action; see `ChangeView`.

    Attributes
    ----------
    log : dict
        Records of the log by next state.
    lately : dict
        Shares of next states among the outcomes of late, which count the more the newer they are.
    """

    state: str
    action: str
    evidence: float
    since: str
    outcomes: int
    log: dict[str, float] = msgspec.field(default_factory=dict)
    lately: dict[str, float] = msgspec.field(default_factory=dict)


class ChangeView(View):
    """Whether the world has changed.

    Attributes
    ----------
    alarm : bool
    evidence : float
        log10; an alarm is raised where it reaches that of the run length.
    run_length : float
        Outcomes per false alarm, on average and at least.
    outcomes : int
        Outcomes since the test started.
    since : str, optional
        Most probable time of the change, if there is one.
    rows : list
        Where the evidence comes from, the most first.
    """

    alarm: bool
    evidence: float
    run_length: float
    outcomes: int
    since: str | None
    rows: list[ChangedRow]


class ActionFrequency(View):
    """How often an action was decided, and the sum of its probabilities."""

    action: str
    observed: int
    expected: float


class RuleCheck(View):
    """Whether decisions are what the rule says.

    Attributes
    ----------
    chi_square, degrees : float, int
        Pearson's statistic over states and actions that are expected at least five times, and its
        degrees of freedom.
    rare_observed, rare_expected : int, float
        Decisions for the other actions, of all states together.
    p_value : float
        Probability of such a difference, or a larger one, if decisions follow the rule; at most,
        since rules that change over time vary less than Pearson's statistic assumes.
    """

    chi_square: float
    degrees: int
    rare_observed: int
    rare_expected: float
    p_value: float
    actions: list[ActionFrequency]


class AnswerTime(View):
    """How long decisions took, of all policies since the service was started, in seconds."""

    decisions: int
    median: float
    percentile_99: float


class MonitorView(View):
    """What there is to see of a policy.

    Attributes
    ----------
    policy_version : int
        The version in use, which `change`, `rule`, `wanted` and the weak decisions are about.
    measure : str
        What ``wanted`` is the mean of.
    decisions, weak_decisions : int
        Decisions of the version, and those that rested on little evidence.
    batches : list
        All outcomes of the version in batches of equal size, the oldest first.
    """

    policy: str
    policy_version: int
    measure: str
    level: float
    decisions: int
    weak_decisions: int
    change: ChangeView
    rule: RuleCheck
    days: list[DayView]
    batches: list[BatchView] = msgspec.field(default_factory=list)
    answer_time: AnswerTime | None = None


# What is kept.


class _Day(msgspec.Struct, array_like=True):
    """Utility of the outcomes of a day: sums, and the outcomes of each row while the day lasts."""

    outcomes: int = 0
    observed: float = 0.0
    predicted: float = 0.0
    variance: float = 0.0
    rows: dict[int, int] = {}


class _Kept(msgspec.Struct, array_like=True):
    """All that a monitor keeps, as it is stored."""

    detector: bytes
    decisions: int
    weak: int
    last_mode: str
    days: dict[int, _Day]
    frequencies: dict[str, dict[str, tuple[int, float]]]
    trace: Trace = msgspec.field(default_factory=Trace)


class Period(NamedTuple):
    """Times in milliseconds since 1970: from the first up to the second."""

    start: int
    end: int

    @classmethod
    def of(
        cls,
        start: int | None,
        end: int | None,
        now: int,
        *,
        usual: int = 30 * DAY,
        longest: int = 1000 * DAY,
    ) -> Period:
        """A period that may be given in part.

        Parameters
        ----------
        usual : int
            Its length where no start is given.
        longest : int
            Longer periods are refused: an answer has some numbers for every day.
        """
        last = now + 1 if end is None else end
        first = last - usual if start is None else start
        if first >= last:
            raise ParameterError("the period is empty: `from` must be before `to`")
        if last - first > longest:
            raise ParameterError(
                f"the period has {(last - first) // DAY:,} days; at most {longest // DAY:,} "
                "are possible"
            )
        return cls(first, last)


class PolicyMonitor:
    """Watches one version; for one thread.

    Memory grows with the number of states and actions that are met, and with the days.

    Parameters
    ----------
    counts : TransitionCounts
        The log of the version.
    goal : Goal
        In labels of the log.
    run_length : float
        Outcomes per false alarm, on average and at least; see `ChangeDetector`.
    most_days : int
        Days whose outcomes are kept; the same number as decisions are kept for by default.
    """

    def __init__(
        self,
        counts: TransitionCounts,
        goal: Goal,
        *,
        run_length: float = 1_000_000,
        most_days: int = 400,
    ) -> None:
        self._states = counts.states
        self._actions = counts.actions
        self._most_days = most_days
        self._indices: dict[tuple[str, str], tuple[int, int] | None] = {}
        self.detector = ChangeDetector(counts, run_length=run_length)
        self._forecast = OutcomeForecast(goal, counts, self.detector.belief)
        self._kept = _Kept(b"", 0, 0, "", {}, {})

    @property
    def alarm(self) -> bool:
        """Whether outcomes have changed."""
        return self.detector.alarm

    # Decisions and outcomes.

    def decided(
        self, state: str, action: str, rule: Mapping[str, float], mode: str, weak: bool
    ) -> None:
        """A decision was made.

        Parameters
        ----------
        state, action : str
            Their keys.
        rule : mapping from actions to probabilities
            What the action was sampled from.
        mode : str
        weak : bool
            Whether it rested on little evidence.
        """
        kept = self._kept
        if mode == "live" and kept.last_mode == "shadow" and self.detector.alarm:
            self.detector.restart()
        kept.last_mode = mode
        kept.decisions += 1
        kept.weak += weak

        frequencies = kept.frequencies.setdefault(state, {})
        for name, probability in rule.items():
            observed, expected = frequencies.get(name, (0, 0.0))
            frequencies[name] = (observed + (name == action), expected + probability)

    def went_shadow(self) -> None:
        """The policy was switched to shadow, whether or not it decides there."""
        self._kept.last_mode = "shadow"

    def observed(
        self, state: str, action: str, next_state: str, reward: float | None, at: int
    ) -> bool:
        """The outcome of a live decision came in time; whether it raised the alarm.

        Parameters
        ----------
        state, action, next_state : str
            Keys: of the decision's state, of the action that was done, and of what followed.
        reward : float, optional
        at : int
            When the outcome came, in milliseconds since 1970.
        """
        row = self._row(state, action)
        following = self._states.find(next_state)
        if row is None or following is None:
            return False

        # The goal.
        utility = self._forecast.utility(*row, following, reward)
        if utility is not None:
            self._count(row, utility, at)

        # The world.
        was_on = self.detector.alarm
        self.detector.observe(*row, following, float(at))
        if self._kept.trace.add(self._key(row), utility, at):
            self._kept.trace.close(self.detector.evidence)
        return self.detector.alarm and not was_on

    def _row(self, state: str, action: str) -> tuple[int, int] | None:
        """Indices of a state and an action by their keys; None if the log lacks one of them."""
        key = (state, action)
        try:
            return self._indices[key]
        except KeyError:
            pass
        s = self._states.find(state)
        a = self._actions.find(action)
        if s is None or a is None:
            return None
        self._indices[key] = (s, a)
        return s, a

    def _key(self, row: tuple[int, int]) -> int:
        """Number of a row of the log."""
        return row[0] * len(self._actions) + row[1]

    def _count(self, row: tuple[int, int], utility: float, at: int) -> None:
        """Add an outcome to its day."""
        days = self._kept.days
        number = at // DAY
        day = days.get(number)
        if day is None:
            # Earlier days no longer need their rows.
            for earlier in days.values():
                earlier.rows = {}
            if len(days) >= self._most_days:
                del days[min(days)]
            day = days[number] = _Day()

        forecast = self._forecast.row(*row)
        key = self._key(row)
        before = day.rows.get(key, 0)
        day.rows[key] = before + 1
        day.outcomes += 1
        day.observed += utility
        day.predicted += forecast.mean
        day.variance += forecast.variance + 2 * before * forecast.shared

    # Storing it.

    def snapshot(self) -> bytes:
        """All that was observed; `restore` goes on from there to the last bit."""
        self._kept.detector = self.detector.snapshot()
        return msgspec.msgpack.encode(self._kept)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a monitor of the same version."""
        try:
            kept = msgspec.msgpack.decode(snapshot, type=_Kept)
        except msgspec.MsgspecError:
            raise ParameterError("this is no snapshot of a monitor") from None
        self.detector.restore(kept.detector)
        self._kept = kept

    # What there is to see.

    def view(
        self,
        policy: str,
        version: int,
        decisions: Sequence[DayRow],
        period: Period,
        *,
        first: int = 10,
        level: float = 0.9,
    ) -> MonitorView:
        """What there is to see of a period.

        Parameters
        ----------
        decisions : list of DayRow
            How the decisions of the period ended, from the store.
        first : int
            How many rows with evidence of a change to list.
        level : float
            Probability of the intervals.
        """
        return MonitorView(
            policy=policy,
            policy_version=version,
            measure=self._forecast.measure,
            level=level,
            decisions=self._kept.decisions,
            weak_decisions=self._kept.weak,
            change=self.change(first),
            rule=rule_check(self._kept.frequencies),
            days=self._days(decisions, period, level),
            batches=self._batches(level),
        )

    def change(self, first: int = 10) -> ChangeView:
        """Whether the world has changed."""
        detector = self.detector
        rows = []
        for row in detector.rows(first):
            shares = detector.shares(row.state, row.action)
            rows.append(
                ChangedRow(
                    state=key_of(self._states.labels[row.state]),
                    action=key_of(self._actions.labels[row.action]),
                    evidence=row.evidence,
                    since=time_text(round(row.since)),
                    outcomes=row.outcomes,
                    log=self._by_state(shares.log),
                    lately=self._by_state(shares.lately),
                )
            )
        return ChangeView(
            alarm=detector.alarm,
            evidence=detector.evidence,
            run_length=detector.run_length,
            outcomes=detector.observed,
            since=time_text(round(detector.since)) if detector.observed else None,
            rows=rows,
        )

    def _by_state(self, values: Mapping[int, float]) -> dict[str, float]:
        """Values of states by their keys."""
        return {key_of(self._states.labels[n]): value for n, value in values.items()}

    def _days(self, decisions: Sequence[DayRow], period: Period, level: float) -> list[DayView]:
        """The days of a period on which there was anything, in order."""
        by_day: dict[int, list[ActionCounts]] = {}
        for row in decisions:
            number = row.day // DAY
            by_day.setdefault(number, []).append(ActionCounts(*row[1:]))
        for number in self._kept.days:
            if period.start // DAY <= number <= (period.end - 1) // DAY:
                by_day.setdefault(number, [])
        return [
            DayView(
                day=datetime.fromtimestamp(number * DAY / 1000, UTC).date().isoformat(),
                actions=by_day[number],
                wanted=self._wanted(number, level),
            )
            for number in sorted(by_day)
        ]

    def _wanted(self, number: int, level: float) -> WantedView | None:
        """The utility of the outcomes of a day; None if there were none."""
        day = self._kept.days.get(number)
        return None if day is None else self._compared(day, level)

    def _compared(self, sums: _Day, level: float) -> WantedView:
        """Observed and predicted means of sums."""
        lowest, highest = self._forecast.bounds
        predicted = sums.predicted / sums.outcomes
        half_width = float(ndtri((1 + level) / 2)) * sqrt(sums.variance) / sums.outcomes
        return WantedView(
            outcomes=sums.outcomes,
            observed=sums.observed / sums.outcomes,
            predicted=predicted,
            low=max(lowest, predicted - half_width),
            high=min(highest, predicted + half_width),
        )

    def _batches(self, level: float) -> list[BatchView]:
        """The outcomes in batches; the last one has the evidence of now."""
        trace = self._kept.trace
        views = []
        for batch in trace.batches:
            is_complete = batch.outcomes >= trace.size
            views.append(
                BatchView(
                    since=time_text(batch.since),
                    until=time_text(batch.until),
                    outcomes=batch.outcomes,
                    evidence=batch.evidence if is_complete else self.detector.evidence,
                    wanted=self._wanted_in(batch, level),
                )
            )
        return views

    def _wanted_in(self, batch: Batch, level: float) -> WantedView | None:
        """The utility of the outcomes of a batch; None if none of them has one."""
        sums = _Day(outcomes=sum(batch.rows.values()), observed=batch.observed)
        if sums.outcomes == 0:
            return None
        for key, number in batch.rows.items():
            forecast = self._forecast.row(*divmod(key, len(self._actions)))
            sums.predicted += number * forecast.mean
            sums.variance += number * forecast.variance
            sums.variance += number * (number - 1) * forecast.shared
        return self._compared(sums, level)

    @property
    def wanted_today(self) -> float | None:
        """Mean utility of the outcomes of the last day that had any."""
        days = self._kept.days
        if not days:
            return None
        day = days[max(days)]
        return day.observed / day.outcomes


def rule_check(
    frequencies: Mapping[str, Mapping[str, tuple[int, float]]], *, least_expected: float = 5.0
) -> RuleCheck:
    """Compare decisions with their probabilities, by state and action.

    Parameters
    ----------
    frequencies : mapping from states and actions to observed numbers and sums of probabilities
    least_expected : float
        Pearson's statistic takes cells that are expected so often: the usual rule for its
        distribution. Rare ones are joined, and have a Poisson distribution.
    """
    chi_square = 0.0
    degrees = 0
    rare_observed = 0
    rare_expected = 0.0
    by_action: dict[str, list[float]] = {}
    for actions in frequencies.values():
        large = 0
        for action, (observed, expected) in actions.items():
            total = by_action.setdefault(action, [0, 0.0])
            total[0] += observed
            total[1] += expected
            if expected >= least_expected:
                chi_square += (observed - expected) ** 2 / expected
                large += 1
            else:
                rare_observed += observed
                rare_expected += expected
        # Where no action is rare, the numbers of a state add up to its decisions.
        degrees += large - 1 if large == len(actions) else large

    # Two tests: the smaller probability, doubled.
    p_values = [1.0]
    if degrees > 0:
        p_values.append(2 * float(chdtrc(degrees, chi_square)))
    if rare_observed > 0:
        p_values.append(2 * float(pdtrc(rare_observed - 1, rare_expected)))
    return RuleCheck(
        chi_square=chi_square,
        degrees=degrees,
        rare_observed=rare_observed,
        rare_expected=rare_expected,
        p_value=min(p_values),
        actions=[
            ActionFrequency(action, int(observed), expected)
            for action, (observed, expected) in sorted(by_action.items())
        ],
    )
