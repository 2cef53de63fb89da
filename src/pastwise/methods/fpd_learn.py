"""FPD_learn: fully probabilistic design on a transition model that is learned from the log.

The world does not depend on the goal, so every record counts the same, however well it served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, batch_index, log
from pastwise._numerics.checks import require_truth_value
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import EVERY_STATE, Plan, States
from pastwise.methods.baselines import FixedPolicy
from pastwise.methods.fpd import designed_policy
from pastwise.methods.registry import register
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import first_rule, require_feasible, require_horizon
from pastwise.theory.learning import (
    checked_prior_count,
    default_prior_count,
    require_same_sizes,
)


@dataclass
class LearnedDesign:
    """Memory: the goal, the model learned so far, the policy in use, and the current plan."""

    ideal: IdealModel
    model: LearnedModel
    policy: FixedPolicy | None = None
    plan: Plan | None = None


@register(colour="#E69F00")
@dataclass(frozen=True)
class FPDLearn:
    """Learn a model of the transitions from the log and design on it (FPD).

    Parameters
    ----------
    horizon : int
        Number of epochs designed for at a time; 10 as in the paper.
    prior_count : float, optional
        Prior count of every (state, action, next_state) in the learned model; by default TL's
        prior count, so small that a single record outweighs it.
    replay : bool
        False: plan anew at every epoch. True: follow the rules of one horizon in turn, then plan
        anew.
    """

    name: ClassVar[str] = "FPD_learn"
    exact_updates: ClassVar[bool] = True

    horizon: int = 10
    prior_count: float | None = None
    replay: bool = False

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        require_truth_value("replay", self.replay)
        if self.prior_count is None:
            return
        shape = checked_prior_count(self.prior_count).shape
        if shape:
            raise ParameterError(
                f"prior_count of FPD_learn must be one number, not a table of shape {shape}"
            )

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> LearnedDesign:
        """Memory of the past log: the model learned from it."""
        require_same_sizes(counts, ideal)
        prior_count = self.prior_count
        if prior_count is None:
            prior_count = default_prior_count(ideal)
        return LearnedDesign(ideal, LearnedModel(counts, prior_count))

    def rule(self, memory: LearnedDesign, state: IntArray, rng: Random) -> FloatArray:
        """The designed rule in the current states [...]: [..., A]."""
        policy = memory.policy
        if policy is None or policy.epoch >= policy.policy.shape[-3]:
            rules = designed_policy(memory.model, memory.ideal, self.horizon, self.replay)
            policy = FixedPolicy(rules, batch_index(memory.model.shape))
            memory.policy = policy
        return policy.row(state)

    def observe(
        self, memory: LearnedDesign, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.model.observe(state, action, next_state)
        memory.plan = None
        if memory.policy is not None:
            memory.policy.epoch += 1

    def plan(self, memory: LearnedDesign, states: States = EVERY_STATE) -> Plan:
        """The first rule of a fresh horizon, and the value behind it.

        The rule is exp(value) times the ideal rule, normalised. So the parts are the value and,
        where the goal prefers some actions, the logarithm of the ideal rule. Only differences
        matter: in each state the largest number of a part is 0.
        """
        if memory.plan is None:
            memory.plan = self._plan_anew(memory)
        return memory.plan.at(states)

    def _plan_anew(self, memory: LearnedDesign) -> Plan:
        ideal = memory.ideal
        rule = first_rule(memory.model, ideal, self.horizon)
        require_feasible(rule, np.arange(rule.shape[-2]))
        is_feasible = rule > 0

        # A preference for actions is a part of its own; a reward of actions belongs to the value.
        is_preference = is_feasible & ideal.normalised
        log_ideal_rule = np.where(is_preference, ideal.log_rule, 0.0)
        value = np.where(is_feasible, log(rule) - log_ideal_rule, -np.inf)
        parts = {"value": value - value.max(axis=-1, keepdims=True)}

        # Indifference needs no mention.
        largest = log_ideal_rule.max(axis=-1, keepdims=True, where=is_feasible, initial=-np.inf)
        preference = np.where(is_feasible, log_ideal_rule - largest, 0.0)
        if preference.any():
            parts["preference"] = preference
        return Plan(rule, parts)
