"""How the service is run: where it listens, what it stores where, and its limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pastwise.errors import ParameterError
from pastwise.service.rates import Rate

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Sizes that a request may have.

    Attributes
    ----------
    body : int
        Bytes of a JSON body. A thousand decisions with their rows fit in.
    context : int
        Bytes of the context of a decision, as JSON.
    depth : int
        Levels of arrays and objects in a context.
    policy_file : int
        Bytes of a policy file, which is held in memory.
    upload : int
        Bytes of an uploaded log, which goes to the disk.
    body_seconds : float
        How long a JSON body may take to arrive.
    """

    body: int = MIB
    context: int = 4096
    depth: int = 32
    policy_file: int = 256 * MIB
    upload: int = 2048 * MIB
    body_seconds: float = 30.0


@dataclass(frozen=True)
class ServerSettings:
    """Everything that the command line decides.

    Attributes
    ----------
    data : Path
        Folder of the store, of uploads and of the administrator's token.
    database : str, optional
        Address of a PostgreSQL database; SQLite in the folder by default.
    token_file : Path, optional
        Tokens of administrators, one a line; ``admin.token`` in the folder by default.
    host_names : tuple of str
        Names that the header Host may have, besides those of the loopback.
    allow_origins : tuple of str
        Origins of pages that may call the service with a token.
    public_url : str, optional
        Address that other processes give to clients where this one leads; PostgreSQL cuts it
        after 63 characters.
    worker_niceness : int
        How far processes of jobs yield to others, from 0 to 19, see `worker.Limits`. By default
        they get a tenth of a busy processor, so that they come to an end.
    rates : dict
        Rate of requests per token, by kind of request. Decisions and outcomes: twice what the
        service is tested with; writes and reads: more than a person or a dashboard needs.
    drain_seconds : float
        How long requests under way may take after SIGTERM; leaves half of the ten seconds that
        process managers commonly wait for the last snapshot.
    stop_seconds : float
        After so many seconds from SIGTERM the process ends without that snapshot, because the
        store hangs; before those ten seconds are over.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8765
    database: str | None = None
    token_file: Path | None = None
    host_names: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    public_url: str | None = None
    log_data: bool = False
    workers: int = 2
    worker_niceness: int = 10
    limits: Limits = field(default_factory=Limits)
    rates: dict[str, Rate] = field(
        default_factory=lambda: {
            "decide": Rate(1000.0, 2000),
            "outcome": Rate(1000.0, 2000),
            "write": Rate(10.0, 20),
            "read": Rate(50.0, 100),
        }
    )
    drain_seconds: float = 5.0
    stop_seconds: float = 9.0

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def store_address(self) -> str:
        """Where the store is. PostgreSQL shows the name of a session to others: our address."""
        if self.database is None:
            return str(self.data)
        if self.public_url is None:
            return self.database
        mark = "&" if "?" in self.database else "?"
        return f"{self.database}{mark}application_name={quote(self.public_url, safe='')}"

    @property
    def url(self) -> str:
        """The address that the service listens on."""
        return f"http://{self.host_in_url}:{self.port}"

    @property
    def host_in_url(self) -> str:
        """The host as addresses have it: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; an IPv6 address is in brackets.

    >>> parse_listen("127.0.0.1:8765")
    ('127.0.0.1', 8765)
    >>> parse_listen("[::1]:80")
    ('::1', 80)
    """
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    is_host = bool(host) and (is_bracketed or ":" not in host)
    is_port = port.isascii() and port.isdecimal() and int(port) < 65536
    if not (colon and is_host and is_port):
        raise ParameterError(
            f"--listen needs HOST:PORT such as 127.0.0.1:8765 or [::1]:8765, not {text!r}"
        )
    return host, int(port)
