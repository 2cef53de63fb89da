"""Snapshots of a live policy: it goes on as if nothing had happened."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

import pastwise as pw
from pastwise._numerics.uniform import UniformNumbers
from pastwise.errors import ParameterError, PolicyFileError
from pastwise.methods import TL
from pastwise.policy.packing import digest_of
from pastwise.theory.similarity import normalised_similarity, plain_similarity
from tests.helpers.loops import ACTIONS, COLUMNS, GOALS, LOG, STATES, Record, learned, records

LEARNERS = [
    learned(goal, method=TL(similarity=similarity))
    for goal in GOALS
    for similarity in (normalised_similarity, plain_similarity)
]
FIXED = [learned(GOALS[1], method=name) for name in pw.methods.names()]

NEW: list[Record] = [("freezing", "heat", "cold"), ("cold", "fly", "mild"), ("hot", "open", "icy")]
"""Records with labels that the log does not have."""


def follow(live: pw.LivePolicy, stream: list[Record]) -> list[pw.Choice]:
    """Decide and observe by turns."""
    choices = []
    for record in stream:
        choices.append(live.choose(record[0], floor=0.1))
        live.observe(*record)
    return choices


def assert_equal_state(one: pw.LivePolicy, two: pw.LivePolicy) -> None:
    """Everything that can be seen of two loops."""
    assert one.state_hash() == two.state_hash()
    assert one.revision == two.revision
    assert one.states == two.states
    for state in one.states.labels:
        assert one.rule(state) == two.rule(state)
        assert one.choose(state, floor=0.1) == two.choose(state, floor=0.1)
    assert one.snapshot() == two.snapshot()


# Going on.


@given(st.sampled_from(LEARNERS), records, records, records)
def test_a_restored_loop_goes_on_as_the_first_one_would(
    learner: pw.TransferLearner, before: list[Record], then: list[Record], after: list[Record]
) -> None:
    """With what it has counted, and with a `take` in between."""
    one = learner.live(seed=5)
    follow(one, before)
    one.take()
    follow(one, then)
    two = learner.live()
    follow(two, after)  # is forgotten
    two.restore(one.snapshot())
    assert_equal_state(one, two)
    assert follow(one, after) == follow(two, after)
    assert_equal_state(one, two)
    assert one.take() == two.take()


@given(st.sampled_from(FIXED), records)
def test_every_method_can_be_stored_where_it_is_fixed(
    learner: pw.TransferLearner, stream: list[Record]
) -> None:
    one = learner.live(seed=5, fixed=True)
    start = one.state_hash()
    follow(one, stream)
    one.observe(*NEW[0])
    follow(one, stream)
    two = learner.live(fixed=True)
    two.restore(one.snapshot())
    assert one.state_hash() == start
    assert_equal_state(one, two)
    assert one.take() == two.take()


@pytest.mark.parametrize("goal", GOALS)
def test_new_labels_are_stored_with_what_was_learned_from_them(goal: pw.Goal) -> None:
    learner = learned(goal, on_unseen="prior")
    one = learner.live(seed=5)
    for number, record in enumerate(NEW):
        one.observe("mild", "heat", "hot")
        if number == 1:
            one.take()
        one.observe(*record)
        two = learner.live()
        two.restore(one.snapshot())
        assert_equal_state(one, two)
    assert follow(one, NEW) == follow(two, NEW)
    for live in (one, two):
        live.observe("burning", "wait", "hot")
    assert_equal_state(one, two)
    assert one.take() == two.take()

    # A loop whose labels have changed takes over a snapshot of one whose labels have not.
    plain = learner.live(seed=1)
    follow(plain, [("cold", "heat", "mild")])
    two.restore(plain.snapshot())
    assert_equal_state(plain, two)


def test_rewards_are_stored() -> None:
    log = {**LOG, "r": [1.0, 0.0, 2.0, 0.5, -1.0, 0.25]}
    learner = pw.TransferLearner(pw.Goal(maximise="reward"), method="TL")
    learner.fit(log, **COLUMNS, reward="r")
    one = learner.live(seed=1)
    one.observe("cold", "heat", "mild", reward=0.3)
    one.observe("cold", "heat", "mild", reward=0.1)
    one.observe("freezing", "heat", "mild", reward=0.1)
    one.observe("cold", "open", "hot", reward=-7.5)
    two = learner.live()
    two.restore(one.snapshot())
    assert_equal_state(one, two)
    assert one.take() == two.take()


def test_a_reward_that_sums_cannot_hold_is_refused() -> None:
    learner = pw.TransferLearner(pw.Goal(maximise="reward"), method="TL")
    learner.fit({**LOG, "r": [1.0, 0.0, 2.0, 0.5, -1.0, 0.25]}, **COLUMNS, reward="r")
    live = learner.live()
    for reward in (1e160, -1e200, 1e308, float("inf"), float("nan"), 10**400):
        with pytest.raises(ParameterError, match=r"a reward must be .* from -1e\+140 to 1e\+140"):
            live.observe("cold", "heat", "mild", reward=reward)
        with pytest.raises(ParameterError, match="a reward must be"):
            learner.observe("cold", "heat", "mild", reward=reward)
    assert live.revision == 0
    for reward in (1e140, -1e140, 1e140):
        live.observe("cold", "heat", "mild", reward=reward)
    again = learner.live()
    again.restore(live.snapshot())
    assert_equal_state(live, again)


@pytest.mark.parametrize("number", [0, 1, 1023, 1024, 1025, 3000])
def test_random_numbers_go_on(number: int) -> None:
    numbers = UniformNumbers(np.random.default_rng(1))
    one = iter(numbers)
    expected = np.random.default_rng(1).random(number + 2000).tolist()
    assert [next(one) for _ in range(number)] == expected[:number]
    two = iter(UniformNumbers.restored(numbers.state))
    assert [next(two) for _ in range(2000)] == expected[number:]
    assert [next(one) for _ in range(2000)] == expected[number:]


def test_a_loop_goes_on_in_another_process_from_a_file(tmp_path: Path) -> None:
    learned(GOALS[1]).save(tmp_path / "policy.safetensors")
    one = pw.load(tmp_path / "policy.safetensors").live(seed=1)
    follow(one, [("cold", "heat", "mild")] * 3)
    two = pw.load(tmp_path / "policy.safetensors").live()
    two.restore(one.snapshot())
    assert_equal_state(one, two)


# The hash.


@given(st.sampled_from(LEARNERS), records)
def test_the_same_records_lead_to_the_same_hash(
    learner: pw.TransferLearner, stream: list[Record]
) -> None:
    """Whatever was decided, looked at or taken in between."""
    one = learner.live(seed=1)
    two = learner.live(seed=2)
    for state in reversed(STATES):
        two.decide(state)
    for record in stream:
        one.observe(*record)
        two.observe(*record)
        two.choose(record[2])
        two.take()
        assert one.state_hash() == two.state_hash()
    assert len(one.state_hash()) == 16


def test_the_hash_changes_with_the_rule_the_policy_and_its_labels() -> None:
    learner = learned()
    live = learner.live()
    hashes = [live.state_hash()]
    for record in [("cold", "heat", "mild"), ("cold", "heat", "hot"), *NEW]:
        live.observe(*record)
        hashes.append(live.state_hash())
    hashes.append(learned(GOALS[1]).live().state_hash())
    learner.observe("cold", "heat", "mild")
    hashes.append(learner.live().state_hash())
    assert len(set(hashes)) == len(hashes)


def test_a_record_adds_plain_arithmetic_and_the_exponential_of_the_c_library() -> None:
    """That of numpy depends on the processor, and replay on another one would end elsewhere."""
    learner = learned(pw.Goal(reward={"mild": 1.0, "hot": -2.0}, temperature=0.7))
    ideal = learner.ideal_
    plan = TL().plan(TL().start(learner.counts_, ideal))
    for similarity in (normalised_similarity, plain_similarity):
        rows = TL(similarity=similarity).live_rows(plan, ideal)
        before = list(rows[0])
        rows.observe(0, 2, 0)
        rows.observe(0, 1, 1)
        before[2] += math.exp(-1.0 / 0.7)
        before[1] += math.exp(-3.0 / 0.7)
        assert rows[0] == before


# What is refused.


def test_snapshots_of_other_policies_are_refused() -> None:
    snapshot = learned().live().snapshot()
    other_log = pw.TransferLearner(GOALS[0], method="TL")
    other_log.fit({**LOG, "n": ["mild"] * 5 + ["hot"]}, **COLUMNS)
    for other in (learned(GOALS[1]), learned(method=TL(prior_count=1)), other_log):
        live = other.live(seed=1)
        live.observe("cold", "heat", "mild")
        before = live.state_hash()
        with pytest.raises(PolicyFileError, match="is of another policy"):
            live.restore(snapshot)
        assert live.state_hash() == before
        assert live.revision == 1
    with pytest.raises(PolicyFileError, match="taken with fixed=False"):
        learned().live(fixed=True).restore(snapshot)


def test_methods_that_plan_again_have_no_snapshot() -> None:
    live = learned(method="FPD_learn").live()
    for call in (live.snapshot, live.state_hash, lambda: live.restore(b"")):
        with pytest.raises(ParameterError, match=r"FPD_learn: .* Use live\(fixed=True\)"):
            call()


def test_damage_is_found_before_anything_changes() -> None:
    live = learned().live(seed=1)
    for record in [("cold", "heat", "mild"), *NEW]:
        live.observe(*record)
    snapshot = live.snapshot()
    before = live.state_hash()
    rng = np.random.default_rng(0)
    damaged = [b"", b"nothing", snapshot[:-1], snapshot[: len(snapshot) // 2], snapshot + b" "]
    for position in rng.choice(len(snapshot), 150, replace=False):
        flipped = bytearray(snapshot)
        flipped[position] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    for each in damaged:
        with pytest.raises(PolicyFileError, match="the snapshot"):
            live.restore(each)
        assert live.state_hash() == before
    live.restore(snapshot)
    assert live.state_hash() == before


FORGERIES: dict[str, Any] = {
    "unknown states": {"state": np.array([7])},
    "impossible values": {"row": np.array([[1.0, np.nan, 2.0]])},
    "rows have the wrong shape": {"row": np.ones((1, 2))},
    "unknown transitions": {"seen:key": np.array([10**6])},
    "impossible numbers of records": {"seen:records": np.array([-1])},
    "records have the wrong shape": {"seen:records": np.array([1, 1])},
    "rewards have the wrong shape": {"seen:earned": np.ones((1, 2))},
    "state is of type": {"state": np.array([0.5])},
}


@pytest.mark.parametrize("problem", FORGERIES)
def test_what_no_loop_can_have_is_refused_even_with_a_checksum(problem: str) -> None:
    live = learned().live()
    live.observe("cold", "heat", "mild")
    tensors = {**load(live.snapshot()), **FORGERIES[problem]}
    del tensors["sha256"]
    checksum = bytes.fromhex(digest_of(tensors, 1))
    tensors["sha256"] = np.frombuffer(checksum, dtype=np.uint8)
    with pytest.raises(PolicyFileError, match=f"the snapshot is damaged: .*{problem}"):
        live.restore(save(tensors))
    assert live.rule("cold").keys() == set(ACTIONS)
