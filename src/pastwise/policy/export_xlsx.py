"""A policy as an Excel workbook: a sheet with a row for each state, and one about the policy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pastwise._files import replacing
from pastwise.data.space import key_of
from pastwise.errors import MissingDependencyError, ParameterError
from pastwise.policy.export import Export, words_of

MOST_ROWS = 1_048_575
"""Rows of a sheet below its header."""

MOST_COLUMNS = 16_384
"""Columns of a sheet."""

MOST_CHARACTERS = 32_767
"""Characters of a cell."""


def write_xlsx(export: Export, path: str | Path) -> None:
    """Write a workbook; it holds values and no formulas."""
    try:
        import xlsxwriter
    except ImportError:
        raise MissingDependencyError(
            "an Excel sheet needs xlsxwriter: pip install 'pastwise[excel]'"
        ) from None
    header = _header(export)
    if len(export.states) > MOST_ROWS or len(header) > MOST_COLUMNS:
        raise ParameterError(
            f"{len(export.states):,} states with {len(header):,} columns do not fit into an Excel "
            "sheet; export the policy as json"
        )
    with replacing(path) as temporary:
        # Text stays text: a label that begins with = is no formula, and one like a link no link.
        workbook = xlsxwriter.Workbook(
            str(temporary), {"strings_to_formulas": False, "strings_to_urls": False}
        )
        bold = workbook.add_format({"bold": True})
        percent = workbook.add_format({"num_format": "0.0%"})

        # The policy.
        sheet = workbook.add_worksheet("Policy")
        sheet.write_row(0, 0, header, bold)
        for place, row in enumerate(_rows(export), start=1):
            for column, value in enumerate(row):
                is_probability = isinstance(value, float)
                _write(sheet, place, column, value, percent if is_probability else None)
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, len(export.states), len(header) - 1)
        sheet.set_column(0, len(export.columns) + 1, 22)

        # About it.
        about = workbook.add_worksheet("About")
        lines = {
            "Goal": export.goal,
            "Method": export.method,
            "pastwise": export.version,
            "States": len(export.states),
            "Records": sum(state.records for state in export.states),
        }
        for place, (name, value) in enumerate(lines.items()):
            about.write_string(place, 0, name, bold)
            _write(about, place, 1, value, None)
        about.set_column(0, 0, 12)
        about.set_column(1, 1, 80)
        workbook.close()


def _header(export: Export) -> list[str]:
    names = [f"probability of {key_of(action)}" for action in export.actions]
    return ["state", *export.columns, "action", "probability", "records", "episodes", *names]


def _rows(export: Export) -> Iterable[list[Any]]:
    """The cells of each state."""
    for state in export.states:
        where = [words_of(state.region.get(column)) for column in export.columns]
        action = key_of(export.actions[state.best])
        probability = state.probabilities[state.best]
        numbers = [state.records, state.episodes]
        yield [state.key, *where, action, probability, *numbers, *state.probabilities]


def _write(sheet: Any, row: int, column: int, value: Any, style: Any) -> None:
    """Write a value as what it is; nothing for None."""
    if value is None:
        return
    if isinstance(value, str):
        sheet.write_string(row, column, value[:MOST_CHARACTERS], style)
    else:
        sheet.write_number(row, column, value, style)
