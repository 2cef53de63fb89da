"""The command line: parse, call, render. Data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from pastwise.adapters.columns import Columns
    from pastwise.experiments.reproduction import Reproduction
    from pastwise.goal import Goal
    from pastwise.learner import TransferLearner

OK, FINDINGS, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

File = click.Path(path_type=Path)
Command = Callable[..., Any]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pastwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn yesterday's decisions into a policy for today's goal."""


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, to stdout."
)
output_option = click.option("-o", "--output", type=File, required=True, help="File to write.")


def log_options(command: Command) -> Command:
    """The options that say which columns of a log hold what."""
    options = [
        click.argument("log", nargs=1),
        click.option("--state", multiple=True, required=True, help="State column; several make a product space."),
        click.option("--action", multiple=True, required=True, help="Action column; several make a product space."),
        click.option("--next-state", multiple=True, help="Next-state column, one for each state column."),
        click.option("--episode", help="Without --next-state: the column that tells episodes apart ..."),
        click.option("--time", help="... and the one that orders an episode's records."),
        click.option(
            "--max-gap", help="Records further apart do not follow each other: a number, or 36h, 2d for dates."
        ),
        click.option("--terminal", multiple=True, help="State in which an episode ends."),
        click.option("--count", help="Column with the number of records that a row stands for."),
        click.option("--weight", help="Column with the weight of a record."),
        click.option("--task", help="Column with the past task of a record."),
        click.option("--age", help="Column with the date of a record, or a number; older records weigh less."),
        click.option("--half-life", help="With --age: the span over which a weight halves, such as 90d."),
        click.option("--bins", multiple=True, help="Cut a numeric column: temp=0,10,20, or temp=4 for quartiles."),
        click.option(
            "--typed-labels", is_flag=True, help="Read labels of a CSV file that look like numbers as numbers."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _columns(options: dict[str, Any]) -> Columns:
    """Take the log's options out of ``options``."""
    from pastwise.adapters.columns import Columns

    typed = options.pop("typed_labels")
    bins = dict(_bins(text) for text in options.pop("bins"))
    names = ("episode", "time", "max_gap", "count", "weight", "task", "age", "half_life")
    plain = {name: options.pop(name) for name in names}
    state, action, next_state, terminal = (options.pop(n) for n in ("state", "action", "next_state", "terminal"))
    return Columns.of(state, action, next_state, terminal=list(terminal), bins=bins, text_labels=not typed, **plain)


def _bins(text: str) -> tuple[str, list[float] | int]:
    name, found, values = text.rpartition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        found = ""
    if not found:
        raise ValueError(f"--bins takes a column with edges or a number of bins, as in temp=0,10,20; got {text!r}")
    return name, int(numbers[0]) if len(numbers) == 1 else numbers


def goal_options(command: Command) -> Command:
    """The options that say what is wanted."""
    options = [
        click.option("--goal", "goal_file", type=File, help="TOML file with the goal."),
        click.option("--prefer", multiple=True, help="State to be in, or state=weight."),
        click.option("--floor", type=float, help="Probability of every state that is not preferred."),
        click.option("--forbid", multiple=True, help="state:action that must not be taken; :action for every state."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _goal(options: dict[str, Any]) -> Goal:
    """Take the goal's options out of ``options``."""
    from pastwise.goal import Goal

    file, prefer, floor, forbid = (options.pop(name) for name in ("goal_file", "prefer", "floor", "forbid"))
    if file is not None:
        if prefer or forbid or floor is not None:
            raise ValueError("give the goal either as a file or by --prefer, --floor and --forbid, not both")
        if not file.is_file():
            raise ValueError(f"no such file: {file}")
        return Goal.from_toml(file)
    if not prefer:
        raise ValueError("what is wanted? Give --prefer STATE or --goal FILE")
    pairs = [_after("--forbid", text, ":") for text in forbid]
    return Goal(
        prefer=dict(_weighted(text) for text in prefer),
        floor=floor,
        forbid=tuple((state or None, action) for state, action in pairs),
    )


def _weighted(text: str) -> tuple[str, float]:
    if "=" not in text:
        return text, 1.0
    label, weight = _after("--prefer", text, "=")
    try:
        return label, float(weight)
    except ValueError:
        raise ValueError(
            f"--prefer takes a state or state=weight; {weight!r} is no number (labels with = go in a file)"
        ) from None


def _after(option: str, text: str, mark: str) -> tuple[str, str]:
    before, found, after = text.rpartition(mark)
    if not found or not after:
        raise ValueError(f"{option} takes two parts with {mark!r} between; got {text!r}")
    return before, after


@cli.command()
@log_options
@json_option
def validate(log: str, as_json: bool, **options: Any) -> int:
    """Tell what there is in a log, what is odd about it, and how to mend it.

    Exit code 0: nothing found; 1: findings; 2: nothing can be learned from it.
    """
    from pastwise.adapters.validate import validate_log

    columns = _columns(options)
    with spinner("Reading"):
        found = validate_log(log, columns)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        click.echo(
            f"{found.rows:,} rows, {found.transitions:,} distinct transitions, "
            f"{found.states:,} states, {found.actions:,} actions"
        )
        if found.findings:
            from pastwise.report.terminal import findings_table

            _print(findings_table(found.to_dict()["findings"]))
        else:
            click.echo("Nothing odd was found.")
    return FINDINGS if found.findings else OK


@cli.command()
@log_options
@goal_options
@click.option("--past-goal", multiple=True, help="With --task: TASK=FILE, the goal of a past task, where it is known.")
@click.option("--prior", type=float, help="Prior count of every transition; by default the goal's own.")
@click.option("-o", "--output", type=File, help="File to keep the policy in, such as policy.safetensors.")
@click.option("--plots", type=File, help="Folder for figures of the policy.")
@json_option
def learn(
    log: str,
    past_goal: tuple[str, ...],
    prior: float | None,
    output: Path | None,
    plots: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Learn a policy for a goal from a log."""
    from pastwise.goal import Goal
    from pastwise.learner import TransferLearner

    columns, goal = _columns(options), _goal(options)
    given = [_after("--past-goal", text, "=") for text in past_goal]
    past: dict[Any, Goal] = {task: Goal.from_toml(file) for task, file in given}
    learner = TransferLearner(goal, prior_count=prior, past_goals=past or None, on_unseen="refuse")
    with spinner("Reading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # findings are shown with the result
        learner.fit(log, columns=columns)
    if plots is not None:
        _draw(learner, plots)
    _keep(learner, output)
    _show(learner, as_json, output)
    return OK


def _keep(learner: TransferLearner, output: Path | None) -> None:
    if output is not None:
        learner.save(output)


def _show(learner: TransferLearner, as_json: bool, output: Path | None) -> None:
    rule, support = learner.rule_, learner.support()
    notes = [finding.message for finding in learner.findings_] + support.warnings()
    if as_json:
        labels = ([*rule.to_dict()], [*next(iter(rule.to_dict().values()))])
        content = {
            "states": labels[0],
            "actions": labels[1],
            "policy": rule.to_dict(),
            "support": support.to_dict(),
            "warnings": notes,
        }
        click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False))
        return
    from pastwise.report.terminal import rule_table
    from pastwise.results import WEAK

    click.echo(repr(learner.goal))
    _print(rule_table(rule.to_dict(), support.to_dict(), WEAK))
    for note in notes:
        click.echo(f"warning: {note}", err=True)
    if output is not None:
        click.echo(f"The policy is in {output}")


def _draw(learner: TransferLearner, folder: Path) -> None:
    from pastwise.adapters.files import staged
    from pastwise.report.figures import draw_policy

    with staged(folder) as stage:
        draw_policy(learner.picture(), stage)


@cli.command()
@click.argument("policy", type=File)
@click.argument("state")
@click.argument("action", required=False)
@json_option
def explain(policy: Path, state: str, action: str | None, as_json: bool) -> int:
    """Tell which past transitions carry how much of a probability."""
    from pastwise.learner import load

    explanation = load(policy).explain(state, action)
    click.echo(json.dumps(explanation.to_dict(), ensure_ascii=False) if as_json else str(explanation))
    return OK


@cli.command()
@click.argument("policy", type=File)
@goal_options
@output_option
@json_option
def retarget(policy: Path, output: Path, as_json: bool, **options: Any) -> int:
    """Learn a policy for another goal from what a policy was learned from; the log is not read again."""
    from pastwise.learner import load

    learner = load(policy).retarget(_goal(options))
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
    from pastwise.learner import load

    learner = load(policy)
    with spinner("Reading"):
        learner.learn_more(log)
    _keep(learner, output)
    _show(learner, as_json, output)
    return OK


@cli.command()
@click.argument("policy", type=File)
@output_option
def export(policy: Path, output: Path) -> int:
    """Write the rule as a table: .parquet, .csv or .json."""
    from pastwise.learner import load

    load(policy).rule_.export(output)
    click.echo(f"The rule is in {output}", err=True)
    return OK


@cli.command()
@click.option("--runs", type=click.IntRange(min=1), default=100, show_default=True, help="Random systems to simulate.")
@click.option("--seed", type=click.IntRange(min=0), default=10, show_default=True, help="Seed of the random numbers.")
@click.option("--out", type=File, default=Path("reproduction"), show_default=True, help="Folder for the results.")
@click.option(
    "--transitions",
    type=click.Choice(["uniform", "dirichlet"]),
    default="uniform",
    show_default=True,
    help="How rows of a transition model are drawn: uniform numbers, normalised, or Dirichlet(1).",
)
@click.option(
    "--methods",
    type=click.Choice(["paper", "all"]),
    default="paper",
    show_default=True,
    help="The paper's five methods and two references, or all that pastwise has.",
)
@click.option("--skip-timing", is_flag=True, help="Leave out the figure of time, which takes some seconds.")
@json_option
def reproduce(runs: int, seed: int, out: Path, transitions: str, methods: str, skip_timing: bool, as_json: bool) -> int:
    """Run the paper's study: tables, claims and figures into a folder."""
    from pastwise.adapters.files import staged
    from pastwise.experiments import paper, reproduction
    from pastwise.report.figures import require_matplotlib

    require_matplotlib()
    study = paper.PaperStudy(
        runs=runs,
        seed=seed,
        draw_rows=paper.ROWS[transitions],
        methods={"paper": paper.PAPER_METHODS, "all": paper.ALL_METHODS}[methods],
    )
    with staged(out, owned=reproduction.OPTIONAL_FILES) as folder:
        with progress("Simulating", reproduction.steps(study, not skip_timing)) as advance:
            result = reproduction.reproduce(study, not skip_timing, advance)
        result.write(folder)
    if as_json:
        click.echo(json.dumps(result.content(), allow_nan=False))
    else:
        _print_reproduction(result, out)
    return OK


def _print_reproduction(result: Reproduction, out: Path) -> None:
    from pastwise.report.terminal import gains_table

    _print(gains_table(result.content()["rows"]))
    for claim in result.claims:
        click.secho(
            f"{claim.verdict:>13}", nl=False, fg={"holds": "green", "does not hold": "red"}.get(claim.verdict, "yellow")
        )
        click.echo(f"  {claim.claim}")
    click.echo(f"Tables, claims and figures are in {out}/")


def _print(table: Any) -> None:
    from rich.console import Console

    Console(highlight=False).print(table)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr where that is a terminal; yields the function that moves it."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


@contextmanager
def spinner(title: str) -> Iterator[None]:
    """A sign of life on stderr, where that is a terminal, while an engine works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield


def main() -> NoReturn:
    """Entry point: one line and exit code 2 for bad input, 130 for Ctrl-C; never a traceback for either."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(BAD_INPUT)
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else "pastwise"
        _leave(BAD_INPUT, f"{error.format_message()} ({name} --help tells more)")
    except (click.Abort, KeyboardInterrupt):
        _leave(INTERRUPTED, "interrupted")
    except OSError as error:
        _leave(BAD_INPUT, f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except ValueError as error:
        _leave(BAD_INPUT, str(error))


def _leave(code: int, message: str) -> NoReturn:
    click.echo(f"pastwise: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
