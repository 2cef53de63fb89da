"""What a rule is judged by.

A goal gives each transition a *utility*: the reward, or how much the next state (or the action) is
preferred relative to the best one. The value of a rule is its mean utility over the horizon, such
as the share of time in the preferred states. Where episodes end and their end is what matters, it
is the total utility until then, such as the probability of ending well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.evaluation.rewards import mean_rewards, reward_posterior
from pastwise.goals.goal import Goal
from pastwise.models.rewards import RewardPosterior
from pastwise.models.samples import SampledModels
from pastwise.theory.fpd import require_horizon


@dataclass(frozen=True)
class UnseenStates:
    """How often states come up that the log does not have.

    By Good and Turing, the next record is in a new state with the share of records that are in
    states seen once. Likewise the next episode ends in a new way with the share of episodes whose
    end was seen once.

    Attributes
    ----------
    once : int
        Number of states that the log left exactly once; or of ends that it entered exactly once.
    records : int
        Number of records; or of those that end an episode.
    """

    once: int
    records: int

    @classmethod
    def of(cls, log: TransitionCounts) -> UnseenStates:
        """What a log says about states that it does not have."""
        departures = log.by_state_action(log.records.astype(np.float64)).sum(axis=-1)
        return cls(int((departures == 1).sum()), log.num_records)

    @classmethod
    def ends_of(cls, log: TransitionCounts, *, min_ends: int = 3) -> UnseenStates:
        """What a log says about ends of episodes that it does not have.

        Parameters
        ----------
        min_ends : int
            With fewer different ends, such as recovery and death, these are taken to be all. On
            the chosen families with two ends, those seen once are mostly seen once by chance.
        """
        arrivals = group_sum(log.next_state, log.records.astype(np.float64), len(log.states))
        of_ends = arrivals[log.terminal]
        if (of_ends > 0).sum() < min_ends:
            return cls(0, int(of_ends.sum()))
        return cls(int((of_ends == 1).sum()), int(of_ends.sum()))

    def sample_share(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Share of time, or of episodes, uncertain as after so many records: [number]."""
        if self.once == 0:
            return np.zeros(number)
        return rng.beta(self.once, self.records - self.once + 1, size=number)


@dataclass(frozen=True, eq=False)
class Criterion:
    """What a rule is judged by.

    Attributes
    ----------
    utility : [S], or broadcastable to [S, A, S]
        Of arriving in each state, such as 1 in the preferred ones; or of each transition.
    initial : [S]
        Distribution of the start state.
    horizon : int
        Number of epochs, at most.
    ends : [number], optional
        Absent: the value is the mean utility over the horizon. Given: it is the total utility until
        one of these states is entered.
    allowed : [1 or S, A], optional
        The actions that the optimal policy may take; all by default.
    measure : str
        Name of the value, for tables and sentences.
    starts : [S], optional
        Number of episodes that started in each state, where the distribution of starts is known
        from them alone, and thus uncertain.
    rewards : RewardPosterior, optional
        Where the goal maximises the log's reward: what is known of its mean, of which the utility
        is the posterior mean.
    reward_effect : float
        Design effect of the rewards; see `cross_fit.reward_design_effect`.
    unseen : UnseenStates, optional
        Where the value is a mean over time: what is known of states that the log does not have;
        where it is that of the end: what is known of such ends. Nothing good is assumed of them.
    """

    utility: FloatArray
    initial: FloatArray
    horizon: int = 100
    ends: IntArray | None = None
    allowed: BoolArray | None = None
    measure: str = "value"
    starts: FloatArray | None = None
    unseen: UnseenStates | None = None
    rewards: RewardPosterior | None = None
    reward_effect: float = 1.0

    def __post_init__(self) -> None:
        require_horizon(self.horizon)

    def sample_initial(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Distributions of the start state, given where episodes started: [1 or number, S]."""
        if self.starts is None:
            return self.initial[None]
        concentration = np.maximum(self.starts, 1e-3)
        gamma = rng.standard_gamma(concentration, size=(number, len(concentration)))
        return normalise(gamma)

    @property
    def possible_range(self) -> tuple[float, float]:
        """Smallest and largest value that any rule can have; infinite for totals of many steps."""
        if self.rewards is not None:
            return -np.inf, np.inf
        lowest = float(self.utility.min())
        highest = float(self.utility.max())
        if self.ends is None:
            return lowest, highest
        by_next_state = self.utility * np.ones(len(self.initial))
        before_end = np.delete(by_next_state, self.ends, axis=-1)
        if before_end.any():
            return -np.inf, np.inf
        return min(lowest, 0.0), max(highest, 0.0)

    def on(self, part: TransitionCounts) -> Criterion:
        """The same question to a part of the log: with the rewards of its own records."""
        if self.rewards is None:
            return self
        rewards = reward_posterior(
            part,
            design_effect=self.reward_effect,
            by_next_state=self.rewards.by_next_state,
        )
        return replace(self, utility=rewards.table, rewards=rewards)

    def sample_rewards(self, models: SampledModels, rng: np.random.Generator) -> FloatArray:
        """Expected reward of each decision in each model: [n, S, A].

        Where the mean rewards are uncertain, each model has its own.
        """
        if self.rewards is None:
            return models.expect(self.utility)
        sampled = self.rewards.sample(models.number, rng)
        return models.expect_own(sampled) if self.rewards.by_next_state else sampled

    @property
    def goes_on(self) -> FloatArray:
        """1 for states from which an episode goes on, 0 for those that end it: [S]."""
        goes_on = np.ones(len(self.initial))
        if self.ends is not None:
            goes_on[self.ends] = 0.0
        return goes_on

    def value_in_log(
        self, log: TransitionCounts, episodes: EpisodeSummary | None = None
    ) -> float | None:
        """The value that the log itself shows, without any model; None where it shows none.

        It is the mean utility of the records, such as the share of them that led where they should
        or, where utilities add up until the end of an episode, their sum over the number of
        episodes, such as the share of episodes that ended well. A mean over time counts the time
        after the end of an episode, of which a log has no records.
        """
        if self.ends is None and len(log.terminal):
            return None
        total = float((log.records * self._utility_in(log)).sum())
        number = float(log.num_records)
        if self.ends is not None:
            starts = 0.0 if self.starts is None else float(self.starts.sum())
            number = starts if episodes is None else float(episodes.number)
        return total / number if number > 0 else None

    def _utility_in(self, log: TransitionCounts) -> FloatArray:
        """Utility of each distinct transition of a log; for its reward, what the records have."""
        if self.rewards is not None and log.reward_sums is not None:
            weight = np.where(log.weight > 0, log.weight, 1.0)
            return np.asarray(log.reward_sums[0] / weight)
        utility = np.broadcast_to(self.utility, _full_shape(self.utility, log))
        if utility.ndim == 1:
            return np.asarray(utility[log.next_state])
        return np.asarray(utility[log.state, log.action, log.next_state])

    @classmethod
    def of(
        cls,
        goal: Goal,
        log: TransitionCounts,
        *,
        initial: FloatArray | None = None,
        horizon: int | None = None,
        episodes: EpisodeSummary | None = None,
        allowed: BoolArray | None = None,
        reward_effect: float = 1.0,
    ) -> Criterion:
        """The criterion that a goal implies for rules over a log's labels.

        Parameters
        ----------
        initial : [S], optional
            Distribution of the start state; by default that of the log, see `log_starts`.
        horizon : int, optional
            Number of epochs; by default the median length of the log's episodes where values are
            means, so that the value of what was done is about the log's own rate if lengths do not
            differ much. It is 100 without episodes, and at least 100 where episodes go on until
            they end; where they are cut off before, it is the length of the longest.
        episodes : EpisodeSummary, optional
            What is known of the log's episodes.
        reward_effect : float
            How many records carry as much about rewards as one independent record.
        """
        rewards = None
        table = None
        if goal.maximise:
            rewards = reward_posterior(log, design_effect=reward_effect)
            table = rewards.table
        utility = goal.score(log.states, log.actions, table)
        until_end = _counts_until_end(goal, utility, log)

        # Where episodes start, and how long they are.
        starts = None
        if initial is None:
            starts = log_starts(log, episodes)
            initial = normalise(starts)
            if episodes is None and not len(log.terminal):
                starts = None  # one long trajectory: its visits are no sample of starts
        if horizon is None:
            horizon = _default_horizon(log, episodes, until_end)

        return cls(
            utility,
            initial,
            horizon,
            starts=starts,
            unseen=_unseen(goal, utility, log, until_end),
            ends=log.terminal if until_end else None,
            allowed=allowed,
            measure=_measure(goal, utility, until_end, log),
            rewards=rewards,
            reward_effect=reward_effect,
        )


def _full_shape(utility: FloatArray, log: TransitionCounts) -> tuple[int, ...]:
    """The shape of a utility of states [S], or of transitions [S, A, S]."""
    S = len(log.states)
    return (S,) if utility.ndim == 1 else (S, len(log.actions), S)


def measure_of(goal: Goal, log: TransitionCounts) -> str:
    """Name of the value by which a goal judges rules over a log's labels."""
    utility = goal.score(log.states, log.actions, mean_rewards(goal, log))
    return _measure(goal, utility, _counts_until_end(goal, utility, log), log)


def is_one_shot(log: TransitionCounts) -> bool:
    """Whether every record ends its episode."""
    return bool(len(log.terminal) and np.isin(log.next_state, log.terminal).all())


def _counts_until_end(goal: Goal, utility: FloatArray, log: TransitionCounts) -> bool:
    """Whether the value is a total until the end of an episode.

    The end matters for rewards and for utilities of transitions, which add up; for preferred states
    only if all of them are terminal.
    """
    if not len(log.terminal):
        return False
    if goal.is_reward or utility.ndim > 1:
        return True
    return bool(np.isin(np.flatnonzero(utility), log.terminal).all())


def _unseen(
    goal: Goal, utility: FloatArray, log: TransitionCounts, until_end: bool
) -> UnseenStates | None:
    """What is known of unseen states; None for totals, which an unseen state adds little to."""
    if not until_end:
        return UnseenStates.of(log)
    if goal.is_reward or utility.ndim > 1:
        return None
    return UnseenStates.ends_of(log)


def _measure(goal: Goal, utility: FloatArray, until_end: bool, log: TransitionCounts) -> str:
    """Name of the value: mean over the horizon, or total until the end."""
    if goal.is_reward and is_one_shot(log):
        return "mean reward of a decision"
    if goal.is_reward:
        return "total reward of an episode" if until_end else "mean reward"
    if utility.ndim > 1:
        return "total utility of an episode" if until_end else "mean utility of a step"
    if not until_end:
        return goal.wanted_share
    all_or_nothing = np.isin(utility, (0.0, 1.0)).all()
    return "chance of ending well" if all_or_nothing else "utility of the end"


def _default_horizon(
    log: TransitionCounts,
    episodes: EpisodeSummary | None,
    until_end: bool,
    *,
    usual: int = 100,
    min_ended: float = 0.95,
) -> int:
    """Number of epochs that the log's episodes suggest.

    Parameters
    ----------
    usual : int
        Epochs of a log without episodes, and at least those that an episode may take to end.
    min_ended : float
        Share of the episodes that must end in a terminal state. With fewer, episodes are cut off,
        as follow-ups are: more of them would end well after more epochs than the log has, and the
        value of what was done would exceed what the log shows.
    """
    if is_one_shot(log):
        return 1
    if episodes is None:
        return usual
    if not until_end:
        return max(1, episodes.median)
    ended = log.records[np.isin(log.next_state, log.terminal)].sum()
    if ended < min_ended * episodes.number:
        return episodes.longest
    return max(usual, episodes.longest)


def log_starts(log: TransitionCounts, episodes: EpisodeSummary | None = None) -> FloatArray:
    """How often the episodes of a log start in each state: [S].

    Without an episode column, the surplus of departures over arrivals counts the starts of a log
    with terminal states, since an episode starts where it does not arrive. Any other log is taken
    as one long trajectory, with its visits to each state.
    """
    if episodes is not None and episodes.starts.any():
        return episodes.starts.astype(np.float64)
    departures = log.by_state_action(log.weight).sum(axis=-1)
    arrivals = group_sum(log.next_state, log.weight, len(departures))
    surplus = np.maximum(departures - arrivals, 0.0)
    if len(log.terminal) and surplus.any():
        return np.asarray(surplus)
    return np.asarray(departures)
