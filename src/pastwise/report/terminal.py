"""For a terminal: tables, coloured by probability, dimmed by lack of similarity; and signs of life."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pastwise._display import decimals

if TYPE_CHECKING:
    from rich.table import Table

MAX_ROWS = 40


def rule_table(
    rule: Mapping[str, Mapping[str, float]],
    support: Mapping[str, Mapping[str, float]],
    weak: float,
    number: int,
) -> Table:
    """A decision rule with what it rests on; rows with less similarity than ``weak`` are dimmed.

    Of a ``number`` of states the first `MAX_ROWS` are enough.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(
        caption=f"the first {MAX_ROWS} of {number:,} states" if number > MAX_ROWS else None
    )
    table.add_column("state")  # labels are Text: in plain strings rich would find markup and emoji
    for action in next(iter(rule.values())):
        table.add_column(Text(action), justify="right")
    table.add_column("records", justify="right")
    table.add_column("similarity", justify="right")
    for state, row in list(rule.items())[:MAX_ROWS]:
        behind = support[state]
        cells = [Text(f"{p:.3f}", style=_shade(p)) for p in row.values()]
        numbers = [f"{behind['records']:,}", f"{behind['similarity']:.3g}"]
        table.add_row(
            Text(state), *cells, *numbers, style="dim" if behind["similarity"] < weak else None
        )
    return table


def _shade(probability: float) -> str:
    """From the terminal's own background to deep blue."""
    if probability < 0.05:
        return ""
    level = [int(255 + (deep - 255) * probability) for deep in (0, 114, 178)]
    return f"{'white' if probability > 0.5 else 'black'} on rgb({','.join(map(str, level))})"


def findings_table(findings: Sequence[Mapping[str, Any]]) -> Table:
    """What was found in a log, with examples."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for title in ("code", "rows", "what", "examples", "what to do"):
        table.add_column(title, overflow="fold", justify="right" if title == "rows" else "left")
    for finding in findings:
        examples = "\n".join(
            ", ".join(f"{k}={v}" for k, v in example.items()) for example in finding["examples"]
        )
        cells = (
            finding["code"],
            f"{finding['rows']:,}",
            finding["message"],
            examples,
            finding["fix"],
        )
        table.add_row(*map(Text, cells))
    return table


def gains_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Mean gains and standard errors of a study: a row for each method, a column for each past."""
    from rich.table import Table

    table = Table(title=f"Mean gain of {rows[0]['runs']} runs (and standard error)")
    by_key = {(row["past"], row["method"]): row for row in rows}
    pasts = list(dict.fromkeys(row["past"] for row in rows))
    table.add_column("method")
    for past in pasts:
        table.add_column(f"past {past}", justify="right")
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = (by_key[past, method] for past in pasts)
        spread = (
            "" if cell["se"] is None else f" ± {cell['se']:.1f}"
            for cell in (by_key[p, method] for p in pasts)
        )
        table.add_row(
            method, *(f"{cell['mean']:.1f}{se}" for cell, se in zip(cells, spread, strict=True))
        )
    return table


def value_table(evaluation: Mapping[str, Any]) -> Table:
    """Values of policies with their intervals, then what they rest on."""
    from rich.table import Table

    table = Table(
        title=f"{evaluation['measure']}: mean and 90 % interval, {evaluation['draws']:,} draws"
    )
    for title in ("policy", "mean", "low", "high"):
        table.add_column(title, justify="left" if title == "policy" else "right")
    digits = decimals(value["mean"] for value in evaluation["values"].values()) + 1
    for name, value in evaluation["values"].items():
        table.add_row(name, *(f"{value[key]:.{digits}f}" for key in ("mean", "low", "high")))
    for name, value in evaluation["estimates"].items():
        cells = (
            "undefined" if value[key] is None else f"{value[key]:.{digits}f}"
            for key in ("mean", "low", "high")
        )
        table.add_row(
            f"score of an episode, {name if name == 'logged' else 'new, by ' + name}", *cells
        )
        if name != "logged":
            unseen = f"{100 * value['without_overlap']:.0f} % of its decisions were never logged"
            table.add_row(
                f"  rests on {value['effective_episodes']:.1f} episodes; {unseen}", style="dim"
            )
    for name, value in evaluation["support"].items():
        shown = (
            f"{value:.4g}"
            if isinstance(value, float)
            else f"{len(value)}"
            if isinstance(value, list)
            else f"{value:,}"
        )
        table.add_row(f"support: {name.replace('_', ' ')}", shown, "", "", style="dim")
    return table


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr where that is a terminal; yields the function that moves it."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


@contextmanager
def spinner(title: str) -> Iterator[None]:
    """A sign of life on stderr, where that is a terminal, while an engine works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield
