"""Options that several commands share, as frozen dataclasses.

Each field of such a dataclass declares its option, and `takes` gives the options to a command:

    @click.command()
    @takes(log=LogOptions)
    def validate(log: LogOptions) -> int: ...

A method of the dataclass makes what the library takes: `Columns`, a `Goal`, a method.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from glob import glob
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pastwise.errors import FileError, GoalLabelError, ParameterError

if TYPE_CHECKING:
    from pastwise.data.counts import TransitionCounts
    from pastwise.data.space import Label
    from pastwise.goals.goal import Goal
    from pastwise.logs.columns import Columns, GivenBins
    from pastwise.methods.base import AnyMethod

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
Value = TypeVar("Value")

COUNTS_SUFFIX = ".safetensors"
"""A log with this suffix is a file of counts."""

AUTO = "auto"
"""In place of bins: as many as suit the records."""

CLICK = "click"
"""Where a field keeps the decorator that declares its option."""

OPTION = "option"
"""Where a field keeps the option as it is written, such as ``--next-state``."""


def option(*declarations: str, **attributes: Any) -> Any:
    """A field that an option of the command line sets."""
    decorator = click.option(*declarations, **attributes)
    return field(metadata={CLICK: decorator, OPTION: declarations[0]})


def argument(name: str, **attributes: Any) -> Any:
    """A field that an argument of the command line sets."""
    return field(metadata={CLICK: click.argument(name, **attributes)})


def takes(**groups: type) -> Decorator:
    """Give a command groups of options; it receives each group as one value.

    Parameters
    ----------
    groups : dataclasses by name
        The name is that of the command's parameter. Fields are made by `option` and `argument`.
    """

    def add_options(command: Command) -> Command:
        @wraps(command)
        def with_groups(**given: Any) -> Any:
            for name, group in groups.items():
                values = {each.name: given.pop(each.name) for each in fields(group)}
                given[name] = group(**values)
            return command(**given)

        # The decorator that is applied last comes first in the help.
        decorated: Command = with_groups
        for group in reversed(list(groups.values())):
            for each in reversed(fields(group)):
                decorated = each.metadata[CLICK](decorated)
        return decorated

    return add_options


# Files and output.


class _File(click.Path):
    """A path; an empty one, which would be the current folder, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


File = _File(path_type=Path)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, to stdout."
)
wide_option = click.option(
    "--wide", is_flag=True, help="Leave nothing out; lines are as long as needed."
)


def _checked_margin(
    context: click.Context, option: click.Parameter, margin: float | None
) -> float | None:
    """The smallest difference that matters, where it is given."""
    from pastwise.evaluation.verdict import require_margin

    if margin is not None:
        require_margin("--margin", margin)
    return margin


margin_option = click.option(
    "--margin",
    type=float,
    callback=_checked_margin,
    help="Smallest difference that matters, in the unit of the measure; by default 1 % of the "
    "range of the utility.",
)
output_option = click.option("-o", "--output", type=File, required=True, help="File to write.")
policy_argument = click.argument("policy", type=File)


def keep_inputs(output: Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write over a file that is read, or over one of those that a glob stands for."""
    if output is None:
        return
    for given in [str(each) for each in inputs if each]:
        for path in (given, *glob(given, recursive=True)):  # noqa: PTH207
            if _is_same_file(output, path):
                raise FileError(f"{output} is read here as well; name another file to write")


def _is_same_file(one: Path, other: str) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False


# The log.


@dataclass(frozen=True)
class LogOptions:
    """A log, and which of its columns hold what; see `Columns`."""

    path: str = argument("path", metavar="LOG")
    state: tuple[str, ...] = option(
        "--state", multiple=True, help="State column; several make a product space."
    )
    action: tuple[str, ...] = option(
        "--action", multiple=True, help="Action column; several make a product space."
    )
    next_state: tuple[str, ...] = option(
        "--next-state", multiple=True, help="Next-state column, one for each state column."
    )
    features: tuple[str, ...] = option(
        "--feature",
        "features",
        multiple=True,
        help="Raw column of numbers, dates, booleans or categories; states are learned from them.",
    )
    next_features: tuple[str, ...] = option(
        "--next-feature",
        "next_features",
        multiple=True,
        help="Column of the next value of a feature, one for each.",
    )
    max_states: int | None = option(
        "--max-states", type=int, help="How many states are learned from features, at most."
    )
    episode: str | None = option("--episode", help="Column that names a record's episode.")
    time: str | None = option(
        "--time",
        help="Column that orders the records of an episode. With --episode and without "
        "--next-state, the next state is the state of the next record.",
    )
    max_gap: str | None = option(
        "--max-gap",
        help="Records further apart do not follow each other: a number, or 36h, 2d for dates.",
    )
    terminal: tuple[str, ...] = option(
        "--terminal", multiple=True, help="State in which an episode ends."
    )
    count: str | None = option(
        "--count", help="Column with the number of records that a row stands for."
    )
    weight: str | None = option("--weight", help="Column with the weight of a record.")
    task: str | None = option("--task", help="Column with the past task of a record.")
    age: str | None = option(
        "--age", help="Column with the date of a record, or a number; older records weigh less."
    )
    half_life: str | None = option(
        "--half-life", help="With --age: the time in which a weight halves, such as 90d."
    )
    bins: tuple[str, ...] = option(
        "--bins",
        multiple=True,
        help="Cut a numeric column: temp=10,20 into below 10, from 10 to 20 and from 20 on; temp=4 "
        "into quartiles; temp=auto into as many bins as suit the records. Just auto: all state "
        "columns that hold many different numbers.",
    )
    reward: str | None = option(
        "--reward",
        help="Column with the reward of a record, a number; --maximise reward makes it the goal.",
    )
    outcome: str | None = option(
        "--outcome",
        help="For one-shot decisions, without --next-state and --episode: column with the outcome.",
    )
    propensity: str | None = option(
        "--propensity",
        help="Column with the probability of the logged action, for evaluate --importance.",
    )
    typed_labels: bool = option(
        "--typed-labels",
        is_flag=True,
        help="Read labels of a CSV file that look like numbers as numbers.",
    )

    @property
    def is_counts(self) -> bool:
        """Whether the log is a file of counts, as `pastwise count` writes it."""
        return is_counts_file(self.path)

    def columns(self) -> Columns:
        """Which columns hold what."""
        from pastwise.logs.columns import MAX_STATES, Columns

        for name, given in (("--state", self.state or self.features), ("--action", self.action)):
            if not given:
                raise click.UsageError(f"Missing option '{name}': which column holds it?")
        return Columns.of(
            self.state,
            self.action,
            self.next_state,
            features=self.features,
            next_features=self.next_features,
            max_states=MAX_STATES if self.max_states is None else self.max_states,
            episode=self.episode,
            time=self.time,
            max_gap=self.max_gap,
            terminal=list(self.terminal),
            count=self.count,
            weight=self.weight,
            task=self.task,
            age=self.age,
            half_life=self.half_life,
            bins=_parse_all_bins(self.bins),
            text_labels=not self.typed_labels,
            reward=self.reward,
            outcome=self.outcome,
            propensity=self.propensity,
        )

    def counts(self) -> tuple[TransitionCounts, Columns | None]:
        """The counts of a file of counts; it knows its columns, so none may be given."""
        from pastwise.policy.file import load_counts

        self.refuse_columns()
        return load_counts(self.path)

    def refuse_columns(self) -> None:
        """Refuse options for the columns of a file that knows them."""
        for each in fields(self):
            if OPTION in each.metadata and getattr(self, each.name):
                raise ParameterError(
                    f"{self.path} holds counts, whose columns are known; "
                    f"leave out {each.metadata[OPTION]}"
                )


def is_counts_file(path: str) -> bool:
    """Whether a log is a file of counts or of a policy: by its content, or at least by its name."""
    from pastwise.policy.file import checksum_of

    return Path(path).suffix == COUNTS_SUFFIX or checksum_of(path) is not None


def _parse_all_bins(texts: tuple[str, ...]) -> GivenBins:
    """The bins of all columns."""
    if texts == (AUTO,):
        return "auto"
    return _unique("--bins", [_parse_bins(text) for text in texts])


def _parse_bins(text: str) -> tuple[str, list[float] | int | str]:
    """A column with its edges, which may be infinite, with a number of bins, or with ``auto``."""
    name, mark, values = text.rpartition("=")
    bins = AUTO if values == AUTO else _parse_edges(values)
    if not mark or bins is None:
        raise ParameterError(
            "--bins takes a column with edges, a whole number of bins or auto, "
            "as in temp=10,20 (or temp=10, for one edge), temp=4 or temp=auto, or just auto; "
            f"got {text!r}"
        )
    return name, bins


def _parse_edges(values: str) -> list[float] | int | None:
    """Several numbers, or one number and a comma; otherwise one whole number."""
    try:
        if "," not in values:
            return int(values)
        edges = [float(value) for value in values.removesuffix(",").split(",")]
    except ValueError:
        return None
    return None if any(isnan(edge) for edge in edges) else edges


# The goal.

LONE_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")
"""The mark before a weight, which is no part of a comparison."""


@dataclass(frozen=True)
class GoalOptions:
    """What is wanted; see `Goal`."""

    goal_file: str | None = option(
        "--goal", "goal_file", type=_File(path_type=str), help="TOML file with the goal."
    )
    prefer: tuple[str, ...] = option(
        "--prefer",
        multiple=True,
        help='State to be in, or a condition such as "wage >= 2"; =weight may follow.',
    )
    maximise: str | None = option(
        "--maximise",
        type=click.Choice(["reward"]),
        help="Collect as much as possible of the log's own reward, see --reward.",
    )
    floor: float | None = option(
        "--floor", type=float, help="Probability of every state that is not preferred."
    )
    forbid: tuple[str, ...] = option(
        "--forbid",
        multiple=True,
        help="state:action or condition:action that must not be taken; :action for every state.",
    )

    def goal(self) -> Goal:
        """The goal, from the file or from the other options."""
        from pastwise.goals.goal import Goal

        is_given_by_options = bool(
            self.prefer or self.maximise or self.forbid or self.floor is not None
        )
        if self.goal_file is not None:
            if is_given_by_options:
                raise ParameterError(
                    "give the goal either as a file or by --prefer, --maximise, --floor and "
                    "--forbid, not both"
                )
            return read_goal(self.goal_file)
        if not self.prefer and not self.maximise:
            raise ParameterError(
                "what is wanted? Give --prefer STATE, --maximise reward or --goal FILE"
            )
        forbidden = [_split_last("--forbid", text, ":") for text in self.forbid]
        return Goal(
            prefer=_unique("--prefer", [_parse_weight(text) for text in self.prefer]),
            floor=self.floor,
            maximise=self.maximise,
            forbid=tuple((state or None, action) for state, action in forbidden),
        )

    @contextmanager
    def explaining_labels(self) -> Iterator[None]:
        """While the goal meets the labels of a log: say where labels with = or : go.

        An unknown label may be half of a label that contains one of these marks, which separate
        the parts of an option.
        """
        has_marks = {
            "prefer": any(LONE_EQUALS.search(text) for text in self.prefer),
            "forbid": any(text.count(":") > 1 for text in self.forbid),
        }
        try:
            yield
        except GoalLabelError as error:
            error.advice = "`pastwise states` lists the labels of a log or policy"
            if has_marks.get(error.part):
                error.advice = (
                    "labels with = or : go in a goal file; == compares, as in wage == 2; "
                    + error.advice
                )
            raise


def read_goal(path: str | Path) -> Goal:
    """The goal in a TOML file."""
    from pastwise.goals.goal import Goal

    if Path(path).is_dir():
        raise FileError(f"{path} is a folder; name a file with a goal")
    if not Path(path).exists():
        raise FileError(f"no such file: {path}")
    return Goal.from_toml(path)


def read_past_goals(texts: Iterable[str]) -> dict[Label, Goal]:
    """Goals of past tasks, each given as TASK=FILE."""
    files = _named_files("--past-goal", texts)
    return {task: read_goal(file) for task, file in files.items()}


def read_judging_goals(texts: Iterable[str]) -> dict[str, Goal]:
    """Goals to judge a policy by, each given as NAME=FILE."""
    files = _named_files("--by", texts)
    return {name: read_goal(file) for name, file in files.items()}


def _named_files(option_name: str, texts: Iterable[str]) -> dict[str, str]:
    """Files by name, each given to an option as NAME=FILE."""
    return _unique(option_name, [_split_last(option_name, text, "=") for text in texts])


def _parse_weight(text: str) -> tuple[str, float]:
    """A state or condition with its weight, which is 1 unless it is given.

    >>> _parse_weight("warm=0.5"), _parse_weight("wage >= 2=3"), _parse_weight("wage == 2")
    (('warm', 0.5), ('wage >= 2', 3.0), ('wage == 2', 1.0))
    """
    from pastwise.data.conditions import as_condition

    marks = list(LONE_EQUALS.finditer(text))
    if not marks:
        return text, 1.0
    label = text[: marks[-1].start()]
    weight = text[marks[-1].end() :]
    try:
        return label, float(weight)
    except ValueError:
        pass
    if as_condition(text) is not None:  # the mark is in quotes
        return text, 1.0
    raise ParameterError(
        f"--prefer takes a state, a condition, or one of them with =weight; {weight!r} is no "
        "number (labels with = go in a goal file)"
    )


# The method.


class _MethodOption(click.Option):
    """Names the registered methods; they are looked up only when the help is shown."""

    def make_metavar(self, ctx: click.Context) -> str:
        from pastwise.methods import names

        return f"[{'|'.join(names())}]"


class CommandWithMethods(click.Command):
    """A command whose help ends with a list of the registered methods."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and summary of each method."""
        from pastwise.methods import DEFAULT, entries, names

        rows = []
        for name in names():
            note = "(default) " if name == DEFAULT else ""
            rows.append((name, f"{note}{entries()[name].summary}"))
        with formatter.section("Methods"):
            formatter.write_dl(rows)


def _method_field(description: str) -> Any:
    return option("--method", cls=_MethodOption, help=description)


def _parameters_field() -> Any:
    return option(
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        help="Hyper-parameter of the method: a number, true or false, as in prior_count=5.",
    )


@dataclass(frozen=True)
class MethodOptions:
    """How to learn: a method and its hyper-parameters."""

    method: str | None = _method_field("How to learn; the methods are listed below.")
    parameters: tuple[str, ...] = _parameters_field()

    def create(self) -> AnyMethod:
        """The method."""
        from pastwise.methods import DEFAULT, create

        return create(self.method or DEFAULT, **_parse_parameters(self.parameters))


@dataclass(frozen=True)
class OtherMethodOptions:
    """How to learn for another goal; by default as before."""

    method: str | None = _method_field("How to learn; by default the policy's own method.")
    parameters: tuple[str, ...] = _parameters_field()

    def create(self, present: AnyMethod) -> AnyMethod:
        """The named method, or the present one with some hyper-parameters replaced."""
        from pastwise.methods.base import for_another_goal
        from pastwise.methods.registry import create, with_parameters

        parameters = _parse_parameters(self.parameters)
        if self.method is not None:
            return create(self.method, **parameters)
        return with_parameters(for_another_goal(present), **parameters)


def _parse_parameters(texts: Iterable[str]) -> dict[str, float]:
    """Hyper-parameters by name."""
    pairs = [_split_last("--param", text, "=") for text in texts]
    return _unique("--param", [(name, _parse_value(name, text)) for name, text in pairs])


def _parse_value(name: str, text: str) -> float:
    """A whole number, a number, or a truth value."""
    from pastwise.methods.registry import TRUTH_VALUES

    if text.lower() in TRUTH_VALUES:
        return TRUTH_VALUES[text.lower()]
    try:
        number = float(text)
    except ValueError:
        raise ParameterError(
            f"--param {name} takes a number, true or false; got {text!r}"
        ) from None
    try:
        whole = int(text)
    except ValueError:
        return number
    if isinf(number):
        raise ParameterError(f"--param {name} is too large a number: {text}")
    return whole


# Texts of two parts.


def _split_last(name: str, text: str, mark: str) -> tuple[str, str]:
    """What is before and after the last mark in the text of an option."""
    before, found, after = text.rpartition(mark)
    if not found or not after:
        raise ParameterError(f"{name} takes two parts with {mark!r} between; got {text!r}")
    return before, after


def _unique(name: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Values by key; a key that is given twice is refused."""
    values: dict[str, Value] = {}
    for key, value in pairs:
        if key in values:
            raise ParameterError(f"{name} is given twice for {key!r}")
        values[key] = value
    return values
