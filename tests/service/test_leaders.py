"""Two processes on one PostgreSQL database: one leads a policy, the other waits for its turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pastwise.errors import FileError
from tests.helpers.postgres import PostgresServer
from tests.helpers.services import ROOM, InProcess, slug_of

POLICY = f"/v1/policies/{ROOM}"


def test_the_other_process_names_the_leader_and_takes_over(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.url()
    first = InProcess(tmp_path / "a", database=database, public_url="http://one.example:8765")
    second = InProcess(tmp_path / "b", database=database)
    with second:
        with first:
            first.with_policy()
            decision = first.decide()
            second.run(second.service.engine.sweep())
            answers = [
                second.call("POST", f"{POLICY}/decide", {"state": "cold"}),
                second.call(
                    "POST",
                    f"/v1/decisions/{decision['decision_id']}/outcome",
                    {"next_state": "mild"},
                ),
            ]
            for answer in answers:
                assert slug_of(answer) == "not-leader"
                assert answer.json()["leader"] == "http://one.example:8765"
            token = first.token("decide")

        # The first has ended, so the second leads, with all that the first had.
        wait_for(
            lambda: second.call("POST", f"{POLICY}/decide", {"state": "cold"}).status_code == 201
        )
        path = f"/v1/decisions/{decision['decision_id']}"
        outcome = second.call("POST", f"{path}/outcome", {"next_state": "mild"})
        assert outcome.json()["status"] == "learned"
        second.run(second.service.refresh_tokens())
        answer = second.call("POST", f"{POLICY}/decide", {"state": "cold"}, token=token)
        assert answer.status_code == 201


def test_a_standby_takes_over_after_the_database_was_restarted(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.url()
    with InProcess(tmp_path / "b", database=database) as second:
        with InProcess(tmp_path / "a", database=database) as first:
            first.with_policy()
            second.run(second.service.engine.sweep())
            postgres.stop()
            postgres.start()
        wait_for(lambda: second.call("GET", POLICY).status_code == 200)
        assert second.call("POST", f"{POLICY}/decide", {"state": "cold"}).status_code == 201
        wait_for(lambda: second.call("GET", "/readyz").status_code == 200)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/tokens", {"name": "x", "roles": ["read"]}),
        ("PUT", "/v1/policies/new", {}),
    ],
)
def test_a_service_without_policies_finds_the_restarted_database(
    postgres: PostgresServer, tmp_path: Path, method: str, path: str, body: dict[str, Any]
) -> None:
    with InProcess(tmp_path, database=postgres.url()) as service:
        postgres.stop()
        postgres.start()
        wait_for(lambda: service.call(method, path, body).status_code == 201)


def test_each_process_has_a_folder_of_its_own(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.url()
    with (
        InProcess(tmp_path, database=database),
        pytest.raises(FileError, match="in use by process"),
        InProcess(tmp_path, database=database),
    ):
        pass
    with InProcess(tmp_path, database=database) as service:
        assert service.call("GET", "/readyz").status_code == 200


def wait_for(is_true: Callable[[], bool], patience: float = 20.0) -> None:
    """Wait for something that must happen."""
    until = time.monotonic() + patience
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.1)
