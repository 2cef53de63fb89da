"""Rules, support and reasons as small pictures, for notebooks and reports.

Each picture shows the most visited states, or the most probable actions, and counts the rest; all
numbers of what is shown are in a table below it, which is folded away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pastwise._display import details, more_of, paragraph
from pastwise._pictures import (
    NARROW_ACTIONS,
    BarRow,
    RuleRow,
    bar_picture,
    probability_text,
    rule_picture,
)
from pastwise.data.space import key_of
from pastwise.logs.findings import counted
from pastwise.methods.base import RECORDS
from pastwise.policy.advice import WEAK, Basis, advice_at, most_visited

if TYPE_CHECKING:
    from pastwise.data.space import Label
    from pastwise.policy.explanation import Explanation, Reason
    from pastwise.policy.rule import Rule
    from pastwise.policy.support import Support

MAX_NEXT_STATES = 4
"""Next states of an action that a picture shows; the others are counted."""


# Rules.


def rule_rows(rule: Rule, first: int | None = None) -> list[RuleRow]:
    """The rule of the most visited states, next to what was done there."""
    rows = []
    basis = rule.basis
    for index in most_visited(len(rule), basis, first):
        probabilities = rule.probabilities[index]
        similarity = float(rule.similarity[index])
        advice = advice_at(index, rule.states, rule.actions, probabilities, similarity, basis)
        row = RuleRow(
            state=key_of(advice.state),
            probabilities=probabilities.tolist(),
            before=None if basis is None else shares_done(basis, index, len(rule.actions)),
            never=() if basis is None else basis.forbidden_at(index),
            is_weak=advice.is_weak,
            is_end=advice.is_end,
        )
        rows.append(row)
    return rows


def shares_done(basis: Basis, state: int, num_actions: int) -> list[float] | None:
    """What was done in a state: the share of each action in its records; None without records."""
    first, end = np.searchsorted(basis.counts.state, [state, state + 1])
    actions = basis.counts.action[first:end]
    weights = np.bincount(actions, basis.counts.weight[first:end], minlength=num_actions)
    total = weights.sum()
    if total <= 0:
        return None
    shares: list[float] = (weights / total).tolist()
    return shares


def rule_html(rule: Rule, max_rows: int) -> str:
    """A rule as a picture, with the table of its best actions."""
    rows = rule_rows(rule, max_rows)
    actions = [key_of(action) for action in rule.actions.labels]
    picture = rule_picture(actions, rows, f"{rule!r}, probability of each action")
    note = more_of(len(rule), len(rows), "state")
    legend = rule_legend(rows, len(actions))
    table = details("Best actions as a table", rule.table(max_rows).to_html())
    return picture + "".join(paragraph(text) for text in (note, legend) if text) + table


def rule_legend(rows: list[RuleRow], num_actions: int) -> str:
    """What the marks of a picture of a rule mean, as far as they occur."""
    parts = []
    if num_actions <= NARROW_ACTIONS and any(row.before is not None for row in rows):
        parts.append("Small numbers: what was done.")
    if any(row.is_weak for row in rows):
        parts.append("Hatched: rests on next to nothing.")
    if any(row.never for row in rows):
        parts.append("Never: forbidden by the goal.")
    return " ".join(parts)


# Support.


def support_html(support: Support, max_rows: int) -> str:
    """What the rule of each state rests on, as bars: similarity within records."""
    order = np.argsort(-support.arrays.records, kind="stable")[:max_rows].tolist()
    most = max(1.0, float(support.arrays.records.max(initial=0)))
    rows = []
    for index in order:
        records = int(support.arrays.records[index])
        similarity = float(support.arrays.similarity[index])
        text = f"{similarity:.3g} of {records:,} records"
        if support.episodes is not None:
            text += f", {int(support.episodes[index]):,} {support.noun}"
        row = BarRow(
            name=key_of(support.states.labels[index]),
            part=min(similarity, records) / most,
            whole=records / most,
            text=text,
            is_weak=similarity < WEAK and index not in support.terminal,
        )
        rows.append(row)
    picture = bar_picture(rows, "Similarity within the records of each state")
    note = more_of(len(support), len(rows), "state")
    legend = "Bars: total similarity to the goal, within the number of records."
    if any(row.is_weak for row in rows):
        legend += " Hatched: less than one similar record."
    table = details("As a table", support.table(max_rows).to_html())
    return picture + "".join(paragraph(text) for text in (note, legend) if text) + table


# Reasons.


def explanation_html(explanation: Explanation, max_actions: int) -> str:
    """Why the actions of a state have their probabilities, as bars with the evidence below."""
    shown = explanation.by_probability()[:max_actions]
    rows = [row for action, reason in shown for row in _reason_rows(action, reason)]
    picture = bar_picture(rows, explanation.title)
    note = more_of(len(explanation.actions), len(shown), "action")
    table = details("As a table", explanation.table(max_actions).to_html())
    return paragraph(f"{explanation.title}:") + picture + (paragraph(note) if note else "") + table


def _reason_rows(action: Label, reason: Reason) -> list[BarRow]:
    """The probability of an action, and the transitions behind it."""
    text = probability_text(reason.probability)
    if not reason.is_allowed:
        text = "never: not allowed by the goal"
    rows = [BarRow(key_of(action), reason.probability, 1.0, text)]
    for each in reason.evidence[:MAX_NEXT_STATES]:
        carries = f", carries {probability_text(each.share)}" if reason.adds_up else ""
        records = counted(each.records, "record")
        numbers = f"{records}, similarity {each.similarity:.3g}{carries}"
        name = key_of(each.next_state)
        rows.append(BarRow(name, each.share, 0.0, numbers, "led to ", is_detail=True))

    # What is left: other next states, and parts that are no records, such as the prior.
    others = reason.evidence[MAX_NEXT_STATES:]
    if others:
        share = sum(each.share for each in others)
        records = counted(sum(each.records for each in others), "record")
        name = counted(len(others), "other state")
        rows.append(BarRow(name, share, 0.0, records, is_detail=True))
    if reason.adds_up:
        for name, share in reason.parts.items():
            if name != RECORDS and share >= 0.0005:
                text = f"carries {probability_text(share)}"
                rows.append(BarRow(f"the {name}", share, 0.0, text, is_detail=True))
    return rows
