"""The closed loop of a system and a decision maker, and the ideal closed loop that states a goal.

A *Markov decision process* has S states, A actions and a transition model
p(next_state | state, action): what follows depends on the last state and action alone. A *policy*
is a sequence of decision rules, rule_t(action | state). Together they form a *closed loop*, whose
probability factors into

    p(trajectory) = p(s_0) * product over epochs t of
                    transition(next_state | state, action) * rule_t(action | state).

A goal is a closed loop too, the *ideal* one: the joint distribution that states and actions should
have. It factors in the same way,

    ideal(next_state, action | state) = ideal.transition(next_state | state, action)
                                        * ideal.rule(action | state),

and takes the place of the reward of a Markov decision process; `fpd.implied_reward` converts one
into the other.

    paper                    code                            shape
    s_(t-1), a_t, s_t        state, action, next_state       indices
    p(s_t | a_t, s_(t-1))    transition                      [S, A, S]
    p_t(a_t | s_(t-1))       rule                            [S, A]
    the sequence of them     policy                          [H, S, A]
    the ideal's factors      ideal.transition, ideal.rule    broadcastable to [S, A, S], [S, A]

`TransitionModel` (package `models`) stores a transition model, `IdealModel` (package `goals`) an
ideal. `ideal_preferring` and `uniform_rule` are the goals and the random rule of the paper's
experiments.

Paper: Definition 1 [MDP], Definition 2 [def:closed_loop_descr],
Definition 3 [def:ideal_closed-loop_beh], Eq. (1) [eq:closed-loop_beh].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pastwise._numerics.arrays import FloatArray, batch_index, log, normalise
from pastwise.data.records import Trajectory
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel


def log_probability(
    model: TransitionModel, initial: FloatArray, policy: FloatArray, trajectory: Trajectory
) -> FloatArray:
    """Ln p(trajectory) of the closed loop of a system and a policy: [...].

    Paper: Definition 2 [def:closed_loop_descr], factored as in Eq. (1) [eq:closed-loop_beh].

    Parameters
    ----------
    model : TransitionModel
        Leading axes [...] are independent systems.
    initial : [..., S]
        p(s_0).
    policy : [..., N or 1, S, A]
        The rule of each epoch; one rule for all epochs where that axis is 1.
    trajectory : Trajectory
        States [..., N + 1] and actions [..., N].
    """
    if policy.ndim < 3:
        raise ParameterError(
            f"a policy has the axes [..., epoch, state, action]; got shape {policy.shape}"
        )
    state, action, next_state = trajectory.transitions
    num_steps = action.shape[-1]
    num_rules = policy.shape[-3]
    if num_rules not in (1, num_steps):
        raise ParameterError(
            f"a policy of {num_rules} rules does not fit a trajectory of {num_steps} epochs; "
            "give one rule, or one for each epoch"
        )
    system = batch_index(model.shape)
    policy = np.broadcast_to(policy, (*model.shape, *policy.shape[-3:]))

    # ln p(s_0), then the two factors of each epoch.
    total = log(initial[(*system, trajectory.states[..., 0])])
    for t in range(num_steps):
        s = state[..., t]
        a = action[..., t]
        n = next_state[..., t]
        log_transition = log(model.row(s, a)[(*system, n)])
        log_rule = log(policy[(*system, t % num_rules, s, a)])
        total = total + log_transition + log_rule
    return np.asarray(total)


def ideal_preferring(
    preferred: Sequence[int], num_states: int, num_actions: int, floor: float = 1e-5
) -> IdealModel:
    """The ideal that prefers some next states equally and has no preference among actions.

    Paper: an ideal closed loop, Definition 3 [def:ideal_closed-loop_beh]; the past goals,
    Eqs. (11) [eq:past_model_1], (12) [eq:past_model_12] and (13) [eq:past_model_3]; the current
    one, Eq. (14) [eq:current_ideal_model_1].

    Parameters
    ----------
    preferred : sequence of int
        The preferred next states; they share what the others leave.
    floor : float
        Probability of every other next state; 1e-5 is the paper's choice.

    Examples
    --------
    >>> ideal_preferring([0], num_states=3, num_actions=4).transition.round(6).tolist()
    [[[0.99998, 1e-05, 1e-05]]]
    """
    num_preferred = len(preferred)
    transition = np.full(num_states, floor)
    transition[list(preferred)] = (1 - floor * (num_states - num_preferred)) / num_preferred
    return IdealModel.of(transition, num_actions=num_actions)


def uniform_rule(ideal: IdealModel) -> FloatArray:
    """Decision rule that gives every allowed action the same probability: [1 or S, A].

    Paper: Eq. (15) [eq:random_strategy].
    """
    return normalise(ideal.allowed.astype(np.float64))
