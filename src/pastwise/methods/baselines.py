"""What methods are compared with: random actions, the log's own behaviour, any given policy.

None of them learns while it acts: the policy is fixed when the method starts, and is followed
epoch by epoch. FPD on a known model works in the same way; see `fpd`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    batch_index,
    frozen,
    normalise,
)
from pastwise._numerics.checks import check_sums, checked_probabilities
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import EVERY_STATE, Plan, States
from pastwise.methods.registry import register
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.fpd import require_feasible
from pastwise.theory.learning import require_same_sizes


def behaviour_rule(counts: TransitionCounts, allowed: BoolArray | bool = True) -> FloatArray:
    """What the log did: each allowed action's share of a state's records: [..., S, A].

    Uniform over the allowed actions in states that the log does not have.
    """
    weight = np.where(allowed, counts.by_state_action(counts.weight), 0.0)
    is_seen = weight.sum(axis=-1, keepdims=True) > 0
    return normalise(np.where(is_seen, weight, allowed))


@dataclass
class FixedPolicy:
    """Memory of a method that follows a fixed policy.

    Attributes
    ----------
    policy : [..., H, S, A]
        The rule of each epoch; after the last one comes the first again.
    batch : tuple of index arrays
        Index of every batch element.
    epoch : int
        Epochs since the start.
    """

    policy: FloatArray
    batch: tuple[IntArray, ...]
    epoch: int = 0

    @property
    def current_rule(self) -> FloatArray:
        """The rule of this epoch: [..., S, A]."""
        num_epochs = self.policy.shape[-3]
        return np.asarray(self.policy[..., self.epoch % num_epochs, :, :])

    def row(self, state: IntArray) -> FloatArray:
        """The rule of this epoch in the current states [...]: [..., A]."""
        rule = self.current_rule
        if rule.shape[:-2] != np.shape(state):
            rule = np.broadcast_to(rule, (*np.shape(state), *rule.shape[-2:]))
        row = np.asarray(rule[(*self.batch, state)])
        require_feasible(row, state)
        return row


class FollowsFixedPolicy:
    """Rule, observation and plan of the methods that follow a fixed policy.

    ``source`` says in an explanation where the probabilities come from.
    """

    source: ClassVar[str] = "given policy"

    def rule(self, memory: FixedPolicy, state: IntArray, rng: Random) -> FloatArray:
        """The policy's rule in the current states [...]: [..., A]."""
        return memory.row(state)

    def observe(
        self, memory: FixedPolicy, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Move on to the next epoch."""
        memory.epoch += 1

    def plan(self, memory: FixedPolicy, states: States = EVERY_STATE) -> Plan:
        """The rule of the current epoch."""
        rule = memory.current_rule
        return Plan(rule, {self.source: rule}, adds_up=True).at(states)


@register(colour="#A6A6A6", is_reference=True)
@dataclass(frozen=True)
class Rand(FollowsFixedPolicy):
    """Act at random: every allowed action has the same probability."""

    name: ClassVar[str] = "Rand"
    exact_updates: ClassVar[bool] = False

    source: ClassVar[str] = "random rule"

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> FixedPolicy:
        """Memory; the log is not used."""
        require_same_sizes(counts, ideal)
        rule = np.broadcast_to(uniform_rule(ideal), (ideal.num_states, ideal.num_actions))
        return FixedPolicy(rule[None], batch_index(counts.shape))


@register(colour="#737373", is_reference=True)
@dataclass(frozen=True)
class Clone(FollowsFixedPolicy):
    """Do what the log did: take each action as often as its state's records have it."""

    name: ClassVar[str] = "clone"
    exact_updates: ClassVar[bool] = False

    source: ClassVar[str] = "logged behaviour"

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> FixedPolicy:
        """Memory that holds the log's own behaviour."""
        require_same_sizes(counts, ideal)
        rule = behaviour_rule(counts, ideal.allowed)
        return FixedPolicy(rule[..., None, :, :], batch_index(counts.shape))


@dataclass(frozen=True)
class Scripted(FollowsFixedPolicy):
    """Follow a given policy, epoch by epoch, and begin it again after its end.

    Parameters
    ----------
    policy : [..., H, S, A]
        A row of zeros stands for a state without a feasible action; acting there is an error.
    """

    name: ClassVar[str] = "scripted"
    exact_updates: ClassVar[bool] = False

    policy: FloatArray

    def __post_init__(self) -> None:
        policy = checked_probabilities("policy", self.policy, sum_to_one=False)
        if policy.ndim < 3:
            raise ParameterError(
                f"a policy is [..., epoch, state, action]; got shape {policy.shape}"
            )
        sums = policy.sum(axis=-1)
        is_feasible = sums > 0
        check_sums("policy", np.where(is_feasible, sums, 1.0), policy.shape[-1])
        object.__setattr__(self, "policy", frozen(policy.copy()))

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> FixedPolicy:
        """Memory at the first epoch; of the log only its shape is used."""
        require_policy_fits(self.policy, counts)
        return FixedPolicy(self.policy, batch_index(counts.shape))


def require_policy_fits(policy: FloatArray, counts: TransitionCounts) -> None:
    """Refuse a policy over other numbers of states and actions than the system's."""
    sizes = (len(counts.states), len(counts.actions))
    if policy.shape[-2:] != sizes:
        raise ParameterError(
            f"the policy is over {policy.shape[-2]} states and {policy.shape[-1]} actions, "
            f"the system has {sizes[0]} states and {sizes[1]} actions"
        )
