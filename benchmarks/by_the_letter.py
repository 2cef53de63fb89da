"""The paper's methods in plain Python, by the letter, and in NumPy, one run at a time.

`run_literal`
    Plain Python, one run at a time, formula by formula. Every decision is worked out anew from the
    log: all similarities, their maximum over the whole ideal table, and Eq. (10) as it stands; for
    FPD_learn the transition model and then the whole recursion of Theorem 1. Two choices need a
    word. Algorithm 1 computes each weight once and keeps it; here the weights are recomputed for
    each rule, which is what Section IV-B counts as the cost of one decision rule (k similarities, a
    maximum over S * A * S values, then the rule). Re-planning is taken by the letter as well: FPD,
    and the method that made the log, run the recursion of Theorem 1 at every epoch, although the
    model is known. With ``plan_once`` what does not depend on the log, the plans on a known model,
    is worked out once for each loop.
`run_vectorised`
    What a competent NumPy user would write: one run at a time, tables instead of loops over states
    and actions, evidence and counts updated by one record at a time, one design for each goal on a
    known model, and for FPD_learn a vectorised recursion at each epoch.

Both act at each epoch by the first rule of a fresh horizon, and draw the same random numbers as
pastwise does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.studies.paper import PASTS, PaperStudy

METHODS = ("Rand", "TL", "TL_explore", "FPD_learn", "FPD")
FLOOR = 1e-5
"""What a goal gives to each next state that it does not prefer."""

Gains = dict[tuple[str, str], list[int]]
"""Gain of every run, by past and method."""

Record = tuple[int, int, int]
"""State, action, next state."""


def no_gains() -> Gains:
    """A table of gains to be filled in."""
    return {(past, name): [] for past in PASTS for name in METHODS}


# The random numbers of a run, the same for all contenders.


@dataclass(frozen=True)
class Numbers:
    """Uniform numbers of one loop: one for the start, and one of each kind for every epoch."""

    world: list[float]
    choice: list[float]
    coins: list[float]


def uniform(study: PaperStudy, size: int, *key: int) -> FloatArray:
    """The first numbers of the stream at a place in the study's tree of seeds."""
    return np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=key)).random(size)


def numbers_of(study: PaperStudy, num_steps: int, *key: int) -> Numbers:
    """The numbers that `pastwise.simulation.loop.run` draws from the stream at this place."""
    world, choice, coins = (
        uniform(study, num_steps + 1, *key, child).tolist() for child in range(3)
    )
    return Numbers(world, choice, coins)


def system_numbers(study: PaperStudy, run: int) -> FloatArray:
    """The transition model of a run before its rows are normalised: [S, A, S]."""
    shape = (study.num_states, study.num_actions, study.num_states)
    return uniform(study, math.prod(shape), run, 0).reshape(shape)


# By the letter: lists, loops and the formulae of the paper.

Matrix = list[list[float]]
Tensor = list[list[list[float]]]
Decide = Callable[[list[Record], int, float], list[float]]
"""From all records so far, the current state and a coin to the rule in that state."""


@dataclass(frozen=True)
class LiteralIdeal:
    """A goal as full tables: the rule [S][A], the transition model and the joint [S][A][S]."""

    rule: Matrix
    transition: Tensor
    joint: Tensor

    @staticmethod
    def preferring(preferred: tuple[int, ...], S: int, A: int) -> LiteralIdeal:
        """Goals of the paper's study, Eqs. (11) to (14)."""
        wanted = (1 - FLOOR * (S - len(preferred))) / len(preferred)
        next_state = [wanted if s in preferred else FLOOR for s in range(S)]
        rule = [[1 / A for _ in range(A)] for _ in range(S)]
        transition = [[list(next_state) for _ in range(A)] for _ in range(S)]
        joint = [[[p * rule[s][a] for p in transition[s][a]] for a in range(A)] for s in range(S)]
        return LiteralIdeal(rule, transition, joint)


def literal_draw(probabilities: list[float], number: float) -> int:
    """Index drawn by a uniform number."""
    cumulative = 0.0
    for index, probability in enumerate(probabilities):
        cumulative += probability
        if number < cumulative:
            return index
    return len(probabilities) - 1


def literal_weights(log: list[Record], ideal: LiteralIdeal) -> list[float]:
    """Normalised similarity of every record, Eq. (4)."""
    sigma_max = max(value for table in ideal.joint for row in table for value in row)
    return [ideal.joint[s][a][n] / sigma_max for s, a, n in log]


def literal_learned_rule(
    log: list[Record], weights: list[float], nu: float, state: int, S: int, A: int
) -> list[float]:
    """The learned rule in one state, Eq. (10)."""
    here = sum(w for (s, _, _), w in zip(log, weights, strict=True) if s == state) + S * A * nu
    rule = []
    for action in range(A):
        this = (
            sum(w for (s, a, _), w in zip(log, weights, strict=True) if s == state and a == action)
            + S * nu
        )
        rule.append(this / here)
    return rule


def literal_normalised(counts: Tensor) -> Tensor:
    """The distributions that are proportional to the rows."""
    totals = [[sum(row) for row in table] for table in counts]
    return [
        [[value / total for value in row] for row, total in zip(table, sums, strict=True)]
        for table, sums in zip(counts, totals, strict=True)
    ]


def literal_model(log: list[Record], nu: float, S: int, A: int) -> Tensor:
    """The transition model expected under a Dirichlet posterior with prior counts nu."""
    counts = [[[nu for _ in range(S)] for _ in range(A)] for _ in range(S)]
    for s, a, n in log:
        counts[s][a][n] += 1
    return literal_normalised(counts)


def literal_design(model: Tensor, ideal: LiteralIdeal, horizon: int) -> Tensor:
    """The optimal policy of every epoch of the horizon, Theorem 1: [H][S][A]."""
    S, A = len(model), len(model[0])
    alpha = [
        [
            sum(
                p * math.log(p / q)
                for p, q in zip(model[s][a], ideal.transition[s][a], strict=True)
            )
            for a in range(A)
        ]
        for s in range(S)
    ]
    gamma = [1.0] * S
    policy: Tensor = []
    for _ in range(horizon):
        weight: Matrix = []
        for s in range(S):
            beta = [
                -sum(p * math.log(g) for p, g in zip(model[s][a], gamma, strict=True))
                for a in range(A)
            ]
            weight.append([ideal.rule[s][a] * math.exp(-alpha[s][a] - beta[a]) for a in range(A)])
        gamma = [sum(row) for row in weight]
        policy.insert(0, [[w / g for w in row] for row, g in zip(weight, gamma, strict=True)])
    return policy


def literal_loop(
    system: Tensor, decide: Decide, num_steps: int, numbers: Numbers, past: list[Record]
) -> list[Record]:
    """The records of a closed loop that starts with a past log."""
    log = list(past)
    state = literal_draw([1 / len(system)] * len(system), numbers.world[0])
    for t in range(num_steps):
        action = literal_draw(decide(log, state, numbers.coins[t]), numbers.choice[t])
        next_state = literal_draw(system[state][action], numbers.world[t + 1])
        log.append((state, action, next_state))
        state = next_state
    return log[len(past) :]


def literal_methods(study: PaperStudy, system: Tensor, plan_once: bool) -> dict[str, Decide]:
    """The five methods."""
    S, A = study.num_states, study.num_actions
    ideal = LiteralIdeal.preferring((0,), S, A)
    nu = min(value for table in ideal.joint for row in table for value in row) / S
    uniform_rule = [1 / A] * A

    def rand(log: list[Record], state: int, coin: float) -> list[float]:
        return uniform_rule

    def tl(log: list[Record], state: int, coin: float) -> list[float]:
        return literal_learned_rule(log, literal_weights(log, ideal), nu, state, S, A)

    def tl_explore(log: list[Record], state: int, coin: float) -> list[float]:
        weights = literal_weights(log, ideal)
        learned = literal_learned_rule(log, weights, nu, state, S, A)
        lacking = sum(weights[-study.window :]) / study.window < study.threshold
        return uniform_rule if lacking and coin < study.epsilon else learned

    def fpd_learn(log: list[Record], state: int, coin: float) -> list[float]:
        return literal_design(literal_model(log, nu, S, A), ideal, study.horizon)[0][state]

    return {
        "Rand": rand,
        "TL": tl,
        "TL_explore": tl_explore,
        "FPD_learn": fpd_learn,
        "FPD": literal_fpd(system, ideal, study.horizon, plan_once),
    }


def literal_fpd(system: Tensor, ideal: LiteralIdeal, horizon: int, plan_once: bool) -> Decide:
    """Plan on the known model at every epoch, or once, and act by the first rule."""
    if plan_once:
        first = literal_design(system, ideal, horizon)[0]
        return lambda log, state, coin: first[state]
    return lambda log, state, coin: literal_design(system, ideal, horizon)[0][state]


def run_literal(study: PaperStudy, plan_once: bool = False) -> Gains:
    """Gains of the study, by the letter."""
    S, A, gains = study.num_states, study.num_actions, no_gains()
    for run in range(study.runs):
        drawn = system_numbers(study, run).tolist()
        system = literal_normalised(drawn)
        past_numbers = numbers_of(study, study.num_records, run, 1)
        numbers = numbers_of(study, study.num_steps, run, 2)
        methods = literal_methods(study, system, plan_once)
        for past, preferred in PASTS.items():
            teacher = literal_fpd(
                system, LiteralIdeal.preferring(preferred, S, A), study.horizon, plan_once
            )
            log = literal_loop(system, teacher, study.num_records, past_numbers, [])
            for name, decide in methods.items():
                records = literal_loop(system, decide, study.num_steps, numbers, log)
                gains[past, name].append(sum(next_state == 0 for _, _, next_state in records))
    return gains


# By NumPy: tables and incremental updates, one run at a time.


class FollowRule:
    """Acts by one rule, [S, A], in every epoch: Rand, FPD and the method that made the log."""

    def __init__(self, rule: FloatArray) -> None:
        self.cumulative = rule.cumsum(axis=-1)

    def act(self, state: int, number: float, coin: float) -> int:
        """The action drawn by a uniform number."""
        return draw(self.cumulative[state], number)

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Nothing to learn."""


class LearnRule:
    """TL and, with a positive ``epsilon``, TL_explore, updated record by record."""

    def __init__(
        self, study: PaperStudy, joint: FloatArray, log: Sequence[Record], epsilon: float
    ) -> None:
        self.similarity = joint / joint.max()
        self.concentration = np.full(joint.shape[:2], joint.min())
        self.uniform = np.full(joint.shape[1], 1 / joint.shape[1]).cumsum()
        self.threshold, self.epsilon = study.threshold, epsilon
        self.window, self.records = np.zeros(study.window), 0
        for record in log:
            self.observe(*record)

    def act(self, state: int, number: float, coin: float) -> int:
        """The action sampled from the learned rule or, while exploring, from the uniform one."""
        if coin < self.epsilon and self.window.sum() / len(self.window) < self.threshold:
            return draw(self.uniform, number)
        return draw(self.concentration[state].cumsum(), number)

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Add the record's similarity to the evidence and to the window."""
        weight = self.similarity[state, action, next_state]
        self.concentration[state, action] += weight
        self.window[self.records % len(self.window)] = weight
        self.records += 1


class LearnModel:
    """FPD_learn for a goal over next states [S]: a design on the mean after every record."""

    def __init__(
        self, wanted: FloatArray, num_actions: int, horizon: int, log: Sequence[Record]
    ) -> None:
        S = len(wanted)
        self.horizon, self.log_wanted, self.ideal_rule = (
            horizon,
            np.log(wanted),
            np.full((S, num_actions), 1 / num_actions),
        )
        self.counts = np.full((S, num_actions, S), wanted.min() / num_actions / S)
        for record in log:
            self.observe(*record)

    def rule(self) -> FloatArray:
        """The first rule of a fresh design: [S, A]."""
        model = self.counts / self.counts.sum(axis=-1, keepdims=True)
        return first_rule(model, self.ideal_rule, self.log_wanted, self.horizon)

    def act(self, state: int, number: float, coin: float) -> int:
        """The action drawn by a uniform number from the first rule of a fresh design."""
        return draw(self.rule()[state].cumsum(), number)

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Count the record."""
        self.counts[state, action, next_state] += 1


Actor = FollowRule | LearnRule | LearnModel


def draw(cumulative: FloatArray, number: float) -> int:
    """Index drawn by a uniform number; the last cumulative value need not be one."""
    return int(cumulative.searchsorted(number * cumulative[-1], side="right"))


def wanted_next(preferred: tuple[int, ...], S: int) -> FloatArray:
    """The ideal distribution of the next state: [S]."""
    wanted = np.full(S, FLOOR)
    wanted[list(preferred)] = (1 - FLOOR * (S - len(preferred))) / len(preferred)
    return wanted


def first_rule(
    model: FloatArray, rule: FloatArray, log_transition: FloatArray, horizon: int
) -> FloatArray:
    """First rule of a horizon, Theorem 1, for an ideal broadcastable to [S, A, S]: [S, A]."""
    liking = rule * np.exp(-(model * (np.log(model) - log_transition)).sum(axis=-1))
    weight, gamma = liking, liking.sum(axis=-1)
    for _ in range(horizon - 1):
        weight = liking * np.exp(model @ np.log(gamma))
        gamma = weight.sum(axis=-1)
    return np.asarray(weight / gamma[:, None])


def vectorised_loop(
    cumulative: FloatArray, actor: Actor, num_steps: int, numbers: Numbers
) -> list[Record]:
    """The records of a closed loop on the system with these cumulative transition probabilities."""
    log = []
    state = int(numbers.world[0] * len(cumulative))
    for t in range(num_steps):
        action = actor.act(state, numbers.choice[t], numbers.coins[t])
        next_state = draw(cumulative[state, action], numbers.world[t + 1])
        actor.observe(state, action, next_state)
        log.append((state, action, next_state))
        state = next_state
    return log


def run_vectorised(study: PaperStudy) -> Gains:
    """Gains of the study, by NumPy."""
    S, A, gains = study.num_states, study.num_actions, no_gains()
    wanted, rule = wanted_next((0,), S), np.full((S, A), 1 / A)
    joint = np.tile(wanted / A, (S, A, 1))
    past_log_ideals = {past: np.log(wanted_next(preferred, S)) for past, preferred in PASTS.items()}
    for run in range(study.runs):
        drawn = system_numbers(study, run)
        system = drawn / drawn.sum(axis=-1, keepdims=True)
        cumulative = system.cumsum(axis=-1)
        past_numbers = numbers_of(study, study.num_records, run, 1)
        numbers = numbers_of(study, study.num_steps, run, 2)
        rand, fpd = (
            FollowRule(rule),
            FollowRule(first_rule(system, rule, np.log(wanted), study.horizon)),
        )
        for past, log_ideal in past_log_ideals.items():
            teacher = FollowRule(first_rule(system, rule, log_ideal, study.horizon))
            log = vectorised_loop(cumulative, teacher, study.num_records, past_numbers)
            actors: dict[str, Actor] = {
                "Rand": rand,
                "TL": LearnRule(study, joint, log, epsilon=0.0),
                "TL_explore": LearnRule(study, joint, log, study.epsilon),
                "FPD_learn": LearnModel(wanted, A, study.horizon, log),
                "FPD": fpd,
            }
            for name, actor in actors.items():
                records = vectorised_loop(cumulative, actor, study.num_steps, numbers)
                gains[past, name].append(sum(next_state == 0 for _, _, next_state in records))
    return gains
