"""Which method decides best? Families of systems whose best rule is known.

In each system somebody leaves a log: an expert for today's goal (*matched*), for a goal that shares
half of its score with today's (*overlapping*), against it (*opposed*), at *random*, or any of these
by chance (*mixed*). Every method learns a rule from the first records of the log. The value of the
rule is exact (`long_run`), and is given as a share of what there is to gain,

    share = (value - value of random actions) / (optimum - value of random actions),

so that random actions have 0 and the best rule has 1. Systems in which there is hardly anything to
gain count separately, by the difference itself.

From Python, any function from a log and a goal to a rule can take part:

    scores = offline_scores(
        {"mine": rule_of, **registered_learners()},  # (counts, ideal) -> [S, A], by name
        families=["river swim", "queue"],            # default: the reported ones
        pasts=PASTS, records=RECORDS, systems=40, seed=0, jobs=2,
    )
    scores.mean("mine")                      # over everything
    scores.cells("mine")                     # family x past: means, best other, paired difference
    print(scores.page("mine"))               # the same as Markdown

``learner_of(TLForesight(horizon=50))`` makes a learner of a method with other hyper-parameters.
With several jobs a learner must be picklable: a function of a module, or a `functools.partial` of
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.studies.families import FAMILIES, of_group
from pastwise.studies.long_run import long_run_values, optimal_rule
from pastwise.studies.planner_tables import Outcome, Scores
from pastwise.studies.runner import Runner
from pastwise.studies.synthetic import Log, System, simulate, soft_optimal

# Who learns.

Learner = Callable[[TransitionCounts, IdealModel], FloatArray]
"""From a log and a goal to a rule [S, A]."""


def learner_of(method: AnyMethod) -> Learner:
    """What a method recommends after a log."""
    return partial(_planned_rule, method)


def _planned_rule(method: AnyMethod, counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
    return method.plan(method.start(counts, ideal)).rule


def registered_learners(names: Sequence[str] | None = None) -> dict[str, Learner]:
    """Registered methods with their default hyper-parameters, by name; all by default."""
    return {name: learner_of(methods.create(name)) for name in names or methods.names()}


# The past.

RECORDS = (10, 40, 160, 640, 2500)
"""Lengths of the logs; a shorter log is the beginning of a longer one."""

MIXED = "mixed"

PASTS = ("matched", "overlapping", "opposed", "random", MIXED)
"""Who left the log."""

SHARPNESS = (1.0, 6.0)
"""Range of how strictly people follow their goal, see `soft_optimal`: from half of their actions
being the best ones to nearly all."""


def past_rules(system: System, past: str, rng: np.random.Generator) -> FloatArray:
    """The rules that the episodes of a past follow: [M, S, A], with M = 1 unless it is mixed."""
    today = system.score
    another = rng.permutation(today)
    low, high = np.log(SHARPNESS)
    sharpness = float(np.exp(rng.uniform(low, high)))

    def expert_for(score: FloatArray) -> FloatArray:
        return soft_optimal(system, score, sharpness=sharpness)

    rules = {
        "matched": expert_for(today),
        "overlapping": expert_for((today + another) / 2),
        "opposed": expert_for(-today),
        "random": np.ones((system.num_states, system.num_actions)),
    }
    chosen = list(rules) if past == MIXED else [past]
    return normalise(np.stack([rules[name] for name in chosen]) * system.habit)


# What the methods are given.

ODDS = 1e5
"""How much more probable the best state is than the least wanted one, in the ideal of a goal: the
paper's floor. The utility of the ideal equals the score."""


def ideal_of(system: System, odds: float = ODDS) -> IdealModel:
    """The goal of a system: the ideal probability of a state increases with its score."""
    wanted = normalise(np.exp(np.log(odds) * (system.score - system.score.max())))
    return IdealModel.of(wanted, num_actions=system.num_actions)


def counts_of(log: Log, num_records: int, system: System) -> TransitionCounts:
    """The first records of a log, counted; all states and actions of the system are known."""
    first = slice(num_records)
    counts = TransitionCounts.from_records(
        log.state[first],
        log.action[first],
        log.next_state[first],
        states=Space.of_size(system.num_states),
        actions=Space.of_size(system.num_actions),
    )
    return counts.ending_in(system.terminal)


# From logs alone.


def offline_scores(
    learners: Mapping[str, Learner] | None = None,
    families: Sequence[str] | None = None,
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = RECORDS,
    systems: int = 40,
    seed: int = 0,
    *,
    jobs: int = 1,
    runner: Runner | None = None,
) -> Scores:
    """The value of every learner's rule, in shares of what there is to gain.

    Parameters
    ----------
    learners : by name, optional
        All registered methods by default. Random actions need not be among them.
    families : names, optional
        By default the reported ones.
    pasts, records
        Who left the logs, and how long they are.
    systems : int
        Number of systems of each family. Each meets every past, and leaves a log to each length.
    seed : int
    jobs : int
        Number of processes, without a ``runner``.
    runner : Runner, optional
    """
    learners = registered_learners() if learners is None else learners
    families = of_group("reported", "planners") if families is None else families
    require_known("family", families, FAMILIES)
    require_known("past", pasts, PASTS)

    # A part is a system with all that happens in it.
    parts = []
    for family in families:
        for index in range(systems):
            parts.append(
                partial(_offline_part, dict(learners), family, index, pasts, records, seed)
            )
    settings = {
        "study": "planners",
        "learners": list(learners),
        "families": list(families),
        "pasts": list(pasts),
        "records": list(records),
        "systems": systems,
        "seed": seed,
    }
    results = (runner or Runner(jobs)).run("Learning", parts, settings)
    outcomes = [Outcome(**row) for rows in results for row in rows]
    return Scores(tuple(learners), outcomes, settings)


def require_known(
    kind: str, names: Sequence[str], known: Sequence[str] | Mapping[str, Any]
) -> None:
    """Refuse a name that is not among the known ones."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ParameterError(f"unknown {kind} {unknown[0]!r}; choose of {', '.join(known)}")


def _offline_part(
    learners: Mapping[str, Learner],
    family: str,
    index: int,
    pasts: Sequence[str],
    records: Sequence[int],
    seed: int,
) -> list[dict[str, Any]]:
    """Outcomes of one system, as plain values."""
    system = FAMILIES[family].system(seed, index)
    ideal = ideal_of(system)
    uniform = np.full((system.num_states, system.num_actions), 1 / system.num_actions)
    random, optimum = long_run_values(system, np.stack([uniform, optimal_rule(system)])).tolist()

    rows = []
    for past in pasts:
        # Every past has random numbers of its own, whichever others there are.
        seeds = FAMILIES[family].seeds(seed, index)
        rng = np.random.default_rng(seeds.spawn(1 + len(PASTS))[1 + PASTS.index(past)])
        log = simulate(system, past_rules(system, past, rng), max(records), rng)

        for num_records in records:
            counts = counts_of(log, num_records, system)
            rules = [learn(counts, ideal) for learn in learners.values()]
            values = long_run_values(system, np.stack(rules)).tolist()
            outcome = Outcome(
                family=family,
                index=index,
                past=past,
                records=num_records,
                num_states=system.num_states,
                num_actions=system.num_actions,
                random=random,
                optimum=optimum,
                values=dict(zip(learners, values, strict=True)),
            )
            rows.append(asdict(outcome))
    return rows
