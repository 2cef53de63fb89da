"""Small pieces of HTML for notebooks and reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

MAX_ROWS = 200


def rule_table(rule: Mapping[str, Mapping[str, float]], weak: Sequence[bool], number: int) -> str:
    """A decision rule as a table: the darker a cell the likelier the action; rows that rest on little are dimmed.

    Of a ``number`` of states the first are enough.
    """
    actions = list(next(iter(rule.values())))
    head = "".join(f"<th>{escape(action)}</th>" for action in actions)
    rows = [
        f'<tr style="opacity:{0.45 if dim else 1}"><th>{escape(state)}</th>{"".join(map(_cell, row.values()))}</tr>'
        for (state, row), dim in zip(list(rule.items())[:MAX_ROWS], weak, strict=False)
    ]
    more = (
        f"<caption>the first {MAX_ROWS} of {number:,} states</caption>" if number > MAX_ROWS else ""
    )
    return f"<table>{more}<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(probability: float) -> str:
    colour = "white" if probability > 0.6 else "black"
    return f'<td style="background:rgba(0,114,178,{probability:.3f});color:{colour}">{probability:.3f}</td>'


def number_table(rows: Mapping[str, Mapping[str, float]], caption: str) -> str:
    """Numbers by name, with a sentence above."""
    head = "".join(f"<th>{escape(name)}</th>" for name in next(iter(rows.values())))
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{value:.4g}</td>' for value in row.values())}</tr>"
        for name, row in rows.items()
    )
    return f"<p>{escape(caption)}</p><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def decimals(values: Iterable[float]) -> int:
    """Decimals that show three significant digits of the largest value, at least three of them."""
    largest = max(map(abs, values))
    return 3 if largest == 0 else max(3, 2 - math.floor(math.log10(largest)))


def to_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """A data frame of the named library; of pandas or polars, where they are installed, if none is named."""
    from importlib.util import find_spec

    import narwhals as nw

    chosen: Any = backend or next(
        name for name in ("pandas", "polars", "pyarrow") if find_spec(name)
    )
    return nw.from_dict(dict(columns), backend=chosen).to_native()
