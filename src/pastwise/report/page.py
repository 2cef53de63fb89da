"""A policy card as one HTML page, for the person who signs the policy off.

The page has no script and asks for no other file: its pictures are part of it. It suits light and
dark screens and paper; after what there is to know comes a place for a signature, then the table of
states, which may be long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pastwise._display import more_of, printable
from pastwise._pictures import IntervalRow, interval_text, rule_picture
from pastwise.evaluation.pictures import difference_picture, headline, value_picture
from pastwise.logs.findings import Finding, counted
from pastwise.policy.card import PolicyCard
from pastwise.policy.pictures import rule_legend
from pastwise.report.page_style import STYLE

WEAK = "weak"
"""How the support of a state with few records is called."""

TONES = {"↑": "good", "↓": "bad", "≈": "unsure"}
"""How the sign of a verdict looks."""

SEVERITIES = {"note": "Note", "warn": "Warning", "blocks-verdict": "Overrules the verdict"}
"""Severities of findings in words."""

METHODS = {
    "TL": "Similarity",
    "TL_foresight": "Planning",
    "TL_explore": "Similarity, exploring",
    "FPD_learn": "Model only",
}
"""Methods in the words of the workbench."""

TextTable = Mapping[str, Sequence[str]]
"""A table as text, by column."""


def card_page(card: PolicyCard, columns: TextTable, caption: str) -> str:
    """The page of a card.

    Parameters
    ----------
    columns : texts by column
        The table of states.
    caption : str
        What the table of states shows.
    """
    sections = [
        _section("Verdict", _verdict(card)),
        _section("Goal", _sentence(card.goal)),
        _section("Rule", _rule(card)),
        _section("What it rests on", _list(card.rests_on) + _list(card.data)),
        _section("Findings", _findings(card.findings)),
        _section("Second opinions", _second_opinions(card)),
        _section("What it does not say", _bullets(card.limits)),
        _section("How it was made", _making(card.making)),
        _signature(),
        _section("States and actions", _table(columns, caption)),
    ]
    title = _text(card.title)
    identity = f"{_method_words(card.method)}, pastwise {card.version}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<header><h1>{title}</h1><p class="soft">{_text(identity)}</p></header>\n'
        f"{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _method_words(method: str) -> str:
    """A method in words, with its name and without its hyper-parameters."""
    name = method.partition(" (")[0]
    return f"{METHODS[name]} ({name})" if name in METHODS else name


# Pieces of HTML.


def _text(text: str) -> str:
    """Text of data: it does nothing but appear."""
    return escape(printable(text, keep="\n"))


def _paragraph(text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f"<p{style}>{_text(text)}</p>"


def _section(title: str, content: str) -> str:
    """A section with its heading; none without content."""
    if not content:
        return ""
    return f"<section>\n<h2>{title}</h2>\n{content}\n</section>\n"


def _list(entries: Mapping[str, str]) -> str:
    pairs = [f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in entries.items()]
    return f"<dl>{''.join(pairs)}</dl>"


def _bullets(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _sentence(text: str) -> str:
    """Words of a goal as a sentence."""
    return _paragraph(f"{text[:1].upper()}{text[1:]}.", "large")


# Sections.


def _verdict(card: PolicyCard) -> str:
    """The verdict in words and as intervals."""
    verdict = card.verdict
    if verdict is None:
        return _paragraph("Not judged.")
    evaluation = verdict.evaluation
    if evaluation is None:
        return _paragraph(verdict.sentence)

    # The headline, with its sign.
    words = headline(evaluation)
    sign, _, rest = words.partition(" ")
    seal = f'<span class="seal" aria-hidden="true">{sign}</span>'
    parts = [f'<p class="verdict {TONES[sign]}">{seal}<b>{_text(rest)}</b></p>']
    if evaluation["alarm"]["raised"]:
        alarm = "⚠ Alarm: negative transfer is likely."
        parts.append(_paragraph(alarm, "verdict bad"))

    # Sentences and pictures.
    parts.append(_paragraph(verdict.sentence))
    if verdict.alternatives_in_words:
        parts.append(_paragraph(verdict.alternatives_in_words))
    parts.append("<h3>Differences of the new rule</h3>")
    parts.append(_picture(difference_picture(evaluation)))
    parts.append(_paragraph(_about_intervals(evaluation), "small"))
    parts.append(f"<h3>Values: {_text(evaluation['measure'])}</h3>")
    parts.append(_picture(value_picture(evaluation)))
    return "\n".join(parts)


def _about_intervals(evaluation: Mapping[str, Any]) -> str:
    """What bars and lines mean, and which differences count."""
    comparison = evaluation["comparisons"]["logged"]
    level = comparison["difference"]["level"]
    deciding = comparison["deciding"]["level"]
    note = f"Bars: {100 * level:g} % intervals."
    if deciding != level:
        note += f" Thin lines: the intervals that decide, {100 * deciding:g} %."
    if evaluation["margin"] > 0:
        note += f" Differences of at most {evaluation['margin']:.4g} do not count."
    return note


def _picture(picture: str) -> str:
    return f'<div class="wide" tabindex="0" role="group">{picture}</div>'


def _rule(card: PolicyCard) -> str:
    """The rule of the most visited states as a picture."""
    if not card.pictured:
        return ""
    rows = list(card.pictured)
    parts = [_picture(rule_picture(card.actions, rows, "Probability of each action by state"))]
    left_out = more_of(len(card.states), len(rows), "state")
    order = f"The most visited states {left_out}" if left_out else "Most visited states first"
    parts.append(_paragraph(f"{order}. {rule_legend(rows, len(card.actions))}", "small"))
    return "\n".join(parts)


def _findings(findings: Sequence[Finding] | None) -> str:
    """What was odd in the log, and what to do about it."""
    if findings is None:
        return _paragraph("None is recorded with the policy; pastwise validate checks a log.")
    if not findings:
        return _paragraph("Nothing odd was found in the log.")
    lines = []
    for finding in findings:
        severity = SEVERITIES[finding.severity]
        message = f"{finding.message[:1].upper()}{finding.message[1:]}. {finding.fix}."
        lines.append(f"<li><b>{severity}.</b> {_text(message)}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _second_opinions(card: PolicyCard) -> str:
    """Estimates from logged episodes, without sampled models, where there are any."""
    evaluation = None if card.verdict is None else card.verdict.evaluation
    estimates: Mapping[str, Any] = {} if evaluation is None else evaluation["estimates"]
    lines = []
    for name, estimate in estimates.items():
        text = f"Cannot be used: {estimate['why_not']}."
        if estimate["usable"]:
            numbers = IntervalRow(name, estimate["mean"], estimate["low"], estimate["high"])
            text = f"{interval_text(numbers, 3)}. {estimate['assumption']}"

        # What was done is compared with, and used for nothing.
        title = name
        if name == "logged":
            title = "What was done"
            text = f"The reference: {estimate['mean']:.3f}, the mean of the log's episodes."
        lines.append(f"<li><b>{_text(title)}.</b> {_text(text)}</li>")
    if evaluation is None or not lines:
        return ""
    unit = f"Totals over an episode, up to {counted(evaluation['horizon'], 'decision')}."
    return f"{_paragraph(unit, 'small')}<ul>{''.join(lines)}</ul>"


def _table(columns: TextTable, caption: str) -> str:
    """The table of states."""
    header = "".join(f'<th scope="col"{_style(name)}>{name}</th>' for name in columns)
    rows = [_row(list(columns), row) for row in zip(*columns.values(), strict=True)]
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="States and actions, table">\n'
        f"<table>\n<caption>{_text(caption)}</caption>\n"
        f"<thead><tr>{header}</tr></thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>"
    )


def _row(names: Sequence[str], row: Sequence[str]) -> str:
    """A row of the table of states; the first cell names it."""
    cells = [f'<th scope="row">{_text(row[0])}</th>']
    for name, text in zip(names[1:], row[1:], strict=True):
        style = _style(name)
        if text == WEAK and name == "support":
            style = ' class="weak"'
        cells.append(f"<td{style}>{_text(text)}</td>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _style(column: str) -> str:
    """Numbers are at the right."""
    return ' class="number"' if column in ("probability", "records", "episodes") else ""


def _making(making: Mapping[str, str]) -> str:
    """How to make the policy again; what is long or code is shown as such."""
    pairs = []
    for name, text in making.items():
        shown = _text(text)
        if name not in ("Versions", "Method"):
            shown = f"<code>{shown}</code>"
        pairs.append(f"<dt>{_text(name)}</dt><dd>{shown}</dd>")
    return f"<dl>{''.join(pairs)}</dl>"


def _signature() -> str:
    """Lines for a decision, a name, a date and a signature."""
    fields = "".join(f"<p><span>{name}</span></p>" for name in ("Name", "Date", "Signature"))
    return (
        '<section class="signature" aria-label="Signed off">\n<h2>Signed off</h2>\n'
        '<p class="choice">☐ to be used &nbsp; ☐ to be tried next to what is done &nbsp; '
        f'☐ not to be used</p>\n<div class="lines">{fields}</div>\n</section>\n'
    )
