"""A transition model learned from counts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, broadcast, fold, frozen, group_sum
from pastwise.data.counts import TransitionCounts, flat_key
from pastwise.errors import InfeasibleError, ParameterError, shown
from pastwise.models.rows import TransitionRows


def _with_absorbing_ends(counts: TransitionCounts) -> TransitionCounts:
    """The counts with every terminal state leading to itself, once, and nowhere else."""
    num_states = len(counts.states)
    num_actions = len(counts.actions)

    # One record (system, end, action, end) of every system, terminal state and action.
    systems = np.arange(prod(counts.shape))
    grid = np.meshgrid(systems, counts.terminal, np.arange(num_actions))
    system, end, action = (index.ravel() for index in grid)
    end_key = flat_key(system, end, action, end, num_states, num_actions)

    # These, and the records of the other states.
    kept = ~np.isin(counts.state, counts.terminal)
    key = np.concatenate([counts.key[kept], end_key])
    weight = np.concatenate([counts.weight[kept], np.ones(len(end_key))])
    order = np.argsort(key)
    return replace(counts, key=key[order], weight=weight[order])


class LearnedModel:
    """The mean of the Dirichlet posterior of a transition model: (count + background) / total.

    Every next state that was never seen shares one constant, so the dense tensor is never built.
    The model goes on learning: `observe` adds a record to each system in place and recomputes only
    what depends on its row. This is the model of FPD_learn.

    The counts are those of the log itself, not weighted by similarity: the world does not depend on
    the goal.

    Parameters
    ----------
    counts : TransitionCounts
        The log; its weights are the counts.
    background : float
        Prior count of every (state, action, next_state). Terminal states have none: they lead to
        themselves.
    dense_up_to : int
        Up to this many states every transition has an entry, seen or not, so that `observe` never
        inserts one. So few zeros cost less than an insertion does.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> counts = TransitionCounts.empty(Space.of_size(2), Space.of_size(1))
    >>> model = LearnedModel(counts, background=1.0)
    >>> model.observe(np.array(0), np.array(0), np.array(1))
    >>> model.row(np.array(0), np.array(0)).round(3).tolist()
    [0.333, 0.667]
    """

    def __init__(
        self, counts: TransitionCounts, background: float, *, dense_up_to: int = 8
    ) -> None:
        from pastwise._numerics import kernels

        if not (np.isfinite(background) and background > 0):
            raise ParameterError(f"the background count must be positive, not {background}")
        self.shape = counts.shape
        self.num_states = len(counts.states)
        self.num_actions = len(counts.actions)
        self.background = background
        self._states = counts.states
        self._system = np.arange(prod(self.shape)).reshape(self.shape)

        # Background of each row; terminal states lead to themselves.
        row_background = np.full((*self.shape, self.num_states, self.num_actions), background)
        if len(counts.terminal):
            counts = _with_absorbing_ends(counts)
            row_background[..., counts.terminal, :] = 0.0
        self._background = row_background.ravel()

        # Entries: of the transitions that were seen, or of all in a small system.
        key = counts.key
        value = counts.weight.copy()
        if self.num_states <= dense_up_to and row_background.any():
            size = row_background.size * self.num_states
            key = np.arange(size)
            value = group_sum(counts.key, value, size)
        self._rows = TransitionRows.from_keys(
            key, value, self.shape, self.num_states, self.num_actions
        )

        # Sums over each row.
        num_rows = self._rows.num_rows
        self._total = np.empty(num_rows)
        self._negentropy = np.empty(num_rows)
        kernels.tally(
            self._rows.first,
            self._rows.value,
            self._background,
            self.num_states,
            np.arange(num_rows),
            self._total,
            self._negentropy,
        )

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(self._by_state_action(self._negentropy))

    def _by_state_action(self, rows: FloatArray) -> FloatArray:
        """A number per row in the shape [*shape, S, A]."""
        return rows.reshape(*self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Run the backward recursion; see `TransitionModel.plan`."""
        feasible = self._rows.plan(now, policy, log_gamma, self._background, self._total)
        if not feasible and self._background.any():
            # Name the states that became impossible first, not those that followed from them.
            for values in log_gamma[:0:-1]:
                self._refuse_impossible(values)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        self._refuse_impossible(values)
        return self._rows.expect(values, self._background, self._total)

    def expect_each(self, values: FloatArray) -> FloatArray:
        """E[values(state, action, next_state)]: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        self._refuse_impossible(values)
        repeats = self.num_states // values.shape[-1]  # a single value stands for all next states
        value_sum = fold(np.add, values)
        unseen = self._by_state_action(self._background) * value_sum * repeats
        weighted_sum = self._rows.expect_each(values) + unseen
        return np.asarray(weighted_sum / self._by_state_action(self._total))

    def _refuse_impossible(self, values: FloatArray) -> None:
        """Refuse values of -inf: every next state has a positive probability."""
        if values.size and values.min() == -np.inf:
            impossible = np.isneginf(values)
            first = np.unique(np.nonzero(impossible)[-1])[:5].tolist()
            states = [self._states.labels[state] for state in first]
            raise InfeasibleError(
                f"the goal rules out next states {shown(states)} (or every action in them), but a "
                "learned model gives every next state a positive probability, so no decision is "
                "feasible; give them a floor instead, such as 1e-5"
            )

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        row = self._row_index(state, action)
        count = self._rows.dense(row.ravel()).reshape(*row.shape, self.num_states)
        weight = count + self._background[row][..., None]
        return np.asarray(weight / self._total[row][..., None])

    def _row_index(self, state: IntArray, action: IntArray) -> IntArray:
        """Flat (system, state, action) of one state and action in each system: [*shape]."""
        row = (self._system * self.num_states + state) * self.num_actions + action
        return np.asarray(row, dtype=np.int64) if row.dtype.kind in "iu" else row

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [*shape]."""
        from pastwise._numerics import kernels

        row = self._row_index(state, action)
        following = np.asarray(next_state)
        if row.shape != self.shape:
            row = broadcast("a record", row, self.shape)
        if following.shape != self.shape:
            following = broadcast("a record", following, self.shape)
        if row.dtype.kind != "i" or following.dtype.kind not in "iu":
            raise IndexError(
                f"states and actions are whole numbers, not {row.dtype} and {following.dtype}"
            )
        rows = self._rows
        rows.first, rows.column, rows.value = kernels.observe(
            *rows.arrays,
            self._background,
            self.num_states,
            row.ravel(),
            following.ravel().astype(np.int64, copy=False),
            self._total,
            self._negentropy,
        )
