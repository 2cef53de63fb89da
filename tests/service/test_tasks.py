"""What jobs do, without their processes."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pastwise
from pastwise.data.space import key_of
from pastwise.errors import LogError, ParameterError, PastwiseError
from pastwise.service import tasks
from pastwise.service.store import open_store
from pastwise.service.store.rows import Insert, VersionRow, Write
from tests.helpers.service_rows import POLICY, START, decision, outcome

COLUMNS: dict[str, Any] = {"state": "state", "action": "action", "next_state": "then"}
JOB = Path("job")
GOAL = pastwise.Goal(prefer={"warm": 1.0})


class Watched:
    """A control that notes what a job reports, and stops it after so many reports."""

    def __init__(self, stops_after: int | None = None) -> None:
        self.reports: list[tuple[int, int | None]] = []
        self.partials: list[dict[str, object]] = []
        self.stops_after = stops_after
        self.looks = 0
        self.folder = JOB
        self.folder.mkdir(exist_ok=True)

    def progress(self, done: int, of: int | None = None) -> None:
        self.reports.append((done, of))

    def partial(self, result: dict[str, object]) -> None:
        self.partials.append(result)

    def should_stop(self) -> bool:
        self.looks += 1
        return self.stops_after is not None and self.looks > self.stops_after


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, to which paths are relative."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def random_log(size: int = 300, seed: int = 0) -> dict[str, list[str]]:
    """A thermostat: heating warms."""
    rng = np.random.default_rng(seed)
    states = rng.choice(["cold", "warm"], size)
    actions = rng.choice(["heat", "wait"], size)
    warms = rng.random(size) < np.where(actions == "heat", 0.8, 0.3)
    following = np.where(warms, "warm", "cold")
    return {"state": states.tolist(), "action": actions.tolist(), "then": following.tolist()}


def fitted(log: Any, columns: Any = COLUMNS, goal: Any = GOAL) -> pastwise.TransferLearner:
    return pastwise.TransferLearner(goal, method="TL").fit(log, columns)


def store_of(
    learner: pastwise.TransferLearner,
    records: Sequence[tuple[str, str, str | None]],
    at: int = START,
) -> str:
    """A store with a version that was added at that time, and with decisions and what followed."""
    learner.save("stored.safetensors")
    artefact = Path("stored.safetensors").read_bytes()
    version = VersionRow(POLICY, 1, "", artefact, bytes(16), "", "[]", "me", at)
    writes: list[Write] = [Insert(version)]
    for place, (state, action, following) in enumerate(records):
        seq = 2 * place + 1
        writes.append(Insert(decision(seq, state=state, action=action, status="learned")))
        if following is not None:
            writes.append(Insert(outcome(seq + 1, seq, next_state=following)))
    store = open_store("store")
    store.submit(writes).result()
    store.close()
    return "store"


def version(place: str) -> tasks.Version:
    return tasks.Version(store=place, policy=POLICY, version=1)


def decisions(place: str, **times: int) -> tasks.Decisions:
    return tasks.Decisions(store=place, policy=POLICY, **times)


RECORDS = (
    [("cold", "heat", "warm")] * 30 + [("warm", "wait", "cold")] * 10 + [("cold", "wait", None)]
)


# Summaries.


def test_a_summary_describes_the_columns() -> None:
    rows = [f"{place % 3},{'' if place == 5 else 'x'},=cmd" for place in range(10)]
    Path("log.csv").write_text("\n".join(["number,text,formula", *rows]) + "\n")
    found = tasks.summarise(tasks.Summarise(log="log.csv"), Watched())
    columns: Any = found["columns"]
    number, text, formula = columns
    assert found["rows"] == 10
    assert (number["name"], number["min"], number["max"]) == ("number", "0", "2")
    assert number["distinct"] == 3
    assert text["missing"] == pytest.approx(0.1)
    assert formula["max"] == "=cmd"


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_with_columns_it_says_what_would_be_learned(ending: str) -> None:
    path = Path(f"log.{ending}")
    table = pa.table(random_log())
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "csv":
        rows = [",".join(row.values()) for row in table.to_pylist()]
        path.write_text("\n".join(["state,action,then", *rows]) + "\n")
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    found = tasks.summarise(tasks.Summarise(log=str(path), columns=COLUMNS), Watched())
    assert found == pastwise.validate_log(table, COLUMNS).to_dict()


def mistakes() -> dict[str, bytes]:
    """Files that pass as text or Parquet, and are no logs."""
    return {
        "only-header.csv": b"state,action,then\n",
        "million-columns.csv": b",".join(b"c%d" % place for place in range(10**6)) + b"\n1\n",
        "one-long-line.csv": b"x" * 5_000_000,
        "late-nul.csv": b"state,action,then\n" + b"cold,heat,warm\n" * 9000 + b"co\0ld,heat,warm\n",
        "late-latin-1.csv": b"state,action,then\n" + b"cold,heat,warm\n" * 9000 + b"\xe9,a,b\n",
        "unclosed-quote.csv": b'state,action,then\n"cold,heat,warm\n' * 3,
        "ragged.csv": b"state,action,then\ncold,heat\nwarm,idle,cold,hot\n",
        "pretty.jsonl": b'{\n "state":\n 1\n',
        "damaged.parquet": b"PAR1" + bytes(100) + b"PAR1",
    }


def rows_or_message(name: str, columns: dict[str, Any] | None) -> object:
    """How a summary ends: with a number of rows, or with an error that the user can fix."""
    try:
        return tasks.summarise(tasks.Summarise(log=name, columns=columns), Watched())["rows"]
    except PastwiseError as error:
        return str(error)


@pytest.mark.parametrize("name", mistakes())
def test_no_file_breaks_a_summary(name: str) -> None:
    Path(name).write_bytes(mistakes()[name])
    for columns in (None, COLUMNS):
        end = rows_or_message(name, columns)
        assert isinstance(end, int) or end


@pytest.mark.parametrize("name", ["foo", "partition", "encoding", "half_life", "max_gap"])
def test_columns_that_a_log_cannot_be_read_by_are_named(name: str) -> None:
    Path("log.csv").write_bytes(b"room,action,then\ncold,heat,mild\n")
    for value in ([1], {"a": 1}):
        arguments = tasks.Summarise(log="log.csv", columns={**COLUMNS, name: value})
        with pytest.raises(ParameterError, match=name):
            tasks.summarise(arguments, Watched())


def test_too_many_columns_are_named() -> None:
    Path("wide.csv").write_bytes(mistakes()["million-columns.csv"])
    with pytest.raises(LogError, match="at most 1,000"):
        tasks.summarise(tasks.Summarise(log="wide.csv"), Watched())
    columns = {f"c{place}": [1] for place in range(1001)}
    pq.write_table(pa.table(columns), "wide.parquet")
    with pytest.raises(LogError, match=r"1,001 columns"):
        tasks.summarise(tasks.Summarise(log="wide.parquet"), Watched())


def test_a_name_that_looks_like_a_glob_or_sql_is_only_a_name() -> None:
    name = "it's *.csv"
    Path(name).write_text("state,action,then\na,b,c\n")
    Path("it's other.csv").write_text("secret\n1\n")
    found = tasks.summarise(tasks.Summarise(log=name, columns=COLUMNS), Watched())
    assert found["rows"] == 1


# Evaluations.


def test_an_evaluation_is_the_library_s() -> None:
    learner = fitted(random_log())
    place = store_of(learner, [])
    pq.write_table(pa.table(random_log(200, seed=1)), "log.parquet")
    control = Watched()
    arguments = tasks.Evaluate(version=version(place), log="log.parquet", samples=400, seed=3)
    found = tasks.evaluate(arguments, control)
    expected = learner.evaluate("log.parquet", samples=400, seed=3).to_dict()
    assert found.pop("warnings") == []
    assert found == expected
    assert control.reports[-1] == (400, 400)
    [preview] = control.partials
    assert preview["samples"] == 40
    assert set(preview) == {*found, "warnings"}


def test_decisions_are_evaluated_like_any_log() -> None:
    learner = fitted(random_log())
    records = list(zip(*random_log(100, seed=2).values(), strict=True))
    place = store_of(learner, [*records, ("cold", "wait", None)])
    arguments = tasks.Evaluate(version=version(place), decisions=decisions(place), samples=40)
    found = tasks.evaluate(arguments, Watched())
    counts = pastwise.count_transitions(random_log(100, seed=2), **COLUMNS)
    expected = learner.evaluate(counts, samples=40)
    assert found["values"]["new"]["mean"] == pytest.approx(  # type: ignore[index]
        expected.values["new"].mean, abs=0.02
    )
    assert "100 records" in str(found["unit"])


ODD = [("arctic", "wait", "cold"), ("cold", "wait", "arctic"), ("cold", "hope", "cold")]
"""Decisions with labels that a version lacks."""


def test_decisions_with_unknown_labels_are_left_out_of_an_evaluation() -> None:
    records = list(zip(*random_log(50, seed=2).values(), strict=True))
    place = store_of(fitted(random_log()), [*records, *ODD])
    arguments = tasks.Evaluate(version=version(place), decisions=decisions(place), samples=40)
    found = tasks.evaluate(arguments, Watched())
    assert "50 records" in str(found["unit"])
    assert "3 of 53 decisions have labels that the version lacks" in str(found["warnings"])


def test_an_evaluation_needs_a_decision_with_known_labels() -> None:
    place = store_of(fitted(random_log()), ODD)
    arguments = tasks.Evaluate(version=version(place), decisions=decisions(place), samples=40)
    with pytest.raises(LogError, match="no decision of that time has labels"):
        tasks.evaluate(arguments, Watched())


def test_a_stopped_evaluation_returns_what_it_has() -> None:
    place = store_of(fitted(random_log()), [])
    pq.write_table(pa.table(random_log(200, seed=1)), "log.parquet")
    arguments = tasks.Evaluate(version=version(place), log="log.parquet", samples=100_000)
    found = tasks.evaluate(arguments, Watched(stops_after=0))
    assert 0 < int(str(found["samples"])) < 100_000
    assert found["verdict"]


def test_counts_are_a_log_too() -> None:
    learner = fitted(random_log())
    place = store_of(learner, [])
    pastwise.save_counts(learner.counts_, "counts.safetensors")
    arguments = tasks.Evaluate(version=version(place), log="counts.safetensors", samples=50)
    assert tasks.evaluate(arguments, Watched())["samples"] == 50


# Learning.


def test_a_policy_learns_from_its_decisions() -> None:
    log = random_log()
    place = store_of(fitted(log), RECORDS)
    arguments = tasks.Learn(version=version(place), decisions=decisions(place))
    found = tasks.learn(arguments, Watched())
    assert (found["new_records"], found["records"], found["new_states"]) == (40, 340, [])

    # The same as learning from all records at once.
    for state, action, following in RECORDS[:40]:
        for name, value in zip(log, (state, action, following), strict=True):
            log[name].append(str(value))
    together = fitted(log)
    learned = pastwise.load(JOB / str(found["file"]))
    assert learned.counts_ == together.counts_
    for state in ("cold", "warm"):
        assert learned.rule_[state] == pytest.approx(together.rule_[state])


@pytest.mark.parametrize("kind", ["numbers", "products"])
def test_keys_find_labels_of_any_type(kind: str) -> None:
    if kind == "numbers":
        log: dict[str, list[Any]] = {"state": [1, 2, 1], "action": [0, 5, 5], "then": [2, 1, 1]}
        columns: dict[str, Any] = {**COLUMNS, "text_labels": False}
        goal = pastwise.Goal(prefer={"2": 1.0})
        label: Any = 1
        action: Any = 5
        new = "7"
    else:
        log = {"room": ["a", "b"], "on": [True, False], "action": ["go", "stay"]}
        log |= {"then": ["b", "b"], "then on": [False, False]}
        columns = {"state": ["room", "on"], "action": "action", "next_state": ["then", "then on"]}
        goal = pastwise.Goal(targets={"room": {"b": 1.0}})
        label = ("b", False)
        action = "go"
        new = '["c", true]'
    learner = fitted(log, columns, goal)
    key = key_of(label)
    place = store_of(learner, [(key, key_of(action), key)] * 3 + [(key, key_of(action), new)])
    arguments = tasks.Learn(version=version(place), decisions=decisions(place))
    found = tasks.learn(arguments, Watched())
    learned = pastwise.load(JOB / str(found["file"]))
    assert found["new_records"] == 4
    assert found["new_states"] == [new]
    before = {key_of(each) for each in learner.counts_.states.labels}
    after = {key_of(each) for each in learned.counts_.states.labels}
    assert after == {*before, new}


def test_values_that_are_no_state_are_not_learned() -> None:
    log = {"room": ["a", "b"], "on": ["x", "y"], "action": ["go", "stay"]}
    log |= {"then": ["b", "b"], "then on": ["x", "y"]}
    columns = {"state": ["room", "on"], "action": "action", "next_state": ["then", "then on"]}
    learner = fitted(log, columns, pastwise.Goal(targets={"room": {"b": 1.0}}))
    here = '["a", "x"]'
    odd = ['{"room":null,"on":"x"}', '"foo"', "foo", "5", '["a"]']
    place = store_of(learner, [(here, "go", here), *((state, "go", here) for state in odd)])
    arguments = tasks.Learn(version=version(place), decisions=decisions(place))
    found = tasks.learn(arguments, Watched())
    assert (found["new_records"], found["new_states"]) == (1, [])
    assert "5 of 6 decisions" in str(found["warnings"])


def test_only_decisions_of_the_given_time_are_learned() -> None:
    place = store_of(fitted(random_log()), RECORDS)
    some = decisions(place, since=START + 1000 * 21, until=START + 1000 * 41)
    found = tasks.learn(tasks.Learn(version=version(place), decisions=some), Watched())
    assert found["new_records"] == 10


def test_decisions_before_the_version_do_not_count_twice() -> None:
    place = store_of(fitted(random_log()), RECORDS, at=START + 1000 * 41)
    arguments = tasks.Learn(version=version(place), decisions=decisions(place))
    assert tasks.learn(arguments, Watched())["new_records"] == 20
    everything = decisions(place, since=0)
    arguments = tasks.Learn(version=version(place), decisions=everything)
    assert tasks.learn(arguments, Watched())["new_records"] == 40


def test_without_outcomes_there_is_nothing_to_learn() -> None:
    place = store_of(fitted(random_log()), [("cold", "heat", None)])
    arguments = tasks.Learn(version=version(place), decisions=decisions(place))
    with pytest.raises(LogError, match="nothing to learn"):
        tasks.learn(arguments, Watched())


def test_policies_whose_records_age_are_not_extended() -> None:
    log = {**random_log(), "day": list(range(300))}
    learner = fitted(log, {**COLUMNS, "age": "day", "half_life": 100})
    place = store_of(learner, RECORDS)
    with pytest.raises(PastwiseError, match="fall with age"):
        tasks.learn(tasks.Learn(version=version(place), decisions=decisions(place)), Watched())


def test_an_unknown_version_is_named() -> None:
    place = store_of(fitted(random_log()), [])
    absent = tasks.Version(store=place, policy=POLICY, version=9)
    with pytest.raises(PastwiseError, match="no version 9"):
        tasks.learn(tasks.Learn(version=absent, decisions=decisions(place)), Watched())


# Exports.


def test_an_export_is_a_log_that_can_be_learned_from() -> None:
    place = store_of(fitted(random_log()), [*RECORDS, ("warm", "heat", "warm")])
    found = tasks.export(tasks.Export(decisions=decisions(place)), Watched())
    assert found["records"] == 41
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = fitted(JOB / str(found["file"]), {**COLUMNS, "next_state": "next_state"})
    assert learner.counts_.num_records == 41
    assert found["bytes"] == (JOB / str(found["file"])).stat().st_size


def test_no_cell_of_an_exported_csv_is_a_formula() -> None:
    bad = ['=cmd|"/c calc"!A1', "@SUM(A1)", "+1+1", "-2+3", "\tx", "a\rb", 'quote " and , comma']
    place = store_of(fitted(random_log()), [(text, "heat", text) for text in bad])
    found = tasks.export(tasks.Export(decisions=decisions(place), format="csv"), Watched())
    with (JOB / str(found["file"])).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"].removeprefix("'") for row in rows] == bad
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert rows[0]["time"] == "2026-09-21T14:13:21+00:00"
    assert not (JOB / tasks.DECISIONS).exists()


def test_an_unknown_format_is_refused() -> None:
    place = store_of(fitted(random_log()), RECORDS)
    with pytest.raises(PastwiseError, match="'parquet' or 'csv'"):
        tasks.export(tasks.Export(decisions=decisions(place), format="xlsx"), Watched())


# Replays.


def test_a_replay_finds_decisions_that_were_not_made_so() -> None:
    place = store_of(fitted(random_log()), RECORDS)
    arguments = tasks.Replay(store=place, policy=POLICY, version=1)
    found = tasks.replay(arguments, Watched())
    assert found["equal"] is False
    assert "event 1 " in str(found["difference"])


def test_a_replay_of_nothing_is_equal() -> None:
    place = store_of(fitted(random_log()), [])
    arguments = tasks.Replay(store=place, policy=POLICY, version=1)
    found = tasks.replay(arguments, Watched())
    assert (found["equal"], found["events"]) == (True, 0)
