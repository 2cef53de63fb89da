"""What d3rlpy and pastwise learn from the same ICU-Sepsis logs: exact survival, and time.

The published expert of ICU-Sepsis treats patients in simulation. Its log is given to four learners:

`DiscreteBC`, `DiscreteCQL`
    Of d3rlpy: a clone of the expert, and conservative Q-learning. They get whole episodes, the
    state as one of 715 inputs, and the reward, 1 on survival and 0 otherwise. Their greedy rule in
    every state is what is evaluated.
`TL`, `TL_foresight`
    Of pastwise. They get the counts of the same transitions, and a goal that prefers survival;
    no reward. Their rule is evaluated as it is, with its probabilities.

No learner sees the dynamics. Survival is worked out from them, without simulation, for each rule
that was learned. The seconds run from the records of the log to the rule in all states: for d3rlpy
its data set, training and predictions; for pastwise counting and planning. Each learner runs once
before, on few episodes, so that no import is timed.

d3rlpy's own defaults are kept but for those in `settings`: DiscreteCQL's are meant for millions of
steps, and would copy its target network once in 8,000. What is set instead was the best of three
tried, by true survival, on a log of another seed: in its favour, for no user could choose so.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, sample
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.goals.goal import Goal
from pastwise.methods import create
from pastwise.studies.systems import KnownSystem, icu_sepsis

BATCH = 256
EPISODES, STEPS = (1000, 10_000), 10_000
QUICK_EPISODES, QUICK_STEPS = (200,), 200


@dataclass(frozen=True, eq=False)
class Log:
    """Records of whole episodes, one episode after the other.

    Attributes
    ----------
    state, action, next_state : [records]
    last : [records]
        Whether the record is the last of its episode.
    """

    state: IntArray
    action: IntArray
    next_state: IntArray
    last: BoolArray


def simulate(system: KnownSystem, rule: FloatArray, episodes: int, rng: np.random.Generator) -> Log:
    """Episodes under a rule, each until its end: the transitions of ``KnownSystem.log``."""
    state = sample(
        np.broadcast_to(system.initial, (episodes, system.num_states)), rng.random(episodes)
    )
    episode = np.arange(episodes)
    parts: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
    while True:
        going = ~np.isin(state, system.terminal)
        state, episode = state[going], episode[going]
        if not len(state):
            break
        action = sample(rule[state], rng.random(len(state)))
        following = sample(system.transition[state, action], rng.random(len(state)))
        parts.append((episode, state, action, following))
        state = following
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    _, s, a, n = (column[order] for column in columns)
    return Log(s, a, n, np.isin(n, system.terminal))


def learn_ours(method: str, system: KnownSystem, log: Log) -> FloatArray:
    """The rule that a method of pastwise learns: [S, A]."""
    states, actions = Space.of_size(system.num_states), Space.of_size(system.num_actions)
    counts = TransitionCounts.from_records(log.state, log.action, log.next_state, states, actions)
    ideal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(system.success)}).on(
        states, actions
    )
    chosen = create(method)
    return chosen.plan(chosen.start(counts.ending_in(system.terminal), ideal)).rule


def settings(name: str, steps: int) -> tuple[Any, int]:
    """The configuration of an algorithm of d3rlpy, and its number of steps."""
    import d3rlpy

    if name == "DiscreteBC":
        return d3rlpy.algos.DiscreteBCConfig(batch_size=BATCH), steps // 2
    chosen = {"learning_rate": 1e-3, "target_update_interval": 100, "alpha": 0.1}
    return d3rlpy.algos.DiscreteCQLConfig(batch_size=BATCH, **chosen), steps


def learn_theirs(name: str, system: KnownSystem, log: Log, steps: int, seed: int) -> FloatArray:
    """The greedy rule of an algorithm of d3rlpy after training: [S, A]."""
    import d3rlpy

    d3rlpy.seed(seed)
    inputs = np.eye(system.num_states, dtype=np.uint8)
    data = d3rlpy.dataset.MDPDataset(
        observations=inputs[log.state],
        actions=log.action,
        rewards=system.success[log.next_state].astype(np.float32),
        terminals=log.last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=system.num_actions,
    )
    config, steps = settings(name, steps)
    algorithm = config.create(device=False)
    algorithm.fit(
        data,
        n_steps=steps,
        n_steps_per_epoch=steps,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )
    return np.asarray(np.eye(system.num_actions)[algorithm.predict(inputs.astype(np.float32))])


def load_peer(threads: int) -> None:
    """Import d3rlpy, quietly; exit with code 2 where it is missing.

    Denormal numbers are flushed: rare inputs leave them in Adam's moments, where they slow
    training.
    """
    try:
        import d3rlpy  # noqa: F401
        import structlog
        import torch
    except ImportError as error:
        print(
            f"this comparison needs d3rlpy ({error}); see README.md next to this script",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def load_system() -> KnownSystem:
    """ICU-Sepsis, or a message where it is not installed."""
    try:
        return icu_sepsis()
    except ValueError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


def compare(
    system: KnownSystem, episodes: int, steps: int, seed: int
) -> Iterator[tuple[str, int, float, float]]:
    """Name, records, survival and seconds of each learner on one log."""
    log = simulate(system, system.rules["expert"], episodes, np.random.default_rng(seed))
    learners: dict[str, Callable[[], FloatArray]] = {
        **{
            name: partial(learn_theirs, name, system, log, steps, seed)
            for name in ("DiscreteBC", "DiscreteCQL")
        },
        **{name: partial(learn_ours, name, system, log) for name in ("TL", "TL_foresight")},
    }
    for name, learn in learners.items():
        begin = time.perf_counter()
        rule = learn()
        seconds = time.perf_counter() - begin
        yield name, len(log.state), system.success_and_length(rule)[0], seconds


def main() -> None:
    """Compare on each log and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--episodes", type=int, nargs="+", help="lengths of the logs (default: 1000 10000)"
    )
    parser.add_argument(
        "--steps", type=int, help=f"of DiscreteCQL; DiscreteBC takes half (default: {STEPS})"
    )
    parser.add_argument(
        "--seed", type=int, nargs="+", default=[0], help="of the log and of training, one or more"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="of torch; more are slower where cores are shared"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a short log and hardly any training: does it run?"
    )
    options = parser.parse_args()
    sizes = options.episodes or (QUICK_EPISODES if options.quick else EPISODES)
    steps = options.steps or (QUICK_STEPS if options.quick else STEPS)
    if min(sizes) < 1 or steps < 2 or options.threads < 1:
        parser.error("--episodes and --threads must be at least 1, and --steps at least 2")
    load_peer(options.threads)
    system = load_system()
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("d3rlpy", "torch", "numpy", "pastwise", "icu-sepsis")
    )
    machine = f"{os.cpu_count()} cores, torch on {options.threads}"
    print(f"Python {platform.python_version()}, {packages}; {machine}")
    for name in ("DiscreteBC", "DiscreteCQL"):
        print(name, *reversed(settings(name, steps)), sep=": ")
    rules = {"expert": system.rules["expert"], "random": system.random, "optimum": system.best}
    print(
        "survival:",
        ", ".join(f"{name} {system.success_and_length(r)[0]:.4f}" for name, r in rules.items()),
    )
    print(
        f"{'episodes':>9}{'records':>9}{'seed':>6}  {'learner':<14}{'survival':>9}{'seconds':>10}"
    )
    for _ in compare(system, episodes=10, steps=2, seed=0):
        pass
    for episodes in sizes:
        for seed in options.seed:
            for name, records, survival, seconds in compare(system, episodes, steps, seed):
                log = f"{episodes:>9,}{records:>9,}{seed:>6}"
                result = f"{name:<14}{survival:>9.4f}{seconds:>10.2f}"
                print(f"{log}  {result}", flush=True)


if __name__ == "__main__":
    main()
