"""What the pages of the workbench send and get, as msgspec structs.

Conventions are those of `service.types`: requests refuse unknown members, labels are named by their
key, times are text in RFC 3339. Indices of states and actions count from 0 in the order of the
lists that an answer itself has.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pastwise.service.types import STORABLE, JobKind, Mode, Page, Request, Text, View
from pastwise.workbench.types_log import ColumnView, GuessView, Mapping, Severity, ValidationView

Word = Literal["better", "worse", "cannot tell"]
Sample = Literal["thermostat", "migraine"]
Origin = Literal["path", "sample", "upload", "learner"]
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=STORABLE)]
Samples = Annotated[int, Meta(ge=40, le=20_000)]

SAMPLES = 2000
"""Sampled models of a verdict, of all screens and files."""

Horizon = Annotated[int, Meta(ge=1, le=100_000)]
Seed = Annotated[int, Meta(ge=0, le=2**53)]
Number = float | None
"""A number; null where it is not defined."""

GoalContent = dict[str, object]
"""A goal as `Goal.from_dict` takes it: prefer, targets, reward, forbid, floor and so on."""


# The session.


class SessionRequest(Request):
    """The key of the address that `pastwise workbench` printed; it works once."""

    key: Annotated[str, Meta(max_length=200)]


class SessionQuery(Request):
    """What a page shows first, so that one request is enough for it.

    Attributes
    ----------
    log : str, optional
        Id of the log that the page shows.
    counts : bool
        Whether it shows counts of that log.
    """

    log: Annotated[str, Meta(max_length=100)] | None = None
    counts: bool = False


class SessionView(View):
    """What this workbench is, and what a page shows first.

    Attributes
    ----------
    root : str
        Folder that paths of logs must lie in.
    data : str
        Folder of what is saved.
    project : str, optional
        The log that the workbench was opened on.
    methods : list of str
        Names of the methods that learn from a log.
    samples : list of str
        Samples that can be opened in this installation.
    projects : page
        The logs, as ``GET /v1/projects`` lists them.
    log, counts : optional
        The log that was named, or that the workbench was opened on, and its counts.
    """

    version: str
    root: str
    project: str | None
    methods: list[str]
    samples: list[Sample]
    projects: Page[ProjectSummary]
    log: ProjectView | None
    counts: CountsView | None
    data: str


# Projects: logs that the workbench knows.


class ProjectRequest(Request):
    """A log to open: a path below the root, a sample, or the id of an uploaded log."""

    path: Annotated[str, Meta(min_length=1, max_length=4096, pattern=STORABLE)] | None = None
    sample: Sample | None = None
    log: Annotated[str, Meta(max_length=100)] | None = None
    name: Name | None = None


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


class JobSummary(View):
    """Work on a log that is under way.

    Attributes
    ----------
    done, of : int
        How far it is: sampled models, or parts.
    so_far : str, optional
        What a verdict says by the models sampled so far.
    """

    id: str
    kind: JobKind
    done: int
    of: int | None
    so_far: Word | None


class ProjectSummary(View):
    """A log in a list.

    Attributes
    ----------
    origin : str
        Where the log comes from; the copy of an upload is removed with the log.
    drafts : int
        Number of saved policies.
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
    origin: Origin
    drafts: int
    jobs: list[JobSummary]


class OrderRequest(Request):
    """The order in which states and actions are shown."""

    states: Annotated[list[Text], Meta(max_length=100_000)]
    actions: Annotated[list[Text], Meta(max_length=10_000)]


class OrderView(View):
    """The order in which states and actions are shown."""

    states: list[str]
    actions: list[str]


class DraftSummary(View):
    """A saved policy in a list; ``deployed`` as in `DraftView`."""

    id: str
    name: str
    goal: GoalContent
    sentence: str
    method: str
    counts: str
    changed: str
    deployed: list[str]


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
    policies : list of str
        Names of the deployed policies that were made of it, the oldest first.
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
    policies: list[str]
    changed: str
    etag: str


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
