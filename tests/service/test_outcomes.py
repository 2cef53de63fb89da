"""Tests of what happens to a decision after it was made: the table of outcomes, row by row."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pastwise as pw
from pastwise.service.problems import Problem
from pastwise.service.randomness import uuid7
from pastwise.service.store.rows import RemovalRow, Replace
from pastwise.service.types import DecisionView, OutcomeRequest, PolicySettings, TakenRequest
from tests.helpers.engines import ROOM, Bench, opened, refused, room_engine, room_file, saved

pytestmark = pytest.mark.anyio


async def taken(bench: Bench, decision: DecisionView, action: str) -> None:
    """Report that another action was taken."""
    request = TakenRequest(action=action, by="operator")
    await bench.engine.taken(decision.decision_id, request, "tester")


async def expected_rule(records: list[tuple[str, str, str]], folder: Path) -> dict[str, float]:
    """The rule in ``cold`` of a learner that observes some records on top of the policy file."""
    path = folder / "expected.safetensors"
    path.write_bytes(room_file())
    learner = pw.load(path)
    for record in records:
        learner.observe(*record)
    return {str(action): p for action, p in learner.rule("cold").items()}


# The first outcome, in time.


async def test_the_first_outcome_is_learned_at_once(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        answer = await bench.outcome(decision, "warm")
        record = ("cold", decision.action, "warm")

        assert (answer.status, answer.evidence) == ("learned", 1)
        assert bench.status(decision) == "learned"
        assert await bench.rule() == pytest.approx(await expected_rule([record], tmp_path))


async def test_an_outcome_at_the_very_end_of_its_window_is_in_time(tmp_path: Path) -> None:
    async with room_engine(tmp_path, outcome_due_s=60.0) as bench:
        decision = await bench.decide("cold")
        bench.clock.pass_seconds(60)

        assert (await bench.outcome(decision)).status == "learned"


@pytest.mark.parametrize("settings", [{"learn": False}, {"mode": "shadow"}])
async def test_an_outcome_is_only_recorded_without_learning_and_in_shadow(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with room_engine(tmp_path, **settings) as bench:
        before = await bench.rule()
        decision = await bench.decide("cold")
        answer = await bench.outcome(decision)

        assert (answer.status, answer.evidence) == ("recorded", 0)
        assert decision.mode == settings.get("mode", "live")
        assert await bench.rule() == before


async def test_a_decision_in_shadow_is_not_learned_after_going_live(tmp_path: Path) -> None:
    async with room_engine(tmp_path, mode="shadow") as bench:
        decision = await bench.decide("cold")
        await bench.change(mode="live")

        assert (await bench.outcome(decision)).status == "recorded"


async def test_nothing_is_learned_in_shadow_of_earlier_decisions_either(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        await bench.change(mode="shadow")

        assert (await bench.outcome(decision)).status == "recorded"


async def test_an_outcome_of_another_version_is_only_recorded(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")
        await bench.change(version=2)
        answer = await bench.outcome(decision)

        assert (answer.status, answer.evidence) == ("recorded", 0)


async def test_learning_can_wait_until_the_window_closes(tmp_path: Path) -> None:
    async with room_engine(tmp_path, learn_delay="window") as bench:
        before = await bench.rule()
        decision = await bench.decide("cold")
        answer = await bench.outcome(decision, "warm")

        # Nothing is learned before the window closes.
        assert (answer.status, answer.evidence) == ("waiting", 0)
        assert await bench.engine.sweep() == 0
        assert await bench.rule() == before

        # Then it is, once.
        bench.clock.pass_seconds(61)
        assert await bench.engine.sweep() == 1
        assert await bench.engine.sweep() == 0
        record = ("cold", decision.action, "warm")
        assert await bench.rule() == pytest.approx(await expected_rule([record], tmp_path))
        assert bench.status(decision) == "learned"
        assert bench.kinds() == ["decision", "outcome", "learn"]


async def test_what_waits_is_only_recorded_if_learning_was_switched_off(tmp_path: Path) -> None:
    async with room_engine(tmp_path, learn_delay="window") as bench:
        decision = await bench.decide("cold")
        await bench.outcome(decision)
        await bench.change(learn=False)
        bench.clock.pass_seconds(61)
        await bench.engine.sweep()

        assert bench.status(decision) == "recorded"
        assert bench.engine.policy(ROOM).evidence == 0


# The same again, and another one.


async def test_the_same_outcome_again_gets_the_same_answer_and_is_learned_once(
    tmp_path: Path,
) -> None:
    async with room_engine(tmp_path) as bench:
        first = await bench.decide("cold")
        answer = await bench.outcome(first, "warm")
        await bench.outcome(await bench.decide("mild"))
        request = OutcomeRequest(next_state="warm")
        again = await bench.engine.outcome(first.decision_id, request, "tok")

        assert again == (answer, True)
        assert bench.engine.policy(ROOM).evidence == 2
        assert bench.kinds().count("outcome") == 2


async def test_equal_outcomes_at_the_same_time_are_learned_once(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        request = OutcomeRequest(next_state="warm")
        reports = [bench.engine.outcome(decision.decision_id, request, "tok") for _ in range(20)]
        answers = await asyncio.gather(*reports)

        assert {(view.status, view.evidence) for view, _ in answers} == {("learned", 1)}
        assert [replayed for _, replayed in answers].count(False) == 1


async def test_another_outcome_is_a_conflict_and_the_first_stays(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        await bench.outcome(decision, "warm")
        rule = await bench.rule()
        with refused("outcome-conflict") as raised:
            await bench.outcome(decision, "mild")

        assert raised.value.extra["first"]["next_state"] == "warm"
        assert bench.kinds() == ["decision", "outcome", "conflict"]
        assert await bench.rule() == rule
        stored = bench.engine.store.outcome_of(decision.decision_id)
        assert stored is not None
        assert stored.next_state == "warm"
        seen = await bench.engine.decision(decision.decision_id)
        assert [conflict.next_state for conflict in seen.conflicts] == ["mild"]
        assert bench.news[-1][1:] == (
            "conflict",
            {"decision_id": decision.decision_id, "seq": seen.seq + 2, "next_state": "mild"},
        )


async def test_decisions_are_found_by_how_they_ended(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        learned = await bench.decide("cold")
        await bench.outcome(learned, "warm")
        conflict = await bench.decide("cold")
        await bench.outcome(conflict, "warm")
        with refused("outcome-conflict"):
            await bench.outcome(conflict, "mild")
        await bench.decide("cold")

        def found(status: str) -> list[str]:
            page = bench.engine.store.decisions(ROOM, status=status)
            return [row.id for row in page.items]

        assert found("in-time") == [conflict.decision_id, learned.decision_id]
        assert found("conflict") == [conflict.decision_id]
        assert found("late") == []


# Late, missing.


async def test_a_late_outcome_is_kept_and_not_learned(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        bench.clock.pass_seconds(60.001)
        answer = await bench.outcome(decision, "warm")

        assert (answer.status, answer.evidence) == ("late", 0)
        assert bench.status(decision) == "late"
        stored = bench.engine.store.outcome_of(decision.decision_id)
        assert stored is not None
        assert stored.next_state == "warm"


async def test_an_outcome_that_never_comes_is_missing_and_not_guessed(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        before = await bench.rule()
        decision = await bench.decide("cold")
        bench.clock.pass_seconds(61)

        assert await bench.engine.sweep() == 1
        assert bench.status(decision) == "missing"
        assert bench.engine.store.outcome_of(decision.decision_id) is None
        assert await bench.rule() == before
        assert bench.kinds() == ["decision", "missing"]

        # If it comes after all, it is late.
        assert (await bench.outcome(decision)).status == "late"
        assert bench.status(decision) == "late"


async def test_a_sweep_closes_all_that_is_due_in_several_transactions(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"most_due": 3}) as bench:
        early = [await bench.decide("cold") for _ in range(10)]
        bench.clock.pass_seconds(30)
        late = await bench.decide("cold")
        bench.clock.pass_seconds(31)

        assert await bench.engine.sweep() == 10
        assert {bench.status(each) for each in early} == {"missing"}
        assert bench.status(late) == "open"


async def test_a_sweep_leaves_those_that_are_being_reported_to_the_next(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"most_due": 2}) as bench:
        decisions = [await bench.decide("cold") for _ in range(2)]
        bench.clock.pass_seconds(61)
        reports = [asyncio.create_task(bench.outcome(each)) for each in decisions]
        await asyncio.sleep(0)

        assert await bench.engine.sweep() == 0
        assert [(await each).status for each in reports] == ["late", "late"]


# Labels.


async def test_an_unknown_label_is_refused_with_the_nearest(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        with refused("unknown-label") as raised:
            await bench.outcome(decision, "wram")

        (part,) = raised.value.errors
        assert part.pointer == "/next_state"
        assert "warm" in part.near
        assert bench.status(decision) == "open"

        # The decision still waits for its outcome.
        assert (await bench.outcome(decision, "warm")).status == "learned"


async def test_an_unknown_label_is_kept_where_labels_are_open(tmp_path: Path) -> None:
    async with room_engine(tmp_path, labels="open") as bench:
        decision = await bench.decide("cold")
        answer = await bench.outcome(decision, "scorching")

        assert (answer.status, answer.evidence) == ("new-label", 0)
        stored = bench.engine.store.outcome_of(decision.decision_id)
        assert stored is not None
        assert stored.next_state == "scorching"
        assert (await bench.outcome(decision, "scorching")).status == "new-label"

        # It is known as the first outcome also after labels were closed.
        await bench.change(labels="closed")
        assert await bench.outcome(decision, "scorching") == answer


async def test_a_reward_is_refused_where_the_log_has_none(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        with refused("invalid-value"):
            await bench.outcome(decision, "warm", reward=1.0)
        with refused("invalid-value"):
            await bench.outcome(decision, None)
        assert bench.status(decision) == "open"


REWARDED = {
    "user": ["young", "old"] * 50,
    "shown": ["a", "b", "b", "a"] * 25,
    "then": ["stays", "leaves", "stays"] * 33 + ["stays"],
    "r": [0.5, 2.0] * 50,
}


async def test_a_reward_that_sums_cannot_hold_is_refused(tmp_path: Path) -> None:
    learner = pw.TransferLearner(pw.Goal(maximise="reward"), method="TL")
    learner.fit(REWARDED, state="user", action="shown", next_state="then", reward="r")
    async with opened(tmp_path) as bench:
        await bench.engine.create_policy(ROOM, PolicySettings(mode="live"), "tester")
        await bench.engine.add_version(ROOM, saved(learner), b"seed", "", "tester")
        decision = await bench.decide("old")
        for reward in (1e160, -1e200, 1e308):
            with refused("invalid-value") as raised:
                await bench.outcome(decision, "stays", reward=reward)
            assert raised.value.errors[0].pointer == "/reward"
        assert (await bench.outcome(decision, "stays", reward=-1e140)).status == "learned"
    async with opened(tmp_path, bench.clock) as again:
        assert again.engine.policy(ROOM).evidence == 1
        await again.engine.rollback(ROOM, 1, "tester")


@pytest.mark.parametrize("ending", ["orderly", "killed"])
async def test_a_store_that_took_in_a_larger_reward_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    learner = pw.TransferLearner(pw.Goal(maximise="reward"), method="TL")
    learner.fit(REWARDED, state="user", action="shown", next_state="then", reward="r")
    with monkeypatch.context() as before:
        for module in ("data.live_counts", "service.versions"):
            before.setattr(f"pastwise.{module}.MAX_REWARD", 1e308)
        async with opened(tmp_path) as bench:
            await bench.engine.create_policy(ROOM, PolicySettings(mode="live"), "tester")
            await bench.engine.add_version(ROOM, saved(learner), b"seed", "", "tester")
            await bench.outcome(await bench.decide("old"), "stays", reward=1e160)
            rule = await bench.rule("old")
    if ending == "killed":
        with closing(sqlite3.connect(tmp_path / "service.sqlite")) as database:
            database.execute("delete from snapshot")
            database.commit()

    async with opened(tmp_path, bench.clock) as again:
        assert await again.rule("old") == rule
        assert (await again.engine.replay(ROOM)).equal


async def test_the_callers_time_is_kept_and_not_used(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        answer = await bench.outcome(decision, at="2001-02-03T04:05:06+01:00")
        stored = bench.engine.store.outcome_of(decision.decision_id)

        assert answer.status == "learned"
        assert stored is not None
        assert stored.reported_at == 981169506000
        with refused("invalid-value") as raised:
            await bench.outcome(decision, at="yesterday")
        assert raised.value.errors[0].pointer == "/at"


# Another action was taken; nothing was done.


async def test_after_taken_the_outcome_is_a_record_of_the_action_that_was_taken(
    tmp_path: Path,
) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        others = [action for action in ("heat", "idle", "vent") if action != decision.action]
        await taken(bench, decision, others[0])
        await taken(bench, decision, others[1])  # a correction
        answer = await bench.outcome(decision, "warm")
        record = ("cold", others[1], "warm")

        assert answer.status == "learned"
        assert await bench.rule() == pytest.approx(await expected_rule([record], tmp_path))
        stored = bench.engine.store.decision(decision.decision_id)
        assert stored is not None
        assert (stored.action, stored.taken) == (decision.action, others[1])
        assert stored.taken_by == "operator"


async def test_an_action_that_was_taken_must_be_known_where_labels_are_closed(
    tmp_path: Path,
) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        with refused("unknown-label") as raised:
            await taken(bench, decision, "hope")
        assert raised.value.errors[0].pointer == "/action"

        await bench.change(labels="open")
        await taken(bench, decision, "hope")
        assert (await bench.outcome(decision)).status == "new-label"


async def test_a_closed_decision_can_be_neither_corrected_nor_cancelled(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        await bench.outcome(decision)
        with refused("decision-closed"):
            await taken(bench, decision, "idle")
        with refused("decision-closed"):
            await bench.engine.cancel(decision.decision_id, "tester")


async def test_after_cancel_there_is_no_outcome(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        decision = await bench.decide("cold")
        detail = await bench.engine.cancel(decision.decision_id, "tester")
        again = await bench.engine.cancel(decision.decision_id, "tester")

        assert detail.status == again.status == "cancelled"
        assert bench.kinds() == ["decision", "cancel"]
        with refused("decision-cancelled"):
            await bench.outcome(decision)
        with refused("decision-cancelled"):
            await taken(bench, decision, "idle")
        bench.clock.pass_seconds(61)
        assert await bench.engine.sweep() == 0
        assert bench.engine.store.outcome_of(decision.decision_id) is None


# Ids.


UNKNOWN_ID = "018bcfe5-6800-7db9-bdd1-fa0e6257f33c"


@pytest.mark.parametrize("decision_id", ["", "no-id", UNKNOWN_ID])
async def test_an_unknown_id_is_not_found(tmp_path: Path, decision_id: str) -> None:
    async with room_engine(tmp_path) as bench:
        with refused("not-found"):
            await bench.outcome(decision_id)
        with refused("not-found"):
            await bench.engine.cancel(decision_id, "tester")


async def test_a_decision_that_retention_took_is_gone(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        now = bench.clock.now
        removal = RemovalRow(ROOM, 1, now - 1000, 5, "old.parquet", now)
        bench.engine.store.submit([Replace(removal)]).result()
        with refused("gone"):
            await bench.outcome(uuid7(now - 2000))
        with refused("not-found"):
            await bench.outcome(uuid7(now))

        # Decisions with earlier events may be removed later, such as those without a snapshot.
        removal = RemovalRow(ROOM, 0, now - 500, 1, "later.parquet", now)
        bench.engine.store.submit([Replace(removal)]).result()
        with refused("gone"):
            await bench.outcome(uuid7(now - 700))


async def test_outcomes_are_the_same_after_a_restart(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        reported = await bench.decide("cold")
        answer = await bench.outcome(reported, "warm")
        still_open = await bench.decide("mild")
        clock = bench.clock

    async with opened(tmp_path, clock) as bench:
        assert await bench.outcome(reported, "warm") == answer
        with pytest.raises(Problem):
            await bench.outcome(reported, "mild")
        assert (await bench.outcome(still_open)).evidence == 2
