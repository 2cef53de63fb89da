"""Options of the command line that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pastwise.cli.output import print_table as print_table
from pastwise.errors import FileError, GoalLabelError, ParameterError

if TYPE_CHECKING:
    from pastwise.data.counts import TransitionCounts
    from pastwise.goals.goal import Goal
    from pastwise.logs.columns import Columns


class _File(click.Path):
    """A path; an empty one, which would be the current folder, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


File = _File(path_type=Path)
Command = Callable[..., Any]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, to stdout."
)
output_option = click.option("-o", "--output", type=File, required=True, help="File to write.")


def log_options(command: Command) -> Command:
    """The options that say which columns of a log hold what."""
    options = [
        click.argument("log", nargs=1),
        click.option("--state", multiple=True, help="State column; several make a product space."),
        click.option(
            "--action", multiple=True, help="Action column; several make a product space."
        ),
        click.option(
            "--next-state", multiple=True, help="Next-state column, one for each state column."
        ),
        click.option("--episode", help="Column that tells episodes apart ..."),
        click.option(
            "--time",
            help="... and the one that orders an episode's records. Without --next-state they tell the next state.",
        ),
        click.option(
            "--max-gap",
            help="Records further apart do not follow each other: a number, or 36h, 2d for dates.",
        ),
        click.option("--terminal", multiple=True, help="State in which an episode ends."),
        click.option("--count", help="Column with the number of records that a row stands for."),
        click.option("--weight", help="Column with the weight of a record."),
        click.option("--task", help="Column with the past task of a record."),
        click.option(
            "--age", help="Column with the date of a record, or a number; older records weigh less."
        ),
        click.option(
            "--half-life", help="With --age: the span over which a weight halves, such as 90d."
        ),
        click.option(
            "--bins",
            multiple=True,
            help="Cut a numeric column: temp=0,10,20, or temp=4 for quartiles.",
        ),
        click.option(
            "--typed-labels",
            is_flag=True,
            help="Read labels of a CSV file that look like numbers as numbers.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def take_columns(options: dict[str, Any]) -> Columns:
    """Take the log's options out of ``options``."""
    from pastwise.logs.columns import Columns

    typed = options.pop("typed_labels")
    bins = by_name("--bins", map(_bins, options.pop("bins")))
    names = ("episode", "time", "max_gap", "count", "weight", "task", "age", "half_life")
    plain = {name: options.pop(name) for name in names}
    state, action, next_state, terminal = (
        options.pop(n) for n in ("state", "action", "next_state", "terminal")
    )
    if not (state and action):
        raise click.UsageError(
            f"Missing option '{'--action' if state else '--state'}': which column holds it?"
        )
    return Columns.of(
        state,
        action,
        next_state,
        terminal=list(terminal),
        bins=bins,
        text_labels=not typed,
        **plain,
    )


def take_counts(
    log: str, options: dict[str, Any]
) -> tuple[TransitionCounts, Columns | None] | None:
    """Counts that were made before, where the log is a file of them; their columns are known, and none may be given."""
    from pastwise.policy.file import load_counts

    if Path(log).suffix != ".safetensors":
        return None
    names = (
        "state",
        "action",
        "next_state",
        "episode",
        "time",
        "max_gap",
        "terminal",
        "count",
        "weight",
        "task",
    )
    given = [
        name
        for name in (*names, "age", "half_life", "bins", "typed_labels")
        if options.pop(name, None)
    ]
    if given:
        raise ParameterError(
            f"{log} holds counts, whose columns are known; leave out --{given[0].replace('_', '-')}"
        )
    return load_counts(log)


def _bins(text: str) -> tuple[str, list[float] | int]:
    """A column with its edges, of which the outer ones may be infinite, or with a whole number of bins."""
    name, found, values = text.rpartition("=")
    try:
        bins = [float(value) for value in values.split(",")] if "," in values else int(values)
    except ValueError:
        found = ""
    if not found or (isinstance(bins, list) and any(map(isnan, bins))):
        raise ParameterError(
            f"--bins takes a column with edges or a whole number of bins, as in temp=0,10,20 or temp=4; got {text!r}"
        )
    return name, bins


def goal_options(command: Command) -> Command:
    """The options that say what is wanted."""
    options = [
        click.option("--goal", "goal_file", type=File, help="TOML file with the goal."),
        click.option("--prefer", multiple=True, help="State to be in, or state=weight."),
        click.option(
            "--floor", type=float, help="Probability of every state that is not preferred."
        ),
        click.option(
            "--forbid",
            multiple=True,
            help="state:action that must not be taken; :action for every state.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def take_goal(options: dict[str, Any]) -> Iterator[Goal]:
    """Take the goal's options out of ``options``.

    An unknown label may be half of a label that contains = or :, which separate the parts of an
    option. The error then says where such labels go.
    """
    marked = {
        "prefer": any("=" in text for text in options["prefer"]),
        "forbid": any(text.count(":") > 1 for text in options["forbid"]),
    }
    goal = _goal(options)
    try:
        yield goal
    except GoalLabelError as error:
        if marked.get(error.part):
            error.advice = "labels with = or : go in a goal file"
        raise


def _goal(options: dict[str, Any]) -> Goal:
    from pastwise.goals.goal import Goal

    file, prefer, floor, forbid = (
        options.pop(name) for name in ("goal_file", "prefer", "floor", "forbid")
    )
    if file is not None:
        if prefer or forbid or floor is not None:
            raise ParameterError(
                "give the goal either as a file or by --prefer, --floor and --forbid, not both"
            )
        return goal_file(file)
    if not prefer:
        raise ParameterError("what is wanted? Give --prefer STATE or --goal FILE")
    pairs = [two_parts("--forbid", text, ":") for text in forbid]
    return Goal(
        prefer=by_name("--prefer", map(_weighted, prefer)),
        floor=floor,
        forbid=tuple((state or None, action) for state, action in pairs),
    )


def goal_file(path: str | Path) -> Goal:
    """The goal that is in a TOML file."""
    from pastwise.goals.goal import Goal

    if Path(path).is_dir():
        raise FileError(f"{path} is a folder; name a file with a goal")
    if not Path(path).is_file():
        raise FileError(f"no such file: {path}")
    return Goal.from_toml(path)


def _weighted(text: str) -> tuple[str, float]:
    if "=" not in text:
        return text, 1.0
    label, weight = two_parts("--prefer", text, "=")
    try:
        return label, float(weight)
    except ValueError:
        raise ParameterError(
            f"--prefer takes a state or state=weight; {weight!r} is no number (labels with = go in a file)"
        ) from None


def two_parts(option: str, text: str, mark: str) -> tuple[str, str]:
    """What is before and after the last mark in an option's text."""
    before, found, after = text.rpartition(mark)
    if not found or not after:
        raise ParameterError(f"{option} takes two parts with {mark!r} between; got {text!r}")
    return before, after


def by_name(option: str, pairs: Iterable[tuple[str, Any]]) -> dict[Any, Any]:
    """Values by name; a name that is given twice is refused."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ParameterError(f"{option} is given twice for {name!r}")
        values[name] = value
    return values
