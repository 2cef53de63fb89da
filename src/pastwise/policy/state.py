"""What a learner knows after learning, by index, and what follows from it: rules, plans and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.data.live_counts import LiveCounts
from pastwise.data.space import Label
from pastwise.goals.ideal import IdealModel
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Finding
from pastwise.methods.planned import Planned, plan_rule
from pastwise.policy.explanation import Evidence, Foreseen, PlannedReason, Reason
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.learning import learned_rule, similarity_of

REPLAN = 0.01
"""A planner answers for a single state by its last plan until the records have grown by this share."""


@dataclass
class Fitted:
    """All that a learner knows after learning.

    Attributes
    ----------
    counts : TransitionCounts
        The log, as far as it was counted; ``live`` has every record since, weighted by task.
    prior : [1 or S, A]
    evidence : [S, A]
    params : dict
        The learner's arguments when it learned.
    """

    counts: TransitionCounts
    columns: Columns | None
    findings: tuple[Finding, ...]
    library: str | None
    ideal: IdealModel
    prior: FloatArray
    live: LiveCounts
    evidence: FloatArray
    params: dict[str, Any]
    updates: int = 0
    counted_after: int = 0
    planned: Planned | None = None
    planned_after: int = 0

    def prior_of(self, state: int) -> FloatArray:
        """Prior concentration of a state's actions: [A]."""
        return np.asarray(self.prior[state if len(self.prior) > 1 else 0])

    @property
    def prior_rule(self) -> FloatArray:
        """Rule for a state that the log does not have: every action that is allowed anywhere, alike: [A]."""
        return normalise(np.asarray(self.ideal.allowed.any(axis=0), dtype=np.float64))

    def all_counts(self) -> TransitionCounts:
        """The log with every record since."""
        if self.counted_after < self.updates:
            self.counts = self.live.counts()
            self.live, self.counted_after = LiveCounts(self.counts), self.updates
        return self.counts

    @property
    def adds_up(self) -> bool:
        """Whether the rule adds up from single records: TL's."""
        return bool(self.params["agent"] == "TL")

    def plan(self, patience: float) -> Planned:
        """What the method plans, made anew once the records have grown by more than this share."""
        new = self.updates - self.planned_after
        if self.planned is None or new > patience * self.counts.num_records:
            p = self.params
            self.planned = plan_rule(
                p["agent"], self.live.counts(), self.ideal, p["similarity"], p["prior_count"]
            )
            self.planned_after = self.updates
        return self.planned

    def rule(self) -> FloatArray:
        """The rule of every state, of all records: [S, A]."""
        return learned_rule(self.evidence, self.prior) if self.adds_up else self.plan(0).rule

    def row(self, state: int) -> FloatArray:
        """The rule of one state, [A]; a planner's may be `REPLAN` behind."""
        if self.adds_up:
            return learned_rule(self.evidence[state], self.prior_of(state))
        return np.asarray(self.plan(REPLAN).rule[state])

    def reason(self, state: int, action: int) -> Reason | PlannedReason:
        """Why an action has its probability; of a rule that adds up, no other state is looked at."""
        row = self.live.row(state, action)
        similarity = similarity_of(row, self.ideal, self.params["similarity"])
        if self.adds_up:
            return self._by_similarity(
                state, action, row, similarity, float(self.row(state)[action])
            )
        plan = self.plan(0)
        probability = float(plan.rule[state, action])
        if plan.value is None:
            return self._by_similarity(state, action, row, similarity, probability, plan.exploring)
        share = row.weight / row.weight.sum()
        foreseen = [
            Foreseen(label, int(r), float(w), float(part))
            for label, r, w, part in zip(
                self._labels(row), row.records, similarity, share, strict=True
            )
        ]
        order = tuple(sorted(foreseen, key=lambda e: -e.share))
        if not np.broadcast_to(self.ideal.allowed, plan.rule.shape)[state, action]:
            return PlannedReason(probability, None, 0.0, 0.0, order)
        parts = (plan.value, plan.attitude, plan.example)
        value, doubt, example = (float(np.asarray(part)[state, action]) for part in parts)
        return PlannedReason(probability, value, doubt, example, order)

    def _by_similarity(
        self,
        state: int,
        action: int,
        row: TransitionCounts,
        similarity: FloatArray,
        probability: float,
        exploring: float = 0.0,
    ) -> Reason:
        """The parts of a probability that the records of a state and action carry, and the prior's."""
        prior = self.prior_of(state)
        kept = (1 - exploring) / float(self.evidence[state].sum() + prior.sum())
        evidence = [
            Evidence(label, int(r), float(w), float(w) * kept)
            for label, r, w in zip(
                self._labels(row), row.records, row.weight * similarity, strict=True
            )
        ]
        uniform = (
            np.broadcast_to(uniform_rule(self.ideal), self.evidence.shape)[state, action]
            if exploring
            else 0.0
        )
        of_prior = float(prior[action] * kept + exploring * uniform)
        return Reason(probability, of_prior, tuple(sorted(evidence, key=lambda e: -e.share)))

    def _labels(self, row: TransitionCounts) -> list[Label]:
        """Labels of the next states of some counts."""
        return [self.counts.states.labels[n] for n in row.next_state]
