"""Refuses to build a wheel without the page of the workbench.

Users have no Node, so the page must be in the wheel. An editable installation does without it, and
so does an image of the decision service, which sets PASTWISE_WITHOUT_PAGE.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):
    """The check before a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stop unless the page is there, or nobody needs it."""
        page = Path(self.root, "src/pastwise/workbench/static/index.html")
        is_needed = version != "editable" and "PASTWISE_WITHOUT_PAGE" not in os.environ
        if is_needed and not page.is_file():
            raise RuntimeError(
                f"{page} is missing: build the page first, with `make frontend` (Node 20.19 or "
                "later), or set PASTWISE_WITHOUT_PAGE=1 for a wheel without the workbench's page"
            )
