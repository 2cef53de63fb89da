"""How long an evaluation takes, and how much memory: five policies, 2,000 drawn models, horizon 100.

There is no peer to compare with; the vectorised baseline is what a competent user would write, drawing the whole tensor
of transition probabilities for every model. It is timed on few draws, and scaled.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import pastwise as pw
from pastwise.agents import behaviour_rule
from pastwise.evaluation import Task

DRAWS, HORIZON = 2000, 100


def random_log(states: int, actions: int, records: int) -> pw.TransitionCounts:
    """A log of a system with few successors of each state and action."""
    rng = np.random.default_rng(0)
    successors = rng.integers(states, size=(states, actions, 8))
    s, a = rng.integers(states, size=records), rng.integers(actions, size=records)
    n = successors[s, a, rng.integers(8, size=records)]
    return pw.TransitionCounts.from_records(s, a, n, pw.Space.of_size(states), pw.Space.of_size(actions))


def dense_baseline(counts: pw.TransitionCounts, rules: list[np.ndarray], task: Task, draws: int) -> float:
    """Seconds for one draw of the whole tensor, and the value of every rule on it."""
    S, A = len(counts.states), len(counts.actions)
    concentration = np.bincount(counts.key, counts.weight, S * A * S).reshape(S, A, S) + 1 / S
    rng = np.random.default_rng(0)
    begin = time.perf_counter()
    for _ in range(draws):
        gamma = rng.standard_gamma(concentration)
        transition = gamma / gamma.sum(axis=-1, keepdims=True)
        for rule in rules:
            loop, state = np.einsum("sa,san->sn", rule, transition), task.initial
            for _ in range(task.horizon):
                state = state @ loop
    return (time.perf_counter() - begin) / draws


def main() -> None:
    """Time each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 716 states and 25 actions, the size of ICU-Sepsis")
    sizes = [(3, 4, 60), (20, 5, 1000), (100, 10, 10_000)]
    if parser.parse_args().full:
        sizes.append((716, 25, 100_000))
    print(f"{'states':>7}{'actions':>9}{'records':>9}{'ours (s)':>10}{'dense (s)':>11}{'ratio':>7}{'peak (MiB)':>12}")
    for states, actions, records in sizes:
        counts = random_log(states, actions, records)
        learner = pw.TransferLearner(pw.Goal(prefer={0: 1, 1: 1})).fit(counts)
        begin = time.perf_counter()
        learner.evaluate(draws=DRAWS, horizon=HORIZON)
        ours = time.perf_counter() - begin
        task = Task(learner.goal.score(counts.states, counts.actions), np.full(states, 1 / states), HORIZON)
        rules = [learner.rule_.probabilities, behaviour_rule(counts)] * 2
        dense = dense_baseline(counts, rules, task, 3 if states > 50 else 50) * DRAWS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{states:>7}{actions:>9}{records:>9}{ours:>10.2f}{dense:>11.2f}{dense / ours:>7.1f}{peak:>12.0f}")


if __name__ == "__main__":
    main()
