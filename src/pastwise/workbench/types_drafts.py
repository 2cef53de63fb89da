"""What drafts and their jobs take and answer: verdicts, comparisons, probes."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from pastwise.service.types import STORABLE, Request, Text, View
from pastwise.workbench.types import (
    SAMPLES,
    GoalContent,
    Horizon,
    Name,
    Number,
    Samples,
    Seed,
    Word,
)
from pastwise.workbench.types_log import BinsByColumn, ColumnName
from pastwise.workbench.types_preview import (
    IntervalView,
    ObjectionView,
)


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
    """A verdict on a draft, against what was done.

    Attributes
    ----------
    judge : str
        The goal that it was judged by, in words.
    goal : dict, optional
        The same where it is not the draft's own goal.
    level : float
        Probability of the interval of the difference.
    overruled : bool
        Whether the comparison is not fair.
    objections : list
        Why the evaluation says so; findings of the log are another reason.
    """

    job: str
    at: str
    verdict: Word
    difference: tuple[float, float] | None
    alarm: bool
    samples: int
    judge: str
    goal: GoalContent | None = None
    level: float = 0.9
    overruled: bool = False
    objections: list[ObjectionView] = field(default_factory=list)


class RunningVerdict(View):
    """A job that judges a draft at the moment, by its own goal or by another one."""

    job: str
    goal: GoalContent | None


class DraftView(View):
    """A saved policy.

    Attributes
    ----------
    sentence : str
        The goal in words.
    verdicts : list
        Every verdict so far, the oldest first.
    running : list
        Verdicts under way.
    deployed : list of str
        Versions that are this policy, such as ``room@3``; another goal or method is another policy.
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
    running: list[RunningVerdict]
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
        Second opinions from the episodes of the log as well; they are by the draft's own goal.
    """

    judge: GoalContent | None = None
    horizon: Horizon | None = None
    samples: Samples = SAMPLES
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
    differences : dict
        Of each draft to what was done: the intervals that decide.
    alarms : list of str
        Drafts for which negative transfer is likely.
    """

    goal: GoalContent
    sentence: str
    measure: str
    horizon: int
    margin: float
    values: dict[str, IntervalView]
    verdicts: dict[str, Word]
    differences: dict[str, IntervalView]
    alarms: list[str]
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
    """What is most probable in a state with one more column, and what it was without.

    Attributes
    ----------
    p, p_before : float
        Probability of each of the two, in its own rule.
    turns : bool
        Whether they differ.
    """

    state: str
    records: int
    action: str
    p: float
    before: str
    p_before: float
    turns: bool


class ProbeItem(View):
    """What became of the policy with one more column in the state.

    Attributes
    ----------
    explains : float
        How much of what was done the column explains next to the state, from 0 to 1: one minus the
        ratio of the remaining uncertainties.
    advice : list
        Of states with enough records: those where it turns around first, then the most frequent.
    compared, turned : int
        Number of states with enough records, and of those in which the advice turns around.
    problem : str, optional
        Why there is no policy with this column.
    """

    columns: list[str]
    states: int
    explains: float | None
    advice: list[AdviceView]
    compared: int
    turned: int
    verdict: Word | None
    difference: IntervalView | None
    problem: str | None = None


class ProbeResult(View):
    """Result of the job of a probe; ``episode`` is how much the episode explains."""

    items: list[ProbeItem]
    episode: ProbeItem | None
    warnings: list[str]
