"""Damaged and forged files are refused, and so is what could not be read back.

Changed values come with a checksum that matches, as a forger or a faulty writer would leave them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import pastwise as pw
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import FileError, LabelError, ParameterError, PolicyFileError
from pastwise.policy.file import load_counts, save_counts
from tests.helpers import policy_files
from tests.helpers.policy_files import Tensors

LOG = {
    "room": ["cold", "cold", "mild", "mild"],
    "did": ["heat", "wait", "wait", "heat"],
    "then": ["mild", "cold", "off", "mild"],
    "weight": [1.0, 0.5, 2.0, 1.0],
}
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}

Content = dict[str, Any]


def learner(**more: Any) -> pw.TransferLearner:
    return pw.TransferLearner(pw.Goal(prefer={"mild": 1})).fit(
        LOG, **COLUMNS, terminal="off", **more
    )


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.safetensors"
    learner(weight="weight").save(path)
    return path


def forge(path: Path, change: Callable[[Tensors, Content], object], text: bytes = b"") -> None:
    """Change a file's arrays and JSON, or its JSON text, and let its checksum match."""
    tensors, content = policy_files.parts(path)
    change(tensors, content)
    policy_files.forge(path, tensors, text or content)


def nothing(tensors: Tensors, content: Content) -> None:
    pass


# Bits


def flipped(path: Path, bit: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def test_every_flipped_bit_of_a_file_of_counts_is_refused(tmp_path: Path) -> None:
    good = tmp_path / "counts.safetensors"
    two = Space(("a", "b"))
    save_counts(TransitionCounts.from_records([0], [0], [1], two, Space(("x",))), good)
    bad = tmp_path / "bad.safetensors"
    for bit in range(8 * good.stat().st_size):
        bad.write_bytes(flipped(good, bit))
        with pytest.raises(PolicyFileError):
            load_counts(bad)


@pytest.mark.parametrize("method", ["TL", "FPD_learn"])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_flipped_bits_of_policies_are_refused(
    tmp_path: Path, method: str, weight: str | None
) -> None:
    good = tmp_path / "policy.safetensors"
    fitted = pw.TransferLearner(pw.Goal(prefer={"mild": 1}), method=method)
    fitted.fit(LOG, **COLUMNS, weight=weight).save(good)
    bad = tmp_path / "bad.safetensors"
    rng = np.random.default_rng(18)
    for bit in rng.choice(8 * good.stat().st_size, 300, replace=False).tolist():
        bad.write_bytes(flipped(good, bit))
        with pytest.raises(PolicyFileError):
            pw.load(bad)


# Counts of no log


def put(name: str, *values: float) -> Callable[[Tensors, Content], None]:
    def change(tensors: Tensors, content: Content) -> None:
        tensors[name] = np.array(values, dtype=tensors[name].dtype)

    return change


def scaled(name: str, factor: float) -> Callable[[Tensors, Content], None]:
    def change(tensors: Tensors, content: Content) -> None:
        tensors[name] = (tensors[name] * factor).astype(tensors[name].dtype)

    return change


def relabelled(*labels: Any) -> Callable[[Tensors, Content], None]:
    def change(tensors: Tensors, content: Content) -> None:
        content["states"]["labels"] = list(labels)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (scaled("records", 0), "no record"),
        (scaled("records", -1), "negative"),
        (scaled("records", 2**62), r"2\^63 records|negative"),
        (scaled("weight", 0), "no weight"),
        (scaled("weight", np.inf), "undefined"),
        (scaled("weight", 1.01), "squared weights"),
        (scaled("weight_squared", 0.99), "squared weights"),
        (scaled("weight_squared", 1.01), "squared weights"),
        (scaled("key", -1), "negative"),
        (scaled("key", 1000), "out of range"),
        (put("terminal", 0), "leaves a terminal state"),
        (put("terminal", 9), "terminal states"),
        (put("terminal", 2, 2), "terminal states"),
        (relabelled("cold", "mild", "cold"), "occurs twice"),
        (relabelled("cold", "mild"), "out of range|wrong shape"),
        (relabelled("cold", "mild", ["off", {}]), "is no label"),
        (relabelled("cold", "mild", None), "is no label"),
        (relabelled("cold", "mild", "\ud800"), "surrogate pair"),
    ],
)
def test_impossible_counts_are_refused(
    policy: Path, change: Callable[[Tensors, Content], None], problem: str
) -> None:
    forge(policy, change)
    with pytest.raises(PolicyFileError, match=rf"is damaged: .*({problem})"):
        pw.load(policy)
    with pytest.raises(PolicyFileError, match="is damaged"):
        load_counts(policy)


# Ranges of labels


@pytest.mark.parametrize("number", [1_000_001, 10**9, 2**62, 10**30])
@pytest.mark.parametrize("name", ["states", "actions", "tasks"])
def test_forged_range_of_labels_is_refused(tmp_path: Path, name: str, number: int) -> None:
    path = tmp_path / "counts.safetensors"
    save_counts(learner().counts_, path)

    def change(tensors: Tensors, content: Content) -> None:
        content[name] = {"labels": {"range": number}, "fields": []}
        tensors["terminal"] = tensors["terminal"][:0]

    forge(path, change)
    problem = rf"{number:,} {name} for 4 distinct|possible transitions|impossible number of labels"
    with pytest.raises(PolicyFileError, match=problem):
        load_counts(path)


def test_largest_range_of_labels_that_is_read_does_not_fill_the_memory(tmp_path: Path) -> None:
    many = Space.of_size(10**6)
    counts = TransitionCounts.from_records([5], [7], [8], many, many)
    save_counts(counts, tmp_path / "counts.safetensors")
    read, _ = load_counts(tmp_path / "counts.safetensors")
    assert read == counts
    with pytest.raises(ParameterError, match="needs a table of"):
        pw.TransferLearner(pw.Goal(prefer=8)).fit(read)


def test_range_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    many = Space.of_size(10**7)
    counts = TransitionCounts.from_records([5], [0], [8], many, Space.of_size(1))
    with pytest.raises(ParameterError, match="10,000,000 states for 1 distinct transitions"):
        save_counts(counts, tmp_path / "counts.safetensors")
    assert list(tmp_path.iterdir()) == []


# Types


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "F4", "BF16", "F16", "F32", "BOOL"])
def test_other_types_of_numbers_are_refused(policy: Path, kind: str) -> None:
    content = policy.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    last = max(entry["data_offsets"][1] for key, entry in header.items() if key[0] != "_")
    header["strange"] = {"dtype": kind, "shape": [8], "data_offsets": [last, last + 8]}
    sizes = {"F4": 4, "BF16": 16, "F16": 16, "F32": 32}
    num_bytes = sizes.get(kind, 8)
    header["strange"]["data_offsets"][1] = last + num_bytes
    text = json.dumps(header).encode()
    body = content[8 + length :] + bytes(num_bytes)
    policy.write_bytes(len(text).to_bytes(8, "little") + text + body)
    with pytest.raises(PolicyFileError, match=rf"numbers of type {kind}|damaged"):
        pw.load(policy)


# What JSON lets pass


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_none_are_refused(policy: Path, number: str) -> None:
    with safe_open(policy, framework="numpy") as file:
        text = file.get_tensor("content").tobytes()
    assert b'"max_gap": null' in text
    forge(policy, nothing, text.replace(b'"max_gap": null', f'"max_gap": {number}'.encode()))
    with pytest.raises(PolicyFileError, match=f"{number} is no finite number"):
        pw.load(policy)


def test_half_a_surrogate_pair_in_the_name_of_a_column_is_refused(policy: Path) -> None:
    def change(tensors: Tensors, content: Content) -> None:
        content["columns"]["state"] = ["\ud800"]

    forge(policy, change)
    with pytest.raises(PolicyFileError, match="half of a surrogate pair"):
        pw.load(policy)


def test_control_characters_in_labels_come_back(tmp_path: Path) -> None:
    states = Space(("a\x01", "\\ud800", "\u2028"))
    counts = TransitionCounts.from_records([0], [0], [1], states, Space(("x",)))
    save_counts(counts, tmp_path / "counts.safetensors")
    assert load_counts(tmp_path / "counts.safetensors")[0] == counts


@pytest.mark.parametrize("label", ["\ud800", float("nan"), float("inf"), None, ("a", "\udfff")])
def test_labels_that_could_not_be_read_back_are_not_written(tmp_path: Path, label: Any) -> None:
    counts = TransitionCounts.from_records([0], [0], [1], Space(("a", label)), Space(("x",)))
    with pytest.raises((LabelError, ParameterError)):
        save_counts(counts, tmp_path / "counts.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_columns_that_could_not_be_read_back_are_not_written(tmp_path: Path) -> None:
    columns = replace(pw.Columns.of(**COLUMNS), state=("\ud800",))
    with pytest.raises(ParameterError, match="half of a surrogate pair"):
        save_counts(learner().counts_, tmp_path / "counts.safetensors", columns)
    assert list(tmp_path.iterdir()) == []


def test_counts_that_could_not_be_read_back_are_not_written(tmp_path: Path) -> None:
    counts = learner().counts_.scale(0.0)
    with pytest.raises(ParameterError, match="no weight"):
        save_counts(counts, tmp_path / "counts.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_nested_labels_come_back(tmp_path: Path) -> None:
    states = Space((("a", (1, True)), ("b", ())))
    counts = TransitionCounts.from_records([0], [0], [1], states, Space(("x",)))
    save_counts(counts, tmp_path / "counts.safetensors")
    assert load_counts(tmp_path / "counts.safetensors")[0].states == states


# Weights


@pytest.mark.parametrize("weight", [1e200, 1.7e308])
def test_weight_that_overflows_is_refused_on_entry(weight: float) -> None:
    fitted = learner(weight="weight")
    before = fitted.counts_
    with pytest.raises(ParameterError, match="too large for a number"):
        fitted.observe("cold", "heat", "mild", weight=weight)
    with pytest.raises(ParameterError, match="too large for a number"):
        fitted.observe("new", "heat", "mild", weight=weight)
    assert fitted.counts_ == before


# Special files


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    for read in (pw.load, load_counts):
        with pytest.raises(FileError, match="not a regular file"):
            read(pipe)
        with pytest.raises(FileError, match="not a regular file"):
            read(Path("/dev/zero"))


def test_policy_files_are_not_read_from_pipes_by_commands(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "pastwise", "explain", str(pipe), "cold"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr
