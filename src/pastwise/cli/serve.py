"""The command that serves policies over HTTP, and the one that copies its store."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click

from pastwise._files import private_files
from pastwise.cli.options import File
from pastwise.cli.output import print_text
from pastwise.errors import MissingDependencyError

OK = 0
MIB = 1024 * 1024

HOST_NAME = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
ORIGIN = r"https?://[^/\s?#]+"
URL = r"https?://\S+"
DATABASE = r"postgres(ql)?://.*"


def matching(pattern: str, example: str) -> Callable[..., str | tuple[str, ...] | None]:
    """A check of an option's values, which says what they look like."""

    def check(
        context: click.Context, option: click.Parameter, value: str | tuple[str, ...] | None
    ) -> str | tuple[str, ...] | None:
        values = (value,) if isinstance(value, str) else value or ()
        for text in values:
            if not re.fullmatch(pattern, text):
                raise click.BadParameter(f"{text!r} is not of the form {example}.")
        return value

    return check


data_option = click.option(
    "--data", type=File, required=True, help="Folder of the store, of uploads and of the token."
)
database_option = click.option(
    "--database",
    metavar="URL",
    callback=matching(DATABASE, "postgresql://user@host/name"),
    help="PostgreSQL database for the store, such as postgresql://user@host/name; by default "
    "SQLite in the folder.",
)


@click.group(
    invoke_without_command=True,
    short_help="Serve policies over HTTP: decide, learn, lose nothing.",
)
@click.option("--data", type=File, help="Folder of the store, of uploads and of the token.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8765",
    show_default=True,
    help="Address to listen on; port 0 takes a free one.",
)
@click.option(
    "--token-file",
    type=File,
    help="Tokens of administrators, one a line; made with a new one if it does not exist. By "
    "default admin.token in the folder. Required if other machines can reach the address.",
)
@database_option
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    callback=matching(HOST_NAME, "decide.example.org, without a port"),
    help="Name that clients may call the service by, besides localhost.",
)
@click.option(
    "--allow-origin",
    "allow_origins",
    multiple=True,
    metavar="ORIGIN",
    callback=matching(ORIGIN, "https://pages.example.org"),
    help="Web pages of this origin may call the service with a token.",
)
@click.option(
    "--public-url",
    metavar="URL",
    callback=matching(URL, "https://decide.example.org"),
    help="Address of this process that others name to clients while it leads (PostgreSQL).",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Jobs that run at once, each in a process of its own.",
)
@click.option(
    "--worker-niceness",
    type=click.IntRange(0, 19),
    default=10,
    show_default=True,
    help="How far jobs yield to decisions: from 0, not at all, to 19, run only on an idle machine.",
)
@click.option(
    "--max-upload",
    type=click.IntRange(1),
    default=2048,
    show_default=True,
    help="Largest log to upload, in MiB.",
)
@click.option(
    "--max-policy-file",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Largest policy file, in MiB; it is held in memory.",
)
@click.option(
    "--decide-rate",
    type=click.FloatRange(0, min_open=True),
    default=1000.0,
    show_default=True,
    help="Decisions a second for each token, and outcomes; twice as many at once.",
)
@click.option(
    "--write-rate",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Other changes a second for each token.",
)
@click.option(
    "--read-rate",
    type=click.FloatRange(0, min_open=True),
    default=50.0,
    show_default=True,
    help="Look-ups a second for each token.",
)
@click.option("--log-data", is_flag=True, help="Write states and labels to the journal, too.")
@click.pass_context
def serve(
    context: click.Context,
    data: Path | None,
    listen: str,
    token_file: Path | None,
    database: str | None,
    host_names: tuple[str, ...],
    allow_origins: tuple[str, ...],
    public_url: str | None,
    workers: int,
    worker_niceness: int,
    max_upload: int,
    max_policy_file: int,
    decide_rate: float,
    write_rate: float,
    read_rate: float,
    log_data: bool,
) -> int:
    """Serve policies over HTTP: decide, report what followed, and learn from it.

    The administrator's token is in admin.token in the folder. Stop the service with Ctrl-C or
    SIGTERM: requests under way are answered, and nothing is lost.
    """
    if context.invoked_subcommand is not None:
        return OK
    if data is None:
        raise click.MissingParameter(param_hint="'--data'", param_type="option")
    require_service()
    from pastwise.service.rates import Rate
    from pastwise.service.server import serve as run
    from pastwise.service.settings import Limits, ServerSettings, parse_listen

    host, port = parse_listen(listen)
    rates = {
        "decide": Rate(decide_rate, max(1, round(2 * decide_rate))),
        "outcome": Rate(decide_rate, max(1, round(2 * decide_rate))),
        "write": Rate(write_rate, max(1, round(2 * write_rate))),
        "read": Rate(read_rate, max(1, round(2 * read_rate))),
    }
    settings = ServerSettings(
        data=data,
        host=host,
        port=port,
        database=database,
        token_file=token_file,
        host_names=host_names,
        allow_origins=allow_origins,
        public_url=public_url,
        log_data=log_data,
        workers=workers,
        worker_niceness=worker_niceness,
        limits=Limits(upload=max_upload * MIB, policy_file=max_policy_file * MIB),
        rates=rates,
    )
    return run(settings)


@serve.command(short_help="Copy the store of a service, which may be running.")
@data_option
@database_option
@click.argument("target", type=File)
def backup(data: Path, database: str | None, target: Path) -> int:
    """Write a consistent copy of a store to TARGET, while the service runs or not.

    Only you can read the copy.
    """
    require_service()
    from pastwise.service.store import open_store

    store = open_store(database or data, create=False, read_only=True)
    try:
        with private_files():
            store.backup(target)
    finally:
        store.close()
    print_text(f"Wrote {target}.")
    return OK


def require_service(extra: str = "service") -> None:
    """Say which extra is missing."""
    try:
        import msgspec  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"the {extra} needs {error.name}: pip install 'pastwise[{extra}]'"
        ) from None
