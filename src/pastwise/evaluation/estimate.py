"""An estimate from logged episodes, with what it rests on and whether it can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pastwise._numerics.checks import require_number, require_whole_number
from pastwise._numerics.interval import Interval, finite_or_none, require_level


@dataclass(frozen=True)
class EstimateOptions:
    """How estimates from episodes are made, and when they are marked as unusable.

    Attributes
    ----------
    folds : int
        Number of folds of cross-fitting, at most one for each unit. Five leave four fifths of the
        log to learn from, at the price of learning five times. 1: no cross-fitting.
    seed : int
        Of the split into folds and of the bootstrap.
    behaviour_prior : float
        Pseudo-records of each state, spread evenly over the actions, when the behaviour is
        estimated. One is outweighed by two records, yet an action that the other folds never took
        in a state does not divide by zero.
    model_prior : float
        Pseudo-records of each row of the model, spread evenly over the next states; one, for the
        same reason.
    resamples : int
        Number of bootstrap samples. 1,000 leave 50 in each tail of a 90 % interval.
    level : float
        Nominal probability of the interval; the default is that of all other intervals.
    min_effective : float
        Effective number of episodes below which an estimate is unusable. Ten is a convention: with
        fewer, a single episode carries more than a tenth of the weight. It was not chosen by
        coverage, which hardly depended on it where that was measured.
    max_without_overlap : float
        Largest share of the rule's decisions on actions never logged in their state. The estimate
        leaves those out, which may change it by about that share of its range.
    range_tolerance : float
        How far estimate and interval may lie outside the range of possible values, as a share of
        it: the bootstrap interval of a value at the edge of the range steps over it a little.
    """

    folds: int = 5
    seed: int = 0
    behaviour_prior: float = 1.0
    model_prior: float = 1.0
    resamples: int = 1000
    level: float = 0.9
    min_effective: float = 10.0
    max_without_overlap: float = 0.1
    range_tolerance: float = 0.05

    def __post_init__(self) -> None:
        require_whole_number("folds", self.folds, 1, 1_000_000)
        require_whole_number("the seed", self.seed, 0, 2**128)
        require_whole_number("resamples", self.resamples, 1, 1_000_000)
        require_level("level", self.level)
        smallest = np.finfo(np.float64).tiny
        require_number("behaviour_prior", self.behaviour_prior, smallest, 1e9)
        require_number("model_prior", self.model_prior, smallest, 1e9)


DEFAULT_OPTIONS = EstimateOptions()


@dataclass(frozen=True)
class Estimate(Interval):
    """What a rule would have scored in an episode on average, estimated from logged episodes.

    Where the rule could not have gone through any logged episode, the mean is not a number and the
    interval is the whole line.

    Attributes
    ----------
    effective_episodes : float
        (sum w)^2 / sum w^2 of the weights at the end: how many episodes the estimate rests on.
    smallest_effective_episodes : float
        The same at the step at which it is smallest.
    without_overlap : float
        Share of the rule's decisions in the logged states that falls on actions never logged there.
        The estimate says nothing about those.
    possible_low, possible_high : float
        Range of the values that are possible: the utility's range over the steps.
    assumption : str
        What the estimate relies on.
    folds : int
        Number of folds of episodes: what was learned for the estimate comes from other folds than
        the episodes that it is applied to. 1: from the same episodes.
    in_sample : float, optional
        The estimate with everything learned from the episodes that judge it, for comparison only.
        Absent where nothing was learned.
    difference : Interval, optional
        To the logged value, on the same bootstrap samples; absent for the logged value itself.
    why_not : str
        Why the estimate is not usable; empty if it is.
    """

    effective_episodes: float
    smallest_effective_episodes: float
    without_overlap: float
    possible_low: float
    possible_high: float
    assumption: str
    folds: int = 1
    in_sample: float | None = None
    difference: Interval | None = None
    why_not: str = ""

    @property
    def usable(self) -> bool:
        """Whether the estimate says anything; if not, `why_not` gives the reason."""
        return not self.why_not

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        in_sample = None if self.in_sample is None else finite_or_none(self.in_sample)
        difference = None if self.difference is None else self.difference.to_dict()
        return {
            **super().to_dict(),
            "usable": self.usable,
            "why_not": self.why_not,
            "difference": difference,
            "in_sample": in_sample,
            "folds": self.folds,
            "effective_episodes": self.effective_episodes,
            "smallest_effective_episodes": self.smallest_effective_episodes,
            "without_overlap": self.without_overlap,
            "possible_low": self.possible_low,
            "possible_high": self.possible_high,
            "assumption": self.assumption,
        }


def why_not(estimate: Estimate, learned: Sequence[str], options: EstimateOptions) -> str:
    """Why an estimate cannot be used; empty if it can.

    Parameters
    ----------
    learned : names
        What was learned from the log for the estimate.
    """
    if np.isnan(estimate.mean):
        return "no logged episode could have been the rule's"
    reasons = []

    # An interval of few episodes may be the whole line; then only the mean can be impossible.
    numbers = [estimate.mean]
    effective = estimate.smallest_effective_episodes
    if effective < options.min_effective:
        reasons.append(
            f"it rests on {effective:.1f} effective episodes, fewer than {options.min_effective:g}"
        )
    else:
        numbers += [estimate.low, estimate.high]

    # Impossible values, more than rounding errors away from the possible ones.
    rounding = 1e-9 * max(abs(estimate.possible_low), abs(estimate.possible_high))
    width = estimate.possible_high - estimate.possible_low
    tolerance = options.range_tolerance * width + rounding
    is_too_low = min(numbers) < estimate.possible_low - tolerance
    is_too_high = max(numbers) > estimate.possible_high + tolerance
    if is_too_low or is_too_high:
        reasons.append(
            "it lies outside the possible values, "
            f"{estimate.possible_low:g} to {estimate.possible_high:g}"
        )

    if estimate.without_overlap > options.max_without_overlap:
        share = 100 * estimate.without_overlap
        reasons.append(f"{share:.0f} % of the rule's decisions were never logged in their state")
    if learned and estimate.folds == 1:
        reasons.append(f"{' and '.join(learned)} learned from the episodes that judge the rule")
    return "; ".join(reasons)
