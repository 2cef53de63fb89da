"""What an action of one state is worth: the rule with another choice there, on sampled models.

The rule is changed in one state, to take one action always, and left as it is elsewhere. Its value
is that of an evaluation: the same measure, starts, horizon and posterior. Rules that differ in one
state are compared on the same sampled models, so that the spread of their difference is that of the
choice alone. Nothing is corrected for having been learned from the same log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.cross_fit import design_effect
from pastwise.evaluation.values import posterior_of, sample_values
from pastwise.goals.goal import Goal
from pastwise.models.hierarchy import DEFAULT_ASSUMPTIONS, Assumptions

RULE = "rule"
"""Name of the rule as it is, among the names of actions."""


@dataclass(frozen=True)
class ActionValue:
    """The value of taking an action always in one state, with the rule followed elsewhere.

    Attributes
    ----------
    mean, deviation : float
        Posterior mean and standard deviation.
    difference, difference_deviation : float
        The same of the difference to the rule as it is, on the same sampled models.
    """

    mean: float
    deviation: float
    difference: float
    difference_deviation: float

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


def action_values(
    rule: FloatArray,
    state: int,
    actions: Sequence[int],
    goal: Goal,
    log: TransitionCounts,
    *,
    allowed: BoolArray,
    episodes: EpisodeSummary | None = None,
    samples: int = 200,
    seed: int = 0,
    assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
) -> tuple[list[ActionValue], Criterion]:
    """Values of some actions of a state, and what they are measured by.

    Parameters
    ----------
    rule : [S, A]
    allowed : [1 or S, A]
        The actions that may be taken.
    samples : int
        Number of sampled models. 200 fix a standard deviation to about 5 %.
    """
    # The same question as in an evaluation.
    criterion = Criterion.of(goal, log, episodes=episodes, allowed=allowed)
    effect = 1.0 if episodes is None else design_effect(episodes.folds_of(log, seed))
    posterior = posterior_of(
        log, criterion, seed=seed, design_effect=effect, assumptions=assumptions
    )

    # The rule, and the rule with each action in that state.
    rules = {RULE: rule}
    for action in actions:
        changed = rule.copy()
        changed[state] = np.eye(rule.shape[-1])[action]
        rules[f"action {action}"] = changed
    sampled = sample_values(posterior, rules, criterion, samples, seed=seed, with_references=False)

    values = []
    for action in actions:
        of_action = sampled[f"action {action}"]
        difference = of_action - sampled[RULE]
        values.append(
            ActionValue(
                mean=float(of_action.mean()),
                deviation=assumptions.stretch * _deviation(of_action),
                difference=float(difference.mean()),
                difference_deviation=assumptions.stretch * _deviation(difference),
            )
        )
    return values, criterion


def _deviation(values: FloatArray) -> float:
    """Standard deviation of values of any size: the squares of huge rewards would overflow."""
    size = float(np.abs(values).max())
    return size * float(np.std(values / size)) if size > 0 else 0.0
