"""The service's journal on stderr."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pastwise.service.journal import LONGEST_LINE, Journal
from tests.helpers.disk import full_disk


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_with_its_time() -> None:
    stream = io.StringIO()
    before = datetime.now(UTC).replace(microsecond=0)
    Journal(stream).request("r1", "POST", "/decide", 201, 0.00123, "heating", 3, "019a")
    [line] = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "event": "request",
        "request_id": "r1",
        "method": "POST",
        "route": "/decide",
        "status": 201,
        "ms": 1.23,
        "policy": "heating",
        "version": 3,
        "decision_id": "019a",
    }
    time = datetime.fromisoformat(lines(stream)[0]["time"])
    assert before <= time <= datetime.now(UTC)


def test_states_and_labels_are_left_out_unless_requested() -> None:
    members = {"policy": "heating", "state": "cold", "context": {"room": 3}, "detail": "cold?"}
    quiet = io.StringIO()
    Journal(quiet).event("info", "decided", **members)
    assert "cold" not in quiet.getvalue()
    assert "room" not in quiet.getvalue()
    assert lines(quiet)[0]["policy"] == "heating"
    full = io.StringIO()
    Journal(full, log_data=True).event("info", "decided", **members)
    assert lines(full)[0]["state"] == "cold"
    assert lines(full)[0]["context"] == {"room": 3}


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[31mred", "\x7f", "\u2028", "\u202e", "\ud800", "\0"]
)
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    stream = io.StringIO()
    Journal(stream).event("warning", "odd", request_id=text)
    written = stream.getvalue()
    assert written.count("\n") == 1
    assert written[:-1].isascii()
    assert written[:-1].isprintable()
    assert lines(stream)[0]["request_id"] == text


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"a": {1, 2}}, object(), {"x": float("nan")}]
)
def test_values_that_json_lacks_become_text(value: object) -> None:
    stream = io.StringIO()
    Journal(stream).event("info", "odd", value=value)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    assert "value" in json.loads(stream.getvalue(), parse_constant=refuse)


def test_a_line_is_short_enough_to_be_written_whole() -> None:
    stream = io.StringIO()
    Journal(stream).event(
        "error", "long", request_id="r", **{f"m{i}": "é" * 10_000 for i in range(9)}
    )
    assert len(stream.getvalue()) <= LONGEST_LINE
    assert lines(stream)[0]["shortened"] is True
    assert lines(stream)[0]["request_id"] == "r"


def test_above_the_limit_only_failures_are_logged() -> None:
    stream = io.StringIO()
    journal = Journal(stream, sample_above=10)
    for number in range(500):
        journal.request(f"r{number}", "GET", "/livez", 200, 0.001)
    journal.request("failed", "GET", "/livez", 500, 0.001)
    found = lines(stream)
    # The clock may pass a full second or two on the way.
    assert 11 <= len(found) <= 41
    assert found[-1]["request_id"] == "failed"
    assert found[-1]["level"] == "error"
    left_out = sum(line.get("left_out", 0) for line in found)
    assert left_out == 501 - len(found)


def test_a_reader_that_is_stuck_holds_nothing_up() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "w") as stream:
        journal = Journal(stream)
        for number in range(5000):
            journal.event("info", "filling", number=number, text="x" * 500)
        first = reader.read1(1 << 20)
        assert 0 < first.count(b"\n") < 5000
        journal.event("info", "after")
        last = json.loads(reader.read1(1 << 20).splitlines()[-1])
        assert last["event"] == "after"
        assert last["left_out"] == 5000 - first.count(b"\n")


def test_a_closed_stderr_is_no_error(tmp_path: Path) -> None:
    stream = (tmp_path / "log").open("w")
    journal = Journal(stream)
    stream.close()
    journal.event("info", "lost")
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as pipe:
        Journal(pipe).event("info", "lost")
    memory = io.StringIO()
    memory.close()
    Journal(memory).event("info", "lost")
    assert (tmp_path / "log").read_text() == ""


def test_a_full_disk_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as stream:
        journal = Journal(stream)
        with full_disk(0):
            journal.event("info", "lost")
        journal.event("info", "kept")
    line = json.loads(path.read_text())
    assert line["event"] == "kept"
    assert line["left_out"] == 1
