"""Very large systems: what must work on them, and what is refused before memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from pastwise import TransferLearner, TransitionCounts
from pastwise._numerics.checks import LARGEST_TABLE, require_memory
from pastwise.data.space import Space
from pastwise.evaluation.importance import action_values
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.methods import names
from pastwise.models.hierarchy import TransitionPosterior
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import design, mdp_optimum
from pastwise.theory.learning import concentration, prior_concentration
from pastwise.theory.similarity import kl_divergence

MANY, A = 10**6, 8


def huge() -> TransitionCounts:
    """Three records in a million states."""
    return TransitionCounts.from_records(
        [0, 1, 5], [0, 1, 7], [1, 5, 0], Space.of_size(MANY), Space.of_size(A)
    )


def model() -> LearnedModel:
    return LearnedModel(huge(), 1e-6)


def wide(*shape: int) -> Any:
    """An array that takes no memory."""
    return np.broadcast_to(0.0, shape)


def ideal(*shape: int) -> IdealModel:
    """An ideal whose transition model depends on what the shape says, and takes no memory."""
    return IdealModel(
        np.broadcast_to(-np.log(MANY), shape),
        np.full((1, A), -np.log(A)),
        np.ones((1, A), dtype=bool),
    )


BY_ALL = Goal(reward={0: {0: {1: 1.0}}})
NEXT = Goal(prefer={1: 1})

TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "reward by all three": (
        lambda: TransferLearner(BY_ALL, method="TL").fit(huge()),
        "give numbers by next state alone",
    ),
    "its score": (
        lambda: BY_ALL.score(Space.of_size(MANY), Space.of_size(A)),
        "give numbers by next state alone",
    ),
    "table by state and action": (
        lambda: Goal(table={0: {0: {1: 1.0}}}).on(Space.of_size(MANY), Space.of_size(A)),
        "give numbers by next state alone",
    ),
    "even table": (
        lambda: Goal(table={0: {0: 1e-6}}).on(Space.of_size(MANY), Space.of_size(A)),
        "by next state alone",
    ),
    "retarget": (
        lambda: TransferLearner(NEXT, method="TL").fit(huge()).retarget(BY_ALL),
        "give numbers by next state alone",
    ),
    "past goal": (
        lambda: TransferLearner(NEXT, method="TL", past_goals={0: BY_ALL}).fit(
            replace(huge(), shape=(1,), tasks=Space((0,)))
        ),
        "give numbers by next state alone",
    ),
    "divergence": (
        lambda: kl_divergence(ideal(MANY, 1, MANY), ideal(1, A, MANY)),
        "compare goals over next states",
    ),
    "posterior": (lambda: concentration(huge(), np.ones(3), 1.0), "gather_evidence"),
    "sampled models": (lambda: TransitionPosterior(huge()), "join states into fewer"),
    "rules of many epochs": (
        lambda: design(model(), NEXT.on(*spaces()), 1000),
        "first_rule gives the first alone",
    ),
    "optimum of many epochs": (
        lambda: mdp_optimum(model(), np.zeros(MANY), 1000),
        "shorten the horizon",
    ),
    "values of many steps": (
        lambda: action_values(model(), wide(MANY, A), np.zeros(MANY), np.ones(MANY), 1000),
        "shorten the horizon",
    ),
    "evaluation": (
        lambda: TransferLearner(NEXT, method="TL").fit(huge()).evaluate(),
        "handles at most",
    ),
}


def spaces() -> tuple[Space, Space]:
    return Space.of_size(MANY), Space.of_size(A)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_needs_a_table_too_large_is_refused_with_something_to_do_instead(name: str) -> None:
    ask, instead = TOO_LARGE[name]
    with pytest.raises(ValueError, match=instead):
        ask()


def test_refusal_tells_the_size() -> None:
    with pytest.raises(
        ValueError,
        match=r"needs a table of 1,000,000 x 8 x 1,000,000 = 8e\+12 numbers \(64,000 GB\); ",
    ):
        TransferLearner(BY_ALL, method="TL").fit(huge())


def test_largest_table_is_not_refused() -> None:
    require_memory("this", (LARGEST_TABLE // 8,), "nothing")
    with pytest.raises(ValueError, match="this needs a table"):
        require_memory("this", (LARGEST_TABLE // 8 + 1,), "nothing")


def test_a_number_for_each_state_and_action_is_not_spread_over_next_states() -> None:
    """As a prior count, and as a value to expect."""
    each = np.broadcast_to(np.arange(1.0, A + 1)[:, None], (MANY, A, 1))
    np.testing.assert_allclose(prior_concentration(ideal(1, 1, MANY), each), each[..., 0] * MANY)
    np.testing.assert_allclose(model().expect_each(each), each[..., 0])


def test_counts_do_not_change_with_the_array_they_came_from() -> None:
    weight = np.array([1.0, 2.0])
    counts = TransitionCounts.from_records(
        [0, 1], [0, 0], [1, 0], Space.of_size(2), Space.of_size(1), weight
    )
    weight[0] = 7.0
    assert counts.weight.tolist() == [1.0, 2.0]


# What must work.

S = 10**5
SPACES = {
    "indices": (Space.of_size(S), Space.of_size(A)),
    "text": (Space([f"s{i:06d}" for i in range(S)]), Space([f"a{i}" for i in range(A)])),
}


def many_records(states: Space, actions: Space) -> TransitionCounts:
    """Records that lead from each state to one of the next hundred."""
    rng = np.random.default_rng(3)
    state, action = rng.integers(S, size=5 * S), rng.integers(A, size=5 * S)
    following = (state + rng.integers(1, 100, size=5 * S)) % S
    return TransitionCounts.from_records(state, action, following, states, actions)


@pytest.mark.parametrize("kind", SPACES)
def test_a_hundred_thousand_states_are_learned_retargeted_explained_and_kept(
    kind: str, tmp_path: Path
) -> None:
    states, actions = SPACES[kind]
    counts = many_records(states, actions)
    (s, a, n) = (int(each[1000]) for each in (counts.state, counts.action, counts.next_state))
    before, done, wanted = states.labels[s], actions.labels[a], states.labels[n]
    learner = (
        TransferLearner(Goal(prefer={before: 1}), method="TL")
        .fit(counts)
        .retarget(Goal(prefer={wanted: 1}))
    )
    assert learner.rule(before)[done] > 0.1
    assert learner.explain(before, done).actions[done].evidence[0].next_state == wanted

    learner.observe(before, done, wanted)
    assert learner.rule(before) == learner.rule_[before]
    assert learner.explain(before).actions[done].probability == learner.rule(before)[done]
    assert learner.support()[before].records == counts.records[counts.state == s].sum() + 1
    again = TransferLearner(learner.goal, method="TL").fit(learner.counts_)
    np.testing.assert_allclose(
        again.rule_.probabilities, learner.rule_.probabilities, rtol=1e-12, atol=0
    )

    learner.save(tmp_path / "policy.safetensors")
    loaded = pw.load(tmp_path / "policy.safetensors")
    assert loaded.counts_ == learner.counts_
    assert np.array_equal(loaded.rule_.probabilities, learner.rule_.probabilities)


@pytest.mark.parametrize("method", ["TL_explore", "FPD_learn", "TL_foresight"])
def test_every_method_learns_a_hundred_thousand_states(method: str) -> None:
    rule = (
        TransferLearner(Goal(prefer={500: 1}), method=method)
        .fit(many_records(*SPACES["indices"]))
        .rule_
    )
    np.testing.assert_allclose(rule.probabilities.sum(axis=-1), 1)


@pytest.mark.parametrize("method", names())
@pytest.mark.parametrize("ends", [[], [5]])
def test_a_reward_by_state_and_action_is_the_same_spelt_out_for_every_next_state(
    method: str, ends: list[int]
) -> None:
    """It takes a number for each state and action, and none for what follows."""
    rng, states, actions = np.random.default_rng(2), Space.of_size(6), Space.of_size(3)
    state, action, following = (rng.integers(n, size=60) for n in (6, 3, 6))
    counts = TransitionCounts.from_records(state, action, following, states, actions)
    counts = counts.ending_in(np.array(ends, dtype=np.int64))
    short: Any = {s: {a: float(rng.normal()) for a in range(3)} for s in range(5)}
    long: Any = {
        s: {a: dict.fromkeys(range(6), r) for a, r in row.items()} for s, row in short.items()
    }
    learners = []
    for reward in (short, long):
        goal = Goal(reward=reward, temperature=0.5, forbid=[(None, 2)])
        learners.append(TransferLearner(goal, method=method).fit(counts))
    one, other = learners
    np.testing.assert_allclose(
        one.rule_.probabilities, other.rule_.probabilities, rtol=1e-6, atol=1e-12
    )
    assert str(one.explain(1)) == str(other.explain(1))
    values = [learner.evaluate(samples=40).values["new"].mean for learner in learners]
    assert values[0] == pytest.approx(values[1])


def test_labels_too_long_for_a_files_header_are_kept(tmp_path: Path) -> None:
    states = Space([f"{i:06d}" + "x" * 500 for i in range(S)])
    counts = TransitionCounts.from_records([0, 1], [0, 1], [1, 2], states, Space.of_size(A))
    pw.save_counts(counts, tmp_path / "counts.safetensors")
    assert pw.load_counts(tmp_path / "counts.safetensors")[0] == counts


@pytest.mark.parametrize("key", ["7", "99999"])
def test_an_index_may_be_named_by_its_key(key: str) -> None:
    assert Space.of_size(S).index(key) == int(key)


@pytest.mark.parametrize("key", ["007", "100000", "-1", "1.0", "٣", "9" * 5000, "true"])
def test_what_is_no_key_of_an_index_is_unknown(key: str) -> None:
    assert not Space.of_size(S).has(key)
    with pytest.raises(ValueError, match="unknown label"):
        Space.of_size(S).index(key)


def test_a_long_rule_is_exported_whole(tmp_path: Path) -> None:
    import csv
    import json

    rule = (
        TransferLearner(Goal(prefer={500: 1}), method="TL")
        .fit(many_records(*SPACES["indices"]))
        .rule_
    )
    rule.export(tmp_path / "rule.json")
    assert json.loads((tmp_path / "rule.json").read_text()) == rule.to_dict()
    rule.export(tmp_path / "rule.csv")
    with (tmp_path / "rule.csv").open(newline="") as file:
        rows = [row["probability"] for row in csv.DictReader(file)]
    assert np.array_equal(np.array(rows, dtype=np.float64), rule.probabilities.ravel())
