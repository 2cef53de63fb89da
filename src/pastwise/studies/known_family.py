"""How much could a rule from a log reach at most? Learners that know more than the log.

The families of `planners` sample their systems from known distributions. Who knows a family, and
who may have left the log, can compute the posterior of the system and choose the rule of the
largest expected share of what there is to gain:

    posterior(system) ~ p(next states | system) * mean over pasts of p(actions | system, past),
    rule = argmax of the posterior mean of share(rule, system).

No method can reach more on average, as far as the two approximations go: systems are a sample of
the family, and the rule is the best of two ascents (`Population.best_rule`), not of all rules.

    scores = known_family_scores("forest", num_states=6, num_actions=3)
    scores.mean(KNOWN_FAMILY), scores.mean("TL_foresight")

``known family and past`` also knows who left the log. The names of actions mean nothing to either:
in each system of the sample they are permuted. The sizes of the system are fixed: then all systems
of these families have the same score and the same ends.

``known prior`` is TL_foresight with the numbers of its prior from a log that covers the system
evenly. It knows nothing else: the difference is what a better inference of these numbers could add.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np
from scipy.special import logsumexp

from pastwise._numerics.arrays import FloatArray, IntArray, sample
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.foresight import Foresight, TLForesight
from pastwise.models.belief import Belief
from pastwise.models.dense import DenseModel
from pastwise.models.prior import RowPrior
from pastwise.studies.families import FAMILIES
from pastwise.studies.long_run import LONG_RUN, optimal_rule
from pastwise.studies.planner_tables import SMALLEST_RANGE, Scores
from pastwise.studies.planner_tasks import SHARPNESS, Place, counts_of, reference_values
from pastwise.studies.planners import Learner, learner_of, offline_part, registered_learners
from pastwise.studies.synthetic import System, soft_optimal

KNOWN_FAMILY = "known family"
KNOWN_PAST = "known family and past"

KNOWN_PRIOR = "known prior"

KNOWN_PASTS = ("matched", "opposed", "random")
"""Pasts whose rule follows from the system and a sharpness."""

DISCOUNT = 1 - 1 / LONG_RUN


def systems_of_size(
    family: str, num_states: int, num_actions: int, seed: int
) -> Iterator[tuple[int, System]]:
    """Systems of a family that have a size and something to gain, each with its number."""
    for index in count():
        system = FAMILIES[family].system(seed, index)
        if (system.num_states, system.num_actions) == (num_states, num_actions):
            random, optimum = reference_values(system)
            if optimum - random >= SMALLEST_RANGE:
                yield index, system


def with_actions_permuted(system: System, rng: np.random.Generator) -> System:
    """The same system, in which actions have each other's names."""
    order = rng.permutation(system.num_actions)
    model = DenseModel(system.model.transition[:, :, order])
    return replace(system, model=model, habit=system.habit[order])


@dataclass(frozen=True, eq=False)
class Population:
    """Systems of one family and size.

    Attributes
    ----------
    transition : [K, S, A, S]
    initial : [K, S]
    score : [S]
    goes_on : [S]
        Whether an episode goes on in each state.
    random, optimum : [K]
        Values of random actions and of the best rule.
    log_rules : by past, [K, S, A]
        Logarithms of the rules of the past, at a sharpness of 1 and without habit.
    log_habit : [A]
    """

    transition: FloatArray
    initial: FloatArray
    score: FloatArray
    goes_on: FloatArray
    random: FloatArray
    optimum: FloatArray
    log_rules: dict[str, FloatArray]
    log_habit: FloatArray

    @classmethod
    def of(cls, systems: Sequence[System]) -> Population:
        """The systems, which must have the same score, ends and habit."""
        first = systems[0]
        for system in systems:
            for name in ("score", "terminal", "habit"):
                if not np.array_equal(getattr(system, name), getattr(first, name)):
                    raise ParameterError(
                        f"systems of one size differ in their {name}; choose another family"
                    )
        values = np.array([reference_values(system) for system in systems])
        scores = {
            "matched": first.score,
            "opposed": -first.score,
            "random": np.zeros(first.num_states),
        }
        log_rules = {}
        for past, score in scores.items():
            rules = np.stack([soft_optimal(system, score, sharpness=1.0) for system in systems])
            log_rules[past] = np.log(rules)
        return cls(
            transition=np.stack([system.mean_transition for system in systems]),
            initial=np.stack([system.initial for system in systems]),
            score=first.score,
            goes_on=first.goes_on.astype(np.float64),
            random=values[:, 0],
            optimum=values[:, 1],
            log_rules=log_rules,
            log_habit=np.log(first.habit),
        )

    # The posterior.

    def posterior(
        self, counts: TransitionCounts, pasts: Sequence[str], *, num_sharpness: int = 12
    ) -> FloatArray:
        """Probability of each system, given a log that one of some pasts left: [K].

        Parameters
        ----------
        num_sharpness : int
            Values of the sharpness of a past that stand for its range.
        """
        place = (counts.state, counts.action, counts.next_state)
        with np.errstate(divide="ignore"):
            log_rows = np.log(self.transition[:, *place])
        of_next_states = (counts.weight * log_rows).sum(axis=1)

        taken = counts.by_state_action(counts.weight)
        low, high = np.log(SHARPNESS)
        middles = low + (high - low) * (np.arange(num_sharpness) + 0.5) / num_sharpness
        of_actions = []
        for past in pasts:
            for sharpness in np.exp(middles):
                log_rule = sharpness * self.log_rules[past] + self.log_habit
                log_rule -= logsumexp(log_rule, axis=-1, keepdims=True)
                of_actions.append((taken * log_rule).sum(axis=(1, 2)))
        log_posterior = of_next_states + logsumexp(np.stack(of_actions), axis=0)
        if np.isneginf(log_posterior).all():
            raise ParameterError("no system of the population can have left this log; sample more")
        return np.asarray(np.exp(log_posterior - logsumexp(log_posterior)))

    # The best rule.

    def best_rule(self, weight: FloatArray, *, most_systems: int = 100) -> FloatArray:
        """The rule of the largest mean share of what there is to gain: [S, A].

        Conditional gradients: each step goes towards the actions that are best if only this step
        changes, as far as it helps. One ascent starts from the best rule of the mean system, the
        other from random actions.

        Parameters
        ----------
        weight : [K]
            Of each system.
        most_systems : int
            Systems that stand for all, sampled by weight at equal steps.
        """
        steps = (np.arange(most_systems) + 0.5) / most_systems
        chosen = np.minimum(np.searchsorted(np.cumsum(weight), steps), len(weight) - 1)
        system, number = np.unique(chosen, return_counts=True)
        mixture = _Mixture.of(self, system, number / most_systems)
        starts = (mixture.best_of_the_mean(), np.full(self.transition.shape[1:3], 1.0))
        ends = [mixture.ascend(start / start.sum(axis=-1, keepdims=True)) for start in starts]
        return max(ends, key=mixture.value)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Systems with weights, whose mean value a rule should maximise.

    Attributes
    ----------
    transition : [M, S, A, S]
    start : [M, S]
        Start distribution times the weight of the system, for each unit of what there is to gain.
    score, goes_on : [S]
    """

    transition: FloatArray
    start: FloatArray
    score: FloatArray
    goes_on: FloatArray

    @classmethod
    def of(cls, population: Population, system: IntArray, weight: FloatArray) -> _Mixture:
        """Some systems of a population."""
        to_gain = population.optimum[system] - population.random[system]
        return cls(
            transition=population.transition[system],
            start=population.initial[system] * (weight / to_gain)[:, None],
            score=population.score,
            goes_on=population.goes_on,
        )

    def best_of_the_mean(self) -> FloatArray:
        """The best rule of the mean system: [S, A]."""
        weight = self.start.sum(axis=1)
        mean = np.tensordot(weight / weight.sum(), self.transition, axes=1)
        ends = tuple(np.flatnonzero(self.goes_on == 0).tolist())
        return optimal_rule(System.of(mean, self.score, terminal=ends))

    def _loops(self, rule: FloatArray) -> FloatArray:
        """Closed loops of a rule, cut at the end of an episode: [M, S, S]."""
        loop = np.einsum("sa,msan->msn", rule, self.transition, optimize=True)
        return np.asarray(loop * self.goes_on[:, None])

    def value(self, rule: FloatArray) -> float:
        """Mean value of a rule, up to a factor."""
        loop = self._loops(rule)
        now = loop @ self.score
        system = np.eye(len(self.score)) - DISCOUNT * loop
        return float((self.start * np.linalg.solve(system, now[..., None])[..., 0]).sum())

    def _gradient(self, rule: FloatArray) -> FloatArray:
        """Derivative of the mean value by the probability of each action: [S, A]."""
        loop = self._loops(rule)
        system = np.eye(len(self.score)) - DISCOUNT * loop
        value = np.linalg.solve(system, (loop @ self.score)[..., None])[..., 0]
        visits = np.linalg.solve(np.swapaxes(system, 1, 2), self.start[..., None])[..., 0]
        target = self.score + DISCOUNT * self.goes_on * value
        action_values = np.einsum("msan,mn->msa", self.transition, target, optimize=True)
        return np.asarray(np.einsum("ms,msa->sa", visits * self.goes_on, action_values))

    def ascend(
        self,
        rule: FloatArray,
        *,
        rounds: int = 60,
        step_sizes: Sequence[float] = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01),
        tolerance: float = 1e-5,
    ) -> FloatArray:
        """A rule that is better than the given one, where there is one close to it: [S, A].

        Parameters
        ----------
        step_sizes : numbers
            Steps to choose from.
        tolerance : float
            Stop where the value grows by less than this share.
        """
        value = self.value(rule)
        for _ in range(rounds):
            gradient = self._gradient(rule)
            best = gradient.max(axis=-1, keepdims=True)
            is_better = best > (rule * gradient).sum(axis=-1, keepdims=True)
            greedy = np.eye(rule.shape[1])[gradient.argmax(axis=-1)]
            target = np.where(is_better, greedy, rule)
            trials = [rule + step * (target - rule) for step in step_sizes]
            values = [self.value(trial) for trial in trials]
            chosen = int(np.argmax(values))
            if values[chosen] <= value + tolerance * abs(value):
                break
            rule = trials[chosen]
            value = values[chosen]
        return rule


# The learner and the study.


@dataclass(frozen=True, eq=False)
class KnownFamily:
    """From a log to the best rule for who knows the family and its possible pasts."""

    population: Population
    pasts: Sequence[str] = KNOWN_PASTS

    def __call__(self, counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
        """The rule: [S, A]."""
        return self.population.best_rule(self.population.posterior(counts, self.pasts))


@dataclass(frozen=True)
class KnownNumbers(TLForesight):
    """TL_foresight with given numbers of the prior; None infers them from the log."""

    prior: RowPrior | None = None

    @classmethod
    def of(cls, system: System, *, records_of_row: int = 200, seed: int = 0) -> KnownNumbers:
        """With the numbers that a log of so many records of each row leads to."""
        rows = system.mean_transition[system.goes_on]
        shape = (*rows.shape[:2], records_of_row)
        states = np.flatnonzero(system.goes_on)[:, None, None]
        uniform = np.random.default_rng(seed).random(shape)
        next_state = sample(np.broadcast_to(rows[:, :, None], (*shape, rows.shape[-1])), uniform)
        log = Transitions(
            np.broadcast_to(states, shape).ravel(),
            np.broadcast_to(np.arange(shape[1])[:, None], shape).ravel(),
            next_state.ravel(),
        )
        return cls(prior=RowPrior.of(counts_of(log, system)))

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Foresight:
        """Memory of the past log."""
        memory = super().start(counts, ideal, recent)
        memory.belief = Belief(counts, self.prior)
        return memory


def known_family_scores(
    family: str,
    num_states: int,
    num_actions: int,
    *,
    others: Sequence[str] = ("TL", "FPD_learn", "clone", "TL_foresight"),
    records: Sequence[int] = (10, 40, 160),
    systems: int = 10,
    population: int = 2000,
    seed: int = 0,
) -> Scores:
    """Methods next to learners that know the family, in shares of what there is to gain.

    Parameters
    ----------
    others : names of methods
    records : numbers
        Lengths of the logs.
    systems : int
        Systems in which the past left logs.
    population : int
        Systems that stand for the family, sampled with another seed.
    """
    sampled = systems_of_size(family, num_states, num_actions, seed + 1)
    rng = np.random.default_rng(seed)
    known = Population.of(
        [with_actions_permuted(system, rng) for _, system in islice(sampled, population)]
    )
    parts = []
    for index, system in islice(systems_of_size(family, num_states, num_actions, seed), systems):
        for past in KNOWN_PASTS:
            learners: dict[str, Learner] = {
                KNOWN_PAST: KnownFamily(known, (past,)),
                KNOWN_FAMILY: KnownFamily(known),
                KNOWN_PRIOR: learner_of(KnownNumbers.of(system)),
                **registered_learners(others),
            }
            parts.append(offline_part(learners, Place(family, index, seed), (past,), records))
    return Scores.of_parts((KNOWN_PAST, KNOWN_FAMILY, KNOWN_PRIOR, *others), parts)
