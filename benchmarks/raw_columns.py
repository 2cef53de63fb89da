"""States learned from raw columns next to hand-made bins, k-means and fitted Q iteration.

Every contender learns from the same log of raw features and is valued by playing new episodes; see
`raw_worlds`. All but fitted Q iteration plan with TL_foresight and differ in their states alone:

pastwise
    A learned partition, with the goal's conditions as exact splits.
product bins
    Each feature cut into bins of equal frequency, and all combinations.
k-means
    750 clusters of the standardised features, as the AI Clinician has them (Komorowski et al.
    2018).
fitted Q iteration
    No states: a forest of extra trees on the features (Ernst, Geurts and Wehenkel 2005).

Run it from the root of the repository: ``python -m benchmarks.raw_columns``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.raw_worlds import WORLDS, Decide, World
from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.conditions import parse_condition
from pastwise.methods.foresight import TLForesight
from pastwise.report.text import markdown_table

CLUSTERS = 750
DISCOUNT = 0.99
"""Of fitted Q iteration; with a larger one it needs more sweeps."""


@dataclass(frozen=True, eq=False)
class Log:
    """The transitions of a world's log.

    Attributes
    ----------
    values, next_values : [N, F]
    action : [N]
        Indices.
    is_good, is_over : [N]
        Whether the goal's condition holds, and whether the episode ends, in the next record.
    """

    values: FloatArray
    action: IntArray
    next_values: FloatArray
    is_good: BoolArray
    is_over: BoolArray

    @classmethod
    def of(cls, world: World, table: dict[str, Any]) -> Log:
        """Each record with the next one of its episode."""
        order = np.lexsort([table["time"], table["episode"]])
        values = np.column_stack([table[name] for name in world.features])[order]
        places = {name: place for place, name in enumerate(world.actions)}
        action = np.array([places[name] for name in table["action"]])[order]
        episode = table["episode"][order]
        goes_on = episode[1:] == episode[:-1]
        next_values = values[1:][goes_on]
        (wanted,) = world.goal.prefer
        is_over = np.zeros(len(next_values), dtype=bool)
        if world.ends is not None:
            is_over = _holds(world.ends, world, next_values)
        return cls(
            values=values[:-1][goes_on],
            action=action[:-1][goes_on],
            next_values=next_values,
            is_good=_holds(wanted, world, next_values),
            is_over=is_over,
        )


def _holds(condition: str, world: World, values: FloatArray) -> BoolArray:
    """Whether a condition holds for each row of features: [N]."""
    parsed = parse_condition(condition)
    rows = (dict(zip(world.features, row, strict=True)) for row in values.tolist())
    return np.fromiter((parsed.holds(row) for row in rows), dtype=bool, count=len(values))


# Contenders: from a log to a policy and its number of states.

Learned = tuple[Decide, int | None]


def pastwise(world: World, table: dict[str, Any], log: Log) -> Learned:
    """A learned partition."""
    learner = pw.TransferLearner(world.goal).fit(
        table,
        features=world.features,
        action="action",
        episode="episode",
        time="time",
        terminal=world.ends or (),
    )
    columns = learner.columns_
    assert columns is not None
    partition = columns.partition
    assert partition is not None
    counts = learner.counts_
    taken = [world.actions.index(label) for label in counts.actions.labels]
    best = np.array(taken)[learner.rule_.probabilities.argmax(axis=-1)]
    places = np.array([counts.states.find(label) or 0 for label in partition.labels])

    def decide(values: FloatArray) -> IntArray:
        given = {name: values[:, i] for i, name in enumerate(world.features)}
        return np.asarray(best[places[partition.leaves_of(given)]])

    return decide, len(counts.states)


def product_bins(world: World, table: dict[str, Any], log: Log) -> Learned:
    """All combinations of bins of equal frequency."""
    numbers = np.broadcast_to(world.bins, len(world.features))
    edges = [
        np.quantile(values, np.arange(1, number) / number)
        for values, number in zip(log.values.T, numbers, strict=True)
    ]

    def code(values: FloatArray) -> IntArray:
        result = np.zeros(len(values), dtype=np.int64)
        for i, number in enumerate(numbers):
            result = result * number + np.searchsorted(edges[i], values[:, i], side="right")
        return result

    return _plan_on(code, log, len(world.actions))


def k_means(world: World, table: dict[str, Any], log: Log) -> Learned:
    """Clusters of the standardised features."""
    from sklearn.cluster import MiniBatchKMeans

    mean = log.values.mean(axis=0)
    deviation = log.values.std(axis=0) + 1e-300
    clusters = MiniBatchKMeans(CLUSTERS, random_state=0, n_init=1)
    clusters.fit((log.values - mean) / deviation)

    def code(values: FloatArray) -> IntArray:
        return np.asarray(clusters.predict((values - mean) / deviation), dtype=np.int64)

    return _plan_on(code, log, len(world.actions))


def _plan_on(code: Callable[[FloatArray], IntArray], log: Log, num_actions: int) -> Learned:
    """Plan with TL_foresight on states that are codes; a code without records waits for luck."""
    # Ends are states of their own: one that is good and one that is not.
    known, state = np.unique(code(log.values), return_inverse=True)
    following = code(log.next_values)
    place = np.searchsorted(known, following).clip(max=len(known) - 1)
    unseen = known[place] != following
    good_end, bad_end, elsewhere = len(known), len(known) + 1, len(known) + 2
    next_state = np.where(unseen, elsewhere, place)
    next_state = np.where(log.is_over, np.where(log.is_good, good_end, bad_end), next_state)

    # Utility of a state: the share of records in it for which the goal's condition holds.
    num_states = len(known) + 3
    records = np.bincount(next_state, minlength=num_states)
    good = np.bincount(next_state, log.is_good, minlength=num_states)
    share = good / np.maximum(records, 1)

    states = pw.Space.of_size(num_states)
    actions = pw.Space.of_size(num_actions)
    counts = pw.TransitionCounts.from_records(state, log.action, next_state, states, actions)
    counts = counts.ending_in(np.array([good_end, bad_end]))
    goal = pw.Goal(reward={i: float(share[i]) for i in range(num_states)})
    learner = pw.TransferLearner(goal, method=TLForesight()).fit(counts)
    best = learner.rule_.probabilities.argmax(axis=-1)
    usual = int(np.bincount(log.action).argmax())

    def decide(values: FloatArray) -> IntArray:
        codes = code(values)
        place = np.searchsorted(known, codes).clip(max=len(known) - 1)
        return np.where(known[place] == codes, best[place], usual)

    return decide, len(known)


def fitted_q(
    world: World, table: dict[str, Any], log: Log, sweeps: int = 40, trees: int = 25
) -> Learned:
    """A forest that is fitted to its own targets, again and again."""
    from sklearn.ensemble import ExtraTreesRegressor

    num_actions = len(world.actions)

    def inputs(values: FloatArray, action: IntArray) -> FloatArray:
        return np.column_stack([values, np.eye(num_actions)[action]])

    def action_values(forest: ExtraTreesRegressor, values: FloatArray) -> FloatArray:
        by_action = []
        for a in range(num_actions):
            by_action.append(forest.predict(inputs(values, np.full(len(values), a))))
        return np.stack(by_action, axis=-1)

    given = inputs(log.values, log.action)
    target = log.is_good.astype(np.float64)
    for sweep in range(sweeps):
        forest = ExtraTreesRegressor(trees, min_samples_leaf=5, random_state=sweep)
        forest.fit(given, target)
        value = action_values(forest, log.next_values).max(axis=-1)
        target = log.is_good + DISCOUNT * ~log.is_over * value
    return lambda values: action_values(forest, values).argmax(axis=-1), None


CONTENDERS = {
    "pastwise": pastwise,
    "product bins": product_bins,
    "k-means": k_means,
    "fitted Q iteration": fitted_q,
}


# Tables.


def results(world: World, learners: list[str], seeds: range) -> Iterator[dict[str, str]]:
    """Value, states and seconds of some contenders, over logs of several seeds."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in learners}
    for seed in seeds:
        table = world.log(np.random.default_rng([seed, 0]))
        log = Log.of(world, table)
        for name in learners:
            begin = time.perf_counter()
            decide, states = CONTENDERS[name](world, table, log)
            seconds = time.perf_counter() - begin
            value = world.value(decide, np.random.default_rng([seed, 1]))
            found[name].append((value, states or np.nan, seconds))
            print(f"{world.name} {seed} {name}: {value:.3f}", file=sys.stderr)
    for name, runs in found.items():
        value, states, seconds = np.mean(runs, axis=0)
        deviation = float(np.std([run[0] for run in runs]))
        yield {
            "world": world.name,
            "learner": name,
            "value": f"{value:.3g}",
            "standard deviation": f"{deviation:.2g}",
            "states": "" if np.isnan(states) else f"{states:.0f}",
            "seconds": f"{seconds:.1f}",
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="States from raw columns, next to others.")
    names = [world.name for world in WORLDS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    learners = list(CONTENDERS)
    parser.add_argument("--learners", nargs="+", choices=learners, default=learners)
    parser.add_argument("--seeds", type=int, default=3, help="logs of each world")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--bins", type=int, nargs="+", help="of each feature, for product bins")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    rows: list[dict[str, str]] = []
    for world in WORLDS:
        if world.name in given.only:
            if given.bins and len(given.bins) not in (1, len(world.features)):
                parser.error(f"--bins takes one number, or {len(world.features)} for {world.name}")
            world.bins = given.bins or world.bins
            rows += results(world, given.learners, seeds)
    lines = markdown_table(list(rows[0]), [list(row.values()) for row in rows])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
