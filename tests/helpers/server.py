"""A real ``pastwise serve`` in a process of its own, on a free port of this machine."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Self

import httpx

import pastwise as pw
from pastwise.service.client import Client
from pastwise.service.types import PolicySettings

LOG = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
POLICY = "thermostat"
STATES = ("cold", "cool", "comfortable", "warm", "hot")


class Server:
    """A server that can be killed, stopped and started again on the same folder and port.

    Parameters
    ----------
    folder : Path
        Its data. Journal and tokens are next to it, so that the folder may be a small disk.
    options : texts
        More options of ``pastwise serve``.
    prefix : texts
        Put before the command, such as `disk.small_disk`.
    patience : float
        Seconds within which it starts and stops.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        prefix: Sequence[str] = (),
        port: int | None = None,
        patience: float = 60.0,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.journal = folder.with_suffix(".journal")
        self._token_file = folder.with_suffix(".token")
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *prefix,
            *(sys.executable, "-m", "pastwise", "serve"),
            *("--data", str(folder)),
            *("--listen", f"127.0.0.1:{self.port}"),
            *("--token-file", str(self._token_file)),
            *("--worker-niceness", "0"),
            *options,
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self.kill()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process, which must have been started."""
        assert self._process is not None
        return self._process

    @property
    def token(self) -> str:
        """A token that may do everything."""
        return self._token_file.read_text(encoding="utf-8").split()[0]

    def client(self, retries: int = 8) -> Client:
        """A client with all rights."""
        return Client(self.url, self.token, retries=retries, first_wait=0.02)

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        with self.journal.open("ab") as journal:
            self._process = subprocess.Popen(self._command, stdout=journal, stderr=journal)

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        self.launch()
        until = time.monotonic() + self._patience
        while not self.is_ready():
            if self.process.poll() is not None:
                raise AssertionError(f"the server did not start:\n{self.said()}")
            if time.monotonic() > until:
                self.kill()
                raise AssertionError(f"the server does not become ready:\n{self.said()}")
            time.sleep(0.02)

    def is_ready(self) -> bool:
        """Whether the server would decide now."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End the process as a power cut would, as far as a process can see it."""
        self.process.kill()
        self.process.wait()
        self._process = None

    def stop(self) -> int:
        """Ask the process to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(self._patience)
        self._process = None
        return code

    def wait(self) -> int:
        """Exit code of a process that ends by itself."""
        code = self.process.wait(self._patience)
        self._process = None
        return code

    def said(self) -> str:
        """The end of what it wrote to stderr."""
        return self.journal.read_text(encoding="utf-8", errors="replace")[-4000:]


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def write_policy(path: Path) -> Path:
    """A policy file of the thermostat."""
    learner().save(path)
    return path


@cache
def learner() -> pw.TransferLearner:
    """The thermostat's policy, which learns with every outcome."""
    goal = pw.Goal(prefer={"comfortable": 1, "warm": 0.5})
    learned = pw.TransferLearner(goal, method="TL")
    return learned.fit(str(LOG), state="room", action="did", episode="day", time="hour")


def deploy(client: Client, file: Path) -> None:
    """Serve a policy file under the name `POLICY`, live.

    Outcomes of tests are random, which is not what the policy was learned from: the alarm must not
    end the learning.
    """
    client.create(POLICY, PolicySettings(on_alarm="none"))
    version = client.add_version(POLICY, file).version
    client.change(POLICY, version=version, mode="live")
