"""Decisions leave the store as logs that the command line takes as they are."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pastwise.service.store.base import Store
from pastwise.service.store.rows import Insert, Write
from tests.helpers.command import Shell, shell_of
from tests.helpers.service_rows import POLICY, START, decision, decision_id, outcome

STATES = ["cold", "cool", "comfortable", "hot"]
RULE = {"heat": 0.5, "idle": 0.3, "vent": 0.2}
STEP = {"heat": 1, "idle": 0, "vent": -1}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


def days_of_a_thermostat(days: int) -> list[Write]:
    """Decisions by a fixed rule, ten a day, in a room that mostly does what it should."""
    chance = random.Random(16)
    writes: list[Write] = []
    for day in range(days):
        state = chance.choice(STATES)
        for _ in range(10):
            (action,) = chance.choices(list(RULE), list(RULE.values()))
            place = STATES.index(state) + STEP[action]
            next_state = STATES[min(max(place, 0), 3)]
            if chance.random() < 0.2:
                next_state = chance.choice(STATES)
            seq = len(writes) + 1
            made = decision(
                seq,
                state=state,
                action=action,
                propensity=RULE[action],
                episode=f"day {day}",
                status="learned",
            )
            writes.append(Insert(made))
            writes.append(Insert(outcome(seq + 1, seq, next_state=next_state)))
            state = next_state
    return writes


def test_a_log_is_learned_from_and_judged_with_its_propensities(
    store: Store, tmp_path: Path, shell: Shell
) -> None:
    store.submit(days_of_a_thermostat(30)).result()
    log = str(tmp_path / "decisions.parquet")
    policy = str(tmp_path / "policy.safetensors")
    assert store.export_parquet(POLICY, log) == 300

    columns = ["--state=state", "--action=action", "--next-state=next_state"]
    order = ["--episode=episode", "--time=time", "--propensity=propensity"]
    arguments = ["learn", log, *columns, *order, "--prefer=comfortable", f"--output={policy}"]
    learned = shell(*arguments, "--json")
    assert learned.code == 0
    assert learned.err == ""
    assert learned.json["verdict"]["logged"] == "better"

    judged = shell("evaluate", policy, log, "--importance", "--propensity=propensity", "--json")
    assert judged.code == 0
    assert judged.json["estimates"]


def test_a_log_holds_what_was_really_done_and_what_followed(store: Store, tmp_path: Path) -> None:
    rows = [
        decision(1, episode="e", status="learned"),
        decision(2, status="recorded", mode="shadow"),
        decision(3, status="recorded", mode="shadow", taken="vent", taken_by="operator"),
        decision(4, status="learned", taken="idle", taken_by="operator"),
        decision(5),
        decision(6, status="missing"),
        decision(7, status="late"),
        decision(1, policy="other", status="learned"),
    ]
    results = [
        outcome(11, 1, next_state="hot", reward=0.5),
        outcome(12, 2),
        outcome(13, 3),
        outcome(14, 4),
        outcome(15, 7, status="late"),
    ]
    store.submit([*map(Insert, rows), *map(Insert, results)]).result()
    path = tmp_path / "log.parquet"
    assert store.export_parquet(POLICY, path) == 4

    table = pq.read_table(path)
    assert table.column_names == [
        "state",
        "action",
        "next_state",
        "episode",
        "time",
        "propensity",
        "reward",
        "decision_id",
        "status",
    ]
    assert table["decision_id"].to_pylist() == [decision_id(seq) for seq in (1, 3, 4, 7)]
    assert table["action"].to_pylist() == ["heat", "vent", "idle", "heat"]
    assert table["next_state"].to_pylist() == ["hot", *["comfortable"] * 3]
    assert table["propensity"].to_pylist() == [0.1 + 0.2, None, None, 0.1 + 0.2]
    assert table["reward"].to_pylist() == [0.5, None, None, None]
    assert table["episode"].to_pylist() == ["e", *(decision_id(seq) for seq in (3, 4, 7))]
    assert table["time"].to_pylist()[0] == datetime.fromtimestamp((START + 1000) / 1000, UTC)
    assert table["status"].to_pylist() == ["learned", "recorded", "learned", "late"]


def test_a_log_of_some_time(store: Store, tmp_path: Path) -> None:
    store.submit(days_of_a_thermostat(1)).result()
    path = tmp_path / "log.parquet"
    assert store.export_parquet(POLICY, path, since=START + 5000, until=START + 9000) == 2
    assert pq.read_table(path)["decision_id"].to_pylist() == [decision_id(5), decision_id(7)]
    assert store.export_parquet(POLICY, path, since=START - 2, until=START) == 0
    assert pq.read_table(path).num_rows == 0
