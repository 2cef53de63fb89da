"""TransferLearner: from a log and a goal to a rule, with the evidence behind it. A facade without mathematics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.live_counts import LiveCounts
from pastwise.data.space import Label, Space, checked_label
from pastwise.errors import LogWarning, NotFittedError
from pastwise.evaluation.evaluate import evaluate_rule, require_state_limit
from pastwise.evaluation.importance import episode_estimates
from pastwise.evaluation.result import Estimate, Evaluation
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Finding, Reading
from pastwise.logs.episodes import read_episodes
from pastwise.logs.read import read_log, warn_of
from pastwise.logs.sources import library_of
from pastwise.methods.planned import METHODS
from pastwise.policy import artefact
from pastwise.policy.explanation import Explanation
from pastwise.policy.live import LivePolicy
from pastwise.policy.rule import Rule, known_index
from pastwise.policy.state import Fitted
from pastwise.policy.support import Support
from pastwise.theory.learning import (
    gather_evidence,
    prior_concentration,
    row_evidence,
    rule_interval,
    state_support,
)
from pastwise.theory.similarity import (
    Divergence,
    Similarity,
    kl_divergence,
    normalised_similarity,
    plain_similarity,
    weigh_tasks,
)

SIMILARITIES = {f.__name__: f for f in (normalised_similarity, plain_similarity)}
"""Similarities that an artefact can name."""


NO_COLUMNS = "this learner was fitted on counts, not on a table: its columns are not known; merge counts instead"


class TransferLearner:
    """Learns a decision rule for a goal from a log that was made for others.

    Parameters
    ----------
    goal : Goal
        What is wanted now.
    agent : str
        How to learn: ``TL``, ``TL_explore``, ``FPD_learn`` or ``TL_foresight``; see `methods`.
    prior_count : float, optional
        nu_0, the prior count of every (state, action, next state); by default the goal's smallest probability over
        the number of states. TL_foresight has none: it reads its prior from the log.
    similarity : Similarity
        How well a past transition serves the goal.
    past_goals : tasks with goals, optional
        What was wanted in past tasks, where that is known: the records of a task count the less the further its goal
        lies from today's.
    divergence : Divergence
        How far a past goal lies from today's.
    on_unseen : "prior" or "refuse"
        What to answer for a state that the log does not have.

    Attributes
    ----------
    rule_ : Rule
        The learned rule, by labels.
    counts_ : TransitionCounts
        The log, counted.
    ideal_ : IdealModel
        The goal over the states and actions of the log.
    findings_ : tuple of Finding
        What was found in the log on the way.

    Examples
    --------
    >>> log = {"room": ["cold", "cold", "mild"], "did": ["heat", "wait", "wait"], "then": ["mild", "cold", "mild"]}
    >>> learner = TransferLearner(Goal(prefer={"mild": 1})).fit(log, state="room", action="did", next_state="then")
    >>> {action: round(p, 4) for action, p in learner.rule_["cold"].items()}
    {'heat': 1.0, 'wait': 0.0}
    """

    def __init__(
        self,
        goal: Goal,
        *,
        agent: str = "TL",
        prior_count: float | None = None,
        similarity: Similarity = normalised_similarity,
        past_goals: Mapping[Label, Goal] | None = None,
        divergence: Divergence = kl_divergence,
        on_unseen: Literal["prior", "refuse"] = "prior",
    ) -> None:
        self.goal = goal
        self.agent = agent
        self.prior_count = prior_count
        self.similarity = similarity
        self.past_goals = past_goals
        self.divergence = divergence
        self.on_unseen = on_unseen

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as given."""
        names = (
            "goal",
            "agent",
            "prior_count",
            "similarity",
            "past_goals",
            "divergence",
            "on_unseen",
        )
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; what was fitted stays until `fit` is called again."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(
                    f"unknown parameter {name!r}; known are {', '.join(self.get_params())}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"TransferLearner({self.goal!r}{'' if self.agent == 'TL' else f', agent={self.agent!r}'})"

    # Learning.

    def fit(self, log: Any, **columns: Any) -> Self:
        """Learn from a log.

        Parameters
        ----------
        log
            `TransitionCounts`, or any table that `count_transitions` takes, with its columns by name.
        columns
            ``state=``, ``action=``, ``next_state=`` and so on; see `Columns`.
        """
        if isinstance(log, TransitionCounts):
            if columns:
                raise ValueError("counts have their columns already; give none")
            return self.fit_counts(log)
        as_of = columns.pop("as_of", None)
        given = columns.pop("columns", None)
        if given is None:
            if not {"state", "action"} <= set(columns):
                raise ValueError(
                    "which columns hold what? Give state=, action= and next_state=, or episode= and time="
                )
            given = Columns.of(**columns)
        found = read_log(log, given, as_of=as_of)
        self._learn(found.counts, found.columns, found.findings, library_of(log))
        warn_of(found, stacklevel=3)
        return self

    def fit_counts(self, counts: TransitionCounts, columns: Columns | None = None) -> Self:
        """Learn from counts, and remember the columns that they were read by, to read more logs."""
        return self._learn(counts, columns, (), None)

    def _learn(
        self,
        counts: TransitionCounts,
        columns: Columns | None,
        findings: tuple[Finding, ...],
        library: str | None,
    ) -> Self:
        """Learn from counts; what cannot be learned from is an error that leaves the learner as it was."""
        if self.agent not in METHODS:
            raise ValueError(f"unknown agent {self.agent!r}; known are {', '.join(METHODS)}")
        if self.agent == "TL_foresight" and self.prior_count is not None:
            raise ValueError("TL_foresight reads its prior from the log; leave out the prior count")
        if self.on_unseen not in ("prior", "refuse"):
            raise ValueError(f"on_unseen is 'prior' or 'refuse', not {self.on_unseen!r}")
        if counts.shape and counts.tasks is None:
            raise ValueError(
                "counts of several logs: take their total() first, or name them as tasks"
            )
        ideal = self.goal.on(counts.states, counts.actions)
        weighted = self._weighted(counts, ideal)
        self._fitted = Fitted(
            counts=counts,
            columns=columns,
            findings=findings,
            library=library,
            ideal=ideal,
            prior=prior_concentration(ideal, self.prior_count),
            live=LiveCounts(weighted),
            evidence=gather_evidence(weighted, ideal, self.similarity),
            params=self.get_params(),
        )
        return self

    def _weighted(self, counts: TransitionCounts, ideal: IdealModel) -> TransitionCounts:
        """One log out of all tasks, each weighted by how near its known goal was to today's."""
        past: list[IdealModel | None]
        if counts.tasks is None:
            if self.past_goals:
                raise ValueError("past_goals are given, but the log has no task column")
            return counts
        past = [None] * len(counts.tasks)
        for task, goal in (self.past_goals or {}).items():
            if not counts.tasks.has(task):
                raise ValueError(f"past_goals: the log has no task {task!r}")
            past[counts.tasks.index(task)] = goal.on(counts.states, counts.actions)
        return weigh_tasks(zip(counts.split(), past, strict=True), ideal, self.divergence)

    def update(
        self, state: Label, action: Label, next_state: Label, *, weight: float = 1.0
    ) -> Self:
        """Learn from one more record; the same as refitting with it.

        A record of known labels costs a time that does not depend on the log. New labels enlarge the spaces, and all
        is learned again from the counts. A record that leaves a terminal state is left out, with a warning.
        """
        f = self._fit
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"a weight must be finite and positive, not {weight}")
        if f.counts.tasks is not None:
            raise ValueError("a log of several tasks is updated by merging counts, with their task")
        states, actions = f.counts.states, f.counts.actions
        labels = [checked_label(label) for label in (state, action, next_state)]
        known = [
            space.has(label) for space, label in zip((states, actions, states), labels, strict=True)
        ]
        if known[0] and states.index(labels[0]) in f.counts.terminal:
            warnings.warn(
                f"a record that leaves the terminal state {state!r} was left out",
                LogWarning,
                stacklevel=2,
            )
            return self
        if not all(known):
            return self.merge(_one_record(labels, known, f.counts, weight))
        s, a, n = states.index(labels[0]), actions.index(labels[1]), states.index(labels[2])
        f.live.add(s, a, n, float(weight))
        f.evidence[s, a] = row_evidence(f.live.row(s, a), f.ideal, f.params["similarity"])
        f.updates += 1
        return self

    def live(self, seed: int | None = None) -> LivePolicy:
        """The rule as it is now, for a running loop: it decides and learns on, a record in about a microsecond.

        Parameters
        ----------
        seed : int, optional
            Of the decisions that are drawn.
        """
        return LivePolicy(self._fit, seed)

    def merge(self, other: TransitionCounts) -> Self:
        """Learn from the counts of another log as well; labels are united."""
        f = self._fit
        return self._learn(self.counts_ + other, f.columns, f.findings, f.library)

    def learn_more(self, log: Any) -> Self:
        """Learn from one more log, read with the columns and bins of the first."""
        found = self._read(log)
        self.merge(found.counts)
        self._fitted.findings = found.findings
        warn_of(found, stacklevel=3)
        return self

    def count(self, log: Any) -> TransitionCounts:
        """Count another log with the columns and bins of the one that was learned from; warns of what it leaves out."""
        found = self._read(log)
        warn_of(found, stacklevel=3)
        return found.counts

    def _read(self, log: Any) -> Reading:
        columns = self._fit.columns
        if columns is None:
            raise ValueError(NO_COLUMNS)
        return read_log(log, columns, more=True)

    def retarget(self, goal: Goal, agent: str | None = None) -> TransferLearner:
        """A learner for another goal, or by another method, from the same counts, without a second look at the log."""
        f = self._fit
        other = TransferLearner(**{**f.params, "goal": goal, "agent": agent or f.params["agent"]})
        return other._learn(self.counts_, f.columns, f.findings, f.library)

    # Answers.

    @property
    def _fit(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this learner has not learned yet; call fit first")
        return self._fitted

    @property
    def columns_(self) -> Columns | None:
        """The columns that the log was read with, if it was a table."""
        return self._fit.columns

    @property
    def findings_(self) -> tuple[Finding, ...]:
        """What was found in the log on the way."""
        return self._fit.findings

    @property
    def ideal_(self) -> IdealModel:
        """The goal over the states and actions of the log."""
        return self._fit.ideal

    @property
    def counts_(self) -> TransitionCounts:
        """The log, counted, with all that was learned since."""
        return self._fit.all_counts()

    @property
    def rule_(self) -> Rule:
        """The learned rule of every state."""
        f = self._fit
        fallback = f.prior_rule if f.params["on_unseen"] == "prior" else None
        return Rule(
            f.counts.states,
            f.counts.actions,
            f.rule(),
            f.evidence.sum(axis=-1),
            fallback,
            f.library,
        )

    def rule(self, state: Label) -> dict[Label, float]:
        """The learned rule of one state, in a time that does not depend on the number of states.

        A planner plans anew only once the records have grown by `REPLAN`; `rule_` is always that of all records.
        """
        f = self._fit
        index = known_index(f.counts.states, state, refuse=f.params["on_unseen"] == "refuse")
        row = f.prior_rule if index is None else f.row(index)
        return dict(zip(f.counts.actions.labels, row.tolist(), strict=True))

    def rule_intervals(self) -> tuple[FloatArray, FloatArray]:
        """Central 90 % interval of each probability under the similarity-weighted posterior: low, high [S, A].

        Not a calibrated interval of anything physical; see `posterior.rule_interval`.
        """
        f = self._fit
        return rule_interval(f.evidence, f.prior)

    def support(self) -> Support:
        """What the rule of each state rests on."""
        f, counts = self._fit, self.counts_
        weighted = f.live.counts()
        arrays = state_support(weighted, f.ideal, f.prior, f.params["similarity"])
        return Support(counts.states, arrays, f.library, counts.terminal)

    def explain(self, state: Label, action: Label | None = None) -> Explanation:
        """Why each action, or one, has its probability in a state.

        For TL: which past transitions carry how much of it. For a planner: the value of the action, what doubt and the
        past's example add, and the transitions that the value rests on.
        """
        f = self._fit
        states, actions = f.counts.states, f.counts.actions
        s = states.index(state)
        chosen = range(len(actions)) if action is None else [actions.index(action)]
        return Explanation(
            states.labels[s], {actions.labels[a]: f.reason(s, a) for a in chosen}, f.params["agent"]
        )

    def evaluate(
        self, log: Any = None, *, initial: Mapping[Label, float] | None = None, **options: Any
    ) -> Evaluation:
        """Whether the rule is better than what was done and than acting at random, from the log alone.

        Parameters
        ----------
        log : optional
            The log to evaluate on, anything that `fit` takes; by default the one that was learned from.
        initial : states with probabilities, optional
            Where episodes start; by default as in the log, see `evaluation.criterion.initial_distribution`.
        options
            ``horizon``, ``samples``, ``rules``, ``background``, ``seed``, ``on_step``; see
            `evaluation.evaluate.evaluate_rule`.
        """
        require_state_limit(len(self._fit.counts.states))
        counts = self.counts_.total() if log is None else self._same_labels(self._counts_of(log))
        start = None
        if initial is not None:
            start = np.zeros(len(counts.states))
            start[counts.states.indices(initial)] = list(initial.values())
        return evaluate_rule(
            self._fit.rule(),
            self.support().arrays,
            self._fit.params["goal"],
            counts,
            start,
            backend=self._fit.library,
            **options,
        )

    def _counts_of(self, log: Any) -> TransitionCounts:
        """Counts as they are, or those of another log, with a warning of what it leaves out."""
        if isinstance(log, TransitionCounts):
            return log
        found = self._read(log)
        warn_of(found, stacklevel=4)
        return found.counts

    def estimates(
        self,
        log: Any,
        horizon: int,
        propensity: str | None = None,
        counts: TransitionCounts | None = None,
    ) -> dict[str, Estimate]:
        """What the episodes of a log say of the rule by importance sampling and doubly robust.

        The log is counted for the latter's model, unless its counts are given.
        ``dataclasses.replace(evaluation, estimates=...)`` puts it next to the values on sampled models.
        """
        f = self._fit
        if f.columns is None:
            raise ValueError(NO_COLUMNS)
        episodes = read_episodes(log, f.columns, f.counts.states, f.counts.actions, propensity)
        counts = self._same_labels(self._read(log).counts if counts is None else counts)
        score = f.params["goal"].score(counts.states, counts.actions)
        return episode_estimates(f.rule(), episodes, counts, score, horizon)

    def _same_labels(self, counts: TransitionCounts) -> TransitionCounts:
        """The counts over the policy's own labels; an unknown one is an error."""
        own = self.counts_
        try:
            same = counts.total().relabelled(own.states, own.actions)
        except ValueError as error:
            raise ValueError(f"the log has other labels than the policy: {error}") from None
        return same.ending_in(np.union1d(same.terminal, own.terminal))

    # Keeping.

    def save(self, path: str | Path) -> None:
        """Write all that was learned to a safetensors file; what was there before survives if that fails."""
        params = self._fit.params
        similarity = getattr(params["similarity"], "__name__", "")
        if SIMILARITIES.get(similarity) is not params["similarity"]:
            raise ValueError(
                "only a learner with one of the library's own similarities can be saved"
            )
        if params["divergence"] is not kl_divergence:
            raise ValueError("only a learner with the library's own divergence can be saved")
        tensors, content = artefact.pack_counts(self.counts_)
        tensors["rule"] = self.rule_.probabilities
        content |= {
            "goal": params["goal"].to_dict(),
            "past_goals": [
                [task, goal.to_dict()] for task, goal in (params["past_goals"] or {}).items()
            ],
            "method": params["agent"],
            "settings": {
                "prior_count": params["prior_count"],
                "similarity": similarity,
                "on_unseen": params["on_unseen"],
            },
            "columns": None if self.columns_ is None else self.columns_.to_dict(),
        }
        artefact.write(path, tensors, content)


def _one_record(
    labels: list[Label], known: list[bool], counts: TransitionCounts, weight: float
) -> TransitionCounts:
    """Counts of a single record with labels of which some are new."""
    spaces = (counts.states, counts.actions, counts.states)
    state, action, next_state = (
        space.labels[space.index(label)] if old else label
        for space, label, old in zip(spaces, labels, known, strict=True)
    )
    states = Space.sorted({state, next_state}, counts.states.fields)
    index = states.indices([state]), [0], states.indices([next_state])
    one = TransitionCounts.from_records(
        *index, states, Space((action,), counts.actions.fields), weight
    )
    return replace(one, decay=counts.decay)
