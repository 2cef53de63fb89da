"""The command line: parse, call, render. Data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pastwise.cli.options import (
    File,
    by_name,
    goal_file,
    goal_options,
    json_option,
    log_options,
    output_option,
    take_columns,
    take_counts,
    take_goal,
    two_parts,
)
from pastwise.cli.output import print_note, print_table, print_text, print_warning
from pastwise.cli.study import reproduce, study
from pastwise.errors import ParameterError, PastwiseError
from pastwise.report.terminal import progress, spinner

if TYPE_CHECKING:
    from pastwise.data.counts import TransitionCounts
    from pastwise.policy.learner import TransferLearner

# Exit codes.
OK = 0
FINDINGS = 1
NOT_BETTER = 1
BAD_INPUT = 2
BUG = 70  # EX_SOFTWARE of sysexits.h, since 1 is a result
INTERRUPTED = 130
BROKEN_PIPE = 141

DEBUG = "PASTWISE_DEBUG"
"""Environment variable that, set to 1, shows the traceback of a bug."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pastwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn yesterday's decisions into a policy for today's goal."""


@cli.command()
@log_options
@json_option
def validate(log: str, as_json: bool, **options: Any) -> int:
    """Tell what there is in a log, what is odd about it, and how to mend it.

    Exit code 0: nothing found; 1: findings; 2: nothing can be learned from it.
    """
    from pastwise.logs.validate import validate_log

    columns = take_columns(options)
    with spinner("Reading"):
        found = validate_log(log, columns)
    if as_json:
        print_text(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        print_text(
            f"{found.rows:,} rows, {found.transitions:,} distinct transitions, "
            f"{found.states:,} states, {found.actions:,} actions"
        )
        if found.findings:
            from pastwise.report.terminal import findings_table

            print_table(findings_table(found.findings))
        else:
            print_text("Nothing odd was found.")
    return FINDINGS if found.findings else OK


@cli.command()
@log_options
@output_option
@json_option
def count(log: str, output: Path, as_json: bool, **options: Any) -> int:
    """Count a log, or a part of it, into a file that `merge` and `learn` take."""
    from pastwise.logs.read import read_log
    from pastwise.policy.file import save_counts

    columns = take_columns(options)
    with spinner("Reading"):
        found = read_log(log, columns)
    save_counts(found.counts, output, found.columns)
    for finding in found.findings:
        print_warning(f"{finding.message}. {finding.fix}")
    _tell_counts(found.counts, output, as_json)
    return OK


@cli.command()
@click.argument("parts", nargs=-1, required=True, type=File)
@output_option
@json_option
def merge(parts: tuple[Path, ...], output: Path, as_json: bool) -> int:
    """Put the counts of several files together, in any order."""
    from pastwise.policy.file import merge_counts, save_counts

    counts, columns = merge_counts(parts)
    save_counts(counts, output, columns)
    _tell_counts(counts, output, as_json)
    return OK


def _tell_counts(counts: TransitionCounts, output: Path, as_json: bool) -> None:
    sizes = {
        "records": counts.num_records,
        "transitions": len(counts.key),
        "states": len(counts.states),
        "actions": len(counts.actions),
    }
    words = ", ".join(f"{number:,} {name}" for name, number in sizes.items())
    print_text(json.dumps(sizes) if as_json else f"{words}; the counts are in {output}")


@cli.command()
@log_options
@goal_options
@click.option(
    "--past-goal",
    multiple=True,
    help="With --task: TASK=FILE, the goal of a past task, where it is known.",
)
@click.option(
    "--method", default="TL", show_default=True, help="TL, TL_explore, FPD_learn or TL_foresight."
)
@click.option(
    "--prior", type=float, help="Prior count of every transition; by default the goal's own."
)
@click.option(
    "-o", "--output", type=File, help="File to keep the policy in, such as policy.safetensors."
)
@click.option("--plots", type=File, help="Folder for figures of the policy.")
@click.option(
    "--no-verdict",
    is_flag=True,
    help="Leave out the verdict on whether the policy is better than what was done.",
)
@json_option
def learn(
    log: str,
    past_goal: tuple[str, ...],
    method: str,
    prior: float | None,
    output: Path | None,
    plots: Path | None,
    no_verdict: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Learn a policy for a goal from a log."""
    from pastwise.methods import create
    from pastwise.policy.learner import TransferLearner

    chosen = create(method, **({} if prior is None else {"prior_count": prior}))
    counted = take_counts(log, options)
    columns = None if counted else take_columns(options)
    given = by_name("--past-goal", (two_parts("--past-goal", text, "=") for text in past_goal))
    past: dict[Any, Any] = {task: goal_file(file) for task, file in given.items()}
    with take_goal(options) as goal, _reading():
        learner = TransferLearner(goal, method=chosen, past_goals=past or None, on_unseen="refuse")
        learner.fit(log, columns=columns) if counted is None else learner.fit_counts(*counted)
    _keep(learner, output, plots)
    _show(learner, as_json, output, None if no_verdict else _verdict(learner))
    return OK


@contextmanager
def _reading() -> Iterator[None]:
    """While a log is learned from: a sign of life, and no warnings, for findings are shown with the result."""
    with spinner("Reading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _telling() -> Iterator[None]:
    """Warnings in a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print_warning(str(warning.message))


QUICK_DRAWS, QUICK_STATES = 400, 300
"""Draws of the short verdict; larger systems go without one."""


def _verdict(learner: TransferLearner) -> dict[str, Any]:
    """The verdict in short, or why there is none."""
    from pastwise.evaluation.evaluate import MAX_STATES

    number = len(learner.counts_.states)
    if number > QUICK_STATES:
        later = "; pastwise evaluate takes its time for one" if number <= MAX_STATES else ""
        return {"sentence": f"No verdict on so many states ({number:,}){later}."}
    try:
        result = learner.evaluate(samples=QUICK_DRAWS)
    except PastwiseError as error:
        return {"sentence": f"No verdict: {error}."}
    return {"sentence": result.sentence, **result.verdict, "alarm": result.alarm}


def _keep(learner: TransferLearner, output: Path | None, plots: Path | None = None) -> None:
    """Write the policy and its figures where they are wanted; if one fails there is none of the other."""
    from pastwise._files import staged
    from pastwise.report.figures import draw_policy

    with ExitStack() as stack:
        if plots is not None:
            draw_policy(learner, stack.enter_context(staged(plots)))
        if output is not None:
            learner.save(output)


def _show(
    learner: TransferLearner,
    as_json: bool,
    output: Path | None,
    verdict: dict[str, Any] | None = None,
) -> None:
    rule, support = learner.rule_, learner.support()
    by_similarity = learner.method_.name in (
        "TL",
        "TL_explore",
    )  # planners rest on records, not on similarity
    notes = [finding.message for finding in learner.findings_] + (
        support.warnings() if by_similarity else []
    )
    if as_json:
        policy = rule.to_dict()
        content = {
            "states": [*policy],
            "actions": [*next(iter(policy.values()))],
            "policy": policy,
            "support": support.to_dict(),
            "warnings": notes,
            "method": learner.method_.name,
        }
        if verdict is not None:
            content["verdict"] = verdict
        print_text(json.dumps(content, ensure_ascii=False, allow_nan=False))
        return
    from pastwise.policy.rule import WEAK
    from pastwise.report.terminal import rule_table

    print_text(repr(learner.goal))
    print_table(rule_table(rule, support, WEAK))
    for note in notes:
        print_warning(note)
    if verdict is not None:
        print_text(verdict["sentence"])
    if output is not None:
        print_text(f"The policy is in {output}")


@cli.command()
@click.argument("policy", type=File)
@click.argument("log")
@click.option(
    "--horizon", type=int, default=100, show_default=True, help="Number of epochs to look ahead."
)
@click.option(
    "--draws",
    type=int,
    default=2000,
    show_default=True,
    help="Models drawn from what the log tells.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers.",
)
@click.option(
    "--importance",
    is_flag=True,
    help="Also estimate by importance sampling, from the episodes of the log.",
)
@click.option(
    "--propensity", help="With --importance: column with the probability of the logged action."
)
@json_option
def evaluate(
    policy: Path,
    log: str,
    horizon: int,
    draws: int,
    seed: int,
    importance: bool,
    propensity: str | None,
    as_json: bool,
) -> int:
    """Tell whether a policy is better than what was done, from a log alone.

    Exit code 0: better than what was done; 1: worse, or it cannot be told; 2: bad input.
    """
    from pastwise.evaluation.evaluate import require_state_limit
    from pastwise.policy.learner import load

    learner = load(policy)
    require_state_limit(len(learner.counts_.states))
    counted = take_counts(log, {})
    if counted and (importance or propensity):
        raise ParameterError(
            f"{log} holds counts, which have no episodes: importance sampling needs the log itself"
        )
    with _telling(), spinner("Reading"):
        counts = counted[0] if counted else learner.count(log)
        estimates = (
            learner.estimates(log, horizon, propensity, counts)
            if importance or propensity
            else None
        )
    with progress("Drawing", draws) as advance:
        result = learner.evaluate(
            counts, horizon=horizon, samples=draws, seed=seed, on_step=advance
        )
    result = replace(result, estimates=estimates) if estimates else result
    if as_json:
        print_text(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        from pastwise.report.terminal import value_table

        print_text(result.sentence)
        print_table(value_table(result))
    return OK if result.verdict["logged"] == "better" else NOT_BETTER


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("policy", type=File)
@click.argument("state")
@click.argument("action", required=False)
@json_option
def explain(policy: Path, state: str, action: str | None, as_json: bool) -> int:
    """Tell which past transitions carry how much of a probability.

    A label may begin with a dash; one that looks like an option, such as -h, goes after --.
    """
    from pastwise.policy.learner import load

    explanation = load(policy).explain(state, action)
    print_text(
        json.dumps(explanation.to_dict(), ensure_ascii=False) if as_json else str(explanation)
    )
    return OK


@cli.command()
@click.argument("policy", type=File)
@goal_options
@click.option(
    "--method", help="TL, TL_explore, FPD_learn or TL_foresight; by default the policy's own."
)
@output_option
@json_option
def retarget(policy: Path, method: str | None, output: Path, as_json: bool, **options: Any) -> int:
    """Learn a policy for another goal from what a policy was learned from; the log is not read again."""
    from pastwise.policy.learner import load

    with take_goal(options) as goal:
        learner = load(policy).retarget(goal, method)
    _keep(learner, output)
    _show(learner, as_json, output)
    return OK


@cli.command()
@click.argument("policy", type=File)
@click.argument("log")
@output_option
@json_option
def update(policy: Path, log: str, output: Path, as_json: bool) -> int:
    """Learn from one more log, with the columns and bins of the first."""
    from pastwise.policy.learner import load

    learner = load(policy)
    with _reading():
        learner.update(log)
    _keep(learner, output)
    _show(learner, as_json, output)
    return OK


@cli.command()
@click.argument("policy", type=File)
@output_option
def export(policy: Path, output: Path) -> int:
    """Write the rule as a table: .parquet, .csv or .json."""
    from pastwise.policy.learner import load

    load(policy).rule_.export(output)
    print_note(f"The rule is in {output}")
    return OK


cli.add_command(reproduce)
cli.add_command(study)


def main() -> NoReturn:
    """Entry point. The exit code says who erred.

    Bad input, which is a `PastwiseError` or a usage error, is one line and exit code 2; Ctrl-C is
    130. Any other exception is a bug: exit code 70 and a request to report it.
    """
    try:
        code = cli.main(prog_name="pastwise", standalone_mode=False)
    except SystemExit:  # click's way to leave when nobody reads on
        sys.exit(BROKEN_PIPE)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(BAD_INPUT)
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else "pastwise"
        _leave(BAD_INPUT, f"{error.format_message()} (see {name} --help)")
    except (click.Abort, KeyboardInterrupt) as error:
        status = str(error.__cause__ or error)  # click aborts because of a Ctrl-C
        _leave(INTERRUPTED, f"interrupted: {status}" if status else "interrupted")
    except PastwiseError as error:
        _leave(BAD_INPUT, str(error))
    except Exception as error:
        _leave(BUG, _bug_report(error))
    sys.exit(code)


def _bug_report(error: Exception) -> str:
    """What went wrong, and what to include in a report."""
    command = shlex.join(["pastwise", *sys.argv[1:]])
    lines = [
        f"this is a bug in pastwise, not a mistake of yours: {type(error).__name__}: {error}",
        "Please report it to the developers of pastwise, and include:",
        f"- the command: {command}",
        f"- the versions: pastwise {version('pastwise')}, Python {platform.python_version()}",
    ]
    if os.environ.get(DEBUG) == "1":
        lines.append("- the traceback:")
        lines.extend(traceback.format_exception(error))
    else:
        lines.append(f"- the traceback, which the same command shows with {DEBUG}=1 set")
    return "\n".join(lines).rstrip()


def _leave(code: int, message: str) -> NoReturn:
    click.echo(f"pastwise: {message}", err=True)
    sys.exit(code)


def run() -> NoReturn:
    """Run `main` as a program: after Ctrl-C it ends at once.

    Python itself would wait for threads. If Ctrl-C came during an import, it would end by a signal
    instead of an exit code.
    """
    try:
        main()
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            os._exit(INTERRUPTED)
        raise


if __name__ == "__main__":
    run()
