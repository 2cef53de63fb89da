"""Methods that act and learn, in systems whose best rule is known.

A method starts from a log and acts for some epochs, learning from each. The runs of all pasts in a
system form a batch, and share their random numbers between methods. Where nothing ends, the value
of a run is its mean score per epoch. Where episodes end, it is the mean score of the first n
episodes, each of which is cut at the horizon of the system; n is how many random actions have in
that number of epochs, on average. (Averages over the episodes of a fixed time would favour short
ones.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray, IntArray, sample
from pastwise._numerics.streams import Streams
from pastwise.data.records import Transitions
from pastwise.methods.base import AnyMethod, acting_for
from pastwise.studies.families import of_group
from pastwise.studies.long_run import long_run_values
from pastwise.studies.planner_tables import Outcome, Scores
from pastwise.studies.planner_tasks import (
    PASTS,
    Place,
    counts_of,
    ideal_of,
    places,
    random_rule,
    reference_values,
)
from pastwise.studies.runner import Part, Runner
from pastwise.studies.synthetic import System

Agent = Callable[[int], AnyMethod]
"""From the number of epochs to act for to a method."""

ONLINE_RECORDS = (40, 640)
"""Lengths of the logs to start from."""

EPOCHS = (100, 1000)
"""Numbers of epochs to act for."""

RUNS = 2
"""Runs in each system after each past. More runs of one system narrow the intervals less than
more systems do, but they cost little in a batch."""

RECENT = 10
"""Last records of the log that methods are given in their order, as in the paper."""


def registered_agents(names: Sequence[str] | None = None) -> dict[str, Agent]:
    """Registered methods as they act and learn, by name; all by default."""
    return {name: partial(acting_method, name) for name in names or methods.names()}


def acting_method(name: str, epochs: int) -> AnyMethod:
    """A method that is about to act for so many epochs."""
    return acting_for(methods.create(name), epochs)


def online_scores(
    agents: Mapping[str, Agent] | None = None,
    families: Sequence[str] | None = None,
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = ONLINE_RECORDS,
    epochs: Sequence[int] = EPOCHS,
    systems: int = 10,
    seed: int = 0,
    *,
    jobs: int = 1,
) -> Scores:
    """What methods achieve while they act and learn, in shares of what there is to gain.

    Parameters
    ----------
    agents : by name, optional
        From the number of epochs to a method; by default all registered methods.
    epochs
        Numbers of epochs to act for.
    families, pasts, records, systems, seed, jobs
        As `planners.offline_scores` has them.
    """
    agents = registered_agents() if agents is None else agents
    families = of_group("reported", "planners") if families is None else families
    parts = online_parts(agents, families, pasts, records, epochs, systems, seed)
    return Scores.of_parts(tuple(agents), Runner(jobs).run("Acting", parts, {}))


def online_parts(
    agents: Mapping[str, Agent],
    families: Sequence[str],
    pasts: Sequence[str],
    records: Sequence[int],
    epochs: Sequence[int],
    systems: int,
    seed: int,
    numbered: bool = False,
) -> list[Part[list[dict[str, Any]]]]:
    """A part for every system and number of epochs; see `online_scores`."""
    return [
        partial(_online_part, dict(agents), place, pasts, records, num_epochs)
        for place in places(families, pasts, systems, seed, numbered)
        for num_epochs in epochs
    ]


def _online_part(
    agents: Mapping[str, Agent],
    place: Place,
    pasts: Sequence[str],
    records: Sequence[int],
    epochs: int,
) -> list[dict[str, Any]]:
    """Outcomes of one system, as plain values; each is the mean of a few runs."""
    system = place.system()
    random, optimum = _reference_values(system, epochs)

    # The runs: every past a few times, each with random numbers of its own.
    logs = [place.log(system, past, max(records)) for past in pasts]
    seeds = [seed for past in pasts for seed in place.seeds(past).spawn(RUNS)]
    log_of_run = np.repeat(np.arange(len(pasts)), RUNS)

    rows = []
    for num_records in records:
        first = _stacked(logs, num_records, log_of_run)
        values = {}
        for name, agent in agents.items():
            by_run = act(system, agent(epochs), first, epochs, Streams(seeds))
            values[name] = by_run.reshape(len(pasts), RUNS).mean(axis=-1).tolist()
        for number, past in enumerate(pasts):
            outcome = Outcome(
                family=place.family,
                index=place.index,
                past=past,
                records=num_records,
                num_states=system.num_states,
                num_actions=system.num_actions,
                random=random,
                optimum=optimum,
                values={name: by_past[number] for name, by_past in values.items()},
                epochs=epochs,
            )
            rows.append(asdict(outcome))
    return rows


def _reference_values(system: System, epochs: int) -> tuple[float, float]:
    """Values of random actions and of the best rule, as those of runs."""
    return reference_values(system, system.horizon if system.has_ends else epochs)


def _stacked(logs: Sequence[Transitions], num_records: int, log_of_run: IntArray) -> Transitions:
    """The first records of the log of each run: [runs, num_records]."""
    columns = []
    for name in Transitions._fields:
        each = np.stack([getattr(log, name)[:num_records] for log in logs])
        columns.append(each[log_of_run])
    return Transitions(*columns)


def episodes_in(system: System, epochs: int) -> int:
    """How many episodes random actions have in so many epochs, on average; at least one."""
    counting = replace(system, score=np.ones(system.num_states))
    length = long_run_values(counting, random_rule(system)[None], system.horizon)[0]
    return max(1, round(epochs / float(length)))


def act(
    system: System, method: AnyMethod, log: Transitions, epochs: int, streams: Streams
) -> FloatArray:
    """Values of runs in which a method acts and learns: [runs].

    Parameters
    ----------
    log : records [runs, number]
        What each run starts from.
    """
    world, choice, restart, own = streams.spawn(4)
    runs = np.arange(len(streams))
    starts = np.broadcast_to(system.initial, (len(runs), system.num_states))
    memory = method.start(counts_of(log, system), ideal_of(system), log.last(RECENT))

    def epoch(state: IntArray) -> IntArray:
        """Act and learn once in every run; the next states."""
        rule = method.rule(memory, state, own)
        action = sample(rule, choice.random(runs.shape))
        rows = transition[state, action]
        next_state = sample(rows, world.random(runs.shape))
        method.observe(memory, state, action, next_state)
        return next_state

    transition = system.mean_transition
    state = sample(starts, restart.random(runs.shape))
    total = np.zeros(len(runs))
    if not system.has_ends:
        for _ in range(epochs):
            state = epoch(state)
            total += system.score[state]
        return total / epochs

    # A run that has its episodes goes on, uncounted, until all others have theirs.
    num_episodes = episodes_in(system, epochs)
    goes_on = system.goes_on
    num_finished = np.zeros(len(runs), dtype=np.int64)
    age = np.zeros(len(runs), dtype=np.int64)
    while num_finished.min() < num_episodes:
        state = epoch(state)
        total += np.where(num_finished < num_episodes, system.score[state], 0.0)
        age += 1
        is_finished = ~goes_on[state] | (age == system.horizon)
        num_finished += is_finished
        age = np.where(is_finished, 0, age)
        state = np.where(is_finished, sample(starts, restart.random(runs.shape)), state)
    return total / num_episodes
