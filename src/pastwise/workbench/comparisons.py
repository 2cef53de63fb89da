"""Several policies judged by several goals, on the same sampled models.

For each goal every policy is evaluated once, with those after it as alternatives, so each pair has
its difference on the same models, with both policies cross-fitted. Equal seeds give equal models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from pastwise._numerics.interval import Interval
from pastwise.evaluation.evaluate import evaluate_rule
from pastwise.evaluation.importance import LearnedRule
from pastwise.evaluation.result import Evaluation
from pastwise.evaluation.verdict import Verdict
from pastwise.goals.goal import Goal
from pastwise.policy.learner import TransferLearner
from pastwise.workbench.types import GoalContent
from pastwise.workbench.types_drafts import (
    ComparisonResult,
    GoalComparison,
    PairView,
)
from pastwise.workbench.types_preview import (
    IntervalView,
)

REFERENCES = ("logged", "random", "optimum")


def compared(
    learners: Mapping[str, TransferLearner],
    goals: Sequence[GoalContent],
    *,
    samples: int,
    seed: int = 0,
    blocking: Sequence[str] = (),
    on_goal: Callable[[ComparisonResult], None] = lambda result: None,
    on_step: Callable[[int, int], None] = lambda done, of: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> ComparisonResult:
    """Judge policies, which learned from the same log, by goals.

    Parameters
    ----------
    blocking : codes of findings
        Those because of which no comparison is fair.
    on_goal : callable
        Called with the result so far after each goal.
    on_step : callable
        Called with the number of evaluations that are done, and of all.
    should_stop : callable
        True ends the comparison; policies that were judged by then are in the result.
    """
    names = list(learners)
    result = ComparisonResult(names, [], samples, [])
    total = len(names) * len(goals)
    on_step(0, total)
    for content in goals:
        evaluations: dict[str, Evaluation] = {}
        for place, name in enumerate(names):
            if should_stop():
                break
            others = {other: learners[other] for other in names[place + 1 :]}
            evaluations[name] = _judged(learners[name], others, content, samples, seed, should_stop)
            on_step(len(result.goals) * len(names) + place + 1, total)
        if not evaluations:
            return result
        result.goals.append(_summary(content, evaluations, blocking))
        on_goal(result)
    return result


def _judged(
    learner: TransferLearner,
    others: Mapping[str, TransferLearner],
    goal: GoalContent,
    samples: int,
    seed: int,
    should_stop: Callable[[], bool],
) -> Evaluation:
    """One policy compared with others by a goal."""
    policy = learner.fitted_
    alternatives = {}
    for name, other in others.items():
        fitted = other.fitted_
        alternatives[name] = LearnedRule(fitted.plan().rule, fitted.rule_without)
    return evaluate_rule(
        policy.plan().rule,
        learner.support().arrays,
        policy.resolved(Goal.from_dict(goal)),
        learner.counts_.total(),
        learn_without=policy.rule_without,
        alternatives=alternatives,
        episodes=learner.episodes_,
        samples=samples,
        seed=seed,
        should_stop=should_stop,
        threads=1,
    )


def _summary(
    goal: GoalContent, evaluations: Mapping[str, Evaluation], blocking: Sequence[str]
) -> GoalComparison:
    """What the evaluations by one goal say."""
    first = next(iter(evaluations.values()))
    values = {name: each.values["new"] for name, each in evaluations.items()}
    values |= {name: first.values[name] for name in REFERENCES if name in first.values}
    codes = [code for each in evaluations.values() for code in _objections(each)]
    overruled_by = list(dict.fromkeys([*codes, *blocking]))

    # A finding that overrules one verdict overrules all.
    verdicts: dict[str, Verdict] = {}
    for name, each in evaluations.items():
        verdicts[name] = "cannot tell" if blocking else each.verdict["logged"]
    pairs = []
    for name, each in evaluations.items():
        for other, comparison in each.alternatives.items():
            if other in evaluations:
                deciding = comparison.deciding.to_dict()
                bounds = (deciding["mean"], deciding["low"], deciding["high"])
                word: Verdict = "cannot tell" if blocking else comparison.verdict
                pairs.append(PairView(name, other, *bounds, word))
    against_logged = {name: each.comparisons["logged"] for name, each in evaluations.items()}
    return GoalComparison(
        goal=goal,
        sentence=Goal.from_dict(goal).describe(),
        measure=first.measure,
        horizon=first.horizon,
        margin=first.margin,
        values={name: _view(value) for name, value in values.items()},
        verdicts=dict(verdicts),
        differences={name: _view(each.deciding) for name, each in against_logged.items()},
        alarms=[name for name, each in evaluations.items() if each.alarm],
        pairs=pairs,
        overruled_by=overruled_by,
    )


def _view(interval: Interval) -> IntervalView:
    return msgspec.convert(interval.to_dict(), IntervalView)


def _objections(evaluation: Evaluation) -> list[str]:
    return [objection.code for objection in evaluation.objections]
