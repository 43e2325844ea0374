"""Streams that are read with pauses, longer ones if many are open, without loss or reordering."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from agents.events import PartDone, ProviderEvent, ReasoningDelta, TextDelta
from agents.messages import Text
from agents.providers.http.read_pacing import (
    MAX_PAUSE,
    MIN_PAUSE,
    STEP,
    ReadPacer,
    connection_of,
    merge_deltas,
    next_step,
    pause,
)
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import WireServer


def test_merge_deltas_makes_one_delta_of_neighbors() -> None:
    """RUN-02: the text is the same, however it was split."""
    done = PartDone(Text("ab"))
    events: list[ProviderEvent] = [TextDelta("a"), TextDelta("b"), done, ReasoningDelta("c"), TextDelta("d")]
    assert list(merge_deltas(events)) == [TextDelta("ab"), done, ReasoningDelta("c"), TextDelta("d")]


def test_merge_deltas_keeps_text_before_the_failure_behind_it() -> None:
    """RUN-10: text before a failure in the same packet is kept."""

    def failing() -> Iterator[ProviderEvent]:
        yield TextDelta("a")
        yield TextDelta("b")
        raise ValueError("behind them")

    events = merge_deltas(failing())
    assert next(events) == TextDelta("ab")
    with pytest.raises(ValueError, match="behind them"):
        next(events)


def test_many_streams_pause_longer() -> None:
    """RUN-01: up to 100 streams pause for the time between two frames. The pause of more streams is bounded."""
    pacer = ReadPacer()
    rests = []
    with ExitStack() as streams:
        for _ in range(1000):
            streams.enter_context(pacer.stream())
            rests.append(pacer.pause)
    assert rests[0] == rests[99] == MIN_PAUSE
    assert rests[100] > MIN_PAUSE
    assert rests == sorted(rests)
    assert rests[-1] == MAX_PAUSE
    assert pacer.streams == 0


def test_pauses_end_together() -> None:
    """LIVE-01: streams that pause at the same time continue together, none too early and none much too late."""
    ends = {next_step(1000 + number * STEP / 10) for number in range(1, 10)}
    assert ends == {next_step(1000 + STEP)}
    assert all(0 <= next_step(number / 7) - number / 7 < STEP for number in range(100))


async def test_pause_leaves_data_to_the_system() -> None:
    """RUN-02: while a stream pauses, its connection reads nothing. Afterwards all data is there, in order."""
    received: list[bytes] = []

    class Listener(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            received.append(data)
            complete.set()

    complete = asyncio.Event()
    sent = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await begin.wait()
        for piece in (b"a", b"b", b"c"):
            writer.write(piece)
            await writer.drain()
        sent.set()
        await complete.wait()
        writer.close()
        await writer.wait_closed()

    begin = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(Listener, *server.sockets[0].getsockname()[:2])
        resting = asyncio.create_task(pause(60, transport))
        await asyncio.sleep(0)
        begin.set()
        await sent.wait()
        await asyncio.sleep(0)
        assert received == []
        resting.cancel()
        await complete.wait()
        assert b"".join(received) == b"abc"
        transport.close()


async def test_connection_of_a_real_answer_is_found() -> None:
    """`connection_of` finds the connection in the SDK's aiohttp transport, without which many streams would cost
    double."""
    async with WireServer() as server:
        provider = OpenAIProvider("openai", "key", server.openai_url)
        messages: Any = [{"role": "user", "content": "stream 1000 tokens at 50/s"}]
        create = provider.client.chat.completions.with_streaming_response.create
        async with create(model="wire-large", messages=messages, stream=True) as response:
            found = connection_of(response.http_response)
        await provider.close()
    assert isinstance(found, asyncio.ReadTransport)
