"""Compiled sampling of sparse models from the posterior of `hierarchy`.

`gibbs` leaves states of its sampler behind. A model is sampled from one of them: first the chains,
then the row of every state and action. `samples.SparseSamples` describes the layout.

Import this module where it is needed, not at the top of a module: numba takes a while to import. It
does not notice changes of `gibbs`, whose loops it calls: touch this file after changing them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise._numerics.compilation import compiled
from pastwise.models.gibbs import (
    SMALLEST,
    Kept,
    Prior,
    find,
    sample_chains,
    sample_gamma,
    sample_moves,
    standardise,
)

NEGLIGIBLE = 1e-8
"""Probabilities of a chain below this are left out of sums over it."""


class RowLog(NamedTuple):
    """The transitions of a log, sorted by state and action, with what rare rows need.

    Attributes
    ----------
    first : [S * A + 1]
        First transition of each row.
    next_state : [E]
    records : [E]
        How many records count.
    unseen_rarity : [S]
        Rarity of an action that was never taken in the state, also used for those that hardly were.
    is_rare : [S, A]
        Whether an action was hardly ever taken in the state: it may lead elsewhere than others.
    strangeness_power : float
        Power of a uniform number that is the share of the base in the chain of such actions.
    entered : [S]
        How many records that count enter each state, at least one.
    unseen_deviation : float
        Standard deviation of the lean of such actions from that of others.
    usual_steps : [A, K]
        Displacements over which a move is spread; the atom of a row may have any other.
    """

    first: IntArray
    next_state: IntArray
    records: FloatArray
    unseen_rarity: FloatArray
    is_rare: BoolArray
    strangeness_power: float
    entered: FloatArray
    unseen_deviation: float
    usual_steps: IntArray


class Lines(NamedTuple):
    """The lines of one sampled model: chains, then leaning chains; see `samples.SparseSamples`.

    Attributes
    ----------
    first : [2 * S + 1]
        Where each line begins.
    column, probability : [2 * entries]
        Next states and their probabilities. What is negligible is left out.
    cumulative : [2 * entries]
        Sums of the probabilities from the first entry of each line on.
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    cumulative: FloatArray


@compiled
def _vary_base(
    prior: Prior,
    entered: FloatArray,
    column_of_entry: IntArray,
    base: FloatArray,
    cumulative: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Vary a base measure [entries] as uncertainly as it is known how often states are entered.

    Its sums from the first entry of each state on are written to ``cumulative``.
    """
    factor = np.ones(len(entered) + 1)
    for n in range(len(entered)):
        factor[n] = rng.standard_gamma(entered[n]) / entered[n]
    for s in range(len(prior.first) - 1):
        total = 0.0
        for j in range(prior.first[s], prior.first[s + 1]):
            base[j] = max(base[j] * factor[column_of_entry[j]], SMALLEST)
            total += base[j]
        passed = 0.0
        for j in range(prior.first[s], prior.first[s + 1]):
            base[j] /= total
            passed += base[j]
            cumulative[j] = passed


@compiled
def _sample_lines(
    prior: Prior,
    kept: Kept,
    h: int,
    log: RowLog,
    column_of_entry: IntArray,
    lines: Lines,
    rng: np.random.Generator,
) -> None:
    """Sample the chains of a kept state of the sampler.

    For actions that were hardly ever taken they are mixed with their base, and lean.
    """
    S = len(prior.first) - 1
    z = np.empty(len(column_of_entry))
    chain = np.empty(len(column_of_entry))
    base = prior.bases[kept.base[h]].copy()
    cumulative = np.empty(len(base))
    _vary_base(prior, log.entered, column_of_entry, base, cumulative, rng)
    pull = prior.pull[kept.pull[h]]
    sample_chains(prior, kept.tables[h], pull, base, cumulative, chain, rng)
    standardise(prior, chain, z)
    strangeness = rng.random() ** log.strangeness_power
    unseen_lean = prior.lean[kept.lean[h]] * rng.random()
    unseen_lean += log.unseen_deviation * rng.standard_normal()

    end = 0
    for line in range(2 * S):
        lines.first[line] = end
        s = line % S
        is_leaning = line >= S
        if is_leaning and not log.is_rare[s].any():
            continue
        tilt = unseen_lean * log.unseen_rarity[s] if is_leaning else 0.0
        share = strangeness if is_leaning else 0.0
        norm = 0.0
        for j in range(prior.first[s], prior.first[s + 1]):
            start = (1 - share) * chain[j] + share * base[j]
            if start > NEGLIGIBLE:
                lines.probability[end] = start * np.exp(tilt * z[j]) if is_leaning else start
                lines.column[end] = column_of_entry[j]
                norm += lines.probability[end]
                end += 1
        passed = 0.0
        for j in range(lines.first[line], end):
            lines.probability[j] /= norm
            passed += lines.probability[j]
            lines.cumulative[j] = passed
    lines.first[2 * S] = end


@compiled
def atom_share(mass: float) -> float:
    """Share of the atom that gives a row of the prior the variance of a Dirichlet process.

    Under a Dirichlet process of mass m and base b, the mean of any function f of the next state has
    the expectation E_b[f] and the variance Var_b[f] / (1 + m). One atom sampled from b, with the
    share 1 / sqrt(1 + m), and the rest spread as b give the same two moments.
    """
    return float(1 / np.sqrt(1 + mass))


@compiled
def _sample_row(
    log: RowLog,
    row: int,
    mass: float,
    line: int,
    num_states: int,
    lines: Lines,
    move_mass: float,
    move: FloatArray,
    cumulative: FloatArray,
    steps: IntArray,
    s: int,
    column: IntArray,
    probability: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Sample a row into its entries: transitions that were seen, an atom, and a line.

    The posterior of a row, Dirichlet(records + m chain), is that of a mixture: with a share of
    Beta(records, m), next states that were seen there, Dirichlet(records); for the rest a row of
    the prior, Dirichlet(m chain). One atom and the chain itself give that row its first two
    moments; see `atom_share`. What follows the move, with a mass of its own, is another part of the
    mixture: it has an atom, too, and the usual steps of the action.

    Parameters
    ----------
    mass, move_mass : float
        Of the chain and of the move.
    move, cumulative : [2 S - 1]
        Distribution of the displacement, and its sums.
    steps : [K]
        The usual ones; none where there are no moves.
    """
    # The shares of the prior's row.
    unseen = sample_gamma(mass, rng) if mass > 0 else 0.0
    moved = sample_gamma(move_mass, rng) if move_mass > 0 else 0.0
    total = unseen + moved
    num_seen = log.first[row + 1] - log.first[row]
    for e in range(num_seen):
        probability[e] = sample_gamma(log.records[log.first[row] + e], rng)
        column[e] = log.next_state[log.first[row] + e]
        total += probability[e]
    if total == 0:
        unseen = 1.0 if mass > 0 else 0.0
        moved = 1.0 - unseen
        total = 1.0
    for e in range(num_seen):
        probability[e] /= total
    unseen /= total
    moved /= total

    # Its atom, and its line.
    of_line = lines.cumulative[lines.first[line] : lines.first[line + 1]]
    j = lines.first[line] + find(of_line, rng.random())
    share = atom_share(mass)
    probability[num_seen] = share * unseen
    column[num_seen] = lines.column[j]
    probability[num_seen + 1] = (1 - share) * unseen
    column[num_seen + 1] = num_states + 1 + line
    if len(steps):
        after = num_seen + 2
        _spread_move(
            moved,
            move_mass,
            move,
            cumulative,
            steps,
            s,
            column[after:],
            probability[after:],
            rng,
        )


@compiled
def _spread_move(
    total: float,
    mass: float,
    move: FloatArray,
    cumulative: FloatArray,
    steps: IntArray,
    s: int,
    column: IntArray,
    probability: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Spread a total over an atom and the usual steps [K] of a move: K + 1 entries."""
    S = (len(move) + 1) // 2
    K = len(steps)
    column[: K + 1] = s
    probability[: K + 1] = 0.0
    if total == 0:
        return

    # The atom.
    to = s + find(cumulative, rng.random()) - (S - 1)
    share = atom_share(mass)
    probability[K] = share * total
    column[K] = to if 0 <= to < S else s

    # The usual steps.
    norm = 0.0
    for k in range(K):
        to = s + steps[k]
        column[k] = to if 0 <= to < S else s
        probability[k] = max(move[S - 1 + steps[k]], SMALLEST)
        norm += probability[k]
    for k in range(K):
        probability[k] *= (1 - share) * total / norm


@compiled
def sample_models(
    prior: Prior,
    kept: Kept,
    chosen: IntArray,
    mass_factor: FloatArray,
    carried_over: FloatArray,
    log: RowLog,
    column_of_entry: IntArray,
    column: IntArray,
    probability: FloatArray,
    line_first: IntArray,
    line_column: IntArray,
    line_probability: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Sample sparse models; `samples.SparseSamples` describes their layout.

    Parameters
    ----------
    chosen : [n]
        The kept state of the sampler that each model is sampled from.
    mass_factor : [n]
        What its masses are multiplied by.
    carried_over : [n]
        What the shares of moves are multiplied by where an action was hardly ever taken.
    column_of_entry : [entries]
        Next state of each entry of a chain.
    column, probability : [n, E + (2 or K + 3) * S * A]
        Written to: the entries of each row; K + 3 where there are K usual steps.
    line_first : [n, 2 * S + 1]
    line_column, line_probability : [n, 2 * entries]
        Written to: the lines.
    """
    S = len(prior.first) - 1
    A = (len(log.first) - 1) // S
    K = log.usual_steps.shape[1]
    entries_of_mean = K + 3 if K else 2
    moves = np.empty((A, 2 * S - 1))
    move_cumulative = np.empty(moves.shape)
    line_cumulative = np.empty(line_probability.shape[1])
    for i in range(len(chosen)):
        h = chosen[i]
        lines = Lines(line_first[i], line_column[i], line_probability[i], line_cumulative)
        _sample_lines(prior, kept, h, log, column_of_entry, lines, rng)
        if K:
            sample_moves(prior, kept.move_tables[h], moves, rng)
            for a in range(A):
                move_cumulative[a] = np.cumsum(moves[a])
        for row in range(S * A):
            s = row // A
            a = row % A
            start = log.first[row] + entries_of_mean * row
            if prior.is_open[s]:
                line = S + s if log.is_rare[s, a] else s
                mass = mass_factor[i] * prior.mass[kept.mass[h, s]]
                share = prior.share[kept.share[h, s, a]] if K else 0.0
                if log.is_rare[s, a]:
                    share *= carried_over[i]
                _sample_row(
                    log,
                    row,
                    (1 - share) * mass,
                    line,
                    S,
                    lines,
                    share * mass,
                    moves[a],
                    move_cumulative[a],
                    log.usual_steps[a],
                    s,
                    column[i, start:],
                    probability[i, start:],
                    rng,
                )
            else:
                # A terminal state is never left.
                end = start + entries_of_mean
                column[i, start:end] = s
                probability[i, start:end] = 0.0
                probability[i, start] = 1.0


@compiled
def expect_table(
    first: IntArray,
    column: IntArray,
    probability: FloatArray,
    line_first: IntArray,
    line_column: IntArray,
    lines: FloatArray,
    elsewhere: FloatArray,
    table: FloatArray,
    out: FloatArray,
) -> None:
    """E[table(state, action, next_state)] in sparse models, as `sample_models` writes them.

    Parameters
    ----------
    first : [S * A + 1]
        First entry of each row of the models.
    elsewhere : [S, A]
        Mean of the table over the states that no chain lists.
    table : [S, A, S]
    out : [n, S, A]
        Written to.
    """
    n, S, A = out.shape
    for i in range(n):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for e in range(first[s * A + a], first[s * A + a + 1]):
                    to = column[i, e]
                    p = probability[i, e]
                    if to < S:
                        total += p * table[s, a, to]
                    elif to == S:
                        total += p * elsewhere[s, a]
                    else:
                        line = to - S - 1
                        mean = 0.0
                        for j in range(line_first[i, line], line_first[i, line + 1]):
                            end = line_column[i, j]
                            of_end = table[s, a, end] if end < S else elsewhere[s, a]
                            mean += lines[i, j] * of_end
                        total += p * mean
                out[i, s, a] = total
