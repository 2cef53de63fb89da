"""Evaluations as small pictures, for notebooks and reports.

They are made from the plain values of an evaluation, `Evaluation.to_dict`, so that a stored result
has the same pictures as a new one. Where the verdict is "cannot tell", a difference is shown by its
interval alone: a point would suggest more than is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pastwise._display import decimals
from pastwise._pictures import IntervalRow, Tone, interval_picture

Content = Mapping[str, Any]
"""What `Evaluation.to_dict` returns."""

NAMES = {
    "new": "the new rule",
    "logged": "what was done",
    "random": "acting at random",
    "optimum": "the best possible",
}
"""Policies of an evaluation in words; others have their own names."""

SIGNS = {"better": "↑", "worse": "↓", "cannot tell": "≈"}
"""Signs of the three verdicts, next to their words."""


def headline(content: Content) -> str:
    """The verdict against what was done in a few words, with its sign.

    Objections overrule it: the sign is that of "cannot tell".
    """
    comparison = content["comparisons"]["logged"]
    by_the_log = comparison["by_the_log"]
    is_overruled = bool(content["objections"] or content.get("overruled_by"))
    if by_the_log == "cannot tell":
        return f"{SIGNS['cannot tell']} Cannot tell it from what was done"
    if is_overruled:
        sign = SIGNS["cannot tell"]
        return f"{sign} {by_the_log.capitalize()} by the log, but not a fair comparison"
    return f"{SIGNS[by_the_log]} {by_the_log.capitalize()} than what was done"


def value_picture(content: Content) -> str:
    """Values of all policies with their intervals."""
    rows = []
    for name, interval in content["values"].items():
        row = _row(NAMES.get(name, name), interval, tone=_tone(name, content))
        if row is not None:
            rows.append(row)
    level = 100 * content["values"]["new"]["level"]
    label = f"{content['measure']}, {level:g} % intervals"
    return interval_picture(rows, digits=_digits(content), label=label)


def difference_picture(content: Content) -> str:
    """Differences of the new rule to others; a thin line where another interval decides."""
    rows = []
    compared = {**content["comparisons"], **content["alternatives"]}
    for name, comparison in compared.items():
        deciding = comparison["deciding"]
        is_another = deciding["level"] != comparison["difference"]["level"]
        row = _row(
            f"to {NAMES.get(name, name)}",
            comparison["difference"],
            hides_mean=comparison["verdict"] == "cannot tell",
            outer=(deciding["low"], deciding["high"]) if is_another else None,
            tone=_tone_of_verdict(comparison["verdict"]),
        )
        if row is not None:
            rows.append(row)
    label = f"Differences of the new rule, {content['measure']}"
    return interval_picture(rows, digits=_digits(content), is_difference=True, label=label)


def _row(
    name: str,
    interval: Mapping[str, float | None],
    *,
    hides_mean: bool = False,
    outer: tuple[float | None, float | None] | None = None,
    tone: Tone = "plain",
) -> IntervalRow | None:
    """A row of a picture; None where an interval has no ends."""
    low = interval["low"]
    high = interval["high"]
    if low is None or high is None:
        return None
    thin = None
    if outer is not None and outer[0] is not None and outer[1] is not None:
        thin = (outer[0], outer[1])
    mean = None if hides_mean else interval["mean"]
    return IntervalRow(name, mean, low, high, thin, tone)


def _tone(name: str, content: Content) -> Tone:
    if name == "new":
        return "bad" if content["alarm"]["raised"] else "new"
    return "good" if name == "optimum" else "plain"


def _tone_of_verdict(verdict: str) -> Tone:
    if verdict == "cannot tell":
        return "plain"
    return "good" if verdict == "better" else "bad"


def _digits(content: Content) -> int:
    means = [interval["mean"] for interval in content["values"].values()]
    return decimals(mean for mean in means if mean is not None)
