"""Policy cards as Markdown and as one HTML page without scripts or other files."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from pastwise._files import replacing
from pastwise.errors import ParameterError
from pastwise.policy.card import PolicyCard
from pastwise.report.text import markdown_table

WEAK = "weak"
"""How the support of a state with few records is called."""

STYLE = """
:root { color-scheme: light dark; --line: #c8ccd1; --soft: #f3f5f7; --text: #1b1f24;
  --page: #ffffff; --weak: #8a4b00; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444c56; --soft: #22272e; --text: #e6edf3; --page: #161b22; --weak: #f0b072; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 62rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid var(--line); }
dl { display: grid; grid-template-columns: minmax(9rem, max-content) 1fr; gap: 0.25rem 1.25rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
caption { text-align: left; padding-bottom: 0.5rem; }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left;
  vertical-align: top; }
thead th { background: var(--soft); } td.number { text-align: right;
  font-variant-numeric: tabular-nums; }
tbody th { font-weight: 600; } .weak { color: var(--weak); font-weight: 600; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.5rem; } }
"""


def require_card_path(path: str | Path) -> None:
    """Refuse a file whose name ends in anything but .md and .html."""
    if Path(path).suffix.lower() not in (".md", ".html"):
        raise ParameterError(f"{path}: a policy card is written as .md or .html")


def write_card(card: PolicyCard, path: str | Path) -> None:
    """Write a card as .md or .html."""
    require_card_path(path)
    is_page = Path(path).suffix.lower() == ".html"
    text = card_html(card) if is_page else card_markdown(card)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _identity(card: PolicyCard) -> dict[str, str]:
    """What a policy is and how it was made."""
    identity = {"Goal": card.goal, "Method": card.method, "pastwise": card.version}
    if card.checksum:
        identity["Checksum (SHA-256)"] = card.checksum
    return identity


def _columns(card: PolicyCard, max_states: int) -> dict[str, list[str]]:
    """The table of states, as text by column; columns without content are left out."""
    states = card.states[:max_states]
    columns = {"state": [state.state for state in states]}
    if card.has_meanings:
        columns["meaning"] = [state.meaning for state in states]
    columns["action"] = [state.action for state in states]
    columns["probability"] = [f"{state.probability:.3f}" for state in states]
    columns["runner-up"] = [state.runner_up for state in states]
    columns["records"] = [f"{state.records:,}" for state in states]
    if card.has_episodes:
        columns["episodes"] = [f"{state.episodes or 0:,}" for state in states]
    columns["support"] = [WEAK if state.is_weak else "" for state in states]
    return columns


def _caption(card: PolicyCard, max_states: int) -> str:
    if len(card.states) <= max_states:
        return f"All {len(card.states):,} states, most visited first."
    return f"The {max_states:,} most visited of {len(card.states):,} states; the policy has all."


def _verdict_lines(card: PolicyCard) -> list[str]:
    """The verdict in words."""
    if card.verdict is None:
        return ["Not judged."]
    lines = [card.verdict.sentence]
    if card.verdict.alternatives_in_words:
        lines.append(card.verdict.alternatives_in_words)
    return lines


# Markdown.


def card_markdown(card: PolicyCard, max_states: int = 50) -> str:
    """A card as Markdown.

    Parameters
    ----------
    max_states : int
        States that the table shows: about two pages.
    """
    lines = [f"# {_plain(card.title)}", ""]
    lines += _markdown_list(_identity(card))
    lines += ["", "## Verdict", ""]
    for line in _verdict_lines(card):
        lines += [_plain(line), ""]
    lines += ["## Data", "", *_markdown_list(card.data), ""]
    lines += ["## States and actions", "", _caption(card, max_states), ""]
    columns = _columns(card, max_states)
    rows = [[_plain(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    lines += [*markdown_table(list(columns), rows), ""]
    lines += ["## Limits", "", *(f"- {_plain(limit)}" for limit in card.limits), ""]
    return "\n".join(lines)


def _markdown_list(entries: dict[str, str]) -> list[str]:
    return [f"- **{name}**: {_plain(text)}" for name, text in entries.items()]


def _plain(text: str) -> str:
    """Text in one line whose characters mean nothing in Markdown."""
    special = "\\`*_[]<>|#"
    return "".join(f"\\{mark}" if mark in special else mark for mark in " ".join(text.split()))


# HTML.


def card_html(card: PolicyCard, max_states: int = 200) -> str:
    """A card as an HTML page, in light or dark as the reader's system is.

    Parameters
    ----------
    max_states : int
        States that the table shows; more make a page slow to scroll.
    """
    columns = _columns(card, max_states)
    header = "".join(f'<th scope="col">{name}</th>' for name in columns)
    rows = [_html_row(list(columns), row) for row in zip(*columns.values(), strict=True)]
    verdict = "".join(f"<p>{escape(line)}</p>" for line in _verdict_lines(card))
    limits = "".join(f"<li>{escape(limit)}</li>" for limit in card.limits)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(card.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(card.title)}</h1>\n{_html_list(_identity(card))}\n"
        f"<h2>Verdict</h2>\n{verdict}\n"
        f"<h2>Data</h2>\n{_html_list(card.data)}\n"
        "<h2>States and actions</h2>\n"
        '<div class="wide" tabindex="0" role="region" aria-label="States and actions">\n'
        f"<table>\n<caption>{escape(_caption(card, max_states))}</caption>\n"
        f"<thead><tr>{header}</tr></thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>\n"
        f"<h2>Limits</h2>\n<ul>{limits}</ul>\n</main>\n</body>\n</html>\n"
    )


def _html_row(names: Sequence[str], row: Sequence[str]) -> str:
    """A row of the table of states; the first cell names it."""
    cells = [f'<th scope="row">{escape(row[0])}</th>']
    for name, text in zip(names[1:], row[1:], strict=True):
        style = ""
        if name in ("probability", "records", "episodes"):
            style = ' class="number"'
        elif text == WEAK and name == "support":
            style = ' class="weak"'
        cells.append(f"<td{style}>{escape(text)}</td>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _html_list(entries: dict[str, str]) -> str:
    pairs = [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in entries.items()]
    return f"<dl>{''.join(pairs)}</dl>"
