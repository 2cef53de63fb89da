"""The session of a workbench: a key in the address is exchanged once for a cookie.

`pastwise workbench` prints an address with a key in its fragment, which browsers do not send. The
page sends the key in a request of its own and gets a cookie that scripts cannot read and other
sites cannot use. The key is then of no use any more, so an address in somebody's history opens
nothing.

A session outlasts the process, so that a page goes on after a restart: digests of the secrets are
kept next to the data, which hold a token anyway. It ends with its browser, which forgets the
cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from pastwise._files import private_files, replacing
from pastwise.service.calls import JSON, OCTETS, Call
from pastwise.service.problems import Problem
from pastwise.service.tokens import Holder

COOKIE = "pastwise_session"

HOLDER = Holder("workbench", "workbench", frozenset({"admin"}))
"""Who calls with a cookie: the person who started the workbench, who may do everything."""

BODY_KINDS = (JSON, OCTETS.encode())
"""Kinds of bodies that a form of another site cannot send."""


MOST_SESSIONS = 100
"""Sessions that are remembered, the newest: far more than one person has browsers."""


class Sessions:
    """Keys that wait for their browser, and the sessions that came of them.

    Parameters
    ----------
    file : Path
        Where digests of sessions are kept.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._keys: set[bytes] = set()
        self._sessions = _read(file)

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
        self._sessions = [*self._sessions, _digest(secret)][-MOST_SESSIONS:]
        _write(self._file, self._sessions)
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


def _read(file: Path) -> list[bytes]:
    """Digests of a file; none if there is no such file, or another one of that name."""
    try:
        return [bytes.fromhex(line) for line in file.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []


def _write(file: Path, digests: Sequence[bytes]) -> None:
    with private_files(), replacing(file) as temporary:
        temporary.write_text("".join(f"{each.hex()}\n" for each in digests), encoding="ascii")


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
