"""What travels over HTTP: requests and answers as msgspec structs.

Requests refuse members that they do not know. The same types parse requests, encode answers and
make the OpenAPI document, so the three cannot differ.

Times are text in RFC 3339 (UTC), durations are seconds, labels are named by their key.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

END = r"$(?!\n)"
"""The end of a text in a pattern: in Python, ``$`` alone also comes before a last line break."""

NAME = f"^[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}{END}"
Name = Annotated[str, Meta(pattern=NAME, description="Name of a policy.")]

STORABLE = r"^[^\x00]*$"
"""Text without the character 0, which PostgreSQL cannot store."""

Text = Annotated[str, Meta(max_length=1024, pattern=STORABLE)]
Value = Text | int | float | bool
"""A label by its key, or the raw value of one column."""

StateValue = Value | dict[str, Value | None]
"""A state: its label, a raw value, or the raw values of its columns by name."""

Mode = Literal["shadow", "live", "paused"]
LearnDelay = Literal["none", "window"]
OnAlarm = Literal["shadow", "none"]
Labels = Literal["closed", "open"]
OnUnseen = Annotated[str, Meta(pattern=f"^(refuse|prior|action:.{{1,1024}}){END}")]
Due = Annotated[float, Meta(gt=0, le=3.2e8, description="Seconds; at most ten years.")]
Floor = Annotated[float, Meta(ge=0, le=1)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
VersionNumber = Annotated[int, Meta(ge=1, lt=2**31, description="Number of a version.")]
Seq = Annotated[int, Meta(ge=0, le=2**62, description="Number of an event.")]

DecisionStatus = Literal[
    "open", "waiting", "learned", "recorded", "late", "missing", "cancelled", "new-label"
]
Role = Literal["read", "decide", "outcome", "edit", "deploy", "admin"]
JobState = Literal["queued", "running", "done", "stopped", "failed"]
JobKind = Literal[
    "evaluate", "learn", "replay", "summarise", "export", "verdict", "comparison", "probe"
]

Item = TypeVar("Item")


class Request(Struct, forbid_unknown_fields=True):
    """Base of everything a client sends: unknown members are refused."""


class View(Struct):
    """Base of everything the service answers."""


class Page(View, Generic[Item]):
    """A part of a list; ``next`` is the cursor of the part that follows, or null."""

    items: list[Item]
    next: str | None = None


# Decisions and outcomes.


class DecideRequest(Request):
    """A request for a decision.

    Attributes
    ----------
    allowed : list, optional
        Actions that are possible now; all of them by default.
    episode : str, optional
        What the decision belongs to, for the log of decisions.
    context : dict, optional
        Kept with the decision, not used; at most 4 KiB of JSON.
    dry_run : bool
        Answer what would be decided; nothing is stored.
    """

    state: StateValue
    allowed: Annotated[list[Value], Meta(min_length=1, max_length=10_000)] | None = None
    episode: Text | None = None
    context: dict[str, object] | None = None
    dry_run: bool = False


class DecideManyRequest(Request):
    """Several requests in one transaction."""

    items: Annotated[list[DecideRequest], Meta(min_length=1, max_length=1000)]


class SupportView(View):
    """What the rule of a state rests on."""

    records: int
    similarity: float
    weak: bool


class DecisionView(View):
    """A decision.

    Attributes
    ----------
    decision_id : str
        Empty in a dry run.
    propensity : float
        The very probability that the action was sampled with.
    evidence : int
        Number of outcomes that the version had learned by then.
    mode : str
        ``"shadow"`` asks the caller not to act on it.
    """

    decision_id: str
    action: str
    propensity: float
    policy: str
    policy_version: int
    evidence: int
    mode: Mode
    support: SupportView
    outcome_due: str


class OutcomeRequest(Request):
    """What followed a decision.

    Attributes
    ----------
    next_state : label, raw value or row, optional
        May be missing only where each record is a problem of one decision.
    reward : float, optional
        Needed where the log of the policy has rewards.
    at : str, optional
        When it happened, by the caller's clock; kept, not used.
    """

    next_state: StateValue | None = None
    reward: float | None = None
    at: Annotated[str, Meta(max_length=64)] | None = None


class OutcomeView(View):
    """What became of an outcome; ``evidence`` is the revision after it."""

    status: DecisionStatus
    evidence: int


class TakenRequest(Request):
    """Somebody did something else than was decided."""

    action: Value
    by: Annotated[str, Meta(min_length=1, max_length=200, pattern=STORABLE)]


class OutcomeDetail(View):
    """An outcome as it is stored; ``at`` is the service's clock, ``reported_at`` the caller's."""

    next_state: str | None
    reward: float | None
    status: DecisionStatus
    at: str
    reported_at: str | None = None


class ConflictView(View):
    """Another outcome that was reported for a decision; the first one stays."""

    next_state: str | None
    reward: float | None
    at: str


class DecisionDetail(View):
    """All that is stored of a decision.

    Attributes
    ----------
    key : str, optional
        The idempotency key that it was requested with.
    conflicts : list
        Other outcomes that were reported for it, the oldest first.
    """

    decision_id: str
    policy: str
    policy_version: int
    seq: int
    evidence: int
    state: str
    features: dict[str, object] | None
    action: str
    propensity: float
    allowed: list[str] | None
    floor: float
    mode: Mode
    episode: str | None
    context: dict[str, object] | None
    at: str
    outcome_due: str
    status: DecisionStatus
    taken: str | None = None
    taken_by: str | None = None
    key: str | None = None
    outcome: OutcomeDetail | None = None
    conflicts: list[ConflictView] = []


class ItemAnswer(View):
    """One answer of decide-many: a decision, or the problem with this item."""

    decision: DecisionView | None = None
    problem: dict[str, object] | None = None


class ManyDecisions(View):
    """Answers of decide-many, in the order of the requests."""

    items: list[ItemAnswer]


# Policies and versions.


class PolicySettings(Request):
    """How a policy is served.

    Attributes
    ----------
    mode : str
        ``"live"``; ``"shadow"``: decides, and asks not to act; ``"paused"``: refuses.
    version : int, optional
        The version in use; null until there is one.
    outcome_due_s : float
        An outcome that comes later than this is not learned.
    learn : bool
        Learn from outcomes.
    learn_delay : str
        ``"window"`` learns an outcome when its window closes instead of at once.
    on_unseen : str
        A state without records: ``"refuse"``, answer by the ``"prior"``, or by ``"action:LABEL"``.
    floor : float
        Smallest probability of each action that is possible.
    on_alarm : str
        Whether an alarm of the monitor switches to shadow.
    labels : str
        ``"open"`` keeps outcomes with unknown labels for the next version.
    retention_days : int
        How long decisions are kept.
    context_days : int
        How long the contexts of decisions are kept.
    """

    mode: Mode = "shadow"
    version: VersionNumber | None = None
    outcome_due_s: Due = 3600.0
    learn: bool = True
    learn_delay: LearnDelay = "none"
    on_unseen: OnUnseen = "refuse"
    floor: Floor = 0.0
    on_alarm: OnAlarm = "shadow"
    labels: Labels = "closed"
    retention_days: Days = 400
    context_days: Days = 30


class SettingsPatch(Request):
    """Settings to change; those left out stay as they are.

    Attributes
    ----------
    reason : str
        Why, for the audit trail.
    """

    mode: Mode | UnsetType = UNSET
    version: VersionNumber | UnsetType = UNSET
    outcome_due_s: Due | UnsetType = UNSET
    learn: bool | UnsetType = UNSET
    learn_delay: LearnDelay | UnsetType = UNSET
    on_unseen: OnUnseen | UnsetType = UNSET
    floor: Floor | UnsetType = UNSET
    on_alarm: OnAlarm | UnsetType = UNSET
    labels: Labels | UnsetType = UNSET
    retention_days: Days | UnsetType = UNSET
    context_days: Days | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] = ""


class PolicyView(View):
    """A policy as it is served now.

    Attributes
    ----------
    etag : str
        Changes with the settings; the header ``ETag`` has it in quotation marks.
    seq : int
        Number of the last event.
    evidence : int
        Number of outcomes that the version in use has learned.
    learns : bool
        False where the method's rule is fixed within a version.
    alarm : bool
        The monitor's alarm is on.
    """

    name: str
    settings: PolicySettings
    etag: str
    created: str
    seq: int
    evidence: int
    learns: bool = False
    alarm: bool = False


class VersionView(View):
    """A version, which never changes."""

    policy: str
    version: int
    sha256: str
    bytes: int
    note: str
    despite: list[str]
    who: str
    at: str


class RollbackRequest(Request):
    """Back to an older version, which continues from what it had learned."""

    to: VersionNumber
    reason: Annotated[str, Meta(max_length=1000)] = ""


class RuleView(View):
    """What the policy would do in a state; no decision is made."""

    policy: str
    policy_version: int
    evidence: int
    state: str
    rule: dict[str, float]
    support: SupportView


class ReplayRequest(Request):
    """Replay up to an event; to the last one by default."""

    to_seq: Seq | None = None


class ReplayView(View):
    """Result of a replay from the policy file through all events.

    Attributes
    ----------
    difference : str, optional
        The first event that came out otherwise, and how.
    """

    events: int
    state_hash: str
    equal: bool
    seconds: float
    difference: str | None = None


# Work in the background.


class EvaluationRequest(Request):
    """Evaluate a version on the decisions that were made, or on an uploaded log.

    Attributes
    ----------
    log : str, optional
        Id of an uploaded log; the decisions of the policy by default.
    version : int, optional
        The version in use by default.
    samples : int
        Number of models sampled; the default and the limit are the library's.
    """

    log: str | None = None
    version: VersionNumber | None = None
    samples: Annotated[int, Meta(ge=40, le=20_000)] = 2000
    horizon: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    seed: Annotated[int, Meta(ge=0)] = 0


class LearnRequest(Request):
    """Make a new version from the counts of a version and of decisions since ``since``.

    By default these are the decisions since the version was added, so that none counts twice.
    """

    version: VersionNumber | None = None
    since: str | None = None
    until: str | None = None
    note: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] = ""


class SummaryRequest(Request):
    """Describe an uploaded log; with ``columns`` read it as `pastwise learn` would with these."""

    columns: dict[str, object] | None = None


class ProgressView(View):
    """How far a job is."""

    done: int
    of: int | None = None


class JobView(View):
    """Work in a process of its own."""

    id: str
    kind: JobKind
    state: JobState
    who: str
    created: str
    progress: ProgressView | None = None
    partial: dict[str, object] | None = None
    result: dict[str, object] | None = None
    problem: dict[str, object] | None = None
    finished: str | None = None


class LogView(View):
    """An uploaded log."""

    id: str
    name: str
    kind: str
    bytes: int
    sha256: str
    at: str


# Tokens and the audit trail.


class TokenRequest(Request):
    """A token to make.

    Attributes
    ----------
    policies : list of str, optional
        Policies that the token is bound to; all by default.
    expires : str, optional
        RFC 3339; never by default.
    needs_key : bool
        Decisions with this token need an idempotency key.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200, pattern=STORABLE)]
    roles: Annotated[list[Role], Meta(min_length=1)]
    policies: Annotated[list[Name], Meta(min_length=1)] | None = None
    expires: str | None = None
    needs_key: bool = False


class TokenView(View):
    """A token without its secret."""

    id: str
    name: str
    roles: list[Role]
    policies: list[str] | None
    created: str
    used: str | None
    expires: str | None
    needs_key: bool


class NewToken(TokenView):
    """A token with its secret, which is shown once."""

    token: str


class AuditView(View):
    """One change: who changed what, and how."""

    number: int
    at: str
    who: str
    what: str
    subject: str
    before: str | None
    after: str | None


class HealthView(View):
    """Whether the service can answer, with its checks by name."""

    status: Literal["ok", "starting", "stopping", "failing"]
    checks: dict[str, bool] = {}
