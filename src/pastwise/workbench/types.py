"""What the pages of the workbench send and get, as msgspec structs.

Conventions are those of `service.types`: requests refuse unknown members, labels are named by their
key, times are text in RFC 3339. Indices of states and actions count from 0 in the order of the
lists that an answer itself has.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

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
    counts : str, optional
        Id of the counts, so that a page can ask for them at once; null before the mapping.
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
    counts: str | None
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
