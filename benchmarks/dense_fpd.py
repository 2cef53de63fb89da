"""FPD on a dense model: one goal, a batch of small systems, many goals on one model.

Ours is the design of Theorem 1, which gives a stochastic policy and the divergence attained. The
peers solve a Markov decision process with the same tensor over the same horizon, its reward being
what the design likes of a next state: one backward induction, which reads the tensor as often as
the design does. That reward is the expectation of a goal over next states; the design works it out,
and peers are timed with it at hand, and from the goal on. Both kinds are checked: designs against a
recursion in NumPy, optima (`mdp_optimum` is ours) against each other. Models are built beforehand,
by all.

mdpsolver knows no finite horizon. Its value iteration is stopped by a tolerance; the number of its
sweeps is found by comparing its values with those of each sweep, and its time is scaled to the
horizon. It takes lists, too large for the largest tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import StringIO
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Scale, Section, Times, about, require_close
from pastwise._numerics.arrays import FloatArray
from pastwise.goals.ideal import IdealModel
from pastwise.models.dense import DenseModel
from pastwise.theory.fpd import Design, design, mdp_optimum

HORIZON, ACTIONS = 10, 4
LISTS = 1000
"""States up to which a tensor is handed over as nested lists."""

LOOP = 16
"""Goals that are taken one at a time, to be compared with many at once."""

SWEEPS_DISCOUNT = 0.999
PEERS = ("quantecon", "quantecon, pairs", "pymdptoolbox", "mdpsolver")


@dataclass(frozen=True, eq=False)
class Problem:
    """A random system [..., S, A, S] and a goal over next states [S]."""

    transition: FloatArray
    wanted: FloatArray

    @staticmethod
    def drawn(states: int, *shape: int) -> Problem:
        """Rows of uniform numbers, normalised; a few next states are preferred."""
        rng = np.random.default_rng(states)
        rows = rng.random((*shape, states, ACTIONS, states))
        rows /= rows.sum(axis=-1, keepdims=True)
        wanted = np.where(np.arange(states) < max(1, states // 10), 100.0, 1.0)
        return Problem(rows, wanted / wanted.sum())

    @property
    def ideal(self) -> IdealModel:
        """The goal."""
        return IdealModel.of(self.wanted, num_actions=ACTIONS)

    @cached_property
    def reward(self) -> FloatArray:
        """Expected logarithm of what is wanted: [..., S, A]."""
        return np.asarray(self.transition @ np.log(self.wanted))


# The same by hand.


def by_numpy(
    transition: FloatArray, negentropy: FloatArray, log_wanted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Theorem 1 as a NumPy user would write it: policy [H, S, A], ln gamma [H + 1, S]."""
    liking = transition @ log_wanted - negentropy - np.log(ACTIONS)
    log_gamma: list[FloatArray] = [np.zeros(len(transition))]
    policy: list[FloatArray] = []
    for epoch in range(HORIZON):
        preference = liking + (transition @ log_gamma[0] if epoch else 0.0)
        peak = preference.max(axis=-1)
        log_gamma.insert(0, peak + np.log(np.exp(preference - peak[:, None]).sum(axis=-1)))
        policy.insert(0, np.exp(preference - log_gamma[0][:, None]))
    return np.stack(policy), np.stack(log_gamma)


# Peers: each builds its model and gives a function that solves it.


@contextmanager
def silence() -> Iterator[None]:
    """Silence the peers' warnings of a discount of one; the horizon is finite here."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def quantecon(
    transition: FloatArray, reward: FloatArray, pairs: bool = False
) -> Callable[[], FloatArray]:
    """Values [H + 1, S] by backward induction, in the product or the state-action form."""
    from quantecon.markov import DiscreteDP, backward_induction

    states, actions = np.divmod(np.arange(reward.size), ACTIONS)
    with silence():
        if pairs:
            model = DiscreteDP(
                reward.ravel(), transition.reshape(reward.size, -1), 1.0, states, actions
            )
        else:
            model = DiscreteDP(reward, transition, 1.0)
    return lambda: np.asarray(backward_induction(model, HORIZON)[0])


def mdptoolbox(transition: FloatArray, reward: FloatArray) -> Callable[[], FloatArray]:
    """Values [H + 1, S] by pymdptoolbox."""
    from mdptoolbox.mdp import FiniteHorizon

    with silence():
        model = FiniteHorizon(
            np.ascontiguousarray(np.moveaxis(transition, 1, 0)), reward, 1.0, HORIZON
        )

    def solve() -> FloatArray:
        model.run()
        return np.asarray(model.V.T)

    return solve


def mdpsolver(transition: FloatArray, reward: FloatArray) -> tuple[Callable[[], FloatArray], int]:
    """Values [S] by mdpsolver's value iteration, and the number of its sweeps."""
    import mdpsolver as peer

    model, start, threads = (
        peer.model(),
        [0.0] * len(reward),
        len(reward) >= 1000,
    )  # on small systems they slow it down
    model.mdp(
        discount=SWEEPS_DISCOUNT, rewards=reward.tolist(), tranMatWithZeros=transition.tolist()
    )

    def solve() -> FloatArray:
        model.solve(
            "vi",
            1e-6,
            initValueVector=start,
            postProcessing=False,
            makeFinalCheck=False,
            parallel=threads,
        )
        return np.asarray(model.getValueVector())

    found, value = solve(), np.zeros(len(reward))
    for sweep in range(1, 1000):
        value = (reward + SWEEPS_DISCOUNT * (transition @ value)).max(axis=-1)
        if np.allclose(value, found, rtol=1e-9):
            return solve, sweep
    raise AssertionError("mdpsolver's values are those of no sweep of value iteration")


# The jobs.


def measure(scale: Scale) -> list[Section]:
    """The dense jobs of the suite."""
    return [one_goal(scale), small_systems(scale), many_goals(scale)]


def one_goal(scale: Scale) -> Section:
    """One goal on one system."""
    section = Section(
        "FPD, dense, one goal",
        f"Horizon {HORIZON}, {ACTIONS} actions, random systems.\n\n{about(__doc__)}",
    )
    points = {}
    for states in scale.pick([10, 30], [10, 100, 1000, 3000], [10, 100, 1000, 3000]):
        points[float(states)] = _one_size(section, states)
    section.plot("dense-fpd", "states", points)
    return section


def _one_size(section: Section, states: int) -> Times:
    problem = Problem.drawn(states)
    transition, reward, ideal = problem.transition, problem.reward, problem.ideal
    model, short = DenseModel(transition), DenseModel(transition.astype(np.float32))
    rows, values, size = transition.reshape(-1, states), np.log(problem.wanted), f"S = {states}"
    contenders = [
        Contender("pastwise", lambda: design(model, ideal, HORIZON)),
        Contender("pastwise, float32", lambda: design(short, ideal, HORIZON)),
        Contender(
            "pastwise, first goal of a model",
            lambda: design(DenseModel(transition), ideal, HORIZON),
        ),
        Contender("pastwise, MDP optimum", lambda: mdp_optimum(model, values, HORIZON).value),
        Contender("NumPy by hand", partial(by_numpy, transition, model.negentropy, values)),
        Contender(
            "numpy.dot, one for each step", lambda: [rows.dot(values) for _ in range(HORIZON)]
        ),
        Contender("quantecon", quantecon(transition, reward)),
        Contender("quantecon, pairs", quantecon(transition, reward, pairs=True)),
        Contender("pymdptoolbox", mdptoolbox(transition, reward)),
    ]
    from_goal = [_from_goal(problem, each) for each in contenders if each.name in PEERS]
    contenders += from_goal
    if states <= LISTS:
        solve, sweeps = mdpsolver(transition, reward)
        contenders.append(Contender("mdpsolver", solve, work=sweeps / HORIZON))
    error = {}

    def same(results: Mapping[str, Any]) -> None:
        design, first, half = (
            results[f"pastwise{which}"] for which in ("", ", first goal of a model", ", float32")
        )
        for mine, theirs in zip(
            (design.policy, design.log_gamma), results["NumPy by hand"], strict=True
        ):
            require_close({"pastwise": mine, "NumPy by hand": theirs})
        require_close({"pastwise": design.policy, "first goal": first.policy})
        error["policy"] = float(np.abs(half.policy - design.policy).max())
        error["log_gamma"] = float(np.abs(half.log_gamma - design.log_gamma).max())
        require_close(
            results, ["pastwise, MDP optimum", "quantecon", "quantecon, pairs", "pymdptoolbox"]
        )

    times = section.compare(size, contenders, same, rounds=15)
    peers = [name for name in PEERS if name in times]
    if states >= 1000:
        alike = [each.name for each in from_goal]
        section.summarise(
            f"{size}: faster than the fastest peer, from the goal", times.faster_than(*alike)
        )
        section.summarise(
            f"{size}: faster than the fastest peer with its reward at hand",
            times.faster_than(*peers),
        )
        share = times.faster_than("numpy.dot, one for each step")
        section.summarise(f"{size}: bandwidth of a step, relative to numpy.dot", 100 * share, "%")
        faster = times.ratio("pastwise", "pastwise, float32")
        section.summarise(f"{size}: float32 faster than float64", faster)
    else:
        section.summarise(f"{size}: time relative to the fastest peer", times.of(*peers))
    section.notes.append(
        f"{size}: with float32 storage probabilities of the policy are off by at most "
        f"{error['policy']:.1e}, ln gamma by {error['log_gamma']:.1e}."
    )
    return times


def _from_goal(problem: Problem, peer: Contender, goals: int = 1) -> Contender:
    """A peer that has to work out the rewards of its goals first."""

    def run() -> Any:
        for _ in range(goals):
            problem.transition @ np.log(problem.wanted)
        return peer.run()

    return replace(peer, name=f"{peer.name}, from the goal", run=run)


def small_systems(scale: Scale) -> Section:
    """A batch of small systems."""
    number_of, states = scale.pick(20, 1000, 1000), 10
    section = Section(
        "FPD, dense, many small systems",
        f"{number_of:,} systems of {states} states, horizon {HORIZON}; peers in a loop over models "
        "built beforehand.",
    )
    problem = Problem.drawn(states, number_of)
    model, ideal, values = DenseModel(problem.transition), problem.ideal, np.log(problem.wanted)
    systems = list(zip(problem.transition, problem.reward, strict=True))
    solvers: dict[str, list[Callable[[], FloatArray]]] = {
        "quantecon": [quantecon(*system) for system in systems],
        "quantecon, pairs": [quantecon(*system, pairs=True) for system in systems],
        "pymdptoolbox": [mdptoolbox(*system) for system in systems],
    }
    iterated = [mdpsolver(*system) for system in systems]
    sweeps = float(np.mean([count for _, count in iterated]))
    contenders = [
        Contender("pastwise", lambda: design(model, ideal, HORIZON)),
        Contender("pastwise, MDP optimum", lambda: mdp_optimum(model, values, HORIZON).value),
        Contender(
            "NumPy by hand, in a loop",
            lambda: [
                by_numpy(p, h, values)
                for p, h in zip(problem.transition, model.negentropy, strict=True)
            ],
        ),
        *(Contender(name, partial(_each, solve)) for name, solve in solvers.items()),
        Contender(
            "mdpsolver", partial(_each, [solve for solve, _ in iterated]), work=sweeps / HORIZON
        ),
    ]

    def same(results: Mapping[str, Any]) -> None:
        by_hand = [
            np.stack(part) for part in zip(*results["NumPy by hand, in a loop"], strict=True)
        ]
        require_close({"pastwise": results["pastwise"].policy, "NumPy by hand": by_hand[0]})
        require_close({"pastwise": results["pastwise"].log_gamma, "NumPy by hand": by_hand[1]})
        require_close(results, ["pastwise, MDP optimum", *solvers])

    times = section.compare(f"{number_of:,} systems", contenders, same, rounds=3)
    section.summarise("faster than the fastest peer in a loop", times.faster_than(*PEERS))
    return section


def _each(solvers: list[Callable[[], FloatArray]]) -> list[FloatArray]:
    return [solve() for solve in solvers]


def many_goals(scale: Scale) -> Section:
    """Many goals on one model."""
    states = scale.pick(30, 1000, 1000)
    section = Section(
        "FPD, dense, many goals on one model",
        f"{states:,} states, horizon {HORIZON}. Times are for one goal. Peers, and ours one "
        f"goal at a time, loop over {LOOP} of the goals.",
    )
    problem, rng = Problem.drawn(states), np.random.default_rng(0)
    model, points = DenseModel(problem.transition), {}
    for goals in scale.pick([4], [64, 1000], [64, 1000]):
        wanted = rng.dirichlet(np.ones(states), size=goals) + 1e-6
        wanted /= wanted.sum(axis=-1, keepdims=True)
        ideal = IdealModel.of(wanted[:, None, None, :], num_actions=ACTIONS)
        single = [IdealModel.of(row, num_actions=ACTIONS) for row in wanted[:LOOP]]
        rewards = [np.asarray(problem.transition @ np.log(row)) for row in wanted[:LOOP]]
        peers = {
            "quantecon": [quantecon(problem.transition, reward) for reward in rewards],
            "quantecon, pairs": [
                quantecon(problem.transition, reward, pairs=True) for reward in rewards
            ],
        }
        contenders = [
            Contender("pastwise", partial(design, model, ideal, HORIZON), work=goals),
            Contender(
                "pastwise, one at a time", partial(_designs, model, single), work=len(single)
            ),
            *(
                Contender(name, partial(_each, solvers), work=len(single))
                for name, solvers in peers.items()
            ),
        ]
        from_goal = [
            _from_goal(problem, each, len(single)) for each in contenders if each.name in peers
        ]
        contenders += from_goal
        size = f"{goals:,} goals"
        times = section.compare(
            size, contenders, partial(_same_designs, model=model, wanted=wanted), rounds=3
        )
        points[float(goals)] = {name: seconds * goals for name, seconds in times.items()}
        if goals == 64:
            section.summarise(
                f"{size}: faster than one at a time",
                times.faster_than("pastwise, one at a time"),
            )
            alike = [each.name for each in from_goal]
            section.summarise(
                f"{size}: faster than the fastest peer, from the goals",
                times.faster_than(*alike),
            )
            section.summarise(
                f"{size}: faster than the fastest peer with its rewards at hand",
                times.faster_than(*peers),
            )
    section.plot("dense-goals", "goals", points)
    return section


def _designs(model: DenseModel, ideals: list[IdealModel]) -> list[Design]:
    return [design(model, ideal, HORIZON) for ideal in ideals]


def _same_designs(results: Mapping[str, Any], model: DenseModel, wanted: FloatArray) -> None:
    """The designs at once are those one at a time; peers' optima are ours for the same goal."""
    for i, single in enumerate(results["pastwise, one at a time"]):
        require_close({"at once": results["pastwise"].policy[i], "one at a time": single.policy})
        optimum = mdp_optimum(model, np.log(wanted[i]), HORIZON).value
        require_close(
            {"optimum": optimum, **{name: results[name][i] for name in PEERS if name in results}}
        )
