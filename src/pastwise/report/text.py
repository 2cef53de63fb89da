"""Tables and pages of text."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows that share their names, unrounded; an absent value is an empty cell."""
    iterator = iter(rows)
    first = next(iterator)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(first), lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(iterator)


def claims_page(claims: Sequence[Mapping[str, Any]], runs: int, explanation: str) -> str:
    """The claims as a page of Markdown, the verdict first."""
    lines = [
        "# What the paper claims, and what was measured",
        "",
        f"{runs} runs. {explanation}",
        "",
    ]
    lines += [
        "| claim | verdict | measured difference [95 % interval] | remark |",
        "|---|---|---|---|",
    ]
    for claim in claims:
        measured = "<br>".join(f"{m['what']}: {_interval(m)}" for m in claim["measured"])
        lines.append(
            f"| {claim['claim']} | **{claim['verdict']}** | {measured} | {claim['remark']} |"
        )
    return "\n".join([*lines, ""])


def _interval(measured: Mapping[str, Any]) -> str:
    if measured["low"] is None:
        return f"{measured['difference']:+.2f}"
    return f"{measured['difference']:+.2f} [{measured['low']:+.2f}, {measured['high']:+.2f}]"


def online_page(survival: Mapping[str, Sequence[float]], patients: int) -> str:
    """Shares of survivors, agent -> each tenth of the patients, as a table of Markdown."""
    lines = [
        f"Survival of {patients:,} patients while the agent learns: all, first tenth, last tenth",
        "",
    ]
    lines += ["| agent | all | first | last |", "|---|---|---|---|"]
    for name, shares in survival.items():
        mean = sum(shares) / len(shares)
        lines.append(f"| {name} | {mean:.4f} | {shares[0]:.4f} | {shares[-1]:.4f} |")
    return "\n".join([*lines, ""])
