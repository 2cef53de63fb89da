"""Write docs/figures/overview.svg, the picture at the top of the README.

    python docs/generators/overview.py

Every number in it is that of the thermostat example. The cards bring their own background, and the
arrows a grey between black and white, so that the picture is readable on light and dark pages.
"""

import csv
from html import escape
from pathlib import Path

import pastwise as pw

ROOT = Path(__file__).parents[2]
LOG = ROOT / "examples" / "thermostat" / "log.csv"
GOAL = ROOT / "examples" / "thermostat" / "goal.toml"
PICTURE = ROOT / "docs" / "figures" / "overview.svg"

ROOMS = ("cold", "cool", "comfortable", "warm", "hot")
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #1d2733; }
  .title { font-weight: 600; }
  .quiet { fill: #5b6875; }
  .card { fill: #f6f8fa; stroke: #c3ccd5; }
  .bar { fill: #b5d4f4; }
  .good { fill: #1a7f37; font-weight: 600; }
  .arrow { stroke: #8a949e; stroke-width: 3; fill: none; }
  .head { fill: #8a949e; }
"""


def main() -> None:
    """Learn, then write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")


def picture() -> str:
    """The picture as SVG."""
    learner = pw.TransferLearner(pw.Goal.from_toml(GOAL))
    learner.fit(LOG, state="room", action="did", episode="day", time="hour")
    parts = [
        *_log_card(12, 12),
        *_goal_card(12, 272),
        *_arrow(280, 110, 338),
        *_arrow(280, 330, 338),
        *_policy_card(348, 12, learner),
        *_evidence_card(348, 216, learner),
        *_verdict_card(348, 324, learner),
    ]
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 432" width="760" role="img" '
        'aria-label="A log and a goal go in; a policy, its evidence and a verdict come out">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _log_card(x: int, y: int) -> list[str]:
    with LOG.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    parts = _card(x, y, 260, 246, "Log: what was done")
    for i, row in enumerate(rows[:6]):
        for j, cell in enumerate(row):
            kind = "quiet" if i == 0 else ""
            parts.append(_text(x + 16 + (0, 44, 92, 200)[j], y + 58 + 26 * i, cell, kind))
    parts.append(_text(x + 16, y + 58 + 26 * 6, f"… {len(rows) - 1} rows", "quiet"))
    return parts


def _goal_card(x: int, y: int) -> list[str]:
    goal = pw.Goal.from_toml(GOAL)
    parts = _card(x, y, 260, 148, "Goal: what you want now")
    for i, (state, weight) in enumerate(goal.prefer.items()):
        parts.append(_text(x + 16, y + 60 + 28 * i, f"be in {state}: {weight:g}"))
    for state, action in goal.forbid:
        parts.append(_text(x + 16, y + 60 + 28 * 2, f"never {action} in {state}"))
    return parts


def _policy_card(x: int, y: int, learner: pw.TransferLearner) -> list[str]:
    parts = _card(x, y, 400, 190, "Policy")
    actions = list(learner.rule_["cold"])
    for j, action in enumerate(actions):
        parts.append(_text(x + 130 + 90 * j, y + 28, action, "quiet"))
    for i, room in enumerate(ROOMS):
        line = y + 56 + 28 * i
        parts.append(_text(x + 16, line, room))
        for j, action in enumerate(actions):
            probability = learner.rule_[room][action]
            left = x + 130 + 90 * j
            parts.append(_bar(left, line - 15, round(76 * probability)))
            parts.append(_text(left + 6, line, f"{probability:.2f}"))
    return parts


def _evidence_card(x: int, y: int, learner: pw.TransferLearner) -> list[str]:
    reason = learner.explain("cool", "heat").actions["heat"]
    parts = _card(x, y, 400, 96, "Evidence")
    parts.append(_text(x + 110, y + 28, f"cool → heat {reason.probability:.2f}", "quiet"))
    for i, each in enumerate(reason.evidence[:2]):
        words = f"{each.records} records ({100 * each.share:.0f} %) led to {each.next_state}"
        parts.append(_text(x + 16, y + 56 + 26 * i, words))
    return parts


def _verdict_card(x: int, y: int, learner: pw.TransferLearner) -> list[str]:
    result = learner.evaluate()
    new = result.values["new"].mean
    logged = result.values["logged"].mean
    difference = result.comparisons["logged"].deciding
    parts = _card(x, y, 400, 96, "Verdict")
    parts.append(_text(x + 90, y + 28, f"{result.verdict['logged']} than what was done", "good"))
    parts.append(_text(x + 16, y + 56, f"share of time as wanted: {logged:.2f} → {new:.2f}"))
    level = f"{100 * difference.level:g} %"
    interval = f"{difference.low:+.2f} to {difference.high:+.2f}"
    parts.append(_text(x + 16, y + 82, f"{level} interval of the difference: {interval}"))
    return parts


def _card(x: int, y: int, width: int, height: int, title: str) -> list[str]:
    card = f'<rect class="card" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    return [card, _text(x + 16, y + 28, title, "title")]


def _text(x: int, y: int, words: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text{attribute} x="{x}" y="{y}">{escape(words)}</text>'


def _bar(x: int, y: int, width: int) -> str:
    return f'<rect class="bar" x="{x}" y="{y}" width="{width}" height="20" rx="3"/>'


def _arrow(left: int, y: int, right: int) -> list[str]:
    line = f'<path class="arrow" d="M{left} {y} H{right - 10}"/>'
    head = f'<path class="head" d="M{right - 12} {y - 8} L{right} {y} L{right - 12} {y + 8} Z"/>'
    return [line, head]


if __name__ == "__main__":
    main()
