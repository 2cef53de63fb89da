"""Reasons why a comparison is not fair."""

from collections.abc import Sequence

import numpy as np
import pytest

from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.data.space import Space
from pastwise.evaluation.objections import Objection, objections
from tests.helpers.evaluations import episode_summary
from tests.helpers.oracles import random_rows, simulated_counts

STATES = Space(("ill", "well"))
ACTIONS = Space(("drug", "rest"))


def counts_of(*records: tuple[int, int, int], times: int = 10) -> TransitionCounts:
    """Counts of records (state, action, next state), each so many times."""
    state, action, next_state = np.repeat(np.array(records), times, axis=0).T
    return TransitionCounts.from_records(state, action, next_state, STATES, ACTIONS)


MIXED = counts_of((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1))
EVERYWHERE = np.full((2, 2), 0.25)


def codes(found: tuple[Objection, ...]) -> list[str]:
    return [objection.code for objection in found]


def episodes(by_action: Sequence[int] = (18, 17), **numbers: int) -> EpisodeSummary:
    """Twenty episodes of ten records in which everything varies, unless said otherwise."""
    return episode_summary(MIXED, by_action, **numbers)


def test_nothing_speaks_against_a_log_in_which_everything_varies() -> None:
    assert objections(EVERYWHERE, MIXED) == ()
    assert objections(EVERYWHERE, MIXED, episodes()) == ()


# Actions that are constant within episodes.


def test_an_action_that_never_varies_compares_episodes() -> None:
    constant = episodes(number=133, several=133, records=3862, varied=0)
    assert objections(EVERYWHERE, MIXED, constant) == (
        Objection(
            "action-constant",
            "each of the 133 episodes has one action on all its records, "
            "so the log compares episodes, not decisions",
        ),
    )


def test_episodes_of_one_record_do_not_count() -> None:
    constant = episodes(number=133, several=40, records=300, varied=0)
    (found,) = objections(EVERYWHERE, MIXED, constant)
    assert found.message.startswith("each of the 40 episodes of two or more records has one action")
    single = episodes(number=133, several=0, records=133, varied=0)
    assert objections(EVERYWHERE, MIXED, single) == ()


def test_a_few_odd_records_do_not_make_a_comparison_fair() -> None:
    nearly = episodes(number=133, several=133, records=3862, varied=3)
    (found,) = objections(EVERYWHERE, MIXED, nearly)
    assert found.code == "action-constant"
    assert found.message.startswith("only 3 of 133 episodes have more than one action")
    assert objections(EVERYWHERE, MIXED, nearly, min_variation=0.01) == ()


def test_episodes_in_which_the_action_varies_are_compared() -> None:
    assert objections(EVERYWHERE, MIXED, episodes(varied=5)) == ()


def test_a_few_repetitions_may_be_an_accident() -> None:
    """With two equally common actions, k repetitions happen by accident in 1 of 2^k cases."""
    even = counts_of((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0))
    four = episodes(number=100, several=4, records=104, varied=0)
    assert objections(EVERYWHERE, even, four) == ()
    five = episodes(number=100, several=5, records=105, varied=0)
    assert codes(objections(EVERYWHERE, even, five)) == ["action-constant"]
    assert objections(EVERYWHERE, even, five, max_accident=0.01) == ()


def test_a_log_with_a_single_action_has_nothing_to_vary() -> None:
    only_drug = counts_of((0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0))
    constant = episodes(varied=0, by_action=[20, 0])
    always = np.array([[0.5, 0.0], [0.5, 0.0]])
    assert objections(always, only_drug, constant) == ()


# Actions of one or two episodes.


def test_an_action_of_two_episodes_is_not_enough() -> None:
    rare = episodes(by_action=[2, 20])
    assert objections(EVERYWHERE, MIXED, rare) == (
        Objection(
            "few-episodes",
            "50 % of the rule's decisions are drug, which was done in only 2 of 20 episodes",
        ),
    )
    assert objections(EVERYWHERE, MIXED, episodes(by_action=[3, 20])) == ()


def test_an_action_that_the_rule_hardly_takes_does_not_matter() -> None:
    rare = episodes(by_action=[1, 20])
    hardly = np.array([[0.05, 0.45], [0.04, 0.46]])
    assert objections(hardly, MIXED, rare) == ()
    assert codes(objections(hardly, MIXED, rare, min_share=0.09)) == ["few-episodes"]


def test_a_long_label_is_shortened() -> None:
    long = Space(("x" * 10_000, "rest"))
    counts = TransitionCounts.from_records([0, 1] * 10, [0, 1] * 10, [1, 0] * 10, STATES, long)
    visits = np.array([[0.5, 0.0], [0.0, 0.5]])
    (found,) = objections(visits, counts, episodes(by_action=[1, 20]))
    assert len(found.message) < 400


@pytest.mark.parametrize(("number", "by_action"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2)])
def test_a_few_long_episodes_are_no_reason(number: int, by_action: int) -> None:
    long = episodes(number=number, several=number, varied=number, by_action=[by_action, number])
    assert objections(EVERYWHERE, MIXED, long) == ()


# States that record the decision.


def test_a_state_that_records_the_decision_is_no_outcome() -> None:
    recorded = counts_of((0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1))
    (found,) = objections(EVERYWHERE, recorded)
    assert found.code == "action-determines-outcome"
    assert "depends on the action alone" in found.message


@pytest.mark.parametrize(
    "records",
    [
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)],
        [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)],
        [(0, 0, 0), (0, 1, 1)],
    ],
    ids=["always the same next state", "stay or switch", "decisions in a single state"],
)
def test_other_deterministic_systems_are_fair(records: list[tuple[int, int, int]]) -> None:
    counts = counts_of(*records)
    seen = counts.by_state_action(counts.records.astype(float)) > 0
    assert objections(seen / seen.sum(), counts) == ()


def test_a_single_exception_shows_that_the_outcome_is_open() -> None:
    recorded = counts_of((0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1))
    exception = counts_of((0, 1, 0), times=1)
    assert objections(EVERYWHERE, recorded + exception) == ()


def test_five_records_of_two_actions_are_needed() -> None:
    records = [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1)]
    two_each = counts_of(*records, times=2)
    found = objections(EVERYWHERE, two_each, min_well_seen=0)
    assert found == ()
    three_each = counts_of(*records, times=3)
    found = objections(EVERYWHERE, three_each, min_well_seen=0)
    assert codes(found) == ["action-determines-outcome"]


# Decisions that the log does not have.


def test_a_rule_that_does_what_was_hardly_ever_done_has_little_support() -> None:
    seen = counts_of((0, 0, 0), (0, 0, 1), (1, 0, 1))
    quarter = np.array([[0.125, 0.375], [0.125, 0.375]])
    assert objections(quarter, seen) == ()
    less = np.array([[0.1, 0.4], [0.1, 0.4]])
    assert objections(less, seen) == (
        Objection(
            "little-support",
            "only 20 % of the rule's decisions were made at least 5 times in the same state",
        ),
    )
    assert objections(less, seen, min_well_seen=0.1) == ()


def test_a_rule_without_decisions_needs_no_support() -> None:
    assert objections(np.zeros((2, 2)), MIXED) == ()


@pytest.mark.parametrize(("num_states", "num_actions"), [(3, 4), (5, 3), (10, 5)])
def test_random_systems_raise_no_objection(num_states: int, num_actions: int) -> None:
    """300 records of a system with random rows, and a rule that decides all things equally."""
    rng = np.random.default_rng(num_states)
    for _ in range(20):
        rows = random_rows(rng, num_states, num_actions, num_states)
        counts = simulated_counts(rows, 300, rng)
        visits = np.full((num_states, num_actions), 1 / (num_states * num_actions))
        assert objections(visits, counts) == ()
