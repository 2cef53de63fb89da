"""Policy cards as Markdown and as one HTML page without scripts or other files."""

from __future__ import annotations

from pathlib import Path

from pastwise._files import replacing
from pastwise.errors import ParameterError
from pastwise.policy.card import PolicyCard
from pastwise.report.page import WEAK, card_page
from pastwise.report.text import markdown_table


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
    return card_page(card, _columns(card, max_states), _caption(card, max_states))
