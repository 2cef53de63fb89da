"""Disks that are full, or soon will be."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file grows beyond this size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def small_disk(folder: Path, size: str) -> list[str]:
    """A command that runs what follows it with a disk of its own, of this size, on a folder.

    The disk is a tmpfs in a mount namespace of the process and ends with it; other processes find
    its files by `seen_from_outside`. No rights are needed where the kernel allows user namespaces.
    """
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]


def has_small_disks(folder: Path) -> bool:
    """Whether this machine allows `small_disk`."""
    if not shutil.which("unshare"):
        return False
    command = [*small_disk(folder, "1m"), "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def seen_from_outside(path: Path, process: int) -> Path:
    """A path as a process in a mount namespace of its own sees it."""
    return Path(f"/proc/{process}/root") / path.relative_to("/")
