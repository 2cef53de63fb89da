"""Conditions of a goal, as the states that satisfy them.

A goal may name a state by its label or by a condition on the columns of the log, such as
``wage >= 2``. A text that is a label is one. Any other that reads as a condition stands for the
states whose region satisfies it. A state that lies on both sides of a comparison is an error: no
answer would be right for all of its records.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from pastwise.data.conditions import (
    Condition,
    as_condition,
    incomparable,
    looks_like_condition,
    parse_condition,
    unranked,
    with_orders,
)
from pastwise.data.regions import Categories, Interval, Point, Region
from pastwise.data.space import Label, Space, key_of, nearest_keys
from pastwise.errors import ConditionError, GoalError, StraddleError, listed, shown
from pastwise.goals.parse import Forbidden, as_number

Regions = Mapping[Label, Region]
"""The region of each state."""


def _is_condition(text: str) -> bool:
    """Whether a label reads as a condition, as those of learned states do."""
    return as_condition(text) is not None


class StateFinder:
    """Finds the states that a goal means by a text.

    Parameters
    ----------
    regions : callable
        Returns the region of each state; called once, when a condition is met.
    states : Space
    """

    def __init__(self, regions: Callable[[], Regions], states: Space) -> None:
        self._get_regions = regions
        self.states = states

    @cached_property
    def regions(self) -> Regions:
        """The region of each state."""
        return self._get_regions()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the regions name."""
        names: dict[str, None] = {}
        for region in self.regions.values():
            names.update(dict.fromkeys(region))
        return tuple(names)

    @cached_property
    def _orders(self) -> Mapping[str, Sequence[Label]]:
        """Columns whose categories have an order, with their categories."""
        return {
            name: order
            for name, order in zip(self.states.fields, self.states.orders, strict=False)
            if order
        }

    # The parts of a goal.

    def weights(self, part: str, wanted: Mapping[Label, float]) -> dict[Label, float]:
        """States with weights; the largest counts where a state has several."""
        weights: dict[Label, float] = {}
        for given, weight in wanted.items():
            for label in self._states_of(part, given):
                weights[label] = max(weight, weights.get(label, weight))
        return weights

    def field_weights(self, name: str, wanted: Mapping[Label, float]) -> dict[Label, float]:
        """Values of a field of the states, with weights as in `weights`."""
        if name not in self.states.fields:
            return dict(wanted)  # whoever needs the field refuses it
        values, index_of_state = self.states.field(name)
        value_of_state = [values.labels[index] for index in index_of_state.tolist()]
        weights: dict[Label, float] = {}
        for given, weight in wanted.items():
            for label in self._values_of(name, given, values, value_of_state):
                weights[label] = max(weight, weights.get(label, weight))
        return weights

    def rewards(self, reward: Mapping[Label, object]) -> dict[Label, object]:
        """Rewards by state: numbers of one state add up, tables by action must not meet."""
        rewards: dict[Label, object] = {}
        for given, inner in reward.items():
            for label in self._states_of("reward", given):
                if label not in rewards:
                    rewards[label] = inner
                    continue
                both = (rewards[label], inner)
                if any(isinstance(each, Mapping) for each in both):
                    raise GoalError(
                        f"reward: two entries name the state {shown(key_of(label))}; rewards by "
                        "action need conditions that do not overlap",
                        "reward",
                    )
                rewards[label] = sum(as_number("reward", each) for each in both)
        return rewards

    def forbidden(self, pairs: Iterable[Forbidden]) -> tuple[Forbidden, ...]:
        """Pairs of a state and an action; a condition that no state satisfies forbids nothing."""
        found: dict[Forbidden, None] = {}
        for state, action in pairs:
            if state is None:
                found[(None, action)] = None
                continue
            for label in self._states_of("forbid", state, may_be_none=True):
                found[(label, action)] = None
        return tuple(found)

    # Labels and conditions.

    def _states_of(
        self, part: str, given: Label, *, may_be_none: bool = False
    ) -> tuple[Label, ...]:
        """The states that a label or a condition stands for.

        Parameters
        ----------
        part : str
            The part of the goal, for errors.
        given : label or text of a condition
            One that is neither is returned as it is: whoever needs its index refuses it.
        may_be_none : bool
            Whether a condition that no state satisfies is fine.
        """
        index = self.states.find(given)
        if index is not None:
            return (self.states.labels[index],)
        condition = self._condition_of(part, given, self.states)
        if condition is None:
            return (given,)
        answers = self._answers(part, condition)
        found = tuple(label for label, answer in answers.items() if answer)
        if not found and not may_be_none:
            raise self._nobody_has(part, condition)
        return found

    def _values_of(
        self, name: str, given: Label, values: Space, value_of_state: Sequence[Label]
    ) -> tuple[Label, ...]:
        """The values of a field that a label or a condition stands for."""
        part = f"targets.{name}"
        index = values.find(given)
        if index is not None:
            return (values.labels[index],)
        condition = self._condition_of(part, condition_on_field(name, given), values)
        if condition is None:
            return (given,)

        # The answer of each value: that of all states that have it.
        answers: dict[Label, bool] = {}
        answer_of_state = self._answers(part, condition).values()
        for value, answer in zip(value_of_state, answer_of_state, strict=True):
            if answers.setdefault(value, answer) != answer:
                raise GoalError(
                    f"{part}: {condition} depends on other fields than {name!r}; "
                    "use prefer in place of targets",
                    part,
                )
        found = tuple(value for value, answer in answers.items() if answer)
        if not found:
            raise self._nobody_has(part, condition)
        return found

    def _condition_of(self, part: str, given: Label, known: Space) -> Condition | None:
        """The condition that an unknown label states, if it may be meant as one."""
        if not looks_like_condition(given):
            return None
        try:
            condition = parse_condition(str(given))
        except ConditionError as error:
            near = nearest_keys(given, known.labels)
            if near and not any(_is_condition(key) for key in near):
                return None  # rather a label with a slip of the pen
            raise ConditionError(error.problem, error.text, error.position, part) from None
        self._require_columns(part, condition)
        return with_orders(condition, self._orders)

    def _require_columns(self, part: str, condition: Condition) -> None:
        """Refuse columns that the states were not made of, and text that these do not compare."""
        for name in condition.columns:
            if name in self.columns:
                continue
            near = difflib.get_close_matches(name, self.columns, n=1)
            hint = f"they are made of {listed(self.columns)}"
            if near:
                hint = f"did you mean {shown(near[0])}?"
            raise GoalError(
                f"{part}: {condition}: the states say nothing of a column {shown(name)}; {hint}",
                part,
            )
        problem = incomparable(condition, self.regions.values())
        problem = problem or unranked(condition, self._orders)
        if problem is not None:
            raise GoalError(f"{part}: {condition}: {problem}", part)

    def _answers(self, part: str, condition: Condition) -> dict[Label, bool]:
        """Whether each state satisfies a condition, in the order of the states."""
        answers = {}
        for label in self.states.labels:
            region = self.regions[label]
            answer = condition.decide(region)
            if answer is None:
                raise self._straddles(part, condition, label)
            answers[label] = answer
        return answers

    def _straddles(self, part: str, condition: Condition, label: Label) -> StraddleError:
        comparison = condition.undecided(self.regions[label])[0]
        return StraddleError(
            f"{part}: the state {shown(key_of(label))} lies on both sides of {comparison}; "
            "cut it there: learn with this goal from the log, or retarget with the log "
            "(log=, --log)",
            part,
            label,
            str(comparison),
        )

    def _nobody_has(self, part: str, condition: Condition) -> GoalError:
        """The error for a condition that no state satisfies."""
        values = "; ".join(self._range_of(name) for name in condition.columns)
        return GoalError(f"{part}: no state of the log has {condition} ({values})", part)

    def _range_of(self, name: str) -> str:
        """What the states have in a column."""
        ends: list[float] = []
        values: dict[str, None] = {}
        for region in self.regions.values():
            each = region.get(name)
            if isinstance(each, Interval):
                ends += [each.low, each.high]
            elif isinstance(each, Point):
                values[_visible(each.value)] = None
            elif isinstance(each, Categories):
                names = sorted(map(_visible, each.values))
                if each.is_complement:
                    names = [f"anything but {' and '.join(names)}"] if names else []
                values.update(dict.fromkeys(names))
        texts = listed(sorted(values), most=8) or "anything"
        if ends:
            span = f"{min(ends):g} to {max(ends):g}"
            texts = f"{span}, {texts}" if values else span
        return f"{name} is {texts}"


def _visible(value: Label) -> str:
    """A value as text; in quotes where there would be nothing to see."""
    key = key_of(value)
    return key if key.strip() else repr(key)


def condition_on_field(name: str, given: Label) -> Label:
    """A condition that leaves out its column, such as ``>= 2``, with the column.

    >>> condition_on_field("wage", ">= 2"), condition_on_field("wage", "low")
    ('`wage` >= 2', 'low')
    """
    if isinstance(given, str) and given.lstrip()[:1] in ("<", ">", "=", "!"):
        escaped = name.replace("`", "``")
        return f"`{escaped}` {given}"
    return given
