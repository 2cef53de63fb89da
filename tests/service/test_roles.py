"""Who may do what: every role at every address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pastwise.errors import FileError, ParameterError
from pastwise.service.routes import OPERATIONS
from pastwise.service.tokens import ROLES, read_token_file
from tests.helpers.services import ROOM, InProcess, slug_of

MATRIX = {
    "decide": {("POST", "decide"), ("POST", "decide-many")},
    "outcome": {("POST", "outcome"), ("POST", "taken"), ("POST", "cancel")},
    "edit": {
        ("POST", "replay"),
        ("POST", "evaluations"),
        ("POST", "logs"),
        ("POST", "summaries"),
        ("DELETE", "jobs"),
        ("DELETE", "logs"),
    },
    "deploy": {
        ("PUT", "policies"),
        ("PATCH", "policies"),
        ("POST", "rollback"),
        ("POST", "versions"),
        ("POST", "learn"),
    },
    "admin": {("POST", "tokens"), ("GET", "tokens"), ("DELETE", "tokens"), ("GET", "audit")},
}
"""What each role may do, by the last word of the address; everything else that needs a token is
for readers."""

OPEN = {"/livez", "/readyz", "/v1/openapi.json", "/problems/{slug}"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service")) as service:
        yield service.with_policy().with_policy("other")


@pytest.fixture(scope="module")
def tokens(service: InProcess) -> dict[str, str]:
    return {role: service.token(role) for role in ROLES}


def needed_role(method: str, path: str) -> str:
    """The role that the matrix wants."""
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    for role, allowed in MATRIX.items():
        if (method, words[-1]) in allowed:
            return role
    return "read"


@pytest.mark.parametrize("role", ROLES)
def test_every_role_at_every_address(service: InProcess, tokens: dict[str, str], role: str) -> None:
    for operation in OPERATIONS:
        if operation.path in OPEN or operation.answer == "text/event-stream":
            continue
        needed = needed_role(operation.method, operation.path)
        is_allowed = role in (needed, "admin")
        path = operation.path.format(policy=ROOM, id="none", version="0", slug="x")
        is_export = path.endswith((".parquet", ".csv"))
        if is_allowed and (is_export or operation.status != 200):
            continue  # would start jobs or make things; other tests do
        answer = service.call(operation.method, path, token=tokens[role])
        is_refused = answer.status_code == 403
        assert is_refused != is_allowed, (operation.method, operation.path, answer.text)
        if is_refused:
            assert slug_of(answer) == "role-missing"
            assert answer.json()["role"] == needed


def test_all_addresses_but_a_few_need_a_token(service: InProcess) -> None:
    for operation in OPERATIONS:
        path = operation.path.format(policy=ROOM, id="none", version="0", slug="stale")
        answer = service.call(operation.method, path, token=None)
        if operation.path in OPEN:
            assert answer.status_code == 200
        else:
            assert slug_of(answer) == "token-missing"
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer pw_unknown", "Bearer ", "Basic abc", "pw_x"])
def test_other_tokens_are_refused(service: InProcess, header: str) -> None:
    answer = service.call("GET", "/v1/policies", token=None, headers={"Authorization": header})
    assert answer.status_code == 401
    assert slug_of(answer) in ("token-invalid", "token-missing")


def test_a_token_that_is_bound_to_a_policy(service: InProcess) -> None:
    token = service.token("read", "decide", "outcome", "edit", policies=[ROOM])
    listed = service.call("GET", "/v1/policies", token=token).json()["items"]
    assert [item["name"] for item in listed] == [ROOM]
    body = {"state": "cold"}
    mine = service.call("POST", f"/v1/policies/{ROOM}/decide", body, token=token)
    assert mine.status_code == 201
    other = service.call("POST", "/v1/policies/other/decide", body, token=token)
    assert slug_of(other) == "role-missing"

    # Decisions of other policies are as if they did not exist.
    foreign = service.decide(policy="other")["decision_id"]
    outcome = {"next_state": "mild"}
    for answer in (
        service.call("GET", f"/v1/decisions/{foreign}", token=token),
        service.call("POST", f"/v1/decisions/{foreign}/outcome", outcome, token=token),
        service.call("POST", f"/v1/decisions/{foreign}/cancel", token=token),
    ):
        assert slug_of(answer) == "not-found"
    own = service.call("GET", f"/v1/decisions/{mine.json()['decision_id']}", token=token)
    assert own.status_code == 200

    # What is about all policies is not for it.
    for path in ("/metrics", "/v1/logs"):
        assert slug_of(service.call("GET", path, token=token)) == "role-missing"


def test_a_token_expires(service: InProcess) -> None:
    token = service.token("read", expires="2027-01-15T08:01:00Z")
    assert service.call("GET", "/v1/policies", token=token).status_code == 200
    before = service.clock.now
    try:
        service.clock.pass_seconds(3600)
        answer = service.call("GET", "/v1/policies", token=token)
        assert slug_of(answer) == "token-invalid"
        assert "expired" in answer.json()["detail"]
    finally:
        service.clock.now = before
    past = {"name": "x", "roles": ["read"], "expires": "2020-01-01T00:00:00Z"}
    refused = service.call("POST", "/v1/tokens", past)
    assert refused.json()["errors"][0]["pointer"] == "/expires"


def test_a_deleted_token_is_refused_at_once(service: InProcess) -> None:
    made = service.call("POST", "/v1/tokens", {"name": "short", "roles": ["read"]}).json()
    assert service.call("GET", "/v1/policies", token=made["token"]).status_code == 200
    assert service.call("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    assert slug_of(service.call("GET", "/v1/policies", token=made["token"])) == "token-invalid"
    assert slug_of(service.call("DELETE", f"/v1/tokens/{made['id']}")) == "not-found"


def test_a_token_that_needs_idempotency_keys(service: InProcess) -> None:
    token = service.token("decide", needs_key=True)
    path = f"/v1/policies/{ROOM}/decide"
    without = service.call("POST", path, {"state": "cold"}, token=token)
    assert slug_of(without) == "idempotency-key-missing"
    key = {"Idempotency-Key": "needed"}
    assert (
        service.call("POST", path, {"state": "cold"}, token=token, headers=key).status_code == 201
    )
    dry = service.call("POST", path, {"state": "cold", "dry_run": True}, token=token)
    assert dry.status_code == 200


def test_secrets_are_shown_once_and_not_stored(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        secret = service.token("read")
        assert secret.startswith("pw_")
        assert len(secret) == 46
        assert secret not in service.call("GET", "/v1/tokens").text
        assert secret not in service.call("GET", "/v1/audit").text
        assert secret not in service.journal.getvalue()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("service.sqlite*"))
    assert secret.encode() not in stored


def test_the_last_use_of_a_token_is_noted(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        token = service.token("read")
        service.call("GET", "/v1/policies", token=token)
    with InProcess(tmp_path) as service:
        [view] = service.call("GET", "/v1/tokens").json()["items"]
        assert view["used"] is not None


def test_token_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    [first] = read_token_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_token_file(path) == [first]
    path.write_text(f"{first}\nanother-token-of-somebody\n")
    assert read_token_file(path) == [first, "another-token-of-somebody"]


def test_token_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(ParameterError, match="has no token"):
        read_token_file(empty)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff" * 30)
    with pytest.raises(FileError, match="cannot read"):
        read_token_file(binary)
    with pytest.raises(FileError, match="cannot write"):
        read_token_file(tmp_path / "none" / "tokens")
