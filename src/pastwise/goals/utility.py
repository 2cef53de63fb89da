r"""Utility: a goal as a quantity to collect, epoch by epoch.

An ideal ranks transitions by the logarithm of their probability. The utility is that logarithm on
a scale of length 1,

.. math::

    u(s, a, s') = \frac{\ln p_I(s' \mid s, a) + \ln p_I(a \mid s) - \text{least}}
                       {\text{best} - \text{least}},

so that the best transition has utility 1 and the least wanted one 0. It is stored as the sum of two
parts, one of the next state and one of the action, in the shapes of the ideal's factors.

Where a goal says what rules are judged by (`Goal.score`), the part that it is about is the score on
the same scale instead: a state of half the weight has half the utility, though its logarithm is
near that of the best one. What a planner collects is then what an evaluation measures.

Where episodes end, the zero matters as well: a longer episode collects more of anything positive.
A reward and a preference for actions alone then keep their own zero, and any other goal has its
zero at the least wanted next state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, Indices, IntArray, entries
from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel


@dataclass(frozen=True, eq=False)
class LogUtility:
    """How well the records of a log serve a goal; every field is [...], one entry for each log.

    Attributes
    ----------
    mean : [...]
        Mean utility of the records, with half a record of utility 1 and half a record of utility 0
        added, so that the mean of an empty log is 1/2.
    total_weight : [...]
        Sum of the records' weights.
    is_useful : [...]
        Whether any record has more than the least utility that is possible.
    """

    mean: FloatArray
    total_weight: FloatArray
    is_useful: BoolArray


@dataclass(frozen=True, eq=False)
class Utility:
    """How much each transition is wanted, as the sum of a part of the next state and of the action.

    Attributes
    ----------
    next_state_part : [1 or S, 1 or A, S]
        From 0 to 1; with terminal states, a reward or a preference for actions keeps its own zero.
    action_part : [1 or S, A]
        0 for the best action, negative for others.
    terminal : [number]
        Terminal states: episodes end there.
    after_end : [number]
        Utility of every epoch after the end of an episode, for each terminal state: 0 if it stops
        there; otherwise staying in the terminal state counts like arriving there.
    stops_at_end : bool
        Whether utilities add up until the end of an episode and nothing is collected after it, as
        `evaluation.criterion` has it: with terminal states, for a reward, for a goal that depends
        on states or actions, and for one that wants nothing but terminal states.
    unit, origin : float
        A utility u is ``origin + unit * u`` in the goal's own unit. The origin is 0 where utilities
        add up.
    is_measure : bool
        Whether an evaluation measures this utility. It does not count a preference for actions next
        to one for states, and judges a table by its probabilities, not by their logarithms.

    Examples
    --------
    >>> ideal = IdealModel.of([0.6, 0.3, 0.1], num_actions=2)
    >>> utility = Utility.of(ideal, terminal=np.array([], dtype=np.int64))
    >>> utility.next_state_part.round(3).tolist()
    [[[1.0, 0.613, 0.0]]]
    >>> utility.of_transitions(state=0, action=1, next_state=1).round(3).tolist()
    0.613
    """

    next_state_part: FloatArray
    action_part: FloatArray
    terminal: IntArray
    after_end: FloatArray
    stops_at_end: bool = False
    unit: float = 1.0
    origin: float = 0.0
    is_measure: bool = True

    @classmethod
    def of(cls, ideal: IdealModel, terminal: IntArray, *, forbidden_ratio: float = 1e-5) -> Utility:
        """The utility of a single goal.

        Parameters
        ----------
        ideal : IdealModel
            The goal, without leading axes.
        terminal : [number]
            Terminal states.
        forbidden_ratio : float
            What has probability 0 in the ideal is treated as if it were this many times as
            probable as the least probable of the rest. The default is the floor that a goal
            gives to states that are not preferred.
        """
        if ideal.log_transition.ndim > 3 or ideal.log_rule.ndim > 2:
            raise ParameterError(
                "a utility takes one goal at a time; this ideal has leading axes for several"
            )

        # Both factors relative to their best value, finite everywhere.
        log_transition = ideal.log_transition
        anywhere = np.broadcast_to(np.True_, log_transition.shape)
        next_state_part = _relative_to_best(log_transition, anywhere, forbidden_ratio)
        action_part = ideal.log_rule
        if ideal.normalised:
            log_rule, allowed = np.broadcast_arrays(ideal.log_rule, ideal.allowed)
            action_part = _relative_to_best(log_rule, allowed, forbidden_ratio)

        # The scale takes the worst action into the worst state one unit below the best.
        least_next_state = next_state_part.min()
        scale = -(least_next_state + action_part.min())
        if scale == 0:
            return cls._constant(ideal, next_state_part.shape, action_part.shape, terminal)

        # The zero of the scale.
        if not len(terminal):
            zero = scale
        elif ideal.normalised:
            zero = -least_next_state
        else:
            zero = ideal.log_scale
        next_state_part = (next_state_part + zero) / scale
        action_part = action_part / scale

        # The goal's own unit.
        stops_at_end = _stops_at_end(ideal, terminal)
        unit = 1.0
        origin = 0.0
        is_measure = False
        if ideal.score is not None:
            next_state_part, action_part = _scored(ideal, next_state_part, action_part)
            unit, origin = _in_goal_unit(ideal.score, next_state_part, stops_at_end)
            is_of_actions = ideal.normalised and ideal.score.ndim > 1
            if is_of_actions and stops_at_end:
                next_state_part = next_state_part + ideal.score.max() / unit
            is_measure = is_of_actions or not ideal.normalised or not action_part.any()

        # What an epoch after the end of an episode still collects.
        after_end = np.zeros(len(terminal))
        if not stops_at_end:
            after_end = next_state_part[0, 0, terminal]
        return cls(
            next_state_part,
            action_part,
            terminal,
            after_end,
            stops_at_end,
            unit,
            origin,
            is_measure,
        )

    @classmethod
    def _constant(
        cls,
        ideal: IdealModel,
        next_state_shape: tuple[int, ...],
        action_shape: tuple[int, ...],
        terminal: IntArray,
    ) -> Utility:
        """The utility of a goal that ranks all transitions equal.

        It is 0 everywhere, unless it adds up until the end of an episode: a reward of -1 for every
        step wants the end to come soon.
        """
        score = 0.0 if ideal.score is None else float(ideal.score.max())
        adds_up = score != 0 and _stops_at_end(ideal, terminal)
        return cls(
            next_state_part=np.full(next_state_shape, np.sign(score) if adds_up else 0.0),
            action_part=np.zeros(action_shape),
            terminal=terminal,
            after_end=np.zeros(len(terminal)),
            stops_at_end=adds_up,
            unit=abs(score) if adds_up else 1.0,
            origin=0.0 if adds_up else score,
            is_measure=ideal.score is not None,
        )

    @classmethod
    def one_per_epoch(cls, num_states: int, terminal: IntArray) -> Utility:
        """1 for every transition until the episode ends; it collects the episode's length."""
        return cls(
            next_state_part=np.ones((1, 1, num_states)),
            action_part=np.zeros((1, 1)),
            terminal=terminal,
            after_end=np.zeros(len(terminal)),
            stops_at_end=len(terminal) > 0,
        )

    @property
    def concerns_next_states_only(self) -> bool:
        """Whether the part of the next state is the same for every state and action."""
        return self.next_state_part.shape[:2] == (1, 1)

    @property
    def is_indifferent(self) -> bool:
        """Whether all transitions have the same utility."""
        return float(np.ptp(self.next_state_part)) == 0 and float(np.ptp(self.action_part)) == 0

    @cached_property
    def minimum(self) -> float:
        """The least utility that a transition can have."""
        return float(self.next_state_part.min() + self.action_part.min())

    def of_transitions(self, state: Indices, action: Indices, next_state: Indices) -> FloatArray:
        """Utility of the given transitions, by index: [...] each -> [...]."""
        of_next_state = entries(self.next_state_part, state, action, next_state)
        of_action = entries(self.action_part, state, action)
        return np.asarray(of_next_state + of_action)

    def of_log(self, counts: TransitionCounts) -> LogUtility:
        """Utility of the records of each log."""
        # Utility of every distinct transition of the log.
        utility = self.of_transitions(counts.state, counts.action, counts.next_state)

        # Sums over each system's log.
        total_utility = counts.sum_by_system(counts.weight * utility)
        total_weight = counts.sum_by_system(counts.weight)
        is_useful = counts.sum_by_system(utility > self.minimum) > 0

        # Half a record either way keeps the mean of an empty log at 1/2.
        mean = (total_utility + 0.5) / (total_weight + 1.0)
        return LogUtility(mean, total_weight, is_useful)


def _stops_at_end(ideal: IdealModel, terminal: IntArray) -> bool:
    """Whether utilities add up until the end of an episode; see `Utility`."""
    if not len(terminal):
        return False
    score = ideal.score
    is_of_next_states = ideal.log_transition.shape[:2] == (1, 1)
    if not ideal.normalised or not is_of_next_states or (score is not None and score.ndim > 1):
        return True
    log_transition = ideal.log_transition[0, 0]
    is_wanted = log_transition > log_transition.min() if score is None else score > 0
    return bool(np.isin(np.flatnonzero(is_wanted), terminal).all())


def _scored(
    ideal: IdealModel, next_state_part: FloatArray, action_part: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The parts of a utility with the goal's score in the place of the logarithm that it is about.

    Each part keeps its smallest and its largest value. A reward is its logarithm already.
    """
    score = ideal.score
    if score is None or not ideal.normalised:
        return next_state_part, action_part
    if score.ndim == 1:
        return _rescaled(score[None, None, :], next_state_part), action_part
    return next_state_part, _rescaled(score[..., 0], action_part)


def _rescaled(score: FloatArray, part: FloatArray) -> FloatArray:
    """The score from the smallest to the largest value of a part."""
    length = np.ptp(score)
    if length == 0:
        return part
    return np.asarray(part.min() + np.ptp(part) * (score - score.min()) / length)


def _in_goal_unit(
    score: FloatArray, next_state_part: FloatArray, stops_at_end: bool
) -> tuple[float, float]:
    """Unit and origin of a utility; see `Utility`."""
    length = float(np.ptp(score))
    if length == 0:
        return 1.0, 0.0
    share = float(np.ptp(next_state_part)) if score.ndim == 1 else 1.0
    unit = length / share
    if stops_at_end:
        return unit, 0.0
    return unit, float(score.max() - unit * next_state_part.max())


def _relative_to_best(
    log_values: FloatArray, allowed: BoolArray, forbidden_ratio: float
) -> FloatArray:
    """Logarithms less the largest allowed one, finite everywhere and not above 0 where allowed.

    Parameters
    ----------
    log_values, allowed : of one shape
        What is not allowed gets the least of the allowed values, so that it does not stretch the
        scale.
    forbidden_ratio : float
        What ``-inf``, a probability of 0, becomes relative to the least of the finite values.
    """
    is_possible = ~np.isneginf(log_values)
    is_choice = is_possible & allowed

    best = log_values[is_choice].max()
    relative = np.where(is_possible, log_values, 0.0) - best
    least_possible = relative[is_choice].min()
    relative = np.where(is_possible, relative, least_possible + np.log(forbidden_ratio))

    least_allowed = relative[allowed].min()
    return np.asarray(np.where(allowed, relative, least_allowed))
