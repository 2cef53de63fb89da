"""Rules and supports of random goals by pastwise, as JSON on stdout, for `tl.test.ts`.

    python random_goals.py [GOALS]

Tables of counts differ in size, in the weights of their records, and in whether a state has fields;
some states have no record at all.
"""

import json
import sys
import warnings
from typing import Any

import numpy as np

from pastwise import Goal, Space, TransferLearner, TransitionCounts
from pastwise.data.space import key_of

NEVER = "never-done"


def random_counts(rng: np.random.Generator, kind: str) -> TransitionCounts:
    """A random log, counted."""
    if kind == "fields":
        labels = tuple(
            (room, time) for room in ("cold", "mild", "hot") for time in ("day", "night")
        )
        states = Space(labels, fields=("room", "time"))
    else:
        states = Space(tuple(f"state {index}" for index in range(rng.integers(2, 12))))
    actions = Space((*(f"do {index}" for index in range(rng.integers(1, 6))), NEVER))

    # The last action is never done, and the last state is rarely left.
    size = int(rng.integers(1, 400))
    state = rng.integers(0, max(1, len(states) - 1), size)
    action = rng.integers(0, len(actions) - 1, size)
    next_state = rng.integers(0, len(states), size)
    weight = rng.uniform(0.1, 3, size) if kind == "weights" else 1.0
    return TransitionCounts.from_records(state, action, next_state, states, actions, weight)


def some(rng: np.random.Generator, labels: list[Any]) -> dict[Any, float]:
    """Some labels with weights."""
    chosen = rng.choice(len(labels), rng.integers(1, len(labels) + 1), replace=False)
    return {labels[index]: float(rng.uniform(0.01, 1)) for index in chosen}


def random_goal(rng: np.random.Generator, counts: TransitionCounts) -> dict[str, Any]:
    """A goal as a page states it, by keys."""
    states = [key_of(label) for label in counts.states.labels]
    actions = [key_of(label) for label in counts.actions.labels]
    goal: dict[str, Any] = {}

    # What is wanted.
    way = rng.choice(["prefer", "prefer", "floor", "reward", "targets", "actions"])
    if way == "targets" and counts.states.fields:
        for name in counts.states.fields:
            values = [key_of(label) for label in counts.states.field(name)[0].labels]
            goal.setdefault("targets", {})[name] = some(rng, values)
    elif way == "reward":
        goal["reward"] = {state: float(rng.normal()) for state in some(rng, states)}
        goal["temperature"] = float(rng.uniform(0.2, 3))
    elif way == "actions":
        goal["prefer_actions"] = some(rng, actions)
    else:
        goal["prefer"] = some(rng, states)
        if way == "floor":
            goal["floor"] = float(rng.uniform(0, 1 / (len(states) + 1)))
        if rng.random() < 0.3:
            goal["prefer_actions"] = some(rng, actions)

    # What must not be done: everything but one action at most.
    if len(actions) > 1 and rng.random() < 0.4:
        state = None if rng.random() < 0.3 else str(rng.choice(states))
        goal["forbid"] = [[state, str(rng.choice(actions))]]
    return goal


def counts_view(counts: TransitionCounts) -> dict[str, Any]:
    """Counts as a page gets them."""
    has_fields = counts.states.is_product
    states = []
    for label in counts.states.labels:
        values = [key_of(part) for part in label] if has_fields else None
        states.append({"key": key_of(label), "values": values})
    columns = (counts.state, counts.action, counts.next_state, counts.records, counts.weight)
    return {
        "states": states,
        "actions": [key_of(label) for label in counts.actions.labels],
        "fields": list(counts.states.fields) if has_fields else [],
        "transitions": [list(each) for each in zip(*(c.tolist() for c in columns), strict=True)],
        "weight_squared": counts.weight_squared.tolist(),
    }


def case(rng: np.random.Generator, counts: TransitionCounts) -> dict[str, Any]:
    """A goal with its rule and support."""
    goal = random_goal(rng, counts)
    learner = TransferLearner(Goal.of(goal), method="TL").fit_counts(counts)
    support = learner.support().arrays
    return {
        "goal": goal,
        "rule": learner.rule_.probabilities.ravel().tolist(),
        "records": support.records.tolist(),
        "similarity": support.similarity.tolist(),
        "effective": support.effective.tolist(),
        "priorShare": support.prior_share.tolist(),
    }


def main(num_goals: int = 200) -> None:
    """Write all cases."""
    warnings.simplefilter("ignore")  # random logs are odd
    rng = np.random.default_rng(0)
    kinds = ("plain", "weights", "fields", "plain", "weights")
    tables = []
    for kind in kinds:
        counts = random_counts(rng, kind)
        cases = [case(rng, counts) for _ in range(num_goals // len(kinds))]
        tables.append({"counts": counts_view(counts), "cases": cases})
    json.dump(tables, sys.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
