"""Tokens: who may do what.

A token is ``pw_`` and 43 characters of 256 random bits; only its SHA-256 is stored. Tokens are
found by the first bytes of their hash, and the whole hash is compared in constant time.
Administrators' tokens come from a file, all others from the store.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from pastwise.errors import FileError, ParameterError
from pastwise.service.problems import Problem
from pastwise.service.store.rows import TokenRow
from pastwise.service.types import Role, TokenView
from pastwise.service.views import time_text

PREFIX = "pw_"

ROLES: tuple[Role, ...] = ("read", "decide", "outcome", "edit", "deploy", "admin")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a token, and what it allows.

    Attributes
    ----------
    policies : frozenset, optional
        The policies that the token is bound to; None for all.
    expires : int, optional
        Milliseconds since 1970.
    """

    id: str
    name: str
    roles: frozenset[str]
    policies: frozenset[str] | None = None
    expires: int | None = None
    needs_key: bool = False

    def require(self, role: str, policy: str | None = None) -> None:
        """Refuse what the token does not allow."""
        if role not in self.roles and "admin" not in self.roles:
            raise Problem(
                "role-missing",
                f"This needs a token with the role {role}.",
                extra={"role": role},
            )
        if policy is not None and not self.may_use(policy):
            raise Problem(
                "role-missing",
                f"The token is bound to other policies than {policy!r}.",
                extra={"role": role},
            )

    def may_use(self, policy: str) -> bool:
        """Whether the token is for this policy, too."""
        return self.policies is None or policy in self.policies


_NOBODY = (bytes(32), Holder("", "", frozenset()))


class Tokens:
    """All tokens by hash.

    Parameters
    ----------
    read : callable
        Returns the rows of the store.
    administrators : iterable of str
        Secrets of the token file.
    clock : callable
        Milliseconds since 1970.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[TokenRow]],
        administrators: Iterable[str],
        clock: Callable[[], int],
    ) -> None:
        self._read = read
        self._clock = clock
        self._administrators: dict[bytes, tuple[bytes, Holder]] = {}
        for secret in administrators:
            digest = hash_of(secret)
            self._administrators[digest[:8]] = (digest, _administrator(secret))
        self._holders = dict(self._administrators)
        self.used: dict[str, int] = {}

    def refresh(self) -> None:
        """Read the tokens of the store again: another process may have changed them."""
        holders = dict(self._administrators)
        for row in self._read():
            holders[row.hash[:8]] = (row.hash, holder_of(row))
        self._holders = holders

    def ids(self) -> set[str]:
        """Ids of all tokens."""
        return {holder.id for _, holder in self._holders.values()}

    def holder(self, authorization: bytes | None) -> Holder:
        """Who sent a header ``Authorization``."""
        if authorization is None:
            raise _refusal("token-missing", "Send the header Authorization: Bearer pw_...")
        scheme, _, secret = authorization.partition(b" ")
        if scheme.lower() != b"bearer" or not secret:
            raise _refusal("token-missing", "The header Authorization must be: Bearer pw_...")

        digest = hashlib.sha256(secret).digest()
        known, holder = self._holders.get(digest[:8], _NOBODY)
        if not hmac.compare_digest(known, digest):
            raise _refusal("token-invalid", "The token is unknown, or was deleted.")
        now = self._clock()
        if holder.expires is not None and now >= holder.expires:
            raise _refusal("token-invalid", f"The token expired at {time_text(holder.expires)}.")
        self.used[holder.id] = now
        return holder


def _refusal(slug: str, detail: str) -> Problem:
    return Problem(slug, detail, headers={"WWW-Authenticate": 'Bearer realm="pastwise"'})


def new_secret() -> str:
    """A new token."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(secret.encode()).digest()


def _administrator(secret: str) -> Holder:
    """Holder of a token of the token file; a few digits of its hash name it in the audit trail."""
    name = f"admin-{hash_of(secret).hex()[:8]}"
    return Holder(name, name, frozenset({"admin"}))


def holder_of(row: TokenRow) -> Holder:
    """Holder of a stored token."""
    return Holder(
        id=row.id,
        name=row.name,
        roles=frozenset(json.loads(row.roles)),
        policies=None if row.policies is None else frozenset(json.loads(row.policies)),
        expires=row.expires,
        needs_key=bool(row.needs_key),
    )


def view_of(row: TokenRow) -> TokenView:
    """A token as it is shown: without its hash."""
    return TokenView(
        id=row.id,
        name=row.name,
        roles=json.loads(row.roles),
        policies=None if row.policies is None else json.loads(row.policies),
        created=time_text(row.created),
        used=None if row.used is None else time_text(row.used),
        expires=None if row.expires is None else time_text(row.expires),
        needs_key=bool(row.needs_key),
    )


def read_token_file(path: Path) -> list[str]:
    """Secrets of a token file, one a line; the file is made with a new one if there is none."""
    if not path.exists():
        try:
            _write_token_file(path)
        except OSError as error:
            raise FileError(f"cannot write the token file {path}: {error.strerror}") from error

    try:
        lines = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read the token file {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if len(line) < 20:
            raise ParameterError(
                f"token {number} of {path} is shorter than 20 characters; delete the file and "
                "start again to have one made"
            )
    if not lines:
        raise ParameterError(f"{path} has no token; delete it and start again to have one made")
    return lines


def _write_token_file(path: Path) -> None:
    """Make a token file for its owner only; it has its name as soon as it is complete."""
    descriptor, unfinished = mkstemp(prefix=".token-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(new_secret() + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(path)
    except OSError:
        Path(unfinished).unlink()
        raise
