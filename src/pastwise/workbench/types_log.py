"""What pages send and get about a log: columns, a mapping of them, rows, and what is usable."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from pastwise.service.types import STORABLE, Request, Text, View

Severity = Literal["note", "warn", "blocks-verdict"]
ColumnType = Literal["text", "number", "time", "boolean"]
ColumnName = Annotated[str, Meta(max_length=1024, pattern=STORABLE)]
ColumnNames = Annotated[list[ColumnName], Meta(max_length=100)]

BinsByColumn = dict[str, int | Literal["auto"] | list[float]]
"""By column a number of bins of equal frequency, edges, or "auto"."""


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


class BreakView(View, rename={"break_": "break"}):
    """Why a row has no next state: the code of a finding, and the length of a gap."""

    break_: str
    by: float | str | None = None


class RowsQuery(Request):
    """Which rows of a log.

    Attributes
    ----------
    mapping : str, optional
        A mapping as JSON, to see the next states by it; the project's by default.
    """

    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    mapping: Annotated[str, Meta(max_length=100_000)] | None = None


class RowsView(View):
    """Rows of a log as text, and the next state of each."""

    columns: list[str]
    rows: list[list[str | None]]
    then: list[str | BreakView | None]
    offset: int
    of: int | None


class DryRunQuery(Request):
    """Whether to look only.

    Attributes
    ----------
    first : int
        Rows that a dry run reads; of the default number a page has the answer in about a second.
    """

    dry_run: bool = False
    first: Annotated[int, Meta(ge=1)] = 100_000


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
    bins : dict
        Edges by column, also of bins whose number was given, or chosen by the log.
    """

    rows: int
    used: int
    ends: int
    left_out: list[LeftOutView]
    transitions: int
    states: list[StateCount]
    actions: list[ActionCount]
    findings: list[FindingView]
    sampled: int | None = None
    bins: dict[str, list[float]] = field(default_factory=dict)


class MappingView(View):
    """What a mapping makes of a log; ``counts`` is null in a dry run."""

    counts: str | None
    validation: ValidationView
