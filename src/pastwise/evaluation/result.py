"""Results of an evaluation, as values with one dictionary form each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pastwise._display import decimals, number_table, to_frame
from pastwise._numerics.interval import Interval
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS, Thresholds, Verdict, side_of_zero


@dataclass(frozen=True)
class Estimate(Interval):
    """What a rule would have scored in an episode on average, estimated from logged episodes.

    Where the rule could not have gone through any logged episode, the mean is not a number and the
    interval is the whole line.

    Attributes
    ----------
    effective_episodes : float
        (sum w)^2 / sum w^2 of the weights at the end: how many episodes the estimate rests on.
    without_overlap : float
        Share of the rule's decisions in the logged states that falls on actions never logged there.
        The estimate says nothing about those.
    assumption : str
        What the estimate relies on.
    """

    effective_episodes: float
    without_overlap: float
    assumption: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **super().to_dict(),
            "effective_episodes": self.effective_episodes,
            "without_overlap": self.without_overlap,
            "assumption": self.assumption,
        }


@dataclass(frozen=True)
class EvaluationSupport:
    """What a rule and its evaluation rest on.

    Attributes
    ----------
    records : int
        Number of records of the log.
    similarity : float
        Total similarity of the records to the goal.
    effective : float
        Number of equally similar records that would carry as much information.
    visits_well_seen : float
        Share of the rule's decisions, before the end of an episode, on pairs of state and action
        that the log has at least ``well_seen`` times.
    well_seen : int
        Number of records that make a pair well seen.
    states_by_extrapolation : tuple of str
        States that the rule visits and the log never left.
    """

    records: int
    similarity: float
    effective: float
    visits_well_seen: float
    well_seen: int
    states_by_extrapolation: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "states_by_extrapolation": list(self.states_by_extrapolation)}


@dataclass(frozen=True)
class Evaluation:
    """Is the rule better than what was done? Values from a log alone, with intervals and a verdict.

    Attributes
    ----------
    values : name -> Interval
        Of each policy: ``new``, ``logged`` (what was done), ``random``, ``FPD_learn``, extra rules
        by their names, and ``optimum``, the optimal policy of each sampled model.
    differences : name -> Interval
        Of the new rule ``to_logged``, ``to_random`` and to each extra rule, paired on the same
        sampled models.
    verdict : name -> ``better``, ``worse`` or ``cannot tell``
        On the new rule against ``logged``, ``random`` and each extra rule.
    alarm : bool
        Whether negative transfer is likely.
    support : EvaluationSupport
        What the rule and its evaluation rest on.
    measure : str
        What the values measure.
    samples, samples_requested : int
        Number of sampled models; fewer than requested if the sampling was interrupted.
    thresholds : Thresholds
        What verdict and alarm were decided by.
    estimates : name -> Estimate
        From logged episodes, without sampled models; empty unless requested.
    backend : str, optional
        Library of the data frames that `to_frame` returns.
    """

    values: Mapping[str, Interval]
    differences: Mapping[str, Interval]
    verdict: Mapping[str, Verdict]
    alarm: bool
    support: EvaluationSupport
    measure: str
    samples: int
    samples_requested: int
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    backend: str | None = None

    @property
    def sentence(self) -> str:
        """The verdict in plain English."""
        digits = decimals(value.mean for value in self.values.values())
        against_logged = self._comparison("logged", "what was done", digits)
        against_random = self._comparison("random", "acting at random", digits)
        value = f"{self.measure} {self.values['new'].mean:.{digits}f}"
        sentences = [f"The new rule ({value}) is {against_logged} and {against_random}."]

        if self.alarm:
            sentences.append("Warning: it may do worse than acting at random or what was done.")
        if self.samples < self.samples_requested:
            sentences.append(f"Only {self.samples} of {self.samples_requested} samples were taken.")
        if self.samples < self.thresholds.min_samples:
            sentences.append(f"Fewer than {self.thresholds.min_samples} samples give no verdict.")
        return " ".join(sentences)

    def _comparison(self, name: str, description: str, digits: int) -> str:
        """Such as: better than what was done (0.411; +0.053 [+0.041, +0.066])."""
        phrases: dict[Verdict, str] = {
            "better": "better than",
            "worse": "worse than",
            "cannot tell": "not distinguishable from",
        }
        difference = self.differences[f"to_{name}"]
        verdict = self.verdict[name]
        phrase = phrases[verdict]

        # The verdict may need more certainty than the interval that is shown.
        tendency = side_of_zero(difference)
        if verdict == "cannot tell" and tendency != "cannot tell":
            phrase = f"probably, but not certainly, {phrases[tendency]}"

        other = f"{self.values[name].mean:.{digits}f}"
        mean = f"{difference.mean:+.{digits}f}"
        low = f"{difference.low:+.{digits}f}"
        high = f"{difference.high:+.{digits}f}"
        return f"{phrase} {description} ({other}; {mean} [{low}, {high}])"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "values": _dicts(self.values),
            "differences": _dicts(self.differences),
            "verdict": dict(self.verdict),
            "alarm": self.alarm,
            "support": self.support.to_dict(),
            "measure": self.measure,
            "samples": self.samples,
            "samples_requested": self.samples_requested,
            "thresholds": asdict(self.thresholds),
            "estimates": _dicts(self.estimates),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """A row with mean, low and high for each value, each difference and each estimate."""
        kinds: dict[str, Mapping[str, Interval]] = {
            "value": self.values,
            "difference": self.differences,
            "estimate": self.estimates,
        }
        columns: dict[str, list[Any]] = {
            "quantity": [],
            "of": [],
            "mean": [],
            "low": [],
            "high": [],
        }
        for kind, intervals in kinds.items():
            for name, interval in intervals.items():
                numbers = interval.to_dict()
                columns["quantity"].append(kind)
                columns["of"].append(name)
                for number in ("mean", "low", "high"):
                    columns[number].append(numbers[number])
        return to_frame(columns, backend or self.backend)

    def _repr_html_(self) -> str:
        rows = {}
        for name, value in self.values.items():
            rows[name] = {"mean": value.mean, "low": value.low, "high": value.high}
        return number_table(rows, self.sentence)


def _dicts(intervals: Mapping[str, Interval]) -> dict[str, dict[str, Any]]:
    return {name: interval.to_dict() for name, interval in intervals.items()}
