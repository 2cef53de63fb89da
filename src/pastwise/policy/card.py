"""A policy card: what a policy is for, what it rests on, and where it should not be used.

`report.card` writes it as Markdown and as HTML.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pastwise import __version__
from pastwise._pictures import RuleRow
from pastwise.data.episodes import counted_episodes
from pastwise.data.regions import Point
from pastwise.data.space import key_of
from pastwise.errors import ParameterError, listed
from pastwise.logs.columns import Columns
from pastwise.logs.findings import Finding, counted
from pastwise.methods.base import PAST_SKILL
from pastwise.methods.registry import text_of, to_settings
from pastwise.policy.export import Export, words_of
from pastwise.policy.learner import TransferLearner
from pastwise.policy.pictures import rule_rows
from pastwise.policy.summary import PolicySummary, QuickVerdict


@dataclass(frozen=True)
class CardState:
    """A state of a policy card.

    Attributes
    ----------
    state : str
        Its key.
    meaning : str
        The values of the raw columns, in words; empty where the label is just these values.
    action : str
        Key of the most probable action.
    probability : float
        Its probability.
    runner_up : str
        Key of the second action; empty if there is none.
    records : int
        Records of the log that leave the state.
    episodes : int, optional
        Episodes that they come from.
    is_weak : bool
        Whether the rule rests on less than ``min_records`` records; see `PolicyCard.of`.
    """

    state: str
    meaning: str
    action: str
    probability: float
    runner_up: str
    records: int
    episodes: int | None
    is_weak: bool


@dataclass(frozen=True)
class PolicyCard:
    """What somebody should know before using a policy.

    Attributes
    ----------
    title : str
    checksum : str
        SHA-256 of what the policy file holds; empty if the policy is in no file.
    version, method, goal : str
    data : mapping of names to text
        Where the policy comes from: records, episodes, columns.
    states : tuple of CardState
        Most visited first.
    verdict : QuickVerdict, optional
        Whether the policy is better than what was done, by the log.
    limits : tuple of str
        Where the policy should not be trusted.
    actions : tuple of str
        Keys of all actions.
    pictured : tuple of RuleRow
        The rule of the most visited states, for a picture.
    findings : tuple of Finding, optional
        What was odd in the log; None where that is not known, as for a policy from a file.
    rests_on : mapping of names to text
        How much of the log serves the goal.
    making : mapping of names to text
        How to make the policy again.
    """

    title: str
    checksum: str
    version: str
    method: str
    goal: str
    data: dict[str, str]
    states: tuple[CardState, ...]
    verdict: QuickVerdict | None
    limits: tuple[str, ...]
    actions: tuple[str, ...] = ()
    pictured: tuple[RuleRow, ...] = ()
    findings: tuple[Finding, ...] | None = None
    rests_on: dict[str, str] = field(default_factory=dict)
    making: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        learner: TransferLearner,
        verdict: QuickVerdict | None = None,
        *,
        title: str = "Policy card",
        checksum: str = "",
        min_records: int = 10,
        max_pictured: int = 40,
        findings: Sequence[Finding] | None = None,
    ) -> PolicyCard:
        """The card of what a learner has learned.

        Parameters
        ----------
        verdict : QuickVerdict, optional
        min_records : int
            States with fewer records count as weak. With 10 records, the share of times that
            something followed is known to about 0.16.
        max_pictured : int
            States that the picture of the rule shows: a printed page of them.
        findings : sequence of Finding, optional
            What was odd in the log, as `validate_log` finds it; by default what was noticed when
            the log was read.
        """
        if findings is None:
            findings = learner.findings_ or None

        states = _states(Export.of(learner), min_records)
        rule = learner.rule_
        return cls(
            title=title,
            checksum=checksum,
            version=__version__,
            method=_method(learner),
            goal=repr(learner.goal).removeprefix("Goal: "),
            data=_data(learner),
            states=states,
            verdict=verdict,
            limits=_limits(learner, states, verdict, min_records),
            actions=tuple(key_of(action) for action in rule.actions.labels),
            pictured=tuple(rule_rows(rule, max_pictured)),
            findings=None if findings is None else tuple(findings),
            rests_on=_rests_on(learner, verdict),
            making=_making(learner, checksum),
        )

    @property
    def has_meanings(self) -> bool:
        """Whether states mean more than their labels say."""
        return any(state.meaning for state in self.states)

    @property
    def has_episodes(self) -> bool:
        """Whether the episodes of each state are known."""
        return any(state.episodes is not None for state in self.states)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        left_out = ("verdict", "pictured")
        content = {name: value for name, value in vars(self).items() if name not in left_out}
        content["actions"] = list(self.actions)
        content["findings"] = [finding.to_dict() for finding in self.findings or ()]
        content["states"] = [asdict(state) for state in self.states]
        content["limits"] = list(self.limits)
        content["verdict"] = None if self.verdict is None else self.verdict.to_dict()
        return content


def _method(learner: TransferLearner) -> str:
    """Name and hyper-parameters of the method; of a method that is not registered, its name."""
    method = learner.method_
    try:
        settings = to_settings(method)
    except ParameterError:
        return method.name
    parameters = []
    for name, value in settings.items():
        if name != "name" and value is not None:
            shown = value.get("function", value) if isinstance(value, dict) else value
            parameters.append(f"{name} {shown}")
    return f"{method.name} ({', '.join(parameters)})" if parameters else method.name


def _method_text(learner: TransferLearner) -> str:
    """The method as a learner takes it; one that is not registered by its name."""
    try:
        return text_of(learner.method_)
    except ParameterError:
        return learner.method_.name


def _states(export: Export, min_records: int) -> tuple[CardState, ...]:
    """The states of an export, most visited first."""
    names = [str(action) for action in export.actions]
    states = []
    for state in export.states:
        order = sorted(range(len(names)), key=lambda a: (-state.probabilities[a], a))
        meaning: list[str] = []
        if not all(isinstance(values, Point) for values in state.region.values()):
            meaning = [f"{column}: {words_of(values)}" for column, values in state.region.items()]
        card = CardState(
            state=state.key,
            meaning="; ".join(meaning),
            action=names[order[0]],
            probability=state.probabilities[order[0]],
            runner_up=names[order[1]] if len(order) > 1 else "",
            records=state.records,
            episodes=state.episodes,
            is_weak=state.records < min_records,
        )
        states.append(card)
    return tuple(sorted(states, key=lambda state: -state.records))


def _data(learner: TransferLearner) -> dict[str, str]:
    """Where a policy comes from."""
    counts = learner.counts_
    data = {
        "Records": f"{counts.num_records:,}",
        "Distinct transitions": f"{len(counts.key):,}",
        "States": f"{len(counts.states):,}",
        "Actions": listed([str(action) for action in counts.actions.labels]),
    }
    episodes = learner.episodes_
    if episodes is not None:
        name = f" ({episodes.unit})" if episodes.unit else ""
        length = (
            f"{episodes.shortest:,} to {episodes.longest:,} records, {episodes.median:,} typical"
        )
        if episodes.shortest == episodes.longest:
            length = f"{counted(episodes.longest, 'record')} each"
        data["Episodes"] = f"{episodes.number:,}{name}, of {length}"
    columns = learner.columns_
    if columns is not None:
        data |= _column_data(columns)
    return data


def _column_data(columns: Columns) -> dict[str, str]:
    """Which columns hold what."""
    names: dict[str, tuple[str, ...]] = {
        "State columns": columns.state,
        "Features": columns.features,
        "Action columns": columns.action,
        "Next-state columns": columns.next_state,
        "Outcome": (columns.outcome,) if columns.outcome else (),
        "Reward": (columns.reward,) if columns.reward else (),
    }
    return {name: ", ".join(given) for name, given in names.items() if given}


def _rests_on(learner: TransferLearner, verdict: QuickVerdict | None) -> dict[str, str]:
    """How much of the log serves the goal, in records and episodes."""
    counts = learner.counts_
    support = learner.support().arrays
    source = counted(counts.num_records, "record")
    episodes = learner.episodes_
    if episodes is not None:
        source += f" of {counted_episodes(episodes.number, episodes.unit)}"
    content = {
        "Log": source,
        "Similar to the goal": f"{support.similarity.sum():.4g} records, by total similarity",
    }
    evaluation = None if verdict is None else verdict.evaluation
    if evaluation is not None:
        rests = evaluation["support"]
        share = f"{100 * rests['visits_well_seen']:.3g} %"
        content["Decisions on well-seen pairs"] = (
            f"{share} of the policy's decisions are on a state and an action that the log has at "
            f"least {rests['well_seen']} times"
        )
        guessed = rests["states_by_extrapolation"]
        if guessed:
            content["By extrapolation"] = (
                f"{counted(len(guessed), 'state')} that the log never left: {listed(guessed)}"
            )
        content["Judged on"] = (
            f"{counted(evaluation['samples'], 'sampled model')}, {evaluation['unit']}, over "
            f"{counted(evaluation['horizon'], 'epoch')}"
        )
    return content


def _making(learner: TransferLearner, checksum: str) -> dict[str, str]:
    """How to make the policy again: versions, goal, method and columns."""
    making = {
        "Versions": f"pastwise {__version__}, Python {platform.python_version()}, "
        f"numpy {np.__version__}",
        "Method": _method(learner),
        "Goal": json.dumps(learner.goal.to_dict(), ensure_ascii=False),
    }
    columns = learner.columns_
    if columns is not None and columns.encoding is None:
        making["Columns"] = json.dumps(_given(columns), ensure_ascii=False, default=str)
    making["Python"] = (
        f"pastwise.TransferLearner(pastwise.Goal.from_dict(goal), "
        f"method={_method_text(learner)!r}).fit(log, columns)"
    )
    if checksum:
        making["Checksum (SHA-256)"] = checksum
    return making


def _given(columns: Columns) -> dict[str, Any]:
    """What `Columns.of` was given, without what it chose by itself."""
    plain = columns.to_dict()
    left_out = ["partition", "encoding"]
    if not columns.features:
        left_out.append("max_states")
    return {name: value for name, value in plain.items() if value and name not in left_out}


def _limits(
    learner: TransferLearner,
    states: tuple[CardState, ...],
    verdict: QuickVerdict | None,
    min_records: int,
) -> tuple[str, ...]:
    """Where a policy should not be trusted."""
    limits = [
        "Everything was inferred from a log of past decisions. What influenced those decisions and "
        "is in no column may mislead the policy.",
        "The policy is for the goal above. For another goal, learn anew: pastwise retarget.",
    ]
    weak = [state for state in states if state.is_weak]
    if weak:
        limits.append(
            f"{counted(len(weak), 'state')} of {len(states):,} have fewer than {min_records} "
            "records; the table marks them."
        )
    if learner.on_unseen == "refuse":
        limits.append("A row that no state matches is refused.")
    else:
        limits.append(
            "A row that no state matches gets the prior, a uniform rule, and is marked as "
            "extrapolation."
        )
    past_skill = getattr(learner.method_, PAST_SKILL, None)
    if past_skill is not None:
        limits.append(
            f"Whoever made the policy said how good the past was for this goal: {past_skill:g}, "
            "where 1 are experts who had this goal, 0 random actions, and -1 experts who had the "
            "opposite goal. It was not inferred from the log."
        )
    limits += [_sentence(text) for text in PolicySummary.of(learner).warnings]
    if verdict is not None:
        limits += [_sentence(objection.message) for objection in verdict.objections]
    return tuple(limits)


def _sentence(text: str) -> str:
    """A message as a sentence."""
    begun = text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "...")) else f"{begun}."
