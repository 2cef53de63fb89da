"""A label is the same in every log, be it text in one file and a number in another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
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
