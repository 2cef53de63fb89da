"""Old decisions leave the store, and are in a Parquet file first.

A decision goes with its outcome and its events once it is closed, old enough, and part of a
snapshot of its version: from that snapshot a replay can go on without it. Snapshots from before
what was removed go as well, except for the newest one of each version. The context of decisions
goes earlier, without a file: it is kept for whoever looks into a decision, and not used.

Everything is removed in small transactions, between which the service decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import quote

from pastwise.service.store.export import archive_parquet
from pastwise.service.store.reading import DAY
from pastwise.service.store.rows import (
    DeleteSnapshots,
    ForgetContext,
    RemovalRow,
    RemoveDecision,
    Replace,
)

if TYPE_CHECKING:
    from pastwise.service.store.database import DatabaseStore

EXPIRED = """
select d.seq, d.id, coalesce(o.seq, 0), coalesce(e.seq, 0)
from decision d
join (
    select version, max(seq) as seq from snapshot where policy = ? group by version
) s on s.version = d.version
left join outcome o on o.decision = d.id
left join event e on e.decision = d.id and e.seq = (
    select max(seq) from event where decision = d.id
)
where d.policy = ? and d.at < ? and d.seq <= s.seq and d.status not in ('open', 'waiting')
    and coalesce(o.seq, 0) <= s.seq and coalesce(e.seq, 0) <= s.seq
order by d.at limit ?
"""

WITH_CONTEXT = """
select seq from decision where policy = ? and at < ? and context is not null order by at limit ?
"""

NEWEST_SNAPSHOTS = """
select version, max(seq) from snapshot where policy = ? group by version
"""


class Retained(NamedTuple):
    """What was removed.

    Attributes
    ----------
    decisions : int
        Decisions that were removed.
    contexts : int
        Decisions that lost their context.
    files : tuple of path
        Where the removed decisions are.
    """

    decisions: int
    contexts: int
    files: tuple[Path, ...]


def retain(
    store: DatabaseStore,
    policy: str,
    folder: Path,
    *,
    now: int,
    retention_days: float = 400.0,
    context_days: float = 30.0,
    batch: int = 200,
    most: int = 50_000,
) -> Retained:
    """Remove what is too old.

    Parameters
    ----------
    folder : path
        Where files of removed decisions go; it is made if there is none.
    now : int
        Milliseconds since 1970.
    retention_days : float
        How long decisions stay in the store. The default covers a year and a month.
    context_days : float
        How long the context of decisions stays.
    batch : int
        Decisions that one transaction removes. The default takes a few milliseconds.
    most : int
        Decisions of one file, which are in memory at the same time. The default takes about 20 MB.
    """
    contexts = 0
    while rows := store.rows(WITH_CONTEXT, policy, now - int(context_days * DAY), most):
        for part in _parts(rows, batch):
            store.submit([ForgetContext(policy, seq) for (seq,) in part]).result()
        contexts += len(rows)

    before = now - int(retention_days * DAY)
    decisions = 0
    files: list[Path] = []
    while expired := store.rows(EXPIRED, policy, policy, before, most):
        files.append(_remove(store, policy, folder, expired, before, now, batch))
        decisions += len(expired)
    return Retained(decisions, contexts, tuple(files))


def _remove(
    store: DatabaseStore,
    policy: str,
    folder: Path,
    expired: list[tuple[int, str, int, int]],
    before: int,
    now: int,
    batch: int,
) -> Path:
    """Move decisions into a file: number, id, numbers of the outcome and of the last event."""
    # The file is complete and on disk before anything is removed.
    last = max(max(seq, outcome, event) for seq, _, outcome, event in expired)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{quote(policy, safe='')}-{last}-{now}.parquet"
    archive_parquet(store, policy, file, sorted(seq for seq, _, _, _ in expired))

    # From here on a replay cannot begin before the last of them.
    removal = RemovalRow(policy, last, before, len(expired), file.name, now)
    outdated = [
        DeleteSnapshots(policy, version, min(newest, last))
        for version, newest in store.rows(NEWEST_SNAPSHOTS, policy)
    ]
    store.submit([Replace(removal), *outdated]).result()
    for part in _parts(expired, batch):
        removals = [RemoveDecision(policy, seq, decision_id) for seq, decision_id, _, _ in part]
        store.submit(removals).result()
    return file


Item = TypeVar("Item")


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
