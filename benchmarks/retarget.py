"""A new goal from existing counts, next to what it takes to start again from the log.

*Fit again* is pastwise reading the log once more; *pandas, Eq. (10)* is the same rule by hand: each
record weighted by its similarity, then summed and normalised. *Behaviour cloning* by pandas answers
another question, what was done in each state, and knows no goal; it is checked against our clone.
All but the first start from a Parquet file with text labels and end with a rule for every state.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.counting import PARTS, log_file
from benchmarks.harness import Contender, Scale, Section, Times, about, require_close
from pastwise._numerics.arrays import FloatArray
from pastwise.methods.baselines import behaviour_rule
from pastwise.theory.learning import prior_concentration

ACTIONS = 10
GOALS = [pw.Goal(prefer={f"s{i:05d}": 1}) for i in range(2)]
"""The goal that was learned for, and the new one."""


def retarget(learner: pw.TransferLearner) -> FloatArray:
    return learner.retarget(GOALS[1]).rule_.probabilities


def fit_again(path: Path) -> FloatArray:
    return fitted(path, GOALS[1]).rule_.probabilities


def fitted(path: Path, goal: pw.Goal) -> pw.TransferLearner:
    state, action, next_state = PARTS
    learner = pw.TransferLearner(goal, method="TL")
    return learner.fit(path, state=state, action=action, next_state=next_state)


def weighted_by_pandas(path: Path, similarity: Mapping[str, float], prior: float) -> FloatArray:
    """The learned rule of Eq. (10): [S, A], states and actions in alphabetic order."""
    import pandas as pd

    log = pd.read_parquet(path)
    weight = log["next_state"].map(similarity)
    evidence = weight.groupby([log["state"], log["action"]]).sum().unstack(fill_value=0.0) + prior
    return np.asarray(evidence.div(evidence.sum(axis=1), axis=0))


def cloned_by_pandas(path: Path) -> FloatArray:
    """Share of each action in the records of a state: [S, A]."""
    import pandas as pd

    log = pd.read_parquet(path, columns=["state", "action"])
    done = log.groupby(["state", "action"]).size().unstack(fill_value=0)
    return np.asarray(done.div(done.sum(axis=1), axis=0))


def measure(scale: Scale) -> list[Section]:
    """The retargeting job of the suite."""
    section = Section("A new goal from existing counts", about(__doc__))
    cases = scale.pick(
        [(10**4, 30), (10**5, 30)],
        [(10**6, 100), (10**7, 100), (10**7, 316)],
        [(10**6, 100), (10**7, 100), (10**8, 100), (10**7, 316), (10**8, 316)],
    )
    found = {case: _one_size(section, *case) for case in cases}
    for (rows, states), times in found.items():
        size = f"{states * ACTIONS * states:,} transitions, {rows:,} records"
        section.summarise(f"{size}: time of a new goal", times.ours * 1e3, "ms")
    by_length = {
        float(rows): times for (rows, states), times in found.items() if states == cases[0][1]
    }
    shortest, longest = min(by_length), max(by_length)
    growth = by_length[longest].ours / by_length[shortest].ours
    section.summarise(f"{longest / shortest:.0f} times as many records: ratio of the times", growth)
    section.plot("retarget", "records", by_length)
    return [section]


def _one_size(section: Section, rows: int, states: int) -> Times:
    path = log_file(rows, states, ACTIONS)
    learner = fitted(path, GOALS[0])
    counts, ideal = learner.counts_, GOALS[1].on(learner.counts_.states, learner.counts_.actions)
    weight = np.exp(ideal.log_transition - ideal.log_transition.max()).ravel().tolist()
    similarity = dict(zip(map(str, counts.states.labels), weight, strict=True))
    prior, long = float(prior_concentration(ideal)[0, 0]), rows >= 10**7
    contenders = [
        Contender("pastwise, retarget", partial(retarget, learner)),
        Contender("pastwise, fit again", partial(fit_again, path), once=long),
        Contender(
            "pandas, Eq. (10)", partial(weighted_by_pandas, path, similarity, prior), once=long
        ),
        Contender("pandas, behaviour cloning", partial(cloned_by_pandas, path), once=long),
    ]

    def same(results: Mapping[str, Any]) -> None:
        require_close(
            {"clone": behaviour_rule(counts), "pandas": results["pandas, behaviour cloning"]}
        )
        require_close(results, [contender.name for contender in contenders[:3]])

    size = f"{len(counts.key):,} distinct of {rows:,} records"
    return section.compare(size, contenders, same, rounds=3)
