"""What a preview takes and answers: rules, reasons and verdicts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from pastwise.service.types import Request, Text, View
from pastwise.workbench.types import GoalContent, Name, Number, Samples, Word


class WantedRule(Request):
    """Which rows of the rule: some states by key, or the first ones of an order."""

    states: Annotated[list[Text], Meta(max_length=1000)] | None = None
    first: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    sort: Literal["order", "visits", "change", "records"] = "order"


class WantedVerdict(Request):
    """A verdict from so many sampled models.

    Attributes
    ----------
    judge : dict, optional
        Another goal to judge the policy by; its own by default.
    alternatives : bool
        Compare with what other methods learn for the same goal as well.
    """

    samples: Samples = 200
    judge: GoalContent | None = None
    alternatives: bool = False


class Wanted(Request):
    """What a preview contains.

    Attributes
    ----------
    explain : pair, optional
        Keys of a state and of an action.
    rows : int
        Rows of the log to show behind each piece of evidence of the explanation.
    ranges : bool
        The 90 % range of each probability of the rule, where the method has one.
    past : bool
        How much the policy depends on who left the log; it takes two more plans.
    """

    rule: WantedRule = field(default_factory=WantedRule)
    support: bool = True
    ranges: bool = False
    visits: bool = False
    overview: bool = False
    ideal: bool = True
    explain: tuple[Text, Text] | None = None
    rows: Annotated[int, Meta(ge=0, le=100)] = 0
    verdict: WantedVerdict | None = None
    past: bool = False


class PreviewRequest(Request):
    """A goal and a method; nothing is stored.

    Attributes
    ----------
    method : str
        Its name, with hyper-parameters as in ``TL(prior_count=5)``.
    """

    goal: GoalContent
    method: Name = "TL"
    want: Wanted = field(default_factory=Wanted)


class RuleTable(View):
    """Probabilities ``p[state][action]`` of the states shown; ``of`` counts all states."""

    states: list[str]
    actions: list[str]
    p: list[list[float]]
    of: int


class RangesView(View):
    """90 % ranges of the probabilities of the rule."""

    low: list[list[float]]
    high: list[list[float]]


class BehaviourView(View):
    """What was done, in the states of the rule."""

    p: list[list[float]]


class SupportTable(View):
    """What the rule rests on, in the states of the rule."""

    records: list[int]
    similarity: list[float]
    effective: list[float]
    prior_share: list[float]


class VisitsView(View):
    """Share of time in each state of the rule: as it was done, and by the rule."""

    before: list[float]
    after: list[float]


class OverviewTable(View):
    """A line on every state, in the order of the counts: for pages that cannot hold the rule.

    Attributes
    ----------
    does, did : list of int
        Likeliest action, and the one that was done most (-1: the state has no record).
    chance : list of float
        Probability of the likeliest action.
    seen : list of int
        Records of the likeliest action.
    change : list of float
        Total variation between the rule and what was done.
    visits : list of float, optional
        Share of time by the rule.
    weak : list of int
        Places of states whose rule rests on next to nothing.
    """

    does: list[int]
    chance: list[float]
    seen: list[int]
    did: list[int]
    change: list[float]
    visits: list[float] | None
    weak: list[int]


class EvidenceRow(View):
    """A row of the log behind a piece of evidence."""

    row: int
    episode: str | None = None
    time: str | None = None


class EvidenceView(View):
    """Past transitions to one next state, and what they carry of a probability."""

    next_state: str
    records: int
    similarity: float
    share: float
    rows: list[EvidenceRow] = field(default_factory=list)


class ActionValueView(View):
    """Value of the rule with an action always taken in a state, and its difference to the rule."""

    mean: float
    deviation: float
    difference: float
    difference_deviation: float


class ReasonView(View):
    """Why an action has its probability; ``parts`` add up to it where ``adds_up``."""

    probability: float
    is_allowed: bool
    parts: dict[str, float | None]
    adds_up: bool
    evidence: list[EvidenceView]
    value: ActionValueView | None
    episodes: int | None = None
    low: float | None = None
    high: float | None = None


class ExplanationView(View):
    """Why the rule of a state is what it is.

    Attributes
    ----------
    sentence : str
        The explanation in words; of the action, where one is named.
    without_rows : str, optional
        Why there are no rows of the log, where it is no longer as it was.
    """

    state: str
    action: str | None
    method: str
    measure: str | None
    horizon: int | None
    actions: dict[str, ReasonView]
    sentence: str
    without_rows: str | None = None


class IntervalView(View):
    """An interval of a value or of a difference."""

    mean: Number
    low: Number
    high: Number
    level: float


class ComparisonView(View):
    """The rule compared with a reference; ``deciding`` is the interval that decides."""

    reference: str
    difference: IntervalView
    deciding: IntervalView
    by_the_log: Word
    verdict: Word
    chance_better: float


class AlarmView(View):
    """Whether negative transfer is likely."""

    raised: bool
    worse_than_logged: bool
    expected_difference: float
    limit: float
    harm: float
    chance_of_harm: float


class ObjectionView(View):
    """A reason why a comparison is not fair."""

    code: str
    message: str


class EvaluationSupportView(View):
    """What a rule and its evaluation rest on."""

    records: int
    similarity: float
    effective: float
    visits_well_seen: float
    well_seen: int
    states_by_extrapolation: list[str]
    episodes: int | None = None


class EstimateView(IntervalView):
    """A second opinion from logged episodes, without sampled models."""

    usable: bool
    why_not: str
    difference: IntervalView | None
    in_sample: Number
    folds: int
    effective_episodes: Number
    smallest_effective_episodes: Number
    without_overlap: Number
    possible_low: Number
    possible_high: Number
    assumption: str


class VerdictView(View):
    """An evaluation, as `Evaluation.to_dict` has it.

    Attributes
    ----------
    overruled_by : list of str
        Codes of the findings and objections because of which the comparison is not fair.
    """

    sentence: str
    values: dict[str, IntervalView]
    value_in_log: Number
    matches_log: bool
    comparisons: dict[str, ComparisonView]
    alternatives: dict[str, ComparisonView]
    alternatives_in_words: str
    differences: dict[str, IntervalView]
    verdict: dict[str, Word]
    alarm: AlarmView
    objections: list[ObjectionView]
    margin: float
    margin_choice: str
    unit: str
    support: EvaluationSupportView
    measure: str
    horizon: int
    design_effect: float
    samples: int
    samples_requested: int
    visits: dict[str, dict[str, float]]
    in_sample: dict[str, IntervalView]
    estimates: dict[str, EstimateView]
    overruled_by: list[str]
    warnings: list[str] = field(default_factory=list)


class PastView(View):
    """How many decisions depend on how good the past was for the goal, which the log hardly shows.

    Attributes
    ----------
    skilled, opposed : float
        Share of decisions that would be others after people who had this goal, and after people
        who had the opposite one.
    matters : bool
        Whether to find out who left the log.
    """

    skilled: float
    opposed: float
    matters: bool


class PreviewView(View):
    """A policy for a goal.

    Attributes
    ----------
    key : str
        Names goal, method and counts; equal keys mean equal rules.
    ms : dict
        Milliseconds that each part took.
    ideal : list, optional
        Probability of each next state by the goal, in the order of the counts; null where that
        depends on more than the next state, or where it is not wanted.
    overview : OverviewTable, optional
        Of all states, not only of those shown.
    forbidden : list of pairs
        Index of the state shown, and of the action.
    weak : list
        Indices of states shown whose rule rests on next to nothing.
    past : PastView, optional
        Null where it is not wanted, where the method does not infer how good the past was, and in
        large systems.
    most_states : int
        Most states for which there is a verdict; with more, ``verdict`` is null.
    """

    key: str
    sentence: str
    method: str
    ms: dict[str, float]
    rule: RuleTable
    behaviour: BehaviourView
    support: SupportTable | None
    ranges: RangesView | None
    visits: VisitsView | None
    overview: OverviewTable | None
    ideal: list[float] | None
    forbidden: list[tuple[int, int]]
    weak: list[int]
    warnings: list[str]
    explain: ExplanationView | None
    verdict: VerdictView | None
    past: PastView | None
    most_states: int
