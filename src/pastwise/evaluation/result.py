"""Results of an evaluation, as values with one dictionary form each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pastwise._display import Table, decimals, details, number_table, paragraph, to_frame
from pastwise._numerics.interval import Interval
from pastwise.evaluation.estimate import Estimate
from pastwise.evaluation.objections import Objection
from pastwise.evaluation.pictures import difference_picture, headline, value_picture
from pastwise.evaluation.verdict import (
    DEFAULT_THRESHOLDS,
    Alarm,
    Comparison,
    Thresholds,
    Verdict,
)

REFERENCES = {"logged": "what was done", "random": "acting at random"}
"""What every rule is compared with, in words."""


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
    episodes : int, optional
        Number of episodes of the log; None where it has none.
    """

    records: int
    similarity: float
    effective: float
    visits_well_seen: float
    well_seen: int
    states_by_extrapolation: tuple[str, ...]
    episodes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "states_by_extrapolation": list(self.states_by_extrapolation)}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Is the rule better than what was done? Values from a log alone, with intervals and a verdict.

    Attributes
    ----------
    values : name -> Interval
        Of each policy: ``new``, ``logged`` (what was done), ``random``, ``FPD_learn``, alternatives
        and extra rules by their names, and ``optimum``, the optimal policy of each of the first 200
        or so of the sampled models.
    comparisons : name -> Comparison
        Of the new rule with ``logged``, ``random`` and each extra rule, paired on the same sampled
        models.
    alternatives : name -> Comparison
        Of the new rule with what other methods learned for the same goal, paired and cross-fitted
        like the rest; empty unless requested.
    alarm : Alarm
        Whether negative transfer is likely; it counts as true where it is raised.
    objections : tuple of Objection
        Why the comparisons are not fair. One is enough to turn every verdict into ``cannot tell``.
    margin : float
        Smallest difference that matters, in the unit of the measure.
    unit : str
        What the evaluation rests on, such as "133 episodes, 3,862 records".
    support : EvaluationSupport
        What the rule and its evaluation rest on, in detail.
    measure : str
        What the values measure.
    horizon : int
        Number of epochs that the values are means over, or totals of at most.
    design_effect : float
        How many records of the log's episodes carry as much as one independent record.
    samples, samples_requested : int
        Number of sampled models; fewer than requested if the sampling was interrupted.
    thresholds : Thresholds
        What verdict and alarm were decided by.
    visits : name -> state -> float
        Share of epochs that each policy spends in each state.
    in_sample : name -> Interval
        Values judged on the records that a rule was learned from, which flatter it; empty where the
        values above are such values.
    estimates : name -> Estimate
        From logged episodes, without sampled models; empty unless requested.
    by_goal : name -> Evaluation
        The same rule judged by other goals; empty unless requested.
    backend : str, optional
        Library of the data frames that `to_frame` returns.
    value_in_log : float, optional
        What the log itself shows of the value of what was done, without any model: the mean
        utility of its records or, where utilities add up, of its episodes.
    """

    values: Mapping[str, Interval]
    comparisons: Mapping[str, Comparison]
    alarm: Alarm
    objections: tuple[Objection, ...]
    margin: float
    unit: str
    support: EvaluationSupport
    measure: str
    horizon: int
    design_effect: float
    samples: int
    samples_requested: int
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    visits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    in_sample: Mapping[str, Interval] = field(default_factory=dict)
    alternatives: Mapping[str, Comparison] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    by_goal: Mapping[str, Evaluation] = field(default_factory=dict)
    backend: str | None = None
    value_in_log: float | None = None

    # Views.

    @property
    def verdict(self) -> dict[str, Verdict]:
        """``better``, ``worse`` or ``cannot tell`` against ``logged``, ``random`` and the rest."""
        return {name: comparison.verdict for name, comparison in self.comparisons.items()}

    @property
    def differences(self) -> dict[str, Interval]:
        """Of the new rule ``to_logged``, ``to_random`` and to each extra rule."""
        return {
            f"to_{name}": comparison.difference for name, comparison in self.comparisons.items()
        }

    @property
    def is_better(self) -> bool:
        """Whether the rule is better than what was done, and nothing speaks against saying so."""
        return self.comparisons["logged"].verdict == "better"

    @property
    def matches_log(self) -> bool:
        """Whether the value of what was done, on sampled models, agrees with the log itself.

        It does if the log's own value lies within the interval, or as near to the mean as the
        smallest difference that matters.
        """
        if self.value_in_log is None:
            return True
        logged = self.values["logged"]
        is_inside = logged.low <= self.value_in_log <= logged.high
        return is_inside or abs(self.value_in_log - logged.mean) <= self.margin

    # In words.

    @property
    def mismatch_in_words(self) -> str:
        """How the model and the log differ on what was done; empty if they agree."""
        if self.matches_log or self.value_in_log is None:
            return ""
        logged = self.values["logged"]
        digits = self._digits
        interval = f"{logged.low:.{digits}f} to {logged.high:.{digits}f}"
        return (
            f"In the log itself what was done had {self.value_in_log:.{digits}f}, outside the "
            f"{100 * logged.level:g} % interval of the model ({interval}): horizon or starts do "
            "not match the log's episodes, or more than the state matters."
        )

    @property
    def sentence(self) -> str:
        """The verdict in plain English."""
        value = f"{self.measure} {self.values['new'].mean:.{self._digits}f}"
        against_logged = self._against("logged")
        against_random = self._against("random")
        verdict = f"The new rule ({value}) is {against_logged} and {against_random}"
        if self.objections:
            reasons = "; ".join(objection.message for objection in self.objections)
            verdict = f"{verdict}, but this is not a fair comparison: {reasons}"
        sentences = [f"{verdict}.", f"This rests on {self.unit}, over {self._epochs}."]

        if self.mismatch_in_words:
            sentences.append(self.mismatch_in_words)
        if self.alarm:
            sentences.append(self._warning())
        if self.samples < self.samples_requested:
            sentences.append(f"Only {self.samples} of {self.samples_requested} samples were taken.")
        if self.samples < self.thresholds.min_samples:
            sentences.append(f"Fewer than {self.thresholds.min_samples} samples give no verdict.")
        return " ".join(sentences)

    @property
    def alternatives_in_words(self) -> str:
        """The values of the alternatives in a line, and which of them are better; may be empty."""
        if not self.alternatives:
            return ""
        names = {**{name: name for name in self.alternatives}, **REFERENCES}
        digits = self._digits
        values = [f"{words} {self.values[name].mean:.{digits}f}" for name, words in names.items()]
        sentences = [f"Alternatives by the log: {', '.join(values)}."]
        for name, comparison in self.alternatives.items():
            if comparison.by_the_log == "worse":
                sentences.append(self._better_alternative(name, comparison.deciding))
        return " ".join(sentences)

    def _better_alternative(self, name: str, difference: Interval) -> str:
        """Such as: TL is better by the log than the new rule (90 %: +0.041 to +0.066)."""
        digits = self._digits
        level = f"{100 * difference.level:g} %"
        interval = f"{-difference.high:+.{digits}f} to {-difference.low:+.{digits}f}"
        return f"{name} is better by the log than the new rule ({level}: {interval})."

    @property
    def margin_in_words(self) -> str:
        """The smallest difference that matters, and how it was chosen."""
        margin = (
            f"Differences of at most {self.margin:.4g} do not count "
            f"(margin: {self.thresholds.margin_choice})."
        )
        largest = max(abs(value.mean) for value in self.values.values())
        if self.margin <= largest:
            return margin
        return f"{margin} All values are smaller than that: choose a smaller margin."

    @property
    def alarm_in_words(self) -> str:
        """The alarm, raised or not, with what is expected and the chance of harm."""
        state = "raised" if self.alarm else "not raised"
        reason = ""
        if self.alarm.worse_than_logged:
            reason = "by the log the rule is worse than what was done, and "
        return (
            f"Alarm {state}: {reason}the expected difference to acting at random is "
            f"{self.alarm.expected_difference:+.{self._digits}f} (limit {-self.alarm.limit:.4g}); "
            f"the chance of losing more than {self.alarm.harm:.4g} is "
            f"{100 * self.alarm.chance_of_harm:.1f} %."
        )

    def verdict_in_words(self, name: str) -> str:
        """The verdict against a reference, with that by the log where objections overrule it."""
        comparison = self.comparisons[name]
        if comparison.verdict == comparison.by_the_log:
            return comparison.verdict
        return f"{comparison.verdict} (by the log: {comparison.by_the_log})"

    @property
    def _epochs(self) -> str:
        """The horizon with its noun."""
        return "1 epoch" if self.horizon == 1 else f"{self.horizon:,} epochs"

    @property
    def _digits(self) -> int:
        return decimals(value.mean for value in self.values.values())

    def _against(self, name: str) -> str:
        """Such as: better than what was done (0.411; 95 %: +0.041 to +0.066)."""
        digits = self._digits
        deciding = self.comparisons[name].deciding
        other = f"{self.values[name].mean:.{digits}f}"
        if name == "logged" and self.value_in_log is not None:
            other += f", in the log {self.value_in_log:.{digits}f}"
        level = f"{100 * deciding.level:g} %"
        interval = f"{deciding.low:+.{digits}f} to {deciding.high:+.{digits}f}"
        return f"{self._phrase(name)} {REFERENCES[name]} ({other}; {level}: {interval})"

    def _phrase(self, name: str) -> str:
        """The verdict by the log as part of a sentence, such as "better than"."""
        by_the_log = " by the log" if self.objections else ""
        comparison = self.comparisons[name]
        if comparison.by_the_log != "cannot tell":
            return f"{comparison.by_the_log}{by_the_log} than"

        # An interval that excludes zero says something, though not enough.
        deciding = comparison.deciding
        is_known = self.samples >= self.thresholds.min_samples
        margin = f"{self.margin:.4g}"
        is_within = -self.margin <= deciding.low and deciding.high <= self.margin
        if is_known and is_within and self.margin == 0:
            return f"as good{by_the_log} as"
        if is_known and is_within:
            return f"within {margin}{by_the_log} of"
        if is_known and deciding.low > 0:
            return f"better{by_the_log}, but not certainly by more than {margin}, than"
        if is_known and deciding.high < 0:
            return f"worse{by_the_log}, but not certainly by more than {margin}, than"
        return f"not distinguishable{by_the_log} from"

    def _warning(self) -> str:
        """Why the alarm was raised."""
        if self.alarm.worse_than_random:
            chance = f"{100 * self.alarm.chance_of_harm:.0f} %"
            return (
                "Warning: it is expected to be worse than acting at random; the chance that it is "
                f"by more than {self.alarm.harm:.4g} is {chance}."
            )
        return "Warning: it may do worse than what was done."

    # As data.

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        comparisons = {name: each.to_dict() for name, each in self.comparisons.items()}
        return {
            "sentence": self.sentence,
            "values": _dicts(self.values),
            "value_in_log": self.value_in_log,
            "matches_log": self.matches_log,
            "comparisons": comparisons,
            "alternatives": {name: each.to_dict() for name, each in self.alternatives.items()},
            "alternatives_in_words": self.alternatives_in_words,
            "differences": _dicts(self.differences),
            "verdict": self.verdict,
            "alarm": self.alarm.to_dict(),
            "objections": [objection.to_dict() for objection in self.objections],
            "margin": self.margin,
            "margin_choice": self.thresholds.margin_choice,
            "unit": self.unit,
            "support": self.support.to_dict(),
            "measure": self.measure,
            "horizon": self.horizon,
            "design_effect": self.design_effect,
            "samples": self.samples,
            "samples_requested": self.samples_requested,
            "thresholds": asdict(self.thresholds),
            "visits": {name: dict(shares) for name, shares in self.visits.items()},
            "in_sample": _dicts(self.in_sample),
            "estimates": _dicts(self.estimates),
            "by_goal": {name: each.to_dict() for name, each in self.by_goal.items()},
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """A row with mean, low, high and level for each value, difference and estimate.

        Estimates that cannot be used are called so.
        """
        usable = {name: each for name, each in self.estimates.items() if each.usable}
        unusable = {name: each for name, each in self.estimates.items() if not each.usable}
        compared = {**self.comparisons, **self.alternatives}
        differences = {f"to_{name}": each.difference for name, each in compared.items()}
        deciding = {f"to_{name}": each.deciding for name, each in compared.items()}
        kinds: dict[str, Mapping[str, Interval]] = {
            "value": self.values,
            "in-sample value": self.in_sample,
            "difference": differences,
            "deciding difference": deciding,
            "estimate": usable,
            "unusable estimate": unusable,
        }
        columns: dict[str, list[Any]] = {
            "quantity": [],
            "of": [],
            "mean": [],
            "low": [],
            "high": [],
            "level": [],
        }
        for kind, intervals in kinds.items():
            for name, interval in intervals.items():
                numbers = interval.to_dict()
                columns["quantity"].append(kind)
                columns["of"].append(name)
                for number in ("mean", "low", "high", "level"):
                    columns[number].append(numbers[number])
        return to_frame(columns, backend or self.backend)

    def __str__(self) -> str:
        """The verdict, and the values that it rests on."""
        sentences = [self.sentence, self.alternatives_in_words]
        digits = self._digits + 1
        rows = []
        for name, value in self.values.items():
            numbers = (value.mean, value.low, value.high)
            rows.append((name, *(f"{number:.{digits}f}" for number in numbers)))
        level = f"{100 * self.thresholds.level:g} %"
        table = Table(
            columns=("policy", "mean", "low", "high"),
            rows=tuple(rows),
            caption=f"{self.measure}: mean and {level} interval",
        )
        return "\n".join([*(line for line in sentences if line), str(table)])

    def __repr__(self) -> str:
        return f"Evaluation: {self.sentence}"

    def _repr_html_(self) -> str:
        # Values, with those on the records that were learned from where both are known.
        values = {name: _cells(value) for name, value in self.values.items()}
        for name, value in self.in_sample.items():
            values[f"{name}, in sample"] = _cells(value)

        if self.value_in_log is not None:
            shown = {"mean": f"{self.value_in_log:.4g}"}
            values["logged, in the log itself"] = {
                name: shown.get(name, "") for name in values["logged"]
            }

        # Differences that decide.
        differences: dict[str, dict[str, float | str]] = {}
        for name, comparison in self.comparisons.items():
            differences[f"new - {name}"] = {
                **_cells(comparison.deciding),
                "chance better": comparison.chance_better,
                "verdict": self.verdict_in_words(name),
            }
        tables = number_table(values, "Values") + number_table(differences, "Differences")

        # The verdict, the pictures, and all numbers folded away.
        content = self.to_dict()
        words = [headline(content), f"{self.sentence} {self.alternatives_in_words}".strip()]
        notes = [self.margin_in_words, self.alarm_in_words]
        return (
            "".join(paragraph(text) for text in words)
            + difference_picture(content)
            + value_picture(content)
            + "".join(paragraph(text) for text in notes)
            + details("All numbers", tables)
        )


def unit_of(records: int, episodes: int | None, without_episode: int = 0) -> str:
    """What an evaluation rests on, in words.

    >>> unit_of(3862, 133)
    '133 episodes, 3,862 records'
    >>> unit_of(3862, 133, 62)
    '133 episodes, 3,862 records (62 of them of no episode)'
    """
    of_records = f"{records:,} {'record' if records == 1 else 'records'}"
    if episodes is None:
        return of_records
    if without_episode > 0:
        of_records += f" ({without_episode:,} of them of no episode)"
    return f"{episodes:,} {'episode' if episodes == 1 else 'episodes'}, {of_records}"


def _cells(interval: Interval) -> dict[str, float | str]:
    """Columns of an HTML table, with the level in the names of the bounds."""
    level = f"{100 * interval.level:g} %"
    return {"mean": interval.mean, f"{level} low": interval.low, f"{level} high": interval.high}


def _dicts(intervals: Mapping[str, Interval]) -> dict[str, dict[str, Any]]:
    return {name: interval.to_dict() for name, interval in intervals.items()}
