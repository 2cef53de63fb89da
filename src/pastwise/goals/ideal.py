"""IdealModel: the goal of a decision maker, as arrays.

A goal is an ideal closed-loop model, the joint distribution that the decision maker would like states and actions to
have. Like the closed loop itself it factors, epoch by epoch, into an ideal transition model and an ideal decision
rule,

    ideal(next_state, action | state) = ideal.transition(next_state | state, action) * ideal.rule(action | state).

The factors are kept as logarithms, in the smallest shape that broadcasts: a goal that speaks of next states only is S
numbers, however many actions there are. Extremes of the joint are taken over these stored factors. Actions that are
not allowed are a mask beside the ideal, not zeros in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    Indices,
    entries,
    frozen,
    log,
    where_first,
)
from pastwise._numerics.checks import checked_probabilities


@dataclass(frozen=True, eq=False)
class IdealModel:
    """An ideal closed-loop model over S states and A actions; `of` and `from_reward` make one.

    Attributes
    ----------
    log_transition : [..., 1 or S, 1 or A, S]
    log_rule : [..., 1 or S, A]
        Leading axes, where there are any, are several goals.
    allowed : [1 or S, A]
        Which actions may be taken at all.
    normalised : bool
        Whether the factors are probabilities; an ideal that comes from a reward is not.
    log_scale : float
        Ln of what an unnormalised ideal was divided by: with it added back, ``log_transition`` is reward / temperature.

    Examples
    --------
    >>> ideal = IdealModel.of(transition=[0.98, 0.01, 0.01], num_actions=4)
    >>> ideal.num_states, ideal.num_actions, ideal.rule.tolist()
    (3, 4, [[0.25, 0.25, 0.25, 0.25]])
    """

    log_transition: FloatArray
    log_rule: FloatArray
    allowed: BoolArray
    normalised: bool = True
    log_scale: float = 0.0

    def __post_init__(self) -> None:
        for name in ("log_transition", "log_rule", "allowed"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        S, A = self.num_states, self.num_actions
        _check_shape("transition", self.log_transition, (S, A, S))
        _check_shape("rule", self.log_rule, (S, A))
        _check_shape("allowed", self.allowed, (S, A))
        helpless = ~self.allowed.any(axis=-1)
        if helpless.any():
            raise ValueError(
                f"state {where_first(helpless)[0]} has no allowed action; every state needs at least one"
            )

    @classmethod
    def of(
        cls,
        transition: ArrayLike,
        rule: ArrayLike | None = None,
        *,
        num_actions: int | None = None,
        allowed: ArrayLike | None = None,
    ) -> IdealModel:
        """The ideal with these two factors, each row a distribution.

        Parameters
        ----------
        transition : broadcastable to [S, A, S]
            The last axis fixes the number of states: [S] is a goal over next states alone.
        rule : broadcastable to [S, A], optional
            The last axis fixes the number of actions; uniform if absent, and then ``num_actions`` must be known from
            ``transition``, ``allowed`` or the argument.
        allowed : broadcastable to [S, A], optional
            Mask of the actions that may be taken; all by default.
        """
        ideal_transition = _with_axes(checked_probabilities("transition", transition), 3)
        A = _num_actions(num_actions, ideal_transition.shape[-2], rule, allowed)
        ideal_rule = np.full(A, 1 / A) if rule is None else checked_probabilities("rule", rule)
        return cls(log(ideal_transition), _with_axes(log(ideal_rule), 2), _mask(allowed, A))

    @classmethod
    def from_reward(
        cls,
        reward: ArrayLike,
        temperature: float,
        *,
        num_actions: int | None = None,
        allowed: ArrayLike | None = None,
    ) -> IdealModel:
        """The unnormalised ideal exp((reward - max reward) / temperature), which turns a reward into a goal.

        As the temperature falls, its design attains the optimum of the Markov decision process with that reward over
        the same horizon. It is left unnormalised on purpose: a normaliser that depends on the state or action would
        enter gamma and shift the optimum.

        Parameters
        ----------
        reward : broadcastable to [S, A, S]
            A last axis of length 1 is a reward of what is done, wherever it leads: it becomes the decision's factor.
        """
        table = _with_axes(np.asarray(reward, dtype=np.float64), 3)
        if not np.isfinite(table).all():
            raise ValueError(f"reward{list(where_first(~np.isfinite(table)))} is not finite")
        if not temperature > 0:
            raise ValueError(f"the temperature must be positive, not {temperature}")
        A = _num_actions(num_actions, table.shape[-2], None, allowed)
        with np.errstate(over="ignore"):
            log_ideal = (table - table.max()) / temperature
        if not np.isfinite(log_ideal).all():
            raise ValueError(
                f"the temperature {temperature} is too low for rewards that lie so far apart"
            )
        peak = float(table.max() / temperature)
        factors = log_ideal, np.zeros((1, A))
        if table.shape[-1] == 1:
            factors = (
                np.zeros((1, 1, table.shape[-3])),
                np.broadcast_to(log_ideal[..., 0], (*table.shape[:-2], A)),
            )
        return cls(*factors, _mask(allowed, A), normalised=False, log_scale=peak)

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.log_transition.shape[-1])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.log_rule.shape[-1])

    @property
    def rule(self) -> FloatArray:
        """The ideal decision rule: [..., 1 or S, A]."""
        return np.exp(self.log_rule)

    @property
    def transition(self) -> FloatArray:
        """The ideal transition model: [..., 1 or S, 1 or A, S]."""
        return np.exp(self.log_transition)

    @property
    def concerns_next_states_only(self) -> bool:
        """Whether the ideal transition model is the same for every state and action."""
        return self.log_transition.shape[-3:-1] == (1, 1)

    @cached_property
    def log_rule_allowed(self) -> FloatArray:
        """Logarithm of the ideal rule, -inf where an action is not allowed: [..., 1 or S, A]."""
        return frozen(np.where(self.allowed, self.log_rule, -np.inf))

    def log_joint(self, state: Indices, action: Indices, next_state: Indices) -> FloatArray:
        """Ln ideal(next_state, action | state) of the given transitions."""
        return entries(self.log_transition, state, action, next_state) + entries(
            self.log_rule, state, action
        )

    @cached_property
    def log_peak(self) -> FloatArray:
        """Ln of the largest joint value, over all transitions: [...]."""
        best = self.log_transition.max(axis=-1)
        return np.asarray((best + self.log_rule).max(axis=(-2, -1)))

    @cached_property
    def log_floor(self) -> FloatArray:
        """Ln of the smallest positive joint value, over all transitions: [...]."""
        least = _without_zeros(self.log_transition).min(axis=-1)
        return np.asarray((least + _without_zeros(self.log_rule)).min(axis=(-2, -1)))


def _without_zeros(log_values: FloatArray) -> FloatArray:
    return np.where(np.isneginf(log_values), np.inf, log_values)


def _with_axes(values: FloatArray, number: int) -> FloatArray:
    """The array with at least ``number`` axes."""
    return values.reshape((1,) * max(0, number - values.ndim) + values.shape)


def _num_actions(given: int | None, width: int, *tables: ArrayLike | None) -> int:
    """The number of actions that is given, or that the tables (last axis) or the transition model's axis show."""
    sizes: set[int] = {
        np.shape(table)[-1] for table in tables if table is not None and np.ndim(table)
    } | ({width} - {1})
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError("the number of actions is not known: give num_actions or rule")
    if len(sizes) > 1 or min(sizes) < 1:
        raise ValueError(
            f"the number of actions cannot be {' and '.join(str(size) for size in sorted(sizes))}"
        )
    return int(sizes.pop())


def _mask(allowed: ArrayLike | None, num_actions: int) -> BoolArray:
    mask = np.ones((1, num_actions), dtype=bool) if allowed is None else np.asarray(allowed)
    if mask.dtype != bool:
        raise ValueError(f"allowed must be a table of booleans, not of {mask.dtype}")
    return mask.reshape((1,) * max(0, 2 - mask.ndim) + mask.shape)


def _check_shape(name: str, array: FloatArray | BoolArray, full: tuple[int, ...]) -> None:
    trailing = array.shape[-len(full) :]
    if len(trailing) < len(full) or any(
        n not in (1, m) for n, m in zip(trailing, full, strict=True)
    ):
        raise ValueError(
            f"{name} of shape {array.shape} does not fit {full}, its shape for this number of states and actions"
        )
