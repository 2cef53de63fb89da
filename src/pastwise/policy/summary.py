"""What a user is shown after learning or counting, as typed results.

The command line prints them; `to_dict` is the form that JSON and other interfaces share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import key_of
from pastwise.errors import PastwiseError
from pastwise.evaluation.evaluate import MAX_STATES
from pastwise.evaluation.objections import Objection
from pastwise.evaluation.verdict import Alarm, Verdict
from pastwise.goals.goal import Goal
from pastwise.policy.learner import NOTHING_SERVES, TransferLearner
from pastwise.policy.rule import Rule
from pastwise.policy.support import Support


@dataclass(frozen=True)
class CountsSummary:
    """How much there is in counts.

    Attributes
    ----------
    records : int
        Number of records.
    transitions : int
        Number of distinct transitions.
    states, actions : int
        Number of states and of actions.
    """

    records: int
    transitions: int
    states: int
    actions: int

    @classmethod
    def of(cls, counts: TransitionCounts) -> CountsSummary:
        """The summary of these counts."""
        return cls(
            records=counts.num_records,
            transitions=len(counts.key),
            states=len(counts.states),
            actions=len(counts.actions),
        )

    def to_dict(self) -> dict[str, int]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class QuickVerdict:
    """Whether a rule is better than what was done, from few samples.

    Attributes
    ----------
    sentence : str
        The verdict as a sentence, or why there is none.
    logged, random : Verdict, optional
        Against what was done, and against acting at random; None without a verdict.
    alarm : Alarm, optional
        Whether negative transfer is likely.
    margin : float, optional
        Smallest difference that matters, in the unit of the measure.
    objections : tuple of Objection
        Why the comparisons are not fair.
    alternatives : name -> Verdict
        Against what other methods learned from the same log.
    alternatives_in_words : str
        Their values, and which of them are better; empty without a verdict.
    values : name -> float
        Mean value of the rule, ``new``, and of all that it is compared with.
    evaluation : mapping, optional
        All of it, as `Evaluation.to_dict` has it; None without a verdict.
    """

    sentence: str
    logged: Verdict | None = None
    random: Verdict | None = None
    alarm: Alarm | None = None
    margin: float | None = None
    objections: tuple[Objection, ...] = ()
    alternatives: Mapping[str, Verdict] = field(default_factory=dict)
    alternatives_in_words: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    evaluation: Mapping[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; without a verdict, the sentence alone."""
        if self.alarm is None:
            return {"sentence": self.sentence}
        return {
            "sentence": self.sentence,
            "logged": self.logged,
            "random": self.random,
            "alarm": self.alarm.to_dict(),
            "margin": self.margin,
            "objections": [objection.to_dict() for objection in self.objections],
            "alternatives": dict(self.alternatives),
            "alternatives_in_words": self.alternatives_in_words,
            "values": dict(self.values),
        }


def quick_verdict(
    learner: TransferLearner,
    *,
    margin: float | None = None,
    samples: int = 400,
    max_states: int = 300,
) -> QuickVerdict:
    """A verdict in a second or two, on the log that the rule was learned from.

    Parameters
    ----------
    margin : float, optional
        Smallest difference that matters; see `evaluation.evaluate.evaluate_rule`.
    samples : int
        Sampled models. With 400 of them, ten lie outside a 95 % interval on either side.
    max_states : int
        Larger systems get no verdict here, because it would take longer than learning.
    """
    num_states = len(learner.counts_.states)
    if num_states > max_states:
        sentence = f"No verdict on so many states ({num_states:,})"
        if num_states <= MAX_STATES:
            sentence += "; run pastwise evaluate for one, which takes longer"
        return QuickVerdict(f"{sentence}.")
    try:
        result = learner.evaluate(samples=samples, margin=margin)
    except PastwiseError as error:
        return QuickVerdict(f"No verdict: {error}.")
    return QuickVerdict(
        sentence=result.sentence,
        logged=result.verdict["logged"],
        random=result.verdict["random"],
        alarm=result.alarm,
        margin=result.margin,
        objections=result.objections,
        alternatives={name: each.verdict for name, each in result.alternatives.items()},
        alternatives_in_words=result.alternatives_in_words,
        values={name: value.mean for name, value in result.values.items()},
        evaluation=result.to_dict(),
    )


def stored_verdict(evaluation: Mapping[str, Any]) -> QuickVerdict:
    """The verdict of an evaluation that was stored as `Evaluation.to_dict` has it."""
    alarm = {name: value for name, value in evaluation["alarm"].items() if name != "raised"}
    compared = evaluation["alternatives"].items()
    return QuickVerdict(
        sentence=evaluation["sentence"],
        logged=evaluation["verdict"]["logged"],
        random=evaluation["verdict"]["random"],
        alarm=Alarm(**alarm),
        margin=evaluation["margin"],
        objections=tuple(Objection(**each) for each in evaluation["objections"]),
        alternatives={name: each["verdict"] for name, each in compared},
        alternatives_in_words=evaluation["alternatives_in_words"],
        values={name: value["mean"] for name, value in evaluation["values"].items()},
        evaluation=evaluation,
    )


@dataclass(frozen=True)
class PolicySummary:
    """A learned policy with what it rests on.

    Attributes
    ----------
    goal : Goal
    method : str
        Name of the method.
    rule : Rule
    support : Support
        What the rule of each state rests on.
    warnings : tuple of str
        What was odd in the log, what should be known of the past, and states whose rule rests on
        too little.
    verdict : QuickVerdict, optional
        Whether the rule is better than what was done.
    """

    goal: Goal
    method: str
    rule: Rule
    support: Support
    warnings: tuple[str, ...]
    verdict: QuickVerdict | None = None

    @classmethod
    def of(cls, learner: TransferLearner, verdict: QuickVerdict | None = None) -> PolicySummary:
        """The summary of what a learner has learned."""
        support = learner.support()
        warnings = [finding.message for finding in learner.findings_]
        if not learner.serves_goal_:
            warnings.append(NOTHING_SERVES)
        elif (dependence := learner.past_dependence()) is not None and dependence.matters:
            warnings.append(dependence.sentence)
        warnings += support.warnings(by_similarity=learner.rests_on_similarity_)
        return cls(
            goal=learner.goal,
            method=learner.method_.name,
            rule=learner.rule_,
            support=support,
            warnings=tuple(warnings),
            verdict=verdict,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values; labels by their keys."""
        content: dict[str, Any] = {
            "states": [key_of(state) for state in self.rule.states.labels],
            "actions": [key_of(action) for action in self.rule.actions.labels],
            "goal": self.goal.to_dict(),
            "policy": self.rule.to_dict(),
            "support": self.support.to_dict(),
            "warnings": list(self.warnings),
            "method": self.method,
        }
        if self.verdict is not None:
            content["verdict"] = self.verdict.to_dict()
        return content
