"""For a terminal: tables, progress bars and spinners."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING

from pastwise._display import Table as ReaderTable
from pastwise._display import decimals, printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pastwise._numerics.interval import Interval
    from pastwise.evaluation.estimate import Estimate
    from pastwise.evaluation.result import Evaluation, EvaluationSupport
    from pastwise.logs.findings import Finding
    from pastwise.policy.decisions import Decisions
    from pastwise.policy.summary import CountsSummary


def shortened(text: str, length: int = 2000) -> str:
    """Text with its middle left out where it is too long to be read.

    Parameters
    ----------
    text : str
    length : int
        Characters to keep. The default is a screen of text.

    Examples
    --------
    >>> shortened("abcdefghij" * 10, 8)
    'abcd ... (92 characters left out) ... ghij'
    """
    if len(text) <= length:
        return text
    half = length // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]} ... ({left_out:,} characters left out) ... {text[-half:]}"


def _cell(text: str, length: int = 200) -> Text:
    """A cell with data: rich would find markup and emoji in a plain string.

    Parameters
    ----------
    text : str
    length : int
        Characters to show. The default leaves room for a few cells on a screen.
    """
    from rich.text import Text

    return Text(shortened(printable(text), length))


def counts_line(summary: CountsSummary) -> str:
    """How much there is in counts."""
    return (
        f"{summary.records:,} records, {summary.transitions:,} transitions, "
        f"{summary.states:,} states, {summary.actions:,} actions"
    )


def coloured_table(table: ReaderTable) -> Table:
    """A table of a result, with shades of blue for probabilities.

    Labels break into several lines where the terminal is narrow, numbers never do.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = Table(
        title=table.caption or None,
        caption=table.note or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for i, column in enumerate(table.columns):
        is_label = i in table.labels
        longest = max((len(row[i]) for row in table.rows), default=0)
        if not is_label and len(column) > longest:
            column = column.replace(" ", "\n", 1)
        shown.add_column(
            Text(shortened(printable(column, keep="\n"), 200)),
            justify="left" if is_label else "right",
            overflow="fold",
            no_wrap=not is_label,
        )
    for number, row in enumerate(table.rows):
        cells = []
        for i, text in enumerate(row):
            cell = _cell(text)
            if i in table.shades:
                cell = Text(text, style=_shade(table.shades[i][number]))
            cells.append(cell)
        shown.add_row(*cells, style="dim" if table.is_dimmed(number) else None)
    return shown


def decisions_table(decisions: Decisions, max_rows: int = 40) -> Table:
    """The decision for each row: action, probability, state and support.

    Parameters
    ----------
    max_rows : int
        Rows that are shown: a screen.
    """
    from rich.table import Table

    columns = decisions.columns()
    table = Table()
    for name in columns:
        table.add_column(_cell(name.removeprefix("is_")))
    first = [values[:max_rows] for values in columns.values()]
    for row in zip(*first, strict=True):
        table.add_row(*(_cell(_decision_text(value)) for value in row))
    if len(decisions) > max_rows:
        table.caption = f"the first {max_rows} of {len(decisions):,} rows; -o writes all"
    return table


def _decision_text(value: object) -> str:
    """A cell of a table of decisions."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _shade(probability: float) -> str:
    """From the terminal's own background to deep blue."""
    if probability < 0.05:
        return ""
    red, green, blue = (int(255 + (deep - 255) * probability) for deep in (0, 114, 178))
    text_colour = "white" if probability > 0.5 else "black"
    return f"{text_colour} on rgb({red},{green},{blue})"


def findings_table(findings: Sequence[Finding]) -> Table:
    """What was found in a log, with examples."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    table.add_column("code", overflow="fold")
    table.add_column("rows", overflow="fold", justify="right")
    table.add_column("what", overflow="fold")
    table.add_column("examples", overflow="fold")
    table.add_column("what to do", overflow="fold")
    for finding in findings:
        examples = [_cell(_fields_text(example)) for example in finding.examples]
        table.add_row(
            finding.code,
            f"{finding.rows:,}",
            _cell(finding.message, 1000),
            Text("\n").join(examples),
            _cell(finding.fix, 1000),
        )
    return table


def _fields_text(example: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in example.items())


def number_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Names in the first column, numbers as text in the others."""
    from rich.table import Table

    table = Table(title=title)
    table.add_column(header[0])
    for column in header[1:]:
        table.add_column(column, justify="right")
    for cells in rows:
        table.add_row(*cells)
    return table


def value_table(evaluation: Evaluation) -> Table:
    """Values of policies with their intervals."""
    from rich.table import Table

    level = f"{100 * evaluation.thresholds.level:g} %"
    samples = "1 sample" if evaluation.samples == 1 else f"{evaluation.samples:,} samples"
    title = f"{evaluation.measure}: mean and {level} interval, {samples}"
    table = Table(title=title)
    table.add_column("policy")
    for column in ("mean", "low", "high"):
        table.add_column(column, justify="right")
    digits = decimals(value.mean for value in evaluation.values.values()) + 1

    # Values on sampled models, with those on the records that were learned from next to them.
    for name, value in evaluation.values.items():
        table.add_row(_cell(name), *_interval_cells(value, digits))
        if name in evaluation.in_sample:
            in_sample = _interval_cells(evaluation.in_sample[name], digits)
            table.add_row("  on the records learned from", *in_sample, style="dim")

        if name == "logged" and evaluation.value_in_log is not None:
            table.add_row("  in the log itself", f"{evaluation.value_in_log:.{digits}f}")

    # Estimates from logged episodes, where they were requested.
    for name, estimate in evaluation.estimates.items():
        for cells in _estimate_rows(name, estimate, digits):
            table.add_row(*cells, style=None if estimate.usable else "dim")
    return table


def _estimate_rows(name: str, estimate: Estimate, digits: int) -> list[list[str]]:
    """An estimate from episodes, its difference to the logged value, and what it rests on."""
    if name == "logged":
        title = "utility of an episode, logged"
    else:
        title = f"utility of an episode, new, by {name}"
    if not estimate.usable:
        title += " (unusable)"
    rows = [[title, *_interval_cells(estimate, digits)]]
    if estimate.difference is not None:
        difference = _interval_cells(estimate.difference, digits, sign="+")
        rows.append(["  minus logged", *difference])
    if estimate.in_sample is not None and isfinite(estimate.in_sample):
        in_sample = f"{estimate.in_sample:.{digits}f}"
        rows.append(["  learned and judged on the same episodes", in_sample])
    if name != "logged":
        episodes = f"{estimate.effective_episodes:.1f} effective episodes"
        unseen = f"{100 * estimate.without_overlap:.0f} % of its decisions were never logged"
        rows.append([f"  rests on {episodes}; {unseen}"])
    if not estimate.usable:
        rows.append([f"  unusable: {estimate.why_not}"])
    return rows


def comparison_table(evaluation: Evaluation) -> Table:
    """The new policy compared with each reference: the interval that decides, and the verdict."""
    from rich.table import Table

    level = f"{100 * evaluation.thresholds.deciding_level:g} %"
    table = Table(title=f"New policy minus others: mean and {level} interval")
    table.add_column("policy")
    for column in ("mean", "low", "high", "better in"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    if evaluation.objections:
        table.add_column("by the log")
    digits = decimals(value.mean for value in evaluation.values.values()) + 1
    for name, comparison in evaluation.comparisons.items():
        chance = f"{100 * comparison.chance_better:.1f} %"
        numbers = _interval_cells(comparison.deciding, digits, sign="+")
        words = [comparison.verdict]
        if evaluation.objections:
            words.append(comparison.by_the_log)
        table.add_row(_cell(name), *numbers, chance, *words)
    return table


def verdict_lines(evaluation: Evaluation) -> list[str]:
    """Margin, alarm and objections of an evaluation, a line each."""
    lines = [evaluation.margin_in_words, evaluation.alarm_in_words]
    for objection in evaluation.objections:
        lines.append(f"Not a fair comparison ({objection.code}): {objection.message}.")
    return lines


def support_table(support: EvaluationSupport) -> Table:
    """What a policy and its evaluation rest on."""
    from rich.table import Table

    table = Table(title="What the new policy rests on", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    well_seen = f"its decisions that the log has at least {support.well_seen} times"
    never_left = f"{len(support.states_by_extrapolation):,}"
    table.add_row("records of the log", f"{support.records:,}")
    table.add_row("their total similarity to the goal", f"{support.similarity:.4g}")
    table.add_row("equally similar records that say as much", f"{support.effective:.4g}")
    table.add_row(well_seen, f"{100 * support.visits_well_seen:.4g} %")
    table.add_row("states that it visits and the log never left", never_left)
    return table


def _interval_cells(interval: Interval, digits: int, sign: str = "") -> list[str]:
    """Mean, low and high as text.

    Parameters
    ----------
    sign : str
        "+" shows the sign of positive numbers too.
    """
    layout = f"{sign}.{digits}f"
    numbers = (interval.mean, interval.low, interval.high)
    return [format(number, layout) if isfinite(number) else "undefined" for number in numbers]


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
    """A spinner on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield
