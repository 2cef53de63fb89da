"""The workbench of a fitted learner, as a notebook or a script opens it."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import httpx
import numpy as np
import pytest

import pastwise as pw
from pastwise.errors import NotFittedError, ParameterError
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT, session


@pytest.fixture(scope="module")
def learner() -> pw.TransferLearner:
    return pw.TransferLearner(COMFORT, method="TL").fit(THERMOSTAT, columns=COLUMNS)


def test_a_learner_opens_the_same_page(learner: pw.TransferLearner, tmp_path: Path) -> None:
    opened = learner.workbench(name="Rooms", data=tmp_path, browser=False)
    with opened, session(opened.address) as client:
        assert client.get("/v1/session").json()["project"] == "rooms"
        project = client.get("/v1/projects/rooms").json()
        draft = project["drafts"][0]
        assert draft["goal"] == COMFORT
        body = {"goal": draft["goal"], "method": draft["method"]}
        address = f"/v1/counts/{project['counts']}/preview"
        rule = client.post(address, json=body).json()["rule"]
        expected = list(learner.rule_["cool"].values())
        place = rule["states"].index("cool")
        assert rule["p"][place] == pytest.approx(expected, abs=1e-9)
    assert not opened.is_open


def test_a_learner_keeps_its_hyper_parameters_on_the_page(learner: pw.TransferLearner) -> None:
    known = learner.retarget(learner.goal, pw.methods.TLForesight(past_skill=-1))
    with known.workbench(name="Rooms", browser=False) as opened, session(opened.address) as client:
        project = client.get("/v1/projects/rooms").json()
        draft = project["drafts"][0]
        assert draft["method"] == "TL_foresight(past_skill=-1)"
        body = {"goal": draft["goal"], "method": draft["method"]}
        answer = client.post(f"/v1/counts/{project['counts']}/preview", json=body).json()
        assert answer["method"] == draft["method"]
        place = answer["rule"]["states"].index("warm")
        expected = list(known.rule_["warm"].values())
        assert answer["rule"]["p"][place] == pytest.approx(expected, abs=1e-9)


def test_a_method_that_a_page_cannot_name_is_refused(learner: pw.TransferLearner) -> None:
    prior = np.ones((5, 3, 5))
    odd = learner.retarget(learner.goal, pw.methods.TL(prior_count=prior))
    with pytest.raises(ParameterError, match=r"cannot read the method 'TL\(prior_count=...\)'"):
        odd.workbench(browser=False)


def test_several_are_open_at_once_and_notebooks_show_links(learner: pw.TransferLearner) -> None:
    first = learner.workbench(name="<Rooms>", browser=False)
    second = learner.retarget(pw.Goal(prefer={"cold": 1})).workbench(browser=False)
    with first, second:
        # Each link opens its own workbench, in one browser.
        links = []
        for opened in (first, second):
            link = re.search(r'href="([^"]+)"', opened._repr_html_())
            assert link is not None
            links.append(unescape(link.group(1)))
        assert "<Rooms>" not in first._repr_html_()
        with session(links[0]) as client, session(links[1]) as other:
            drafts = client.get("/v1/projects/rooms").json()["drafts"]
            assert [draft["goal"] for draft in drafts] == [COMFORT]
            drafts = other.get("/v1/projects/learner").json()["drafts"]
            assert [draft["goal"] for draft in drafts] == [{"prefer": {"cold": 1}}]
        with session(repr(first).split()[-1]) as client:
            assert client.get("/v1/projects").status_code == 200
    assert "closed" in repr(first)
    assert "href" not in first._repr_html_()
    with pytest.raises(httpx.ConnectError):
        httpx.get(links[0])


def test_what_cannot_be_opened_is_said(learner: pw.TransferLearner, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        pw.TransferLearner(COMFORT).workbench(browser=False)
    with learner.workbench(data=tmp_path / "a", browser=False) as opened:
        port = httpx.URL(opened.address).port
        assert port is not None
        with pytest.raises(ParameterError, match="cannot listen"):
            learner.workbench(data=tmp_path / "b", port=port, browser=False)


def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['starlette'] = None\n"
        "import pastwise as pw\n"
        "learner = pw.TransferLearner({'prefer': {'b': 1}}, method='TL')\n"
        "learner.workbench()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert "MissingDependencyError" in last
    assert "pip install 'pastwise[workbench]'" in last
