"""What one more record costs, with TL and with FPD_learn; FPD_learn's first rule.

All contenders of a job get the same records in the same order. The action that each decides for is
sampled, and then set aside in favour of the recorded one, so that all learn from the same stream.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.by_the_letter import (
    LearnModel,
    LiteralIdeal,
    Record,
    draw,
    literal_design,
    literal_model,
    wanted_next,
)
from benchmarks.harness import Contender, Scale, Section, Times, about, require_close
from pastwise._numerics.arrays import FloatArray, sample
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL, Evidence
from pastwise.theory.learning import learned_rule

ACTIONS, HORIZON = 4, 10
STREAM = 500
"""Records of a stream that TL and the bandits decide and observe on."""


def records(number: int, states: int, seed: int = 0) -> list[Record]:
    """Records drawn evenly."""
    rng = np.random.default_rng(seed)
    columns = (
        rng.integers(states, size=number),
        rng.integers(ACTIONS, size=number),
        rng.integers(states, size=number),
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def counts_of(log: Sequence[Record], states: int) -> pw.TransitionCounts:
    """The log, counted."""
    columns = Transitions(*np.array(log).reshape(-1, 3).T)
    return pw.TransitionCounts.from_transitions(
        columns, pw.Space.of_size(states), pw.Space.of_size(ACTIONS)
    )


def ideal_of(states: int) -> IdealModel:
    """The first state is preferred."""
    return IdealModel.of(wanted_next((0,), states), num_actions=ACTIONS)


def measure(scale: Scale) -> list[Section]:
    """The online jobs of the suite."""
    return [bandits(scale), one_more_record(scale), first_rule(scale)]


# TL: decide and observe.


def follow(
    method: Any, memory: Evidence, stream: Sequence[Record], rng: np.random.Generator
) -> FloatArray:
    """Let a method of ours decide and observe; the evidence after that."""
    for state, action, next_state in stream:
        sample(method.rule(memory, state, rng), rng.random(()))
        method.observe(memory, state, action, next_state)
    return np.asarray(memory.evidence)


def follow_live(live: pw.LivePolicy, stream: Sequence[Record]) -> pw.LivePolicy:
    """Let a live policy decide and observe."""
    for state, action, next_state in stream:
        live.decide(state)
        live.observe(state, action, next_state)
    return live


def follow_by_learner(
    learner: pw.TransferLearner, stream: Sequence[Record], coins: random.Random
) -> None:
    """The same by labels."""
    for state, action, next_state in stream:
        rule = learner.rule(state)
        coins.choices(list(rule), list(rule.values()))
        learner.observe(state, action, next_state)


def follow_by_numpy(
    evidence: FloatArray,
    similarity: Sequence[float],
    stream: Sequence[Record],
    coins: random.Random,
) -> FloatArray:
    """A table of evidence by hand: what was gained for each state and action."""
    for state, action, next_state in stream:
        draw(evidence[state].cumsum(), coins.random())
        evidence[state, action] += similarity[next_state]
    return evidence


def follow_by_river(
    policies: Sequence[Any], similarity: Sequence[float], stream: Sequence[Record]
) -> Sequence[Any]:
    """A bandit for each state; its reward is the similarity."""
    arms = list(range(ACTIONS))
    for state, action, next_state in stream:
        policy = policies[state]
        policy.pull(arms)
        policy.update(action, similarity[next_state])
    return policies


def follow_by_mabwiser(
    policies: Sequence[Any], similarity: Sequence[float], stream: Sequence[Record]
) -> Sequence[Any]:
    """A bandit for each state; its reward is the similarity."""
    for state, action, next_state in stream:
        policy = policies[state]
        policy.predict()
        policy.partial_fit([action], [similarity[next_state]])
    return policies


def bandits(scale: Scale) -> Section:
    """TL next to the bandits of river and MABWiser; cost by length of log and by states."""
    section = Section(
        "TL online: decide and observe",
        "Seconds are for one decision and one observation. river's and MABWiser's are an "
        "epsilon-greedy bandit for each state, the cheapest that they have, with the similarity of "
        "a record as its reward; their sums for each state and action must equal our evidence. "
        f"{about(__doc__)}",
    )
    sizes = scale.pick(
        [(10, 100)],
        [(10, 10**3), (10, 10**6), (10**4, 10**3)],
        [(10, 10**3), (10, 10**6), (10**4, 10**3)],
    )
    found = {
        (states, k): _bandit_size(section, states, k, peers=i == 0)
        for i, (states, k) in enumerate(sizes)
    }
    base = found[sizes[0]]
    section.summarise("time relative to the faster peer", base.of("river", "MABWiser"))
    section.summarise("time", base.ours * 1e6, "µs")
    if len(sizes) > 1:
        section.summarise(
            "10^6 records instead of 10^3: ratio of the times", found[sizes[1]].ours / base.ours
        )
        section.summarise(
            "10^4 states instead of 10: ratio of the times", found[sizes[2]].ours / base.ours
        )
    return section


def _bandit_size(section: Section, states: int, k: int, peers: bool) -> Times:
    wanted, past, stream = (
        wanted_next((0,), states),
        counts_of(records(k, states), states),
        records(STREAM, states, 1),
    )
    method = TL()
    coins = random.Random(0)
    similarity = (wanted / wanted.max()).tolist()
    memory = method.start(past, ideal_of(states))
    before = memory.evidence.copy()
    goal = pw.Goal(table=dict(enumerate(wanted.tolist())))
    learner = pw.TransferLearner(goal, method="TL").fit(past)
    contenders = [
        Contender("pastwise", partial(follow_live, learner.live(0), stream), STREAM),
        Contender(
            "pastwise, TL",
            partial(follow, method, memory, stream, np.random.default_rng(0)),
            STREAM,
        ),
        Contender(
            "pastwise, TransferLearner", partial(follow_by_learner, learner, stream, coins), STREAM
        ),
        Contender(
            "NumPy by hand",
            partial(follow_by_numpy, before + memory.prior, similarity, stream, coins),
            STREAM,
        ),
    ]
    if peers:
        contenders += _peers(states, similarity, stream)

    def same(results: Mapping[str, Any]) -> None:
        gained = results["pastwise, TL"] - before
        require_close(
            {"pastwise": gained, "NumPy": results["NumPy by hand"] - before - memory.prior}
        )
        live, learned = (
            [list(each.rule(state).values()) for state in range(min(states, 100))]
            for each in (results["pastwise"], learner)
        )
        by_method = learned_rule(results["pastwise, TL"], memory.prior)[:100]
        require_close({"method": by_method, "learner": learned, "live": live})
        if peers:
            total = [
                [p._rewards[a].get() * p._counts[a] for a in range(ACTIONS)]
                for p in results["river"]
            ]
            sums = [[p._imp.arm_to_sum[a] for a in range(ACTIONS)] for p in results["MABWiser"]]
            require_close({"pastwise": gained, "river": total, "MABWiser": sums})

    return section.compare(f"S = {states:,}, k = {k:,}", contenders, same)


def _peers(states: int, similarity: Sequence[float], stream: Sequence[Record]) -> list[Contender]:
    from mabwiser.mab import MAB, LearningPolicy
    from river.bandit import EpsilonGreedy

    river = [EpsilonGreedy(0.1, seed=state) for state in range(states)]
    wiser = [
        MAB(list(range(ACTIONS)), LearningPolicy.EpsilonGreedy(0.1), seed=state)
        for state in range(states)
    ]
    for policy in wiser:
        policy.fit([0], [0.0])  # it decides nothing before
    return [
        Contender("river", partial(follow_by_river, river, similarity, stream), STREAM),
        Contender("MABWiser", partial(follow_by_mabwiser, wiser, similarity, stream), STREAM),
    ]


# FPD_learn: one more record, and a new rule.


def replan(
    method: FPDLearn, past: pw.TransitionCounts, ideal: IdealModel, stream: Sequence[Record]
) -> list[FloatArray]:
    """The rule in the next state after each record, by ours."""
    memory = method.start(past, ideal)
    rng = np.random.default_rng(0)
    rules = []
    for record in stream:
        observed = [np.asarray(index) for index in record]
        method.observe(memory, *observed)
        rules.append(method.rule(memory, observed[-1], rng))
    return rules


def replan_by_numpy(past: LearnModel, stream: Sequence[Record]) -> list[FloatArray]:
    """The same by a vectorised recomputation."""
    model, rules = copy(past), []
    model.counts = past.counts.copy()
    for record in stream:
        model.observe(*record)
        rules.append(model.rule()[record[-1]])
    return rules


def replan_by_the_letter(
    log: Sequence[Record], ideal: LiteralIdeal, stream: Sequence[Record]
) -> list[list[float]]:
    """The same from the whole log, formula by formula."""
    rules, log = [], list(log)
    S = len(ideal.rule)
    nu = min(ideal.joint[0][0]) / S
    for record in stream:
        log.append(record)
        rules.append(
            literal_design(literal_model(log, nu, S, ACTIONS), ideal, HORIZON)[0][record[-1]]
        )
    return rules


def require_same_rules(results: Mapping[str, Any]) -> None:
    """Refuse rules that differ, on the records that all took."""
    shortest = min(map(len, results.values()))
    require_close({name: rules[:shortest] for name, rules in results.items()}, atol=1e-7)


def one_more_record(scale: Scale) -> Section:
    """FPD_learn online."""
    section = Section(
        "FPD_learn online: one observation, one new rule",
        f"{ACTIONS} actions, horizon {HORIZON}. Each run begins after a log of 1,000 records and "
        "learns from 50 more.",
    )
    points = {}
    for states in scale.pick([10], [30, 100, 300], [30, 100, 300]):
        log, stream = records(1000, states), records(50, states, 1)
        method = FPDLearn(HORIZON)
        wanted = wanted_next((0,), states)
        past, model = counts_of(log, states), LearnModel(wanted, ACTIONS, HORIZON, log)
        contenders = [
            Contender(
                "pastwise", partial(replan, method, past, ideal_of(states), stream), len(stream)
            ),
            Contender("vectorised NumPy", partial(replan_by_numpy, model, stream), len(stream)),
        ]
        if states <= 100:
            ideal = LiteralIdeal.preferring((0,), states, ACTIONS)
            contenders.append(
                Contender(
                    "by the letter",
                    partial(replan_by_the_letter, log, ideal, stream[:2]),
                    work=2,
                    once=True,
                )
            )
        times = points[float(states)] = section.compare(
            f"S = {states}", contenders, require_same_rules
        )
        if states == 100:
            section.summarise(
                f"S = {states}: faster than by the letter", times.faster_than("by the letter")
            )
            section.summarise(
                f"S = {states}: faster than vectorised NumPy",
                times.faster_than("vectorised NumPy"),
            )
    section.plot("fpd-learn-online", "states", points)
    return section


# FPD_learn: the first rule.


def first_rule(scale: Scale) -> Section:
    """From a short log of a large system to the first rule of FPD_learn."""
    states = scale.pick(50, 1000, 1000)
    section = Section(
        "First rule of FPD_learn",
        f"{states:,} states, {ACTIONS} actions, horizon {HORIZON}; from a list of 30 records to a "
        "rule.",
    )
    log, wanted = records(30, states), wanted_next((0,), states)
    method = FPDLearn(HORIZON)
    state = log[-1][-1]
    ideal = LiteralIdeal.preferring((0,), states, ACTIONS)

    def ours() -> FloatArray:
        memory = method.start(counts_of(log, states), ideal_of(states))
        return method.rule(memory, np.asarray(state), np.random.default_rng(0))

    ways: dict[str, Callable[[], Any]] = {
        "pastwise": ours,
        "vectorised NumPy": lambda: LearnModel(wanted, ACTIONS, HORIZON, log).rule()[state],
        "by the letter": lambda: replan_by_the_letter(log[:-1], ideal, log[-1:])[0],
    }
    contenders = [Contender(name, way, once=name == "by the letter") for name, way in ways.items()]
    times = section.compare(f"S = {states:,}", contenders, partial(require_close, atol=1e-7))
    section.summarise("faster than vectorised NumPy", times.faster_than("vectorised NumPy"))
    section.summarise("faster than by the letter", times.faster_than("by the letter"))
    return section
