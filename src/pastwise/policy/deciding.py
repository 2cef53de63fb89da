"""A policy that decides in a running loop.

Labels are looked up in plain dictionaries and rules are plain lists of numbers, so a decision with
TL takes about half a microsecond, however long the log and however many the states; raw values take
a few (`logs.rows`). Conditions of the moment, such as the actions that are possible now, change the
rule of one decision only (`policy.choice`).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from math import fsum
from typing import Any, Self

import numpy as np

from pastwise._numerics.checks import require_whole_number
from pastwise._numerics.uniform import UniformNumbers
from pastwise.data.space import Label, Space
from pastwise.errors import ParameterError
from pastwise.logs.rows import Row, is_row
from pastwise.methods.base import PlannedRows
from pastwise.policy.base import Base
from pastwise.policy.choice import Choice, conditioned, require_floor, require_uniform
from pastwise.policy.rule import known_index
from pastwise.policy.state import PolicyState

MAX_EPOCHS = 2**62
"""Most epochs; there is hardly more time."""


class DecidingPolicy:
    """A policy that decides in a loop: the part of `LivePolicy` that does not learn."""

    def __init__(
        self,
        policy: PolicyState,
        seed: int | None = None,
        epochs: int = 0,
        fixed: bool = False,
    ) -> None:
        if policy.counts().tasks is not None:
            raise ParameterError(
                "a log of several tasks cannot be extended record by record; merge counts instead"
            )
        require_whole_number("epochs", epochs, 0, MAX_EPOCHS)
        if seed is not None:
            require_whole_number("the seed", seed, 0, 2**128)
        self._refuse = policy.settings.on_unseen == "refuse"

        # Sources of random numbers: for decisions, and for methods that explore.
        deciding, self._exploring = np.random.default_rng(seed).spawn(2)
        self._numbers = UniformNumbers(deciding)
        self._uniform = iter(self._numbers)

        self._first = Base.of(policy, epochs, fixed)
        self._start(self._first)

    def __copy__(self) -> Self:
        """A copy that decides and learns on its own."""
        return deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy, or one that is sent to a process, needs: all but the iterator."""
        return {name: value for name, value in self.__dict__.items() if name != "_uniform"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._uniform = iter(self._numbers)

    def _start(self, base: Base) -> None:
        """Begin with labels that stay as they are until a new one is observed."""
        self._base = base
        self._policy = base.policy
        self._counts = base.counts
        self._rows = base.rows(self._exploring)

        # Indices of the labels that the loop has used: of states to decide in, which outcomes are
        # not, of all states, and of actions.
        self._actions = base.counts.actions.labels
        self._state_index: dict[Label, int] = {}
        self._arrival_index: dict[Label, int] = {}
        self._action_index: dict[Label, int] = {}

        # Actions that the goal does not forbid, by state; None is a state that is not known.
        self._permitted: dict[int | None, list[int]] = {}

    # Labels.

    @property
    def states(self) -> Space:
        """The states, with new ones that it has learned."""
        return self._counts.states

    @property
    def actions(self) -> Space:
        """The actions, with new ones that it has learned."""
        return self._counts.actions

    def index(self, state: Label | Row) -> int | None:
        """Index of the state of a label, a raw value or a row; None if no state matches."""
        try:
            return self._arrival_index[state]
        except (KeyError, TypeError):
            index = self._policy.reader.find(state)
        if index is not None and self._is_label(state):
            self._arrival_index[state] = index
        return index

    def label(self, index: int) -> Label:
        """Label of the state with this index."""
        return self._counts.states.labels[index]

    # Deciding.

    def decide(
        self,
        state: Label | Row,
        *,
        uniform: float | None = None,
        allowed: Iterable[Label] | None = None,
        floor: float = 0.0,
    ) -> Label:
        """Sample an action from the rule of a state.

        Parameters
        ----------
        state : label, raw value or row
            A label; a raw value, where the state is a bin of one column; or the values of the
            state's columns by name, such as ``{"lactate": 1.9, "ward": "A"}``.
        uniform, allowed, floor
            As `choose` has them.

        Raises
        ------
        UnknownLabelError
            If no state matches, unless the learner has ``on_unseen="prior"``: then the prior
            answers, with an `UnseenStateWarning`.
        """
        if uniform is not None or allowed is not None or floor:
            return self._choose(state, uniform, allowed, floor).action
        index = None
        if not isinstance(state, dict):  # a row has no index of its own
            try:
                index = self._state_index.get(state)
            except TypeError:  # another kind of row, or no label
                index = None
        row = self._row(state) if index is None else self._rows[index]
        left = next(self._uniform) * fsum(row)
        for action, weight in zip(self._actions, row):  # noqa: B905 (a check takes 0.1 us)
            left -= weight
            if left < 0:
                return action
        return self._actions[row.index(max(row))]  # only rounding leads here

    def choose(
        self,
        state: Label | Row,
        *,
        uniform: float | None = None,
        allowed: Iterable[Label] | None = None,
        floor: float = 0.0,
    ) -> Choice:
        """Sample an action like `decide`, and return it with its probability.

        Parameters
        ----------
        state : label, raw value or row
            As for `decide`.
        uniform : float, optional
            A random number from [0, 1) to sample with; by default the loop's own. The same number
            in the same state of the loop gives the same choice.
        allowed : labels of actions, optional
            The actions that are possible now; all by default. The rule is conditioned on them. If
            it gives all of them probability 0, those that the goal does not forbid are equally
            probable.
        floor : float
            Smallest probability of every action that is allowed now and not forbidden. With k such
            actions, a probability p becomes ``floor + (1 - k floor) p``.

        Raises
        ------
        UnknownLabelError
            As `decide` does, and for an unknown action.
        InfeasibleError
            If the goal forbids every action that is allowed now.
        """
        return self._choose(state, uniform, allowed, floor)

    def rule(
        self,
        state: Label | Row,
        *,
        allowed: Iterable[Label] | None = None,
        floor: float = 0.0,
    ) -> dict[Label, float]:
        """The rule that the next decision in a state is sampled from; asking changes nothing.

        Parameters
        ----------
        state : label, raw value or row
            As for `decide`.
        allowed, floor
            As `choose` has them.
        """
        if isinstance(self._rows, PlannedRows):  # the only ones that may use random numbers
            random_state = self._exploring.bit_generator.state
            row, total = self._weights(state, allowed, floor, stacklevel=5)
            self._exploring.bit_generator.state = random_state
        else:
            row, total = self._weights(state, allowed, floor, stacklevel=5)
        return {action: weight / total for action, weight in zip(self._actions, row, strict=True)}

    def _choose(
        self,
        state: Label | Row,
        uniform: float | None,
        allowed: Iterable[Label] | None,
        floor: float,
    ) -> Choice:
        """For `decide` and `choose`; each calls it directly, so a warning points at its caller."""
        row, total = self._weights(state, allowed, floor, stacklevel=6)
        if uniform is None:
            uniform = next(self._uniform)
        else:
            require_uniform(uniform)
        left = uniform * total
        for action, weight in zip(self._actions, row):  # noqa: B905 (a check takes 0.1 us)
            left -= weight
            if left < 0:
                return Choice(action, weight / total)
        largest = max(row)  # only rounding leads here
        return Choice(self._actions[row.index(largest)], largest / total)

    def _weights(
        self, state: Label | Row, allowed: Iterable[Label] | None, floor: float, stacklevel: int
    ) -> tuple[list[float], float]:
        """Numbers proportional to the rule of a state: [A]; and their sum."""
        index = None
        if not isinstance(state, dict):  # as in `decide`
            try:
                index = self._state_index.get(state)
            except TypeError:
                index = None
        if index is None:
            index = self._known_index(state, stacklevel)
        row = self._base.unseen_row if index is None else self._rows[index]
        if allowed is None and not floor:
            return row, fsum(row)  # the same on every Python, which `sum` is not
        require_floor(floor)
        return conditioned(row, self._possible(index, allowed), floor), 1.0

    def _row(self, state: Label | Row) -> list[float]:
        """Numbers proportional to the rule of a state that the loop has not used yet: [A]."""
        index = self._known_index(state, stacklevel=5)
        return self._base.unseen_row if index is None else self._rows[index]

    def _possible(self, index: int | None, allowed: Iterable[Label] | None) -> list[int]:
        """Indices of the actions that are allowed now and not forbidden."""
        permitted = self._permitted.get(index)
        if permitted is None:
            permitted = self._base.permitted_in(index)
            self._permitted[index] = permitted
        if allowed is None:
            return permitted

        # Labels of actions, or their keys.
        if isinstance(allowed, str):
            raise ParameterError(f"allowed is a list of actions, such as [{allowed!r}]")
        now = {self._find_action(action) for action in allowed}
        if not now:
            raise ParameterError("allowed names no action; leave it out to allow all")
        return [action for action in permitted if action in now]

    def _find_action(self, action: Label) -> int:
        """Index of an action."""
        try:
            return self._action_index[action]
        except (KeyError, TypeError):
            index = self._counts.actions.index(action)
        self._action_index[action] = index
        return index

    def _known_index(self, state: Label | Row, stacklevel: int) -> int | None:
        """Index of a state that the loop has not used yet; None if the prior answers for it."""
        find = self._policy.reader.deciding_index
        index = known_index(find, state, refuse=self._refuse, stacklevel=stacklevel)
        if index is not None and self._is_label(state):
            self._state_index[state] = index
        return index

    def _is_label(self, state: Label | Row) -> bool:
        """Whether this is a label, whose index is remembered; raw values would be too many."""
        return not is_row(state) and self._counts.states.has(state)
