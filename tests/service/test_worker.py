"""What the process of a job says."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pastwise.service.worker import Limits, Message, Reports, Spec, last_message


def messages(output: io.BytesIO) -> list[Message]:
    return [msgspec.json.decode(line, type=Message) for line in output.getvalue().splitlines()]


def end_of(folder: Path, kind: str, **arguments: object) -> Message:
    spec = Spec(kind, str(folder), arguments, Limits())
    return last_message(spec, Reports(io.BytesIO(), folder))


def test_a_job_ends_with_its_result(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    end = end_of(tmp_path, "summarise", log=str(tmp_path / "log.csv"))
    assert end.problem is None
    assert end.result is not None
    assert end.result["rows"] == 1


def test_what_the_user_can_fix_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.xyz").write_text("a")
    problem: Any = end_of(tmp_path, "summarise", log=str(tmp_path / "log.xyz")).problem
    assert problem["type"] == "/problems/nothing-to-learn"
    assert "is no log" in problem["detail"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["summarise", "unknown"])
def test_a_bug_is_printed_for_the_journal_only(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problem: Any = end_of(tmp_path, kind, wrong="secret").problem
    assert problem == {"type": "/problems/bug", "title": "a bug in pastwise", "status": 500}
    assert "Traceback" in capsys.readouterr().err


def test_progress_is_reported_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    output = io.BytesIO()
    reports = Reports(output, tmp_path, interval=1000.0)
    for done in range(1, 101):
        reports.progress(done, 100)
    found = [message.progress.done for message in messages(output) if message.progress]
    assert found == [1, 100]


def test_values_of_numpy_are_sent_as_plain_ones(tmp_path: Path) -> None:
    output = io.BytesIO()
    Reports(output, tmp_path).partial({"a": np.float64(0.5), "b": np.arange(2), "c": float("nan")})
    assert messages(output)[0].partial == {"a": 0.5, "b": [0, 1], "c": None}
    with pytest.raises(NotImplementedError, match="object cannot be sent"):
        Reports(output, tmp_path).partial({"a": object()})


@pytest.mark.parametrize("last", [b"stop\n", b""])
def test_a_line_or_the_end_of_stdin_requests_a_stop(tmp_path: Path, last: bytes) -> None:
    read_end, write_end = os.pipe()
    reports = Reports(io.BytesIO(), tmp_path)
    with os.fdopen(read_end, "rb") as stdin:
        reports.watch(stdin, grace=1e6)
        assert not reports.should_stop()
        os.write(write_end, last)
        os.close(write_end)
        end = time.monotonic() + 60
        while not reports.should_stop() and time.monotonic() < end:
            time.sleep(0.001)
        assert reports.should_stop()
