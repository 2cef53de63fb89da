"""What is usable of a log: every row is accounted for, and remedies work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pastwise.logs.findings import Finding
from pastwise.logs.usable import Usable, usable

THERMOSTAT = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
LOG: dict[str, list[Any]] = {
    "who": [1, 1, 1, 1, 2, 2, 2],
    "day": [1, 2, 5, 6, 1, 2, 3],
    "s": ["a", "b", "a", None, "a", "b", "end"],
    "do": ["x", "y", "x", "x", "y", None, "x"],
}
COLUMNS: dict[str, Any] = {"state": "s", "action": "do", "episode": "who", "time": "day"}


def found_in(result: Usable, code: str) -> Finding:
    return next(finding for finding in result.findings if finding.code == code)


def test_clean_log() -> None:
    columns = {"state": "room", "action": "did", "episode": "day", "time": "hour"}
    result = usable(THERMOSTAT, columns)
    assert (result.rows, result.used, result.ends, result.left_out) == (480, 440, 40, ())
    assert sum(state.records for state in result.states) == 440
    assert sum(state.share for state in result.states) == pytest.approx(1)
    assert sum(action.records for action in result.actions) == 440


def test_every_row_is_counted_once() -> None:
    result = usable(LOG, {**COLUMNS, "max_gap": 2})
    left_out = {each.code: each.rows for each in result.left_out}
    assert left_out == {"gap": 1, "missing-next-state": 1, "missing-action": 1}
    assert result.ends == 2
    assert result.used + result.ends + sum(left_out.values()) == result.rows == 7


def test_remedy_of_a_gap_keeps_the_record() -> None:
    columns = {**COLUMNS, "max_gap": 2}
    finding = found_in(usable(LOG, columns), "gap")
    longer, none = finding.remedies
    assert longer.patch == {"max_gap": 3}
    for remedy in (longer, none):
        mended = usable(LOG, {**columns, **remedy.patch})
        assert "gap" not in {each.code for each in mended.left_out}


def test_remedy_of_a_dead_end_declares_it_terminal() -> None:
    log = {**LOG, "do": ["x"] * 7}
    (remedy,) = found_in(usable(log, COLUMNS), "dead-end").remedies
    mended = usable(log, {**COLUMNS, **remedy.patch})
    assert "dead-end" not in {each.code for each in mended.findings}
    assert [state.key for state in mended.states if state.terminal] == ["end"]


def test_remedy_of_records_after_a_terminal_state() -> None:
    columns = {**COLUMNS, "terminal": ["b"]}
    result = usable(LOG, columns)
    (remedy,) = found_in(result, "after-terminal").remedies
    assert {each.code: each.rows for each in result.left_out}["after-terminal"] == 1
    assert usable(LOG, {**columns, **remedy.patch}).used == result.used + 1


def test_remedy_of_many_numbers_cuts_them() -> None:
    numbers = [place * 0.37 % 11 for place in range(300)]
    log = {"x": numbers, "do": ["a", "b", "b"] * 100, "t": list(range(300))}
    columns = {"state": "x", "action": "do", "time": "t"}
    (remedy,) = found_in(usable(log, columns), "continuous-column").remedies
    assert 2 <= len(usable(log, {**columns, **remedy.patch}).states) <= 10


def test_edges_that_the_log_decided_are_known() -> None:
    degrees = [float(number % 20) for number in range(400)]
    log = {"t": list(range(400)), "degrees": degrees, "do": ["x", "y", "x", "y", "z"] * 80}
    columns: dict[str, Any] = {"state": "degrees", "action": "do", "time": "t"}
    quarters = usable(log, {**columns, "bins": {"degrees": 4}})
    assert quarters.bins == {"degrees": pytest.approx((5, 10, 15), abs=1)}
    assert len(quarters.states) == 4
    own = usable(log, {**columns, "bins": {"degrees": [7, 12]}})
    assert own.bins == {"degrees": (7, 12)}
    assert usable(log, columns).bins == {}


def test_findings_on_labels_show_rows_that_have_them() -> None:
    # Ten people; only the first was ever operated, and nobody leaves "end".
    log: dict[str, list[Any]] = {"who": [], "day": [], "s": [], "do": []}
    for person in range(10):
        for day in range(30):
            log["who"].append(person)
            log["day"].append(day)
            log["s"].append("end" if day == 29 else "ab"[day % 2])
            log["do"].append("rest" if day % 4 < 2 else "walk")
    log["do"][7] = "operate"
    result = usable(log, COLUMNS)
    few = found_in(result, "few-episodes")
    assert [example["row"] for example in few.examples] == [8]
    dead_end = found_in(result, "dead-end")
    assert [example["row"] for example in dead_end.examples] == [29, 59, 89]


def test_actions_without_effect_show_rows_that_have_them() -> None:
    # Walking leads to "a", running to "b", resting to either, as the others do on average.
    random = np.random.default_rng(0)
    do = random.choice(["walk", "run", "rest"], size=3000)
    led_to = np.where(do == "rest", random.choice(["a", "b"], size=3000), "a")
    led_to[do == "run"] = "b"
    log = {"day": np.arange(3000), "s": np.roll(led_to, 1), "do": do}
    result = usable(log, {"state": "s", "action": "do", "time": "day"})
    examples = found_in(result, "no-effect").examples
    assert [example["do"] for example in examples] == ["rest"] * 3


def test_findings_on_the_whole_log_show_its_first_rows() -> None:
    log: dict[str, list[Any]] = {
        "day": list(range(200)),
        "degrees": [0.37 * day for day in range(200)],
        "do": ["x", "y", "x", "y", "x"] * 40,
    }
    result = usable(log, {"state": "degrees", "action": "do", "time": "day"})
    for code in ("continuous-column", "one-episode"):
        assert [example["row"] for example in found_in(result, code).examples] == [1, 2, 3], code


def test_constant_actions_block_a_verdict() -> None:
    log = {**LOG, "do": ["x"] * 4 + ["y"] * 3}
    assert found_in(usable(log, COLUMNS), "action-constant").severity == "blocks-verdict"
