"""The commands: parse, call, print. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pastwise import __version__
from pastwise._interrupt import INTERRUPTED, ignore, was_interrupted
from pastwise.cli.options import (
    CommandWithMethods,
    File,
    GoalOptions,
    LogOptions,
    MethodOptions,
    OtherMethodOptions,
    is_counts_file,
    json_option,
    keep_inputs,
    margin_option,
    output_option,
    policy_argument,
    read_judging_goals,
    read_past_goals,
    takes,
    wide_option,
)
from pastwise.cli.output import (
    escape_what_cannot_be_shown,
    one_line,
    print_json,
    print_note,
    print_table,
    print_text,
    print_warning,
)
from pastwise.cli.serve import serve
from pastwise.cli.study import reproduce, study
from pastwise.cli.workbench import workbench
from pastwise.errors import ConditionError, ParameterError, PastwiseError, UnknownLabelError
from pastwise.report.terminal import progress, spinner

if TYPE_CHECKING:
    from pastwise.data.counts import TransitionCounts
    from pastwise.policy.learner import TransferLearner
    from pastwise.policy.summary import PolicySummary

# Exit codes.
OK = 0
FINDINGS = 1
NOT_BETTER = 1
BAD_INPUT = 2
BUG = 70  # EX_SOFTWARE of sysexits.h, since 1 is a result
BROKEN_PIPE = 141

DEBUG = "PASTWISE_DEBUG"
"""Environment variable that, set to 1, shows the traceback of a bug."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pastwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn yesterday's decisions into a policy for today's goal."""


# Logs.


@cli.command(short_help="Look at a table: its columns, and which probably hold what.")
@click.argument("log", metavar="LOG")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Rows to look at, at most; large tables are sampled in blocks.",
)
@wide_option
@json_option
def look(log: str, sample: int, wide: bool, as_json: bool) -> int:
    """Look at a table: its columns, their kinds, and which of them probably hold what.

    Prints the options of `pastwise learn` for the guessed roles. Check them: a guess rests on
    names and on a sample of the rows.
    """
    from pastwise.logs.look import look_at
    from pastwise.report.terminal import coloured_table

    with spinner("Reading"):
        found = look_at(log, sample=sample)
    if as_json:
        print_json(found)
    else:
        print_text(found.sentence)
        print_table(coloured_table(found.table()), wide=wide)
        print_text(found.advice(log))
    return OK


@cli.command(short_help="Check a log, and say how to fix what is odd about it.")
@takes(log=LogOptions)
@json_option
def validate(log: LogOptions, as_json: bool) -> int:
    """Check a log: what is in it, what is odd about it, and how to fix that.

    Exit code 0: nothing found; 1: findings; 2: nothing can be learned from it.
    """
    from pastwise.logs.validate import validate_log
    from pastwise.report.terminal import findings_table

    columns = log.columns()
    with spinner("Reading"):
        validation = validate_log(log.path, columns)

    if as_json:
        print_json(validation)
    else:
        print_text(validation.sentence)
        if validation.findings:
            print_table(findings_table(validation.findings))
        else:
            print_text("No findings.")
    return FINDINGS if validation.findings else OK


@cli.command(short_help="List the states of a log or policy, the most visited first.")
@takes(log=LogOptions)
@json_option
def states(log: LogOptions, as_json: bool) -> int:
    """List the labels of the states of a log, of counts or of a policy, the most visited first.

    A log needs the options that say which columns hold what; a file of counts or of a policy needs
    none.
    """
    from pastwise.data.visits import StateVisits
    from pastwise.report.terminal import coloured_table

    if log.is_counts:
        log.refuse_columns()
        from pastwise.policy.file import load_visits

        visits = load_visits(log.path)
    else:
        from pastwise.logs.read import read_log

        columns = log.columns()
        with spinner("Reading"):
            reading = read_log(log.path, columns)
        visits = StateVisits.of(reading.counts, reading.episodes)
    if as_json:
        print_json(visits)
    else:
        print_table(coloured_table(visits.table(max_rows=None)))
    return OK


@cli.command(short_help="Count a log into a file that `merge` and `learn` read.")
@takes(log=LogOptions)
@output_option
@json_option
def count(log: LogOptions, output: Path, as_json: bool) -> int:
    """Count a log, or a part of it, into a file that `merge` and `learn` read."""
    from pastwise.logs.read import read_log
    from pastwise.policy.file import save_counts

    keep_inputs(output, log.path)
    columns = log.columns()
    with spinner("Reading"):
        reading = read_log(log.path, columns)
    save_counts(reading.counts, output, reading.columns)

    for finding in reading.findings:
        print_warning(f"{finding.message}. {finding.fix}")
    _show_counts(reading.counts, output, as_json)
    return OK


@cli.command(short_help="Add up the counts of several files.")
@click.argument("parts", nargs=-1, required=True, type=File)
@output_option
@json_option
def merge(parts: tuple[Path, ...], output: Path, as_json: bool) -> int:
    """Add up the counts of several files; their order does not matter."""
    from pastwise.policy.file import merge_files

    counts = merge_files(parts, output)
    _show_counts(counts, output, as_json)
    return OK


def _show_counts(counts: TransitionCounts, output: Path, as_json: bool) -> None:
    """Show how much there is in counts, and where they are."""
    from pastwise.policy.summary import CountsSummary
    from pastwise.report.terminal import counts_line

    summary = CountsSummary.of(counts)
    if as_json:
        print_json(summary)
    else:
        print_text(f"{counts_line(summary)}; the counts are in {output}")


# Policies.


@cli.command(cls=CommandWithMethods)
@takes(log=LogOptions, goal=GoalOptions)
@click.option(
    "--past-goal",
    "past_goals",
    multiple=True,
    help="With --task: TASK=FILE, the goal of a past task, where it is known.",
)
@takes(method=MethodOptions)
@click.option(
    "-o", "--output", type=File, help="File to write the policy to, such as policy.safetensors."
)
@click.option("--plots", type=File, help="Folder for figures of the policy.")
@click.option(
    "--no-verdict",
    is_flag=True,
    help="Leave out the verdict on whether the policy is better than what was done.",
)
@margin_option
@wide_option
@json_option
def learn(
    log: LogOptions,
    goal: GoalOptions,
    past_goals: tuple[str, ...],
    method: MethodOptions,
    output: Path | None,
    plots: Path | None,
    no_verdict: bool,
    margin: float | None,
    wide: bool,
    as_json: bool,
) -> int:
    """Learn a policy for a goal from a log, or from counts of one."""
    from pastwise.policy.learner import TransferLearner
    from pastwise.policy.summary import PolicySummary, quick_verdict

    past_goal_files = [text.rpartition("=")[2] for text in past_goals]
    keep_inputs(output, log.path, goal.goal_file, *past_goal_files)
    learner = TransferLearner(
        goal.goal(),
        method=method.create(),
        past_goals=read_past_goals(past_goals) or None,
        on_unseen="refuse",
    )
    with goal.explaining_labels(), _reading():
        if log.is_counts:
            learner.fit_counts(*log.counts())
        else:
            learner.fit(log.path, columns=log.columns())
    _note_learned_states(learner)

    _save(learner, output, plots)
    verdict = None if no_verdict else quick_verdict(learner, margin=margin)
    _show_policy(PolicySummary.of(learner, verdict), output, wide, as_json)
    return OK


def _note_learned_states(learner: TransferLearner) -> None:
    """Say how many states were learned from features, and from how many records."""
    from pastwise.logs.findings import counted

    columns = learner.columns_
    partition = None if columns is None else columns.partition
    if partition is not None and partition.num_records is not None:
        print_note(
            f"{counted(len(partition), 'state')} learned from the features of "
            f"{counted(partition.num_records, 'record')}"
        )


@cli.command(cls=CommandWithMethods, short_help="Learn a policy for another goal, without the log.")
@policy_argument
@takes(goal=GoalOptions, method=OtherMethodOptions)
@click.option(
    "--log",
    help="The log that was learned from. It is counted again if a condition of the goal lies "
    "within a state.",
)
@output_option
@wide_option
@json_option
def retarget(
    policy: Path,
    goal: GoalOptions,
    method: OtherMethodOptions,
    log: str | None,
    output: Path,
    wide: bool,
    as_json: bool,
) -> int:
    """Learn a policy for another goal from the counts in a policy file, without the log."""
    from pastwise.policy.learner import load
    from pastwise.policy.summary import PolicySummary

    keep_inputs(output, goal.goal_file, log)
    new_goal = goal.goal()
    learner = load(policy)
    with goal.explaining_labels(), _reading():
        other = learner.retarget(new_goal, method.create(learner.method_), log=log)
    _save(other, output)
    _show_policy(PolicySummary.of(other), output, wide, as_json)
    return OK


@cli.command(short_help="Learn from one more log like the first.")
@policy_argument
@click.argument("log")
@output_option
@wide_option
@json_option
def update(policy: Path, log: str, output: Path, wide: bool, as_json: bool) -> int:
    """Learn from one more log, read with the columns and bins of the first."""
    from pastwise.policy.learner import load
    from pastwise.policy.summary import PolicySummary

    keep_inputs(output, log)
    learner = load(policy)
    with _reading():
        learner.update(log)
    _save(learner, output)
    _show_policy(PolicySummary.of(learner), output, wide, as_json)
    return OK


@cli.command(short_help="Show what a policy advises, and what that rests on.")
@policy_argument
@wide_option
@json_option
def show(policy: Path, wide: bool, as_json: bool) -> int:
    """Show the best action of each state with its support, the most visited states first."""
    from pastwise.policy.learner import load
    from pastwise.policy.summary import PolicySummary

    _show_policy(PolicySummary.of(load(policy)), None, wide, as_json)
    return OK


@contextmanager
def _reading() -> Iterator[None]:
    """Show a spinner, and no warnings: findings are shown with the result."""
    with spinner("Reading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _save(learner: TransferLearner, output: Path | None, plots: Path | None = None) -> None:
    """Write the policy and its figures where requested; if one fails, neither is written."""
    from pastwise._files import staged

    with ExitStack() as stack:
        if plots is not None:
            from pastwise.report.figures import draw_policy

            draw_policy(learner, stack.enter_context(staged(plots)))
        if output is not None:
            learner.save(output)


def _show_policy(summary: PolicySummary, output: Path | None, wide: bool, as_json: bool) -> None:
    """Show a policy with what it rests on, and where it is."""
    from pastwise.report.terminal import coloured_table

    if as_json:
        print_json(summary)
        return
    print_text(repr(summary.goal))
    table = summary.rule.wide_table() if wide else summary.rule.table()
    if table.note:
        table = replace(table, note=f"{table.note}; --wide shows all")
    print_table(coloured_table(table), wide=wide)
    for warning in summary.warnings:
        print_warning(warning)
    if summary.verdict is not None:
        print_text(summary.verdict.sentence)
        if summary.verdict.alternatives_in_words:
            print_text(summary.verdict.alternatives_in_words)
    if output is not None:
        print_text(f"The policy is in {output}")


@cli.command()
@policy_argument
@click.argument("log")
@click.option(
    "--horizon",
    type=click.IntRange(min=1, max=1_000_000),
    help="Number of epochs to look ahead; by default as many as the log's episodes suggest, and "
    "100 where it has none.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1, max=1_000_000),
    default=2000,
    show_default=True,
    help="Number of models to sample from the posterior of the log.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers.",
)
@margin_option
@click.option(
    "--importance",
    is_flag=True,
    help="Also estimate from the episodes of the log, cross-fitted: importance sampling and "
    "doubly robust. Estimates that rest on too little are marked as unusable.",
)
@click.option(
    "--propensity", help="With --importance: column with the probability of the logged action."
)
@click.option(
    "--held-out",
    is_flag=True,
    help="The policy was not learned from this log. By default it was, if it has seen each "
    "transition at least as often as the log has it.",
)
@click.option(
    "--by",
    "by_goals",
    metavar="NAME=FILE",
    multiple=True,
    help="Judge the policy by this goal as well; give one --by for each goal.",
)
@json_option
def evaluate(
    policy: Path,
    log: str,
    horizon: int | None,
    samples: int,
    seed: int,
    margin: float | None,
    importance: bool,
    propensity: str | None,
    held_out: bool,
    by_goals: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare a policy with what was done, from a log alone.

    Exit code 0: better than what was done, by the policy's own goal; 1: worse, not
    distinguishable, or not a fair comparison; 2: bad input.
    """
    from pastwise.evaluation.evaluate import require_state_limit
    from pastwise.policy.file import load_counts
    from pastwise.policy.learner import load
    from pastwise.report.terminal import (
        comparison_table,
        support_table,
        value_table,
        verdict_lines,
    )

    if propensity is not None and not importance:
        raise ParameterError("--propensity has no effect without --importance; add it, or drop it")
    learner = load(policy)
    require_state_limit(len(learner.counts_.states))
    if is_counts_file(log) and importance:
        raise ParameterError(
            f"{log} holds counts, which have no episodes: importance sampling needs the log itself"
        )

    # Read the log.
    other_goals = read_judging_goals(by_goals)
    with _warning_lines(), spinner("Reading"):
        judged_by = load_counts(log)[0] if is_counts_file(log) else learner.read(log)

    # Compare on sampled models, by the policy's own goal and by the others.
    learned_from_log = False if held_out else None
    with progress("Sampling", samples * (1 + len(other_goals))) as advance:
        options: dict[str, Any] = {
            "horizon": horizon,
            "samples": samples,
            "seed": seed,
            "margin": margin,
            "learned_from_log": learned_from_log,
            "on_step": advance,
        }
        result = learner.evaluate(judged_by, **options)
        if result.samples == samples:
            by_goal = learner.evaluate_goals(other_goals, judged_by, **options)
            result = replace(result, by_goal=by_goal)

    # Estimates from episodes, over the same horizon.
    if importance:
        with _warning_lines(), spinner("Reading episodes"):
            estimates = learner.estimates(
                log, result.horizon, propensity, learned_from_log=learned_from_log
            )
        result = replace(result, estimates=estimates)

    if as_json:
        print_json(result)
    else:
        print_text(result.sentence)
        if result.alternatives_in_words:
            print_text(result.alternatives_in_words)
        print_table(value_table(result))
        print_table(comparison_table(result))
        print_text("\n".join(verdict_lines(result)))
        print_table(support_table(result.support))
        for name, other in result.by_goal.items():
            print_text(f"By the goal {name}: {other.sentence}")
    return OK if result.is_better else NOT_BETTER


@contextmanager
def _warning_lines() -> Iterator[None]:
    """Show each warning as one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print_warning(str(warning.message))


@cli.command(
    context_settings={"ignore_unknown_options": True},
    short_help="Explain a policy by the records behind it.",
)
@policy_argument
@click.argument("state")
@click.argument("action", required=False)
@wide_option
@json_option
def explain(policy: Path, state: str, action: str | None, wide: bool, as_json: bool) -> int:
    """Explain the probabilities of actions in a state by the records behind them.

    A label may begin with a dash; one that looks like an option, such as -h, goes after --.
    """
    from pastwise.policy.learner import load

    explanation = load(policy).explain(state, action)
    if as_json:
        print_json(explanation)
    else:
        print_text(explanation.to_text(max_actions=None) if wide else str(explanation))
    return OK


@cli.command(short_help="Decide for rows of raw values.")
@policy_argument
@click.argument("rows")
@click.option(
    "--on-unseen",
    type=click.Choice(["refuse", "prior"]),
    default="refuse",
    show_default=True,
    help="What to do with a row that no state matches: an error, or the prior, marked as "
    "extrapolation.",
)
@click.option("-o", "--output", type=File, help="File to write: .csv or .parquet.")
@json_option
def decide(policy: Path, rows: str, on_unseen: Any, output: Path | None, as_json: bool) -> int:
    """Decide for rows: the most probable action of each, and what it rests on.

    ROWS is a file with the state's columns, as a log would be, or - for CSV from stdin.
    """
    from pastwise.policy.learner import load
    from pastwise.policy.rule import PRIOR_ADVICE
    from pastwise.report.terminal import decisions_table

    keep_inputs(output, policy, rows)
    learner = load(policy)
    try:
        with _warning_lines():
            decisions = learner.decisions(rows, on_unseen=on_unseen)
    except UnknownLabelError as error:
        option = "--on-unseen prior answers with the prior"
        error.advice = error.advice.replace(PRIOR_ADVICE, option)
        raise
    if output is not None:
        decisions.write(output)
    if as_json:
        print_json(decisions)
    elif output is not None:
        print_note(f"The decisions are in {output}")
    else:
        print_table(decisions_table(decisions))
    return OK


@cli.command(short_help="Write a policy for places without pastwise.")
@policy_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(["sql", "json", "xlsx", "onnx", "python"]),
    help="What to write; by default what the ending of the file's name says.",
)
@click.option(
    "--table",
    default="rows",
    show_default=True,
    help="For SQL: the table to select from, such as patients or clinic.patients.",
)
@output_option
def export(policy: Path, kind: str | None, table: str, output: Path) -> int:
    """Write a policy for places without pastwise.

    sql: a query with the state and the most probable action of each row. python: a module without
    dependencies. json: regions of the states, with exact edges, and the rule. xlsx: a sheet. onnx:
    a model. Without --format, a file that ends in .sql, .py, .xlsx or .onnx gets what its name
    says, and one that ends in .parquet, .csv or .json the rule as a table.
    """
    from pastwise.policy.export import export_policy, format_of
    from pastwise.policy.learner import load

    keep_inputs(output, policy)
    kind = kind or format_of(output)
    learner = load(policy)
    if kind is None:
        learner.rule_.export(output)
        print_note(f"The rule is in {output}")
    else:
        export_policy(learner, output, kind, table=table)
        print_note(f"The policy is in {output}")
    return OK


@cli.command(short_help="Describe a policy: goal, data, support, verdict, limits.")
@policy_argument
@output_option
@click.option("--title", help="Title of the card; by default the name of the policy's file.")
@click.option(
    "--no-verdict",
    is_flag=True,
    help="Leave out the verdict on whether the policy is better than what was done.",
)
@margin_option
def card(
    policy: Path, output: Path, title: str | None, no_verdict: bool, margin: float | None
) -> int:
    """Write a policy card, .md or .html: goal, data, states, support, verdict and limits."""
    from pastwise.policy.card import PolicyCard
    from pastwise.policy.learner import load
    from pastwise.policy.summary import quick_verdict
    from pastwise.report.card import require_card_path, write_card

    keep_inputs(output, policy)
    require_card_path(output)
    learner = load(policy)
    verdict = None
    if not no_verdict:
        with spinner("Judging"):
            verdict = quick_verdict(learner, margin=margin)
    name = title or f"Policy card: {policy.name}"
    write_card(PolicyCard.of(learner, verdict, title=name, checksum=learner.checksum_), output)
    print_note(f"The card is in {output}")
    return OK


# The service.

cli.add_command(serve)
cli.add_command(workbench)


# Studies.

cli.add_command(reproduce)
cli.add_command(study)


def main() -> NoReturn:
    """Entry point. The exit code says who erred.

    Bad input is one line and exit code 2: a `PastwiseError`, a usage error, or input that does not
    fit in memory. Ctrl-C is 130. Any other exception is a bug: exit code 70 and a request to report
    it.
    """
    escape_what_cannot_be_shown()
    try:
        code = cli.main(prog_name="pastwise", standalone_mode=False)
    except SystemExit:  # click's way to leave when nobody reads on
        sys.exit(BROKEN_PIPE)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(BAD_INPUT)
    except BaseException as error:
        ignore()
        code, message = _outcome(error)
        print_note(f"pastwise: {message}")
    sys.exit(code)


def _outcome(error: BaseException) -> tuple[int, str]:
    """Exit code and message of an error."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        status = str(error.__cause__ or error)  # click aborts because of a Ctrl-C
        return INTERRUPTED, f"interrupted: {status}" if status else "interrupted"
    if was_interrupted():  # a library raised another error in its place
        return INTERRUPTED, "interrupted"
    if isinstance(error, click.UsageError):
        name = error.ctx.command_path if error.ctx else "pastwise"
        return BAD_INPUT, f"{one_line(error.format_message())} (see {name} --help)"
    if isinstance(error, ConditionError):  # a mark below the condition shows the place
        return BAD_INPUT, "\n".join(one_line(line) for line in str(error).splitlines())
    if isinstance(error, PastwiseError):
        return BAD_INPUT, one_line(str(error))
    if isinstance(error, MemoryError):
        return BAD_INPUT, one_line(f"not enough memory: {str(error) or 'none is left'}")
    return BUG, _bug_report(error)


def _bug_report(error: BaseException) -> str:
    """What went wrong, and what to include in a report."""
    command = one_line(shlex.join(["pastwise", *sys.argv[1:]]))
    what = one_line(f"{type(error).__name__}: {error}")
    lines = [
        f"this is a bug in pastwise, not a mistake of yours: {what}",
        "Please report it to the developers of pastwise, and include:",
        f"- the command: {command}",
        f"- the versions: pastwise {__version__}, Python {platform.python_version()}",
    ]
    if os.environ.get(DEBUG) == "1":
        lines.append("- the traceback:")
        lines.extend(traceback.format_exception(error))
    else:
        lines.append(f"- the traceback, which the same command shows with {DEBUG}=1 set")
    return "\n".join(lines).rstrip()
