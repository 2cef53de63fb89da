"""Goal: what is wanted, in a person's words and labels.

A goal names states to be in, or targets for each field of a state, or a reward, or a whole table of probabilities;
actions to prefer, and actions that must not be taken. `Goal.on` turns it into the arrays of an `IdealModel` over
given states and actions.

With preferences and a floor every other state gets exactly the floor and the preferred ones share the rest by their
weights.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, normalise
from pastwise._numerics.checks import require_memory
from pastwise.data.space import Label, Space, checked_label, key_of
from pastwise.goals.ideal import IdealModel

DEFAULT_FLOOR = 1e-5
"""Probability of a state that is not preferred; less where the many others would have more than a hundredth in all."""

OTHERS_SHARE = 0.01

BY_NEXT_STATE = "give numbers by next state alone, or a reward by state and action"
"""What to do instead of a goal that is a table of all transitions."""

Weights = Mapping[Label, float]
Forbidden = tuple[Label | None, Label]
"""A state, or None for every state, and the action that must not be taken there."""


@dataclass(frozen=True, repr=False)
class Goal:
    """What is wanted.

    Parameters
    ----------
    prefer : label, list of labels, or labels with weights
        States to be in.
    targets : fields with labels, or with labels with weights
        For states of several fields: what each field should be. Fields multiply.
    reward : states with numbers, or nested by state, action (and next state)
        Reward of arriving in a state; a state that is not named has 0. Lower ``temperature`` follows it more strictly.
    table : next states with probabilities, or nested by state and action
        The whole ideal transition model; what is not named has probability 0, and so is forbidden.
    floor : float, optional
        Probability of every state that is not preferred: 1e-5, or 0.01 / (number of others) where that is smaller.
    prefer_actions, action_floor
        The same for actions; without preference all are alike.
    forbid : pairs (state, action)
        Actions that must not be taken in a state; None for every state.

    Examples
    --------
    >>> goal = Goal(prefer={"mild": 2, "warm": 1}, forbid=[("hot", "heat")])
    >>> goal
    Goal: be in mild (weight 2) or warm (weight 1); never heat in hot
    >>> states, actions = Space(("cold", "hot", "mild", "warm")), Space(("heat", "wait"))
    >>> goal.on(states, actions).transition[0, 0].round(5).tolist()
    [1e-05, 1e-05, 0.66665, 0.33333]
    """

    prefer: Any = field(default_factory=dict)
    floor: float | None = None
    targets: Mapping[str, Any] = field(default_factory=dict)
    reward: Mapping[Any, Any] = field(default_factory=dict)
    temperature: float = 1.0
    table: Mapping[Any, Any] = field(default_factory=dict)
    prefer_actions: Any = field(default_factory=dict)
    action_floor: float | None = None
    forbid: Sequence[Any] = ()

    def __post_init__(self) -> None:
        for name in ("prefer", "prefer_actions"):
            object.__setattr__(self, name, _weights(name, getattr(self, name)))
        targets = {
            name: _weights(f"targets.{name}", wanted)
            for name, wanted in _mapping("targets", self.targets).items()
        }
        object.__setattr__(self, "targets", targets)
        for name in ("reward", "table"):
            object.__setattr__(self, name, dict(_mapping(name, getattr(self, name))))
        if not isinstance(self.forbid, (list, tuple)):
            raise ValueError(f"forbid takes pairs of a state and an action, not {self.forbid!r}")
        object.__setattr__(self, "forbid", tuple(_forbidden(pair) for pair in self.forbid))
        wishes = [name for name in ("prefer", "targets", "reward", "table") if getattr(self, name)]
        if len(wishes) > 1:
            raise ValueError(
                f"a goal says what is wanted in one way; this one has {' and '.join(wishes)}"
            )
        if not wishes and not self.prefer_actions:
            raise ValueError("an empty goal: give prefer, targets, reward, table or prefer_actions")
        self._check_numbers()
        if self.reward and self.prefer_actions:
            raise ValueError(
                "a reward and prefer_actions do not go together; put the preference into the reward"
            )

    def _check_numbers(self) -> None:
        for name in ("floor", "action_floor"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value < 1):
                raise ValueError(f"{name} must lie in [0, 1), not {value}")
        if not (
            _is_number(self.temperature) and isfinite(self.temperature) and self.temperature > 0
        ):
            raise ValueError(f"the temperature must be positive, not {self.temperature}")
        for name, wanted in self.targets.items():
            if not wanted:
                raise ValueError(f"targets.{name}: nothing is wanted")

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Goal:
        """The goal with these parameters by name, as in a TOML file; unknown names are an error."""
        known = [f.name for f in fields(cls)]
        for name in content:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
                raise ValueError(f"unknown key {name!r} in the goal{hint}")
        return cls(**content)

    @classmethod
    def from_toml(cls, path: str | Path) -> Goal:
        """Read a goal from a TOML file."""
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from None
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """The parameters that are not at their default, as plain values; labels with values as lists of pairs."""
        default = Goal(prefer={"any": 1.0})
        content: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "prefer" or value != getattr(default, f.name):
                content[f.name] = _plain(value)
        if not self.prefer:
            del content["prefer"]
        return content

    def __repr__(self) -> str:
        return f"Goal: {self.describe()}"

    def describe(self) -> str:
        """The goal in words."""
        parts = []
        if self.prefer:
            parts.append(f"be in {_either(self.prefer)}")
        parts += [f"have {name} {_either(wanted)}" for name, wanted in self.targets.items()]
        if self.reward:
            parts.append(f"collect the reward (temperature {self.temperature:g})")
        if self.table:
            parts.append("follow the given table of probabilities")
        if self.floor is not None and (self.prefer or self.targets):
            parts.append(f"any other state has probability {self.floor:g}")
        if self.prefer_actions:
            parts.append(f"preferably do {_either(self.prefer_actions)}")
        for state, action in self.forbid:
            parts.append(
                f"never {key_of(action)}" + ("" if state is None else f" in {key_of(state)}")
            )
        return "; ".join(parts)

    def on(self, states: Space, actions: Space) -> IdealModel:
        """The goal as arrays over these states and actions; unknown labels are an error that names the nearest."""
        allowed = self._allowed(states, actions)
        if self.reward:
            reward = _nested("reward", self.reward, states, actions)
            return IdealModel.from_reward(
                reward, self.temperature, num_actions=len(actions), allowed=allowed
            )
        rule = None
        if self.prefer_actions:
            rule = _shares("prefer_actions", self.prefer_actions, actions, self.action_floor)
        return IdealModel.of(
            self._transition(states, actions), rule, num_actions=len(actions), allowed=allowed
        )

    def score(self, states: Space, actions: Space) -> FloatArray:
        """Worth of arriving in each state [S], or of each transition, broadcastable to [S, A, S]; for evaluation.

        The weight of a preferred state relative to the largest, 0 in any other; for targets the product over fields;
        the reward; the probability in a table, relative to the largest; where only actions are preferred, their weight.
        """
        if self.reward:
            return _nested("reward", self.reward, states, actions)
        if self.table:
            values = _nested("table", self.table, states, actions)
            return np.asarray(values / values.max())
        if self.targets:
            return np.asarray(np.prod([self._met(name, states) for name in self.targets], axis=0))
        if self.prefer:
            return _relative(self.prefer, states)
        return _relative(self.prefer_actions, actions)[None, :, None]

    def _met(self, name: str, states: Space) -> FloatArray:
        values, index = _field(name, states)
        return _relative(self.targets[name], values)[index]

    def _transition(self, states: Space, actions: Space) -> FloatArray:
        if self.targets:
            return normalise(np.prod([self._target(name, states) for name in self.targets], axis=0))
        if self.table:
            values = _nested("table", self.table, states, actions)
            shape = (*values.shape[:-1], len(states))
            require_memory("a table by state and action", shape, BY_NEXT_STATE)
            return np.broadcast_to(values, shape)
        if self.prefer:
            return _shares("prefer", self.prefer, states, self.floor)
        return np.full(len(states), 1 / len(states))

    def _target(self, name: str, states: Space) -> FloatArray:
        """Factor of one field for every state: [S]."""
        values, index = _field(name, states)
        return _shares(f"targets.{name}", self.targets[name], values, self.floor)[index]

    def _allowed(self, states: Space, actions: Space) -> BoolArray:
        if not self.forbid:
            return np.ones((1, len(actions)), dtype=bool)
        allowed = np.ones((len(states), len(actions)), dtype=bool)
        for state, action in self.forbid:
            with _naming("forbid"):
                where = slice(None) if state is None else states.index(state)
                allowed[where, actions.index(action)] = False
        helpless = ~allowed.any(axis=-1)
        if helpless.any():
            raise ValueError(
                f"forbid leaves state {states.labels[int(np.argmax(helpless))]!r} without any action"
            )
        return allowed


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Put the name of the part of the goal before an error's message."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{part}: {error}") from None


def _shares(part: str, wanted: Weights, space: Space, floor: float | None) -> FloatArray:
    """Every other label has exactly the floor, the wanted ones share the rest by weight: [len(space)]."""
    with _naming(part):
        chosen = space.indices(wanted)
    if len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"{part}: a label is named twice, as itself and by its key")
    others = len(space) - len(chosen)
    if floor is None:
        floor = min(DEFAULT_FLOOR, OTHERS_SHARE / others) if others else 0.0
    if floor * others >= 1:
        raise ValueError(
            f"{part}: {others} others with a floor of {floor:g} leave nothing for the preferred; lower it"
        )
    shares = np.full(len(space), float(floor))
    shares[chosen] = (1 - floor * others) * normalise(
        np.array(list(wanted.values()), dtype=np.float64)
    )
    return shares


def _field(name: str, states: Space) -> tuple[Space, IntArray]:
    """The values of a field, and for each state the index of its value."""
    if name not in states.fields:
        known = ", ".join(states.fields) or "none"
        raise ValueError(f"targets: the states have no field {name!r}; their fields are {known}")
    return states.field(name)


def _relative(wanted: Weights, space: Space) -> FloatArray:
    """Weights relative to the largest, 0 for what is not wanted: [len(space)]."""
    score = np.zeros(len(space))
    score[space.indices(wanted)] = np.array(list(wanted.values())) / max(wanted.values())
    return score


def _nested(part: str, table: Mapping[Label, Any], states: Space, actions: Space) -> FloatArray:
    """Numbers by next state [S], state and action [S, A, 1], or all three [S, A, S]; absent is 0."""
    if not any(isinstance(inner, Mapping) for inner in table.values()):
        flat = np.zeros(len(states))
        with _naming(part):
            flat[states.indices(table)] = [_number(value) for value in table.values()]
        return flat
    rows = {
        state: _mapping(f"{part}.{key_of(state)}", by_action) for state, by_action in table.items()
    }
    whole = any(
        isinstance(inner, Mapping) for by_action in rows.values() for inner in by_action.values()
    )
    shape = (len(states), len(actions), len(states) if whole else 1)
    require_memory(f"a {part} by state, action and next state", shape, BY_NEXT_STATE)
    full = np.zeros(shape)
    with _naming(part):
        for state, by_action in rows.items():
            for action, inner in by_action.items():
                row = full[states.index(state), actions.index(action)]
                if isinstance(inner, Mapping):
                    row[states.indices(inner)] = [_number(value) for value in inner.values()]
                else:
                    row[:] = _number(inner)
    return full


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _number(value: Any) -> float:
    if not _is_number(value) or not isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _pairs(value: Any) -> Any:
    """Lists of pairs, the form in which mappings with any labels are stored, back to a mapping; labels from lists."""
    if isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return {_label(label): _pairs(inner) for label, inner in value}
    return value


def _mapping(part: str, value: Any) -> Mapping[Any, Any]:
    value = _pairs(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"{part} must be a table of labels with values, not {value!r}")
    return value


def _label(value: Any) -> Label:
    return tuple(value) if isinstance(value, list) else value


def _weights(part: str, wanted: Any) -> dict[Label, float]:
    """Labels with positive weights; a label alone or in a list has weight 1."""
    value = _pairs(wanted)
    if isinstance(value, Mapping):
        weights = dict(value)
    else:
        labels = value if isinstance(value, (list, set, frozenset)) else [value]
        with _naming(part):
            weights = {checked_label(_label(label)): 1.0 for label in labels}
    for label, weight in weights.items():
        with _naming(f"{part}: {key_of(label)}"):
            if not _number(weight) > 0:
                raise ValueError(f"a weight must be positive, not {weight}")
    return weights


def _forbidden(pair: Any) -> Forbidden:
    if isinstance(pair, Mapping) and set(pair) <= {"state", "action"} and "action" in pair:
        return _label(pair.get("state")), _label(pair["action"])
    if isinstance(pair, (list, tuple)) and len(pair) == 2:
        return _label(pair[0]), _label(pair[1])
    raise ValueError(f"forbid takes pairs of a state and an action, not {pair!r}")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return [[_plain(label), _plain(inner)] for label, inner in value.items()]
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def _either(wanted: Weights) -> str:
    equal = len(set(wanted.values())) == 1
    return " or ".join(
        key_of(label) + ("" if equal else f" (weight {weight:g})")
        for label, weight in wanted.items()
    )
