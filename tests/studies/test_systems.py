"""Systems that others published: what comes out exactly, and what is inferred from their logs."""

import numpy as np
import pytest

import pastwise as pw
from pastwise._numerics.interval import Interval
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import sample_values
from pastwise.models.hierarchy import TransitionPosterior
from pastwise.studies.systems import KnownSystem, icu_sepsis, toy_system


@pytest.fixture(scope="module")
def icu() -> KnownSystem:
    return icu_sepsis()


def test_icu_sepsis_is_as_published(icu: KnownSystem) -> None:
    """Published, by simulation: 0.78 / 9.45, 0.78 / 9.22 and 0.88 / 10.99."""
    assert (icu.num_states, icu.num_actions) == (715, 25)
    for rule, success, length in (
        (icu.random, 0.7801, 9.46),
        (icu.rules["expert"], 0.7818, 9.24),
        (icu.best, 0.8751, 10.99),
    ):
        found = icu.success_and_length(rule)
        assert found[0] == pytest.approx(success, abs=5e-5)
        assert found[1] == pytest.approx(length, abs=5e-3)


def test_what_a_log_of_icu_sepsis_says(icu: KnownSystem) -> None:
    """A small version of the published table: 2,000 expert episodes, 12 samples."""
    expert = icu.rules["expert"]
    counts = icu.log(expert, 2000, np.random.default_rng(0))
    learner = pw.TransferLearner(pw.Goal(prefer={714: 1})).fit(counts)
    learned = icu.success_and_length(learner.rule_.probabilities)[0]
    assert learned > icu.success_and_length(expert)[0]
    criterion = Criterion(icu.success, icu.initial, 200, icu.terminal)
    rules = {"expert": expert, "random": icu.random}
    samples = sample_values(TransitionPosterior(counts), rules, criterion, 12)
    for name, rule in rules.items():
        assert Interval.of_samples(samples[name]).mean == pytest.approx(
            icu.success_and_length(rule)[0], abs=0.05
        )


@pytest.mark.parametrize(
    ("name", "options", "success"),
    [
        ("FrozenLake-v1", {}, 0.8235),
        ("FrozenLake-v1", {"map_name": "8x8"}, 1.0),
        ("CliffWalking-v1", {}, 1.0),
        ("Taxi-v4", {}, 1.0),
    ],
)
def test_toy_systems_end_well_under_their_best_rule(
    name: str, options: dict[str, str], success: float
) -> None:
    system = toy_system(name, **options)
    assert system.success_and_length(system.best)[0] == pytest.approx(success, abs=1e-4)


def test_the_log_of_a_toy_system_gives_its_values() -> None:
    """5,000 random episodes of FrozenLake: the stated intervals are near the truth."""
    system = toy_system("FrozenLake-v1")
    counts = system.log(system.random, 5000, np.random.default_rng(1))
    assert np.isin(counts.terminal, system.terminal).all()
    criterion = Criterion(system.success, system.initial, 300, system.terminal)
    rules = {"random": system.random, "best": system.best}
    samples = sample_values(TransitionPosterior(counts), rules, criterion, 400)
    for name, rule in rules.items():
        truth, stated = system.success_and_length(rule)[0], Interval.of_samples(samples[name])
        assert stated.low - 0.05 <= truth <= stated.high + 0.05
