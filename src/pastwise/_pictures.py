"""Small static pictures as SVG inside HTML: rules, intervals and bars, for notebooks and reports.

They need no script, no style sheet and no file. Colours are translucent and text has the colour of
the page, so that one picture suits light and dark pages. Nothing is said by colour alone: numbers
are in the picture, what rests on little is hatched, what is forbidden is crossed out.

Labels are data: each is escaped, shortened, and complete in its tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal
from unicodedata import category, east_asian_width

from pastwise._display import cut, printable

Tone = Literal["plain", "new", "good", "bad"]

TONES: dict[Tone, str] = {
    "plain": "currentColor",
    "new": "#3b6fd4",
    "good": "#0e8a68",
    "bad": "#c2521b",
}
"""Colours that have a contrast of at least 3 : 1 on white and on black."""

SHADE = "#2c56b8"
"""Colour of a probability; its opacity says how large it is."""

DARKEST = 0.56
"""Opacity of a probability of 1: text of the page's own colour keeps a contrast of 4.5 : 1."""

NARROW_ACTIONS = 8
"""Actions up to which every cell of a rule has room for its number."""

EM = 12
"""Size of letters in pixels."""

WIDTHS = {
    **dict.fromkeys(" !'(),-./:;IJ[\\]fijlrt|", 0.43),
    **dict.fromkeys("&ABCDGHNOQRUVXZ", 0.80),
    **dict.fromkeys("#%+<=>@MW^mw~…", 1.0),
}
"""Widths of characters in em. They are those of wide fonts, so that labels fit in all others."""

OTHER_WIDTH = 0.66
"""Width of the other letters and digits of the Latin alphabet."""

FOREIGN_WIDTHS = {"Mn": 0.0, "Me": 0.0, "Cf": 0.0, "Lu": 1.0}
"""Widths of characters outside ASCII by their category: marks take no room of their own."""

BOLDER = 1.12
"""How much wider bold letters are."""

BOLD = ' font-weight="600"'


# Text.


def probability_text(value: float) -> str:
    """A probability as pages show it.

    >>> [probability_text(p) for p in (0.0, 0.0001, 0.6061, 0.99999, 1.0)]
    ['0', '<.001', '.606', '>.999', '1']
    """
    if value <= 0:
        return "0"
    if value >= 1:
        return "1"
    if value < 0.0005:
        return "<.001"
    if value > 0.9995:
        return ">.999"
    return f"{value:.3f}".removeprefix("0")


def number_text(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with a proper minus.

    >>> number_text(-0.0204, 3), number_text(0.5, 2, signed=True), number_text(-0.0001, 3)
    ('−0.020', '+0.50', '0.000')
    """
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    sign = "+" if signed else ""
    return f"{'−' if value < 0 else sign}{text}"


def fitting(label: str, width: float) -> str:
    """A label that fits into so many pixels, without its middle if it is too long.

    >>> [fitting(label, 62) for label in ("increase", "increase_ventilation", "MAXIMUM DOSE")]
    ['increase', 'incr…ion', 'MAX…SE']
    """
    text = printable(label) or "(empty)"
    if text_width(text) <= width:
        return text
    most = int(width / (EM * min(WIDTHS.values())))
    for length in range(min(most, len(text)), 2, -1):
        shortened = cut(text, length)
        if text_width(shortened) <= width:
            return shortened
    return cut(text, 3)


def text_width(text: str) -> float:
    """Pixels that a text takes at most, in the fonts that pages usually have."""
    return EM * sum(_em(character) for character in text)


def _em(character: str) -> float:
    """Width of a character in em; ideographs and emoji are wider than letters."""
    if character in WIDTHS:
        return WIDTHS[character]
    if character.isascii():
        return OTHER_WIDTH
    if east_asian_width(character) in ("W", "F"):
        return 1.3
    return FOREIGN_WIDTHS.get(category(character), 0.85)


# Pieces of SVG.


def svg(width: float, height: float, label: str, content: Iterable[str]) -> str:
    """A picture with its name for screen readers."""
    name = escape(cut(printable(label), 400))
    return (
        f'<div><svg width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{name}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        f"{''.join(content)}</svg></div>"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "", more: str = "") -> str:
    side = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.4g}" y="{y:.4g}"{side}{more}>{escape(text)}</text>'


def _label(
    x: float,
    y: float,
    label: str,
    width: float,
    *,
    before: str = "",
    anchor: str = "",
    more: str = "",
) -> str:
    """A label that fits, after words of ours, with the whole of it as a tooltip where it is cut."""
    shown = before + fitting(label, width - text_width(before))
    if shown == before + label:
        return _text(x, y, shown, anchor=anchor, more=more)
    side = f' text-anchor="{anchor}"' if anchor else ""
    whole = escape(before + cut(printable(label)))
    return f'<text x="{x:.4g}" y="{y:.4g}"{side}{more}>{escape(shown)}<title>{whole}</title></text>'


def _rectangle(x: float, y: float, width: float, height: float, fill: str, opacity: float) -> str:
    faint = f' fill-opacity="{opacity:.2g}"' if opacity < 1 else ""
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" rx="2" '
        f'fill="{fill}"{faint}/>'
    )


def _frame(x: float, y: float, width: float, height: float, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="3 2"' if dashed else ""
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" rx="4" '
        f'fill="none" stroke="currentColor" stroke-opacity="{0.6 if dashed else 0.15}"{dashes}/>'
    )


def _hatching(x: float, y: float, width: float, height: float, step: float = 7.0) -> str:
    """Diagonal lines over a rectangle."""
    lines = []
    offset = step / 2
    while offset < width + height:
        left = max(0.0, offset - height)
        right = min(offset, width)
        start = f"{x + left:.4g} {y + offset - left:.4g}"
        end = f"{x + right:.4g} {y + offset - right:.4g}"
        lines.append(f"M{start}L{end}")
        offset += step
    return f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".3" fill="none"/>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.4g}" cy="{y:.4g}" r="4" fill="{colour}"/>'


def _upright(x: float, height: float, opacity: float) -> str:
    """A vertical line from the top."""
    return f'<path d="M{x:.4g} 0V{height:.4g}" stroke="currentColor" stroke-opacity="{opacity:g}"/>'


# A rule.


@dataclass(frozen=True)
class RuleRow:
    """The rule of one state, for a picture.

    Attributes
    ----------
    state : str
    probabilities : [A]
    before : [A], optional
        What was done.
    never : set of int
        Actions that the goal forbids.
    is_weak : bool
        Whether the rule rests on next to nothing.
    is_end : bool
        Whether episodes end in the state, so that nothing is decided there.
    """

    state: str
    probabilities: Sequence[float]
    before: Sequence[float] | None = None
    never: Collection[int] = ()
    is_weak: bool = False
    is_end: bool = False


def rule_picture(actions: Sequence[str], rows: Sequence[RuleRow], label: str = "Rule") -> str:
    """States by actions; with many actions a strip for each state, and its best action in words."""
    if len(actions) <= NARROW_ACTIONS:
        return _grid(actions, rows, label)
    return _strips(actions, rows, label)


def _grid(actions: Sequence[str], rows: Sequence[RuleRow], label: str) -> str:
    names = 130.0
    cell = 62.0
    gap = 3.0
    head = 20.0
    has_before = any(row.before is not None for row in rows)
    height = 36.0 if has_before else 25.0
    content = []
    for column, action in enumerate(actions):
        x = names + column * (cell + gap) + cell / 2
        content.append(_label(x, 13, action, cell, anchor="middle", more=' fill-opacity=".7"'))
    for number, row in enumerate(rows):
        y = head + number * (height + gap)
        content.append(_label(0, y + height / 2 + 4, row.state, names - 8))
        for column in range(len(actions)):
            x = names + column * (cell + gap)
            content.append(_cell(row, column, x, y, cell, height))
    width = names + len(actions) * (cell + gap)
    return svg(width, head + len(rows) * (height + gap), label, content)


def _cell(row: RuleRow, column: int, x: float, y: float, width: float, height: float) -> str:
    """A probability, shaded by its size."""
    middle = x + width / 2
    if row.is_end:
        return _text(middle, y + height / 2 + 4, "end" if column == 0 else "", anchor="middle")
    if column in row.never:
        words = _text(middle, y + height / 2 + 4, "⊘ never", anchor="middle")
        return _frame(x + 0.5, y + 0.5, width - 1, height - 1, dashed=True) + words
    value = row.probabilities[column]
    parts = [_rectangle(x, y, width, height, SHADE, 0.03 + (DARKEST - 0.03) * value)]
    if row.is_weak:
        parts.append(_hatching(x, y, width, height))
    parts.append(_frame(x + 0.5, y + 0.5, width - 1, height - 1))
    if row.before is None:
        text = probability_text(value)
        parts.append(_text(middle, y + height / 2 + 4, text, anchor="middle", more=BOLD))
    else:
        was = f"was {probability_text(row.before[column])}"
        parts.append(_text(middle, y + 16, probability_text(value), anchor="middle", more=BOLD))
        parts.append(_text(middle, y + 29, was, anchor="middle", more=' font-size="10"'))
    return "".join(parts)


def _strips(actions: Sequence[str], rows: Sequence[RuleRow], label: str) -> str:
    names = 130.0
    lane = 260.0
    height = 20.0
    step = lane / len(actions)
    content = []
    for number, row in enumerate(rows):
        y = number * height
        content.append(_label(0, y + 13, row.state, names - 8))
        if row.is_end:
            content.append(_text(names, y + 13, "end"))
            continue
        content.append(_frame(names, y + 2, lane, height - 6))
        for column, value in enumerate(row.probabilities):
            if value >= 0.005:
                x = names + column * step
                content.append(_rectangle(x, y + 2, step, height - 6, SHADE, 0.1 + 0.8 * value))
        if row.is_weak:
            content.append(_hatching(names, y + 2, lane, height - 6))
        best = max(range(len(actions)), key=lambda action: row.probabilities[action])
        words = probability_text(row.probabilities[best])
        content.append(_text(names + lane + 42, y + 13, words, anchor="end", more=BOLD))
        content.append(_label(names + lane + 50, y + 13, actions[best], 150))
    return svg(names + lane + 200, len(rows) * height, label, content)


# Intervals.


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval, for a picture.

    Attributes
    ----------
    name : str
    mean : float, optional
        None where only the interval is shown, as for "cannot tell".
    low, high : float
    outer : two floats, optional
        A second interval, as a thin line.
    tone : Tone
    """

    name: str
    mean: float | None
    low: float
    high: float
    outer: tuple[float, float] | None = None
    tone: Tone = "plain"


def interval_picture(
    rows: Sequence[IntervalRow], *, digits: int = 3, is_difference: bool = False, label: str
) -> str:
    """Values with their intervals on one axis; differences with a line at zero and with signs."""
    names = 170.0
    lane = 260.0
    height = 24.0
    foot = 22.0
    known = [row for row in rows if math.isfinite(row.low) and math.isfinite(row.high)]
    ends = [end for row in known for end in (row.low, row.high, *(row.outer or ()))]
    ticks = _ticks([*ends, 0.0] if is_difference or not ends else ends)
    first = ticks[0]
    last = ticks[-1]
    bottom = len(known) * height

    def at(value: float) -> float:
        return names + lane * (value - first) / (last - first)

    # The axis: round numbers below, a stronger line at zero.
    content = []
    for tick in ticks:
        is_zero = is_difference and abs(tick) < 1e-12
        content.append(_upright(at(tick), bottom, 0.6 if is_zero else 0.18))
        text = number_text(tick, _decimals(ticks), signed=is_difference)
        faint = ' font-size="11" fill-opacity=".75"'
        content.append(_text(at(tick), bottom + 15, text, anchor="middle", more=faint))

    # The intervals, with their numbers at the right.
    said = []
    longest = 166.0
    for number, row in enumerate(known):
        middle = number * height + height / 2
        content.append(_label(0, middle + 4, row.name, names - 12))
        colour = TONES[row.tone]
        if row.outer is not None:
            start = at(row.outer[0])
            end = at(row.outer[1])
            content.append(_rectangle(start, middle - 0.75, max(end - start, 1), 1.5, colour, 1))
        start = at(row.low)
        end = at(row.high)
        content.append(_rectangle(start, middle - 3.5, max(end - start, 2), 7, colour, 0.45))
        if row.mean is not None:
            content.append(_dot(at(row.mean), middle, colour))
        words = interval_text(row, digits, signed=is_difference)
        content.append(_text(names + lane + 14, middle + 4, words))
        said.append(f"{row.name} {words}")
        longest = max(longest, text_width(words))
    width = names + lane + 24 + longest
    return svg(width, bottom + foot, f"{label}: {'; '.join(said)}", content)


def interval_text(row: IntervalRow, digits: int, *, signed: bool = False) -> str:
    """Such as: 0.503, 0.463 to 0.546; without the mean where it is not shown."""
    low = number_text(row.low, digits, signed=signed)
    high = number_text(row.high, digits, signed=signed)
    if row.mean is None:
        return f"{low} to {high}"
    return f"{number_text(row.mean, digits, signed=signed)}, {low} to {high}"


ROUNDING = 1e-9
"""A number this close to a whole one is whole: 0.3 / 0.1 is just below 3."""


def _ticks(values: Sequence[float], wanted: int = 4) -> list[float]:
    """Round numbers around values, as ends and steps of an axis."""
    low = min(values)
    high = max(values)
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / wanted))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / wanted)
    start = math.floor(low / step + ROUNDING)
    end = max(start + 1, math.ceil(high / step - ROUNDING))
    return [index * step for index in range(start, end + 1)]


def _decimals(ticks: Sequence[float]) -> int:
    digits = -math.floor(math.log10(ticks[1] - ticks[0]) + ROUNDING)
    return max(0, min(8, digits))


# Bars.


@dataclass(frozen=True)
class BarRow:
    """A part of a whole as a bar, for a picture.

    Attributes
    ----------
    name : str
    part, whole : float
        Shares of the lane, from 0 to 1; the bar of the part lies on that of the whole.
    text : str
        The numbers.
    before : str
        Words before the name, which are shown in full.
    is_detail : bool
        Whether the row belongs to the one above it.
    is_weak : bool
        Whether it rests on next to nothing.
    """

    name: str
    part: float
    whole: float
    text: str
    before: str = ""
    is_detail: bool = False
    is_weak: bool = False


def bar_picture(rows: Sequence[BarRow], label: str) -> str:
    """Bars with a name at the left and numbers at the right."""
    names = 170.0
    lane = 180.0
    height = 20.0
    content = []
    longest = max((text_width(row.text) for row in rows), default=0.0)
    for number, row in enumerate(rows):
        middle = number * height + height / 2
        indent = 14.0 if row.is_detail else 0.0
        weight, wider = ("", 1.0) if row.is_detail else (BOLD, BOLDER)
        room = (names - indent - 10) / wider
        name = _label(indent, middle + 4, row.name, room, before=row.before, more=weight)
        content.append(name)
        thickness = 6.0 if row.is_detail else 10.0
        top = middle - thickness / 2
        whole = max(lane * row.whole, 1)
        content.append(_rectangle(names, top, whole, thickness, "currentColor", 0.15))
        if row.part > 0:
            width = max(lane * min(row.part, 1.0), 1.5)
            tone = TONES["bad"] if row.is_weak else TONES["new"]
            opacity = 0.55 if row.is_detail else 0.9
            content.append(_rectangle(names, top, width, thickness, tone, opacity))
        if row.is_weak:
            content.append(_hatching(names, top, max(lane * row.whole, 8), thickness, 5))
        content.append(_text(names + lane + 12, middle + 4, row.text))
    width = names + lane + 24 + longest
    return svg(width, max(1, len(rows)) * height, label, content)
