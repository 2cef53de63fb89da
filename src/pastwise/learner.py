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
from pastwise.adapters.decode import Finding
from pastwise.adapters.sources import library_of
from pastwise.adapters.tables import LogWarning, read_log
from pastwise.agents import behaviour_rule
from pastwise.counts import Decay, LiveCounts, TransitionCounts
from pastwise.goal import Goal
from pastwise.numerics import FloatArray, normalise
from pastwise.posterior import (
    gather_evidence,
    learned_rule,
    prior_concentration,
    similarity_of,
    state_support,
)
from pastwise.report.figures import PolicyPicture
from pastwise.results import Evidence, Explanation, Reason, Rule, Support, known_index
from pastwise.similarity import (
    Divergence,
    Similarity,
    kl_divergence,
    normalised_similarity,
    plain_similarity,
    weigh_tasks,
)
from pastwise.spaces import Label, Space, key_of

SIMILARITIES = {f.__name__: f for f in (normalised_similarity, plain_similarity)}
"""Similarities that an artefact can name."""


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
        self._require_fitted()
        if self.columns_ is None:
            raise ValueError(
                "this learner was fitted on counts, not on a table: its columns are not known; merge counts"
            )
        found = read_log(log, self.columns_)
        self.merge(found.counts)
        self.findings_ = found.findings
        return self

    # Keeping.

    def save(self, path: str | Path) -> None:
        """Write all that was learned to a safetensors file; what was there before survives if that fails."""
        counts = self.counts_
        if SIMILARITIES.get(getattr(self.similarity, "__name__", "")) is not self.similarity:
            raise ValueError("only a learner with one of the library's own similarities can be saved")
        if self.divergence is not kl_divergence:
            raise ValueError("only a learner with the library's own divergence can be saved")
        tensors = {name: getattr(counts, name) for name in ("key", "records", "weight", "weight_squared", "terminal")}
        tensors["rule"] = self.rule_.probabilities
        past = [[task, goal.to_dict()] for task, goal in (self.past_goals or {}).items()]
        content = {
            "states": _space_content(counts.states),
            "actions": _space_content(counts.actions),
            "tasks": None if counts.tasks is None else _space_content(counts.tasks),
            "decay": None if counts.decay is None else vars(counts.decay),
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
        counts = _counts_from(tensors, content)
        settings = content["settings"]
        artefact.require(settings["similarity"] in SIMILARITIES, f"unknown similarity {settings['similarity']!r}")
        past = {_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]}
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


def _counts_from(tensors: artefact.Tensors, content: Mapping[str, Any]) -> TransitionCounts:
    states, actions = _space_from(content["states"]), _space_from(content["actions"])
    tasks = None if content["tasks"] is None else _space_from(content["tasks"])
    key, terminal = tensors["key"], tensors["terminal"]
    size = len(states) * len(actions) * len(states) * (1 if tasks is None else len(tasks))
    for name in ("key", "records", "terminal"):
        artefact.require(tensors[name].dtype == np.int64, f"{name} are not whole numbers")
    for name in ("key", "records", "weight", "weight_squared"):
        tensor = tensors[name]
        artefact.require(tensor.shape == key.shape and tensor.ndim == 1, f"{name} has the wrong shape {tensor.shape}")
        artefact.require(np.isfinite(tensor).all() and (tensor >= 0).all(), f"{name} has negative or undefined values")
    artefact.require((np.diff(key) > 0).all() and (key < size).all(), "the keys of the transitions are out of order")
    inside = (terminal >= 0).all() and (terminal < len(states)).all()
    artefact.require(terminal.ndim == 1 and inside and (np.diff(terminal) > 0).all(), "bad terminal states")
    decay = None if content["decay"] is None else Decay(**content["decay"])
    columns = (key, tensors["records"], tensors["weight"], tensors["weight_squared"])
    return TransitionCounts(states, actions, *columns, () if tasks is None else (len(tasks),), tasks, terminal, decay)


def _space_content(space: Space) -> dict[str, Any]:
    labels: Any = {"range": len(space)} if isinstance(space.labels, range) else list(space.labels)
    return {"labels": labels, "fields": list(space.fields)}


def _space_from(content: Mapping[str, Any]) -> Space:
    labels = content["labels"]
    if isinstance(labels, Mapping):
        return Space(range(labels["range"]), tuple(content["fields"]))
    return Space([_label(label) for label in labels], tuple(content["fields"]))


def _label(value: Any) -> Label:
    return tuple(value) if isinstance(value, list) else value
