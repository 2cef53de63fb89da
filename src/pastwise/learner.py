"""TransferLearner: from a log and a goal to a rule, with the evidence behind it. A facade without mathematics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pastwise.adapters import artefact
from pastwise.adapters.columns import Columns
from pastwise.adapters.decode import Finding, Reading
from pastwise.adapters.episodes import read_episodes
from pastwise.adapters.sources import library_of
from pastwise.adapters.tables import LogWarning, read_log
from pastwise.agents import behaviour_rule
from pastwise.counts import LiveCounts, TransitionCounts
from pastwise.goal import Goal
from pastwise.numerics import FloatArray, normalise
from pastwise.posterior import (
    gather_evidence,
    learned_rule,
    prior_concentration,
    rule_interval,
    similarity_of,
    state_support,
)
from pastwise.report.figures import PolicyPicture
from pastwise.results import Evaluation, Evidence, Explanation, Reason, Rule, Support, known_index
from pastwise.similarity import (
    Divergence,
    Similarity,
    kl_divergence,
    normalised_similarity,
    plain_similarity,
    weigh_tasks,
)
from pastwise.spaces import Label, Space, key_of
from pastwise.verdicts import episode_estimates, evaluate_rule

SIMILARITIES = {f.__name__: f for f in (normalised_similarity, plain_similarity)}
"""Similarities that an artefact can name."""


NO_COLUMNS = "this learner was fitted on counts, not on a table: its columns are not known; merge counts instead"


class TransferLearner:
    """Learns a decision rule for a goal from a log that was made for others.

    Parameters
    ----------
    goal : Goal
        What is wanted now.
    prior_count : float, optional
        nu_0, the prior count of every (state, action, next state); by default the goal's smallest probability over
        the number of states.
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
        prior_count: float | None = None,
        similarity: Similarity = normalised_similarity,
        past_goals: Mapping[Label, Goal] | None = None,
        divergence: Divergence = kl_divergence,
        on_unseen: Literal["prior", "refuse"] = "prior",
    ) -> None:
        self.goal = goal
        self.prior_count = prior_count
        self.similarity = similarity
        self.past_goals = past_goals
        self.divergence = divergence
        self.on_unseen = on_unseen

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as given."""
        names = ("goal", "prior_count", "similarity", "past_goals", "divergence", "on_unseen")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; what was fitted stays until `fit` is called again."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"unknown parameter {name!r}; known are {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"TransferLearner({self.goal!r})"

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
            return self._learn(log, None, (), None)
        as_of = columns.pop("as_of", None)
        given = columns.pop("columns", None) or Columns.of(**columns)
        found = read_log(log, given, as_of=as_of)
        for finding in found.findings:
            warnings.warn(f"{finding.message}. {finding.fix}", LogWarning, stacklevel=2)
        return self._learn(found.counts, found.columns, found.findings, library_of(log))

    def _learn(
        self, counts: TransitionCounts, columns: Columns | None, findings: tuple[Finding, ...], library: str | None
    ) -> Self:
        if self.on_unseen not in ("prior", "refuse"):
            raise ValueError(f"on_unseen is 'prior' or 'refuse', not {self.on_unseen!r}")
        self.columns_, self.findings_, self._library = columns, findings, library
        self._counts = counts
        self.ideal_ = self.goal.on(counts.states, counts.actions)
        self._prior = prior_concentration(self.ideal_, self.prior_count)
        weighted = self._weighted(counts)
        self._live = LiveCounts(weighted)
        self._evidence = gather_evidence(weighted, self.ideal_, self.similarity)
        self._updated = False
        return self

    def _weighted(self, counts: TransitionCounts) -> TransitionCounts:
        """One log out of all tasks, each weighted by how near its known goal was to today's."""
        if counts.tasks is None:
            if self.past_goals:
                raise ValueError("past_goals are given, but the log has no task column")
            return counts
        known = dict(self.past_goals or {})
        unknown = [task for task in known if task not in counts.tasks]
        if unknown:
            raise ValueError(f"past_goals: the log has no task {unknown[0]!r}")
        past = [known[t].on(counts.states, counts.actions) if t in known else self.ideal_ for t in counts.tasks.labels]
        return weigh_tasks(zip(counts.split(), past, strict=True), self.ideal_, self.divergence)

    def update(self, state: Label, action: Label, next_state: Label, *, weight: float = 1.0) -> Self:
        """Learn from one more record; the same as refitting with it.

        A record of known labels costs a time that does not depend on the log. New labels enlarge the spaces, and all
        is learned again from the counts.
        """
        self._require_fitted()
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"a weight must be finite and positive, not {weight}")
        counts = self._counts
        if counts.tasks is not None:
            raise ValueError("a log of several tasks is updated by merging counts, with their task")
        known = state in counts.states and next_state in counts.states and action in counts.actions
        if not known:
            states = Space.sorted({state, next_state}, counts.states.fields)
            one = TransitionCounts.from_records(
                states.indices([state]),
                [0],
                states.indices([next_state]),
                states,
                Space((action,), counts.actions.fields),
                weight,
            )
            return self.merge(replace(one, decay=counts.decay))
        s, a, n = counts.states.index(state), counts.actions.index(action), counts.states.index(next_state)
        self._live.add(s, a, n, weight)
        self._evidence[s, a] = gather_evidence(self._live.row(s, a), self.ideal_, self.similarity)[s, a]
        self._updated = True
        return self

    def merge(self, other: TransitionCounts) -> Self:
        """Learn from the counts of another log as well; labels are united."""
        self._require_fitted()
        return self._learn(self.counts_ + other, self.columns_, self.findings_, self._library)

    def retarget(self, goal: Goal) -> TransferLearner:
        """A learner for another goal from the same counts, without a second look at the log."""
        self._require_fitted()
        other = TransferLearner(**{**self.get_params(), "goal": goal})
        return other._learn(self.counts_, self.columns_, self.findings_, self._library)

    # Answers.

    def _require_fitted(self) -> None:
        if not hasattr(self, "_evidence"):
            raise ValueError("this learner has not learned yet; call fit first")

    @property
    def counts_(self) -> TransitionCounts:
        """The log, counted, with all that was learned since."""
        self._require_fitted()
        if self._updated:
            self._counts = self._live.counts()
            self._live, self._updated = LiveCounts(self._counts), False
        return self._counts

    @property
    def rule_(self) -> Rule:
        """The learned rule of every state."""
        self._require_fitted()
        probabilities = learned_rule(self._evidence, self._prior)
        states, actions = self._counts.states, self._counts.actions
        total = self._evidence.sum(axis=-1)
        fallback = self._prior_rule if self.on_unseen == "prior" else None
        return Rule(states, actions, probabilities, total, fallback, self._library)

    @property
    def _prior_rule(self) -> FloatArray:
        """Rule of the prior, for a state that the log does not have: [A]."""
        return normalise(self._prior.mean(axis=0))

    def rule(self, state: Label) -> dict[Label, float]:
        """The learned rule of one state, in a time that does not depend on the number of states."""
        self._require_fitted()
        index = known_index(self._counts.states, state, refuse=self.on_unseen == "refuse")
        if index is None:
            row = self._prior_rule
        else:
            row = learned_rule(self._evidence[index], self._prior[index if len(self._prior) > 1 else 0])
        return dict(zip(self._counts.actions.labels, row.tolist(), strict=True))

    def support(self) -> Support:
        """What the rule of each state rests on."""
        weighted = self._weighted(self.counts_)
        arrays = state_support(weighted, self.ideal_, self._prior, self.similarity)
        return Support(self._counts.states, arrays, self._library)

    def explain(self, state: Label, action: Label | None = None) -> Explanation:
        """Which past transitions carry how much of the probability of each action, or of one, in a state."""
        self._require_fitted()
        states, actions = self._counts.states, self._counts.actions
        s = states.index(state)
        chosen = range(len(actions)) if action is None else [actions.index(action)]
        prior = self._prior[s if len(self._prior) > 1 else 0]
        total = self._evidence[s].sum() + prior.sum()
        reasons = {}
        for a in chosen:
            row = self._live.row(s, a)
            weight = row.weight * similarity_of(row, self.ideal_, self.similarity)
            evidence = (
                Evidence(states.labels[n], int(r), float(w), float(w / total))
                for n, r, w in zip(row.next_state, row.records, weight, strict=True)
            )
            share = float(prior[a] / total)
            reasons[actions.labels[a]] = Reason(
                float((self._evidence[s, a] + prior[a]) / total), share, tuple(sorted(evidence, key=lambda e: -e.share))
            )
        return Explanation(states.labels[s], reasons)

    def evaluate(
        self,
        counts: TransitionCounts | None = None,
        *,
        initial: Mapping[Label, float] | None = None,
        **options: Any,
    ) -> Evaluation:
        """Whether the rule is better than what was done and than acting at random, from the log alone.

        Parameters
        ----------
        counts : TransitionCounts, optional
            The log to evaluate on; by default the one that was learned from.
        initial : states with probabilities, optional
            Where episodes start; by default as often as the log was in each state.
        options
            ``horizon``, ``draws``, ``background``, ``seed``, ``on_step``; see `verdicts.evaluate_rule`.
        """
        self._require_fitted()
        log = self.counts_.total() if counts is None else self._same_labels(counts)
        start = None
        if initial is not None:
            start = np.zeros(len(log.states))
            start[log.states.indices(initial)] = list(initial.values())
        score = self.goal.score(log.states)
        measure = "mean score" if self.goal.reward else "share of time as wanted"
        return evaluate_rule(self.rule_, self.support(), self.ideal_, log, score, measure, start, **options)

    def with_estimates(
        self, evaluation: Evaluation, log: Any, horizon: int, propensity: str | None = None
    ) -> Evaluation:
        """The evaluation with what the episodes of a log say of the rule by importance sampling and doubly robust."""
        if self.columns_ is None:
            raise ValueError(NO_COLUMNS)
        states, actions = self._counts.states, self._counts.actions
        episodes = read_episodes(log, self.columns_, states, actions, propensity)
        counts, score = self._same_labels(self.count(log)), self.goal.score(states)
        return replace(evaluation, estimates=episode_estimates(self.rule_, episodes, counts, score, horizon))

    def _same_labels(self, counts: TransitionCounts) -> TransitionCounts:
        """The counts over the policy's own labels; an unknown one is an error."""
        try:
            return counts.total().relabelled(self._counts.states, self._counts.actions)
        except ValueError as error:
            raise ValueError(f"the log has other labels than the policy: {error}") from None

    def rule_intervals(self) -> tuple[FloatArray, FloatArray]:
        """Central 90 % interval of each probability under the similarity-weighted posterior: low, high [S, A].

        Not a calibrated interval of anything physical; see `posterior.rule_interval`.
        """
        self._require_fitted()
        return rule_interval(self._evidence, self._prior)

    def picture(self) -> PolicyPicture:
        """What there is to see of the policy, for `report.figures`."""
        counts, rule = self.counts_.total(), self.rule_
        return PolicyPicture(
            [key_of(state) for state in counts.states.labels],
            [key_of(action) for action in counts.actions.labels],
            behaviour_rule(counts),
            rule.probabilities,
            rule.similarity,
            similarity_of(counts, self.ideal_, self.similarity),
            counts.records,
        )

    def learn_more(self, log: Any) -> Self:
        """Learn from one more log, read with the columns and bins of the first."""
        found = self._read(log)
        self.merge(found.counts)
        self.findings_ = found.findings
        return self

    def _read(self, log: Any) -> Reading:
        self._require_fitted()
        if self.columns_ is None:
            raise ValueError(NO_COLUMNS)
        return read_log(log, self.columns_)

    def count(self, log: Any) -> TransitionCounts:
        """Count another log with the columns and bins of the one that was learned from."""
        return self._read(log).counts

    # Keeping.

    def save(self, path: str | Path) -> None:
        """Write all that was learned to a safetensors file; what was there before survives if that fails."""
        counts = self.counts_
        if SIMILARITIES.get(getattr(self.similarity, "__name__", "")) is not self.similarity:
            raise ValueError("only a learner with one of the library's own similarities can be saved")
        if self.divergence is not kl_divergence:
            raise ValueError("only a learner with the library's own divergence can be saved")
        tensors, content = artefact.pack_counts(counts)
        tensors["rule"] = self.rule_.probabilities
        past = [[task, goal.to_dict()] for task, goal in (self.past_goals or {}).items()]
        content |= {
            "goal": self.goal.to_dict(),
            "past_goals": past,
            "settings": {
                "prior_count": self.prior_count,
                "similarity": self.similarity.__name__,
                "on_unseen": self.on_unseen,
            },
            "columns": None if self.columns_ is None else self.columns_.to_dict(),
        }
        artefact.write(path, tensors, content)


def load(path: str | Path) -> TransferLearner:
    """The learner that `TransferLearner.save` wrote; a damaged or foreign file is an error that says what is wrong."""
    tensors, content = artefact.read(path)
    try:
        counts = artefact.unpack_counts(tensors, content)
        settings = content["settings"]
        artefact.require(settings["similarity"] in SIMILARITIES, f"unknown similarity {settings['similarity']!r}")
        past = {artefact.as_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]}
        learner = TransferLearner(
            Goal.from_dict(content["goal"]),
            prior_count=settings["prior_count"],
            similarity=SIMILARITIES[settings["similarity"]],
            past_goals=past or None,
            on_unseen=settings["on_unseen"],
        )
        columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
        learner._learn(counts, columns, (), None)
        _check_rule(tensors["rule"], learner.rule_.probabilities)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return learner


def _check_rule(stored: Any, learned: FloatArray) -> None:
    artefact.require(stored.shape == learned.shape, f"the rule has shape {stored.shape}, not {learned.shape}")
    artefact.require(np.isfinite(stored).all() and (stored >= 0).all(), "the rule has values that are no probabilities")
    artefact.require(np.allclose(stored.sum(axis=-1), 1), "the rule is not normalised")
    artefact.require(np.allclose(stored, learned), "the rule does not follow from the counts and the goal")
