"""TransferLearner: from a log and a goal to a policy, with the evidence behind it.

A facade: it reads logs, keeps a `PolicyState`, and answers in the user's labels. The mathematics
is in `theory`, `methods` and `evaluation`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from pastwise import logs
from pastwise._display import paragraph
from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.threads import Lock
from pastwise.data.conditions import Condition
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary, counted_episodes
from pastwise.data.live_counts import require_reward
from pastwise.data.regions import Region
from pastwise.data.space import Label, checked_label
from pastwise.errors import (
    GoalError,
    LabelError,
    LogError,
    LogWarning,
    NotFittedError,
    ParameterError,
    StraddleError,
    shown,
)
from pastwise.evaluation.actions import action_values
from pastwise.evaluation.criterion import measure_of
from pastwise.evaluation.estimate import DEFAULT_OPTIONS, Estimate, EstimateOptions
from pastwise.evaluation.evaluate import MAX_STATES, evaluate_rule, require_state_limit
from pastwise.evaluation.importance import (
    FixedRule,
    LearnedRule,
    counts_of,
    episode_estimates,
)
from pastwise.evaluation.result import Evaluation
from pastwise.evaluation.rewards import ideal_on, mean_rewards
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.logs.columns import Columns, as_columns
from pastwise.logs.findings import Finding, counted
from pastwise.logs.outcomes import follows, outcome_is_state, share_a_label
from pastwise.logs.rows import Row
from pastwise.methods.base import RECORDS, VALUE, AnyMethod, for_another_goal
from pastwise.methods.registry import ALTERNATIVES, DEFAULT, create
from pastwise.policy.advice import Basis
from pastwise.policy.decisions import Decisions, decisions_for, in_library_of, label_array
from pastwise.policy.explanation import Explanation
from pastwise.policy.file import load_policy, save_policy
from pastwise.policy.live import LivePolicy
from pastwise.policy.past import PastDependence
from pastwise.policy.pictures import rule_html
from pastwise.policy.records import dated, one_record
from pastwise.policy.rule import Rule, known_index
from pastwise.policy.state import OnUnseen, PolicyState, Settings
from pastwise.policy.support import Support
from pastwise.theory.learning import (
    gather_evidence,
    prior_concentration,
    rule_interval,
    state_support,
)
from pastwise.theory.similarity import Divergence, Similarity, kl_divergence

if TYPE_CHECKING:
    from pastwise.workbench.notebook import OpenWorkbench

NOTHING_SERVES = (
    "no record leads to anything that the goal wants, so the log cannot show how to reach it; "
    "check the goal, or collect records that do"
)
"""What a user is warned of when `TransferLearner.serves_goal_` is false."""

PARAMETERS = ("goal", "method", "past_goals", "divergence", "on_unseen")


class TransferLearner:
    """Learns a decision policy for a goal from a log that was made for others.

    Several threads may use one learner: none of their records is lost. Processes that load,
    update and save one file at the same time get a `ConflictError`, all but the first.

    Parameters
    ----------
    goal : Goal
        What is wanted now.
    method : str or Method
        How to learn: a name of `pastwise.methods.names`, or a method with hyper-parameters of
        your choice, such as ``pastwise.methods.TL(prior_count=5)`` or ``"TL(prior_count=5)"``. The
        default plans ahead; ``"TL"`` is the paper's method.
    past_goals : tasks with goals, optional
        What was wanted in past tasks, where that is known. The further a task's goal lies from
        today's, the less its records count.
    divergence : Divergence
        How far a past goal lies from today's.
    on_unseen : "refuse" or "prior"
        What to answer for a state that the log does not have: an error or, if requested, a uniform
        rule with a warning.

    Attributes
    ----------
    rule_ : Rule
        The learned rule, by labels.
    counts_ : TransitionCounts
        The log, counted.
    ideal_ : IdealModel
        The goal over the states and actions of the log.
    findings_ : tuple of Finding
        What was found in the log on the way.

    Examples
    --------
    >>> log = {"room": ["cold", "cold", "mild"], "did": ["heat", "wait", "wait"],
    ...        "then": ["mild", "cold", "mild"]}
    >>> learner = TransferLearner(Goal(prefer={"mild": 1}))
    >>> learner = learner.fit(log, state="room", action="did", next_state="then")
    >>> {action: round(p, 4) for action, p in learner.rule_["cold"].items()}
    {'heat': 1.0, 'wait': 0.0}
    """

    def __init__(
        self,
        goal: Goal | Mapping[str, Any] | str | Path,
        *,
        method: str | AnyMethod = DEFAULT,
        past_goals: Mapping[Label, Goal] | None = None,
        divergence: Divergence = kl_divergence,
        on_unseen: OnUnseen = "refuse",
    ) -> None:
        self.goal = Goal.of(goal)
        self.method = method
        self.past_goals = past_goals
        self.divergence = divergence
        self.on_unseen: OnUnseen = on_unseen
        self._learning = Lock()  # one change at a time, from the counts to the new policy

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as given."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; what was fitted stays until `fit` is called again."""
        for name, value in params.items():
            if name not in PARAMETERS:
                raise ParameterError(
                    f"unknown parameter {name!r}; choose one of {', '.join(PARAMETERS)}"
                )
            setattr(self, name, value)
        return self

    def __copy__(self) -> Self:
        """A copy that learns on its own."""
        return deepcopy(self)

    def __repr__(self) -> str:
        method = "" if self.method == DEFAULT else f", method={self.method!r}"
        return f"TransferLearner({self.goal!r}{method})"

    def __str__(self) -> str:
        if not hasattr(self, "_policy"):
            return f"{self!r}, not fitted"
        return f"{self!r}\n{self._learned_from()}\n{self.rule_.table(max_rows=10)}"

    def _repr_html_(self) -> str:
        if not hasattr(self, "_policy"):
            return paragraph(str(self))
        sentences = paragraph(repr(self)) + paragraph(self._learned_from())
        return sentences + rule_html(self.rule_, max_rows=10)

    def _learned_from(self) -> str:
        """Such as: learned by TL from 440 records of 40 days: 5 states, 3 actions."""
        policy = self._fitted
        counts = policy.counts()
        source = counted(counts.num_records, "record")
        if policy.episodes is not None:
            source += f" of {counted_episodes(policy.episodes.number, policy.episodes.unit)}"
        sizes = f"{counted(len(counts.states), 'state')}, {counted(len(counts.actions), 'action')}"
        return f"learned by {policy.settings.method.name} from {source}: {sizes}"

    # Learning.

    def fit(
        self,
        log: Any,
        columns: Columns | Mapping[str, Any] | None = None,
        *,
        as_of: Any = None,
        **column_names: Any,
    ) -> Self:
        """Learn from a log.

        Parameters
        ----------
        log
            `TransitionCounts`, what `read_log` returned, or any table that `count_transitions`
            takes.
        columns : Columns or dict, optional
            Which columns hold what; instead, name them one by one: ``state=``, ``action=``,
            ``next_state=`` and so on, as `Columns.of` takes them.
        as_of : date or number, optional
            With weights that fall with age: the date from which ages count.
        """
        if isinstance(log, TransitionCounts) or isinstance(log, logs.Reading):  # noqa: SIM101
            if columns is not None or column_names:
                raise ParameterError("counts have their columns already; give none")
            return self._fit_read(log)
        if columns is not None and column_names:
            raise ParameterError(
                f"give the columns as Columns or by name, not both: {', '.join(column_names)}"
            )
        if columns is None:
            has_state = "state" in column_names or "features" in column_names
            if not has_state or "action" not in column_names:
                raise ParameterError(
                    "which columns hold what? Give state= or features=, action=, and next_state= "
                    "or next_features=, or episode= and time="
                )
            columns = Columns.of(**column_names)
        else:
            columns = as_columns(columns)
        if as_of is not None and columns.age is None:
            raise ParameterError("as_of has no effect without age; drop it, or name the age column")
        conditions = self._conditions()
        columns = columns.cut_for(conditions)
        reading = logs.read_log(log, columns, as_of=as_of, goal=Goal.of(self.goal))

        # Edges that were found in the log may need cuts as well.
        finer = reading.columns.cut_for(conditions)
        if finer != reading.columns:
            reading = logs.read_log(log, finer, as_of=as_of)
        self._learn(
            reading.counts,
            reading.columns,
            reading.findings,
            logs.library_of(log),
            episodes=reading.episodes,
        )
        logs.warn_of(reading, stacklevel=3)
        if not self.serves_goal_:
            warnings.warn(NOTHING_SERVES, LogWarning, stacklevel=2)
        return self

    def _fit_read(self, log: TransitionCounts | logs.Reading) -> Self:
        """Learn from a log that was read before."""
        if isinstance(log, TransitionCounts):
            return self.fit_counts(log)
        return self._learn(log.counts, log.columns, log.findings, None, episodes=log.episodes)

    def _conditions(self) -> list[Condition]:
        """The conditions of the goal and of the past goals."""
        conditions: list[Condition] = []
        for goal in (self.goal, *(self.past_goals or {}).values()):
            conditions.extend(Goal.of(goal).conditions())
        return conditions

    def fit_counts(self, counts: TransitionCounts, columns: Columns | None = None) -> Self:
        """Learn from counts, and remember the columns that they were read by, to read more logs."""
        return self._learn(counts, columns, (), None)

    def _learn(
        self,
        counts: TransitionCounts,
        columns: Columns | None,
        findings: tuple[Finding, ...],
        backend: str | None,
        versions: dict[Path, str] | None = None,
        episodes: EpisodeSummary | None = None,
    ) -> Self:
        """Learn from counts; an error leaves the learner as it was."""
        if counts.shape and counts.tasks is None:
            raise ParameterError(
                "counts of several logs: take their total() first, or name them as tasks"
            )
        settings = Settings(
            goal=self.goal,
            method=_as_method(self.method),
            past_goals=self.past_goals,
            divergence=self.divergence,
            on_unseen=self.on_unseen,
        )
        policy = PolicyState(
            settings,
            counts,
            columns,
            findings,
            backend,
            versions=versions or {},
            episodes=None if episodes is None else episodes.within(counts),
        )
        policy.memory()  # problems with the goal or the method show now
        with self._learning:
            self._policy = policy
        return self

    def observe(
        self,
        state: Label | Row,
        action: Label,
        next_state: Label | Row | None = None,
        *,
        weight: float = 1.0,
        date: float | None = None,
        reward: float | None = None,
    ) -> Self:
        """Learn from one more record; the same as refitting with it, up to rounding.

        A record of known labels costs a time that does not depend on the log; a method that plans
        does so again when its rule is next needed. New labels enlarge the spaces, and everything
        is learned again from the counts. A record that leaves a terminal state is left out, with a
        warning.

        Parameters
        ----------
        state, action, next_state : labels
            A state may also be a raw value, where it is a bin of one column, or a row: the values
            of the state's columns by name. The next state of a one-shot decision is its outcome;
            leave it out where that is the reward.
        weight : float
        date : float, optional
            When the record was made, in the unit of the age column or, for dates, in seconds since
            1970. Needed if weights fall with age, and only then. A date later than that of all
            records so far makes them older: everything is learned again from the counts.
        reward : float, optional
            Reward of the record. Needed if the log has rewards, and only then.
        """
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise ParameterError(f"a weight must be finite and positive, not {weight!r}")
        action = checked_label(action)
        with self._learning:
            policy = self._fitted
            counts = policy.log
            require_reward(reward, counts.has_rewards)
            next_state = follows(policy.columns, counts.states, next_state, reward)
            state = checked_label(policy.reader.label(state))
            next_state = policy.label_of_next(next_state)
            if counts.tasks is not None:
                raise ParameterError("a log of several tasks is extended by merging counts")
            decay = dated(counts.decay, date)

            # A terminal state is not left.
            is_known_state = counts.states.has(state)
            if is_known_state and counts.states.index(state) in counts.terminal:
                message = f"a record that leaves the terminal state {state!r} was left out"
                warnings.warn(message, LogWarning, stacklevel=2)
                return self

            # New labels or a later date change everything.
            are_known = (
                is_known_state and counts.actions.has(action) and counts.states.has(next_state)
            )
            is_later = decay is not None and decay.as_of > _as_of(counts)
            if is_later or not are_known:
                record = one_record(
                    state, action, next_state, counts, weight, reward, policy.columns
                )
                return self.merge(replace(record, decay=decay))

            # The weight as of the date of the log.
            age_factor = 1.0 if decay is None else decay.factor(_as_of(counts))
            policy.observe(
                counts.states.index(state),
                counts.actions.index(action),
                counts.states.index(next_state),
                float(weight) * age_factor,
                reward,
            )
        return self

    def update(self, log: Any) -> Self:
        """Learn from one more log, read with the columns and bins of the first."""
        reading = self._read(log)
        with self._learning:
            outcome = reading.columns.outcome
            if outcome and share_a_label(self.counts_, reading.counts):
                raise outcome_is_state(outcome)
            self._merge(reading.counts, reading.episodes)
            self._policy.findings = reading.findings
        logs.warn_of(reading, stacklevel=3)
        return self

    def merge(self, other: TransitionCounts) -> Self:
        """Learn from the counts of another log as well; labels are united.

        Records that leave a state which is terminal in the other log are left out, with a warning.
        Counts know no episodes: the other log's records belong to none.
        """
        if not isinstance(other, TransitionCounts):
            raise ParameterError(
                f"merge takes TransitionCounts, not {type(other).__name__}; update takes a log, "
                "load_counts reads counts from a file"
            )
        self._merge(other, None)
        return self

    def _merge(self, other: TransitionCounts, episodes: EpisodeSummary | None) -> None:
        """Learn from other counts as well, and from the summary of their episodes, if known."""
        with self._learning:
            policy = self._fitted
            own = self.counts_
            both = own + other
            left_out = own.num_records + other.num_records - both.num_records
            self._learn(
                both,
                policy.columns,
                policy.findings,
                policy.backend,
                policy.versions,
                episodes=_together(policy.episodes, episodes),
            )
        if left_out:
            message = f"left out: {counted(left_out, 'record')} leaving a terminal state"
            warnings.warn(message, LogWarning, stacklevel=3)

    def retarget(
        self,
        goal: Goal | Mapping[str, Any] | str | Path,
        method: str | AnyMethod | None = None,
        *,
        log: Any = None,
    ) -> TransferLearner:
        """A learner for another goal, or by another method, from the same counts.

        Parameters
        ----------
        goal : Goal
        method : name or method, optional
            By default the learner's own. A skill of the past that was given to it is left out,
            since it was that for the former goal.
        log : optional
            The log that was learned from, where it is still at hand. It is counted again, with
            finer states, if a condition of the goal lies within a state. Records that were
            observed or merged since are then left out.

        Raises
        ------
        StraddleError
            If a condition of the goal lies within a state, and there is no log to count again.
        """
        policy = self._fitted
        settings = policy.settings
        other = TransferLearner(
            goal,
            method=method or for_another_goal(settings.method),
            past_goals=settings.past_goals,
            divergence=settings.divergence,
            on_unseen=settings.on_unseen,
        )
        try:
            return other._learn(
                policy.counts(),
                policy.columns,
                policy.findings,
                policy.backend,
                dict(policy.versions),
                policy.episodes,
            )
        except StraddleError:
            if log is None or policy.columns is None:
                raise
        return other._learn_again(log, policy)

    def _learn_again(self, log: Any, past: PolicyState) -> Self:
        """Learn from a log that another policy was learned from, with states cut for the goal."""
        columns = past.columns
        if columns is None:
            raise LogError("the policy does not know the columns of its log; fit on the log anew")
        counts = past.counts()
        as_of = None if counts.decay is None else counts.decay.as_of
        reading = logs.read_log(log, columns.cut_for(self._conditions()), as_of=as_of)
        self._learn(
            reading.counts,
            reading.columns,
            reading.findings,
            logs.library_of(log),
            dict(past.versions),
            reading.episodes,
        )
        logs.warn_of(reading, stacklevel=4)
        if reading.counts.num_records != counts.num_records:
            warnings.warn(
                f"the log has {counted(reading.counts.num_records, 'record')} and the policy had "
                f"{counts.num_records:,}: it was learned from another log, or learned more since",
                LogWarning,
                stacklevel=3,
            )
        return self

    def live(self, seed: int | None = None, *, epochs: int = 0, fixed: bool = False) -> LivePolicy:
        """The policy as it is now, for a running loop in which it decides and goes on learning.

        Parameters
        ----------
        seed : int, optional
            Seed of the decisions.
        epochs : int
            How many decisions the loop is going to make, for methods that explore as long as there
            is time to profit from it, such as the default. 0: it does not explore, but still
            learns from what it observes.
        fixed : bool
            The rule stays as it is: records are counted for `LivePolicy.take`, and nothing else.
            Every method can be run so, and its state be stored by `LivePolicy.snapshot`.
        """
        return LivePolicy(self._fitted, seed, epochs, fixed)

    def count(self, log: Any) -> TransitionCounts:
        """Count another log with the columns and bins of the first; warns of what it leaves out."""
        reading = self._read(log, episodes=False)
        logs.warn_of(reading, stacklevel=3)
        return reading.counts

    def read(self, log: Any) -> logs.Reading:
        """Read another log like `count`, with what counts forget about its episodes."""
        reading = self._read(log)
        logs.warn_of(reading, stacklevel=3)
        return reading

    def _read(self, log: Any, *, episodes: bool = True) -> logs.Reading:
        return logs.read_log(log, self._known_columns(), more=True, episodes=episodes)

    def _known_columns(self) -> Columns:
        columns = self._fitted.columns
        if columns is None:
            raise LogError(
                "this learner was fitted on counts, so it does not know the columns of a table; "
                "merge counts instead"
            )
        return columns

    # Answers.

    @property
    def _fitted(self) -> PolicyState:
        if not hasattr(self, "_policy"):
            raise NotFittedError("this learner has not learned yet; call fit first")
        return self._policy

    @property
    def fitted_(self) -> PolicyState:
        """What was learned, by index, for code that works on policies."""
        return self._fitted

    @property
    def method_(self) -> AnyMethod:
        """The method that learned."""
        return self._fitted.settings.method

    @property
    def similarity_(self) -> Similarity:
        """How well a transition serves the goal, as the method sees it."""
        return self._fitted.settings.similarity

    @property
    def rests_on_similarity_(self) -> bool:
        """Whether the similarity of records carries the rule, as with TL."""
        plan = self._fitted.plan()
        return plan.adds_up and RECORDS in plan.parts

    @property
    def serves_goal_(self) -> bool:
        """Whether any record of the log leads to something that the goal wants.

        A goal to which all transitions are equal is served by any of them, and a log without
        records is not blamed.
        """
        counts = self._fitted.counts_to_learn_from()
        if not len(counts.key):
            return True
        utility = Utility.of(self._fitted.ideal, counts.terminal)
        return utility.is_indifferent or bool(utility.of_log(counts).is_useful)

    @property
    def columns_(self) -> Columns | None:
        """The columns that the log was read with, if it was a table."""
        return self._fitted.columns

    @property
    def findings_(self) -> tuple[Finding, ...]:
        """What was found in the log on the way."""
        return self._fitted.findings

    @property
    def episodes_(self) -> EpisodeSummary | None:
        """What is known of the log's episodes, where it has any."""
        return self._fitted.episodes

    @property
    def checksum_(self) -> str:
        """Checksum of the file that the policy was last read from or written to; else empty."""
        return next(reversed(self._fitted.versions.values()), "")

    @property
    def ideal_(self) -> IdealModel:
        """The goal over the states and actions of the log."""
        return self._fitted.ideal

    @property
    def counts_(self) -> TransitionCounts:
        """The log, counted, with everything that was learned since."""
        return self._fitted.counts()

    @property
    def rule_(self) -> Rule:
        """The learned rule of every state."""
        policy = self._fitted
        answers_unseen = policy.settings.on_unseen == "prior"
        return Rule(
            states=policy.log.states,
            actions=policy.log.actions,
            probabilities=policy.plan().rule,
            similarity=policy.similarity_behind(),
            fallback=policy.fallback_rule if answers_unseen else None,
            backend=policy.backend,
            reader=policy.reader,
            basis=self._basis(),
        )

    def _basis(self) -> Basis:
        """What tables show of the records behind the rule."""
        policy = self._fitted
        plan = policy.plan()
        return Basis(
            policy.counts().total(),
            policy.episodes,
            by_similarity=self.rests_on_similarity_,
            values=plan.parts.get(VALUE),
            allowed=policy.ideal.allowed,
        )

    def rule(self, state: Label | Row) -> dict[Label, float]:
        """The learned rule of one state; with TL in a time that does not depend on their number.

        Parameters
        ----------
        state : label, raw value or row
            A label; a raw value, where the state is a bin of one column; or the values of the
            state's columns by name.
        """
        policy = self._fitted
        refuse = policy.settings.on_unseen == "refuse"
        index = known_index(policy.reader.index, state, refuse=refuse)
        row = policy.fallback_rule if index is None else policy.plan_at(index).rule[0]
        return dict(zip(policy.log.actions.labels, row.tolist(), strict=True))

    @property
    def regions_(self) -> Mapping[Label, Region]:
        """What each state means in terms of the log's columns."""
        return self._fitted.regions()

    @property
    def classes_(self) -> NDArray[Any]:
        """The actions, in the order of the columns of `predict_proba`: [A]."""
        return label_array(self._fitted.log.actions)

    def predict(self, table: Any, *, on_unseen: OnUnseen | None = None) -> NDArray[Any]:
        """The most probable action of each row: [rows].

        Parameters
        ----------
        table
            Rows to decide for, with the state's columns: a frame of any library, a path, a mapping
            of columns, a list of rows, or a list of states.
        on_unseen : "refuse" or "prior", optional
            What to do with a row that no state matches: an error, or the prior with a warning. By
            default as given to the learner.
        """
        return decisions_for(self._fitted, table, on_unseen).labels()

    def predict_proba(self, table: Any, *, on_unseen: OnUnseen | None = None) -> FloatArray:
        """The probability of each action for each row, see `predict` and `classes_`: [rows, A]."""
        return decisions_for(self._fitted, table, on_unseen).probabilities

    def decide(self, table: Any, *, on_unseen: OnUnseen | None = None) -> Any:
        """The most probable action of each row, with what it rests on, as a table.

        The columns are the action, its probability, the row's state, the records (and episodes) of
        that state, and ``is_extrapolation``: whether the log has no record of a decision there, or
        the row has a category that the tree of states does not know.

        Parameters
        ----------
        table, on_unseen
            As in `predict`. A frame of pandas, polars or pyarrow gives one of the same library, a
            list gives a list of dicts, and a mapping of columns a mapping.
        """
        return in_library_of(table, decisions_for(self._fitted, table, on_unseen))

    def decisions(self, table: Any, *, on_unseen: OnUnseen | None = None) -> Decisions:
        """The same as a typed result."""
        return decisions_for(self._fitted, table, on_unseen)

    def rule_intervals(self) -> tuple[FloatArray, FloatArray]:
        """Central 90 % interval of each of TL's probabilities: low, high [S, A].

        They come from the similarity-weighted posterior, so they show how much the rule would
        move with other records of the same total similarity, and nothing physical; see
        `theory.learning.rule_interval`.
        """
        policy = self._fitted
        counts = policy.counts_to_learn_from()
        evidence = gather_evidence(counts, policy.ideal, policy.settings.similarity)
        return rule_interval(evidence, self._prior())

    def support(self) -> Support:
        """What the rule of each state rests on."""
        policy = self._fitted
        arrays = state_support(
            policy.counts_to_learn_from(),
            policy.ideal,
            self._prior(),
            policy.settings.similarity,
        )
        counts = policy.counts()
        visits = None if policy.episodes is None else policy.episodes.visits
        return Support(
            counts.states,
            arrays,
            policy.backend,
            counts.terminal,
            episodes=None if visits is None else visits.by_state,
            unit=None if policy.episodes is None else policy.episodes.unit,
        )

    def past_dependence(self) -> PastDependence | None:
        """How much the rule depends on how good the past was.

        Where it matters, find out who left the log and give ``TLForesight(past_skill=...)``. None
        where the method does not infer how good it was, and above 1,000 states, where it would take
        long.
        """
        policy = self._fitted
        return PastDependence.of(
            policy.settings.method,
            policy.counts_to_learn_from(),
            policy.ideal,
            policy.plan().rule,
        )

    def _prior(self) -> FloatArray:
        """Prior concentration behind TL's rule, with the method's prior count if it has one."""
        policy = self._fitted
        prior_count = None
        if self.rests_on_similarity_:
            prior_count = getattr(policy.settings.method, "prior_count", None)
        return prior_concentration(policy.ideal, prior_count)

    def explain(
        self, state: Label | Row, action: Label | None = None, *, max_states: int = 300
    ) -> Explanation:
        """Why each action, or one, has its probability in a state.

        With TL: which past transitions carry how much of it. With a planner: the value of the rule
        if the action is always taken there, with its standard deviation and measured as `evaluate`
        does it; what the past's example adds; and the transitions that the value rests on.

        Parameters
        ----------
        max_states : int
            In larger systems values are those of the plan itself, because sampling models takes
            seconds there.
        """
        policy = self._fitted
        states = policy.log.states
        actions = policy.log.actions
        s = policy.reader.index(state)
        chosen = range(len(actions)) if action is None else [actions.index(action)]
        reasons = {actions.labels[a]: policy.reason(s, a) for a in chosen}
        method = policy.settings.method.name
        if not policy.plan_at(s).is_measured:
            return Explanation(states.labels[s], method, reasons)
        counts = self.counts_.total()
        goal = policy.goal
        if len(states) > max_states or counts.num_records == 0:
            is_measure = Utility.of(policy.ideal, counts.terminal).is_measure
            measure = measure_of(goal, counts) if is_measure else "planned utility"
            return Explanation(states.labels[s], method, reasons, measure)

        # Values of the allowed actions, as an evaluation has them.
        allowed = [label for label, reason in reasons.items() if reason.is_allowed]
        values, criterion = action_values(
            policy.plan().rule,
            s,
            [actions.index(label) for label in allowed],
            goal,
            counts,
            allowed=policy.ideal.allowed,
            episodes=policy.episodes,
        )
        for label, value in zip(allowed, values, strict=True):
            reasons[label] = replace(reasons[label], value=value)
        return Explanation(states.labels[s], method, reasons, criterion.measure, criterion.horizon)

    def evaluate(
        self,
        log: Any = None,
        *,
        initial: Mapping[Label, float] | None = None,
        learned_from_log: bool | None = None,
        alternatives: Sequence[str | AnyMethod] = ALTERNATIVES,
        **options: Any,
    ) -> Evaluation:
        """Whether the rule is better than what was done and than random actions.

        Everything is inferred from the log.

        Parameters
        ----------
        log : optional
            The log to evaluate on, anything that `fit` takes, or what `read` returns; by default
            the one learned from. If the rule was learned from its records, it is cross-fitted; see
            `evaluation.cross_fit`. Objections that concern episodes need more than counts.
        initial : states with probabilities, optional
            Where episodes start; by default as in the log, see `evaluation.criterion.log_starts`.
        learned_from_log : bool, optional
            Whether the rule was learned from the records of the log. By default: if the policy has
            seen each transition at least as often as the log has it. The log of a small system may
            look so by chance: give False for records that were held out.
        alternatives : names or methods
            Other methods that learn from the same records, whose rules are compared with this one;
            the learner's own is left out.
        options
            ``horizon``, ``samples``, ``rules``, ``seed``, ``margin``, ``thresholds``,
            ``assumptions``, ``max_states``, ``on_step``, ``should_stop``; see
            `evaluation.evaluate.evaluate_rule`.
        """
        judge = self._judge(log, initial, learned_from_log, options, alternatives)
        return judge(self._fitted.goal)

    def evaluate_goals(
        self,
        goals: Mapping[str, Goal],
        log: Any = None,
        *,
        initial: Mapping[Label, float] | None = None,
        learned_from_log: bool | None = None,
        **options: Any,
    ) -> dict[str, Evaluation]:
        """The same rule judged by several goals: whether it is better by each of them.

        The rule stays what was learned for the learner's own goal, also where it is learned anew
        for cross-fitting. FPD_learn and the optimum are those of the goal that judges. All goals
        have the same random streams.

        Parameters
        ----------
        goals : name -> Goal
            What to judge the rule by; the learner's own goal only if it is among them.
        log, initial, learned_from_log, options
            As in `evaluate`; with ``rules``, all rules are compared by all goals.

        Returns
        -------
        name -> Evaluation
            Of each goal, in the given order. If the sampling is stopped, the evaluation at which
            that happened is the last.
        """
        # A goal that does not fit the log shows before anything is sampled.
        policy = self._fitted
        in_labels: dict[str, Goal] = {}
        for name, goal in goals.items():
            try:
                in_labels[name] = policy.resolved(Goal.of(goal))
                ideal_on(in_labels[name], policy.log)
            except GoalError as error:
                raise GoalError(f"goal {name!r}: {error}", error.part) from None

        judge = self._judge(log, initial, learned_from_log, options)
        results: dict[str, Evaluation] = {}
        for name, goal in in_labels.items():
            results[name] = judge(goal)
            if results[name].samples < results[name].samples_requested:
                break
        return results

    def _judge(
        self,
        log: Any,
        initial: Mapping[Label, float] | None,
        learned_from_log: bool | None,
        options: Mapping[str, Any],
        alternatives: Sequence[str | AnyMethod] = (),
    ) -> Callable[[Goal], Evaluation]:
        """The evaluation of the rule by any goal, on a log that is read once."""
        policy = self._fitted
        require_state_limit(len(policy.log.states), options.get("max_states", MAX_STATES))
        counts, episodes = self._judged_by(log)
        if learned_from_log is None:
            learned_from_log = log is None or self.counts_.total().contains(counts)
        start = None
        if initial is not None:
            if not isinstance(initial, Mapping):
                raise ParameterError(
                    "initial takes states with their probabilities, such as {'cold': 1}, "
                    f"not {shown(initial)}"
                )
            start = np.zeros(len(counts.states))
            start[counts.states.indices(initial)] = list(initial.values())

        others = self._alternatives(alternatives, options.get("rules") or {}, learned_from_log)

        def judge(goal: Goal) -> Evaluation:
            result = evaluate_rule(
                policy.plan().rule,
                self.support().arrays,
                goal,
                counts,
                start,
                learn_without=policy.rule_without if learned_from_log else None,
                alternatives=others,
                backend=policy.backend,
                **{"episodes": episodes, **options},
            )
            return _without_alternative(result, policy.settings.method.name)

        return judge

    def _alternatives(
        self, methods: Sequence[str | AnyMethod], rules: Mapping[str, Any], learned_from_log: bool
    ) -> dict[str, FixedRule | LearnedRule]:
        """What other methods learn from the same records, unless a given rule has their name."""
        policy = self._fitted
        taken = {policy.settings.method.name, *rules}
        result: dict[str, FixedRule | LearnedRule] = {}
        for given in methods:
            method = _as_method(given)
            if method.name in taken:
                continue
            rule = policy.rule_by(method)
            if learned_from_log:
                result[method.name] = LearnedRule(rule, partial(policy.rule_by, method))
            else:
                result[method.name] = FixedRule(rule)
        return result

    def _judged_by(self, log: Any) -> tuple[TransitionCounts, EpisodeSummary | None]:
        """Counts of the log to evaluate on, over the policy's own labels, and its episodes.

        A log that is read here comes with a warning of what it leaves out.
        """
        if log is None:
            counts = self.counts_.total()
            episodes = self._fitted.episodes
        elif isinstance(log, TransitionCounts):
            counts = self._same_labels(log)
            episodes = None
        else:
            reading = log
            if not isinstance(log, logs.Reading):
                reading = self._read(log)
                logs.warn_of(reading, stacklevel=5)
            counts = self._same_labels(reading.counts)
            episodes = reading.episodes
        return counts, None if episodes is None else episodes.within(counts)

    def estimates(
        self,
        log: Any,
        horizon: int,
        propensity: str | None = None,
        *,
        rule: FloatArray | None = None,
        learned_from_log: bool | None = None,
        options: EstimateOptions = DEFAULT_OPTIONS,
    ) -> dict[str, Estimate]:
        """What the episodes of a log say about the rule: importance sampling and doubly robust.

        What is learned for the estimates comes from other episodes than it is judged by.
        ``dataclasses.replace(evaluation, estimates=...)`` puts the result next to the values on
        sampled models.

        Parameters
        ----------
        log
            Any table that `fit` takes, with episodes and times.
        propensity : str, optional
            Column of the probability with which the logged action was taken; by default the one
            named when learning.
        rule : [S, A], optional
            Another rule over the policy's labels, which was not learned from this log.
        learned_from_log : bool, optional
            Whether the policy was learned from this log. If so, its rule is learned anew for each
            fold, without the fold's records (where records have weights, the mean weight of their
            transition is taken away). By default: if the policy has seen each transition at least
            as often as the log has it.
        options : EstimateOptions
            Number of folds, and when an estimate is marked as unusable.
        """
        policy = self._fitted
        columns = self._known_columns()
        labels = (policy.log.states, policy.log.actions)
        episodes = logs.read_episodes(log, columns, *labels, propensity or columns.propensity)
        own = self.counts_.total()
        score = policy.goal.score(*labels, mean_rewards(policy.goal, own))
        if not policy.goal.maximise:
            episodes = replace(episodes, reward=None)

        # Is the rule to be learned anew in each fold?
        judged: FixedRule | LearnedRule
        if rule is not None:
            judged = FixedRule(np.asarray(rule, dtype=np.float64))
        else:
            judged = FixedRule(policy.plan().rule)
            logged = counts_of(episodes, judged.probabilities.shape, own.terminal)
            if learned_from_log is None:
                learned_from_log = own.contains(logged)
            if learned_from_log:
                judged = LearnedRule(judged.probabilities, policy.rule_without)
        return episode_estimates(
            episodes, judged, score, horizon, terminal=own.terminal, options=options
        )

    def workbench(
        self,
        *,
        name: str = "learner",
        data: str | Path | None = None,
        port: int = 0,
        browser: bool = True,
    ) -> OpenWorkbench:
        """Open the workbench on what was learned: goal and policy, trust, comparison, deployment.

        It runs in a thread of this process until ``close()`` of what is returned is called, or the
        process ends. Needs ``pip install 'pastwise[workbench]'``.

        Parameters
        ----------
        name : str
            What the page calls the log.
        data : path, optional
            Folder for what is saved on the page; by default a temporary one.
        port : int
            Port on this machine; 0 takes a free one.
        browser : bool
            Open a browser. Notebooks show what is returned as a link as well.
        """
        # The workbench is built on learners, so it is looked up when somebody wants to see it.
        from pastwise.workbench.notebook import OpenWorkbench

        folder = None if data is None else Path(data)
        return OpenWorkbench(self, name=name, data=folder, port=port, browser=browser)

    def _same_labels(self, counts: TransitionCounts) -> TransitionCounts:
        """The counts over the policy's own labels; an unknown one is an error."""
        own = self.counts_
        try:
            same = counts.total().relabelled(own.states, own.actions)
        except LabelError as error:
            raise LogError(f"the log has other labels than the policy: {error}") from None
        return same.ending_in(np.union1d(same.terminal, own.terminal))

    # Files.

    def save(self, path: str | Path) -> None:
        """Write all that was learned to a safetensors file; see `policy.file` for its layout.

        Raises
        ------
        ConflictError
            If the learner was loaded from this file, or saved to it, and somebody else has
            replaced it since. Nothing is written: load the file and learn again, or save to
            another one.
        """
        save_policy(self._fitted, path)

    @classmethod
    def _of(cls, policy: PolicyState) -> TransferLearner:
        settings = policy.settings
        learner = cls(
            settings.goal,
            method=settings.method,
            past_goals=settings.past_goals,
            divergence=settings.divergence,
            on_unseen=settings.on_unseen,
        )
        learner._policy = policy
        return learner


def _without_alternative(evaluation: Evaluation, name: str) -> Evaluation:
    """The evaluation without a comparison of a method with itself."""
    others = {other: each for other, each in evaluation.alternatives.items() if other != name}
    return replace(evaluation, alternatives=others)


def _as_method(method: object) -> AnyMethod:
    """A method by its name, or one that is given; anything else is refused."""
    if isinstance(method, str):
        return create(method)
    if isinstance(method, type):
        raise ParameterError(f"method={method.__name__} is a class; write {method.__name__}()")
    if not (hasattr(method, "start") and hasattr(method, "plan")):
        raise ParameterError(f"method must be a name or a Method, not {method!r}")
    return cast(AnyMethod, method)


def load(path: str | Path) -> TransferLearner:
    """The learner that `TransferLearner.save` wrote. Nothing is learned again."""
    return TransferLearner._of(load_policy(path))


def _together(one: EpisodeSummary | None, two: EpisodeSummary | None) -> EpisodeSummary | None:
    """The episodes of two logs; those of one, where the other has none."""
    if one is None or two is None:
        return one or two
    return one + two


def _as_of(counts: TransitionCounts) -> float:
    """The date that weights refer to; any, if they do not fall with age."""
    return 0.0 if counts.decay is None else counts.decay.as_of
