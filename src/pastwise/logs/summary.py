"""From the groups of a log to the summary of its episodes, and to findings on them.

Folds and starts come with the counts, in the one query of `query.grouped`. The lengths of episodes
and their actions are a small query of their own, and so are the episodes that visit each state. For
a log without gaps they need no window: all records of an episode count but the last.

An episode starts with its first record. Where that record is not counted, the start is not known;
where several records have the first time, each is a start. Without a time the order is not known:
then an episode starts in the states that it leaves more often than it enters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from pastwise._numerics.arrays import IntArray
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.episodes import EpisodeSummary, EpisodeVisits, counted_episodes, episode_noun
from pastwise.data.space import Space, key_of
from pastwise.errors import shortened
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Reading, Split, numbers_of, parts_of
from pastwise.logs.effects import named
from pastwise.logs.episodes import indices_of
from pastwise.logs.findings import Finding, counted, finding_of
from pastwise.logs.query import (
    Status,
    bad_labels,
    grouped_lengths,
    grouped_starts,
    grouped_visits,
    leaves_terminal,
    prepare,
)

FEW_EPISODES = 2
"""Episodes up to which an action may owe everything to who took it, rather than to itself."""

MANY_EPISODES = 5
"""Episodes that some action needs for others to be rare: in a log of three episodes, none is."""

LONGEST_NAME = 60
"""Characters that the message on few episodes shows of one action."""


def with_episodes(
    reading: Reading,
    split: Split | None,
    frame: nw.LazyFrame[Any],
    prepared: nw.LazyFrame[Any],
    decay: Decay | None,
    *,
    more: bool = False,
) -> Reading:
    """The reading with the summary of its episodes, and the findings on them.

    Parameters
    ----------
    reading, split
        What `decode` returned.
    frame, prepared, decay
        The table, and what `prepare` returned for it.
    more : bool
        The log continues one that is known; no finding, because it may be a small part.
    """
    if split is None or not split.folds.num_records:
        return reading
    columns = reading.columns
    if split.is_whole_chain:
        as_of = decay.as_of if decay else None
        records, _, _ = prepare(frame, columns, as_of, chained=False)
        usable = None
    else:
        records = prepared
        usable = _usable(prepared, columns, reading)
    table = grouped_lengths(records, columns, usable).collect(backend="pyarrow").to_native()
    episodes = _summary_of(table, split, columns, reading.counts)
    episodes = replace(episodes, visits=_visits(records, columns, usable, reading.counts))
    if not columns.time:
        starts = _starts_without_time(prepared, columns, reading)
        episodes = replace(episodes, starts=starts)
    findings = reading.findings if more else (*reading.findings, *findings_on(episodes))
    return replace(reading, episodes=episodes, findings=findings)


def _usable(prepared: nw.LazyFrame[Any], columns: Columns, reading: Reading) -> nw.Expr:
    """Condition for the records that are counted."""
    conditions = []
    for are_bad in bad_labels(columns, prepared.collect_schema()).values():
        conditions += are_bad
    if any(finding.code == "after-terminal" for finding in reading.findings):
        conditions.append(leaves_terminal(columns, reading.counts))
    return Status.FOLLOWED.holds & ~reduce(or_, conditions)


def _visits(
    records: nw.LazyFrame[Any],
    columns: Columns,
    usable: nw.Expr | None,
    counts: TransitionCounts,
) -> EpisodeVisits:
    """Number of episodes by state, and by state and action."""
    states = [f"state {i}" for i in range(len(columns.state_fields))]
    actions = [f"action {i}" for i in range(len(columns.action))]

    # Episodes of each state.
    query = grouped_visits(records, columns, states, usable)
    table = query.collect(backend="pyarrow").to_native()
    by_state = np.zeros(len(counts.states), dtype=np.int64)
    by_state[_states_of(table, columns, counts.states)] = _episodes(table)

    # Episodes of each state and action.
    query = grouped_visits(records, columns, [*states, *actions], usable)
    table = query.collect(backend="pyarrow").to_native()
    state = _states_of(table, columns, counts.states)
    action = _actions_of(table, columns, counts.actions)
    num_actions = len(counts.actions)
    pair = state * num_actions + action
    order = np.argsort(pair)
    return EpisodeVisits(by_state, pair[order], _episodes(table)[order], num_actions)


def _states_of(table: pa.Table, columns: Columns, states: Space) -> IntArray:
    """Index of the state of each group: [groups]."""
    (labels,) = parts_of(table, ("state",), columns.state_fields, columns.state_codes)
    everywhere = np.ones(len(table), dtype=bool)
    return indices_of(labels, everywhere, states, "state")


def _actions_of(table: pa.Table, columns: Columns, actions: Space) -> IntArray:
    """Index of the action of each group: [groups]."""
    (labels,) = parts_of(table, ("action",), columns.action, columns.bins)
    everywhere = np.ones(len(table), dtype=bool)
    return indices_of(labels, everywhere, actions, "action")


def _episodes(table: pa.Table) -> IntArray:
    """Number of episodes of each group: [groups]."""
    return numbers_of(table, "episodes").astype(np.int64)


def _starts_without_time(
    prepared: nw.LazyFrame[Any], columns: Columns, reading: Reading
) -> IntArray:
    """Number of episodes that leave each state more often than they enter it: [S]."""
    usable = _usable(prepared, columns, reading)
    query = grouped_starts(prepared, columns, usable)
    table = query.collect(backend="pyarrow").to_native()
    states = reading.counts.states
    starts = np.zeros(len(states), dtype=np.int64)
    if len(table):
        index = _states_of(table, columns, states)
        np.add.at(starts, index, _episodes(table))
    return starts


def _summary_of(
    table: pa.Table, split: Split, columns: Columns, counts: TransitionCounts
) -> EpisodeSummary:
    """The summary out of the groups of `query.grouped_lengths`."""
    length = numbers_of(table, "length").astype(np.int64)
    varieties = numbers_of(table, "varieties").astype(np.int64)
    episodes = _episodes(table)

    # Each action's episodes.
    action_index = _actions_of(table, columns, counts.actions)
    by_action = np.zeros(len(counts.actions), dtype=np.int64)
    np.add.at(by_action, action_index, episodes)

    # Episodes by length; one with several actions is in as many groups.
    pairs, place = np.unique(np.stack([length, varieties]), axis=1, return_inverse=True)
    in_groups = np.zeros(pairs.shape[1], dtype=np.int64)
    np.add.at(in_groups, place.ravel(), episodes)
    lengths = pairs[0]
    numbers = in_groups // pairs[1]
    return EpisodeSummary.from_lengths(
        lengths,
        numbers,
        starts=split.starts,
        varied=int(numbers[pairs[1] > 1].sum()),
        by_action=by_action,
        folds=split.folds,
        unit=columns.episode,
    )


def actions_of_few_episodes(episodes: EpisodeSummary) -> IntArray:
    """Actions that occur in very few episodes, in a log in which another one occurs in many."""
    occurring = np.flatnonzero(episodes.by_action)
    numbers = episodes.by_action[occurring]
    if not len(occurring) or numbers.max() < MANY_EPISODES:
        return occurring[:0]
    return occurring[numbers <= FEW_EPISODES]


def findings_on(episodes: EpisodeSummary) -> list[Finding]:
    """What the owner of a log should know about its episodes."""
    findings: list[Finding] = []
    occurring = np.flatnonzero(episodes.by_action)
    if len(occurring) < 2:
        return findings

    if episodes.several and not episodes.varied:
        number = counted_episodes(episodes.several, episodes.unit)
        findings.append(finding_of("action-constant", episodes.several, episodes=number))

    rare = actions_of_few_episodes(episodes)
    if len(rare):
        rests_on = []
        for index in rare.tolist():
            name = shortened(key_of(episodes.folds.actions.labels[index]), LONGEST_NAME)
            number = counted_episodes(int(episodes.by_action[index]), episodes.unit)
            rests_on.append(f"{name} rests on {number}")
        rows = int(episodes.by_action[rare].sum())
        findings.append(
            finding_of(
                "few-episodes",
                rows,
                actions=counted(len(rests_on), "action"),
                episodes=episode_noun(episodes.unit),
                names=named(rests_on, length=2 * LONGEST_NAME),
            )
        )
    return findings
