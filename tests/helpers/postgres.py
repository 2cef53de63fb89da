"""A real PostgreSQL server on a socket in a temporary folder.

PostgreSQL does not run as root; where the tests do, the server runs as the user ``postgres``.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

REQUIRED = "PASTWISE_REQUIRE_POSTGRES"
"""Environment variable that makes tests fail where there is no PostgreSQL."""

DEBIAN = Path("/usr/lib/postgresql")


def folder_of_programs() -> Path | None:
    """Where ``initdb`` and ``pg_ctl`` are; the newest version, if there are several."""
    installed = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if installed:
        return installed[-1].parent
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def require_postgres() -> Path:
    """The folder of PostgreSQL's programs; without it the test is left out, or fails in CI."""
    programs = folder_of_programs()
    if programs is not None:
        return programs
    reason = "there is no PostgreSQL: install the package postgresql"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = "postgres" if os.geteuid() == 0 else None
        self._numbers = count(1)
        self.folder = Path(tempfile.mkdtemp(prefix="pastwise-postgres-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"
        self._process_file = self._data / "postmaster.pid"
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        # Files need not reach the disk: the tests kill processes, not the machine.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "--wait", "--silent", f"--log={log}", f"--options={options}", "start")

    def stop(self) -> None:
        """Stop the server in good order."""
        self._run("pg_ctl", "--wait", "--silent", "--mode=fast", "stop")

    def freeze(self) -> None:
        """Let the server hang: connections stay, and nothing is answered."""
        for each in self._processes():
            os.kill(each, signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on after `freeze`."""
        for each in self._processes():
            os.kill(each, signal.SIGCONT)

    def _processes(self) -> list[int]:
        process = int(self._process_file.read_text().split()[0])
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [process, *map(int, children)]

    def kill(self) -> None:
        """Kill all processes of the server at once, as a crash of the machine would."""
        processes = self._processes()
        for each in processes:
            os.kill(each, signal.SIGKILL)
        while any(Path(f"/proc/{each}").exists() and not _is_zombie(each) for each in processes):
            time.sleep(0.01)

        # Where nobody collects dead processes, they look as if they still used these files.
        self._process_file.unlink()
        for lock in self.folder.glob(".s.PGSQL.*.lock"):
            lock.unlink()

    def url(self) -> str:
        """Address of an empty schema."""
        schema = f"test_{next(self._numbers)}"
        address = f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}"
        with psycopg.connect(address) as connection:
            connection.execute(f"create schema {schema}")
        return f"{address}&options={quote(f'-c search_path={schema}', safe='')}"

    def remove(self) -> None:
        """Stop the server and remove its files."""
        if self._process_file.exists():
            self._run("pg_ctl", "--wait", "--silent", "--mode=immediate", "stop")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), f"--pgdata={self._data}", *arguments]
        finished = subprocess.run(
            command,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if finished.returncode != 0:
            raise RuntimeError(f"{program}: {finished.stderr}")


def _is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
