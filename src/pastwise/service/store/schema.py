"""Tables of the store, and how a store of an older schema becomes one of today's.

One text serves both databases; a `Dialect` fills in what they call differently. A schema is never
edited once it was released: a change is one more entry of `MIGRATIONS`, which only goes forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Dialect(NamedTuple):
    """Names that differ between databases.

    Attributes
    ----------
    integer, real, blob : str
        Types of 64-bit integers, 64-bit floats and bytes.
    counter : str
        Type of a key that the database numbers.
    options : str
        What follows the columns of a table.
    clustered : str
        The same, for narrow tables that are kept in the order of their key.
    """

    integer: str
    real: str
    blob: str
    counter: str
    options: str
    clustered: str


SQLITE = Dialect(
    integer="integer",
    real="real",
    blob="blob",
    counter="integer primary key autoincrement",
    options=" strict",
    clustered=" strict, without rowid",
)

POSTGRES = Dialect(
    integer="bigint",
    real="double precision",
    blob="bytea",
    counter="bigint generated always as identity primary key",
    options="",
    clustered="",
)

FIRST = """
create table policy (
    policy text primary key,
    settings text not null,
    etag {integer} not null,
    created {integer} not null
){options};
create table version (
    policy text not null,
    version {integer} not null,
    sha256 text not null,
    artefact {blob} not null,
    seed {blob} not null,
    note text not null,
    despite text not null,
    who text not null,
    at {integer} not null,
    primary key (policy, version)
){options};
create table decision (
    policy text not null,
    seq {integer} not null,
    id text not null unique,
    version {integer} not null,
    evidence {integer} not null,
    state text not null,
    features text,
    action text not null,
    propensity {real} not null,
    allowed text,
    floor {real} not null,
    mode text not null,
    episode text,
    context text,
    token text not null,
    key text,
    digest {blob},
    at {integer} not null,
    due {integer} not null,
    status text not null,
    taken text,
    taken_by text,
    primary key (policy, seq)
){options};
create unique index decision_key on decision (policy, token, key) where key is not null;
create index decision_due on decision (policy, due, status)
    where status in ('open', 'waiting');
create index decision_unusual on decision (policy, status, seq)
    where status in ('cancelled', 'late', 'missing', 'new-label');
create index decision_at on decision (policy, at);
create table outcome (
    policy text not null,
    seq {integer} not null,
    decision text not null unique,
    next_state text,
    reward {real},
    status text not null,
    evidence {integer} not null,
    token text not null,
    at {integer} not null,
    reported_at {integer},
    primary key (policy, seq)
){clustered};
create table event (
    policy text not null,
    seq {integer} not null,
    kind text not null,
    decision text,
    body text not null,
    at {integer} not null,
    primary key (policy, seq)
){clustered};
create index event_decision on event (decision) where decision is not null;
create table snapshot (
    policy text not null,
    version {integer} not null,
    seq {integer} not null,
    hash {blob} not null,
    artefact {blob} not null,
    primary key (policy, version, seq)
){options};
create table removal (
    policy text not null,
    seq {integer} not null,
    before {integer} not null,
    rows {integer} not null,
    file text not null,
    at {integer} not null,
    primary key (policy, seq)
){options};
create table token (
    id text primary key,
    hash {blob} not null unique,
    name text not null,
    roles text not null,
    policies text,
    created {integer} not null,
    used {integer},
    expires {integer},
    needs_key {integer} not null
){options};
create table audit (
    number {counter},
    at {integer} not null,
    who text not null,
    what text not null,
    subject text not null,
    before text,
    after text
){options};
"""

MIGRATIONS: tuple[str, ...] = (FIRST,)
"""``MIGRATIONS[k]`` makes schema k + 1 of schema k; schema 0 is an empty database."""

NEWEST = len(MIGRATIONS)


def migrate(
    execute: Callable[[str], object],
    version: int,
    dialect: Dialect,
    migrations: Sequence[str] = MIGRATIONS,
) -> None:
    """Bring a schema forward to the newest, within the caller's transaction.

    Parameters
    ----------
    execute : callable
        Runs one statement.
    version : int
        The schema that the database has.
    """
    for migration in migrations[version:]:
        for statement in migration.format_map(dialect._asdict()).split(";"):
            if statement.strip():
                execute(statement)
