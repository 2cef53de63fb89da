"""Pages that are loaded next to the workbench: optuna-dashboard, and MLflow's UI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.harness import DATA
from tests.helpers.server import free_port

PEERS = Path(__file__).parents[1] / "peers"
PINNED = ("optuna-dashboard==0.21.0", "mlflow==3.17.2")
QUIET = {"GIT_PYTHON_REFRESH": "quiet", "MLFLOW_DISABLE_TELEMETRY": "true"}


@dataclass(frozen=True)
class Dashboard:
    """A page that a server shows.

    Attributes
    ----------
    address : str
        Of the page.
    text : str
        What is on the page when it shows its data.
    process : int
        Id of the server's process.
    """

    address: str
    text: str
    process: int


@contextmanager
def dashboards() -> Iterator[dict[str, Dashboard]]:
    """Both servers, each with a hundred trials."""
    programs = _environment() / "bin"
    folder = _filled(programs / "python")
    optuna = [str(programs / "optuna-dashboard"), f"sqlite:///{folder}/optuna.db"]
    store = f"sqlite:///{folder}/mlflow.db"
    mlflow = [str(programs / "mlflow"), "ui", "--workers", "1", "--backend-store-uri", store]
    with _serving(optuna) as (optuna_url, first), _serving(mlflow) as (mlflow_url, second):
        yield {
            "optuna-dashboard": Dashboard(f"{optuna_url}/dashboard/studies/1", "thermostat", first),
            "MLflow": Dashboard(f"{mlflow_url}/#/experiments/1/runs", "trial-99", second),
        }


def _filled(python: Path) -> Path:
    """A folder with their data, made once."""
    folder = DATA / "dashboards-data"
    if not folder.exists():
        unfinished = DATA / "dashboards-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        script = PEERS / "dashboards.py"
        subprocess.run([python, script, unfinished], check=True, env=os.environ | QUIET)
        unfinished.rename(folder)
    return folder


def _environment() -> Path:
    """An environment of their own: their pins are not ours."""
    environment = DATA / "dashboards"
    is_ready = environment / "ready"
    if not is_ready.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINNED], check=True)
        is_ready.touch()
    return environment


@contextmanager
def _serving(command: list[str], patience: float = 120.0) -> Iterator[tuple[str, int]]:
    """Address and process of a server that answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        env=os.environ | QUIET,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(url, process, patience)
        yield url, process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], patience: float) -> None:
    """Wait until a server answers."""
    until = time.monotonic() + patience
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(url, timeout=5)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"{url} does not answer")
