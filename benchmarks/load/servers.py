"""Servers that are loaded: the decision service, BentoML, and Starlette alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.harness import DATA
from benchmarks.load.k6 import Running
from tests.helpers.server import STATES, Server, deploy, free_port, write_policy

ROOT = Path(__file__).parents[2]
PEERS = ("bentoml==1.4.39", "scikit-learn==1.9.1")


@contextmanager
def pastwise(server: Server, policy: Path) -> Iterator[Running]:
    """The decision service with a live policy."""
    with server:
        with server.client() as client:
            deploy(client, write_policy(policy))
        yield Running(server.url, server.process.pid, server.token, "pastwise")


@contextmanager
def echo() -> Iterator[Running]:
    """Starlette alone, by the server that pastwise uses."""
    app = "benchmarks.peers.echo:app"
    command = [sys.executable, "-m", "uvicorn", app, "--no-access-log"]
    with _serving(command, ROOT) as running:
        yield running


@contextmanager
def bento() -> Iterator[Running]:
    """BentoML in an environment of its own, which is made when it is first needed."""
    environment = DATA / "bentoml"
    is_ready = environment / "ready"
    if not is_ready.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
        is_ready.touch()
    command = [str(environment / "bin" / "bentoml"), "serve", "bento:Thermostat"]
    with _serving(command, ROOT / "benchmarks" / "peers") as running:
        yield running


@contextmanager
def _serving(command: Sequence[str], folder: Path) -> Iterator[Running]:
    """A server with the route ``/predict`` on a free port."""
    port = free_port()
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        cwd=folder,
        env={**os.environ, "BENTOML_DO_NOT_TRACK": "True", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/predict", process)
        yield Running(url, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], patience: float = 60.0) -> None:
    """Wait until a server predicts."""
    until = time.monotonic() + patience
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.post(url, json={"state": STATES[0]}).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")
