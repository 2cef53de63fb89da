"""Pages and pictures that scripts write are what the scripts write today."""

import importlib.util
from pathlib import Path
from types import ModuleType

GENERATORS = Path(__file__).parents[2] / "docs" / "generators"


def generator(name: str) -> ModuleType:
    """A script of docs/generators as a module."""
    spec = importlib.util.spec_from_file_location(name, GENERATORS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_overview_is_current() -> None:
    overview = generator("overview")
    assert overview.PICTURE.read_text(encoding="utf-8") == overview.picture()


def test_page_of_findings_is_current() -> None:
    findings = generator("findings")
    assert findings.PAGE.read_text(encoding="utf-8") == findings.page()


def test_tables_of_the_service_are_current() -> None:
    service = generator("service")
    assert service.PAGE.read_text(encoding="utf-8") == service.page()
