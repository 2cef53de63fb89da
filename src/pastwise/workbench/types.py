"""What the pages of the workbench send and get, as msgspec structs.

Conventions are those of `service.types`: requests refuse unknown members, labels are named by their
key, times are text in RFC 3339. Indices of states and actions count from 0 in the order of the
lists that an answer itself has.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from pastwise.service.types import STORABLE, Mode, Request, Text, View

Severity = Literal["note", "warn", "blocks-verdict"]
Word = Literal["better", "worse", "cannot tell"]
ColumnType = Literal["text", "number", "time", "boolean"]
Sample = Literal["thermostat", "migraine"]
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=STORABLE)]
Samples = Annotated[int, Meta(ge=40, le=20_000)]
Horizon = Annotated[int, Meta(ge=1, le=100_000)]
Seed = Annotated[int, Meta(ge=0, le=2**53)]
ColumnName = Annotated[str, Meta(max_length=1024, pattern=STORABLE)]
ColumnNames = Annotated[list[ColumnName], Meta(max_length=100)]
Number = float | None
"""A number; null where it is not defined."""

BinsByColumn = dict[str, int | Literal["auto"] | list[float]]
"""By column a number of bins of equal frequency, edges, or "auto"."""

GoalContent = dict[str, object]
"""A goal as `Goal.from_dict` takes it: prefer, targets, reward, forbid, floor and so on."""


# The session.


class SessionRequest(Request):
    """The key of the address that `pastwise workbench` printed; it works once."""

    key: Annotated[str, Meta(max_length=200)]


class SessionView(View):
    """What this workbench is.

    Attributes
    ----------
    root : str
        Folder that paths of logs must lie in.
    project : str, optional
        The log that the workbench was opened on.
    methods : list of str
        Names of the methods that learn from a log.
    """

    version: str
    root: str
    project: str | None
    methods: list[str]
    samples: list[Sample]


# Projects: logs that the workbench knows.


class ProjectRequest(Request):
    """A log to open: a path below the root, a sample, or the id of an uploaded log."""

    path: Annotated[str, Meta(min_length=1, max_length=4096, pattern=STORABLE)] | None = None
    sample: Sample | None = None
    log: Annotated[str, Meta(max_length=100)] | None = None
    name: Name | None = None


class Mapping(Request):
    """Which columns hold what: the parameters of `Columns.of`.

    Attributes
    ----------
    terminal : list
        Labels as JSON has them; a list stands for a tuple.
    bins : "auto", or by column a number of bins of equal frequency, edges, or "auto"
    """

    state: ColumnNames = field(default_factory=list)
    action: ColumnNames = field(default_factory=list)
    next_state: ColumnNames = field(default_factory=list)
    episode: ColumnName | None = None
    time: ColumnName | None = None
    max_gap: float | Text | None = None
    terminal: list[object] = field(default_factory=list)
    bins: Literal["auto"] | dict[str, int | Literal["auto"] | list[float]] = field(
        default_factory=dict
    )
    features: ColumnNames = field(default_factory=list)
    next_features: ColumnNames = field(default_factory=list)
    max_states: Annotated[int, Meta(ge=2, le=3000)] = 200
    count: ColumnName | None = None
    weight: ColumnName | None = None
    task: ColumnName | None = None
    age: ColumnName | None = None
    half_life: float | Text | None = None
    propensity: ColumnName | None = None
    reward: ColumnName | None = None
    outcome: ColumnName | None = None
    text_labels: bool = True


class HistogramView(View):
    """Numbers of values between neighbouring edges."""

    edges: list[float]
    counts: list[int]


class ColumnView(View):
    """A column of a table.

    Attributes
    ----------
    top : list of pairs
        The most frequent values, with the number of rows that have them.
    """

    name: str
    type: ColumnType
    distinct: int
    missing: int
    top: list[tuple[str, int]]
    histogram: HistogramView | None
    min: float | str | None
    max: float | str | None


class GuessView(View):
    """Which columns probably hold what, and why that was guessed.

    ``binned`` are columns of the state that hold many different numbers.
    """

    state: list[str]
    action: list[str]
    next_state: list[str]
    episode: str | None
    time: str | None
    confidence: float
    why: str
    outcome: str | None = None
    binned: list[str] = field(default_factory=list)


class FindingSummary(View):
    """A finding in one line."""

    code: str
    severity: Severity
    message: str


class DeployedView(View):
    """A policy of the service that a draft of the project was added to."""

    policy: str
    mode: Mode
    alarm: bool
    version: int | None


class ProjectSummary(View):
    """A log in a list.

    Attributes
    ----------
    goal : str, optional
        The goal of the draft that was saved last, as a sentence.
    verdict, gain : optional
        The last verdict on that draft against what was done, and the interval of the difference.
    """

    id: str
    name: str
    kind: str
    rows: int | None
    states: int | None
    actions: int | None
    goal: str | None
    verdict: Word | None
    gain: tuple[float, float] | None
    deployed: DeployedView | None
    changed: str
    findings: list[FindingSummary]


class OrderRequest(Request):
    """The order in which states and actions are shown."""

    states: Annotated[list[Text], Meta(max_length=100_000)]
    actions: Annotated[list[Text], Meta(max_length=10_000)]


class OrderView(View):
    """The order in which states and actions are shown."""

    states: list[str]
    actions: list[str]


class DraftSummary(View):
    """A saved policy in a list."""

    id: str
    name: str
    goal: GoalContent
    sentence: str
    method: str
    counts: str
    changed: str


class ProjectView(View):
    """A log, its columns, and what has been made of it.

    Attributes
    ----------
    rows : int, optional
        Null where the log is too long to be counted at once.
    sampled : int, optional
        Rows that the description of the columns rests on.
    mapping : Mapping, optional
        The mapping that the counts were made by; null before that.
    counts : str, optional
        Id of the counts.
    source : str
        Where the log comes from, for people.
    """

    id: str
    name: str
    kind: str
    bytes: int
    rows: int | None
    sampled: int | None
    source: str
    columns: list[ColumnView]
    guess: GuessView
    mapping: Mapping | None
    counts: str | None
    order: OrderView | None
    validation: ValidationView | None
    drafts: list[DraftSummary]
    changed: str
    etag: str


class BreakView(View, rename={"break_": "break"}):
    """Why a row has no next state: the code of a finding, and the length of a gap."""

    break_: str
    by: float | str | None = None


class RowsQuery(Request):
    """Which rows of a log.

    Attributes
    ----------
    finding : str, optional
        Code of a finding of the project: begin at the first of its examples from the offset on.
    mapping : str, optional
        A mapping as JSON, to see the next states by it; the project's by default.
    """

    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    finding: Annotated[str, Meta(max_length=100)] | None = None
    mapping: Annotated[str, Meta(max_length=100_000)] | None = None


class RowsView(View):
    """Rows of a log as text, and the next state of each."""

    columns: list[str]
    rows: list[list[str | None]]
    then: list[str | BreakView | None]
    offset: int
    of: int | None


class DryRunQuery(Request):
    """Whether to look only."""

    dry_run: bool = False


class LeftOutView(View):
    """Rows that are not used, for one reason: the code of a finding."""

    code: str
    rows: int


class StateCount(View):
    """A state with its records, and their share of all."""

    key: str
    records: int
    share: float
    terminal: bool


class ActionCount(View):
    """An action with its records."""

    key: str
    records: int


class RemedyView(View):
    """What would help: members of the mapping to change."""

    label: str
    patch: dict[str, object]


class FindingView(View):
    """Something in a log that its owner should know."""

    code: str
    severity: Severity
    message: str
    fix: str
    rows: int
    examples: list[dict[str, object]]
    remedies: list[RemedyView]


class ValidationView(View):
    """What is usable of a log by a mapping.

    Attributes
    ----------
    used, ends : int
        Rows that are transitions, and rows that are the last of their episode.
    """

    rows: int
    used: int
    ends: int
    left_out: list[LeftOutView]
    transitions: int
    states: list[StateCount]
    actions: list[ActionCount]
    findings: list[FindingView]


class MappingView(View):
    """What a mapping makes of a log; ``counts`` is null in a dry run."""

    counts: str | None
    validation: ValidationView


# Counts.


class CountedState(View):
    """A state with the number of decisions that were made in it."""

    key: str
    records: int
    terminal: bool


class CountsField(View):
    """A field of states that have several: its values, and the index of each state's value.

    The index is -1 for a state that does not have the field, such as the outcome of a decision.
    """

    name: str
    values: list[str]
    of_state: list[int]


class SmallestProbability(View):
    """Default of the probability of each state that is not preferred.

    ``default``, or ``others_share`` divided by their number where that is smaller.
    """

    default: float
    others_share: float


class CountsView(View):
    """Counts of a log, with all that a page needs to compute TL's rule.

    Attributes
    ----------
    fields : list
        Fields of a state, where it has several.
    transitions : list, optional
        Index of the state, of the action and of the next state, in the order of states and actions
        here; number of records, sum of their weights and of the squares of these. Null where there
        are too many.
    weak : float
        Total similarity below which a state is weak.
    """

    id: str
    project: str
    records: int
    states: list[CountedState]
    actions: list[str]
    fields: list[CountsField]
    transitions: list[tuple[int, int, int, int, float, float]] | None
    smallest_probability: SmallestProbability
    weak: float
    has_rewards: bool
    has_episodes: bool
    mapping: Mapping | None


# The preview: the slider's call.


class WantedRule(Request):
    """Which rows of the rule: some states by key, or the first ones of an order."""

    states: Annotated[list[Text], Meta(max_length=1000)] | None = None
    first: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    sort: Literal["order", "visits", "change", "records"] = "order"


class WantedVerdict(Request):
    """A verdict from so many sampled models."""

    samples: Samples = 200


class Wanted(Request):
    """What a preview contains."""

    rule: WantedRule = field(default_factory=WantedRule)
    support: bool = True
    visits: bool = False
    explain: tuple[Text, Text] | None = None
    verdict: WantedVerdict | None = None


class PreviewRequest(Request):
    """A goal and a method; nothing is stored."""

    goal: GoalContent
    method: Name = "TL"
    want: Wanted = field(default_factory=Wanted)


class RuleTable(View):
    """Probabilities ``p[state][action]`` of the states shown; ``of`` counts all states."""

    states: list[str]
    actions: list[str]
    p: list[list[float]]
    of: int


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
    """

    state: str
    action: str | None
    method: str
    measure: str | None
    horizon: int | None
    actions: dict[str, ReasonView]
    sentence: str


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
        depends on more than the next state.
    forbidden : list of pairs
        Index of the state shown, and of the action.
    weak : list
        Indices of states shown whose rule rests on next to nothing.
    """

    key: str
    sentence: str
    method: str
    ms: dict[str, float]
    rule: RuleTable
    behaviour: BehaviourView
    support: SupportTable | None
    visits: VisitsView | None
    ideal: list[float] | None
    forbidden: list[tuple[int, int]]
    weak: list[int]
    warnings: list[str]
    explain: ExplanationView | None
    verdict: VerdictView | None


# Drafts: saved policies.


class DraftRequest(Request):
    """A policy to save."""

    name: Name
    goal: GoalContent
    method: Name = "TL"
    note: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] = ""


class DraftPatch(Request):
    """Members of a draft to change; those left out stay as they are."""

    name: Name | UnsetType = UNSET
    goal: GoalContent | UnsetType = UNSET
    method: Name | UnsetType = UNSET
    note: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] | UnsetType = UNSET


class KeptVerdict(View):
    """A verdict on a draft, against what was done."""

    job: str
    at: str
    verdict: Word
    difference: tuple[float, float] | None
    alarm: bool
    samples: int
    judge: str


class DraftView(View):
    """A saved policy.

    Attributes
    ----------
    sentence : str
        The goal in words.
    verdicts : list
        Every verdict so far, the oldest first.
    deployed : list of str
        Names of the policies that it was added to, with the version, such as ``room@3``.
    """

    id: str
    project: str
    counts: str
    name: str
    goal: GoalContent
    sentence: str
    method: str
    note: str
    created: str
    changed: str
    etag: str
    verdicts: list[KeptVerdict]
    deployed: list[str]


class ExplainQuery(Request):
    """A state by its key, an action, and how many rows of the log to show behind each piece."""

    state: Text
    action: Text | None = None
    rows: Annotated[int, Meta(ge=0, le=100)] = 4


class DraftVersionRequest(Request):
    """A draft to serve as the next version of a policy.

    Attributes
    ----------
    despite : list of str
        Objections that were overruled, such as ``alarm``.
    """

    draft: Text
    note: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] = ""
    despite: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=20)] = field(
        default_factory=list
    )


# Jobs.


class DraftEvaluationRequest(Request):
    """Evaluate a draft.

    Attributes
    ----------
    judge : dict, optional
        Another goal to judge it by; its own by default.
    importance : bool
        Second opinions from the episodes of the log as well.
    """

    judge: GoalContent | None = None
    horizon: Horizon | None = None
    samples: Samples = 2000
    seed: Seed = 0
    importance: bool = False


class ComparisonRequest(Request):
    """Judge drafts of one log by goals.

    Attributes
    ----------
    goals : list, optional
        By default the goals of the drafts.
    """

    drafts: Annotated[list[Text], Meta(min_length=1, max_length=8)]
    goals: Annotated[list[GoalContent], Meta(max_length=8)] = field(default_factory=list)
    samples: Samples = 1000
    seed: Seed = 0


class PairView(View):
    """Difference of two policies on the same sampled models, and what it says of ``a``."""

    a: str
    b: str
    mean: Number
    low: Number
    high: Number
    verdict: Word


class GoalComparison(View):
    """Policies judged by one goal.

    Attributes
    ----------
    values : dict
        Of each draft by its id, and of the references ``logged``, ``random`` and ``optimum``.
    verdicts : dict
        Of each draft by its id, against what was done.
    """

    goal: GoalContent
    sentence: str
    measure: str
    horizon: int
    margin: float
    values: dict[str, IntervalView]
    verdicts: dict[str, Word]
    pairs: list[PairView]
    overruled_by: list[str]


class ComparisonResult(View):
    """Result of the job of a comparison."""

    drafts: list[str]
    goals: list[GoalComparison]
    samples: int
    warnings: list[str]


class ProbeRequest(Request):
    """Ask again with more columns in the state.

    Attributes
    ----------
    columns : list of str
        Columns that are added, each on its own.
    """

    columns: Annotated[list[ColumnName], Meta(min_length=1, max_length=20)]
    goal: GoalContent
    method: Name = "TL"
    bins: BinsByColumn = field(default_factory=dict)
    samples: Samples = 400


class AdviceView(View):
    """Where the advice turns around: what is most probable in a state, with and without."""

    state: str
    action: str
    p: float
    before: str


class ProbeItem(View):
    """What became of the policy with one more column in the state.

    Attributes
    ----------
    explains : float
        How much of what was done the column explains next to the state, from 0 to 1: one minus the
        ratio of the remaining uncertainties.
    problem : str, optional
        Why there is no policy with this column.
    """

    columns: list[str]
    states: int
    explains: float | None
    advice: list[AdviceView]
    turns_around: bool
    verdict: Word | None
    difference: IntervalView | None
    problem: str | None = None


class ProbeResult(View):
    """Result of the job of a probe; ``episode`` is how much the episode explains."""

    items: list[ProbeItem]
    episode: ProbeItem | None
    warnings: list[str]
