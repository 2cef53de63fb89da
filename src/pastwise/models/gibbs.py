"""Compiled sweeps of the Gibbs sampler behind `hierarchy`, which describes the model.

A sweep samples, one after another and each given all the others, the lean, the share of the move in
each row and the weights of the shares, the mass of each state and the weights of the masses, the
tables of each chain and of each move, the pull and base of the chains, the chains, and the moves.
Rows are integrated out: given its mean, the counts of a row are Dirichlet-multinomial.

*Tables* are the auxiliary counts of the Chinese restaurant franchise: how many of the k records of
a transition were led there by the mean of the row, not by the row's earlier records. Each table was
led there by the chain or by the move, with probabilities proportional to their parts of the mean.
Tables make the posteriors of chains and moves Dirichlets. Where chains lean this is an
approximation: the rows are calibrated nevertheless, but masses are inferred too small.

Import this module where it is needed, not at the top of a module: numba takes a while to import.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise._numerics.compilation import compiled
from pastwise._numerics.vector_math import exp
from pastwise._numerics.vector_math import log as ln

SMALLEST = 1e-12
"""Smallest concentration; what underflows below it counts as this."""

PRODUCT_UP_TO = 12
"""Factors of a rising factorial that are multiplied; the others follow from Stirling's series,
whose error is below 1e-10 there."""

FAR_FROM_OVERFLOW = 1e150
"""Products are kept below this number and above its inverse; the factors of one transition may then
be multiplied without a test."""

HALF_LN_2_PI = 0.5 * math.log(2 * math.pi)

STICKS_FROM = 32
"""From this many entries on a chain is sampled by breaking sticks, which is faster then."""

SHORTEST_STICK = 1e-3
"""Share of the base's part of a chain that is not broken any further: a single entry gets it."""

TABLES_UP_TO = 2000
"""Customers seated one by one; further tables are added by their expected number."""

LARGEST_LEAN = 4.0
"""Values of next states are cut off at this many standard deviations before they lean a chain."""


class Log(NamedTuple):
    """The transitions of a log, sorted by state and action.

    Attributes
    ----------
    first : [S + 1]
        First transition of each state.
    action : [E]
    place : [E]
        The entry of the state's chain that leads to the transition's next state.
    step : [E]
        Displacement of the state's index: next state - state.
    records : [E]
        Number of records, whole.
    share : [E]
        How much of each of these records counts: the power of their likelihood.
    row_records : [S, A]
        Number of records of each row, whole.
    row_share : float
        How much of a record counts.
    """

    first: IntArray
    action: IntArray
    place: IntArray
    step: IntArray
    records: IntArray
    share: FloatArray
    row_records: IntArray
    row_share: float


class Prior(NamedTuple):
    """What is assumed before the log is seen.

    Attributes
    ----------
    first : [S + 1]
        First entry of each state's chain.
    bases, cumulative : [B, entries]
        Base measures of the chains, and their sums up to each entry of a state.
    pull : [K]
        Grid of the pull of the base, in records.
    mass : [G]
        Grid of the masses of rows, in records.
    mass_weight : [G]
        Concentration of the weights of the masses.
    lean : [L]
        Grid of the lean.
    lean_log_weight : [L]
    value : [entries]
        Value of arriving in the next state of each entry.
    rarity : [S, A]
        ln(1 + records) of each row, less the mean of the state's records.
    is_open : [S]
        False for terminal states, which have no chain.
    share : [W]
        Grid of the share of the move in the mean of a row; a single 0 if there are no moves.
    share_weight : [W]
        Concentration of the weights of the shares.
    move_base, move_cumulative : [2 S - 1]
        Base measure of the moves, over displacements from -(S - 1) to S - 1, and its sums.
    move_pull : float
        Pull of that base, in records.
    """

    first: IntArray
    bases: FloatArray
    cumulative: FloatArray
    pull: FloatArray
    mass: FloatArray
    mass_weight: FloatArray
    lean: FloatArray
    lean_log_weight: FloatArray
    value: FloatArray
    rarity: FloatArray
    is_open: BoolArray
    share: FloatArray
    share_weight: FloatArray
    move_base: FloatArray
    move_cumulative: FloatArray
    move_pull: float


class Kept(NamedTuple):
    """States of the sampler that are kept, H of them.

    Attributes
    ----------
    tables : [H, entries]
    pull, base, lean : [H]
        Indices of the grids.
    mass : [H, S]
        Likewise.
    share : [H, S, A]
        Likewise; of no state if there are no moves.
    move_tables : [H, A, 2 S - 1]
        Of no action if there are no moves.
    """

    tables: FloatArray
    pull: IntArray
    base: IntArray
    lean: IntArray
    mass: IntArray
    share: IntArray
    move_tables: FloatArray


@compiled
def _stirling(x: float) -> float:
    """Ln Gamma(x) for x >= 8, by Stirling's series."""
    inverse = 1 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square / 1260))
    return (x - 0.5) * ln(x) - x + HALF_LN_2_PI + series


@compiled
def log_rising(start: float, steps: int) -> float:
    """Ln of start (start + 1) ... (start + steps - 1), which is ln Gamma(start + steps) / Gamma."""
    product = 1.0
    for i in range(min(steps, PRODUCT_UP_TO)):
        product *= start + i
    result = float(np.log(product))
    if steps > PRODUCT_UP_TO:
        result += _stirling(start + steps) - _stirling(start + PRODUCT_UP_TO)
    return result


@compiled
def _choose(log_weight: FloatArray, rng: np.random.Generator) -> int:
    """An index with probability proportional to exp(log_weight)."""
    weight = np.exp(log_weight - log_weight.max())
    target = rng.random() * weight.sum()
    passed = 0.0
    for i in range(len(weight)):
        passed += weight[i]
        if target < passed:
            return i
    return len(weight) - 1


@compiled
def _number_of_tables(records: int, concentration: float, rng: np.random.Generator) -> int:
    """Tables of a restaurant after so many customers."""
    tables = 1
    for seated in range(1, min(records, TABLES_UP_TO)):
        if rng.random() * (concentration + seated) < concentration:
            tables += 1
    if records > TABLES_UP_TO:
        ratio = (concentration + records) / (concentration + TABLES_UP_TO)
        tables += int(concentration * np.log(ratio) + rng.random())
    return tables


@compiled
def sample_gamma(shape: float, rng: np.random.Generator) -> float:
    """A gamma-distributed number; the library is slow for small shapes.

    It is Gamma(shape + 1) times a power 1 / shape of a uniform number.
    """
    if shape >= 1:
        return rng.standard_gamma(shape)
    return float(rng.standard_gamma(shape + 1) * np.exp(-rng.standard_exponential() / shape))


@compiled
def find(cumulative: FloatArray, target: float) -> int:
    """The first place whose sum is above the target, or the last."""
    low = 0
    high = len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def sample_dirichlet(concentration: FloatArray, out: FloatArray, rng: np.random.Generator) -> None:
    """A sample of a Dirichlet distribution, written to ``out``."""
    total = 0.0
    for i in range(len(concentration)):
        out[i] = sample_gamma(max(concentration[i], SMALLEST), rng)
        total += out[i]
    if total > 0:
        for i in range(len(out)):
            out[i] /= total
    else:
        # All of them underflowed: the sample is one of its corners.
        out[:] = 0.0
        out[_choose(np.log(concentration + SMALLEST), rng)] = 1.0


@compiled
def standardise(prior: Prior, chain: FloatArray, out: FloatArray) -> None:
    """Values of next states in standard deviations of each state's chain: [entries]."""
    for s in range(len(prior.first) - 1):
        mean = 0.0
        square = 0.0
        for j in range(prior.first[s], prior.first[s + 1]):
            mean += chain[j] * prior.value[j]
            square += chain[j] * prior.value[j] ** 2
        deviation = np.sqrt(max(square - mean * mean, 1e-18))
        for j in range(prior.first[s], prior.first[s + 1]):
            z = (prior.value[j] - mean) / deviation
            out[j] = min(max(z, -LARGEST_LEAN), LARGEST_LEAN)


@compiled
def _tilt(z: float, tilt: float) -> float:
    """exp(tilt * z), relative to the largest possible one."""
    return exp(tilt * z - abs(tilt) * LARGEST_LEAN)


@compiled
def _tilted_total(chain: FloatArray, z: FloatArray, tilt: float, tilted: FloatArray) -> float:
    """Sum of chain * `_tilt` (z) over the entries of a state; ``tilted`` is overwritten."""
    # Two loops, since a sum does not become vector instructions.
    for j in range(len(chain)):
        tilted[j] = chain[j] * _tilt(z[j], tilt)
    total = 0.0
    for j in range(len(chain)):
        total += tilted[j]
    return total


@compiled
def _lean_chains(
    log: Log, prior: Prior, chain: FloatArray, z: FloatArray, lean: float, out: FloatArray
) -> None:
    """Probability of each transition under its state's chain, leaning by its row's rarity: [E]."""
    norm = np.empty(log.row_records.shape[1])
    tilted = np.empty(len(chain))
    for s in range(len(log.first) - 1):
        if log.first[s] == log.first[s + 1]:
            continue

        # What makes each leaning chain sum to one; rows of as many records have the same.
        here = slice(prior.first[s], prior.first[s + 1])
        records = log.row_records[s]
        for a in range(len(norm)):
            if records[a] == 0:
                continue
            same = 0
            while records[same] != records[a]:
                same += 1
            if same < a:
                norm[a] = norm[same]
            else:
                tilt = lean * prior.rarity[s, a]
                norm[a] = max(_tilted_total(chain[here], z[here], tilt, tilted[here]), 1e-300)

        # The transitions.
        for e in range(log.first[s], log.first[s + 1]):
            a = log.action[e]
            j = log.place[e]
            of_entry = chain[j] * _tilt(z[j], lean * prior.rarity[s, a])
            out[e] = max(of_entry / norm[a], SMALLEST)


@compiled
def _log_rising_of_state(log: Log, s: int, mass: float, leaning: FloatArray) -> float:
    """Sum of share * `log_rising` (mass * leaning, records) over the transitions of a state.

    Factors of several transitions are multiplied before the logarithm is taken.
    """
    total = 0.0
    product = 1.0
    share = log.row_share
    for e in range(log.first[s], log.first[s + 1]):
        is_far = 1 / FAR_FROM_OVERFLOW < product < FAR_FROM_OVERFLOW
        if log.share[e] != share or not is_far:
            total += share * np.log(product)
            product = 1.0
            share = log.share[e]
        start = max(mass * leaning[e], SMALLEST)
        steps = log.records[e]
        for i in range(min(steps, PRODUCT_UP_TO)):
            product *= start + i
        if steps > PRODUCT_UP_TO:
            total += share * (_stirling(start + steps) - _stirling(start + PRODUCT_UP_TO))
    return float(total + share * np.log(product))


@compiled
def _log_likelihood(log: Log, prior: Prior, mass: IntArray, leaning: FloatArray) -> float:
    """Log-likelihood of the log given chains and masses, up to what does not depend on chains."""
    total = 0.0
    for s in range(len(log.first) - 1):
        total += _log_rising_of_state(log, s, prior.mass[mass[s]], leaning)
    return total


@compiled
def _mix(
    log: Log, share: FloatArray, leaning: FloatArray, move: FloatArray, out: FloatArray
) -> None:
    """Mean probability of each transition, given the share [S, A] of the move in its row: [E]."""
    for s in range(len(log.first) - 1):
        for e in range(log.first[s], log.first[s + 1]):
            w = share[s, log.action[e]]
            out[e] = (1 - w) * leaning[e] + w * move[e]


@compiled
def _sample_lean(
    log: Log,
    prior: Prior,
    mass: IntArray,
    share: FloatArray,
    chain: FloatArray,
    move: FloatArray,
    lean: int,
    leaning: FloatArray,
    rng: np.random.Generator,
) -> int:
    """The lean, by two Metropolis steps on its grid; ``leaning`` is left as that of the result."""
    z = np.empty(len(chain))
    mean = np.empty(len(leaning))
    standardise(prior, chain, z)
    _lean_chains(log, prior, chain, z, prior.lean[lean], leaning)
    if len(prior.lean) == 1:
        return lean
    _mix(log, share, leaning, move, mean)
    current = prior.lean_log_weight[lean] + _log_likelihood(log, prior, mass, mean)
    proposed_leaning = np.empty(len(leaning))
    for _ in range(2):
        step = int(rng.integers(1, 4))
        proposed = lean + step if rng.random() < 0.5 else lean - step
        if proposed < 0 or proposed >= len(prior.lean):
            continue
        _lean_chains(log, prior, chain, z, prior.lean[proposed], proposed_leaning)
        _mix(log, share, proposed_leaning, move, mean)
        new = prior.lean_log_weight[proposed]
        new += _log_likelihood(log, prior, mass, mean)
        if np.log(rng.random()) < new - current:
            lean = proposed
            current = new
            leaning[:] = proposed_leaning
    return lean


@compiled
def _move_probabilities(log: Log, moves: FloatArray, out: FloatArray) -> None:
    """Probability of each transition under the move of its action: [E].

    What would leave the range of the states stays.

    Parameters
    ----------
    moves : [A, 2 S - 1]
        Distributions of the displacement.
    """
    S = len(log.first) - 1
    for s in range(S):
        for e in range(log.first[s], log.first[s + 1]):
            move = moves[log.action[e]]
            probability = move[S - 1 + log.step[e]]
            if log.step[e] == 0:
                for d in range(S - 1 - s):
                    probability += move[d]
                for d in range(2 * S - 1 - s, 2 * S - 1):
                    probability += move[d]
            out[e] = max(probability, SMALLEST)


@compiled
def _log_rising_of_row(
    log: Log, start: int, end: int, mass: float, w: float, leaning: FloatArray, move: FloatArray
) -> float:
    """Log-likelihood of the transitions of one row, if the share of the move in its mean is w."""
    total = 0.0
    for e in range(start, end):
        mean = (1 - w) * leaning[e] + w * move[e]
        total += log.share[e] * log_rising(max(mass * mean, SMALLEST), log.records[e])
    return total


@compiled
def _sample_shares(
    log: Log,
    prior: Prior,
    mass: IntArray,
    leaning: FloatArray,
    move: FloatArray,
    weight: FloatArray,
    chosen: IntArray,
    share: FloatArray,
    rng: np.random.Generator,
) -> None:
    """The share of the move in each row, and then the weights of the shares.

    Parameters
    ----------
    weight : [W]
    chosen : [S, A]
        Indices of the grid, written to.
    share : [S, A]
        The shares themselves, written to.
    """
    S, A = share.shape
    number = prior.share_weight.copy()
    prior_log_weight = np.log(np.maximum(weight, 1e-300))
    log_weight = np.empty(len(weight))
    for s in range(S):
        if not prior.is_open[s]:
            continue
        m = prior.mass[mass[s]]
        end = log.first[s]
        for a in range(A):
            start = end
            while end < log.first[s + 1] and log.action[end] == a:
                end += 1
            log_weight[:] = prior_log_weight
            if end > start:
                for i in range(len(weight)):
                    log_weight[i] += _log_rising_of_row(
                        log, start, end, m, prior.share[i], leaning, move
                    )
            chosen[s, a] = _choose(log_weight, rng)
            share[s, a] = prior.share[chosen[s, a]]
            if end > start:
                number[chosen[s, a]] += 1
    sample_dirichlet(number, weight, rng)


@compiled
def _log_rising_of_rows(log: Log, prior: Prior) -> FloatArray:
    """Sum of share * `log_rising` (mass, records) over the rows of each state: [S, G]."""
    S, A = log.row_records.shape
    total = np.zeros((S, len(prior.mass)))
    for s in range(S):
        for g in range(len(prior.mass)):
            for a in range(A):
                total[s, g] += log_rising(prior.mass[g], log.row_records[s, a])
            total[s, g] *= log.row_share
    return total


@compiled
def _sample_masses(
    log: Log,
    prior: Prior,
    of_rows: FloatArray,
    weight: FloatArray,
    leaning: FloatArray,
    mass: IntArray,
    rng: np.random.Generator,
) -> None:
    """The mass of each state, and then the weights of the masses.

    Parameters
    ----------
    of_rows : [S, G]
        See `_log_rising_of_rows`.
    """
    number = prior.mass_weight.copy()
    prior_log_weight = np.log(np.maximum(weight, 1e-300))
    log_weight = np.empty(len(weight))
    for s in range(len(log.first) - 1):
        if not prior.is_open[s]:
            continue
        for g in range(len(weight)):
            of_transitions = _log_rising_of_state(log, s, prior.mass[g], leaning)
            log_weight[g] = prior_log_weight[g] + of_transitions - of_rows[s, g]
        mass[s] = _choose(log_weight, rng)
        number[mass[s]] += 1
    sample_dirichlet(number, weight, rng)


@compiled
def _displacement(step: int, s: int, move: FloatArray, rng: np.random.Generator) -> int:
    """Index of the displacement that led from s by a step; staying may be leaving the range."""
    S = (len(move) + 1) // 2
    if step != 0:
        return S - 1 + step
    outside = 0.0
    for d in range(len(move)):
        if d < S - 1 - s or d > 2 * S - 2 - s:
            outside += move[d]
    target = rng.random() * (outside + move[S - 1]) - move[S - 1]
    if target <= 0:
        return S - 1
    for d in range(len(move)):
        if d < S - 1 - s or d > 2 * S - 2 - s:
            target -= move[d]
            if target <= 0:
                return d
    return S - 1


@compiled
def _sample_tables(
    log: Log,
    prior: Prior,
    mass: IntArray,
    share: FloatArray,
    leaning: FloatArray,
    move: FloatArray,
    moves: FloatArray,
    tables: FloatArray,
    move_tables: FloatArray,
    rng: np.random.Generator,
) -> None:
    """How many records of each transition the chain led to, and how many the move.

    Those of the chain are summed over actions [entries], those of the move over states
    [A, 2 S - 1]. A table counts as much as the records at it.
    """
    tables[:] = 0.0
    move_tables[:] = 0.0
    for s in range(len(log.first) - 1):
        m = prior.mass[mass[s]]
        for e in range(log.first[s], log.first[s + 1]):
            a = log.action[e]
            of_move = share[s, a] * move[e]
            mean = (1 - share[s, a]) * leaning[e] + of_move
            number = _number_of_tables(log.records[e], max(m * mean, SMALLEST), rng)
            by_move = 0
            if of_move > 0:
                for _ in range(number):
                    if rng.random() * mean < of_move:
                        by_move += 1
                        d = _displacement(log.step[e], s, moves[a], rng)
                        move_tables[a, d] += log.share[e]
            tables[log.place[e]] += log.share[e] * (number - by_move)


@compiled
def _sum_log_gamma(pull: float, base: FloatArray, tables: FloatArray) -> float:
    """Sum of ln Gamma(pull * base + tables), by Stirling's series of eight more.

    Written out in one loop without branches and sums, which becomes vector instructions.
    """
    of_entries = np.empty(len(base))
    for j in range(len(base)):
        x = max(pull * base[j], SMALLEST) + tables[j]
        product = x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * (x + 5) * (x + 6) * (x + 7)
        y = x + 8
        inverse = 1 / y
        square = inverse * inverse
        series = inverse * (1 / 12 - square * (1 / 360 - square / 1260))
        of_entries[j] = (y - 0.5) * ln(y) - y + HALF_LN_2_PI + series - ln(product)
    total = 0.0
    for j in range(len(base)):
        total += of_entries[j]
    return total


@compiled
def _log_gamma_of_bases(prior: Prior, bases: FloatArray) -> FloatArray:
    """Sum of ln Gamma(pull * base) over the entries that may have tables: [K, B]."""
    total = np.zeros((len(prior.pull), len(bases)))
    none = np.zeros(bases.shape[1])
    for k in range(len(prior.pull)):
        for b in range(len(bases)):
            total[k, b] = _sum_log_gamma(prior.pull[k], bases[b], none)
    return total


@compiled
def _sample_pull(
    prior: Prior,
    bases: FloatArray,
    of_bases: FloatArray,
    tables: FloatArray,
    of_states: FloatArray,
    base: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """The pull of the base measure given the base and the tables, then the base given the pull.

    Parameters
    ----------
    bases : [B, number]
        Base measures of the entries with tables.
    of_bases : [K, B]
        See `_log_gamma_of_bases`.
    tables : [number]
        Of the entries that may have any.
    of_states : [S]
        Tables of each state.
    """
    whole = np.ones(len(of_states))
    none = np.zeros(len(of_states))
    of_pull = -of_bases[:, base]
    for k in range(len(of_pull)):
        pull = prior.pull[k]
        of_pull[k] += _sum_log_gamma(pull, whole, none)
        of_pull[k] -= _sum_log_gamma(pull, whole, of_states)
        of_pull[k] += _sum_log_gamma(pull, bases[base], tables)
    chosen = _choose(of_pull, rng)

    of_base = -of_bases[chosen]
    for b in range(len(of_base)):
        of_base[b] += _sum_log_gamma(prior.pull[chosen], bases[b], tables)
    return chosen, _choose(of_base, rng)


@compiled
def _break_sticks(
    cumulative: FloatArray, pull: float, out: FloatArray, rng: np.random.Generator
) -> None:
    """Add a gamma-distributed part, spread as Dirichlet(pull * base), to the entries of a state.

    A Dirichlet is a Dirichlet process on few points. Sethuraman's construction of it breaks shares
    of Beta(1, pull) off what is left, each for an entry sampled from the base.

    Parameters
    ----------
    cumulative : [entries of the state]
        Sums of the base up to each entry.
    """
    left = sample_gamma(pull, rng)
    enough = SHORTEST_STICK * left
    while left > 0:
        j = find(cumulative, rng.random() * cumulative[-1])
        rest = left * np.exp(-rng.standard_exponential() / pull)
        if rest < enough:
            rest = 0.0
        out[j] += left - rest
        left = rest


@compiled
def _sample_long_chain(
    tables: FloatArray,
    pull: float,
    cumulative: FloatArray,
    out: FloatArray,
    rng: np.random.Generator,
) -> None:
    """The chain of one state, Dirichlet(tables + pull * base), as a mixture of the two parts."""
    for j in range(len(out)):
        out[j] = sample_gamma(tables[j], rng) if tables[j] > 0 else 0.0
    _break_sticks(cumulative, pull, out, rng)
    total = out.sum()
    if total > 0:
        out /= total
    else:
        # The pull's part underflowed and there is no other.
        out[find(cumulative, rng.random() * cumulative[-1])] = 1.0


@compiled
def sample_chains(
    prior: Prior,
    tables: FloatArray,
    pull: float,
    base: FloatArray,
    cumulative: FloatArray,
    chain: FloatArray,
    rng: np.random.Generator,
) -> None:
    """The chain of each state given its tables: [entries]; zero for terminal states.

    Parameters
    ----------
    base, cumulative : [entries]
        The base measure, and its sums from the first entry of each state on.
    """
    for s in range(len(prior.first) - 1):
        here = slice(prior.first[s], prior.first[s + 1])
        out = chain[here]
        if not prior.is_open[s]:
            out[:] = 0.0
        elif len(out) < STICKS_FROM:
            sample_dirichlet(pull * base[here] + tables[here], out, rng)
        else:
            _sample_long_chain(tables[here], pull, cumulative[here], out, rng)


@compiled
def sample_moves(
    prior: Prior, tables: FloatArray, moves: FloatArray, rng: np.random.Generator
) -> None:
    """The move of each action given its tables, both [A, 2 S - 1]."""
    for a in range(len(moves)):
        if len(prior.move_base) < STICKS_FROM:
            sample_dirichlet(prior.move_pull * prior.move_base + tables[a], moves[a], rng)
        else:
            _sample_long_chain(tables[a], prior.move_pull, prior.move_cumulative, moves[a], rng)


@compiled
def _sample_prior_chains(
    prior: Prior,
    tables: FloatArray,
    pull: int,
    base: int,
    chain: FloatArray,
    rng: np.random.Generator,
) -> None:
    """The same with a pull and a base of the grids."""
    sample_chains(
        prior, tables, prior.pull[pull], prior.bases[base], prior.cumulative[base], chain, rng
    )


@compiled
def gibbs(log: Log, prior: Prior, burn_in: int, kept: Kept, rng: np.random.Generator) -> None:
    """Sweep ``burn_in`` times, then once for each state of the sampler that is kept."""
    num_states = len(log.first) - 1
    num_entries = prior.bases.shape[1]

    # Start from the pooled records, in the middle of every grid.
    pull = len(prior.pull) // 2
    base = 0
    lean = len(prior.lean) // 2
    mass = np.full(num_states, len(prior.mass) // 2)
    weight = prior.mass_weight / prior.mass_weight.sum()
    tables = np.zeros(num_entries)
    for e in range(len(log.place)):
        tables[log.place[e]] += log.share[e] * log.records[e]
    of_rows = _log_rising_of_rows(log, prior)
    seen = np.flatnonzero(tables)
    bases_of_seen = np.ascontiguousarray(prior.bases[:, seen])
    of_bases = _log_gamma_of_bases(prior, bases_of_seen)
    chain = np.empty(num_entries)
    _sample_prior_chains(prior, tables, pull, base, chain, rng)

    # The same for moves, each row in the middle between chain and move.
    num_actions = log.row_records.shape[1]
    has_moves = len(prior.share) > 1
    chosen_share = np.zeros((num_states, num_actions), np.int64)
    share = np.zeros((num_states, num_actions))
    share_weight = prior.share_weight / prior.share_weight.sum()
    moves = np.zeros((num_actions, 2 * num_states - 1))
    move_tables = np.zeros(moves.shape)
    move = np.zeros(len(log.place))
    if has_moves:
        share[:] = 0.5
        for e in range(len(log.place)):
            d = num_states - 1 + log.step[e]
            move_tables[log.action[e], d] += log.share[e] * log.records[e]
        sample_moves(prior, move_tables, moves, rng)
        _move_probabilities(log, moves, move)

    leaning = np.empty(len(log.place))
    mean = np.empty(len(log.place))
    tables_of_state = np.empty(num_states)
    for sweep in range(burn_in + len(kept.pull)):
        lean = _sample_lean(log, prior, mass, share, chain, move, lean, leaning, rng)
        if has_moves:
            _sample_shares(log, prior, mass, leaning, move, share_weight, chosen_share, share, rng)
        _mix(log, share, leaning, move, mean)
        _sample_masses(log, prior, of_rows, weight, mean, mass, rng)
        _sample_tables(log, prior, mass, share, leaning, move, moves, tables, move_tables, rng)
        for s in range(num_states):
            tables_of_state[s] = tables[prior.first[s] : prior.first[s + 1]].sum()
        pull, base = _sample_pull(
            prior, bases_of_seen, of_bases, tables[seen], tables_of_state, base, rng
        )
        _sample_prior_chains(prior, tables, pull, base, chain, rng)
        if has_moves:
            sample_moves(prior, move_tables, moves, rng)
            _move_probabilities(log, moves, move)
        if sweep >= burn_in:
            h = sweep - burn_in
            kept.tables[h] = tables
            kept.pull[h] = pull
            kept.base[h] = base
            kept.lean[h] = lean
            kept.mass[h] = mass
            if has_moves:
                kept.share[h] = chosen_share
                kept.move_tables[h] = move_tables
