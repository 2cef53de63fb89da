"""A learned rule in a running loop: plain numbers in plain lists, so that a decision costs about a microsecond.

    log -> counts -> similarity -> evidence -> rule -> loop

The rule adds up from single records, so a loop needs no more than the evidence of the states that it visits. Neither
the length of the log nor the number of states matters to a decision or an observation.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from random import Random

import numpy as np

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Label
from pastwise.errors import LogWarning
from pastwise.policy.rule import known_index
from pastwise.policy.state import Fitted
from pastwise.theory.similarity import normalised_similarity

Row = tuple[list[float], list[float]]
"""Of a state: evidence and prior of each action; each action's factor in the similarity, where it is one."""


class LivePolicy:
    """TL's rule, deciding and learning one record at a time; made by `TransferLearner.live`.

    What it observes is kept as counts, not in the learner: ``learner.merge(live.counts())`` takes them over. It is for
    one thread.

    Examples
    --------
    >>> import pastwise as pw
    >>> log = {"room": ["cold", "cold", "mild"], "did": ["heat", "wait", "wait"], "then": ["mild", "cold", "mild"]}
    >>> learner = pw.TransferLearner(pw.Goal(prefer="mild")).fit(log, state="room", action="did", next_state="then")
    >>> live = learner.live(seed=1)
    >>> live.decide("cold")
    'heat'
    >>> live.observe("cold", "heat", "mild")
    >>> live.counts().num_records
    1
    """

    def __init__(self, fitted: Fitted, seed: int | None = None) -> None:
        if not fitted.adds_up:
            raise ValueError(
                f"only TL's rule adds up record by record, not that of {fitted.params['agent']}"
            )
        if fitted.counts.tasks is not None:
            raise ValueError(
                "a log of several tasks cannot be learned on record by record; merge counts instead"
            )
        self._fitted, self._random = fitted, Random(seed).random
        counts, ideal, self._evidence = (
            fitted.counts,
            fitted.ideal,
            fitted.evidence.copy(),
        )  # the learner goes on
        self._actions = counts.actions.labels
        self._place = {action: index for index, action in enumerate(self._actions)}
        self._rows: dict[Label, Row] = {}
        self._seen: dict[tuple[Label, Label, Label], int] = {}
        self._arriving: dict[Label, float] = {}
        self._factors = (
            ideal.concerns_next_states_only and fitted.params["similarity"] is normalised_similarity
        )
        if self._factors:  # the similarity is a factor of the next state times one of the decision
            following = ideal.log_transition[0, 0]
            self._arriving = dict(
                zip(counts.states.labels, np.exp(following - following.max()).tolist(), strict=True)
            )

    def decide(self, state: Label) -> Label:
        """Draw an action by the learned rule of a state."""
        mass = (self._rows.get(state) or self._row(state))[0]
        left = self._random() * sum(mass)
        for action, weight in zip(self._actions, mass, strict=True):
            left -= weight
            if left < 0:
                return action
        return max(zip(mass, self._actions, strict=True), key=lambda pair: pair[0])[
            1
        ]  # rounding left a crumb

    def observe(self, state: Label, action: Label, next_state: Label) -> None:
        """Learn from one record of known labels; the same as `TransferLearner.update`, up to rounding.

        A record that leaves a terminal state is left out, with a warning.
        """
        try:
            mass, factor = self._rows[state]
            place = self._place[action]
            mass[place] += factor[place] * self._arriving[next_state]
        except (KeyError, IndexError):
            state, action, next_state = self._known(state, action, next_state)
            if self._fitted.counts.states.index(state) in self._fitted.counts.terminal:
                message = f"a record that leaves the terminal state {state!r} was left out"
                warnings.warn(message, LogWarning, stacklevel=2)
                return
            self._row(state)[0][self._place[action]] += self._similarity(state, action, next_state)
        record = (state, action, next_state)
        self._seen[record] = self._seen.get(record, 0) + 1

    def rule(self, state: Label) -> dict[Label, float]:
        """The learned rule of a state."""
        mass = self._row(state)[0]
        total = sum(mass)
        return {action: weight / total for action, weight in zip(self._actions, mass, strict=True)}

    def counts(self) -> TransitionCounts:
        """Counts of what was observed, over the learner's states and actions."""
        states, actions = self._fitted.counts.states, self._fitted.counts.actions
        index = [(states.index(s), actions.index(a), states.index(n)) for s, a, n in self._seen]
        s, a, n = np.array(index, dtype=np.int64).reshape(-1, 3).T
        records = np.array(list(self._seen.values()), dtype=np.int64)
        weight = records.astype(np.float64)
        task = np.zeros_like(records)
        decay = self._fitted.counts.decay
        return TransitionCounts.from_groups(
            states, actions, (task, s, a, n), (records, weight, weight), decay=decay
        )

    def _known(self, *labels: Label) -> tuple[Label, Label, Label]:
        """The labels as the learner has them; one that it does not have is an error."""
        counts = self._fitted.counts
        spaces = (counts.states, counts.actions, counts.states)
        try:
            state, action, next_state = (
                s.labels[s.index(label)] for s, label in zip(spaces, labels, strict=True)
            )
        except ValueError as error:
            raise ValueError(f"{error}; TransferLearner.update learns new labels") from None
        return state, action, next_state

    def _row(self, state: Label) -> Row:
        """What is kept of a state, fetched when it is first asked for."""
        if state not in self._rows:
            f = self._fitted
            index = known_index(
                f.counts.states, state, refuse=f.params["on_unseen"] == "refuse", stacklevel=4
            )
            if index is None:
                return f.prior_rule.tolist(), []
            label = f.counts.states.labels[index]  # the state may be asked for by its key
            if label not in self._rows:
                factor = (
                    self._decision_factor(index)
                    if self._factors and index not in f.counts.terminal
                    else []
                )
                self._rows[label] = (self._evidence[index] + f.prior_of(index)).tolist(), factor
            self._rows[state] = self._rows[label]
        return self._rows[state]

    def _decision_factor(self, state: int) -> list[float]:
        """Similarity of each action in a state, followed by the best next state: [A]."""
        ideal = self._fitted.ideal
        if len(ideal.log_rule) == len(ideal.allowed) == 1:
            return self._any_factor
        return self._factor_of(state)

    @cached_property
    def _any_factor(self) -> list[float]:
        return self._factor_of(0)

    def _factor_of(self, state: int) -> list[float]:
        ideal = self._fitted.ideal
        best, actions = int(ideal.log_transition[0, 0].argmax()), np.arange(len(self._actions))
        allowed = ideal.allowed[min(state, len(ideal.allowed) - 1)]
        factor: list[float] = (
            normalised_similarity(ideal, state, actions, best) * allowed
        ).tolist()
        return factor

    def _similarity(self, *labels: Label) -> float:
        counts = self._fitted.counts
        spaces = (counts.states, counts.actions, counts.states)
        f, (state, action, next_state) = (
            self._fitted,
            (s.index(label) for s, label in zip(spaces, labels, strict=True)),
        )
        allowed = np.broadcast_to(f.ideal.allowed, f.evidence.shape)[state, action]
        return float(f.params["similarity"](f.ideal, state, action, next_state)) * bool(allowed)
