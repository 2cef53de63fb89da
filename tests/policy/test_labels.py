"""A label is the same in every log, be it text in one file and a number in another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import pastwise as pw
from pastwise.data.space import key_of

NAMES: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}
GOAL = pw.Goal(prefer=["2"])


@pytest.fixture
def text_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("s,a,n\n1,0,2\n2,1,1\n1,0,2\n")
    return path


@pytest.fixture
def typed_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"s": [1, 2], "a": [0, 1], "n": [2, 3]}), path)
    return path


def keys(labels: Sequence[Any]) -> list[str]:
    return sorted(key_of(label) for label in labels)


def require_one_label_each(counts: pw.TransitionCounts) -> None:
    """States 1, 2 and 3, actions 0 and 1, and five records: three of text, two of numbers."""
    assert keys(counts.states.labels) == ["1", "2", "3"]
    assert keys(counts.actions.labels) == ["0", "1"]
    assert counts.num_records == 5
    one = counts.states.index("1")
    assert counts.records[counts.state == one].tolist() == [3]


def test_update_of_a_text_policy_from_numbers(text_log: Path, typed_log: Path) -> None:
    learner = pw.TransferLearner(GOAL).fit(text_log, **NAMES)
    learner.update(typed_log)
    require_one_label_each(learner.counts_)


def test_update_of_a_policy_of_numbers_from_text(text_log: Path, typed_log: Path) -> None:
    learner = pw.TransferLearner(GOAL).fit(typed_log, **NAMES)
    learner.update(text_log)
    require_one_label_each(learner.counts_)


def test_merge_of_counts_of_text_and_numbers(text_log: Path, typed_log: Path) -> None:
    texts = pw.count_transitions(text_log, **NAMES)
    numbers = pw.count_transitions(typed_log, **NAMES)
    require_one_label_each(texts + numbers)
    require_one_label_each(numbers + texts)
    learner = pw.TransferLearner(GOAL).fit(text_log, **NAMES)
    learner.merge(numbers)
    require_one_label_each(learner.counts_)


def test_merge_of_files_of_counts(tmp_path: Path, text_log: Path, typed_log: Path) -> None:
    parts = []
    for log in (text_log, typed_log):
        part = tmp_path / f"{log.suffix[1:]}.counts"
        pw.save_counts(pw.count_transitions(log, **NAMES), part)
        parts.append(part)
    merged, _ = pw.merge_counts(parts)
    require_one_label_each(merged)


# Values of typed tables, and how a CSV file may have them.

SPELLED: dict[str, tuple[list[Any], list[str]]] = {
    "booleans": ([True, False, True], ["True", "False", "True"]),
    "whole numbers": ([1.0, 2.0, 1.0], ["1", "2", "1"]),
    "fractions of whole numbers": ([1, 2, 1], ["1.0", "2.0", "1.0"]),
    "days": (
        [datetime(2024, 1, 2), datetime(2024, 1, 3), datetime(2024, 1, 2)],
        ["2024-01-02", "2024-01-03", "2024-01-02"],
    ),
    "moments": (
        [datetime(2024, 1, 2, 9), datetime(2024, 1, 3), datetime(2024, 1, 2, 9)],
        ["2024-01-02 09:00:00", "2024-01-03 00:00:00", "2024-01-02 09:00:00"],
    ),
}


@pytest.mark.parametrize("kind", SPELLED)
@pytest.mark.parametrize("fields", [["s"], ["s", "k"]])
@pytest.mark.parametrize("is_text_first", [True, False])
def test_values_of_typed_tables_are_the_labels_of_their_csv_file(
    tmp_path: Path, kind: str, fields: list[str], is_text_first: bool
) -> None:
    typed, texts = SPELLED[kind]
    others = {"a": ["p", "q", "q"], "o": ["good", "bad", "bad"]}
    pq.write_table(pa.table({"s": typed, "k": [1, 2, 1], **others}), tmp_path / "log.parquet")
    pacsv.write_csv(pa.table({"s": texts, "k": ["1", "2", "1"], **others}), tmp_path / "log.csv")
    logs = [tmp_path / "log.csv", tmp_path / "log.parquet"]
    if not is_text_first:
        logs.reverse()
    names: dict[str, Any] = {"state": fields, "action": "a", "outcome": "o"}
    learner = pw.TransferLearner(pw.Goal(prefer="good")).fit(logs[0], **names)

    # The policy of one log decides for the other, and learns from it.
    expected = learner.predict(logs[0]).tolist()
    assert learner.predict(logs[1]).tolist() == expected
    parts = [pw.count_transitions(log, **names) for log in logs]
    assert len((parts[0] + parts[1]).states) == 4
    learner.update(logs[1])
    assert len(learner.counts_.states) == 4
    assert len(learner.counts_.key) == 3


@pytest.mark.parametrize("is_text_first", [True, False])
def test_outcomes_that_begin_with_their_column_are_one_in_every_table(
    tmp_path: Path, is_text_first: bool
) -> None:
    """Contexts and outcomes are both true and false, so that labels name the column."""
    was = [True, False] * 4
    cured = [True, False, False, True] * 2
    others = {"a": ["x"] * 4 + ["y"] * 4}
    pq.write_table(pa.table({"was": was, "cured": cured, **others}), tmp_path / "log.parquet")
    texts = {"was": list(map(str, was)), "cured": list(map(str, cured))}
    pacsv.write_csv(pa.table({**texts, **others}), tmp_path / "log.csv")
    logs = [tmp_path / "log.csv", tmp_path / "log.parquet"]
    if not is_text_first:
        logs.reverse()

    names: dict[str, Any] = {"state": "was", "action": "a", "outcome": "cured"}
    learner = pw.TransferLearner(pw.Goal(prefer="cured True")).fit(logs[0], **names)
    learner.update(logs[1])
    learner.observe("True", "x", True).observe(True, "x", "true")
    counts = learner.counts_
    assert len(counts.states) == 4
    assert counts.num_records == 18
    cured_ones = counts.states.index("cured True")
    assert counts.records[counts.next_state == cured_ones].sum() == 10
