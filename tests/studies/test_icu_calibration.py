"""Statements about ICU-Sepsis: next to the truth, counted, and written."""

from pathlib import Path

import pytest

from pastwise.studies.icu_calibration import (
    METHODS,
    QUANTITIES,
    IcuCalibration,
    Statement,
    icu_calibration,
)


def statement(method: str, quantity: str, low: float, high: float) -> Statement:
    return Statement(200, 0, method, quantity, (low + high) / 2, low, high, truth=0.5)


def test_coverage_error_and_width_are_counted() -> None:
    """One of two intervals holds 0.5; their middles are 0.5 and 0.7, their widths 0.2."""
    statements = []
    for method in METHODS:
        for quantity in QUANTITIES:
            statements.append(statement(method, quantity, 0.4, 0.6))
            statements.append(statement(method, quantity, 0.6, 0.8))
    page = IcuCalibration(2, 100, 0, statements).page()
    cells = " | ".join(["50 % (+0.100, 0.200)"] * len(QUANTITIES))
    assert f"| 200 | TL | {cells} |" in page


def test_statements_stand_next_to_the_truth(tmp_path: Path) -> None:
    study = icu_calibration(sizes=(30,), logs=1, samples=10, seed=1, methods=("TL",))
    assert [(each.method, each.quantity) for each in study.statements] == [
        ("TL", quantity) for quantity in QUANTITIES
    ]
    by_name = {each.quantity: each for each in study.statements}

    # The expert's exact survival is published; differences are those of the values.
    assert by_name["expert"].truth == pytest.approx(0.78184, abs=1e-4)
    rule = by_name["rule"].truth
    done = by_name["what was done"].truth
    assert by_name["rule - done"].truth == pytest.approx(rule - done)
    assert all(each.low <= each.mean <= each.high for each in study.statements)

    study.write(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["icu-calibration.csv", "icu-calibration.json", "icu-calibration.md"]
