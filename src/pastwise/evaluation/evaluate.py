"""Is a learned rule better than what was done? Values, differences, verdict, alarm and support."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.checks import checked_probabilities, require_whole_number
from pastwise._numerics.interval import Interval
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary, random_folds
from pastwise.data.space import key_of
from pastwise.errors import LogError, ParameterError
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.cross_fit import (
    LearnWithout,
    always,
    design_effect,
    optimism,
    reward_design_effect,
    split_in_two,
)
from pastwise.evaluation.importance import FixedRule, LearnedRule
from pastwise.evaluation.objections import objections
from pastwise.evaluation.result import Evaluation, EvaluationSupport, unit_of
from pastwise.evaluation.rewards import ideal_on
from pastwise.evaluation.values import LOGGED, OPTIMUM, occupancy, posterior_of, sample_values
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS, Alarm, Thresholds, compare
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.methods.baselines import behaviour_rule
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.models.hierarchy import DEFAULT_ASSUMPTIONS, Assumptions
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.learning import StateSupport

MAX_STATES = 3000
"""Default limit of `evaluate_rule`: the prior of the sampled models takes 72 MB there."""

MIN_SAMPLES_OF_HALVES = 100
"""Fewest models sampled from each half of a log: what they say is halved, and then added to what
the models of the whole log say."""

RESERVED = ("new", LOGGED, "random", "FPD_learn", OPTIMUM)
"""Names of the policies that every evaluation compares."""


def require_state_limit(num_states: int, max_states: int = MAX_STATES) -> None:
    """Refuse to evaluate on too many states."""
    if num_states > max_states:
        raise ParameterError(
            f"evaluate() handles at most {max_states:,} states (got {num_states:,}): "
            "memory grows with the square of their number"
        )


def _require_records(log: TransitionCounts) -> None:
    if log.num_records == 0:
        raise LogError(
            "there is no record to evaluate on; those that leave a terminal state do not count"
        )


def evaluate_rule(
    rule: FloatArray,
    support: StateSupport,
    goal: Goal,
    log: TransitionCounts,
    initial: FloatArray | None = None,
    *,
    learn_without: LearnWithout | None = None,
    alternatives: Mapping[str, FixedRule | LearnedRule] | None = None,
    episodes: EpisodeSummary | None = None,
    horizon: int | None = None,
    samples: int = 2000,
    rules: Mapping[str, FloatArray] | None = None,
    seed: int = 0,
    margin: float | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
    max_states: int = MAX_STATES,
    on_step: Callable[[int], None] = lambda done: None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    backend: str | None = None,
) -> Evaluation:
    """Compare a rule with others on the same models, sampled from the posterior of a log.

    The others are what was done, acting at random, FPD_learn, the optimal policy of each model,
    what other methods learned, and any extra rules.

    Parameters
    ----------
    rule : [S, A]
        The new rule.
    support : StateSupport
        What the new rule rests on.
    log : TransitionCounts
        Without leading axes, over the rule's labels.
    initial : [S], optional
        Distribution of the start state; by default that of the log, see `criterion.log_starts`.
    learn_without : function, optional
        The rule that would have been learned without some of the records, if the rule was learned
        from this log: it is then judged on records that it was not learned from as well, see
        `cross_fit`.
    alternatives : name -> rule, optional
        What other methods learned for the same goal. Those that learned from this log are
        cross-fitted like the new rule. With any, FPD_learn is compared as well.
    episodes : EpisodeSummary, optional
        What is known of the log's episodes. Without it, records are taken to be independent.
    horizon : int, optional
        Number of epochs: a value is a mean over them, or a total of at most so many steps of an
        episode. By default as the log's episodes suggest, see `Criterion.of`.
    samples : int
        Number of models sampled from the posterior. 2,000 fix the bounds of an interval to about
        1.5 % of its width.
    rules : name -> [S, A], optional
        Extra rules, over the log's labels, that were not learned from this log.
    margin : float, optional
        Smallest difference that matters, in the unit of the measure; short for
        ``Thresholds(margin=...)``.
    assumptions : Assumptions
        The prior of the sampled models.
    max_states : int
        Limit of the number of states, since memory grows with its square.
    on_step : function
        Called with the number of further samples after each batch.
    should_stop : function
        Called after each batch; True ends the sampling, and the result rests on what there is.
    """
    require_state_limit(len(log.states), max_states)
    _require_records(log)
    require_whole_number("the seed", seed, 0, 2**128)
    alternatives = alternatives or {}
    extra_rules = _checked_rules(rules or {}, rule.shape, (*RESERVED, *alternatives))
    if margin is not None:
        thresholds = replace(thresholds, margin=margin)

    # What the rules are judged by.
    ideal = ideal_on(goal, log)
    if initial is not None:
        initial = checked_probabilities("initial", initial)

    # How much records depend on each other within episodes.
    folds = random_folds(log, seed=seed) if episodes is None else episodes.folds_of(log, seed)
    effect = 1.0 if episodes is None else design_effect(folds)
    reward_effect = 1.0 if episodes is None else reward_design_effect(folds)

    criterion = Criterion.of(
        goal,
        log,
        initial=initial,
        horizon=horizon,
        episodes=episodes,
        allowed=ideal.allowed,
        reward_effect=max(effect, reward_effect),
    )

    posterior = posterior_of(
        log, criterion, seed=seed, design_effect=effect, assumptions=assumptions
    )

    # The rules, and how those are learned that are learned from this log.
    compared = {
        "new": FixedRule(rule) if learn_without is None else LearnedRule(rule, learn_without),
        "random": FixedRule(np.broadcast_to(uniform_rule(ideal), rule.shape)),
        **alternatives,
        **_fpd_learn(goal, ideal, log),
        **{name: FixedRule(extra) for name, extra in extra_rules.items()},
    }
    contenders = {name: each.probabilities for name, each in compared.items()}
    learned = {
        name: each.learn_without for name, each in compared.items() if isinstance(each, LearnedRule)
    }

    # What the halves of the log flatter the rules learned from them. This comes first, so that a
    # user who interrupts the sampling below gets a result that it is part of. Whoever stops it
    # already here gets the first batch of what is sampled below.
    flattery = {}
    samples_of_halves = max(MIN_SAMPLES_OF_HALVES, samples // 4)
    if learned:
        flattery = optimism(
            split_in_two(folds),
            learned,
            criterion,
            samples_of_halves,
            design_effect=effect,
            assumptions=assumptions,
            seed=seed,
            should_stop=should_stop,
            threads=threads,
        )
    was_stopped = any(len(each) < samples_of_halves for each in flattery.values())

    # Values of all rules on the same models, less half of that.
    sampled = sample_values(
        posterior,
        contenders,
        criterion,
        samples,
        seed=seed,
        on_step=on_step,
        should_stop=always if was_stopped else should_stop,
        threads=threads,
    )
    values = {name: sampled[name] for name in ("new", LOGGED, *sampled.names)}
    uncorrected = {name: values[name] for name in flattery}
    for name, of_samples in flattery.items():
        values[name] = values[name] - 0.5 * np.resize(of_samples, sampled.number)

    # Differences to the references, and to the alternatives.
    def differences_to(*names: str) -> dict[str, FloatArray]:
        differences = {}
        for name in names:
            difference = without_rounding(values["new"] - values[name], values[name])
            differences[name] = stretched(difference, assumptions.stretch)
        return differences

    to_references = differences_to(LOGGED, "random", *extra_rules)
    to_alternatives = differences_to(*_with_fpd_learn(alternatives, contenders))

    # Intervals of the values, which stay within what is possible.
    lowest, highest = criterion.possible_range

    def interval(of_samples: FloatArray) -> Interval:
        possible = np.clip(stretched(of_samples, assumptions.stretch), lowest, highest)
        return Interval.of_samples(possible, thresholds.level)

    # Where the rules go, and whether the log can say anything about that.
    visits = {}
    for name, contender in {**contenders, LOGGED: behaviour_rule(log)}.items():
        visits[name] = occupancy(posterior.mean_closed_loop(contender), criterion)
    decisions = _decisions(rule, visits["new"], log)
    found = objections(decisions, log, episodes)

    # What the differences say.
    smallest = thresholds.margin_for(float(np.ptp(criterion.utility)))
    is_fair = not found
    comparisons = compare(to_references, smallest, thresholds, is_fair=is_fair)
    alarm = Alarm.of_samples(to_references["random"], comparisons[LOGGED], smallest, thresholds)

    return Evaluation(
        values={name: interval(of_samples) for name, of_samples in values.items()},
        comparisons=comparisons,
        alternatives=compare(to_alternatives, smallest, thresholds, is_fair=is_fair),
        alarm=alarm,
        objections=found,
        margin=smallest,
        unit=_unit(log, episodes),
        support=_support(decisions, support, log, episodes),
        measure=criterion.measure,
        horizon=criterion.horizon,
        design_effect=effect,
        samples=sampled.number,
        samples_requested=sampled.requested,
        thresholds=thresholds,
        visits={name: _by_state(shares, log) for name, shares in visits.items()},
        in_sample={name: interval(of_samples) for name, of_samples in uncorrected.items()},
        backend=backend,
        value_in_log=criterion.value_in_log(log, episodes),
    )


def stretched(samples: FloatArray, factor: float) -> FloatArray:
    """Samples [n] whose distances to their mean are multiplied by a factor."""
    mean = samples.mean()
    return np.asarray(mean + factor * (samples - mean))


def without_rounding(
    difference: FloatArray, value: FloatArray, *, precision: float = 1e-10
) -> FloatArray:
    """Differences [n], zero where rounding explains them: no rule is worse by the last digit.

    Parameters
    ----------
    value : [n]
        One of the two values that were subtracted.
    precision : float
        Largest rounding error, relative to the value: that of a sum over a million epochs.
    """
    return np.where(np.abs(difference) <= precision * np.abs(value), 0.0, difference)


def _fpd_learn(goal: Goal, ideal: IdealModel, log: TransitionCounts) -> dict[str, LearnedRule]:
    """What FPD_learn learns, by its name; nothing for an ideal that no learned model can keep."""
    if np.isneginf(ideal.log_transition).any():
        return {}
    method = FPDLearn()

    def learn(counts: TransitionCounts) -> FloatArray:
        own_ideal = ideal_on(goal, counts) if goal.maximise else ideal
        return method.plan(method.start(counts, own_ideal)).rule

    return {method.name: LearnedRule(learn(log), lambda part: learn(log.without(part)))}


def _with_fpd_learn(alternatives: Mapping[str, object], known: Mapping[str, object]) -> list[str]:
    """Names of the alternatives, with FPD_learn where there are any and its rule is known."""
    names = list(alternatives)
    if names and FPDLearn.name in known:
        names.append(FPDLearn.name)
    return names


def _unit(log: TransitionCounts, episodes: EpisodeSummary | None) -> str:
    """What the evaluation rests on; records of no known episode are counted on their own."""
    if episodes is None:
        return unit_of(log.num_records, None)
    without_episode = log.num_records - episodes.folds.num_records
    return unit_of(log.num_records, episodes.number, without_episode)


def _by_state(shares: FloatArray, log: TransitionCounts) -> dict[str, float]:
    """Shares [S] by the keys of the states."""
    keys = [key_of(state) for state in log.states.labels]
    return dict(zip(keys, shares.tolist(), strict=True))


def _checked_rules(
    rules: Mapping[str, FloatArray], shape: tuple[int, ...], taken: Sequence[str]
) -> dict[str, FloatArray]:
    """The extra rules, after checking their names, shapes and probabilities."""
    checked = {}
    for name, rule in rules.items():
        if name in taken:
            raise ParameterError(f"the name {name!r} of an extra rule is taken; choose another")
        probabilities = checked_probabilities(f"rules[{name!r}]", rule)
        if probabilities.shape != shape:
            raise ParameterError(
                f"rules[{name!r}] must be of shape {shape} (states, actions), "
                f"not {probabilities.shape}"
            )
        checked[name] = probabilities
    return checked


def _decisions(rule: FloatArray, visits: FloatArray, log: TransitionCounts) -> FloatArray:
    """Share of the rule's decisions that falls on each state and action: [S, A].

    Nothing is decided in terminal states; all is 0 where every episode starts in one.

    Parameters
    ----------
    visits : [S]
        Share of epochs in each state.
    """
    visits = visits.copy()
    visits[log.terminal] = 0.0
    total = visits.sum()
    if total > 0:
        visits = visits / total
    return np.asarray(visits[:, None] * rule)


def _support(
    decisions: FloatArray,
    support: StateSupport,
    log: TransitionCounts,
    episodes: EpisodeSummary | None,
    *,
    well_seen: int = 5,
    min_visits: float = 1e-3,
) -> EvaluationSupport:
    """What the rule and its evaluation rest on.

    Parameters
    ----------
    decisions : [S, A]
        See `_decisions`.
    well_seen : int
        Records that make a pair of state and action well seen: five fix a probability to about 0.2.
    min_visits : float
        Share of epochs below which a state counts as not visited: it adds no more than that to a
        value.
    """
    records = log.by_state_action(log.records.astype(np.float64))

    # States that the rule visits and the log never left.
    is_visited = decisions.sum(axis=-1) > min_visits
    is_unseen = records.sum(axis=-1) == 0
    extrapolated = np.flatnonzero(is_visited & is_unseen)

    # Effective number of all records, (sum w)^2 / sum w^2, from that of each state.
    known = support.effective > 0
    sum_of_squares = (support.similarity[known] ** 2 / support.effective[known]).sum()
    total = support.similarity.sum()
    effective = float(total**2 / sum_of_squares) if sum_of_squares > 0 else 0.0

    return EvaluationSupport(
        records=log.num_records,
        similarity=float(total),
        effective=effective,
        visits_well_seen=float(decisions[records >= well_seen].sum()),
        well_seen=well_seen,
        states_by_extrapolation=tuple(key_of(log.states.labels[i]) for i in extrapolated.tolist()),
        episodes=None if episodes is None else episodes.number,
    )
