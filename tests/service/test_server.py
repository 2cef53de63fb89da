"""The process: `pastwise serve` on a real socket."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from pastwise.errors import ParameterError
from pastwise.service.settings import ServerSettings, is_loopback, parse_listen
from tests.helpers.command import Shell, shell_of
from tests.helpers.server import POLICY, Server, deploy, write_policy


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with Server(folder / "data") as server:
        with server.client() as client:
            deploy(client, write_policy(folder / "policy.safetensors"))
        yield server


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


def raw(server: Server, request: str) -> str:
    """Everything that is answered to these bytes, until the server closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=3) as connection:
        answer = b""
        with suppress(TimeoutError, ConnectionError):
            connection.sendall(request.replace("\n", "\r\n").encode())
            while part := connection.recv(65536):
                answer += part
    return answer.decode()


def request_of(server: Server, body: str, *headers: str) -> str:
    """A request for a decision."""
    lines = [
        f"POST /v1/policies/{POLICY}/decide HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\n".join(lines) + "\n\n" + body


def test_a_body_that_is_longer_than_it_says_is_not_taken_as_a_request(server: Server) -> None:
    body = '{"state": "cool"}'
    hidden = "GET /v1/policies HTTP/1.1\nHost: evil.example\nConnection: close\n\n"
    answer = raw(server, request_of(server, body + hidden, f"Content-Length: {len(body)}"))
    first, _, second = answer.partition("HTTP/1.1 201 Created")
    assert not first
    assert "HTTP/1.1 403" in second
    assert "host-refused" in second


def test_contradicting_lengths_are_refused(server: Server) -> None:
    body = '{"state": "cool"}'
    twice = request_of(server, body, f"Content-Length: {len(body)}", "Content-Length: 5")
    assert raw(server, twice).startswith("HTTP/1.1 400")
    both = request_of(server, "0\n\n", f"Content-Length: {len(body)}", "Transfer-Encoding: chunked")
    assert raw(server, both).startswith("HTTP/1.1 400")


def test_a_large_body_is_refused_by_its_length(server: Server) -> None:
    answer = raw(server, request_of(server, "", "Content-Length: 1000000000"))
    assert answer.startswith("HTTP/1.1 413")
    assert "connection: close" in answer.lower()


@pytest.mark.parametrize("line", ["X-Long: " + "a" * 100_000, "X: y\n" * 20_000])
def test_heads_without_end_are_refused(server: Server, line: str) -> None:
    answer = raw(server, f"GET /livez HTTP/1.1\nHost: localhost\n{line}")
    # The answer may get lost, since the server does not read what follows.
    assert not answer or "The head of a request has at most 65536 bytes." in answer


@pytest.mark.parametrize("header", ["Host: localhost", "Authorization: Bearer {token}"])
def test_a_header_that_decides_is_there_once(server: Server, header: str) -> None:
    twice = header.format(token=server.token)
    request = request_of(server, "", "Content-Length: 0", twice, "Connection: close")
    answer = raw(server, request)
    assert answer.startswith("HTTP/1.1 400")
    assert "is there twice" in answer


def test_files_are_private_in_a_folder_that_is_not(tmp_path: Path, shell: Shell) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    with Server(folder) as server:
        url = f"{server.url}/v1/logs?name=a"
        headers = {"Authorization": f"Bearer {server.token}"}
        httpx.post(url, content=b"a,b\n1,2\n", headers=headers).raise_for_status()
        backup = tmp_path / "backup.sqlite"
        assert shell("serve", "backup", "--data", str(folder), str(backup)).code == 0
        files = [backup, tmp_path / "data.token", *folder.rglob("*")]
    assert {file.name for file in files} >= {"service.sqlite", "service.lock", "uploads"}
    assert [file for file in files if file.exists() and file.stat().st_mode & 0o077] == []


def test_events_arrive_while_they_happen(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    seen: list[str] = []
    url = f"{server.url}/v1/policies/{POLICY}/events"
    with httpx.stream("GET", url, headers=headers, timeout=20) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        with server.client() as client:
            decision = client.decide(POLICY, "cool")
            client.outcome(decision.decision_id, "comfortable")
        for line in lines:
            if line.startswith("event:"):
                seen.append(line)
            if len(seen) == 2:
                break
    assert seen == ["event: decision", "event: outcome"]


def test_events_end_with_their_token(server: Server) -> None:
    admin = {"Authorization": f"Bearer {server.token}"}
    body = {"name": "reader", "roles": ["read"]}
    token = httpx.post(f"{server.url}/v1/tokens", json=body, headers=admin).json()
    headers = {"Authorization": f"Bearer {token['token']}"}
    url = f"{server.url}/v1/policies/{POLICY}/events"
    with httpx.stream("GET", url, headers=headers, timeout=20) as stream:
        lines = stream.iter_lines()
        with server.client() as client:
            client.decide(POLICY, "cool")
            while not next(lines).startswith("event: decision"):
                pass
            answer = httpx.delete(f"{server.url}/v1/tokens/{token['id']}", headers=admin)
            assert answer.status_code == 204
            client.decide(POLICY, "cool")
        assert not [line for line in lines if line.startswith("event:")]


def test_a_backup_is_a_complete_store(server: Server, tmp_path: Path, shell: Shell) -> None:
    with server.client() as client:
        decision = client.decide(POLICY, "cool")
    target = tmp_path / "copy.sqlite"
    assert shell("serve", "backup", "--data", str(server.folder), str(target)).code == 0
    copy = sqlite3.connect(target)
    found = copy.execute("select id from decision where id = ?", (decision.decision_id,)).fetchall()
    copy.close()
    assert found == [(decision.decision_id,)]
    again = shell("serve", "backup", "--data", str(server.folder), str(target))
    assert again.code == 2
    assert "exists" in again.err
    none = shell("serve", "backup", "--data", str(tmp_path / "none"), str(tmp_path / "x"))
    assert none.code == 2


def test_stopping_ends_streams_and_keeps_answers(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        with server.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        headers = {"Authorization": f"Bearer {server.token}"}
        begun = threading.Event()
        ended = threading.Event()

        def follow() -> None:
            url = f"{server.url}/v1/policies/{POLICY}/events"
            with httpx.stream("GET", url, headers=headers, timeout=30) as stream:
                for _ in stream.iter_lines():
                    begun.set()
            ended.set()

        reader = threading.Thread(target=follow)
        reader.start()
        assert begun.wait(20)
        url = f"{server.url}/v1/policies/{POLICY}/replay"
        job = httpx.post(url, json={}, headers=headers).headers["location"]
        with httpx.stream("GET", f"{server.url}{job}/events", headers=headers) as events:
            assert next(events.iter_lines())
            assert server.stop() == 0
        assert ended.wait(10)
        reader.join()
        assert "listening on http://127.0.0.1" in server.said()


def test_options_that_cannot_be_served(shell: Shell, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    assert "HOST:PORT" in shell("serve", *data, "--listen", "8765").err
    other = shell("serve", *data, "--listen", "0.0.0.0:0")
    assert other.code == 2
    assert "--token-file" in other.err
    assert "--data" in shell("serve").err
    for option, value in {
        "--database": "mysql://x",
        "--host-name": "decide.example:80",
        "--allow-origin": "pages.example",
        "--public-url": "decide.example",
    }.items():
        refused = shell("serve", *data, option, value)
        assert refused.code == 2
        assert value in refused.err
    (tmp_path / "file").write_text("")
    no_folder = shell("serve", "--data", str(tmp_path / "file"), "--listen", "127.0.0.1:0")
    assert no_folder.code == 2
    assert "cannot make the folder" in no_folder.err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        busy = shell("serve", *data, "--listen", f"127.0.0.1:{port}")
    assert busy.code == 2
    assert "--listen" in busy.err


@pytest.mark.parametrize("text", ["", ":80", "127.0.0.1", "::1:80", "[]:80", "host:99999", "h:p"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ParameterError, match="--listen"):
        parse_listen(text)


def test_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"))
    assert ServerSettings(Path("x"), host="::1", port=80).url == "http://[::1]:80"


def test_other_commands_do_not_load_the_service() -> None:
    code = (
        "import sys, pastwise.cli.main\n"
        "print([name for name in ('starlette', 'uvicorn', 'msgspec') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_without_the_extra_it_says_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    shown = shell("serve", "--data", str(tmp_path))
    assert shown.code == 2
    assert "pip install 'pastwise[service]'" in shown.err
