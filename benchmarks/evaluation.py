"""Evaluating a rule from its log: 2,000 sampled models, horizon 100.

No other library is compared. The vectorised baseline is what a competent user would write: it
samples the whole tensor of transition probabilities of every model, and follows three policies on
it (ours follows FPD_learn's and the best of some models as well, and cross-fits on two halves of
the log). It is timed on few samples, and its time is scaled. Its prior takes every row as unrelated
to every other, so only the mean values of what was done and of acting at random must agree, within
a tenth of the range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.harness import MIB, Contender, Scale, Section, about, peak_memory
from benchmarks.report import number, table
from pastwise._numerics.arrays import FloatArray
from pastwise.methods.baselines import behaviour_rule

SAMPLES = 2000
HORIZON = 100
POLICIES = ("new", "logged", "random")


def learner_of(states: int, actions: int, records: int) -> pw.TransferLearner:
    """A rule learned from a log of a system with few successors of each state and action."""
    rng = np.random.default_rng(0)
    successors = rng.integers(states, size=(states, actions, 8))
    state = rng.integers(states, size=records)
    action = rng.integers(actions, size=records)
    next_state = successors[state, action, rng.integers(8, size=records)]
    counts = pw.TransitionCounts.from_records(
        state, action, next_state, pw.Space.of_size(states), pw.Space.of_size(actions)
    )
    return pw.TransferLearner(pw.Goal(prefer={0: 1, 1: 1}), method="TL").fit(counts)


def evaluate(learner: pw.TransferLearner) -> pw.Evaluation:
    """By pastwise, from a uniform start; includes the cross-fitting on two halves of the log."""
    S = len(learner.counts_.states)
    initial = dict.fromkeys(learner.counts_.states.labels, 1 / S)
    return learner.evaluate(samples=SAMPLES, horizon=HORIZON, initial=initial)


def evaluate_dense(learner: pw.TransferLearner, samples: int) -> FloatArray:
    """NumPy on whole tensors: value of each policy on each sampled model, [samples, policies]."""
    rng = np.random.default_rng(0)
    counts = learner.counts_
    S = len(counts.states)
    A = len(counts.actions)
    concentration = np.bincount(counts.key, counts.weight, S * A * S).reshape(S, A, S) + 1 / S
    rules = [learner.rule_.probabilities, behaviour_rule(counts), np.full((S, A), 1 / A)]
    score = learner.goal.score(counts.states, counts.actions)
    values = np.zeros((samples, len(rules)))
    for sample in range(samples):
        # A model from the posterior.
        gamma = rng.standard_gamma(concentration)
        transition = gamma / gamma.sum(axis=-1, keepdims=True)

        # The distribution of the state under each rule, epoch by epoch.
        for i, rule in enumerate(rules):
            loop = np.einsum("sa,san->sn", rule, transition)
            state = np.full(S, 1 / S)
            for _ in range(HORIZON):
                state = state @ loop
                values[sample, i] += state @ score / HORIZON
    return values


def require_similar_values(results: Mapping[str, Any]) -> None:
    """Refuse mean values that differ by more than priors explain."""
    ours = results["pastwise"].values
    theirs = dict(zip(POLICIES, results["NumPy, whole tensors"].T, strict=True))
    for name in ("logged", "random"):
        mean = theirs[name].mean()
        np.testing.assert_allclose(mean, ours[name].mean, atol=0.1, rtol=0, err_msg=name)


def learn_and_evaluate(*size: int) -> None:
    evaluate(learner_of(*size))


def measure(scale: Scale) -> list[Section]:
    """The evaluation job of the suite."""
    section = Section("Evaluating a rule from its log", about(__doc__))
    memory = []
    sizes: Sequence[tuple[int, int, int]] = [
        (3, 4, 60),
        (20, 5, 1000),
        (100, 10, 10_000),
        (716, 25, 100_000),
    ]
    for states, actions, records in sizes[: scale.pick(1, 3, 4)]:
        learner = learner_of(states, actions, records)
        samples = 3 if states > 50 else 50
        contenders = [
            Contender("pastwise", partial(evaluate, learner)),
            Contender(
                "NumPy, whole tensors",
                partial(evaluate_dense, learner, samples),
                work=samples / SAMPLES,
            ),
        ]
        size = f"{states} states, {actions} actions, {records:,} records"
        section.compare(size, contenders, require_similar_values, rounds=3)
        most_bytes = peak_memory(learn_and_evaluate, states, actions, records)
        memory.append([size, number(most_bytes / MIB)])
    section.notes.append(
        "Peak memory of a fresh process:\n\n" + table(["size", "pastwise, MiB"], memory)
    )
    return [section]
