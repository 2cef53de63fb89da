"""A client of the decision service that survives its restarts.

A request is repeated where its answer may only be delayed: the connection broke, the service starts
or stops, its disk is full, or too much was requested at once. No decision is made twice by that: it
carries an idempotency key, which the client makes once and sends with every repetition. The service
takes a repeated outcome as one. Changes of policies are repeated only if nothing was done.

    with Client("http://127.0.0.1:8765", token) as client:
        decision = client.decide("thermostat", "cool")
        ...
        client.outcome(decision.decision_id, "comfortable")

A `Client` may be shared by threads. In an ``asyncio`` program call it by ``asyncio.to_thread``.
"""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from pastwise.errors import (
    FileError,
    MissingDependencyError,
    ParameterError,
    ServiceError,
    UnreachableError,
    shown,
)

try:
    import httpx
    import msgspec
except ImportError:
    raise MissingDependencyError(
        "the client of the service needs httpx and msgspec: pip install 'pastwise[client]'"
    ) from None

from pastwise.service.types import (
    DecideRequest,
    DecisionDetail,
    DecisionView,
    JobView,
    OutcomeRequest,
    OutcomeView,
    PolicySettings,
    PolicyView,
    ReplayRequest,
    RollbackRequest,
    RuleView,
    StateValue,
    TakenRequest,
    Value,
    VersionView,
)

T = TypeVar("T")

KEY = re.compile(r"[\x21-\x7e]{1,200}")
"""What can be an idempotency key."""

TOKEN = re.compile(r"[\x21-\x7e]+")
"""What can be a token."""

JSON = {"Content-Type": "application/json"}
FILE = {"Content-Type": "application/octet-stream"}

NOT_DONE = frozenset({429, 503, 507})
"""Statuses by which the service says that it did nothing; the same request may succeed later."""

REPEATED = NOT_DONE | {0, 502, 504}
"""The same, a lost answer (0), and those of proxies, which cannot know."""


class Client:
    """Calls of a decision service, each repeated until it is answered.

    Parameters
    ----------
    url : str
        Where the service listens, such as ``"http://127.0.0.1:8765"``.
    token : str
        A token with the roles that the calls need.
    timeout : float
        Seconds to wait for one answer. A decision takes milliseconds; the default leaves room for a
        busy disk.
    retries : int
        How often a request is repeated at most.
    first_wait : float
        Seconds before the first repetition; each later wait is twice as long. With the defaults the
        client gives up after 13 to 26 seconds, and a service restarts in two.
    longest_wait : float
        If the service requests a longer wait (``Retry-After``), the client gives up at once.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10.0,
        retries: int = 8,
        first_wait: float = 0.1,
        longest_wait: float = 60.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ParameterError(f"url must begin with http:// or https://, got {url!r}")
        self.retries = retries
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        token = token.strip()
        if not TOKEN.fullmatch(token):
            raise ParameterError("token must be one token, such as a line of the file admin.token")
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # Decisions and what followed.

    def decide(
        self,
        policy: str,
        state: StateValue,
        *,
        allowed: Sequence[Value] | None = None,
        episode: str | None = None,
        context: Mapping[str, object] | None = None,
        dry_run: bool = False,
        key: str | None = None,
    ) -> DecisionView:
        """Request a decision.

        Parameters
        ----------
        state : label, number or mapping
            Where the system is: a label of the policy, or raw values.
        allowed : sequence of labels, optional
            The actions that are possible now; all of them by default.
        episode : str, optional
            What the decision belongs to, such as a patient or a day; kept for the log.
        context : mapping, optional
            Kept with the decision and not used, at most 4 KiB.
        dry_run : bool
            Sample an action and store nothing.
        key : str, optional
            Idempotency key: with the same key and body the service returns the same decision, also
            to another process. If your program may ask again after its own restart, derive the key
            from what is decided, such as the number of a job. By default a new one.
        """
        request = DecideRequest(
            state=state,
            allowed=None if allowed is None else list(allowed),
            episode=episode,
            context=None if context is None else dict(context),
            dry_run=dry_run,
        )
        key = uuid.uuid4().hex if key is None else key
        if not (isinstance(key, str) and KEY.fullmatch(key)):
            raise ParameterError(f"key must be 1 to 200 visible ASCII characters, not {shown(key)}")
        headers = {**JSON, "Idempotency-Key": key}
        return self._send("POST", f"{_policy(policy)}/decide", DecisionView, request, headers)

    def outcome(
        self,
        decision_id: str,
        next_state: StateValue | None = None,
        *,
        reward: float | None = None,
        at: str | None = None,
    ) -> OutcomeView:
        """Report what followed a decision: the next state, a reward, or both.

        Parameters
        ----------
        at : str, optional
            When it happened, as text by RFC 3339; kept, not used.
        """
        request = OutcomeRequest(next_state=next_state, reward=reward, at=at)
        return self._send("POST", f"{_decision(decision_id)}/outcome", OutcomeView, request)

    def taken(self, decision_id: str, action: Value, *, by: str) -> DecisionDetail:
        """Report that somebody took another action than the one decided."""
        request = TakenRequest(action=action, by=by)
        return self._send("POST", f"{_decision(decision_id)}/taken", DecisionDetail, request)

    def cancel(self, decision_id: str) -> DecisionDetail:
        """Report that nothing was done, so that no outcome will follow."""
        return self._send("POST", f"{_decision(decision_id)}/cancel", DecisionDetail)

    def decision(self, decision_id: str) -> DecisionDetail:
        """A decision as it is stored, with its outcome."""
        return self._send("GET", _decision(decision_id), DecisionDetail)

    # Policies and their versions.

    def create(self, policy: str, settings: PolicySettings | None = None) -> PolicyView:
        """Make a policy; without a version it does not decide yet."""
        return self._send_once("PUT", _policy(policy), PolicyView, settings or PolicySettings())

    def add_version(self, policy: str, file: str | Path, *, note: str = "") -> VersionView:
        """Upload a policy file as the next version, which is not in use yet."""
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            raise FileError(f"cannot read {file}: {error.strerror}") from error
        path = f"{_policy(policy)}/versions?{httpx.QueryParams({'note': note})}"
        return self._send_once("POST", path, VersionView, content, FILE)

    def change(self, policy: str, **settings: object) -> PolicyView:
        """Change settings, such as ``mode="live"`` or ``version=2``.

        If somebody else changes them at the same moment, this raises with the slug ``stale`` and
        changes nothing.
        """
        current = self.policy(policy)
        headers = {**JSON, "If-Match": f'"{current.etag}"'}
        return self._send_once("PATCH", _policy(policy), PolicyView, settings, headers)

    def rollback(self, policy: str, to: int, *, reason: str = "") -> PolicyView:
        """Return to an older version, which continues from what it had learned."""
        request = RollbackRequest(to=to, reason=reason)
        return self._send_once("POST", f"{_policy(policy)}/rollback", PolicyView, request)

    def policy(self, policy: str) -> PolicyView:
        """Settings of a policy, the version in use and its evidence."""
        return self._send("GET", _policy(policy), PolicyView)

    def rule(self, policy: str, state: StateValue) -> RuleView:
        """Probability of each action in a state; no decision is made."""
        text = state if isinstance(state, str) else _encoded(state).decode()
        path = f"{_policy(policy)}/rule?{httpx.QueryParams({'state': text})}"
        return self._send("GET", path, RuleView)

    def monitor(self, policy: str) -> dict[str, object]:
        """Decisions, outcomes, share of time as wanted, and whether the world has changed."""
        return self._send("GET", f"{_policy(policy)}/monitor", dict[str, object])

    # Jobs: work of the service in the background.

    def replay(self, policy: str) -> JobView:
        """Start to prove that the stored events lead to the decisions that were made."""
        request = ReplayRequest()
        return self._send_once("POST", f"{_policy(policy)}/replay", JobView, request)

    def finished(self, job: str, *, every: float = 0.2) -> JobView:
        """Wait for the end of a job; look ``every`` so many seconds."""
        while True:
            view = self._send("GET", f"/v1/jobs/{_quoted(job)}", JobView)
            if view.state not in ("queued", "running"):
                return view
            time.sleep(every)

    # Transport.

    def _send(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: object = None,
        headers: Mapping[str, str] = JSON,
        repeated: Set[int] = REPEATED,
    ) -> T:
        """Send a request until it is answered; return the answer, or raise what is wrong.

        Parameters
        ----------
        repeated : set of int
            Statuses after which the request is sent again; 0 is that of a lost answer.
        """
        content = body if isinstance(body, bytes) else None
        if body is not None and content is None:
            content = _encoded(body)

        attempt = 0
        while True:
            try:
                answer = self._attempt(method, path, content, headers)
            except ServiceError as error:
                wait = self._wait(error, attempt)
                if wait is None or error.status not in repeated:
                    raise
                time.sleep(wait)
                attempt += 1
            else:
                return msgspec.json.decode(answer, type=kind)

    def _send_once(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: object,
        headers: Mapping[str, str] = JSON,
    ) -> T:
        """Send a request that has an effect each time: it is repeated only if it had none."""
        return self._send(method, path, kind, body, headers, NOT_DONE)

    def _attempt(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        """Send a request once; return the body of its answer."""
        try:
            response = self._http.request(method, path, content=content, headers=headers)
        except (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError) as error:
            raise UnreachableError(
                f"{self._http.base_url} does not answer ({type(error).__name__}: {error}); "
                "is the service running?"
            ) from error
        if response.is_success:
            return response.content
        raise _error_of(response)

    def _wait(self, error: ServiceError, attempt: int) -> float | None:
        """Seconds until the next attempt; None if there should be none."""
        # A policy that an operator paused stays so for longer than a program should wait.
        if attempt == self.retries or error.slug == "paused":
            return None
        if error.retry_after > self.longest_wait:
            return None

        # Clients that were cut off together do not come back together.
        backoff = self.first_wait * 2.0**attempt * random.uniform(0.5, 1.0)
        return max(backoff, error.retry_after)


def _encoded(body: object) -> bytes:
    """A body as JSON."""
    return msgspec.json.encode(body, enc_hook=_plain)


def _policy(name: str) -> str:
    return f"/v1/policies/{_quoted(name)}"


def _decision(decision_id: str) -> str:
    return f"/v1/decisions/{_quoted(decision_id)}"


def _quoted(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")


def _plain(value: object) -> object:
    """A NumPy scalar as a number of Python."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} cannot be sent: {value!r}")
    return item()


def _error_of(response: httpx.Response) -> ServiceError:
    """The problem in an answer; one without is somebody else's, such as a proxy's."""
    members: dict[str, object] = {}
    if response.headers.get("Content-Type", "").startswith("application/problem+json"):
        members = msgspec.json.decode(response.content, type=dict[str, object])
    title = str(members.get("title", response.reason_phrase))
    detail = str(members.get("detail", ""))
    message = detail if detail.startswith(title) else f"{title}: {detail}"
    return ServiceError(
        message if detail else title,
        status=response.status_code,
        slug=str(members.get("type", "")).rpartition("/")[2],
        members=members,
        retry_after=_seconds(response.headers.get("Retry-After", "")),
    )


def _seconds(text: str) -> float:
    """``Retry-After`` in seconds; 0 if there is none, or a date."""
    return float(text) if text.isdigit() else 0.0
