"""The sampler of the hierarchical posterior: calibrated ranks, and its parts against formulas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2

from pastwise._numerics.arrays import FloatArray, IntArray, normalise
from pastwise.models import gibbs

S, A = 3, 2

RARITY = np.array([[0.5, -1.0], [0.3, -0.8], [0.2, -1.5]])
VALUE = np.tile([0.0, 1.0, 3.0], (S, 1))


NO_LEAN = np.zeros(1)
NO_MOVE = np.zeros(1)


def prior_of(lean: FloatArray, share: FloatArray = NO_MOVE) -> gibbs.Prior:
    """A prior that nothing of a log enters, over chains that list every state."""
    move_base = np.array([0.1, 0.3, 0.3, 0.2, 0.1])
    bases = np.stack([np.full(S * S, 1 / S), np.tile([0.2, 0.3, 0.5], S)])
    return gibbs.Prior(
        first=np.arange(0, S * S + 1, S),
        bases=bases,
        cumulative=np.cumsum(bases.reshape(2, S, S), axis=-1).reshape(2, -1),
        pull=np.array([1.0, 3.0, 10.0]),
        mass=np.array([0.5, 3.0, 20.0, 200.0]),
        mass_weight=np.ones(4),
        lean=lean,
        lean_log_weight=-0.5 * lean**2,
        value=VALUE.ravel(),
        rarity=RARITY,
        is_open=np.ones(S, dtype=bool),
        share=share,
        share_weight=np.ones(len(share)),
        move_base=move_base,
        move_cumulative=np.cumsum(move_base),
        move_pull=3.0,
    )


def log_of(table: IntArray) -> gibbs.Log:
    """A log of whole records [S, A, S], as the sampler takes it."""
    s, a, n = np.nonzero(table)
    return gibbs.Log(
        first=np.searchsorted(s, np.arange(S + 1)),
        action=a,
        place=s * S + n,
        step=n - s,
        records=table[s, a, n],
        share=np.ones(len(s)),
        row_records=table.sum(axis=-1),
        row_share=1.0,
    )


def kept_states(prior: gibbs.Prior, table: IntArray, number: int, seed: int) -> gibbs.Kept:
    """States of the sampler that are nearly independent of each other."""
    thinning = 10
    size = number * thinning
    kept = gibbs.Kept(
        tables=np.empty((size, S * S)),
        pull=np.empty(size, dtype=np.int64),
        base=np.empty(size, dtype=np.int64),
        lean=np.empty(size, dtype=np.int64),
        mass=np.empty((size, S), dtype=np.int64),
        share=np.zeros((size, S, A), dtype=np.int64),
        move_tables=np.zeros((size, A, 2 * S - 1)),
    )
    gibbs.gibbs(log_of(table), prior, 40, kept, np.random.default_rng(seed))
    every = slice(thinning - 1, None, thinning)
    return gibbs.Kept(
        tables=kept.tables[every],
        pull=kept.pull[every],
        base=kept.base[every],
        lean=kept.lean[every],
        mass=kept.mass[every],
        share=kept.share[every],
        move_tables=kept.move_tables[every],
    )


class World(NamedTuple):
    """Everything that the prior is about."""

    pull: int
    base: int
    lean: int
    mass: IntArray
    share: IntArray
    chain: FloatArray
    moves: FloatArray
    rows: FloatArray

    def quantities(self, prior: gibbs.Prior, table: IntArray) -> dict[str, float]:
        """Numbers to rank among those of the posterior; ``table`` [S, A, S] is the log."""
        row_value = (self.rows * VALUE[:, None]).sum(axis=-1)
        return {
            "pull": prior.pull[self.pull],
            "base": self.base,
            "lean": prior.lean[self.lean],
            "mass": np.log(prior.mass[self.mass[0]]),
            "all masses": np.log(prior.mass[self.mass]).sum(),
            "all shares": prior.share[self.share].sum(),
            "share of a rare row": prior.share[self.share[1, 1]],
            "move": self.moves[0, S - 1 + 1],
            "value of a move": (self.moves[1] * np.arange(2 * S - 1)).sum(),
            "chain": self.chain[0, 0],
            "value of a chain": (self.chain[1] * VALUE[1]).sum(),
            "value of a row": row_value[0, 0],
            "value of a rare row": row_value[1, 1],
            "likelihood of chains": (table.sum(axis=1) * np.log(self.chain)).sum(),
            "likelihood of moves": (table * np.log(moved(self.moves) + 1e-300)).sum(),
            "likelihood of rows": (table * np.log(self.rows)).sum(),
            "difference": (row_value[:, 1] - row_value[:, 0]).sum(),
        }


def leaning(chain: FloatArray, lean: float) -> FloatArray:
    """Chains that lean by the rarity of each action: [S, A, S]."""
    mean = (chain * VALUE).sum(axis=-1, keepdims=True)
    deviation = np.sqrt((chain * (VALUE - mean) ** 2).sum(axis=-1, keepdims=True))
    z = np.clip((VALUE - mean) / np.maximum(deviation, 1e-9), -4, 4)
    return normalise(chain[:, None] * np.exp(lean * RARITY[..., None] * z[:, None]))


def moved(moves: FloatArray) -> FloatArray:
    """Where moves [A, 2 S - 1] lead from each state; what leaves the range stays: [S, A, S]."""
    rows = np.zeros((S, A, S))
    for s, a, d in np.ndindex(S, A, 2 * S - 1):
        to = s + d - (S - 1)
        rows[s, a, to if 0 <= to < S else s] += moves[a, d]
    return rows


def mean_rows(
    prior: gibbs.Prior, chain: FloatArray, lean: int, share: IntArray, moves: FloatArray
) -> FloatArray:
    """The means of all rows: [S, A, S]."""
    w = prior.share[share][..., None]
    return np.asarray((1 - w) * leaning(chain, prior.lean[lean]) + w * moved(moves))


def dirichlet(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A Dirichlet of each row; small concentrations do not underflow."""
    return normalise(np.maximum(rng.standard_gamma(concentration), 1e-300))


def world_of_prior(prior: gibbs.Prior, rng: np.random.Generator) -> World:
    pull = int(rng.integers(len(prior.pull)))
    base = int(rng.integers(len(prior.bases)))
    lean = int(rng.choice(len(prior.lean), p=normalise(np.exp(prior.lean_log_weight))))
    mass = rng.choice(len(prior.mass), size=S, p=rng.dirichlet(prior.mass_weight))
    chain = dirichlet(prior.pull[pull] * prior.bases[base].reshape(S, S), rng)
    share = rng.choice(len(prior.share), size=(S, A), p=rng.dirichlet(prior.share_weight))
    moves = dirichlet(np.tile(prior.move_pull * prior.move_base, (A, 1)), rng)
    mean = mean_rows(prior, chain, lean, share, moves)
    rows = dirichlet(prior.mass[mass][:, None, None] * mean, rng)
    return World(pull, base, lean, mass, share, chain, moves, rows)


def worlds_of_posterior(
    prior: gibbs.Prior, table: IntArray, number: int, rng: np.random.Generator
) -> list[World]:
    kept = kept_states(prior, table, number, int(rng.integers(2**32)))
    worlds = []
    for tables, pull, base, lean, mass, share, move_tables in zip(*kept, strict=True):
        concentration = prior.pull[pull] * prior.bases[base] + tables
        chain = dirichlet(concentration.reshape(S, S), rng)
        moves = dirichlet(prior.move_pull * prior.move_base + move_tables, rng)
        mean = mean_rows(prior, chain, lean, share, moves)
        rows = dirichlet(table + prior.mass[mass][:, None, None] * mean, rng)
        worlds.append(World(pull, base, lean, mass, share, chain, moves, rows))
    return worlds


RECORDS = (40, 15)
"""Records of the two actions in each state of a simulated log."""


def rank_statistics(
    prior: gibbs.Prior, replications: int, *, number: int = 15, seed: int = 0
) -> dict[str, float]:
    """Chi-square of the ranks of true quantities among those of the posterior; ties at random."""
    rng = np.random.default_rng(seed)
    ranks: dict[str, list[int]] = {}
    for _ in range(replications):
        # A world, and a log of it.
        truth = world_of_prior(prior, rng)
        table = np.zeros((S, A, S), dtype=np.int64)
        for s, a in np.ndindex(S, A):
            table[s, a] = rng.multinomial(RECORDS[a], truth.rows[s, a])

        # Ranks of the world among those that the log leaves possible.
        worlds = worlds_of_posterior(prior, table, number, rng)
        sampled = [world.quantities(prior, table) for world in worlds]
        for name, value in truth.quantities(prior, table).items():
            others = np.array([quantities[name] for quantities in sampled])
            ties = int((others == value).sum())
            rank = int((others < value).sum()) + int(rng.integers(ties + 1))
            ranks.setdefault(name, []).append(rank)

    expected = replications / (number + 1)
    statistics = {}
    for name, of_name in ranks.items():
        frequency = np.bincount(of_name, minlength=number + 1)
        statistics[name] = float(((frequency - expected) ** 2 / expected).sum())
    return statistics


LIMIT = float(chi2.isf(1e-4, 15))
"""Of a statistic of sixteen ranks: exceeded once in ten thousand."""


def test_the_posterior_is_calibrated() -> None:
    """Simulation-based calibration: the truth has any rank among posterior samples equally often.

    Shown to fail if masses count double when tables are sampled.
    """
    statistics = rank_statistics(prior_of(NO_LEAN), 500)
    assert max(statistics.values()) < LIMIT, statistics


def test_the_posterior_of_moves_is_calibrated() -> None:
    """Likewise with moves, which lead some rows, and others in part.

    Shown to fail if displacements beyond the last state count as staying when tables are sampled.
    """
    statistics = rank_statistics(prior_of(NO_LEAN, np.array([0.0, 0.5, 1.0])), 500)
    assert max(statistics.values()) < LIMIT, statistics


def test_rows_are_calibrated_where_chains_lean() -> None:
    """The sampler takes the posterior of a leaning chain for a Dirichlet, which it nearly is.

    What matters of the result, rows and their lean, is calibrated all the same.
    """
    statistics = rank_statistics(prior_of(np.array([-1.0, -0.5, 0.0, 0.5, 1.0])), 500)
    for name in ("lean", "value of a row", "value of a rare row", "difference"):
        assert statistics[name] < LIMIT, statistics


# Parts.


@pytest.mark.parametrize("start", [1e-12, 1e-3, 0.7, 12.0, 3000.0])
@pytest.mark.parametrize("steps", [0, 1, 2, 11, 12, 13, 14, 100, 100_000])
def test_rising_factorials_are_those_of_scipy(start: float, steps: int) -> None:
    expected = gammaln(start + steps) - gammaln(start)
    assert gibbs.log_rising(start, steps) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("concentration", [1e-3, 0.5, 8.0, 300.0])
@pytest.mark.parametrize("records", [1, 2, 30, 5000])
def test_tables_have_the_expectation_of_a_chinese_restaurant(
    concentration: float, records: int
) -> None:
    """A customer opens a table with probability c / (c + customers before); 6 standard errors."""
    rng = np.random.default_rng(0)
    number = 2000
    sampled = [gibbs._number_of_tables(records, concentration, rng) for _ in range(number)]
    opens = concentration / (concentration + np.arange(records))
    error = np.sqrt((opens * (1 - opens)).sum() / number)
    assert abs(np.mean(sampled) - opens.sum()) <= 6 * error + 1e-3 * opens.sum()
    assert min(sampled) >= 1
    assert max(sampled) <= records


def test_dirichlets_have_their_moments() -> None:
    """20,000 samples: 6 standard errors of the means, 10 % of the variances."""
    concentration = np.array([0.3, 2.0, 5.0])
    rng = np.random.default_rng(1)
    samples = np.empty((20_000, 3))
    for out in samples:
        gibbs.sample_dirichlet(concentration, out, rng)
    total = concentration.sum()
    mean = concentration / total
    variance = mean * (1 - mean) / (total + 1)
    assert (np.abs(samples.mean(axis=0) - mean) < 6 * np.sqrt(variance / len(samples))).all()
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.1)


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9])
def test_dirichlets_of_tiny_concentrations_are_corners_by_their_mean(scale: float) -> None:
    """All gammas may underflow; the sample is a distribution nonetheless, and not always the same.

    4,000 samples: 6 standard errors of a share.
    """
    mean = np.array([0.1, 0.6, 0.3])
    rng = np.random.default_rng(2)
    samples = np.empty((4000, 3))
    for out in samples:
        gibbs.sample_dirichlet(scale * mean, out, rng)
    np.testing.assert_allclose(samples.sum(axis=1), 1)
    error = np.sqrt(mean * (1 - mean) / len(samples))
    assert (np.abs(samples.mean(axis=0) - mean) < 6 * error + 0.002).all()


def test_long_chains_have_the_moments_of_their_dirichlet() -> None:
    """By breaking sticks; 4,000 samples: 6 standard errors of a mean, 20 % of a variance."""
    size = 50
    rng = np.random.default_rng(3)
    base = rng.dirichlet(np.ones(size))
    tables = np.where(np.arange(size) % 5 == 0, 0.8, 0.0)
    pull = 2.0
    prior = prior_of(NO_LEAN)._replace(
        first=np.array([0, size]),
        bases=base[None],
        cumulative=np.cumsum(base)[None],
        is_open=np.ones(1, dtype=bool),
    )
    chains = np.empty((4000, size))
    for chain in chains:
        gibbs.sample_chains(prior, tables, pull, prior.bases[0], prior.cumulative[0], chain, rng)
    concentration = tables + pull * base
    total = concentration.sum()
    mean = concentration / total
    variance = mean * (1 - mean) / (1 + total)
    np.testing.assert_allclose(chains.sum(axis=-1), 1)
    assert (np.abs(chains.mean(axis=0) - mean) < 6 * np.sqrt(variance / len(chains))).all()
    large = mean > 0.02
    np.testing.assert_allclose(chains.var(axis=0)[large], variance[large], rtol=0.2)
