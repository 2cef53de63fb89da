"""Very large systems: every operation on a log of 100,000 or a million states.

No other library is compared. A log with text labels is sampled once: from each state, eight
actions lead to some of the two hundred states after it. Each operation has a process of its own,
which first loads what the operation begins with; the seconds are those of the operation alone, from
a single run, and the peak is that of the whole process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.harness import DATA, GIB, Scale, Section, about, in_fresh_process, peak
from benchmarks.report import number, table
from pastwise._files import staged

ACTIONS, REACH = 8, 200
COLUMNS = ["state", "action", "next_state"]


def label(state: int) -> str:
    return f"s{state:07d}"


GOAL, OTHER = pw.Goal(prefer={label(5): 1, label(7): 2}), pw.Goal(prefer={label(11): 1})


def file_of(states: int, kind: str) -> Path:
    """Where the log, its counts or the policy are kept."""
    return DATA / f"large-{states}{kind}"


def write_log(states: int, records: int) -> None:
    """Draw the log, unless it is there already."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = file_of(states, ".parquet")
    if path.exists():
        return
    rng = np.random.default_rng(states)
    state, action = rng.integers(states, size=records), rng.integers(ACTIONS, size=records)
    following = (state + rng.integers(1, REACH, size=records)) % states
    labels = pa.array([label(i) for i in range(states)])
    actions = pa.array([f"a{i}" for i in range(ACTIONS)])
    columns = [
        labels.take(pa.array(state)),
        actions.take(pa.array(action)),
        labels.take(pa.array(following)),
    ]
    with staged(DATA) as stage:
        pq.write_table(pa.table(columns, names=COLUMNS), stage / path.name)


def count(states: int) -> pw.TransitionCounts:
    return pw.count_transitions(file_of(states, ".parquet"), *COLUMNS)


def counts_of(states: int) -> pw.TransitionCounts:
    return pw.load_counts(file_of(states, "-counts.safetensors"))[0]


def learner_of(states: int) -> pw.TransferLearner:
    return pw.TransferLearner(GOAL, method="TL").fit(counts_of(states))


def learn(counts: pw.TransitionCounts, method: str = "TL") -> pw.Rule:
    return pw.TransferLearner(GOAL, method=method).fit(counts).rule_


def update(learner: pw.TransferLearner) -> None:
    for state in range(1000):
        learner.observe(label(state), "a1", label(state + 1))


def decide(live: pw.LivePolicy) -> None:
    for state in range(1000):
        live.observe(label(state), str(live.decide(label(state))), label(state + 1))


def save_counts(counts: pw.TransitionCounts) -> None:
    pw.save_counts(counts, file_of(len(counts.states), "-counts.safetensors"))


def save(learner: pw.TransferLearner) -> None:
    learner.save(file_of(len(learner.counts_.states), "-policy.safetensors"))


def export(learner: pw.TransferLearner) -> None:
    learner.rule_.export(file_of(len(learner.counts_.states), "-rule.parquet"))


OPERATIONS: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "count the Parquet file": (int, count),
    "save the counts": (count, save_counts),
    "load the counts": (int, counts_of),
    "add the counts to themselves": (counts_of, lambda counts: counts + counts),
    "learn, TL": (counts_of, learn),
    "learn, TL_explore": (counts_of, lambda counts: learn(counts, "TL_explore")),
    "learn, FPD_learn": (counts_of, lambda counts: learn(counts, "FPD_learn")),
    "learn, TL_foresight": (counts_of, lambda counts: learn(counts, "TL_foresight")),
    "rule of one state": (learner_of, lambda learner: learner.rule(label(3))),
    "explain one state": (learner_of, lambda learner: learner.explain(label(3))),
    "support of all states": (learner_of, lambda learner: learner.support()),
    "a new goal": (learner_of, lambda learner: learner.retarget(OTHER).rule_),
    "update, 1,000 records": (learner_of, update),
    "update, a new state": (learner_of, lambda learner: learner.observe(label(3), "a1", "new")),
    "make a live policy": (learner_of, lambda learner: learner.live()),
    "live, 1,000 decisions": (lambda states: learner_of(states).live(seed=1), decide),
    "save the policy": (learner_of, save),
    "load the policy": (lambda states: file_of(states, "-policy.safetensors"), pw.load),
    "export the rule as Parquet": (learner_of, export),
}
"""What an operation begins with, made of the number of states; and the operation."""


def cost(name: str, states: int) -> tuple[float, float]:
    """Seconds of an operation, and the peak of this process in bytes."""
    prepare, operate = OPERATIONS[name]
    given = prepare(states)
    begin = time.perf_counter()
    operate(given)
    return time.perf_counter() - begin, peak()


def measure(scale: Scale) -> list[Section]:
    """Every operation at every size."""
    section = Section("Very large systems", about(__doc__))
    for states, records in scale.pick(
        [(10**4, 10**5)], [(10**5, 10**6)], [(10**5, 10**6), (10**6, 2 * 10**7)]
    ):
        in_fresh_process(write_log, states, records)
        costs = {name: in_fresh_process(cost, name, states) for name in OPERATIONS}
        size = f"{states:,} states, {records:,} records"
        for name in ("save the policy", "load the policy"):
            section.summarise(f"{size}: {name}", costs[name][0], "s")
        most = max(bytes_held for _, bytes_held in costs.values()) / GIB
        section.summarise(f"{size}: most memory of any operation", most, "GiB")
        rows = [
            [name, f"{seconds:.3f}", number(held / GIB)] for name, (seconds, held) in costs.items()
        ]
        section.notes.append(
            table([f"{states:,} states, {ACTIONS} actions, {records:,} records", "s", "GiB"], rows)
        )
    return [section]
