"""Where a rule goes, by the frequencies of a log: quick enough to follow a slider.

`evaluate_rule` reports the same by the posterior of the log, which takes longer. Here the next
state of a state and action is as frequent as in the log. A pair that the log does not have leads
where the other actions of its state lead; a state that the log never left is not left.

A log of N records leads to at most N places, so that many states need a sparse matrix.
"""

from __future__ import annotations

import numpy as np

from pastwise._numerics.arrays import FloatArray, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import occupancy


def expected_visits(
    rule: FloatArray, log: TransitionCounts, criterion: Criterion, *, dense_up_to: int = 300
) -> FloatArray:
    """Share of epochs in each state under a rule: [S].

    Parameters
    ----------
    rule : [S, A]
    log : TransitionCounts
        Without leading axes.
    criterion : Criterion
        Where episodes start, where they end, and how long they last.
    dense_up_to : int
        States up to which the matrix is dense: that is quicker there, on either side of the default
        both take about a millisecond.
    """
    S = len(log.states)
    by_pair = log.by_state_action(log.weight)
    by_state = by_pair.sum(axis=-1)

    # What the rule does where the log knows the pair, and the rest by state.
    is_seen = by_pair > 0
    known = np.where(is_seen, rule, 0.0)
    rest = np.where(is_seen, 0.0, rule).sum(axis=-1)

    # Each distinct transition carries its share of both.
    share_of_pair = log.weight / by_pair[log.state, log.action]
    share_of_state = log.weight / by_state[log.state]
    carried = known[log.state, log.action] * share_of_pair + rest[log.state] * share_of_state

    # Nothing is known of leaving the others.
    stays = np.flatnonzero(by_state == 0)
    origin = np.concatenate([log.state, stays])
    target = np.concatenate([log.next_state, stays])
    probability = np.concatenate([carried, np.ones(len(stays))])
    if dense_up_to >= S:
        closed_loop = group_sum(origin * S + target, probability, S * S).reshape(S, S)
        return occupancy(closed_loop, criterion)
    from scipy.sparse import csr_array  # heavy, and of no use to small systems

    return occupancy(csr_array((probability, (origin, target)), shape=(S, S)), criterion)
