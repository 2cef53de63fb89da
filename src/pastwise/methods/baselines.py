"""What methods are compared with: chance, the log's own behaviour, any given policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, batch_index, frozen, normalise
from pastwise._numerics.checks import check_sums, checked_probabilities
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import Script, _Follower
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.learning import (
    require_same_sizes,
)


def behaviour_rule(counts: TransitionCounts, allowed: BoolArray | bool = True) -> FloatArray:
    """What the log did: each allowed action's share of a state's records, uniform in unseen states: [..., S, A]."""
    done = np.where(allowed, counts.by_state_action(counts.weight), 0.0)
    seen = done.sum(axis=-1, keepdims=True) > 0
    return normalise(np.where(seen, done, allowed))


@dataclass(frozen=True)
class Scripted(_Follower):
    """Follows a given policy [..., H, S, A], epoch by epoch, and begins it again after its end."""

    policy: FloatArray

    def __post_init__(self) -> None:
        policy = checked_probabilities("policy", self.policy, sum_to_one=False)
        if policy.ndim < 3:
            raise ValueError(f"a policy is [..., epoch, state, action]; got shape {policy.shape}")
        sums = policy.sum(axis=-1)
        check_sums(
            "policy", np.where(sums == 0, 1.0, sums), policy.shape[-1]
        )  # zeros: no action is feasible
        object.__setattr__(self, "policy", frozen(policy))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory at the first epoch; of the log only its shape is used."""
        sizes = (len(counts.states), len(counts.actions))
        if self.policy.shape[-2:] != sizes:
            raise ValueError(
                f"the policy is over {self.policy.shape[-2:]} states and actions, the system has {sizes}"
            )
        return Script(self.policy, batch_index(counts.shape))


@dataclass(frozen=True)
class Rand(_Follower):
    """Every allowed action alike, always."""

    ideal: IdealModel

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory; the log is not used."""
        require_same_sizes(counts, self.ideal)
        policy = np.broadcast_to(
            uniform_rule(self.ideal), (1, self.ideal.num_states, self.ideal.num_actions)
        )
        return Script(policy, batch_index(counts.shape))


@dataclass(frozen=True)
class Clone(_Follower):
    """Does what the log did: the share of each action among the records of a state, uniform in unseen states."""

    ideal: IdealModel

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory that holds the log's own behaviour."""
        require_same_sizes(counts, self.ideal)
        rule = behaviour_rule(counts, self.ideal.allowed)
        return Script(rule[..., None, :, :], batch_index(counts.shape))
