"""Every code block of the documentation and of the README runs and prints what its page says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.java import QUICK_START, has_java
from tests.helpers.pages import blocks_of

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "tests" / "helpers" / "pages.py"
RUN = ("python", "sh")


def pages() -> list[Path]:
    """Pages with code that runs: the README, the front page and the pages of docs/."""
    fronts = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    found = [*fronts, *sorted((ROOT / "docs").glob("*/*.md"))]
    return [
        page
        for page in found
        if any(block.language in RUN for block in blocks_of(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_code_blocks_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "pyspark" in text and not has_java():
        pytest.skip("Spark needs Java 17 or later")
    if "curl" in text and not shutil.which("curl"):
        pytest.skip("the page needs curl")
    command = [sys.executable, str(RUNNER), str(page)]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": QUICK_START}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_blocks_are_read_with_their_marks_and_outputs() -> None:
    page = """# Title

<!-- exit code: 1 -->
```sh
false
```

```python
print(1)
```

```output
1
```
"""
    shell, python = blocks_of(page)
    assert (shell.language, shell.code, shell.line, shell.exit_code) == ("sh", "false\n", 5, 1)
    assert (python.code, python.line, python.output) == ("print(1)\n", 9, "1\n")
