"""The command that opens the workbench: a page on this machine, from a log to a policy."""

from __future__ import annotations

from pathlib import Path

import click

from pastwise.cli.options import File
from pastwise.cli.output import print_text
from pastwise.cli.serve import require_service


@click.command(short_help="Open a page on this machine, from a log to a policy.")
@click.argument("log", type=File, required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port on this machine; 0 takes a free one.",
)
@click.option(
    "--root",
    type=File,
    help="Folder whose files the page may open; by default that of LOG, or the current one.",
)
@click.option(
    "--data",
    type=File,
    help="Folder of what is saved: policies, decisions, a journal; by default .pastwise in the "
    "root.",
)
@click.option(
    "--worker-niceness",
    type=click.IntRange(0, 19),
    default=10,
    show_default=True,
    help="How far verdicts and comparisons yield to other programs: from 0, not at all, to 19.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def workbench(
    log: Path | None,
    port: int,
    root: Path | None,
    data: Path | None,
    worker_niceness: int,
    no_browser: bool,
) -> int:
    """Open the workbench, with a LOG or without.

    The page runs on this machine and sends nothing anywhere. The address that is printed opens it
    once; whoever has the address first has the workbench. Stop it with Ctrl-C.
    """
    require_service("workbench")
    import webbrowser

    from pastwise.workbench.pages import require_page
    from pastwise.workbench.server import serve

    require_page()
    if root is None:
        root = Path.cwd() if log is None else log.absolute().parent
    if data is None:
        data = root / ".pastwise"

    def show(address: str) -> None:
        print_text(f"Workbench: {address}")
        if not no_browser:
            webbrowser.open(address)

    return serve(data, root, log, port=port, worker_niceness=worker_niceness, on_ready=show)
