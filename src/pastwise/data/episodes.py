"""EpisodeSummary: what transition counts forget about the episodes of a log.

Records of one episode depend on each other, so what a log shows has to be judged by episodes. Ten
*folds* split a log so that no episode is in two of them: learn on nine folds, judge on the tenth.
Next to them are the few numbers that say how a log is made: how many episodes there are, how long,
where they start, whether the action varies within them, and how many of them visit a state.

Like counts, summaries form a commutative monoid under ``+``, except for the median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, frozen, group_sum
from pastwise.data.counts import SUM_ROUNDING, RewardSums, TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError

NUM_FOLDS = 10
"""Folds of a log. Nine tenths of a log learn nearly what all of it would, and ten fits are
affordable; the customary number of cross-validation."""


NO_NOUNS = frozenset({"who", "idx", "key", "uid", "pid", "sid", "num", "name"})
"""Names of episode columns that do not say what an episode is."""

MISSING_RECORDS = "the counts lack records of the episodes; give the counts of their log"


@dataclass(frozen=True, eq=False)
class EpisodeVisits:
    """How many episodes leave each state, and how many by each action.

    Attributes
    ----------
    by_state : [S]
        Number of episodes that leave each state.
    pair : [P]
        The pairs of state and action that occur, ascending: ``state * A + action``.
    by_pair : [P]
        Number of episodes in which each pair occurs.
    num_actions : int
    """

    by_state: IntArray
    pair: IntArray
    by_pair: IntArray
    num_actions: int

    def __post_init__(self) -> None:
        for name in ("by_state", "pair", "by_pair"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def of_state(self, state: int) -> IntArray:
        """Number of episodes in which each action occurs in a state: [A]."""
        first, end = np.searchsorted(
            self.pair, [state * self.num_actions, (state + 1) * self.num_actions]
        )
        episodes = np.zeros(self.num_actions, dtype=np.int64)
        episodes[self.pair[first:end] % self.num_actions] = self.by_pair[first:end]
        return episodes

    def moved(self, states: IntArray, actions: IntArray, sizes: tuple[int, int]) -> EpisodeVisits:
        """The same over larger spaces of the given sizes, where each label has another place."""
        num_states, num_actions = sizes
        by_state = np.zeros(num_states, dtype=np.int64)
        by_state[states] = self.by_state
        state, action = np.divmod(self.pair, self.num_actions)
        pair = states[state] * num_actions + actions[action]
        order = np.argsort(pair)
        return EpisodeVisits(by_state, pair[order], self.by_pair[order], num_actions)

    def __add__(self, other: EpisodeVisits) -> EpisodeVisits:
        """The visits of two logs over the same labels."""
        both = np.concatenate([self.pair, other.pair])
        pair, place = np.unique(both, return_inverse=True)
        by_pair = np.zeros(len(pair), dtype=np.int64)
        np.add.at(by_pair, place, np.concatenate([self.by_pair, other.by_pair]))
        return EpisodeVisits(self.by_state + other.by_state, pair, by_pair, self.num_actions)

    def require_possible(self, number: int, num_states: int) -> None:
        """Refuse what so many episodes cannot lead to."""
        fits = self.by_state.shape == (num_states,) and self.pair.shape == self.by_pair.shape
        if not fits or self.pair.ndim != 1:
            raise ParameterError("the visits of the episodes do not fit the states")
        in_order = bool((np.diff(self.pair) > 0).all())
        in_range = not len(self.pair) or (
            self.pair[0] >= 0 and self.pair[-1] < num_states * self.num_actions
        )
        if not in_order or not in_range:
            raise ParameterError("the visits of the episodes have impossible pairs")
        if ((self.by_state < 0) | (self.by_state > number)).any():
            raise ParameterError("a state is visited by an impossible number of episodes")
        state = self.pair // self.num_actions
        if ((self.by_pair < 1) | (self.by_pair > self.by_state[state])).any():
            raise ParameterError("an action occurs in an impossible number of episodes")


@dataclass(frozen=True, eq=False)
class EpisodeSummary:
    """Number, lengths, starts, actions and folds of the episodes of a log.

    Only counted records are summarised: those with all labels and a next state that do not leave a
    terminal state. An episode without any is none.

    Attributes
    ----------
    number : int
        Number of episodes.
    records : int
        Number of their records.
    shortest, median, longest : int
        Records of an episode; the median is rounded.
    starts : [S]
        Number of episodes that start in each state. An episode whose start is not known is in
        none; one with several first records is in the states of all of them.
    varied : int
        Number of episodes of at least two records in which the action varies.
    several : int
        Number of episodes of at least two records.
    by_action : [A]
        Number of episodes in which each action occurs.
    folds : TransitionCounts of shape (10,)
        The log split by episode.
    unit : str, optional
        Name of the episode column.
    visits : EpisodeVisits, optional
        Number of episodes by state, and by state and action; policies of older files have none.
    """

    number: int
    records: int
    shortest: int
    median: int
    longest: int
    starts: IntArray
    varied: int
    several: int
    by_action: IntArray
    folds: TransitionCounts
    unit: str | None = None
    visits: EpisodeVisits | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", frozen(self.starts))
        object.__setattr__(self, "by_action", frozen(self.by_action))

    @classmethod
    def from_lengths(
        cls,
        lengths: IntArray,
        episodes: IntArray,
        *,
        starts: IntArray,
        varied: int,
        by_action: IntArray,
        folds: TransitionCounts,
        unit: str | None = None,
        visits: EpisodeVisits | None = None,
    ) -> EpisodeSummary:
        """The summary of episodes whose lengths are given as a histogram.

        Parameters
        ----------
        lengths : [L]
            Records of an episode, at least one.
        episodes : [L]
            Number of episodes of each length.
        starts, varied, by_action, folds, unit, visits
            See `EpisodeSummary`.
        """
        is_several = lengths >= 2
        return cls(
            number=int(episodes.sum()),
            records=int((lengths * episodes).sum()),
            shortest=int(lengths.min()),
            median=_rounded_median(lengths, episodes),
            longest=int(lengths.max()),
            starts=starts,
            varied=varied,
            several=int(episodes[is_several].sum()),
            by_action=by_action,
            folds=folds,
            unit=unit,
            visits=visits,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON; without the folds."""
        return {
            "number": self.number,
            "records": self.records,
            "shortest": self.shortest,
            "median": self.median,
            "longest": self.longest,
            "starts": self.starts.tolist(),
            "varied": self.varied,
            "several": self.several,
            "by_action": self.by_action.tolist(),
            "unit": self.unit,
        }

    def require_possible(self) -> None:
        """Refuse what no log can lead to: for summaries that come from outside."""
        folds = self.folds
        folds.require_possible()
        if folds.shape != (NUM_FOLDS,) or folds.tasks is not None:
            raise ParameterError(f"the episodes are not split into {NUM_FOLDS} folds")
        if self.starts.shape != (len(folds.states),):
            raise ParameterError("the starts of the episodes do not fit the states")
        if self.by_action.shape != (len(folds.actions),):
            raise ParameterError("the actions of the episodes do not fit the actions")
        if (self.starts < 0).any() or (self.by_action < 0).any():
            raise ParameterError("a number of episodes is negative")
        lengths_ascend = 1 <= self.shortest <= self.median <= self.longest
        numbers_ascend = 0 <= self.varied <= self.several <= self.number <= self.records
        if not lengths_ascend or not numbers_ascend or (self.by_action > self.number).any():
            raise ParameterError("the numbers of the episodes contradict each other")
        if folds.num_records > self.records:
            raise ParameterError("the folds of the episodes have more records than the episodes")
        if self.visits is not None:
            self.visits.require_possible(self.number, len(folds.states))

    # Other labels, more logs

    def relabelled(self, states: Space, actions: Space) -> EpisodeSummary:
        """The same over larger spaces, which must have every label of the present ones."""
        folds = self.folds
        if (states, actions) == (folds.states, folds.actions):
            return self
        new_states = states.indices(folds.states.labels)
        new_actions = actions.indices(folds.actions.labels)
        starts = np.zeros(len(states), dtype=np.int64)
        starts[new_states] = self.starts
        by_action = np.zeros(len(actions), dtype=np.int64)
        by_action[new_actions] = self.by_action
        visits = self.visits
        if visits is not None:
            visits = visits.moved(new_states, new_actions, (len(states), len(actions)))
        return replace(
            self,
            starts=starts,
            by_action=by_action,
            folds=folds.relabelled(states, actions),
            visits=visits,
        )

    def within(self, counts: TransitionCounts) -> EpisodeSummary:
        """The same over the labels of counts that include these episodes.

        Folds lose the records that leave a state which is terminal in ``counts``. The numbers of
        episodes keep them, since nothing says which episodes those were.
        """
        summary = self.relabelled(counts.states, counts.actions)
        if not len(counts.terminal):
            return summary
        return replace(summary, folds=summary.folds.ending_in(counts.terminal))

    def __add__(self, other: EpisodeSummary) -> EpisodeSummary:
        """Both logs together: labels are united, numbers added.

        An episode that goes on in the other log counts as two. The median of all episodes is not
        known from two medians: it becomes their mean, weighted by the number of episodes and
        rounded.
        """
        folds = self.folds + other.folds
        one = self.relabelled(folds.states, folds.actions)
        two = other.relabelled(folds.states, folds.actions)
        number = one.number + two.number
        visits = None
        if one.visits is not None and two.visits is not None:
            visits = one.visits + two.visits
        mean_of_medians = (one.median * one.number + two.median * two.number) / number
        return EpisodeSummary(
            number=number,
            records=one.records + two.records,
            shortest=min(one.shortest, two.shortest),
            median=round(mean_of_medians),
            longest=max(one.longest, two.longest),
            starts=one.starts + two.starts,
            varied=one.varied + two.varied,
            several=one.several + two.several,
            by_action=one.by_action + two.by_action,
            folds=folds,
            unit=one.unit if one.unit == two.unit else None,
            visits=visits,
        )

    # Folds

    def require_part_of(self, counts: TransitionCounts) -> None:
        """Refuse counts that lack records of these episodes."""
        pooled = counts.total()
        known = self.within(pooled).folds
        _rest_records(known, _places(known, pooled), pooled)

    def folds_of(self, counts: TransitionCounts, seed: int = 0) -> TransitionCounts:
        """Counts that include these episodes, split into folds: shape (10,).

        Records of no known episode, such as those observed since, are split at random, see
        `random_folds`. The folds have exactly the records of ``counts``, and their weights up to
        rounding. Where ``counts`` weighs the episodes' records differently, as past tasks are
        weighed by their goals, a transition's weight is split as before.

        Parameters
        ----------
        counts : TransitionCounts
            Several tasks are taken as one log.
        seed : int
            Seed of the random split.
        """
        counts = counts.total()
        known = self.within(counts).folds
        if known.decay and counts.decay:
            known = known.as_of(counts.decay.as_of)
        place = _places(known, counts)
        rest_records = _rest_records(known, place, counts)

        # Records of no known episode, and what is left of the weights for them.
        share = rest_records / counts.records
        rest = replace(
            counts,
            records=rest_records,
            weight=_rest(counts.weight, known.weight, place, share),
            weight_squared=_rest(counts.weight_squared, known.weight_squared, place, share),
            **_rest_rewards(counts, known, place, share),
        )
        folds = known + random_folds(rest.where(rest_records > 0), NUM_FOLDS, seed)

        # The weights of each transition add up to its weight in the counts.
        place = _places(folds, counts)
        weight = _with_totals(folds.weight, counts.weight, place)
        return replace(
            folds,
            weight=weight,
            weight_squared=_with_totals(folds.weight_squared, counts.weight_squared, place),
            **folds.rewards_at(weight),
        )


def counted_episodes(number: int, unit: str | None) -> str:
    """A number of episodes, by the name of the episode column where that is a word.

    >>> counted_episodes(2, "infant"), counted_episodes(1, "patient_id"), counted_episodes(3, "id")
    ('2 infants', '1 patient', '3 episodes')
    """
    return f"{number:,} {episode_noun(unit, number)}"


def episode_noun(unit: str | None, number: int = 2) -> str:
    """What episodes are called: by the name of their column where that is a word.

    >>> episode_noun("day"), episode_noun("company"), episode_noun("persons"), episode_noun("X7")
    ('days', 'companies', 'persons', 'episodes')
    """
    name = (unit or "").replace("_", " ").strip().lower()
    name = name.removesuffix(" id").removesuffix(" nr").removesuffix(" no")
    is_word = len(name) >= 3 and name.replace(" ", "").isalpha() and name not in NO_NOUNS
    noun = name if is_word else "episode"
    if number == 1 or noun.endswith("s"):
        return noun
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def random_folds(
    counts: TransitionCounts, number: int = NUM_FOLDS, seed: int = 0
) -> TransitionCounts:
    """Counts without episodes, split record by record at random: shape (number,).

    The records of each distinct transition follow a multinomial distribution over the folds. Their
    weights are split in proportion to the records: counts do not know the weight of a single one.
    Neither do they know single rewards. The mean rewards of a transition's folds vary as those of
    random parts of its records, by a normal distribution, and have the transition's mean.

    Examples
    --------
    >>> states, actions = Space.of_size(2), Space.of_size(1)
    >>> counts = TransitionCounts.from_records([0] * 50, [0] * 50, [1] * 50, states, actions)
    >>> folds = random_folds(counts, number=5)
    >>> folds.shape, folds.total() == counts
    ((5,), True)
    """
    counts = counts.total()
    rng = np.random.default_rng(seed)
    records = rng.multinomial(counts.records, np.full(number, 1 / number))
    entry, fold = np.nonzero(records)
    share = records[entry, fold] / counts.records[entry]
    folds = TransitionCounts.from_groups(
        counts.states,
        counts.actions,
        (fold, counts.state[entry], counts.action[entry], counts.next_state[entry]),
        (
            records[entry, fold],
            counts.weight[entry] * share,
            counts.weight_squared[entry] * share,
        ),
        decay=counts.decay,
        shape=(number,),
        rewards=_split_rewards(counts, entry, records[entry, fold], rng),
    )
    return replace(folds, terminal=counts.terminal)


def _split_rewards(
    counts: TransitionCounts, entry: IntArray, records: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray] | None:
    """Sums of rewards of random parts of the records of each transition: [parts] each.

    Parameters
    ----------
    entry, records : [parts]
        The transition that each part belongs to, and its number of records.
    """
    if counts.reward_sums is None:
        return None
    reward, reward_squared = counts.reward_sums
    num_transitions = len(counts.key)
    share = records / counts.records[entry]
    weight = counts.weight[entry] * share

    # Mean of each transition's rewards, and their spread about it.
    positive_weight = np.where(counts.weight > 0, counts.weight, 1.0)
    mean = reward / positive_weight
    spread = np.maximum(reward_squared - reward * mean, 0.0)
    degrees = np.maximum(counts.records - 1, 1)
    deviation = np.sqrt(spread / positive_weight * counts.records / degrees)

    # Means of the parts about that of the transition.
    about = rng.standard_normal(len(entry)) * deviation[entry] / np.sqrt(records)
    about = about - group_sum(entry, share * about, num_transitions)[entry]

    # Parts of a single record have no spread of their own, so theirs is all there is.
    between = group_sum(entry, weight * about**2, num_transitions)
    inner_degrees = group_sum(entry, records - 1, num_transitions)
    is_too_large = (between > spread) | (inner_degrees == 0)
    limit = np.divide(spread, between, out=np.zeros_like(spread), where=between > 0)
    factor = np.where(is_too_large, np.sqrt(limit), 1.0)
    about = about * factor[entry]
    within = np.maximum(spread - between * factor**2, 0.0)
    inner_share = (records - 1) / np.maximum(inner_degrees, 1)[entry]

    part_mean = mean[entry] + about
    return weight * part_mean, weight * part_mean**2 + within[entry] * inner_share


def _places(folds: TransitionCounts, counts: TransitionCounts) -> IntArray:
    """Place of each entry of the folds among the transitions of the counts: [entries]."""
    key = folds.key % folds.keys_per_log
    place = np.searchsorted(counts.key, key)
    is_inside = place < len(counts.key)
    is_inside[is_inside] = counts.key[place[is_inside]] == key[is_inside]
    if not is_inside.all():
        raise ParameterError(MISSING_RECORDS)
    return place


def _rest_records(folds: TransitionCounts, place: IntArray, counts: TransitionCounts) -> IntArray:
    """Records of the counts that are in none of the folds: [distinct]."""
    known_records = np.zeros(len(counts.key), dtype=np.int64)
    np.add.at(known_records, place, folds.records)
    rest_records = np.asarray(counts.records - known_records)
    if (rest_records < 0).any():
        raise ParameterError(MISSING_RECORDS)
    return rest_records


def _rest(total: FloatArray, known: FloatArray, place: IntArray, share: FloatArray) -> FloatArray:
    """What known entries leave of each total; a share of it where they leave nothing: [distinct].

    Parameters
    ----------
    total, share : [distinct]
    known, place : [entries]
        Values of the known entries, and the transition that each belongs to.
    """
    left = total - group_sum(place, known, len(total))
    return np.where(left > 0, left, total * share)


def _rest_rewards(
    counts: TransitionCounts, known: TransitionCounts, place: IntArray, share: FloatArray
) -> RewardSums:
    """Sums of rewards of the records that are in none of the known entries: [distinct] each."""
    if counts.reward_sums is None:
        return {}
    reward, reward_squared = counts.reward_sums
    size = len(counts.key)
    rest_weight = _rest(counts.weight, known.weight, place, share)
    if known.reward_sums is None:
        return {"reward": reward * share, "reward_squared": reward_squared * share}

    # Where other weights make more of the known rewards than there are, the mean of all stands in.
    rest = reward - group_sum(place, known.reward_sums[0], size)
    rest_squared = reward_squared - group_sum(place, known.reward_sums[1], size)
    is_possible = rest**2 <= rest_weight * rest_squared * (1 + SUM_ROUNDING)
    return {
        "reward": np.where(is_possible, rest, reward * share),
        "reward_squared": np.where(is_possible, rest_squared, reward_squared * share),
    }


def _with_totals(values: FloatArray, total: FloatArray, place: IntArray) -> FloatArray:
    """Values [entries] scaled so that those of each place add up to its total [distinct].

    Those that do so already, up to rounding, stay as they are.
    """
    present = group_sum(place, values, len(total))
    differs = (present > 0) & ~np.isclose(present, total, rtol=1e-12, atol=0)
    factor = np.divide(total, present, out=np.ones_like(total), where=differs)
    return np.asarray(values * factor[place])


def _rounded_median(lengths: IntArray, episodes: IntArray) -> int:
    """Median of a histogram, rounded: lengths [L] and number of episodes of each [L]."""
    order = np.argsort(lengths)
    up_to = np.cumsum(episodes[order])
    middle = [(up_to[-1] - 1) // 2, up_to[-1] // 2]
    both = lengths[order][np.searchsorted(up_to, middle, side="right")]
    return round(float(both.mean()))
