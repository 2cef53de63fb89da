"""What the jobs of the workbench do, next to those of the service.

They run in worker processes, see `service.worker`. Policies come as the file of their counts, a
goal and a method, and are learned again, which takes less time than reading a policy file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from pastwise.errors import PastwiseError
from pastwise.evaluation.result import Evaluation
from pastwise.goals.goal import Goal
from pastwise.logs.sql import EngineLimits, locked_down
from pastwise.policy.learner import TransferLearner, load
from pastwise.service.tasks import FEWEST_SAMPLES, Arguments, Control, Result
from pastwise.service.tasks import TASKS as TASKS_OF_SERVICE
from pastwise.service.worker import SPILL
from pastwise.workbench.comparisons import compared
from pastwise.workbench.preview import learned
from pastwise.workbench.probes import probed
from pastwise.workbench.readings import columns_of
from pastwise.workbench.types_drafts import (
    ProbeResult,
)


class Policy(Arguments):
    """A policy: path of its counts, goal and method."""

    counts: str
    goal: dict[str, Any]
    method: str

    def learner(self) -> TransferLearner:
        """Learn it."""
        return learned(load(self.counts), self.goal, self.method)


# Verdicts.


class Verdict(Arguments):
    """Whether a policy is better than what was done.

    Attributes
    ----------
    judge : dict, optional
        Another goal to judge it by.
    log : str, optional
        The log, for second opinions from its episodes.
    blocking : list of str
        Codes of findings that overrule a verdict.
    preview : int
        A first result, the job's ``partial``, rests on one in so many of the samples.
    """

    policy: Policy
    blocking: list[str]
    judge: dict[str, Any] | None = None
    log: str | None = None
    samples: int = 2000
    horizon: int | None = None
    seed: int = 0
    preview: int = 10


def verdict(arguments: Verdict, control: Control) -> Result:
    """Evaluate a policy, as `pastwise evaluate --json` does."""
    with _collected_warnings() as messages:
        learner = arguments.policy.learner()
        samples = arguments.samples
        done = 0

        def step(number: int) -> None:
            nonlocal done
            done += number
            control.progress(done, samples)

        def shown(result: Evaluation) -> Result:
            content = result.to_dict()
            objections = [each["code"] for each in content["objections"]]
            content["overruled_by"] = list(dict.fromkeys([*objections, *arguments.blocking]))
            return {**content, "warnings": list(messages)}

        evaluate = _evaluation(learner, arguments, control)
        control.progress(0, samples)

        # A first result from a part of the samples, which are the first of all.
        first = max(FEWEST_SAMPLES, samples // arguments.preview)
        if 2 * first <= samples:
            preview = replace(evaluate(samples=first), samples_requested=samples)
            if control.should_stop():
                return shown(preview)
            control.partial(shown(preview))
        result = evaluate(samples=samples, on_step=step)

        # Second opinions, from the episodes of the log.
        log = arguments.log if arguments.judge is None else None
        if log is not None and not control.should_stop():
            try:
                with _reading(log, control):
                    estimates = learner.estimates(log, result.horizon)
                result = replace(result, estimates=estimates)
            except PastwiseError as error:
                messages.append(f"No second opinions: {error}")
        return shown(result)


def _evaluation(
    learner: TransferLearner, arguments: Verdict, control: Control
) -> Callable[..., Evaluation]:
    """The evaluation by the policy's own goal, or by another one."""
    options: dict[str, Any] = {
        "horizon": arguments.horizon,
        "seed": arguments.seed,
        "should_stop": control.should_stop,
        "threads": 1,
    }

    def evaluate(**more: Any) -> Evaluation:
        if arguments.judge is None:
            return learner.evaluate(**options, **more)
        goals = {"judge": Goal.from_dict(arguments.judge)}
        return learner.evaluate_goals(goals, **options, **more)["judge"]

    return evaluate


# Comparisons.


class Comparison(Arguments):
    """Judge policies by goals; the policies are named by the ids of their drafts."""

    policies: dict[str, Policy]
    goals: list[dict[str, Any]]
    blocking: list[str]
    samples: int = 1000
    seed: int = 0


def comparison(arguments: Comparison, control: Control) -> Result:
    """Compare every policy with every other one by every goal."""
    with _collected_warnings() as messages:
        learners = {name: policy.learner() for name, policy in arguments.policies.items()}
        result = compared(
            learners,
            arguments.goals,
            samples=arguments.samples,
            seed=arguments.seed,
            blocking=arguments.blocking,
            on_goal=lambda partial: control.partial(msgspec.to_builtins(partial)),
            on_step=control.progress,
            should_stop=control.should_stop,
        )
        result.warnings = list(messages)
    content: Result = msgspec.to_builtins(result)
    return content


# Probes.


class Probe(Arguments):
    """Ask again with more columns in the state, one at a time.

    Attributes
    ----------
    log : str
        Path of the log.
    counts : str
        Path of the counts as they are.
    columns : dict
        What `Columns.of` took for them.
    added : list of str
        The columns to add.
    """

    log: str
    counts: str
    columns: dict[str, Any]
    added: list[str]
    bins: dict[str, Any]
    goal: dict[str, Any]
    method: str
    samples: int = 400


def probe(arguments: Probe, control: Control) -> Result:
    """What becomes of a policy with more in the state."""
    with _collected_warnings() as messages:
        base = learned(load(arguments.counts), arguments.goal, arguments.method)
        items = []
        total = len(arguments.added) + 1
        control.progress(0, total)
        for done, column in enumerate(arguments.added):
            if control.should_stop():
                break
            with _reading(arguments.log, control):
                item = probed(
                    arguments.log,
                    base,
                    arguments.columns,
                    column,
                    bins=arguments.bins.get(column),
                    samples=arguments.samples,
                )
            items.append(item)
            control.progress(done + 1, total)
            partial = ProbeResult(items, None, list(messages))
            control.partial(msgspec.to_builtins(partial))

        # How much of what was done the episode explains: a person, for example.
        episode = None
        name = columns_of(arguments.columns).episode
        if name is not None and not control.should_stop():
            with _reading(arguments.log, control):
                episode = probed(arguments.log, base, arguments.columns, name, samples=0)
        control.progress(total, total)
    content: Result = msgspec.to_builtins(ProbeResult(items, episode, list(messages)))
    return content


# What several kinds need.


@contextmanager
def _reading(path: str, control: Control) -> Iterator[None]:
    """Lock DuckDB down to one file; what does not fit into memory goes to the job's folder."""
    with locked_down(EngineLimits((path,), spill_to=control.folder / SPILL)):
        yield


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """The texts of warnings, each once."""
    messages: list[str] = []

    def note(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in messages:
            messages.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield messages


TASKS = {
    **TASKS_OF_SERVICE,
    "verdict": (Verdict, verdict),
    "comparison": (Comparison, comparison),
    "probe": (Probe, probe),
}
"""For each kind of job, its arguments and what it does."""
