"""Rules, supports and reasons of random goals by pastwise, as JSON on stdout.

For `tl.test.ts` and `evidence.test.ts`.

    python random_goals.py [GOALS]

Tables of counts differ in size, in the weights of their records, in whether a state has fields, and
in the order in which they are shown; some states have no record at all.
"""

import json
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from pastwise import Goal, Space, TransferLearner, TransitionCounts
from pastwise.data.space import key_of
from pastwise.workbench.counts import Counted
from pastwise.workbench.types import OrderView

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


def counted_in_any_order(
    rng: np.random.Generator, counts: TransitionCounts, folder: Path
) -> tuple[Counted, OrderView]:
    """Counts as the workbench has them, and a random order to show them in."""
    path = folder / "counts.safetensors"
    anything = Goal(prefer={counts.states.labels[0]: 1})
    TransferLearner(anything, method="TL").fit_counts(counts).save(path)
    counted = Counted("counts", path)
    states = rng.permutation(counted.state_keys).tolist()
    actions = rng.permutation(counted.action_keys).tolist()
    return counted, OrderView(states, actions)


def case(rng: np.random.Generator, counted: Counted, order: OrderView) -> dict[str, Any]:
    """A goal with its rule and support, in the order that is shown."""
    states = counted.states_in(order)
    actions = counted.actions_in(order)
    goal = random_goal(rng, counted.counts)
    learner = counted.learner.retarget(Goal.of(goal))
    support = learner.support().arrays
    return {
        "goal": goal,
        "rule": learner.rule_.probabilities[states][:, actions].ravel().tolist(),
        "records": support.records[states].tolist(),
        "similarity": support.similarity[states].tolist(),
        "effective": support.effective[states].tolist(),
        "priorShare": support.prior_share[states].tolist(),
        "explained": learner.explain(str(rng.choice(counted.state_keys))).to_dict(),
    }


def main(num_goals: int = 200) -> None:
    """Write all cases."""
    warnings.simplefilter("ignore")  # random logs are odd
    rng = np.random.default_rng(0)
    kinds = ("plain", "weights", "fields", "plain", "weights")
    tables = []
    for kind in kinds:
        counts = random_counts(rng, kind)
        with TemporaryDirectory() as folder:
            counted, order = counted_in_any_order(rng, counts, Path(folder))
        cases = [case(rng, counted, order) for _ in range(num_goals // len(kinds))]
        view = counted.view("project", None, order)
        tables.append({"counts": msgspec.to_builtins(view), "cases": cases})
    json.dump(tables, sys.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
