"""The catalogue of findings: complete, and what the code itself uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pastwise.logs
from pastwise.logs.decode import BAD_LABEL_CODES, STATUS_CODES
from pastwise.logs.findings import CATALOGUE, Finding, finding_of
from pastwise.logs.query import Status


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=CATALOGUE)
def test_every_kind_is_documented(kind: pastwise.logs.FindingKind) -> None:
    assert kind.meaning.endswith(".")
    assert kind.message
    assert kind.fix
    assert not kind.fix.endswith(".")
    assert "drop" not in kind.fix  # its neighbours would follow each other
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)


def test_codes_of_the_code_are_those_of_the_catalogue() -> None:
    """All of them, and no others."""
    used = {*STATUS_CODES.values()}
    for begin in BAD_LABEL_CODES.values():
        used |= {f"{begin}-{part}" for part in ("state", "action", "next-state", "outcome")}
    package = Path(pastwise.logs.__file__).parent
    for module in ("decode.py", "effects.py", "summary.py", "validate.py"):
        source = (package / module).read_text(encoding="utf-8")
        used |= set(re.findall(r'finding_of\(\s*"([a-z-]+)"', source))
    used |= {"broken-chain"}
    assert used == set(CATALOGUE)
    assert set(STATUS_CODES) == set(Status) - {Status.FOLLOWED, Status.LAST}


def test_unknown_code_is_a_bug() -> None:
    with pytest.raises(KeyError):
        finding_of("no-such-code", 1)


def test_message_counts_records() -> None:
    assert finding_of("missing-state", 1).message == "1 record without state left out"
    assert finding_of("missing-state", 2345).message == "2,345 records without state left out"


def test_finding_as_plain_values() -> None:
    finding = finding_of("missing-age", 1, ({"row": 3, "at": None},))
    assert finding == Finding(**finding.to_dict())
    assert finding.to_dict() == {
        "code": "missing-age",
        "message": "1 record without an age left out",
        "rows": 1,
        "fix": "Fill the gaps",
        "examples": ({"row": 3, "at": None},),
        "severity": "warn",
        "remedies": (),
    }
