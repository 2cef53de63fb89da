"""What a learner knows after learning, by index: counts, goal, method, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise._numerics.checks import require_memory
from pastwise._numerics.threads import Lock
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.data.live_counts import LiveCounts
from pastwise.data.regions import Region, label_regions
from pastwise.data.space import Label, checked_label
from pastwise.errors import GoalError, ParameterError
from pastwise.evaluation.rewards import ideal_on
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.logs.columns import Columns
from pastwise.logs.findings import Finding
from pastwise.logs.rows import Row, RowReader
from pastwise.methods.base import RECORDS, AnyMethod, Plan
from pastwise.policy.explanation import Reason, reason_of
from pastwise.theory.learning import gather_evidence, similarity_of
from pastwise.theory.similarity import Divergence, Similarity, normalised_similarity, weigh_tasks

OnUnseen = Literal["prior", "refuse"]


@dataclass(frozen=True)
class Settings:
    """What a learner was asked to do: see `TransferLearner`, whose arguments these are."""

    goal: Goal
    method: AnyMethod
    past_goals: Mapping[Label, Goal] | None
    divergence: Divergence
    on_unseen: OnUnseen

    def __post_init__(self) -> None:
        object.__setattr__(self, "goal", Goal.of(self.goal))
        if self.past_goals is not None:
            past_goals = {task: Goal.of(goal) for task, goal in self.past_goals.items()}
            object.__setattr__(self, "past_goals", past_goals)
        if self.on_unseen not in ("prior", "refuse"):
            raise ParameterError(f"on_unseen is 'prior' or 'refuse', not {self.on_unseen!r}")

    @property
    def similarity(self) -> Similarity:
        """How well a transition serves the goal; the method's own choice where it makes one."""
        similarity: Similarity = getattr(self.method, "similarity", normalised_similarity)
        return similarity


@dataclass
class PolicyState:
    """A log, a goal, a method, and the plan that follows from them.

    The plan is made when it is first needed, or was read from a file. A record that is observed
    later goes into the counts at once, and into the method's memory where that is exact;
    otherwise the method starts again on the counts when it is next asked.

    Attributes
    ----------
    settings : Settings
    log : TransitionCounts
        The log as it was counted, with its tasks.
    columns : Columns, optional
        How the log was read, to read more of it.
    findings : tuple of Finding
        What was found in the log on the way.
    backend : str, optional
        Library that the log's table came in.
    versions : mapping from paths to checksums
        The files that this policy was read from or written to, as they were then.
    episodes : EpisodeSummary, optional
        What the counts forget about the log's episodes, where it has any. Records that were
        observed or merged since belong to none of them.

    Several threads may ask and observe: a lock keeps counts, memory and plan together.
    """

    settings: Settings
    log: TransitionCounts
    columns: Columns | None = None
    findings: tuple[Finding, ...] = ()
    backend: str | None = None
    known_plan: Plan | None = None
    versions: dict[Path, str] = field(default_factory=dict)
    episodes: EpisodeSummary | None = None
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)
    _memory: Any = field(default=None, repr=False)
    _observed: int = 0

    # The log.

    def regions(self) -> Mapping[Label, Region]:
        """What each state means in terms of the log's columns; ``state`` where it has none."""
        states = self.log.states
        if self.columns is None:
            return label_regions(states, states.fields or ("state",))
        return self.columns.regions(states)

    def resolved(self, goal: Goal) -> Goal:
        """A goal with the labels of this log's states in place of its conditions."""
        return goal.resolved(self.regions, self.log.states)

    @cached_property
    def goal(self) -> Goal:
        """The goal in labels of this log; ``settings.goal`` is what the user wrote."""
        return self.resolved(self.settings.goal)

    @cached_property
    def ideal(self) -> IdealModel:
        """The goal over the states and actions of the log."""
        return ideal_on(self.goal, self.counts())

    @cached_property
    def reader(self) -> RowReader:
        """Finds the state of labels and of raw rows."""
        return RowReader(self.columns, self.log.states, self.outcomes)

    @property
    def outcomes(self) -> list[int]:
        """States that are the outcomes of one-shot decisions: nothing is decided there."""
        is_one_shot = self.columns is not None and self.columns.outcome is not None
        outcomes: list[int] = self.log.terminal.tolist() if is_one_shot else []
        return outcomes

    def label_of_next(self, following: Label | Row) -> Label:
        """The label of what a record leads to: an outcome as it is, a state as it is read."""
        is_outcome = self.columns is not None and self.columns.outcome is not None
        return checked_label(following if is_outcome else self.reader.label(following))

    @cached_property
    def _live(self) -> LiveCounts:
        """Counts to learn from: all tasks as one log, with every record observed since."""
        return LiveCounts(self._weigh_tasks())

    def _weigh_tasks(self) -> TransitionCounts:
        """One log out of all tasks, each weighted by how near its known goal is to today's."""
        past_goals = self.settings.past_goals or {}
        tasks = self.log.tasks
        if tasks is None:
            if past_goals:
                raise GoalError("past_goals are given, but the log has no task column")
            return self.log
        ideals: list[IdealModel | None] = [None] * len(tasks)
        for task, goal in past_goals.items():
            if not tasks.has(task):
                raise GoalError(f"past_goals: the log has no task {task!r}")
            place = tasks.index(task)
            ideals[place] = ideal_on(self.resolved(goal), self.log.split()[place])
        logs = zip(self.log.split(), ideals, strict=True)
        return weigh_tasks(logs, self.ideal, self.settings.divergence)

    def require_goals_fit(self) -> None:
        """Refuse a goal, today's or a past one, that does not fit the log."""
        _ = self.ideal
        _ = self._live

    def counts(self) -> TransitionCounts:
        """The log with every record observed since."""
        with self._lock:
            if self._observed:
                self.log = self._live.counts()
                self._live = LiveCounts(self.log)
                self._observed = 0
            return self.log

    def counts_to_learn_from(self) -> TransitionCounts:
        """The same, with tasks weighted by their goals and taken together."""
        with self._lock:
            return self._live.counts()

    def observe(
        self,
        state: int,
        action: int,
        next_state: int,
        weight: float,
        reward: float | None = None,
    ) -> None:
        """Take in one record, given by index."""
        method = self.settings.method
        with self._lock:
            self._live.add(state, action, next_state, weight, reward)
            self._observed += 1
            self.known_plan = None
            if self.goal.maximise:
                # Another mean reward changes what is wanted.
                self._memory = None
                self.__dict__.pop("ideal", None)
            if self._memory is None:
                return
            if weight == 1 and method.exact_updates:
                record = (np.asarray(index) for index in (state, action, next_state))
                method.observe(self._memory, *record)
            else:
                self._memory = None

    # The plan.

    def memory(self) -> Any:
        """The method's memory of all records."""
        with self._lock:
            if self._memory is None:
                sizes = (len(self.log.states), len(self.log.actions))
                require_memory("a rule", sizes, "join states or actions into fewer")
                counts = self.counts_to_learn_from()
                self._memory = self.settings.method.start(counts, self.ideal)
            return self._memory

    def plan(self) -> Plan:
        """The plan of every state."""
        with self._lock:
            if self.known_plan is None:
                self.known_plan = self.settings.method.plan(self.memory())
            return self.known_plan

    def counts_and_plan(self) -> tuple[TransitionCounts, Plan]:
        """The log with every record observed, and the plan that follows from it."""
        with self._lock:
            return self.counts(), self.plan()

    def rule_without(self, records: TransitionCounts) -> FloatArray:
        """The rule [S, A] that the method learns from everything but some of the records."""
        return self.rule_by(self.settings.method, without=records)

    def rule_by(self, method: AnyMethod, without: TransitionCounts | None = None) -> FloatArray:
        """The rule [S, A] that another method learns from all records, or without some of them."""
        counts = self.counts_to_learn_from()
        ideal = self.ideal
        if without is not None:
            counts = counts.without(without)
            if self.goal.maximise:
                ideal = ideal_on(self.goal, counts)
        return method.plan(method.start(counts, ideal)).rule

    def plan_at(self, state: int) -> Plan:
        """The plan of one state: arrays [1, A]."""
        one = slice(state, state + 1)
        with self._lock:
            if self.known_plan is None:
                return self.settings.method.plan(self.memory(), one)
            return self.known_plan.at(one)

    @property
    def fallback_rule(self) -> FloatArray:
        """Rule for a state that the log does not have: uniform over what is allowed anywhere."""
        allowed_anywhere = self.ideal.allowed.any(axis=0)
        return normalise(np.asarray(allowed_anywhere, dtype=np.float64))

    def similarity_behind(self) -> FloatArray:
        """Total similarity of the records of each state: [S]."""
        with self._lock:
            plan = self.plan()
            if plan.adds_up and RECORDS in plan.parts:
                evidence = plan.parts[RECORDS]
            else:
                counts = self.counts_to_learn_from()
                evidence = gather_evidence(counts, self.ideal, self.settings.similarity)
        return np.asarray(evidence.sum(axis=-1))

    def reason(self, state: int, action: int) -> Reason:
        """Why an action has its probability in a state."""
        with self._lock:
            row = self._live.row(state, action)
            plan = self.plan_at(state)
        similarity = similarity_of(row, self.ideal, self.settings.similarity)
        is_allowed = bool(self.ideal.allowed_in(state)[action])
        reason = reason_of(plan, action, row, similarity, is_allowed)
        episodes = self.episodes
        if episodes is None or episodes.visits is None:
            return reason
        number = int(episodes.visits.of_state(state)[action])
        return replace(reason, episodes=number, unit=episodes.unit)
