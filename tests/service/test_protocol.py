"""Connections that keep the service waiting are closed, whether or not a token was shown."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from pastwise.service import protocol
from pastwise.service.protocol import GuardedProtocol

HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
WHOLE = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Answer without a look at the body, as the service does where the token is missing."""
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def answers(sent: str, drip: bytes = b"") -> bytes:
    """All that is answered to these bytes until the server closes; meanwhile more bytes drip."""
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(refuse, lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state = uvicorn.server.ServerState()
    listening = await loop.create_server(lambda: GuardedProtocol(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(sent.encode())
    answer = b""
    try:
        while not reader.at_eof():
            writer.write(drip)
            with suppress(TimeoutError):
                answer += await asyncio.wait_for(reader.read(65536), 0.02)
    except ConnectionError:  # closed while something dripped
        pass
    finally:
        writer.close()
        listening.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "drip", "statuses"),
    [
        ("", b"", 0),
        ("GET / HT", b"", 0),
        ("GET / HTTP/1.1\r\nX: ", b"a", 0),
        (HEAD, b"", 1),
        (HEAD, b"a", 1),
        (WHOLE + WHOLE + HEAD, b"", 3),
        (WHOLE + "GET", b"", 1),
    ],
)
@pytest.mark.anyio
async def test_who_keeps_the_service_waiting_is_cut_off(
    sent: str, drip: bytes, statuses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "MOST_SECONDS", 0.2)
    async with asyncio.timeout(20):
        answer = await answers(sent, drip)
    assert answer.count(b"HTTP/1.1 401") == statuses


@pytest.mark.anyio
async def test_a_connection_that_waits_for_its_next_request_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "MOST_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await answers(WHOLE)
