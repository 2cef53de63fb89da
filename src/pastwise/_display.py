"""Tables of results for notebooks: small pieces of HTML, and data frames of the user's library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from itertools import islice
from typing import Any

MAX_ROWS = 200
"""Most states that a table shows; more make a notebook slow to scroll."""


def rule_table(
    rule: Mapping[str, Mapping[str, float]], is_weak: Sequence[bool], num_states: int
) -> str:
    """A decision rule as an HTML table; the more probable the action, the darker its cell.

    Parameters
    ----------
    rule : states with actions with probabilities
        At least the first `MAX_ROWS` states; no more are shown.
    is_weak : [states]
        Rows with little evidence, which are dimmed.
    num_states : int
        Number of states that the rule has in all.
    """
    actions = list(next(iter(rule.values())))
    shown = islice(rule.items(), MAX_ROWS)
    rows = []
    for (state, probabilities), dimmed in zip(shown, is_weak, strict=False):
        opacity = 0.45 if dimmed else 1
        cells = "".join(_probability_cell(value) for value in probabilities.values())
        rows.append(f'<tr style="opacity:{opacity}"><th>{escape(state)}</th>{cells}</tr>')

    caption = ""
    if num_states > MAX_ROWS:
        caption = f"<caption>the first {MAX_ROWS} of {num_states:,} states</caption>"
    return f"<table>{caption}{_head(actions)}<tbody>{''.join(rows)}</tbody></table>"


def _probability_cell(probability: float) -> str:
    """A cell in a shade of blue, with white text where the shade is dark."""
    colour = "white" if probability > 0.6 else "black"
    style = f"background:rgba(0,114,178,{probability:.3f});color:{colour}"
    return f'<td style="{style}">{probability:.3f}</td>'


def number_table(rows: Mapping[str, Mapping[str, float | str]], caption: str) -> str:
    """Named rows of numbers, and of words, as an HTML table under a sentence."""
    columns = list(next(iter(rows.values())))
    body = []
    for name, row in rows.items():
        cells = "".join(f"<td>{_cell(value)}</td>" for value in row.values())
        body.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    table = f"<table>{_head(columns)}<tbody>{''.join(body)}</tbody></table>"
    return f"{paragraph(caption)}{table}"


def _cell(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.4g}"


def paragraph(text: str) -> str:
    """Text as an HTML paragraph."""
    return f"<p>{escape(text)}</p>"


def _head(columns: Iterable[str]) -> str:
    """The head of an HTML table whose first column has no name."""
    names = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<thead><tr><th></th>{names}</tr></thead>"


def decimals(values: Iterable[float]) -> int:
    """Decimals that show three significant digits of the largest value; at least three.

    >>> decimals([0.5, 120.0]), decimals([0.00012, -0.00034]), decimals([0.0])
    (3, 6, 3)
    """
    largest = max(abs(value) for value in values)
    if largest == 0:
        return 3
    exponent = math.floor(math.log10(largest))
    return max(3, 2 - exponent)


def to_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """A data frame of the named columns.

    Parameters
    ----------
    columns : names with values of one length
    backend : str, optional
        The library whose data frame to make; by default the first that is installed of pandas,
        polars and pyarrow.
    """
    import narwhals as nw

    library: Any = backend
    if library is None:
        library = next(name for name in ("pandas", "polars", "pyarrow") if find_spec(name))
    return nw.from_dict(dict(columns), backend=library).to_native()
