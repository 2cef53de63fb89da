"""Errors of the service as problem details (RFC 9457).

Each kind of problem has a stable slug. ``/problems/{slug}`` serves its explanation; the ``type`` of
an answer is that address. Errors of the library become problems by `problem_of`.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from pastwise.errors import (
    ConditionError,
    FileError,
    GoalError,
    InfeasibleError,
    LabelError,
    LogError,
    MissingDependencyError,
    NotFittedError,
    ParameterError,
    PastwiseError,
    PolicyFileError,
    UnknownColumnError,
    UnknownLabelError,
    shortened,
)


class ProblemKind(NamedTuple):
    """A kind of problem: its status, its title, and what a reader should do about it."""

    status: int
    title: str
    explanation: str


PROBLEMS: dict[str, ProblemKind] = {
    "malformed": ProblemKind(
        400,
        "the request cannot be read",
        "The body is not JSON in UTF-8, is nested too deeply, or a header or a query parameter "
        "cannot be read. The detail says where.",
    ),
    "length-mismatch": ProblemKind(
        400,
        "the body is not as long as announced",
        "More or fewer bytes arrived than Content-Length announced. Send the file again.",
    ),
    "idempotency-key-missing": ProblemKind(
        400,
        "this token needs an idempotency key",
        "The token was made to require a header Idempotency-Key with every decision. Send a key "
        "of your own, such as a UUID, and reuse it when you repeat the request.",
    ),
    "token-missing": ProblemKind(
        401, "no token", "Send the header `Authorization: Bearer pw_...` with every request."
    ),
    "token-invalid": ProblemKind(
        401,
        "the token is not valid",
        "The token is unknown, was deleted, or has expired. Ask an administrator for a new one.",
    ),
    "role-missing": ProblemKind(
        403,
        "the token does not have the role",
        "The route needs a role that the token does not have, or the token is bound to other "
        "policies. The member `role` names the role.",
    ),
    "host-refused": ProblemKind(
        403,
        "the name of the host is refused",
        "The header Host names a host that this service does not answer to. Start the service "
        "with --host-name to add a name.",
    ),
    "origin-refused": ProblemKind(
        403,
        "the origin is refused",
        "A page of another site sent this request. Start the service with --allow-origin if "
        "pages of that origin may use it with a token.",
    ),
    "session-refused": ProblemKind(
        401,
        "the key of the address is not valid",
        "A key works once, for the browser that opens it first. Start the workbench again, or "
        "open the address that it printed last.",
    ),
    "path-refused": ProblemKind(
        403,
        "the path is outside the folder of the workbench",
        "The workbench opens files below its root only, links included. Start it with --root to "
        "choose another folder.",
    ),
    "not-found": ProblemKind(404, "not found", "Nothing has this address or this id."),
    "method-not-allowed": ProblemKind(
        405, "the method is not allowed", "The header Allow lists the methods of this address."
    ),
    "too-slow": ProblemKind(
        408, "the request came too slowly", "The body did not arrive in time. Send it again."
    ),
    "outcome-conflict": ProblemKind(
        409,
        "another outcome was reported before",
        "A decision has one outcome. The first one stays; this one is kept as an event. Correct "
        "the log and learn a new version if the first was wrong.",
    ),
    "decision-cancelled": ProblemKind(
        409,
        "the decision was cancelled",
        "A cancelled decision has no outcome, since nothing was done.",
    ),
    "decision-closed": ProblemKind(
        409,
        "the decision is closed",
        "Its outcome is known, late or missing, so it can no longer be cancelled or corrected.",
    ),
    "name-taken": ProblemKind(
        409, "the name is taken", "Another policy has this name. Choose another name."
    ),
    "no-version": ProblemKind(
        409,
        "the policy has no version",
        "Upload a policy file with POST /v1/policies/{name}/versions, then set `version`.",
    ),
    "superseded": ProblemKind(
        409,
        "a newer request took its place",
        "Previews are answered one at a time, and the newest one counts.",
    ),
    "gone": ProblemKind(
        410,
        "gone",
        "It existed and was removed after its retention. The exported Parquet files have it.",
    ),
    "stale": ProblemKind(
        412,
        "it was changed in between",
        "The ETag in If-Match is not the current one. Read it again, and repeat the change.",
    ),
    "too-large": ProblemKind(
        413,
        "the request is too large",
        "The detail names the limit, and the option that sets it.",
    ),
    "unsupported-kind": ProblemKind(
        415,
        "the kind of content is not supported",
        "Bodies are JSON without Content-Encoding; uploads are CSV, Parquet or policy files, "
        "recognised by their content.",
    ),
    "unknown-label": ProblemKind(
        422,
        "unknown label",
        "A state or action is not among those of the version. `near` lists similar ones.",
    ),
    "unknown-column": ProblemKind(
        422,
        "unknown column",
        "The log has no column of this name. `near` lists similar ones.",
    ),
    "invalid-label": ProblemKind(
        422, "a value cannot be a label", "The detail says which value, and what is possible."
    ),
    "unknown-member": ProblemKind(
        422, "unknown member", "The body has a member that this request does not have."
    ),
    "invalid-value": ProblemKind(
        422,
        "a value is not valid",
        "A member is missing, has the wrong type, or is out of range. `errors` points to it.",
    ),
    "impossible-goal": ProblemKind(
        422,
        "the goal cannot be met",
        "The goal contradicts itself, or every action that is allowed may lead to what it forbids.",
    ),
    "after-terminal": ProblemKind(
        422,
        "an episode has ended in this state",
        "The state is terminal in the log of this policy, so there is nothing to decide.",
    ),
    "nothing-to-learn": ProblemKind(
        422,
        "nothing can be learned from the log",
        "The log cannot be read or counted as requested. The detail says why.",
    ),
    "policy-file-refused": ProblemKind(
        422,
        "the policy file is refused",
        "The file is damaged, foreign, of a newer format, or of a kind that cannot be served.",
    ),
    "idempotency-key-reused": ProblemKind(
        422,
        "the idempotency key was used for another request",
        "A key belongs to one request of one token and policy. Use a new key for a new request.",
    ),
    "refused-before": ProblemKind(
        422,
        "the item was refused before",
        "A batch is decided once for its idempotency key, and this item was refused then. Today it "
        "would be decided: send it again with a new key.",
    ),
    "precondition-required": ProblemKind(
        428,
        "If-Match is required",
        "Read the resource, and send its ETag as If-Match with the change.",
    ),
    "rate-limited": ProblemKind(
        429,
        "too many requests",
        "The token's rate is used up. Repeat after the seconds in Retry-After.",
    ),
    "too-many-jobs": ProblemKind(
        429, "too many jobs", "The queue of jobs is full. Wait, or stop one with DELETE."
    ),
    "job-over-time": ProblemKind(
        422,
        "the job took too long",
        "The job was stopped at its time limit. `partial` has what was known by then; request "
        "fewer samples, or a shorter time of decisions.",
    ),
    "job-out-of-memory": ProblemKind(
        422,
        "the job needs too much memory",
        "Use fewer states, fewer columns, or a shorter time of decisions.",
    ),
    "bug": ProblemKind(
        500,
        "a bug in pastwise",
        "The journal of the service has the details under the request id of the answer.",
    ),
    "job-died": ProblemKind(
        500,
        "the job ended without a result",
        "The service was restarted, or the process of the job was killed. Submit the job again.",
    ),
    "missing-library": ProblemKind(
        501,
        "an optional library is not installed",
        "The detail names the extra that the operator of the service must install.",
    ),
    "paused": ProblemKind(
        503, "the policy is paused", "An operator paused the policy. Set its mode to resume."
    ),
    "starting": ProblemKind(
        503, "the service is starting", "It is reading its store. Repeat in a second."
    ),
    "stopping": ProblemKind(
        503, "the service is stopping", "It finishes what is under way. Repeat elsewhere or later."
    ),
    "not-leader": ProblemKind(
        503,
        "another process serves this policy",
        "With PostgreSQL one process leads a policy. `leader` has its address if it is known.",
    ),
    "store-unavailable": ProblemKind(
        503,
        "the store is not available",
        "Nothing is decided until what was decided before is safely stored. Repeat later with "
        "the same idempotency key.",
    ),
    "disk-full": ProblemKind(
        507,
        "the disk is full",
        "Nothing is decided until there is space again. Repeat later with the same key.",
    ),
}
"""All kinds of problems by slug."""


class ProblemPart(Struct, frozen=True, omit_defaults=True):
    """One part of a request that is wrong.

    Attributes
    ----------
    pointer : str
        JSON pointer into the body (RFC 6901); empty for the whole.
    code : str
        Slug of what is wrong with this part.
    near : tuple of str
        Known labels that are similar.
    """

    pointer: str
    code: str
    detail: str
    near: tuple[str, ...] = ()


class Problem(Exception):
    """A problem as it is answered.

    Parameters
    ----------
    slug : str
        A key of `PROBLEMS`.
    detail : str
        What is wrong here, and what to do.
    errors : sequence of ProblemPart
        Parts of the request that are wrong.
    extra : mapping, optional
        More members of the answer.
    headers : mapping, optional
        More headers of the answer.
    title : str, optional
        Instead of the kind's title, such as the one that quotes the label.
    """

    def __init__(
        self,
        slug: str,
        detail: str = "",
        *,
        errors: Sequence[ProblemPart] = (),
        extra: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        title: str = "",
    ) -> None:
        kind = PROBLEMS[slug]
        self.slug = slug
        self.status = kind.status
        self.title = title or kind.title
        self.detail = shortened(detail)
        self.errors = list(errors)
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})
        super().__init__(detail or self.title)

    def to_dict(self, instance: str = "", request_id: str = "") -> dict[str, object]:
        """Members of the answer (RFC 9457)."""
        body: dict[str, object] = {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
        }
        if self.detail:
            body["detail"] = self.detail
        if instance:
            body["instance"] = instance
        if self.errors:
            body["errors"] = self.errors
        if request_id:
            body["request_id"] = request_id
        return {**self.extra, **body}


# The first class that an error is an instance of decides.
_SLUGS: tuple[tuple[type[Exception], str], ...] = (
    (UnknownLabelError, "unknown-label"),
    (LabelError, "invalid-label"),
    (InfeasibleError, "impossible-goal"),
    (ConditionError, "invalid-value"),
    (GoalError, "impossible-goal"),
    (UnknownColumnError, "unknown-column"),
    (LogError, "nothing-to-learn"),
    (PolicyFileError, "policy-file-refused"),
    (NotFittedError, "policy-file-refused"),
    (MissingDependencyError, "missing-library"),
    (ParameterError, "invalid-value"),
)


def problem_of(error: Exception, pointer: str = "") -> Problem:
    """An error as a problem; one that is not the user's is a ``bug`` and keeps its text to itself.

    Parameters
    ----------
    pointer : str
        JSON pointer to the part of the body that caused the error, if it is known.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnknownLabelError):
        return _unknown_label(error, pointer)
    if isinstance(error, FileError | OSError):
        return _storage(error)
    if not isinstance(error, PastwiseError):
        return Problem("bug")

    slug = next((slug for kind, slug in _SLUGS if isinstance(error, kind)), "bug")
    detail = str(error)
    near = error.near if isinstance(error, UnknownColumnError) else ()
    parts = [ProblemPart(pointer, slug, detail, near)] if pointer or near else []
    return Problem(slug, detail, errors=parts)


def _unknown_label(error: UnknownLabelError, pointer: str) -> Problem:
    """A problem that lists the labels near an unknown one."""
    suggestion = error.suggest()
    if suggestion is None:
        near: tuple[str, ...] = ()
    elif isinstance(suggestion, str):
        near = (suggestion,)
    else:
        near = tuple(suggestion)
    detail = str(error)
    part = ProblemPart(pointer, "unknown-label", detail, near)
    return Problem("unknown-label", detail, errors=[part])


def _storage(error: OSError) -> Problem:
    """A failure of a file or of the disk."""
    if getattr(error, "full", False) or error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem("disk-full", str(error))
    return Problem("store-unavailable", str(error))
