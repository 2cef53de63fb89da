"""Commands that run studies: the paper's, calibration, and the applications."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pastwise.cli.options import File, json_option, print_table
from pastwise.report.terminal import progress
from pastwise.report.text import online_page

if TYPE_CHECKING:
    from pastwise.studies.reproduction import Reproduction
    from pastwise.studies.runner import Runner

OK = 0

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes to share the work; the results are the same for any number.",
)


@contextmanager
def _working(out: Path, jobs: int, owned: Iterable[str] = ()) -> Iterator[tuple[Path, Runner]]:
    """The folder that a study writes its files into, as `staged` has it, and the runner of its parts.

    After Ctrl-C the parts that are done stay next to ``out`` until the same study is complete.
    """
    from pastwise._files import staged
    from pastwise.studies.runner import Runner

    place = out.resolve()
    partial_folder = place.parent / f"{place.name}.partial"
    runner = Runner(jobs, partial_folder, progress, lambda text: click.echo(text, err=True))
    try:
        with staged(out, owned) as folder:
            yield folder, runner
    except KeyboardInterrupt:
        raise KeyboardInterrupt(runner.status()) from None
    runner.discard()


@click.command()
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Random systems to simulate.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Seed of the random numbers.",
)
@click.option(
    "--out",
    type=File,
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the results.",
)
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
@click.option(
    "--skip-timing", is_flag=True, help="Leave out the figure of time, which takes some seconds."
)
@jobs_option
@json_option
def reproduce(
    runs: int,
    seed: int,
    out: Path,
    transitions: str,
    methods: str,
    skip_timing: bool,
    jobs: int,
    as_json: bool,
) -> int:
    """Run the paper's study: tables, claims and figures into a folder."""
    from pastwise.report.figures import require_matplotlib
    from pastwise.studies import paper, reproduction

    require_matplotlib()
    study = paper.PaperStudy(
        runs=runs,
        seed=seed,
        draw_rows=paper.ROWS[transitions],
        methods={"paper": paper.PAPER_METHODS, "all": paper.all_methods()}[methods],
    )
    with _working(out, jobs, owned=reproduction.OPTIONAL_FILES) as (folder, runner):
        result = reproduction.reproduce(study, not skip_timing, runner)
        result.write(folder)
    if as_json:
        click.echo(json.dumps(result.content(), allow_nan=False))
    else:
        _print_reproduction(result, out)
    return OK


def _print_reproduction(result: Reproduction, out: Path) -> None:
    from pastwise.report.terminal import gains_table

    print_table(gains_table(result.content()["rows"]))
    for claim in result.claims:
        click.secho(
            f"{claim.verdict:>13}",
            nl=False,
            fg={"holds": "green", "does not hold": "red"}.get(claim.verdict, "yellow"),
        )
        click.echo(f"  {claim.claim}")
    click.echo(f"Tables, claims and figures are in {out}/")


@click.group()
def study() -> None:
    """Studies behind the claims that pastwise makes for itself."""


seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers.",
)


@study.command()
@click.option(
    "--systems",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Random systems per setting.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    help="Drawn models per system.",
)
@seed_option
@click.option(
    "--out",
    type=File,
    default=Path("calibration"),
    show_default=True,
    help="Folder for the results.",
)
@jobs_option
@json_option
def calibration(systems: int, draws: int, seed: int, out: Path, jobs: int, as_json: bool) -> int:
    """Do the stated intervals and verdicts hold? Random systems with known truth."""
    from pastwise.report.figures import require_matplotlib
    from pastwise.studies.calibration import calibrate, table

    require_matplotlib()
    with _working(out, jobs) as (folder, runner):
        result = calibrate(systems, draws, seed, runner)
        result.write(folder)
    click.echo(
        json.dumps(result.content())
        if as_json
        else f"{table(result)}\nTable, rates and figure are in {out}/"
    )
    return OK


quick_option = click.option("--quick", is_flag=True, help="A small version, in seconds.")
seeds_option = click.option(
    "--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Logs of each size."
)


@study.command("icu-sepsis")
@quick_option
@seeds_option
@click.option(
    "--patients",
    type=click.IntRange(min=10),
    default=5000,
    show_default=True,
    help="Treated by each agent.",
)
@seed_option
@click.option(
    "--out",
    type=File,
    default=Path("icu-sepsis"),
    show_default=True,
    help="Folder for the results.",
)
@jobs_option
@json_option
def icu_sepsis(
    quick: bool, seeds: int, patients: int, seed: int, out: Path, jobs: int, as_json: bool
) -> int:
    """Survival that each method attains on ICU-Sepsis, from logs of the expert and of chance, and while it learns."""
    from pastwise.report.figures import online_plot, require_matplotlib
    from pastwise.studies.icu import QUICK_SIZES, SIZES, icu_settings, icu_study

    require_matplotlib()
    seeds, patients = (min(seeds, 2), min(patients, 100)) if quick else (seeds, patients)
    settings = icu_settings(QUICK_SIZES if quick else SIZES)
    with _working(out, jobs) as (folder, runner):
        result, online = icu_study(settings, seeds, patients, seed, runner)
        extra = {"online": {"patients": patients, "survival": online}}
        result.write(folder, "icu-sepsis", extra)
        for suffix in ("png", "pdf"):
            online_plot(online, patients).savefig(folder / f"online.{suffix}")
    click.echo(
        json.dumps({**result.content(), **extra})
        if as_json
        else f"{result.page()}{online_page(online, patients)}\nTables and figures are in {out}/"
    )
    return OK


@study.command("gridworlds")
@quick_option
@seeds_option
@seed_option
@click.option(
    "--out",
    type=File,
    default=Path("gridworlds"),
    show_default=True,
    help="Folder for the results.",
)
@jobs_option
@json_option
def grid_worlds(quick: bool, seeds: int, seed: int, out: Path, jobs: int, as_json: bool) -> int:
    """Success of each method in gridworlds, from logs that were made for another target."""
    from pastwise.report.figures import require_matplotlib
    from pastwise.studies.gridworlds import QUICK_SIZES, SIZES, gridworlds
    from pastwise.studies.transfer import survey

    require_matplotlib()
    settings, seeds = gridworlds(QUICK_SIZES if quick else SIZES), min(seeds, 2) if quick else seeds
    with _working(out, jobs) as (folder, runner):
        result = survey(settings, seeds, seed, runner)
        result.write(folder, "gridworlds")
    click.echo(
        json.dumps(result.content())
        if as_json
        else f"{result.page()}\nTables and figures are in {out}/"
    )
    return OK
