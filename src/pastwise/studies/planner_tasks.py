"""What methods are compared on: a system, the log that somebody left in it, and its goal.

A past is somebody's rule: an expert for today's goal (*matched*), for a goal that shares half of
its score with today's (*overlapping*), against it (*opposed*), or *random* actions. In a *mixed*
past each episode follows one of these, by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.studies.families import FAMILIES
from pastwise.studies.long_run import LONG_RUN, long_run_values, optimal_rule
from pastwise.studies.synthetic import System, simulate, soft_optimal

# The past.

MIXED = "mixed"
"""The past in which each episode follows one of the others."""

PASTS = ("matched", "overlapping", "opposed", "random", MIXED)
"""Who left the log."""

RECORDS = (10, 40, 160, 640, 2500)
"""Lengths of the logs; a shorter log is the beginning of a longer one."""

SHARPNESS = (1.0, 6.0)
"""Range of how strictly people follow their goal, see `soft_optimal`. On average over the families
the best action is taken in 6 of 10 cases at the lower end, and in more than 8 at the upper one."""


def past_rules(system: System, past: str, rng: np.random.Generator) -> FloatArray:
    """The rules that the episodes of a past follow: [M, S, A], with M = 1 unless it is mixed."""
    today = system.score
    another = rng.permutation(today)
    low, high = np.log(SHARPNESS)
    sharpness = float(np.exp(rng.uniform(low, high)))
    scores = {
        "matched": today,
        "overlapping": (today + another) / 2,
        "opposed": -today,
        "random": np.zeros(system.num_states),  # soft_optimal is then indifferent
    }
    chosen = list(scores) if past == MIXED else [past]
    rules = [soft_optimal(system, scores[name], sharpness=sharpness) for name in chosen]
    return normalise(np.stack(rules) * system.habit)


# What the methods are given.

ODDS = 1e5
"""How much more probable the best state is than the least wanted one, in the ideal of a goal: the
paper's floor. The utility of the ideal equals the score."""


def ideal_of(system: System, odds: float = ODDS) -> IdealModel:
    """The goal of a system: the ideal probability of a state increases with its score."""
    wanted = normalise(np.exp(np.log(odds) * (system.score - system.score.max())))
    return IdealModel.of(wanted, num_actions=system.num_actions)


def counts_of(log: Transitions, system: System) -> TransitionCounts:
    """Records [..., number], counted; all states and actions of the system are known.

    States have their fields, such as row and column, where the system has them.
    """
    actions = Space.of_size(system.num_actions)
    return TransitionCounts.from_transitions(log, system.states, actions).ending_in(system.terminal)


# References.


def random_rule(system: System) -> FloatArray:
    """Every action with the same probability: [S, A]."""
    return np.full((system.num_states, system.num_actions), 1 / system.num_actions)


def reference_values(system: System, epochs: int = LONG_RUN) -> tuple[float, float]:
    """Values of random actions and of the best rule."""
    rules = np.stack([random_rule(system), optimal_rule(system)])
    random, optimum = long_run_values(system, rules, epochs).tolist()
    return random, optimum


# A system with the random numbers of what happens in it.


@dataclass(frozen=True)
class Place:
    """A system of a family.

    Attributes
    ----------
    family : str
    index : int
        Number of the system in its family.
    seed : int
    numbered : bool
        Whether states are known by their number alone, also where they have fields.
    """

    family: str
    index: int
    seed: int
    numbered: bool = False

    def system(self) -> System:
        """The system."""
        system = FAMILIES[self.family].system(self.seed, self.index)
        return replace(system, coordinates=None) if self.numbered else system

    def seeds(self, past: str) -> np.random.SeedSequence:
        """Random numbers of a past and all that follows; they do not depend on other pasts."""
        key = 1 + PASTS.index(past)
        own = FAMILIES[self.family].seeds(self.seed, self.index)
        return np.random.SeedSequence(own.entropy, spawn_key=(*own.spawn_key, key))

    def rules(self, system: System, past: str) -> FloatArray:
        """The rules that the episodes of a past follow: [M, S, A]."""
        return past_rules(system, past, np.random.default_rng(self.seeds(past)))

    def log(self, system: System, past: str, num_records: int) -> Transitions:
        """The records that a past left: [num_records]."""
        rng = np.random.default_rng(self.seeds(past))
        log = simulate(system, past_rules(system, past, rng), num_records, rng)
        first = slice(num_records)
        return Transitions(log.state[first], log.action[first], log.next_state[first])


def places(
    families: Sequence[str], pasts: Sequence[str], systems: int, seed: int, numbered: bool = False
) -> list[Place]:
    """Some systems of each family; unknown families and pasts are refused."""
    _require_known("family", families, FAMILIES)
    _require_known("past", pasts, PASTS)
    return [Place(family, index, seed, numbered) for family in families for index in range(systems)]


def _require_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones."""
    choice = list(known)
    for name in names:
        if name not in choice:
            raise ParameterError(f"unknown {kind} {name!r}; choose of {', '.join(choice)}")
