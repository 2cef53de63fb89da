"""Rows behind transitions, against a plain loop over the log."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from pastwise.data.space import key_of
from pastwise.logs.behind import rows_behind
from pastwise.logs.columns import Columns
from pastwise.logs.read import read_log

LOG = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"


def test_rows_are_those_of_the_transition() -> None:
    columns = Columns.of(state="room", action="did", episode="day", time="hour")
    with LOG.open() as file:
        rows = list(csv.DictReader(file))
    expected: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for number, (row, following) in enumerate(pairwise(rows), start=1):
        if row["room"] == "cool" and row["day"] == following["day"]:
            place = expected.setdefault((row["did"], following["room"]), [])
            place.append((number, row["day"], row["hour"]))

    found: dict[tuple[str, str], list[tuple[int, str | None, str | None]]] = {}
    for each in rows_behind(LOG, columns, "cool", limit=3):
        of_pair = found.setdefault((each.action, each.next_state), [])
        of_pair.append((each.row, each.episode, each.time))
    assert found == {pair: places[:3] for pair, places in expected.items()}
    assert rows_behind(LOG, columns, "cosy") == ()


@pytest.mark.parametrize("bins", [[9, 11], 3])
def test_bins_and_several_fields_are_found(tmp_path: Path, bins: list[float] | int) -> None:
    path = tmp_path / "log.csv"
    lines = ["x,ward,did,y,ward2"]
    lines += [f"{8 + i % 5},{'AB'[i % 2]},{'uv'[i % 3 == 0]},{8 + i % 4},A" for i in range(40)]
    path.write_text("\n".join(lines))
    columns = Columns.of(
        state=["x", "ward"], action="did", next_state=["y", "ward2"], bins={"x": bins}
    )
    reading = read_log(path, columns)
    counts = reading.counts
    for state, label in enumerate(counts.states.labels):
        rows = rows_behind(path, reading.columns, key_of(label), limit=100)
        assert len(rows) == int(counts.records[counts.state == state].sum())
