"""Files that studies write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class StudyResult(Protocol):
    """What a study returns."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        ...

    def write(self, folder: Path) -> None:
        """Write tables, pages and figures into a folder."""
        ...


def save_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain values as JSON, which has no number for what is undefined or infinite."""
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and PDF."""
    for suffix in ("png", "pdf"):
        figure.savefig(folder / f"{name}.{suffix}")
