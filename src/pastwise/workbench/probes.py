"""Ask again with more in the state, to see whether advice holds within groups.

A column that explains both what was done and what followed can turn a comparison around. A probe
adds one column to the state, learns for the same goal, and looks whether the most probable action
changes anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import PastwiseError
from pastwise.goals.goal import Goal
from pastwise.logs.read import read_log
from pastwise.policy.learner import TransferLearner
from pastwise.workbench.readings import columns_of
from pastwise.workbench.types_drafts import (
    AdviceView,
    ProbeItem,
)
from pastwise.workbench.types_preview import (
    IntervalView,
)

MOST_ADVICE = 20
"""States whose advice is shown: a screen."""


def probed(
    log: str,
    base: TransferLearner,
    columns: Mapping[str, Any],
    column: str,
    *,
    bins: Any = None,
    samples: int = 400,
    min_records: int = 10,
) -> ProbeItem:
    """What becomes of a policy with one more column in the state.

    Parameters
    ----------
    base : TransferLearner
        The policy without it.
    columns : mapping
        What `Columns.of` took for the log.
    bins : optional
        How the column is cut into bins, where it is numeric.
    samples : int
        Sampled models of the verdict; none with 0.
    min_records : int
        Records of a state whose advice counts. With fewer, the most probable action is an accident.
    """
    try:
        finer = columns_of(_with_column(columns, column, bins))
        reading = read_log(log, finer)
        origin = _origins(base.counts_.states, reading.counts.states, column)
        goal = _refined(base.fitted_.goal, base.counts_.states, reading.counts.states, origin)
        learner = TransferLearner(goal, method=base.method_).fit(reading)
        item = _compared(base, learner, origin, column, min_records)
        if samples:
            result = learner.evaluate(samples=samples, alternatives=(), threads=1)
            item.verdict = result.verdict["logged"]
            deciding = result.comparisons["logged"].deciding
            item.difference = msgspec.convert(deciding.to_dict(), IntervalView)
    except PastwiseError as error:
        return ProbeItem([column], 0, None, [], 0, 0, None, None, str(error))
    return item


def _with_column(columns: Mapping[str, Any], column: str, bins: Any) -> dict[str, Any]:
    """Arguments of `Columns.of` with one more column in the state."""
    changed = {**columns, "state": [*columns.get("state", ()), column]}
    if bins is not None:
        given = columns.get("bins", {})
        changed["bins"] = given if given == "auto" else {**given, column: bins}
    return changed


def _origins(states: Space, finer: Space, column: str) -> list[int | None]:
    """For each finer state, the index of the state that it is a part of."""
    place = finer.fields.index(column) if column in finer.fields else None
    origins: list[int | None] = []
    for label in finer.labels:
        coarse: Label = label
        if place is not None and isinstance(label, tuple) and len(label) == len(finer.fields):
            rest = (*label[:place], *label[place + 1 :])
            coarse = rest[0] if len(rest) == 1 else rest
        origins.append(states.index(coarse) if states.has(coarse) else None)
    return origins


def _refined(goal: Goal, states: Space, finer: Space, origins: list[int | None]) -> Goal:
    """The goal over finer states: each is wanted as much as the state that it is a part of."""
    parts: dict[int, list[Label]] = {}
    for label, origin in zip(finer.labels, origins, strict=True):
        if origin is not None:
            parts.setdefault(origin, []).append(label)

    def refined(weights: Mapping[Label, Any]) -> dict[Label, Any]:
        result = {}
        for label, weight in weights.items():
            for part in parts.get(states.index(label), ()):
                result[part] = weight
        return result

    forbid: list[tuple[Label | None, Label]] = []
    for state, action in goal.forbid:
        if state is None:
            forbid.append((None, action))
        else:
            forbid += [(part, action) for part in parts.get(states.index(state), ())]
    return Goal(
        prefer=refined(goal.prefer),
        floor=goal.floor,
        targets=goal.targets,
        reward=refined(goal.reward),
        temperature=goal.temperature,
        prefer_actions=goal.prefer_actions,
        action_floor=goal.action_floor,
        forbid=forbid,
        maximise=goal.maximise,
    )


def _compared(
    base: TransferLearner,
    learner: TransferLearner,
    origins: list[int | None],
    column: str,
    min_records: int,
) -> ProbeItem:
    """Where the advice differs."""
    counts = learner.counts_
    records = counts.by_state_action(counts.records.astype(np.float64))
    rule = learner.fitted_.plan().rule
    rule_before = base.fitted_.plan().rule
    actions = counts.actions.labels
    actions_before = base.counts_.actions.labels

    # What is most probable in each state, the most frequent first.
    advice = []
    for index in np.argsort(-records.sum(axis=-1), kind="stable").tolist():
        origin = origins[index]
        if origin is None or records[index].sum() < min_records:
            continue
        best = int(rule[index].argmax())
        before = int(rule_before[origin].argmax())
        of_state = AdviceView(
            state=key_of(counts.states.labels[index]),
            records=int(records[index].sum()),
            action=key_of(actions[best]),
            p=float(rule[index, best]),
            before=key_of(actions_before[before]),
            p_before=float(rule_before[origin, before]),
            turns=actions[best] != actions_before[before],
        )
        advice.append(of_state)

    turned = [each for each in advice if each.turns]
    others = [each for each in advice if not each.turns]
    return ProbeItem(
        columns=[column],
        states=len(counts.states),
        explains=_explained(counts, origins),
        advice=[*turned, *others][:MOST_ADVICE],
        compared=len(advice),
        turned=len(turned),
        verdict=None,
        difference=None,
    )


def _explained(counts: TransitionCounts, origins: list[int | None]) -> float:
    """Share of the uncertainty about the action that is gone if the finer state is known."""
    records = counts.by_state_action(counts.records.astype(np.float64))
    known = [origin for origin in origins if origin is not None]
    coarse = np.zeros((max(known, default=0) + 1, records.shape[-1]))
    for index, origin in enumerate(origins):
        if origin is not None:
            coarse[origin] += records[index]
    before = _uncertainty(coarse)
    return 0.0 if before == 0 else max(0.0, 1 - _uncertainty(records) / before)


def _uncertainty(records: FloatArray) -> float:
    """Total entropy of the actions within states, weighted by records."""
    total = records.sum(axis=-1, keepdims=True)
    is_seen = records > 0
    share = np.divide(records, total, out=np.ones_like(records), where=is_seen)
    return float(-(records[is_seen] * np.log(share[is_seen])).sum())
