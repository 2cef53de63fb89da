"""For a terminal: tables, coloured by probability, dimmed by lack of similarity; and signs of life."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

from pastwise._display import decimals

if TYPE_CHECKING:
    from rich.table import Table

    from pastwise._numerics.interval import Interval
    from pastwise.evaluation.result import Evaluation

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


def value_table(evaluation: Evaluation) -> Table:
    """Values of policies with their intervals, then what they rest on."""
    from rich.table import Table

    level = f"{100 * evaluation.thresholds.level:g} %"
    title = f"{evaluation.measure}: mean and {level} interval, {evaluation.samples:,} samples"
    table = Table(title=title)
    table.add_column("policy")
    for column in ("mean", "low", "high"):
        table.add_column(column, justify="right")
    digits = decimals(value.mean for value in evaluation.values.values()) + 1

    # Values on sampled models.
    for name, value in evaluation.values.items():
        table.add_row(name, *_interval_cells(value, digits))

    # Estimates from logged episodes, where they were requested.
    for name, estimate in evaluation.estimates.items():
        of = "logged" if name == "logged" else f"new, by {name}"
        table.add_row(f"utility of an episode, {of}", *_interval_cells(estimate, digits))
        if name != "logged":
            episodes = f"{estimate.effective_episodes:.1f} episodes"
            unseen = f"{100 * estimate.without_overlap:.0f} % of its decisions were never logged"
            table.add_row(f"  rests on {episodes}; {unseen}", style="dim")

    # What all of them rest on.
    support = evaluation.support
    seen = f"decisions seen at least {support.well_seen} times"
    lines = {
        "records": f"{support.records:,}",
        "similarity": f"{support.similarity:.4g}",
        "effective": f"{support.effective:.4g}",
        seen: f"{support.visits_well_seen:.4g}",
        "states by extrapolation": f"{len(support.states_by_extrapolation)}",
    }
    for name, shown in lines.items():
        table.add_row(f"support: {name}", shown, "", "", style="dim")
    return table


def _interval_cells(interval: Interval, digits: int) -> list[str]:
    """Mean, low and high as text."""
    numbers = (interval.mean, interval.low, interval.high)
    return [f"{number:.{digits}f}" if isfinite(number) else "undefined" for number in numbers]


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
