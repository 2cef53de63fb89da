"""Server-Sent Events of a policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from pastwise.service.stream import HEARTBEAT, RETRY, Stream


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 20))


def parsed(chunk: bytes) -> list[dict[str, Any]]:
    """The frames of a chunk, as a browser reads them."""
    frames = []
    for text in chunk.decode().split("\n\n")[:-1]:
        frame: dict[str, Any] = dict(line.split(": ", 1) for line in text.split("\n"))
        frame["data"] = json.loads(frame["data"])
        frames.append(frame)
    return frames


async def start(reader: AsyncIterator[bytes]) -> None:
    assert await anext(reader) == RETRY


def test_a_reader_gets_the_events_of_its_policy_only() -> None:
    async def body() -> None:
        stream = Stream()
        stream.publish("heating", "decision", {"number": 0})
        reader = stream.events("heating")
        await start(reader)
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        stream.publish("cooling", "decision", {"number": 1})
        stream.publish("heating", "decision", {"text": "a\nb"})
        stream.publish("heating", "outcome", {"number": 3})
        frames = parsed(await waiting)
        assert [frame["event"] for frame in frames] == ["decision", "outcome"]
        assert [frame["data"] for frame in frames] == [{"text": "a\nb"}, {"number": 3}]
        assert len({frame["id"] for frame in frames}) == 2

    run(body())


def test_a_reader_that_comes_back_misses_nothing() -> None:
    async def body() -> None:
        stream = Stream()
        first = stream.events("heating")
        await start(first)
        stream.publish("heating", "decision", {"number": 1})
        [seen] = parsed(await anext(first))
        stream.publish("heating", "decision", {"number": 2})
        again = stream.events("heating", seen["id"])
        await start(again)
        assert [frame["data"] for frame in parsed(await anext(again))] == [{"number": 2}]

    run(body())


def test_a_slow_reader_gets_a_gap_and_goes_on() -> None:
    async def body() -> None:
        stream = Stream(capacity=3, pace=0.0)
        reader = stream.events("heating")
        await start(reader)
        for number in range(10):
            stream.publish("heating", "decision", {"number": number})
        [gap] = parsed(await anext(reader))
        assert gap["event"] == "gap"
        assert gap["data"] == {"missed": 7}
        kept = parsed(await anext(reader))
        assert [frame["data"]["number"] for frame in kept] == [7, 8, 9]

        # The id of the gap continues where it stands.
        again = stream.events("heating", gap["id"])
        await start(again)
        assert parsed(await anext(again)) == kept

    run(body())


def test_an_id_that_is_too_old_or_foreign_gives_a_gap() -> None:
    async def body() -> None:
        stream = Stream(capacity=2)
        reader = stream.events("heating")
        await start(reader)
        stream.publish("heating", "decision", {"number": 0})
        [seen] = parsed(await anext(reader))
        for number in (1, 2, 3):
            stream.publish("heating", "decision", {"number": number})
        other = Stream()
        other.publish("heating", "decision", {})
        future = seen["id"].replace("-1", "-99")
        for last, missed in ((seen["id"], 1), ("1f-1", None), ("nonsense", None), (future, None)):
            late = stream.events("heating", last)
            await start(late)
            [gap] = parsed(await anext(late))
            assert (gap["event"], gap["data"]) == ("gap", {"missed": missed})
            rest = parsed(await anext(late))
            assert [frame["data"]["number"] for frame in rest] == [2, 3]

    run(body())


def test_silence_is_broken_by_heartbeats() -> None:
    async def body() -> None:
        stream = Stream(heartbeat=0.01)
        reader = stream.events("heating")
        await start(reader)
        assert await anext(reader) == HEARTBEAT
        assert await anext(reader) == HEARTBEAT
        stream.publish("heating", "alarm", {})
        assert b"event: alarm" in await anext(reader)

    run(body())


def test_close_ends_all_readers_and_counts_them() -> None:
    async def body() -> None:
        stream = Stream()

        async def read() -> list[bytes]:
            return [chunk async for chunk in stream.events("heating")]

        readers = [asyncio.ensure_future(read()) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert stream.readers == 3
        stream.close()
        assert await asyncio.gather(*readers) == [[RETRY]] * 3
        assert stream.readers == 0

    run(body())


def test_all_readers_get_every_event_in_order() -> None:
    async def body() -> None:
        stream = Stream(pace=0.0)

        async def read() -> list[int]:
            numbers: list[int] = []
            async for chunk in stream.events("heating"):
                if chunk != RETRY:
                    numbers += [frame["data"]["number"] for frame in parsed(chunk)]
                if len(numbers) == 500:
                    break
            return numbers

        readers = [asyncio.ensure_future(read()) for _ in range(4)]
        await asyncio.sleep(0)
        for number in range(500):
            stream.publish("heating", "decision", {"number": number})
            if number % 7 == 0:
                await asyncio.sleep(0)
        assert await asyncio.gather(*readers) == [list(range(500))] * 4

    run(body())
