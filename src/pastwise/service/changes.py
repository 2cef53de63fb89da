"""What a request changes, as a value: writes for the store, and an answer to send after them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from pastwise.errors import PastwiseError
from pastwise.service.problems import problem_of
from pastwise.service.store.rows import Write

LEARNED = "learned"
RECORDED = "recorded"
LATE = "late"
MISSING = "missing"
CANCELLED = "cancelled"
NEW_LABEL = "new-label"
"""Statuses of a decision that is closed; see also `rows.OPEN` and `rows.WAITING`."""

Answer = TypeVar("Answer")


class News(NamedTuple):
    """Something to publish to those who follow a policy."""

    kind: str
    body: Mapping[str, object]


@dataclass
class Change(Generic[Answer]):
    """What a request changed in memory, and still has to change in the store."""

    writes: list[Write]
    answer: Answer
    news: list[News] = field(default_factory=list)


class Caller(NamedTuple):
    """Who requests a decision; ``digest`` identifies the request that ``key`` was used for."""

    token: str
    key: str | None = None
    digest: bytes | None = None


class pointing_to:  # noqa: N801, reads like a function
    """A context that turns errors of the library into problems with a part of the request.

    A class: a generator would take a tenth of the time of a decision.
    """

    __slots__ = ("_pointer",)

    def __init__(self, pointer: str) -> None:
        self._pointer = pointer

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, PastwiseError):
            raise problem_of(error, self._pointer) from error


def json_text(value: object) -> str | None:
    """A value as the store keeps it."""
    return None if value is None else json.dumps(value, ensure_ascii=False)
