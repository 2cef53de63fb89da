"""Objections: reasons why a comparison is not fair, however clear its numbers are.

The samples of a posterior say what the records say if records are comparable: had the other action
been taken, the system would have reacted as it did where that action was taken. Some logs show by
themselves that they cannot answer this. Each such reason is an *objection*, and one is enough to
turn a verdict into *cannot tell*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import bdtr

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.data.space import key_of
from pastwise.errors import shortened


@dataclass(frozen=True)
class Objection:
    """A reason why a comparison is not fair.

    Attributes
    ----------
    code : str
        ``action-constant``, ``few-episodes``, ``action-determines-outcome`` or ``little-support``.
    message : str
        What was found, as a part of a sentence.
    """

    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Plain values, for JSON."""
        return asdict(self)


def objections(
    visits: FloatArray,
    counts: TransitionCounts,
    episodes: EpisodeSummary | None = None,
    *,
    max_accident: float = 0.05,
    min_variation: float = 0.1,
    min_share: float = 0.1,
    max_episodes: int = 2,
    min_records: int = 5,
    min_well_seen: float = 0.25,
) -> tuple[Objection, ...]:
    """All reasons why the comparison of a rule with what was done is not fair.

    Parameters
    ----------
    visits : [S, A]
        Share of the rule's decisions that falls on each state and action; all 0 if it has none.
    counts : TransitionCounts
        The log, without leading axes.
    episodes : EpisodeSummary, optional
        What is known of the log's episodes, over the labels of the counts; None where it has none.
    max_accident : float
        Probability with which actions that are constant within episodes may be an accident of few
        records. The default is that of a usual test.
    min_variation : float
        Share of the episodes with several actions, relative to independent decisions, below which
        the log compares episodes: with a tenth, a few odd records do not make a comparison fair.
    min_share : float
        Share of the rule's decisions that makes an action matter: below a tenth, even a large error
        about the action moves the value of the rule little.
    max_episodes : int
        Number of episodes that are too few to speak for an action: two cannot show how much
        episodes differ.
    min_records : int
        Records that make an action, or a pair of state and action, well seen: five fix a
        probability to about 0.2.
    min_well_seen : float
        Share of the rule's decisions that must be well seen: with fewer, the comparison rests
        mostly on the prior. On 576 systems of ``pastwise study calibration`` with 200 or 1,000
        records, TL and TL_foresight had 688 right verdicts; a quarter overruled 6 of them, a half
        35.
    """
    found: list[Objection] = []
    if episodes is not None:
        found.extend(_constant_action(counts, episodes, max_accident, min_variation))
        found.extend(_few_episodes(visits, counts, episodes, min_share, max_episodes))
    found.extend(_action_determines_outcome(counts, min_records))
    found.extend(_little_support(visits, counts, min_records, min_well_seen))
    return tuple(found)


def _constant_action(
    counts: TransitionCounts,
    episodes: EpisodeSummary,
    max_accident: float,
    min_variation: float,
) -> Iterator[Objection]:
    """Whether hardly any episode has more than one action."""
    if episodes.several == 0:
        return

    # The share of episodes that would vary if each record had its action independently of the
    # others: it repeats the one before with probability sum_a p(a)^2.
    by_action = counts.by_state_action(counts.records.astype(np.float64)).sum(axis=0)
    share = by_action / by_action.sum()
    chance_of_repetition = float((share**2).sum())
    repetitions = max(episodes.median, 2) - 1
    expected = 1 - chance_of_repetition**repetitions

    # Far fewer do, and not by accident.
    if episodes.varied > min_variation * expected * episodes.several:
        return
    if bdtr(episodes.varied, episodes.several, expected) > max_accident:
        return

    if episodes.varied > 0:
        yield Objection(
            "action-constant",
            f"only {episodes.varied:,} of {episodes.several:,} episodes have more than one "
            "action, so the log compares episodes, not decisions",
        )
        return
    if episodes.several == episodes.number:
        which = f"each of the {episodes.number:,} episodes"
    else:
        which = f"each of the {episodes.several:,} episodes of two or more records"
    yield Objection(
        "action-constant",
        f"{which} has one action on all its records, so the log compares episodes, not decisions",
    )


def _few_episodes(
    visits: FloatArray,
    counts: TransitionCounts,
    episodes: EpisodeSummary,
    min_share: float,
    max_episodes: int,
) -> Iterator[Objection]:
    """Whether an action that matters occurs in too few of the episodes.

    Where there are hardly more episodes in all, they are long runs in which actions vary, and say
    nothing against one of the actions.
    """
    share = visits.sum(axis=0)
    is_rare = (episodes.by_action <= max_episodes) & (2 * episodes.by_action < episodes.number)
    for action in np.flatnonzero((share >= min_share) & is_rare).tolist():
        name = shortened(key_of(counts.actions.labels[action]), 200)
        yield Objection(
            "few-episodes",
            f"{100 * share[action]:.0f} % of the rule's decisions are {name}, which was done in "
            f"only {episodes.by_action[action]:,} of {episodes.number:,} episodes",
        )


def _action_determines_outcome(counts: TransitionCounts, min_records: int) -> Iterator[Objection]:
    """Whether the next state is a function of the action alone.

    It takes two well seen actions with different next states, each taken in several states: a
    system with a single state of decision may be deterministic.
    """
    S = len(counts.states)
    taken = np.unique(counts.action)
    pairs = np.unique(counts.action * S + counts.next_state)
    if len(pairs) > len(taken):
        return

    # Next states of the actions that are well seen.
    outcomes = set()
    for action, outcome in zip(taken.tolist(), (pairs % S).tolist(), strict=True):
        is_taken = counts.action == action
        records = counts.records[is_taken].sum()
        num_states = len(np.unique(counts.state[is_taken]))
        if records >= min_records and num_states > 1:
            outcomes.add(outcome)
    if len(outcomes) < 2:
        return
    yield Objection(
        "action-determines-outcome",
        "the next state depends on the action alone and not on the state before, "
        "so the state column seems to record the decision and not its outcome",
    )


def _little_support(
    visits: FloatArray, counts: TransitionCounts, min_records: int, min_well_seen: float
) -> Iterator[Objection]:
    """Whether the rule mostly decides what was hardly ever done."""
    records = counts.by_state_action(counts.records.astype(np.float64))
    well_seen = visits[records >= min_records].sum()
    if visits.any() and well_seen < min_well_seen:
        yield Objection(
            "little-support",
            f"only {100 * well_seen:.0f} % of the rule's decisions were made at least "
            f"{min_records} times in the same state",
        )
