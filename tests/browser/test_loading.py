"""What a browser loads: few requests, all of them from this machine, under a strict policy."""

from __future__ import annotations

import re
from itertools import takewhile

import pytest

from tests.helpers.browser import Visitor

GOAL = "g=%7B%22prefer%22%3A%7B%22comfortable%22%3A1%2C%22warm%22%3A0.5%7D%7D"
VIEWS = {
    "home": "#/home",
    "log": "#/thermostat/log",
    "policy": f"#/thermostat/policy?{GOAL}",
    "trust": f"#/thermostat/trust?{GOAL}",
    "compare": "#/thermostat/compare?p={Comfort},{Warm}",
    "deploy": "#/thermostat/deploy",
    "watch": "#/thermostat/watch",
}
MOST_REQUESTS = 8
JOBS = "/v1/(jobs|comparisons)"
"""Work that a screen starts once it is there; what it asks after that is no part of the load."""
FOLLOWING = "^data:|/livez|/v1/drafts"
"""The heartbeat, and saved policies with their verdicts."""


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_first_load_takes_few_requests(visitor: Visitor, view: str) -> None:
    page = visitor.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    if "{" in view:
        project = visitor.bench.call("GET", "v1/projects/thermostat")
        view = view.format(**{draft["name"]: draft["id"] for draft in project["drafts"]})
    page.goto(visitor.bench.url + view)
    visitor.settle(page)
    before = list(takewhile(lambda url: not re.search(JOBS, url), requests))
    ours = [url for url in before if not re.search(FOLLOWING, url)]
    assert len(ours) <= MOST_REQUESTS, "\n".join(ours)


def test_a_script_of_elsewhere_is_neither_loaded_nor_run(visitor: Visitor) -> None:
    """The guard that all other tests rely on sees a violation of the policy."""
    page = visitor.open("#/home")
    page.evaluate(
        """() => {
            const image = document.createElement("img");
            image.src = "http://elsewhere.invalid/pixel.png";
            document.body.append(image);
        }"""
    )
    page.wait_for_timeout(200)
    assert any("Content Security Policy" in fault for fault in visitor.faults)
    visitor.expect_fault("Content Security Policy|request to another host")
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    visitor.expect_fault("TrustedHTML|Trusted")
