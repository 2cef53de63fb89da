"""IdealModel: a decision maker's goal, as arrays.

A goal is an ideal closed-loop model: the joint distribution that the decision maker wants states
and actions to have. Like the closed loop itself, it factors in every epoch into an ideal transition
model and an ideal decision rule,

    ideal(next_state, action | state) =
        ideal.transition(next_state | state, action) * ideal.rule(action | state).

The factors are stored as logarithms, each in the smallest shape that broadcasts: a goal about next
states only takes S numbers, however many actions there are. Actions that are not allowed are a mask
next to the ideal, not zeros in it, so that they change neither its largest nor its smallest value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    Indices,
    Scalar,
    entries,
    frozen,
    where_first,
)
from pastwise._numerics.checks import checked_probabilities
from pastwise.errors import ParameterError


@dataclass(frozen=True, eq=False)
class IdealModel:
    """An ideal closed-loop model over S states and A actions, made by `of` or `from_reward`.

    Attributes
    ----------
    log_transition : [..., 1 or S, 1 or A, S]
        Logarithm of the ideal transition model. Leading axes, if any, are several goals.
    log_rule : [..., 1 or S, A]
        Logarithm of the ideal decision rule.
    allowed : [1 or S, A]
        Mask of the actions that may be taken.
    normalised : bool
        Whether the factors are probabilities. Those of a reward are not.
    log_scale : float
        Logarithm of the number by which an unnormalised ideal was divided. Added back to
        ``log_transition``, it gives reward / temperature.
    score : [S], or broadcastable to [S, A, S], optional
        What rules are judged by, in the goal's own unit; see `Goal.score`. Absent where nothing but
        the ideal is known.

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
    score: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("log_transition", "log_rule", "allowed"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

        S = self.num_states
        A = self.num_actions
        _require_shape("transition", self.log_transition, (S, A, S))
        _require_shape("rule", self.log_rule, (S, A))
        _require_shape("allowed", self.allowed, (S, A))

        has_no_action = ~self.allowed.any(axis=-1)
        if has_no_action.any():
            state = where_first(has_no_action)[0]
            raise ParameterError(
                f"state {state} has no allowed action; every state needs at least one"
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
        """The ideal with these two factors; each of their rows is a distribution.

        Parameters
        ----------
        transition : broadcastable to [S, A, S]
            Its last axis fixes the number of states; [S] is a goal about next states only.
        rule : broadcastable to [S, A], optional
            Its last axis fixes the number of actions. The default is uniform.
        num_actions : int, optional
            Number of actions, where neither ``transition``, ``rule`` nor ``allowed`` shows it.
        allowed : broadcastable to [S, A], optional
            Mask of the actions that may be taken; all by default.
        """
        ideal_transition = _with_axes(checked_probabilities("transition", transition), 3)
        A = _num_actions(num_actions, ideal_transition.shape[-2], rule, allowed)
        uniform_rule = np.full(A, 1 / A)
        ideal_rule = uniform_rule if rule is None else checked_probabilities("rule", rule)
        return cls(
            log_transition=_log(ideal_transition),
            log_rule=_with_axes(_log(ideal_rule), 2),
            allowed=_mask(allowed, A),
        )

    @classmethod
    def from_reward(
        cls,
        reward: ArrayLike,
        temperature: float,
        *,
        num_actions: int | None = None,
        allowed: ArrayLike | None = None,
    ) -> IdealModel:
        """The unnormalised ideal exp((reward - max reward) / temperature), which states a reward.

        As the temperature decreases, the policy designed for this ideal approaches the optimum of
        the Markov decision process with that reward over the same horizon. The ideal is not
        normalised on purpose: a normaliser that depends on the state or the action would enter
        gamma and shift the optimum.

        Parameters
        ----------
        reward : broadcastable to [S, A, S]
            A last axis of length 1 is a reward of the state and action, for any next state: it
            becomes the factor of the decision rule.
        temperature : float
            A lower temperature follows the reward more strictly.
        num_actions : int, optional
            Number of actions, where neither ``reward`` nor ``allowed`` shows it.
        allowed : broadcastable to [S, A], optional
            Mask of the actions that may be taken; all by default.
        """
        table = _with_axes(np.asarray(reward, dtype=np.float64), 3)
        is_finite = np.isfinite(table)
        if not is_finite.all():
            raise ParameterError(f"reward{list(where_first(~is_finite))} is not finite")
        if not temperature > 0:
            raise ParameterError(f"the temperature must be positive, not {temperature}")
        A = _num_actions(num_actions, table.shape[-2], None, allowed)

        best = table.max()
        with np.errstate(over="ignore"):
            log_ideal = (table - best) / temperature
        if not np.isfinite(log_ideal).all():
            raise ParameterError(
                f"the temperature {temperature} is too low for rewards that lie so far apart; "
                "raise it, or rescale the rewards"
            )

        # The reward belongs to the transition, or to the decision if the next state has no part.
        is_of_decision = table.shape[-1] == 1
        if is_of_decision:
            num_states = table.shape[-3]
            log_transition = np.zeros((1, 1, num_states))
            log_rule = np.broadcast_to(log_ideal[..., 0], (*table.shape[:-2], A))
        else:
            log_transition = log_ideal
            log_rule = np.zeros((1, A))
        return cls(
            log_transition,
            log_rule,
            _mask(allowed, A),
            normalised=False,
            log_scale=float(best / temperature),
        )

    @property
    def num_states(self) -> int:
        """Number of states, S."""
        return int(self.log_transition.shape[-1])

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        return int(self.log_rule.shape[-1])

    @property
    def rule(self) -> FloatArray:
        """The ideal decision rule: [..., 1 or S, A]."""
        return np.exp(self.log_rule)

    @property
    def transition(self) -> FloatArray:
        """The ideal transition model: [..., 1 or S, 1 or A, S]."""
        return np.exp(self.log_transition)

    def allowed_in(self, state: int) -> BoolArray:
        """Which actions may be taken in a state: [A]."""
        return np.asarray(self.allowed[state if len(self.allowed) > 1 else 0])

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
        log_transition = entries(self.log_transition, state, action, next_state)
        log_rule = entries(self.log_rule, state, action)
        return log_transition + log_rule

    @cached_property
    def log_peak(self) -> FloatArray:
        """Ln of the largest joint value, over all transitions: [...]."""
        best_next_state = self.log_transition.max(axis=-1)
        return np.asarray((best_next_state + self.log_rule).max(axis=(-2, -1)))

    @cached_property
    def log_floor(self) -> FloatArray:
        """Ln of the smallest positive joint value, over all transitions: [...]."""
        least_next_state = _inf_for_zeros(self.log_transition).min(axis=-1)
        return np.asarray((least_next_state + _inf_for_zeros(self.log_rule)).min(axis=(-2, -1)))


def _log(probabilities: FloatArray) -> FloatArray:
    """Natural logarithm of a table with few distinct numbers, with ln 0 = -inf.

    By ``math.log``: that of numpy rounds in another way on another kind of processor, and a policy
    must learn the same numbers from the same records everywhere.
    """
    distinct, place = np.unique(probabilities, return_inverse=True)
    logarithms = [math.log(each) if each > 0 else -math.inf for each in distinct.tolist()]
    return np.array(logarithms)[place].reshape(probabilities.shape)


def _inf_for_zeros(log_values: FloatArray) -> FloatArray:
    """Logarithms with +inf instead of ln 0, so that a minimum passes over zeros."""
    return np.where(np.isneginf(log_values), np.inf, log_values)


def _with_axes(values: NDArray[Scalar], number: int) -> NDArray[Scalar]:
    """The array with at least ``number`` axes."""
    num_missing = max(0, number - values.ndim)
    return values.reshape((1,) * num_missing + values.shape)


def _num_actions(given: int | None, axis_length: int, *tables: ArrayLike | None) -> int:
    """The number of actions, from any argument that shows it.

    Parameters
    ----------
    given : int, optional
        The number as an argument.
    axis_length : int
        Length of the transition model's action axis; 1 stands for any number.
    tables : arrays with actions on their last axis, optional
    """
    sizes: set[int] = set()
    if given is not None:
        sizes.add(given)
    if axis_length != 1:
        sizes.add(axis_length)
    for table in tables:
        if table is not None and np.ndim(table):
            sizes.add(np.shape(table)[-1])

    if not sizes:
        raise ParameterError("the number of actions is not known: give num_actions or rule")
    if len(sizes) > 1 or min(sizes) < 1:
        shown = " and ".join(str(size) for size in sorted(sizes))
        raise ParameterError(f"the number of actions cannot be {shown}")
    return int(sizes.pop())


def _mask(allowed: ArrayLike | None, num_actions: int) -> BoolArray:
    """The mask of allowed actions, all by default: [..., A] with at least two axes."""
    mask = np.ones((1, num_actions), dtype=bool) if allowed is None else np.asarray(allowed)
    if mask.dtype != bool:
        raise ParameterError(f"allowed must be a table of booleans, not of {mask.dtype}")
    return _with_axes(mask, 2)


def _require_shape(name: str, array: FloatArray | BoolArray, full: tuple[int, ...]) -> None:
    """Refuse an array whose last axes do not broadcast to the full shape."""
    trailing = array.shape[-len(full) :]
    fits = len(trailing) == len(full) and all(
        length in (1, full_length) for length, full_length in zip(trailing, full, strict=True)
    )
    if not fits:
        raise ParameterError(
            f"{name} of shape {array.shape} does not fit {full}, "
            "its shape for this number of states and actions"
        )
