"""Goal: what is wanted, in a person's words and labels.

A goal names states to be in, or targets for the fields of a state, or a reward, or a whole table of
probabilities; or it maximises the reward that the log itself has. It may also name actions to
prefer, and actions that must not be taken.

    what people write --parse--> Goal --on(states, actions)--> IdealModel --> Utility

`Goal.on` is for design: it turns the goal into an ideal distribution. With preferences and a floor,
every other state has exactly the floor as its probability, and the preferred ones share the rest in
proportion to their weights. `Goal.score` is for evaluation: it says how good each transition is in
units that people use, a reward or a weight. Both take labels: where the goal names states by
conditions, `Goal.resolved` finds the labels first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise._numerics.checks import checked_probabilities, require_memory
from pastwise.data.conditions import Condition, as_condition, looks_like_condition
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import GoalError, ParameterError, shown
from pastwise.goals.ideal import IdealModel
from pastwise.goals.parse import (
    as_forbidden,
    as_mapping,
    as_weights,
    is_finite_number,
    read_toml,
    require_known_keys,
    to_plain,
)
from pastwise.goals.resolve import Regions, StateFinder, condition_on_field
from pastwise.goals.tables import (
    BY_NEXT_STATE,
    Weights,
    allowed_actions,
    field_values,
    numbers,
    relative_weights,
    shares,
)


@dataclass(frozen=True, repr=False)
class Goal:
    """What is wanted, by ``prefer``, ``targets``, ``reward``, ``table`` or ``maximise``.

    Or of actions alone.

    Parameters
    ----------
    prefer : label, list of labels, or labels with weights
        States to be in. A state may be given by a condition on columns of the log, such as
        ``"wage >= 2"``, which stands for all states that satisfy it; see `data.conditions`. Where
        several entries name a state, the largest of their weights counts.
    floor : float, optional
        Probability of every state that is not preferred. The default is 1e-5, or
        0.01 / (number of others) where that is smaller.
    targets : fields with labels, or with labels with weights
        For states of several fields: the wanted values of each field, or a condition on it.
        Fields multiply.
    reward : states with numbers, or nested by state, action (and next state)
        Reward of arriving in a state; a state that is not named has 0. The rewards of conditions
        that a state satisfies add up.
    maximise : "reward", optional
        Collect the reward that the log has in its reward column; what its mean is in each state
        after each action is learned from the log.
    temperature : float
        A lower temperature follows the reward more strictly. With ``maximise`` it is relative to
        the range of the mean rewards: at 1, as by default, the ideal gives the least of them 1e-5
        of the weight of the largest, as the floor does to states that are not preferred.
    table : next states with probabilities, or nested by state and action
        The whole ideal transition model. What is not named has probability 0. FPD takes no action
        that may lead there, FPD_learn refuses such a goal, and to other methods such a transition
        is of no use; ``forbid`` what must never be done.
    prefer_actions, action_floor
        The same as ``prefer`` and ``floor`` for actions; without them all actions are equal. If
        you prefer states as well, name every action to make the preference mild; an evaluation
        then judges by the states alone.
    forbid : pairs (state, action)
        Actions that must not be taken in a state, which may be given by a condition; None for
        every state.

    Examples
    --------
    >>> goal = Goal(prefer={"mild": 2, "warm": 1}, forbid=[("hot", "heat")])
    >>> goal
    Goal: be in mild (weight 2) or warm (weight 1); never heat in hot
    >>> states = Space(("cold", "hot", "mild", "warm"))
    >>> actions = Space(("heat", "wait"))
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
    maximise: str | None = None

    def __post_init__(self) -> None:
        # Every form in which the parts may be given becomes one.
        targets = {}
        for name, wanted in as_mapping("targets", self.targets).items():
            targets[name] = as_weights(f"targets.{name}", wanted)
        parts = {
            "prefer": as_weights("prefer", self.prefer),
            "prefer_actions": as_weights("prefer_actions", self.prefer_actions),
            "targets": targets,
            "reward": dict(as_mapping("reward", self.reward)),
            "table": dict(as_mapping("table", self.table)),
            "forbid": as_forbidden(self.forbid),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)

        self._check_parts()
        self._check_numbers()

    def _check_parts(self) -> None:
        """Refuse a goal that wants nothing, or that says it in two ways."""
        if self.maximise not in (None, "reward"):
            raise GoalError(
                f"maximise takes 'reward', the log's reward column, not {shown(self.maximise)}",
                "maximise",
            )
        names = ("prefer", "targets", "reward", "table", "maximise")
        ways = [name for name in names if getattr(self, name)]
        if len(ways) > 1:
            raise GoalError(
                f"a goal says what is wanted in one way; this one has {' and '.join(ways)}: "
                "keep one of them"
            )
        if not ways and not self.prefer_actions:
            raise GoalError(
                "an empty goal: give prefer, targets, reward, table, maximise or prefer_actions"
            )
        if self.is_reward and self.prefer_actions:
            raise GoalError(
                "a reward and prefer_actions do not go together; "
                "put the preference into the reward",
                "prefer_actions",
            )
        for name, wanted in self.targets.items():
            if not wanted:
                raise GoalError(
                    f"targets.{name}: nothing is wanted; name at least one value", f"targets.{name}"
                )

    def _check_numbers(self) -> None:
        """Refuse floors and temperatures out of range."""
        for name in ("floor", "action_floor"):
            floor = getattr(self, name)
            if floor is None:
                continue
            if not is_finite_number(floor) or not 0 <= floor < 1:
                raise GoalError(f"{name} must lie in [0, 1), not {floor}", name)
        temperature = self.temperature
        if not is_finite_number(temperature) or temperature <= 0:
            raise GoalError(f"the temperature must be positive, not {temperature}", "temperature")

    @property
    def is_reward(self) -> bool:
        """Whether the goal is a reward, which adds up: its own numbers, or those of the log."""
        return bool(self.reward) or self.maximise is not None

    # From files and back

    @classmethod
    def from_reward(cls, temperature: float = 1.0, forbid: Sequence[Any] = ()) -> Goal:
        """The goal to collect as much as possible of the reward that the log has.

        >>> Goal.from_reward(forbid=[("ward A", "wait")])
        Goal: maximise the reward; never wait in ward A
        """
        return cls(maximise="reward", temperature=temperature, forbid=forbid)

    @classmethod
    def of(cls, given: object) -> Goal:
        """A goal from a goal, from its parameters in a mapping, or from the path of a TOML file."""
        if isinstance(given, Goal):
            return given
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
            return cls.from_toml(given)
        example = "'mild'"
        if isinstance(given, (str, list, set)):
            example = shown(given)
        raise GoalError(
            f"the goal must be a Goal, such as Goal(prefer={example}), its parameters in a "
            f"mapping, or a TOML file; not {shown(given)}"
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Goal:
        """The goal with these parameters by name, as in a TOML file; unknown names are an error."""
        require_known_keys(content, [parameter.name for parameter in fields(cls)])
        return cls(**content)

    @classmethod
    def from_toml(cls, path: str | Path) -> Goal:
        """Read a goal from a TOML file."""
        content = read_toml(path)
        try:
            return cls.from_dict(content)
        except GoalError as error:
            raise GoalError(f"{path}: {error}", error.part) from None

    def to_dict(self) -> dict[str, Any]:
        """The parameters that are not at their default, as plain values.

        Labels with values become lists of pairs, which keep the types of the labels in JSON.
        """
        content: dict[str, Any] = {}
        for parameter in fields(self):
            default = parameter.default
            if parameter.default_factory is not MISSING:
                default = parameter.default_factory()
            value = getattr(self, parameter.name)
            if value != default:
                content[parameter.name] = to_plain(value)
        return content

    # For people

    def __repr__(self) -> str:
        return f"Goal: {self.describe()}"

    def describe(self) -> str:
        """The goal as a sentence."""
        parts = []
        if self.prefer:
            parts.append(f"be {_places(self.prefer)}")
        for name, wanted in self.targets.items():
            names_column = all(as_condition(label) is not None for label in wanted)
            field_name = "" if names_column else f"{name} "
            parts.append(f"have {field_name}{_alternatives(wanted)}")
        if self.reward:
            parts.append(f"collect the reward (temperature {self.temperature:g})")
        if self.maximise:
            parts.append("maximise the reward")
        if self.table:
            parts.append("follow the given table of probabilities")
        if self.floor is not None and (self.prefer or self.targets):
            parts.append(f"any other state has probability {self.floor:g}")
        if self.prefer_actions:
            parts.append(f"preferably do {_alternatives(self.prefer_actions)}")
        for state, action in self.forbid:
            where = "" if state is None else f" {_preposition(state)} {key_of(state)}"
            parts.append(f"never {key_of(action)}{where}")
        return "; ".join(parts)

    @property
    def wanted_share(self) -> str:
        """Name of the share of time that the goal is met, as evaluations show it."""
        has_conditions = all(as_condition(label) is not None for label in self.prefer)
        if self.prefer and has_conditions and len(set(self.prefer.values())) == 1:
            return f"share of time {_places(self.prefer)}"
        return "share of time as wanted"

    # Conditions

    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that the goal may state, in order of appearance.

        Whether a text is a label or a condition is known once the states are; see `resolved`.
        """
        found = (as_condition(text) for text in self._state_texts())
        return tuple(condition for condition in found if condition is not None)

    def _state_texts(self) -> Iterator[Label]:
        """Everything that names a state or a value of a field, by label or by condition."""
        yield from self.prefer
        for name, wanted in self.targets.items():
            yield from (condition_on_field(name, given) for given in wanted)
        yield from self.reward
        yield from (state for state, _ in self.forbid)

    def resolved(self, regions: Callable[[], Regions], states: Space) -> Goal:
        """The goal with the labels of states in place of conditions.

        Parameters
        ----------
        regions : callable
            Returns the region of each state; called only if the goal has a condition.
        states : Space
            Texts that are labels of it, or keys of labels, are labels.

        Raises
        ------
        ConditionError
            If a text is neither a label nor a condition that can be read.
        StraddleError
            If a state has values on both sides of a comparison.
        GoalError
            If no state satisfies a condition.
        """
        if not any(looks_like_condition(text) for text in self._state_texts()):
            return self
        finder = StateFinder(regions, states)
        content = {each.name: getattr(self, each.name) for each in fields(Goal)}
        content["prefer"] = finder.weights("prefer", self.prefer)
        content["targets"] = {
            name: finder.field_weights(name, wanted) for name, wanted in self.targets.items()
        }
        content["reward"] = finder.rewards(self.reward)
        content["forbid"] = finder.forbidden(self.forbid)
        return ResolvedGoal(**content, stated=self)

    # For design

    def on(self, states: Space, actions: Space, rewards: FloatArray | None = None) -> IdealModel:
        """The goal as an ideal over these states and actions.

        Parameters
        ----------
        rewards : [S] or [S, A, 1], optional
            Mean rewards of the log, for a goal that maximises them.

        Raises
        ------
        GoalLabelError
            If the goal names a label that these spaces do not have.
        GoalError
            If it does not fit them in another way.
        """
        allowed = allowed_actions(self.forbid, states, actions)
        if self.is_reward:
            reward = self.score(states, actions, rewards)
            ideal = IdealModel.from_reward(
                reward, self._absolute(reward), num_actions=len(actions), allowed=allowed
            )
            return replace(ideal, score=reward)
        transition = self._ideal_transition(states, actions)
        rule = None
        if self.prefer_actions:
            rule = shares("prefer_actions", self.prefer_actions, actions, self.action_floor)
        ideal = IdealModel.of(transition, rule, num_actions=len(actions), allowed=allowed)
        if self.table:  # whoever gives the ideal itself means it
            return ideal
        return replace(ideal, score=self.score(states, actions))

    def _absolute(self, reward: FloatArray) -> float:
        """The temperature in the unit of the reward."""
        length = float(np.ptp(reward))
        if not self.maximise or length == 0:
            return self.temperature
        return self.temperature * length / float(np.log(1e5))

    def _ideal_transition(self, states: Space, actions: Space) -> FloatArray:
        """Ideal probabilities of next states: [S], or [S, A, S] for a table by state and action."""
        if self.targets:
            factors = []
            for name, wanted in self.targets.items():
                values, index = field_values(name, states)
                factors.append(shares(f"targets.{name}", wanted, values, self.floor)[index])
            return normalise(np.prod(factors, axis=0))
        if self.table:
            return self._table_probabilities(states, actions)
        if self.prefer:
            return shares("prefer", self.prefer, states, self.floor)
        return np.full(len(states), 1 / len(states))

    def _table_probabilities(self, states: Space, actions: Space) -> FloatArray:
        values = numbers("table", self.table, states, actions)
        shape = (*values.shape[:-1], len(states))
        require_memory("a table by state and action", shape, BY_NEXT_STATE)
        try:
            return checked_probabilities("table", np.broadcast_to(values, shape))
        except ParameterError as error:
            raise GoalError(str(error), "table") from None

    # For evaluation

    def score(self, states: Space, actions: Space, rewards: FloatArray | None = None) -> FloatArray:
        """How good it is to arrive in each state [S]; or each transition, as far as it matters.

        A preferred state has its weight relative to the largest, any other state 0. Targets have
        the product over the fields, a reward its numbers, a table its probabilities relative to
        the largest. Where only actions are preferred, their relative weights count. A goal that
        maximises the log's reward has the mean rewards themselves.

        Parameters
        ----------
        rewards : [S] or [S, A, 1], optional
            Mean rewards of the log, for a goal that maximises them.

        Returns
        -------
        [S], or broadcastable to [S, A, S]
        """
        if self.maximise:
            if rewards is None:
                raise GoalError(
                    "a goal that maximises the reward needs a log with rewards; "
                    "name its reward column, reward= or --reward",
                    "maximise",
                )
            return rewards
        if self.reward:
            return numbers("reward", self.reward, states, actions)
        if self.table:
            probabilities = numbers("table", self.table, states, actions)
            return np.asarray(probabilities / probabilities.max())
        if self.targets:
            factors = []
            for name, wanted in self.targets.items():
                values, index = field_values(name, states)
                factors.append(relative_weights(f"targets.{name}", wanted, values)[index])
            return np.asarray(np.prod(factors, axis=0))
        if self.prefer:
            return relative_weights("prefer", self.prefer, states)
        by_action = relative_weights("prefer_actions", self.prefer_actions, actions)
        return by_action[None, :, None]


@dataclass(frozen=True, repr=False)
class ResolvedGoal(Goal):
    """A goal with labels in place of its conditions, which still reads as it was stated.

    Attributes
    ----------
    stated : Goal
        The goal with its conditions.
    """

    stated: Goal | None = None

    def to_dict(self) -> dict[str, Any]:
        """The goal as it was stated, as plain values."""
        return self._original.to_dict()

    def describe(self) -> str:
        """The goal as it was stated, as a sentence."""
        return self._original.describe()

    @property
    def wanted_share(self) -> str:
        """Name of the share of time that the goal is met."""
        return self._original.wanted_share

    @property
    def _original(self) -> Goal:
        if self.stated is None:
            raise GoalError("a resolved goal needs the goal that was stated")
        return self.stated


def _preposition(label: Label) -> str:
    """What goes before a state: "in" a label, "where" a condition."""
    return "in" if as_condition(label) is None else "where"


def _places(wanted: Weights) -> str:
    """States joined by "or": "in a or b or where x >= 2"."""
    texts = []
    previous = ""
    for label in wanted:
        text = key_of(label)
        preposition = _preposition(label)
        if preposition == "where" or preposition != previous:
            text = f"{preposition} {text}"
        previous = preposition
        texts.append(text)
    return _joined(texts, wanted)


def _alternatives(wanted: Weights) -> str:
    """Labels joined by "or"."""
    return _joined([key_of(label) for label in wanted], wanted)


def _joined(texts: Sequence[str], wanted: Weights) -> str:
    """Texts of labels joined by "or", with the labels' weights where these differ."""
    if len(set(wanted.values())) == 1:
        return " or ".join(texts)
    weights = wanted.values()
    pairs = zip(texts, weights, strict=True)
    return " or ".join(f"{text} (weight {weight:g})" for text, weight in pairs)
