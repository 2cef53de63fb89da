"""Commands that run studies: the paper's, calibration, methods, and the applications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pastwise.cli.options import Command, Decorator, File, json_option
from pastwise.cli.output import print_json, print_note, print_styled, print_table, print_text
from pastwise.report.terminal import progress

if TYPE_CHECKING:
    from pastwise.studies.calibration import Starts
    from pastwise.studies.output import StudyResult
    from pastwise.studies.reproduction import Reproduction
    from pastwise.studies.runner import Runner

Result = TypeVar("Result", bound="StudyResult")

OK = 0

MOST = 1_000_000
"""Largest number of runs, systems, samples or patients: a study lists its parts in memory."""

MOST_JOBS = 1024
"""Largest number of processes, which no machine of today has the cores for."""


# What all studies share.


@dataclass(frozen=True)
class Output:
    """Where the results of a study go.

    Attributes
    ----------
    out : Path
        Folder for the results.
    jobs : int
        Number of processes.
    as_json : bool
        Whether to print the results as JSON.
    """

    out: Path
    jobs: int
    as_json: bool

    def run(
        self,
        study: Callable[[Runner], Result],
        show: Callable[[Result], None],
        optional_files: Iterable[str] = (),
    ) -> int:
        """Run a study, write its results, and print them; the exit code.

        After Ctrl-C finished parts stay in a folder next to ``out``, until the same study is
        complete.

        Parameters
        ----------
        study : function of a `Runner`
        show : function that prints the results to a terminal
        optional_files : names
            Files of an earlier study in ``out`` that go if this one does not write them.
        """
        from pastwise._files import staged
        from pastwise.report.style import require_matplotlib
        from pastwise.studies.runner import Runner

        require_matplotlib()
        folder = self.out.resolve()
        runner = Runner(
            self.jobs,
            partial_folder=folder.parent / f"{folder.name}.partial",
            progress=progress,
            notify=print_note,
        )
        try:
            with staged(self.out, optional_files) as stage:
                result = study(runner)
                result.write(stage)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(runner.status()) from None
        runner.discard()

        if self.as_json:
            print_json(result)
        else:
            show(result)
            print_text(f"Tables and figures are in {self.out}/")
        return OK


def output_options(folder: str) -> Decorator:
    """The options of `Output`, which the command receives as its first argument."""

    def add_options(command: Command) -> Command:
        @click.option(
            "--out",
            type=File,
            default=Path(folder),
            show_default=True,
            help="Folder for the results.",
        )
        @click.option(
            "--jobs",
            type=click.IntRange(min=1, max=MOST_JOBS),
            default=1,
            show_default=True,
            help="Processes to share the work; for any number the results are the same, up to "
            "rounding.",
        )
        @json_option
        @wraps(command)
        def with_output(out: Path, jobs: int, as_json: bool, **settings: Any) -> int:
            code: int = command(Output(out, jobs, as_json), **settings)
            return code

        return with_output

    return add_options


def number_option(
    name: str, default: int, description: str, minimum: int = 1, maximum: int | None = MOST
) -> Decorator:
    """An option that takes a whole number."""
    return click.option(
        name,
        type=click.IntRange(min=minimum, max=maximum),
        default=default,
        show_default=True,
        help=description,
    )


def seed_option(default: int = 0) -> Decorator:
    """The seed of a study."""
    return number_option("--seed", default, "Seed of the random numbers.", 0, None)


# The paper.


@click.command(short_help="Run the paper's study.")
@number_option("--runs", 100, "Random systems to simulate.")
@seed_option(10)
@click.option(
    "--transitions",
    type=click.Choice(["uniform", "dirichlet"]),
    default="uniform",
    show_default=True,
    help="How to sample rows of a transition model: uniform numbers, normalised; or Dirichlet(1).",
)
@click.option(
    "--methods",
    type=click.Choice(["paper", "all"]),
    default="paper",
    show_default=True,
    help="The paper's five methods and two references, or all registered methods.",
)
@click.option(
    "--skip-timing", is_flag=True, help="Leave out the figure of time, which takes some seconds."
)
@output_options("reproduction")
def reproduce(
    output: Output, runs: int, seed: int, transitions: str, methods: str, skip_timing: bool
) -> int:
    """Run the paper's study: tables, claims and figures into a folder."""
    from pastwise.studies import paper, reproduction

    settings = paper.PaperStudy(runs=runs, seed=seed, sample_rows=paper.ROW_SAMPLERS[transitions])
    if methods == "all":
        settings = replace(settings, methods=paper.all_methods())
    return output.run(
        lambda runner: reproduction.reproduce(settings, not skip_timing, runner),
        _show_reproduction,
        reproduction.OPTIONAL_FILES,
    )


def _show_reproduction(result: Reproduction) -> None:
    from pastwise.report.terminal import number_table

    header, *rows = result.table()
    title = f"Mean gain of {result.study.runs} runs (and standard error)"
    print_table(number_table(title, header, rows))
    colours = {"holds": "green", "does not hold": "red", "cannot tell": "yellow"}
    for claim in result.claims:
        verdict = click.style(f"{claim.verdict:>13}", fg=colours[claim.verdict])
        print_styled(f"{verdict}  {claim.claim}")


# Our own studies.


@click.group()
def study() -> None:
    """Studies behind the claims that pastwise makes."""


group_option = click.option(
    "--group",
    type=click.Choice(["chosen", "reported"]),
    default="reported",
    show_default=True,
    help="Families of systems: those that constants were chosen on, or those that tables are of.",
)

family_option = click.option(
    "--family",
    "families",
    multiple=True,
    help="Only this family of systems, of any group; may be repeated.",
)


@study.command(short_help="Check the intervals and verdicts on systems with known truth.")
@group_option
@family_option
@number_option("--systems", 100, "Systems of each family.")
@number_option("--samples", 400, "Sampled models per system.")
@click.option(
    "--starts",
    type=click.Choice(["given", "log"]),
    default="given",
    show_default=True,
    help="Where episodes start: given to the evaluation, or inferred from the log.",
)
@seed_option()
@output_options("calibration")
def calibration(
    output: Output,
    group: str,
    families: tuple[str, ...],
    systems: int,
    samples: int,
    starts: Starts,
    seed: int,
) -> int:
    """Do the stated intervals and verdicts hold? Families of systems with known truth."""
    from pastwise.studies.calibration import calibrate
    from pastwise.studies.families import of_group

    return output.run(
        lambda runner: calibrate(
            families or of_group(group, "calibration"),
            systems=systems,
            samples=samples,
            seed=seed,
            starts=starts,
            runner=runner,
        ),
        lambda result: print_text(result.page()),
    )


numbered_option = click.option(
    "--numbered",
    is_flag=True,
    help="Name states by their number alone, also where they have fields such as row and column.",
)


@study.command(short_help="Compare the methods on systems whose best rule is known.")
@group_option
@family_option
@click.option(
    "--method",
    "names",
    multiple=True,
    help="Only this method, the candidate and random actions; may be repeated.",
)
@click.option(
    "--candidate",
    default="TL_foresight",
    show_default=True,
    help="Method that is compared with the best of the others.",
)
@number_option("--systems", 40, "Systems of each family for rules from logs alone.", minimum=0)
@number_option("--online-systems", 10, "Systems of each family to act and learn in.", minimum=0)
@numbered_option
@seed_option()
@output_options("planners")
def planners(
    output: Output,
    group: str,
    families: tuple[str, ...],
    names: tuple[str, ...],
    candidate: str,
    systems: int,
    online_systems: int,
    numbered: bool,
    seed: int,
) -> int:
    """Which method decides best? From logs alone, and while it acts and learns.

    Values are shares of what there is to gain: 0 for random actions, 1 for the best rule.
    """
    from pastwise import methods
    from pastwise.studies.families import of_group
    from pastwise.studies.planners import PlannerStudy, compare_planners

    settings = PlannerStudy(
        candidate=candidate,
        methods=names or tuple(methods.names()),
        families=families or of_group(group, "planners"),
        systems=systems,
        online_systems=online_systems,
        seed=seed,
        numbered=numbered,
    )
    return output.run(
        lambda runner: compare_planners(settings, runner),
        lambda result: print_text(result.page()),
    )


@study.command(short_help="Check the test of change on quiet and on changed systems.")
@group_option
@family_option
@number_option("--systems", 4, "Systems of each family.")
@number_option("--outcomes", 5000, "Outcomes to watch in each.", minimum=100)
@seed_option()
@output_options("change")
def change(
    output: Output, group: str, families: tuple[str, ...], systems: int, outcomes: int, seed: int
) -> int:
    """Check that the test of change keeps its run length, and how soon it finds a change."""
    from pastwise.studies.change import ChangeStudy, study_change
    from pastwise.studies.families import of_group

    settings = ChangeStudy(
        families=families or of_group(group), systems=systems, outcomes=outcomes, seed=seed
    )
    return output.run(
        lambda runner: study_change(settings, runner),
        lambda result: print_text(result.page()),
    )


quick_option = click.option("--quick", is_flag=True, help="A small version, in seconds.")
seeds_option = number_option("--seeds", 5, "Logs of each size.")


@study.command("icu-sepsis", short_help="Survival on ICU-Sepsis, from logs and while learning.")
@quick_option
@seeds_option
@number_option("--patients", 5000, "Patients that each method treats.", minimum=10)
@seed_option()
@output_options("icu-sepsis")
def icu_sepsis(output: Output, quick: bool, seeds: int, patients: int, seed: int) -> int:
    """Survival on ICU-Sepsis: from logs of the expert and of chance, and while methods learn."""
    from pastwise.studies.icu import QUICK_SIZES, SIZES, icu_settings, icu_study

    if quick:
        seeds = min(seeds, 2)
        patients = min(patients, 100)
    settings = icu_settings(QUICK_SIZES if quick else SIZES)
    return output.run(
        lambda runner: icu_study(settings, seeds, patients, seed, runner),
        lambda result: print_text(result.page()),
    )


@study.command("icu-calibration", short_help="Whether stated intervals hold on ICU-Sepsis.")
@quick_option
@number_option("--logs", 10, "Logs of each size.")
@number_option("--samples", 200, "Models that each evaluation samples.")
@seed_option()
@output_options("icu-calibration")
def icu_statements(output: Output, quick: bool, logs: int, samples: int, seed: int) -> int:
    """Whether the stated intervals hold on ICU-Sepsis, from logs of the expert."""
    from pastwise.studies.icu_calibration import SIZES, icu_calibration

    if quick:
        logs = min(logs, 2)
    sizes = SIZES[:1] if quick else SIZES
    return output.run(
        lambda runner: icu_calibration(sizes, logs, samples, seed, runner),
        lambda result: print_text(result.page()),
    )


@study.command("gridworlds", short_help="Success in gridworlds, from logs made for another target.")
@quick_option
@seeds_option
@numbered_option
@seed_option()
@output_options("gridworlds")
def grid_worlds(output: Output, quick: bool, seeds: int, numbered: bool, seed: int) -> int:
    """Success of each method in gridworlds, from logs made for another target."""
    from pastwise.studies.gridworlds import QUICK_SIZES, SIZES, gridworlds
    from pastwise.studies.transfer import survey

    if quick:
        seeds = min(seeds, 2)
    settings = gridworlds(QUICK_SIZES if quick else SIZES, numbered=numbered)
    return output.run(
        lambda runner: survey("gridworlds", settings, seeds, seed, runner),
        lambda result: print_text(result.page()),
    )


@study.command("held-out", short_help="Compare statements about real logs with held-out episodes.")
@click.option(
    "--data",
    "names",
    type=click.Choice(["males", "star", "open-bandit"]),
    multiple=True,
    default=["males", "star", "open-bandit"],
    show_default=True,
    help="Data set; may be given several times.",
)
@click.option(
    "--open-bandit",
    "open_bandit_source",
    type=File,
    help="Wheel of obp, or a folder with its data; by default that of an installed obp.",
)
@number_option("--splits", 50, "Random splits of each data set, and permutations.")
@number_option("--samples", 400, "Sampled models per evaluation.")
@seed_option()
@output_options("held-out")
def held_out(
    output: Output,
    names: tuple[str, ...],
    open_bandit_source: Path | None,
    splits: int,
    samples: int,
    seed: int,
) -> int:
    """Do statements hold on held-out episodes? Real logs of wages, classes, recommendations."""
    from pastwise.studies.held_out import HeldOutStudy, held_out_study
    from pastwise.studies.real_data import real_logs

    settings = HeldOutStudy(splits=splits, samples=samples, seed=seed)
    logs = real_logs(dict.fromkeys(names), open_bandit_source)
    return output.run(
        lambda runner: held_out_study(logs, settings, runner),
        lambda result: print_text(result.page()),
    )
