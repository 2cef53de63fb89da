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
        import openpyxl
    except ImportError:
        raise MissingDependencyError(
            "an Excel sheet needs openpyxl: pip install 'pastwise[excel]'"
        ) from None
    header = _header(export)
    if len(export.states) > MOST_ROWS or len(header) > MOST_COLUMNS:
        raise ParameterError(
            f"{len(export.states):,} states with {len(header):,} columns do not fit into an Excel "
            "sheet; export the policy as json"
        )
    book = openpyxl.Workbook(write_only=True)

    # The policy.
    sheet = book.create_sheet("Policy")
    sheet.freeze_panes = "B2"
    for letter in "ABCDEFGH"[: len(export.columns) + 2]:
        sheet.column_dimensions[letter].width = 22
    sheet.append([_cell(sheet, name, bold=True) for name in header])
    for row in _rows(export):
        sheet.append([_cell(sheet, value) for value in row])

    # About it.
    about = book.create_sheet("About")
    about.column_dimensions["B"].width = 80
    lines = {
        "Goal": export.goal,
        "Method": export.method,
        "pastwise": export.version,
        "States": len(export.states),
        "Records": sum(state.records for state in export.states),
    }
    for name, value in lines.items():
        about.append([_cell(about, name, bold=True), _cell(about, value)])

    with replacing(path) as temporary, temporary.open("wb") as file:
        book.save(file)


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


def _cell(sheet: Any, value: Any, *, bold: bool = False) -> Any:
    """A cell that shows a value as what it is: text that begins with = is no formula."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    if not isinstance(value, str):
        cell = WriteOnlyCell(sheet, value)
        if isinstance(value, float):
            cell.number_format = "0.0%"
        return cell
    text = "".join(mark if _is_allowed(mark) else "\ufffd" for mark in value[:MOST_CHARACTERS])
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"
    if bold:
        cell.font = Font(bold=True)
    return cell


def _is_allowed(character: str) -> bool:
    """Whether a sheet may hold a character; it may not hold control characters."""
    return character in "\t\n\r" or character >= " "
