"""The preview: a policy for a goal, while somebody moves a slider.

Everything comes from the calls that the command line makes: `TransferLearner.retarget`, its rule,
`support`, `explain` and `evaluate`. What does not depend on the goal is kept with the counts, and
the last few policies are kept, so that a request for the reasons of a cell does not learn again.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space, key_of
from pastwise.errors import GoalError, ParameterError, PastwiseError, StraddleError, shown
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.evaluate import MAX_STATES
from pastwise.evaluation.visits import expected_visits
from pastwise.goals.goal import Goal
from pastwise.methods.base import RECORDS
from pastwise.methods.registry import ALTERNATIVES, create, text_of
from pastwise.policy.advice import WEAK
from pastwise.policy.explanation import Explanation
from pastwise.policy.learner import NOTHING_SERVES, TransferLearner
from pastwise.policy.support import Support
from pastwise.service.problems import Problem, problem_of
from pastwise.theory.learning import rule_interval
from pastwise.workbench.counts import Cache, Counted
from pastwise.workbench.types import GoalContent, OrderView
from pastwise.workbench.types_log import ValidationView
from pastwise.workbench.types_preview import (
    BehaviourView,
    ExplanationView,
    OverviewTable,
    PastView,
    PreviewRequest,
    PreviewView,
    RangesView,
    RuleTable,
    SupportTable,
    VerdictView,
    VisitsView,
    WantedRule,
    WantedVerdict,
)

DIGITS = 12
"""Decimals of a probability in an answer: beyond what anybody compares, and shorter than all."""

OVERVIEW_DIGITS = 8
"""Decimals of numbers that are only looked at, of every state."""


class Previews:
    """Makes previews; several threads may ask.

    Parameters
    ----------
    kept : int
        Policies that are kept: the last positions of a slider, and the drafts of a comparison.
    """

    def __init__(self, kept: int = 32) -> None:
        self._learned: Cache[TransferLearner] = Cache(kept)

    def learner(self, counted: Counted, goal: GoalContent, method: str) -> TransferLearner:
        """The policy for a goal; what is wrong with the goal is a problem with a pointer."""
        key = key_of_policy(counted.id, goal, method)
        return self._learned.get(key, lambda: learned(counted.learner, goal, method))

    def preview(
        self,
        counted: Counted,
        request: PreviewRequest,
        order: OrderView | None,
        validation: ValidationView | None,
    ) -> PreviewView:
        """Answer the slider's call."""
        want = request.want
        clock = Clock()
        learner = self.learner(counted, request.goal, request.method)
        rule = learner.fitted_.plan().rule
        clock.note("rule")
        support = learner.support()
        clock.note("support")

        # Where the time goes, if somebody looks at it or sorts by it.
        after = None
        if want.visits or want.rule.sort == "visits":
            criterion = _criterion(learner, counted)
            before = counted.visits_before(criterion)
            after = expected_visits(rule, counted.counts, criterion)
            clock.note("visits")

        # Which states are shown.
        shown = _shown(counted, want.rule, order, rule, after)
        columns = counted.actions_in(order)
        forbidden = ~np.broadcast_to(learner.ideal_.allowed, rule.shape)

        explanation = None
        if want.explain is not None:
            explanation = explained(learner, *want.explain)
            clock.note("explain")
        verdict = None
        if want.verdict is not None:
            verdict = evaluated(learner, want.verdict, validation)
            clock.note("verdict")
        past = None
        if want.past:
            past = past_view(learner)
            clock.note("past")

        view = PreviewView(
            key=key_of_policy(counted.id, request.goal, request.method),
            sentence=learner.goal.describe(),
            method=text_of(learner.method_),
            ms={},
            rule=RuleTable(
                states=[counted.state_keys[i] for i in shown.tolist()],
                actions=[counted.action_keys[i] for i in columns.tolist()],
                p=_cells(rule, shown, columns),
                of=len(counted.state_keys),
            ),
            behaviour=BehaviourView(_cells(counted.behaviour, shown, columns)),
            support=_support(support, shown) if want.support else None,
            ranges=_ranges(learner, shown, columns) if want.ranges else None,
            visits=None,
            overview=None,
            ideal=_ideal(learner, counted.states_in(order)) if want.ideal else None,
            forbidden=[(int(i), int(j)) for i, j in np.argwhere(forbidden[np.ix_(shown, columns)])],
            weak=_weak(learner, support, counted, shown),
            warnings=[] if learner.serves_goal_ else [NOTHING_SERVES],
            explain=explanation,
            verdict=verdict,
            past=past,
            most_states=MAX_STATES,
        )
        if want.visits and after is not None:
            view.visits = VisitsView(_rounded(before[shown]), _rounded(after[shown]))
        if want.overview:
            states = counted.states_in(order)
            view.overview = _overview(counted, rule, states, columns)
            view.overview.weak = _weak(learner, support, counted, states)
            if after is not None:
                view.overview.visits = _rounded(after[states], OVERVIEW_DIGITS)
        clock.note("table")
        view.ms = clock.parts
        return view


def warm_up() -> None:
    """Judge a tiny policy, so that what verdicts import and compile is there for the first one."""
    states = Space(["low", "high"])
    actions = Space(["wait", "act"])
    log = TransitionCounts.from_records([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], states, actions)
    learner = TransferLearner(Goal(prefer={"high": 1.0}), method="TL").fit_counts(log)
    learner.evaluate(samples=40, alternatives=(), threads=1)


# Parts of a preview.


def key_of_policy(counts_id: str, goal: GoalContent, method: str) -> str:
    """Names a policy; equal for equal goals."""
    content = msgspec.json.encode([counts_id, method, goal], order="sorted")
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def learned(base: TransferLearner, goal: GoalContent, method: str) -> TransferLearner:
    """A policy for a goal from the counts of another one."""
    try:
        chosen = create(method)
    except ParameterError as error:
        raise problem_of(error, "/method") from None
    try:
        learner = base.retarget(Goal.from_dict(goal), chosen)
        learner.fitted_.plan()
    except PastwiseError as error:
        raise goal_problem(error) from None
    return learner


def goal_problem(error: PastwiseError, pointer: str = "/goal") -> Problem:
    """What is wrong with a goal, with a pointer to its part."""
    if isinstance(error, StraddleError):
        error = _straddles(error)
    if isinstance(error, GoalError) and error.part:
        pointer += "".join(f"/{step}" for step in error.part.split("."))
    return problem_of(error, pointer)


def _straddles(error: StraddleError) -> GoalError:
    """The same error with what to do about it on the page, where the log is counted already."""
    return GoalError(
        f"{error.part}: the state {shown(key_of(error.state))} lies on both sides of "
        f"{error.comparison}; compare with a number at which the states are cut, or cut the "
        "column there: in Log, give it the role State and own edges",
        error.part,
    )


def explained(learner: TransferLearner, state: str, action: str | None) -> ExplanationView:
    """Why the actions of a state have their probabilities, as `pastwise explain --json`."""
    try:
        explanation = learner.explain(state)
        if action is not None:
            learner.counts_.actions.index(action)
    except PastwiseError as error:
        raise problem_of(error, "?state") from None
    view = msgspec.convert(
        {**explanation.to_dict(), "action": action, "sentence": _sentence(explanation, action)},
        ExplanationView,
    )
    if learner.rests_on_similarity_:
        plan = learner.fitted_.plan_at(learner.counts_.states.index(explanation.state))
        low, high = rule_interval(plan.parts[RECORDS], plan.parts["prior"])
        for place, reason in enumerate(view.actions.values()):
            reason.low = float(low[0, place])
            reason.high = float(high[0, place])
    return view


def _sentence(explanation: Explanation, action: str | None) -> str:
    """The explanation in words, of one action or of all."""
    if action is None:
        return str(explanation)
    reasons = {
        label: reason for label, reason in explanation.actions.items() if key_of(label) == action
    }
    return str(replace(explanation, actions=reasons))


def evaluated(
    learner: TransferLearner, wanted: WantedVerdict, validation: ValidationView | None
) -> VerdictView | None:
    """A verdict from few samples; None where there are too many states to have one."""
    if len(learner.counts_.states) > MAX_STATES:
        return None
    options: dict[str, Any] = {"samples": wanted.samples, "threads": 1}
    try:
        if wanted.judge is not None:
            goals = {"judge": Goal.from_dict(wanted.judge)}
            result = learner.evaluate_goals(goals, **options)["judge"]
        else:
            alternatives = ALTERNATIVES if wanted.alternatives else ()
            result = learner.evaluate(alternatives=alternatives, **options)
    except PastwiseError as error:
        pointer = "/goal" if wanted.judge is None else "/want/verdict/judge"
        raise goal_problem(error, pointer) from None
    return verdict_view(result.to_dict(), validation)


def verdict_view(content: dict[str, Any], validation: ValidationView | None) -> VerdictView:
    """An evaluation with the codes of what overrules it."""
    blocking = []
    if validation is not None:
        blocking = [each.code for each in validation.findings if each.severity == "blocks-verdict"]
    objections = [each["code"] for each in content["objections"]]
    overruled_by = list(dict.fromkeys([*objections, *blocking]))
    return msgspec.convert({**content, "overruled_by": overruled_by}, VerdictView)


def past_view(learner: TransferLearner) -> PastView | None:
    """How much a policy depends on who left the log; None where its method does not ask."""
    dependence = learner.past_dependence()
    if dependence is None or not learner.serves_goal_:
        return None
    return PastView(dependence.skilled, dependence.opposed, dependence.matters)


def _criterion(learner: TransferLearner, counted: Counted) -> Criterion:
    """Where episodes start and end, and how long they last."""
    return Criterion.of(
        learner.fitted_.goal,
        counted.counts,
        episodes=learner.episodes_,
        allowed=learner.ideal_.allowed,
    )


def _shown(
    counted: Counted,
    wanted: WantedRule,
    order: OrderView | None,
    rule: FloatArray,
    visits: FloatArray | None,
) -> IntArray:
    """Indices of the states that are shown."""
    if wanted.states is not None:
        return np.array([_index(counted, key, i) for i, key in enumerate(wanted.states)], int)
    places = counted.states_in(order)
    if wanted.sort == "visits" and visits is not None:
        places = places[np.argsort(-visits[places], kind="stable")]
    elif wanted.sort == "change":
        change = 0.5 * np.abs(rule - counted.behaviour).sum(axis=-1)
        places = places[np.argsort(-change[places], kind="stable")]
    elif wanted.sort == "records":
        places = places[np.argsort(-counted.records[places], kind="stable")]
    return places[: wanted.first]


def _index(counted: Counted, key: str, place: int) -> int:
    """Index of a state by its key."""
    try:
        return counted.counts.states.index(key)
    except PastwiseError as error:
        raise problem_of(error, f"/want/rule/states/{place}") from None


def _cells(table: FloatArray, states: IntArray, actions: IntArray) -> list[list[float]]:
    """Probabilities of the states and actions that are shown."""
    cells: list[list[float]] = table[np.ix_(states, actions)].round(DIGITS).tolist()
    return cells


def _rounded(numbers: FloatArray, digits: int = DIGITS) -> list[float]:
    rounded: list[float] = numbers.round(digits).tolist()
    return rounded


def _overview(
    counted: Counted, rule: FloatArray, states: IntArray, actions: IntArray
) -> OverviewTable:
    """A line on every state; places of actions are those in which they are shown."""
    shown = np.ix_(states, actions)
    chosen = rule[shown]
    done = counted.behaviour[shown]
    does = chosen.argmax(axis=-1)
    did = np.where(counted.records[states] > 0, done.argmax(axis=-1), -1)
    every_state = np.arange(len(states))
    return OverviewTable(
        does=does.tolist(),
        chance=_rounded(chosen[every_state, does], OVERVIEW_DIGITS),
        seen=counted.records_of_pairs[shown][every_state, does].tolist(),
        did=did.tolist(),
        change=_rounded(0.5 * np.abs(chosen - done).sum(axis=-1), OVERVIEW_DIGITS),
        visits=None,
        weak=[],
    )


def _support(support: Support, shown: IntArray) -> SupportTable:
    """What the rule of the states shown rests on."""
    arrays = support.arrays
    return SupportTable(
        records=arrays.records[shown].astype(np.int64).tolist(),
        similarity=_rounded(arrays.similarity[shown]),
        effective=_rounded(arrays.effective[shown]),
        prior_share=_rounded(arrays.prior_share[shown]),
    )


def _ranges(learner: TransferLearner, shown: IntArray, columns: IntArray) -> RangesView | None:
    """90 % ranges of the rule of the states shown; None where the method has none."""
    if not learner.rests_on_similarity_:
        return None
    parts = learner.fitted_.plan().parts
    low, high = rule_interval(parts[RECORDS], parts["prior"])
    return RangesView(_cells(low, shown, columns), _cells(high, shown, columns))


def _weak(
    learner: TransferLearner, support: Support, counted: Counted, shown: IntArray
) -> list[int]:
    """Places of the states shown whose rule rests on next to nothing, as `Support.warnings`."""
    if learner.rests_on_similarity_:
        is_weak = support.arrays.similarity < WEAK
    else:
        is_weak = support.arrays.records == 0
    is_weak = is_weak & ~counted.is_terminal
    places: list[int] = np.flatnonzero(is_weak[shown]).tolist()
    return places


def _ideal(learner: TransferLearner, states: IntArray) -> list[float] | None:
    """Probability of each next state by the goal, where it depends on nothing else."""
    ideal = learner.ideal_
    if not ideal.concerns_next_states_only:
        return None
    probabilities: list[float] = np.exp(ideal.log_transition[0, 0][states]).tolist()
    return probabilities


class Clock:
    """Measures how long the parts of an answer take."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, part: str) -> None:
        """A part is done."""
        now = time.perf_counter()
        self.parts[part] = round(1000 * (now - self._last), 3)
        self._last = now
