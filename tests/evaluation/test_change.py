"""The sequential test of change: exact expectations, guarantees, and changes that it must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.evaluation.change import ChangeDetector
from pastwise.models.prior import RowPrior
from tests.helpers.oracles import Record, counts_of_list
from tests.helpers.posteriors import batch_of, literal_prior_mean, table_of, weighted_counts

MASSES = (1, 8, 64)


def rising(base: Fraction, number: int) -> Fraction:
    """base (base + 1) ... (base + number - 1)."""
    result = Fraction(1)
    for i in range(number):
        result *= base + i
    return result


def probability(outcomes: tuple[int, ...], mean: Sequence[Fraction]) -> Fraction:
    """Of the next states of a row, in this order, under the mixture of Dirichlet distributions."""
    total = Fraction(0)
    for mass in MASSES:
        likelihood = 1 / rising(Fraction(mass), len(outcomes))
        for n, number in Counter(outcomes).items():
            likelihood *= rising(mass * mean[n], number)
        total += likelihood
    return total / len(MASSES)


def exact(row: FloatArray) -> list[Fraction]:
    """A distribution in fractions that sum to one exactly."""
    first = [Fraction(float(value)) for value in row[:-1]]
    return [*first, 1 - sum(first, Fraction(0))]


def prior_mean(log: TransitionCounts) -> FloatArray:
    """Mean of the prior of each row, [S, A, S], given the other rows, by loops."""
    prior = RowPrior.of(log)
    shares = prior.shares[0].tolist()
    mass = float(prior.mass[0])
    return literal_prior_mean(table_of(log), mass, float(prior.pull[0]), shares, True)


def statistic(detector: ChangeDetector) -> float:
    return 3 * 10**detector.evidence


class Literal:
    """The detector of the module's docstring on dense arrays; old outcomes fade one by one."""

    def __init__(
        self, log: TransitionCounts, memory: float, share: float, masses: tuple[float, ...]
    ) -> None:
        self.log = table_of(log)
        self.mean = prior_mean(log)
        self.masses = np.array(masses)
        self.share = share
        self.fading = memory / (memory + 1)
        self.rate = 1 / memory
        self.rows: dict[tuple[int, int], list[int]] = {}
        self.changed: dict[tuple[int, int], float] = {}
        self.statistics: dict[object, float] = {}

    def predictions(self, s: int, a: int) -> tuple[FloatArray, FloatArray]:
        """Long and short memory of a row."""
        mean = self.mean[s, a]
        outcomes = self.rows.get((s, a), [])

        # The posterior of the masses, by the probability of all records in their order.
        weights = []
        for mass in self.masses:
            concentration = mass * mean
            likelihood = 1.0
            records = np.repeat(np.arange(len(mean)), self.log[s, a].astype(int)).tolist()
            for n in [*records, *outcomes]:
                likelihood *= concentration[n] / concentration.sum()
                concentration[n] += 1
            weights.append(likelihood)
        weight = np.array(weights) / sum(weights)

        long = self.log[s, a] + np.bincount(outcomes, minlength=len(mean))
        recent = np.zeros(len(mean))
        for age, n in enumerate(reversed(outcomes)):
            recent[n] += self.fading**age

        def predicted(counts: FloatArray) -> FloatArray:
            rows = counts + self.masses[:, None] * mean
            return np.asarray(weight @ (rows / rows.sum(axis=1, keepdims=True)))

        return predicted(long), predicted(recent)

    def observe(self, s: int, a: int, n: int) -> None:
        long, short = self.predictions(s, a)
        changed = self.changed.get((s, a), self.share)
        ratio = ((1 - changed) * long[n] + changed * short[n]) / long[n]
        posterior = changed * short[n] / long[n] / ratio
        self.changed[s, a] = (1 - self.rate) * posterior + self.rate * self.share
        for key in ("all", a, (s, a)):
            self.statistics[key] = max(1.0, self.statistics.get(key, 1.0)) * ratio
        self.rows.setdefault((s, a), []).append(n)


def random_stream(seed: int, number: int, S: int = 4, A: int = 2) -> list[Record]:
    rng = np.random.default_rng(seed)
    columns = (rng.integers(S, size=number), rng.integers(A, size=number))
    next_state = rng.integers(S, size=number)
    return list(zip(*[c.tolist() for c in (*columns, next_state)], strict=True))


# What it computes.


@pytest.mark.parametrize(("memory", "share", "masses"), [(1.0, 0.5, (2.0,)), (20.0, 0.2, MASSES)])
def test_evidence_equals_that_of_a_literal_detector(
    memory: float, share: float, masses: tuple[float, ...]
) -> None:
    log = counts_of_list(random_stream(1, 30), 4, 2)
    detector = ChangeDetector(log, memory=memory, share=share, masses=masses)
    literal = Literal(log, memory, share, masses)
    for s, a, n in random_stream(2, 400):
        detector.observe(s, a, n)
        literal.observe(s, a, n)
        assert statistic(detector) == pytest.approx(max(literal.statistics.values()), rel=1e-9)
    for row in detector.rows():
        value = literal.statistics[row.state, row.action]
        assert 3 * 10**row.evidence == pytest.approx(value, rel=1e-9)


def test_fast_forgetting_does_not_overflow() -> None:
    """The unit of the short memory doubles with each outcome: 2^500 is beyond its largest."""
    log = counts_of_list([(0, 0, 0)] * 20, 2, 1)
    detector = ChangeDetector(log, memory=1, masses=(2,))
    literal = Literal(log, 1, 0.2, (2,))
    for _, _, n in random_stream(9, 500, S=2):
        detector.observe(0, 0, n)
        literal.observe(0, 0, n)
        assert statistic(detector) == pytest.approx(max(literal.statistics.values()), rel=1e-9)


def test_statistics_stop_growing_before_they_overflow() -> None:
    log = counts_of_list([(0, 0, 0)] * 100_000, 2, 1)
    detector = ChangeDetector(log)
    for _ in range(5_000):
        detector.observe(0, 0, 1)
    assert 190 < detector.evidence < 201
    assert detector.alarm


# What is guaranteed.


def test_expected_factor_of_every_history_is_one() -> None:
    """One row, three next states, no log: all histories of five outcomes, in exact fractions."""
    uniform = [Fraction(1, 3)] * 3
    empty = TransitionCounts.empty(Space.of_size(3), Space.of_size(1))
    detector = ChangeDetector(empty, memory=2, share=0.5, masses=MASSES)
    for history in product(range(3), repeat=5):
        known = probability(history, uniform)
        expectation = 0.0
        for n in range(3):
            detector.restart()
            for outcome in history:
                detector.observe(0, 0, outcome)
            before = max(1.0, statistic(detector))
            detector.observe(0, 0, n)
            chance = probability((*history, n), uniform) / known
            expectation += float(chance) * statistic(detector) / before
        assert expectation == pytest.approx(1.0, abs=1e-12)


def test_false_alarms_of_all_sequences_keep_the_bound() -> None:
    """A policy that follows the evidence cannot raise more alarms than stated: exact sums.

    All sequences of 9 outcomes after a log of two actions: A P(alarm by T) <= E[min(tau, T)].
    """
    length = 9
    limit = 10
    log = counts_of_list([(0, 0, 0)] * 6 + [(0, 1, 0)] * 20, 2, 2)
    means = [exact(row) for row in prior_mean(log)[0]]
    past = [(0,) * 6, (0,) * 20]
    known = probability(past[0], means[0]) * probability(past[1], means[1])
    detector = ChangeDetector(log, run_length=limit, memory=3, share=0.9, masses=MASSES)
    everything = Fraction(0)
    alarms = Fraction(0)
    mean_time = Fraction(0)
    for outcomes in product(range(2), repeat=length):
        detector.restart()
        rows = list(past)
        time = length
        for number, n in enumerate(outcomes, 1):
            # Now and then the other action, otherwise where there is most evidence.
            action = detector.rows(1)[0].action if number > 1 else 1
            if number % 4 == 0:
                action = 1 - action
            detector.observe(0, action, n)
            rows[action] = (*rows[action], n)
            if detector.alarm:
                time = min(time, number)
        chance = probability(rows[0], means[0]) * probability(rows[1], means[1]) / known
        everything += chance
        mean_time += chance * time
        alarms += chance * detector.alarm
    assert everything == 1
    assert 0 < limit * alarms <= mean_time


def test_run_length_is_kept_in_a_simulation() -> None:
    """Systems sampled from the prior, a policy that chases the evidence.

    At most T / A = 20 % of the runs may raise an alarm. More than 30 % of 200 would be seen with a
    probability below 0.001 if that were so.
    """
    runs, T, A, S = 200, 200, 1000.0, 3
    assert binom.sf(60, runs, T / A) < 1e-3
    rng = np.random.default_rng(5)
    empty = TransitionCounts.empty(Space.of_size(S), Space.of_size(2))
    alarms = 0
    detector = ChangeDetector(empty, run_length=A, memory=5, share=0.9)
    for _ in range(runs):
        detector.restart()
        mass = rng.choice(MASSES, size=2)
        model = [rng.dirichlet(np.full(S, m / S)).cumsum().tolist() for m in mass]
        for u in rng.random(T).tolist():
            action = detector.rows(1)[0].action if u < 0.8 and detector.observed else int(u > 0.9)
            detector.observe(0, action, min(int(np.searchsorted(model[action], rng.random())), 2))
        alarms += detector.alarm
    assert alarms <= 60


@pytest.mark.parametrize("records", [0, 3, 30])
def test_noise_of_a_short_log_raises_no_alarm(records: int) -> None:
    """Any row, not one of the prior: in 40 runs of 1,000 outcomes no alarm at 10,000.

    The bound allows 4 of them.
    """
    rng = np.random.default_rng(11)
    for _ in range(40):
        row = rng.dirichlet(np.full(6, rng.choice([0.1, 1.0, 20.0])))
        log = [(0, 0, int(n)) for n in rng.choice(6, records, p=row)]
        detector = ChangeDetector(counts_of_list(log, 6, 1), run_length=10_000)
        for n in rng.choice(6, 1_000, p=row).tolist():
            detector.observe(0, 0, n)
        assert not detector.alarm


# Changes.


def test_a_changed_row_is_found_and_named() -> None:
    rng = np.random.default_rng(3)
    log = [(s, a, int(rng.random() < 0.2)) for s in (0, 1) for a in (0, 1) for _ in range(200)]
    detector = ChangeDetector(counts_of_list(log, 2, 2))
    state = 0
    for time in range(3_000):
        action = int(rng.integers(2))
        has_changed = time >= 1_000 and (state, action) == (1, 1)
        next_state = int(rng.random() < (0.7 if has_changed else 0.2))
        detector.observe(state, action, next_state, time)
        state = next_state
        if time < 1_000:
            assert not detector.alarm
    assert detector.alarm
    worst, second = detector.rows(2)
    assert (worst.state, worst.action) == (1, 1)
    assert worst.evidence > 6 > 3 > second.evidence
    assert 950 <= worst.since <= 1_100
    assert detector.evidence >= worst.evidence


def test_a_small_change_of_every_row_is_found_together() -> None:
    """No row alone has evidence, all of them have."""
    rng = np.random.default_rng(4)
    S = 40
    log = [(s, 0, int(rng.random() < 0.1)) for s in range(S) for _ in range(100)]
    detector = ChangeDetector(counts_of_list(log, S, 1), run_length=10_000)
    for number in range(3_000):
        detector.observe(number % S, 0, int(rng.random() < 0.3))
        if detector.alarm:
            break
    assert detector.alarm
    assert detector.rows(1)[0].evidence < 4


def test_what_the_policy_has_learned_since_is_part_of_the_reference() -> None:
    """A row that the log does not have is learned without an alarm; its change then raises one."""
    rng = np.random.default_rng(6)
    detector = ChangeDetector(counts_of_list([(0, 0, 0)] * 100, 2, 2), run_length=100_000)
    for _ in range(500):
        detector.observe(1, 1, int(rng.random() < 0.9))
    assert not detector.alarm
    for _ in range(100):
        detector.observe(1, 1, int(rng.random() < 0.1))
    assert detector.alarm


# Keeping it.


def test_snapshot_continues_to_the_last_bit() -> None:
    log = weighted_counts(4, 2)
    detector = ChangeDetector(log)
    for record in random_stream(7, 300):
        detector.observe(*record)
    other = ChangeDetector(log)
    other.restore(detector.snapshot())
    for record in random_stream(8, 300):
        detector.observe(*record)
        other.observe(*record)
    assert other.snapshot() == detector.snapshot()
    assert other.rows() == detector.rows()
    assert other.since == detector.since


def test_alarm_stays_until_restart() -> None:
    log = counts_of_list([(0, 0, 0)] * 50, 2, 1)
    detector = ChangeDetector(log, run_length=100)
    fresh = detector.snapshot()
    for _ in range(10):
        detector.observe(0, 0, 1)
    for _ in range(1_000):
        detector.observe(0, 0, 0)
    assert detector.alarm
    detector.restart()
    assert not detector.alarm
    assert detector.snapshot() == fresh


def test_snapshot_of_another_log_is_refused() -> None:
    detector = ChangeDetector(weighted_counts(4, 2, seed=1))
    snapshot = ChangeDetector(weighted_counts(4, 2, seed=2)).snapshot()
    with pytest.raises(ParameterError, match="another log or of other settings"):
        detector.restore(snapshot)
    for content in (b"", b"[]", b"{}", b"\xff"):
        with pytest.raises(ParameterError, match="no snapshot"):
            detector.restore(content)


# Mistakes.


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"run_length": 0}, "run_length"),
        ({"run_length": float("nan")}, "run_length"),
        ({"memory": 0.5}, "memory"),
        ({"share": 1.5}, "share"),
        ({"masses": ()}, "masses"),
        ({"masses": (0,)}, "mass"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        ChangeDetector(counts_of_list([(0, 0, 0)], 2, 1), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "name"),
    [((2, 0, 0), "state"), ((0, 1, 0), "action"), ((0, 0, 2), "next_state"), ((0, 0, -1), "next")],
)
def test_unknown_indices_are_refused(record: Record, name: str) -> None:
    detector = ChangeDetector(counts_of_list([(0, 0, 0)], 2, 1))
    detector.observe(0, 0, 0)
    before = detector.snapshot()
    with pytest.raises(ParameterError, match=f"{name}.* must be an index below"):
        detector.observe(*record)
    assert detector.snapshot() == before


def test_several_logs_are_refused() -> None:
    with pytest.raises(ParameterError, match="hold several"):
        ChangeDetector(batch_of([[(0, 0, 0)], [(0, 0, 0)]], 2, 1))
