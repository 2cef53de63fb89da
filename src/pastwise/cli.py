"""The command line: parse, call, render. Data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pastwise.experiments.reproduction import Reproduction

BAD_INPUT, INTERRUPTED = 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pastwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn yesterday's decisions into a policy for today's goal."""


@cli.command()
@click.option("--runs", type=click.IntRange(min=1), default=100, show_default=True, help="Random systems to simulate.")
@click.option("--seed", type=click.IntRange(min=0), default=10, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for results.",
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
@click.option("--skip-timing", is_flag=True, help="Leave out the figure of time, which takes some seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the content of summary.json, and nothing else, to stdout.")
def reproduce(
    runs: int, seed: int, out: Path, transitions: str, methods: str, skip_timing: bool, as_json: bool
) -> None:
    """Run the paper's study: tables, claims and figures into a folder."""
    from pastwise.adapters.files import staged
    from pastwise.experiments import paper, reproduction

    study = paper.PaperStudy(
        runs=runs,
        seed=seed,
        draw_rows={"uniform": paper.uniform_rows, "dirichlet": paper.dirichlet_rows}[transitions],
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


def _print_reproduction(result: Reproduction, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"Mean gain of {result.study.runs} runs (and standard error)")
    by_key = {(row.past, row.method): row for row in result.rows}
    pasts = list(dict.fromkeys(row.past for row in result.rows))
    table.add_column("method")
    for past in pasts:
        table.add_column(f"past {past}", justify="right")
    for method in dict.fromkeys(row.method for row in result.rows):
        cells = (by_key[past, method] for past in pasts)
        table.add_row(method, *(f"{row.mean:.1f}" + ("" if row.se is None else f" ± {row.se:.1f}") for row in cells))
    console.print(table)
    colour = {"holds": "green", "does not hold": "red", "cannot tell": "yellow"}
    for claim in result.claims:
        console.print(f"[{colour[claim.verdict]}]{claim.verdict:>13}[/]  {claim.claim}", soft_wrap=True)
    console.print(f"Tables, claims and figures are in {out}/", soft_wrap=True)


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


def main() -> None:
    """Entry point: one line and exit code 2 for bad input, 130 for Ctrl-C; never a traceback for either."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.UsageError as error:
        error.show()
        sys.exit(BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        click.echo("pastwise: interrupted; nothing was written", err=True)
        sys.exit(INTERRUPTED)
    except (ValueError, OSError) as error:
        click.echo(f"pastwise: {error}", err=True)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
