"""The session of a workbench: a key in the address is exchanged once for a cookie.

`pastwise workbench` prints an address with a key in its fragment, which browsers do not send. The
page sends the key in a request of its own and gets a cookie that scripts cannot read and other
sites cannot use. The key is then of no use any more, so an address in somebody's history opens
nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

from pastwise.service.calls import JSON, OCTETS, Call
from pastwise.service.problems import Problem
from pastwise.service.tokens import Holder

COOKIE = "pastwise_session"

HOLDER = Holder("workbench", "workbench", frozenset({"admin"}))
"""Who calls with a cookie: the person who started the workbench, who may do everything."""

BODY_KINDS = (JSON, OCTETS.encode())
"""Kinds of bodies that a form of another site cannot send."""


class Sessions:
    """Keys that wait for their browser, and the sessions that came of them."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._sessions: set[bytes] = set()

    def new_key(self) -> str:
        """A key for one browser."""
        key = secrets.token_urlsafe(32)
        self._keys.add(_digest(key))
        return key

    def exchange(self, key: str) -> str:
        """The secret of a new session for a key, which is then used up."""
        sent = _digest(key)
        known = next((each for each in self._keys if hmac.compare_digest(each, sent)), None)
        if known is None:
            raise Problem(
                "session-refused",
                "The key is unknown, or was used before; start the workbench again for a new one.",
            )
        self._keys.discard(known)
        secret = secrets.token_urlsafe(32)
        self._sessions.add(_digest(secret))
        return secret

    def holder(self, call: Call) -> Holder | None:
        """Who sent a request with a cookie; None without a cookie of a known session."""
        secret = cookie_of(call)
        if secret is None:
            return None
        sent = _digest(secret)
        if not any(hmac.compare_digest(each, sent) for each in self._sessions):
            return None
        _require_kind(call)
        return HOLDER


def cookie_of(call: Call) -> str | None:
    """The secret in the cookie of a request."""
    header = call.header(b"cookie")
    if header is None:
        return None
    try:
        found = SimpleCookie(header).get(_name(call))
    except CookieError:
        return None
    return None if found is None else found.value


def set_cookie(call: Call, secret: str) -> tuple[bytes, bytes]:
    """The header that gives a browser its cookie."""
    text = f"{_name(call)}={secret}; Path=/; HttpOnly; SameSite=Strict"
    return (b"set-cookie", text.encode("ascii"))


def _name(call: Call) -> str:
    """Name of the cookie. Cookies know no ports: two workbenches on one machine need two names."""
    return f"{COOKIE}_{call.service.settings.port}"


def _require_kind(call: Call) -> None:
    """Refuse changes whose body a form could have sent; other methods no form can send."""
    if call.scope["method"] != "POST":
        return
    kind = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind not in BODY_KINDS:
        raise Problem(
            "unsupported-kind",
            "A session sends Content-Type: application/json, or application/octet-stream for "
            "uploads.",
        )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
