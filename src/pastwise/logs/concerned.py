"""Examples of findings on labels or on the whole log: the first rows that show them.

`validate_log` gives examples of records that are left out. A person who looks at a table also wants
to see where a finding on an action or a state comes from, so `usable` adds such rows.
"""

from __future__ import annotations

from dataclasses import replace

import narwhals.stable.v2 as nw

from pastwise._numerics.arrays import IntArray
from pastwise.logs.effects import actions_without_effect
from pastwise.logs.findings import Example, Finding
from pastwise.logs.query import Status, has_label
from pastwise.logs.sources import ROW
from pastwise.logs.summary import actions_of_few_episodes
from pastwise.logs.validate import Inspection, dead_ends_of, examples_of

MOST_LABELS = 20
"""Labels that examples are searched for: three rows are enough, and a condition stays short."""


def with_examples(found: Inspection) -> tuple[Finding, ...]:
    """The findings of a log whose rows have numbers, each with rows that it concerns."""
    names = found.prepared.collect_schema().names()
    raw = [name.removeprefix("raw ") for name in names if name.startswith("raw ")]
    if ROW not in raw:
        return found.findings

    findings = []
    of_all: tuple[Example, ...] | None = None
    for finding in found.findings:
        has_rows = any("row" in example for example in finding.examples)
        if has_rows:
            findings.append(finding)
            continue
        condition = _label_condition(finding.code, found)
        if condition is not None:
            examples = examples_of(found.prepared.filter(condition), raw)
        else:
            # The whole log is concerned: its first rows that another one follows.
            if of_all is None:
                of_all = examples_of(found.prepared.filter(Status.FOLLOWED.holds), raw)
            examples = of_all
        findings.append(replace(finding, examples=examples or finding.examples))
    return tuple(findings)


def _label_condition(code: str, found: Inspection) -> nw.Expr | None:
    """Which records a finding on states or actions concerns; None for any other finding."""
    reading = found.reading
    if code == "dead-end":
        return _in_label("next", dead_ends_of(reading.counts), found)
    if code == "no-effect":
        actions, _ = actions_without_effect(reading.counts)
        return _in_label("action", actions, found)
    if code == "few-episodes" and reading.episodes is not None:
        return _in_label("action", actions_of_few_episodes(reading.episodes), found)
    return None


def _in_label(part: str, indices: IntArray, found: Inspection) -> nw.Expr:
    """Condition for usable records in which a part has one of some labels."""
    columns = found.reading.columns
    counts = found.reading.counts
    if part == "action":
        space = counts.actions
        fields = columns.action
    else:
        space = counts.states
        fields = columns.state_fields
    codes = [columns.state_codes.get(name) for name in fields]
    return Status.FOLLOWED.holds & has_label(part, space, indices[:MOST_LABELS], codes)
