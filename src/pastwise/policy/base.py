"""What a running loop starts with: a policy as it was at that moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pastwise._numerics.streams import Random
from pastwise._numerics.threads import Lock
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import FixedRows, LiveRows, Plan, PlannedRows, acting_for
from pastwise.policy.packing import (
    CONTENT,
    PART,
    RULE,
    Content,
    Tensors,
    digest_of,
    encoded,
    pack_space,
)
from pastwise.policy.state import PolicyState

FORMAT = 1
"""Number of the way in which fingerprints are made."""


@dataclass(frozen=True, eq=False)
class Base:
    """A policy as it was when a loop started, or when its labels last changed.

    Attributes
    ----------
    policy : PolicyState
        The learner's, which may learn more in the meantime; what must not change is next to it.
    counts : TransitionCounts
    ideal : IdealModel
    plan : Plan, optional
        Not there if the method learns with a number of epochs to act in.
    epochs : int
        Decisions that the loop is going to make, for methods that make use of that.
    is_fixed : bool
        Whether the plan stays as it is.
    """

    policy: PolicyState
    counts: TransitionCounts
    ideal: IdealModel
    plan: Plan | None
    epochs: int = 0
    is_fixed: bool = False

    @classmethod
    def of(cls, policy: PolicyState, epochs: int = 0, is_fixed: bool = False) -> Base:
        """The policy as it is now.

        A method that knows how many epochs there are to act in plans anew with that number.
        """
        plan: Plan | None
        method = policy.settings.method
        acting = acting_for(method, epochs)
        if epochs == 0 or acting is method:
            counts, plan = policy.counts_and_plan()
        else:
            counts = policy.counts()
            plan = None
            if is_fixed:
                plan = acting.plan(acting.start(counts, policy.ideal))
        return cls(policy, counts, policy.ideal, plan, epochs, is_fixed)

    def over(self, counts: TransitionCounts, plan: Plan | None = None) -> Base:
        """The same goal and method with another log, which may have more labels.

        Parameters
        ----------
        counts : TransitionCounts
        plan : Plan, optional
            What was learned from them; it is learned now if it is not given.
        """
        policy = replace(
            self.policy,
            log=counts,
            known_plan=plan,
            episodes=None,
            _lock=Lock(),
            _memory=None,
            _observed=0,
        )
        if plan is None:
            return Base.of(policy, self.epochs, self.is_fixed)
        return Base(policy, counts, policy.ideal, plan, self.epochs, self.is_fixed)

    def rows(self, rng: Random) -> LiveRows:
        """The plan as it is, the method's own rows for a loop, or its rule by its contract."""
        method = self.policy.settings.method
        if self.plan is None:
            method = acting_for(method, self.epochs)
        elif self.is_fixed:
            return FixedRows(self.plan)
        elif hasattr(method, "live_rows"):
            rows: LiveRows = method.live_rows(self.plan, self.ideal)
            return rows
        counts = self.policy.counts_to_learn_from()
        return PlannedRows(method, self.plan, counts, self.ideal, rng)

    @cached_property
    def unseen_row(self) -> list[float]:
        """The prior of a state that is not known: [A]."""
        prior: list[float] = self.policy.fallback_rule.tolist()
        return prior

    def permitted_in(self, state: int | None) -> list[int]:
        """Actions that the goal does not forbid in a state; anywhere, if it is not known."""
        if state is None:
            return [action for action, weight in enumerate(self.unseen_row) if weight > 0]
        permitted: list[int] = np.flatnonzero(self.ideal.allowed_in(state)).tolist()
        return permitted

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of labels, goal, method and plan."""
        settings = self.policy.settings
        content: Content = {
            "states": pack_space(self.counts.states),
            "actions": pack_space(self.counts.actions),
            "goal": settings.goal.to_dict(),
            "method": settings.method.name,
        }
        tensors: Tensors = {CONTENT: np.frombuffer(encoded(content), dtype=np.uint8)}
        if self.plan is not None:
            tensors[RULE] = self.plan.rule
            tensors |= {PART + name: part for name, part in self.plan.parts.items()}
        return digest_of(tensors, FORMAT)
