"""Parameters of queries, as msgspec structs like the bodies of `types`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pastwise.service.types import END, STORABLE, DecisionStatus, Request, Text

Limit = Annotated[int, Meta(ge=1, le=500)]
Time = Annotated[str, Meta(max_length=64, description="RFC 3339, such as 2026-11-01T21:00:00Z.")]


class PageQuery(Request):
    """Which part of a list."""

    cursor: str | None = None
    limit: Limit = 50


class DecisionsQuery(PageQuery):
    """Which decisions of a policy; times are those of the decisions.

    Attributes
    ----------
    status : str, optional
        A status, or ``"in-time"`` for all with an outcome that was not late, or ``"conflict"`` for
        those that another outcome was reported for.
    """

    status: DecisionStatus | Literal["in-time", "conflict"] | None = None
    state: Text | None = None
    action: Text | None = None
    since: Time | None = None
    until: Time | None = None


class PeriodQuery(Request):
    """Decisions from a time up to another one."""

    since: Time | None = None
    until: Time | None = None


class MonitorQuery(Request, rename={"from_": "from"}):
    """The period of the monitor; the last 30 days by default.

    Attributes
    ----------
    rows : int
        How many states and actions with evidence of a change to list, the most first.
    """

    from_: Time | None = None
    to: Time | None = None
    by: Literal["day"] = "day"
    rows: Annotated[int, Meta(ge=1, le=1000)] = 10


class StateQuery(Request):
    """A state by its label or raw value, or a row as a JSON object."""

    state: Text


class VersionQuery(Request):
    """What is said about an uploaded policy file.

    Attributes
    ----------
    despite : str
        Objections that were overruled, separated by commas, such as ``alarm``.
    seed : str, optional
        32 hexadecimal digits; random by default.
    """

    note: Annotated[str, Meta(max_length=1000, pattern=STORABLE)] = ""
    despite: Annotated[str, Meta(max_length=1000)] = ""
    seed: Annotated[str, Meta(pattern=f"^[0-9a-f]{{32}}{END}")] | None = None


class UploadQuery(Request):
    """What an uploaded log is called."""

    name: Annotated[str, Meta(max_length=200)] = ""
