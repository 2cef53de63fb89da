"""Every address of the workbench, next to those of the service."""

from __future__ import annotations

from pastwise.service.calls import OCTETS, POLICY, Operation
from pastwise.service.queries import PageQuery, VersionQuery
from pastwise.service.routes import OPERATIONS as SERVICE
from pastwise.service.types import JobView, Page, ReplayView, VersionView
from pastwise.workbench import handlers_drafts as on_drafts
from pastwise.workbench import handlers_projects as on_projects
from pastwise.workbench import handlers_session as on_session
from pastwise.workbench import handlers_versions as on_versions
from pastwise.workbench.types import (
    CountsView,
    OrderRequest,
    OrderView,
    ProjectRequest,
    ProjectSummary,
    ProjectView,
    SessionQuery,
    SessionRequest,
    SessionView,
)
from pastwise.workbench.types_drafts import (
    ComparisonRequest,
    ComparisonResult,
    DraftEvaluationRequest,
    DraftPatch,
    DraftRequest,
    DraftVersionRequest,
    DraftView,
    ExplainQuery,
    ProbeRequest,
    ProbeResult,
)
from pastwise.workbench.types_log import DryRunQuery, Mapping, MappingView, RowsQuery, RowsView
from pastwise.workbench.types_preview import (
    ExplanationView,
    PreviewRequest,
    PreviewView,
    VerdictView,
)

PROJECT = "/v1/projects/{id}"
COUNTS = "/v1/counts/{id}"
DRAFT = "/v1/drafts/{id}"
VERSIONS = f"{POLICY}/versions"
VERSION = f"{VERSIONS}/{{version}}"

SESSION = (
    Operation(
        "POST",
        "/v1/session",
        on_session.start_session,
        "Exchange the key of the address for a cookie; a key works once.",
        role=None,
        rate=None,
        body=SessionRequest,
        answer=SessionView,
        status=201,
        problems=("session-refused",),
    ),
    Operation(
        "GET",
        "/v1/session",
        on_session.session,
        "Look up what this workbench is, and what a page shows first.",
        query=SessionQuery,
        answer=SessionView,
        is_policy_bound=False,
    ),
)

PREVIEWS = (
    Operation(
        "POST",
        f"{COUNTS}/preview",
        on_drafts.preview,
        "Learn a policy for a goal; nothing is stored.",
        role="edit",
        rate=None,
        body=PreviewRequest,
        answer=PreviewView,
        is_policy_bound=False,
        problems=("impossible-goal", "unknown-label", "invalid-value", "superseded"),
    ),
)

PROJECTS = (
    Operation(
        "GET",
        "/v1/projects",
        on_projects.projects,
        "List logs, those changed last first.",
        query=PageQuery,
        answer=Page[ProjectSummary],
        is_policy_bound=False,
    ),
    Operation(
        "POST",
        "/v1/projects",
        on_projects.create_project,
        "Open a log: a path below the root, a sample, or an uploaded log.",
        role="edit",
        rate="write",
        body=ProjectRequest,
        answer=ProjectView,
        status=201,
        is_policy_bound=False,
        problems=("path-refused", "not-found", "unsupported-kind", "nothing-to-learn"),
    ),
    Operation(
        "GET",
        PROJECT,
        on_projects.project,
        "Look up a log: its columns, and what has been made of it.",
        answer=ProjectView,
        is_policy_bound=False,
    ),
    Operation(
        "DELETE",
        PROJECT,
        on_projects.delete_project,
        "Forget a log, with its counts and drafts.",
        role="edit",
        rate="write",
        status=204,
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        f"{PROJECT}/rows",
        on_projects.rows,
        "Look at rows of a log, with the next state of each.",
        query=RowsQuery,
        answer=RowsView,
        is_policy_bound=False,
        problems=("nothing-to-learn", "unknown-column", "invalid-value"),
    ),
    Operation(
        "POST",
        f"{PROJECT}/mapping",
        on_projects.map_columns,
        "Read a log by a mapping of its columns; unless it is a dry run, count it.",
        role="edit",
        rate=None,
        body=Mapping,
        query=DryRunQuery,
        answer=MappingView,
        status=201,
        is_policy_bound=False,
        problems=("unknown-column", "nothing-to-learn", "invalid-value", "job-over-time"),
    ),
    Operation(
        "PUT",
        f"{PROJECT}/order",
        on_projects.set_order,
        "Choose the order in which states and actions are shown.",
        role="edit",
        rate="write",
        body=OrderRequest,
        answer=OrderView,
        is_policy_bound=False,
    ),
    Operation(
        "POST",
        f"{PROJECT}/probes",
        on_drafts.probe,
        "Start a job: ask again with more columns in the state.",
        role="edit",
        rate="write",
        body=ProbeRequest,
        answer=JobView,
        status=202,
        is_policy_bound=False,
        problems=("too-many-jobs", "nothing-to-learn", "impossible-goal"),
    ),
    Operation(
        "GET",
        COUNTS,
        on_projects.counts,
        "Look up counts, with all that TL's rule needs.",
        answer=CountsView,
        is_policy_bound=False,
    ),
)

DRAFTS = (
    Operation(
        "POST",
        f"{COUNTS}/drafts",
        on_drafts.create_draft,
        "Save a policy.",
        role="edit",
        rate="write",
        body=DraftRequest,
        answer=DraftView,
        status=201,
        is_policy_bound=False,
        problems=("impossible-goal", "unknown-label"),
    ),
    Operation(
        "GET",
        DRAFT,
        on_drafts.draft,
        "Look up a saved policy, with every verdict on it.",
        answer=DraftView,
        is_policy_bound=False,
    ),
    Operation(
        "PATCH",
        DRAFT,
        on_drafts.change_draft,
        "Change a saved policy; another goal or method drops its verdicts.",
        role="edit",
        rate="write",
        body=DraftPatch,
        answer=DraftView,
        is_policy_bound=False,
        problems=("stale", "precondition-required", "impossible-goal", "unknown-label"),
    ),
    Operation(
        "DELETE",
        DRAFT,
        on_drafts.delete_draft,
        "Forget a saved policy; versions that were made of it stay.",
        role="edit",
        rate="write",
        status=204,
        is_policy_bound=False,
        problems=("stale", "precondition-required"),
    ),
    Operation(
        "GET",
        f"{DRAFT}/explain",
        on_drafts.explain,
        "Explain the probabilities of a state by the records behind them.",
        query=ExplainQuery,
        answer=ExplanationView,
        is_policy_bound=False,
        problems=("unknown-label",),
    ),
    Operation(
        "POST",
        f"{DRAFT}/evaluations",
        on_drafts.evaluate_draft,
        "Start a job: whether a saved policy is better than what was done.",
        role="edit",
        rate="write",
        body=DraftEvaluationRequest,
        answer=JobView,
        status=202,
        is_policy_bound=False,
        problems=("too-many-jobs", "nothing-to-learn", "impossible-goal"),
    ),
    Operation(
        "POST",
        "/v1/comparisons",
        on_drafts.compare,
        "Start a job: judge saved policies by goals, on the same sampled models.",
        role="edit",
        rate="write",
        body=ComparisonRequest,
        answer=JobView,
        status=202,
        is_policy_bound=False,
        problems=("too-many-jobs", "not-found", "impossible-goal"),
    ),
    Operation(
        "GET",
        f"{DRAFT}/report.html",
        on_drafts.draft_report,
        "Read the report of a saved policy, for the person who signs it off.",
        answer=on_drafts.HTML,
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        f"{DRAFT}/artefact",
        on_drafts.draft_artefact,
        "Download the policy file of a saved policy.",
        answer=OCTETS,
        is_policy_bound=False,
    ),
    Operation(
        "POST",
        VERSIONS,
        on_drafts.add_version_of_draft,
        "Add a policy file, or a saved policy, as the next version.",
        role="deploy",
        rate="write",
        body="upload",
        or_json=DraftVersionRequest,
        query=VersionQuery,
        answer=VersionView,
        status=201,
        problems=("policy-file-refused", "too-large"),
    ),
)

FILES = (
    Operation(
        "GET",
        f"{VERSION}/report.html",
        on_versions.version_report,
        "Read the report of a version, for the person who signs it off.",
        answer=on_drafts.HTML,
    ),
    Operation(
        "GET",
        f"{VERSION}/card.md",
        on_versions.version_card,
        "Download the policy card of a version.",
        answer=on_versions.MARKDOWN,
    ),
    Operation(
        "GET",
        f"{VERSION}/goal.json",
        on_versions.version_goal,
        "Download the goal of a version.",
        answer=on_versions.GOAL,
    ),
)

WORKBENCH: tuple[Operation, ...] = (*SESSION, *PREVIEWS, *PROJECTS, *DRAFTS, *FILES)
"""What the workbench adds to the service."""

_ADDRESSES = {(operation.method, operation.path) for operation in WORKBENCH}

ALL_OPERATIONS: tuple[Operation, ...] = (
    *(each for each in SERVICE if (each.method, each.path) not in _ADDRESSES),
    *WORKBENCH,
)
"""All operations of a workbench; its own take the place of the service's at the same address."""

RESULTS = (VerdictView, ComparisonResult, ProbeResult, ReplayView)
"""Types of the results of jobs, which the OpenAPI document describes as well."""
