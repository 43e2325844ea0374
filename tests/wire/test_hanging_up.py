"""The end of a connection: aborted by Parley, or kept for the next round."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from agents.events import ResponseDone, TextDelta
from agents.providers.http.transport import ReadTimeout
from tests.wire.script import Reply
from tests.wire.server import PATIENCE, WireServer
from tests.wire.vendors import Provider, Vendor, ask, request


@pytest.fixture
def dropped() -> Iterator[list[str]]:
    """The async generators that were left to the garbage collector."""
    names: list[str] = []
    before = sys.get_asyncgen_hooks()

    def note(generator: AsyncIterator[object]) -> None:
        names.append(repr(generator))

    sys.set_asyncgen_hooks(finalizer=note)
    yield names
    sys.set_asyncgen_hooks(*before)


@pytest.mark.parametrize("moment", ["before the status line", "before the first byte", "in mid-text"])
async def test_cancelling_hangs_up_and_leaves_nothing(
    wire: WireServer, vendor: Vendor, moment: str, dropped: list[str]
) -> None:
    """RUN-07: a stop at any moment closes the connection immediately, and leaves no task or connection."""
    gate = asyncio.Event()
    wire.script(
        {
            "before the status line": Reply(hold=gate),
            "before the first byte": Reply([gate]),
            "in mid-text": Reply([*vendor.opening("a"), gate]),
        }[moment]
    )
    provider = vendor.make(wire)
    begun = asyncio.Event()
    before = asyncio.all_tasks()
    task = asyncio.create_task(_listen(provider, begun))
    received = await wire.received(1)
    if moment == "in mid-text":
        await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await received.left()
    await provider.close()
    await _settled(before)
    gc.collect()
    assert dropped == []


async def _listen(provider: Provider, begun: asyncio.Event) -> None:
    async for _ in provider.stream(request()):
        begun.set()


async def _settled(before: set[asyncio.Task[object]]) -> None:
    """Wait until only the earlier tasks are left."""
    async with asyncio.timeout(PATIENCE):
        while rest := asyncio.all_tasks() - before:
            await asyncio.wait(rest)


async def test_closing_the_stream_hangs_up(wire: WireServer, vendor: Vendor, dropped: list[str]) -> None:
    """RUN-07: a consumer that closes the stream closes the connection."""
    wire.script(Reply([*vendor.opening("a"), asyncio.Event()]))
    provider = vendor.make(wire)
    async with aclosing(provider.stream(request())) as events:
        assert await anext(events) == TextDelta("a")
    await (await wire.received(1)).left()
    await provider.close()
    gc.collect()
    assert dropped == []


async def test_finished_stream_leaves_no_timer(wire: WireServer, vendor: Vendor) -> None:
    """LIVE-01: a finished stream leaves no timer that would keep its data for minutes."""
    provider = vendor.make(wire)
    await ask(provider)
    gc.collect()
    assert [each for each in gc.get_objects() if type(each) is ReadTimeout] == []
    await provider.close()


async def test_connection_is_used_again(wire: WireServer, vendor: Vendor) -> None:
    """RUN-01: the next round uses the same connection."""
    provider = vendor.make(wire)
    for _ in range(3):
        await ask(provider)
    assert len({received.port for received in wire.requests}) == 1
    await provider.close()


async def test_end_of_the_body_is_awaited(wire: WireServer, vendor: Vendor) -> None:
    """RUN-01: the end of the body, which may come in a packet of its own, is read, so that the connection can be used
    again."""
    read = asyncio.Event()
    wire.script(Reply([*vendor.text("a"), read]))
    provider = vendor.make(wire)
    async with aclosing(provider.stream(request())) as events:
        async for event in events:
            if isinstance(event, ResponseDone):
                read.set()
    await ask(provider)
    assert len({received.port for received in wire.requests}) == 1
    await provider.close()


async def test_body_without_end_is_left(wire: WireServer, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-01: the end of a complete answer's body is waited for only briefly."""
    monkeypatch.setattr("agents.providers.http.client.LATE_END", 0.05)
    wire.script(Reply([*vendor.text("a"), asyncio.Event()]))
    provider = vendor.make(wire)
    assert isinstance((await ask(provider))[-1], ResponseDone)
    await (await wire.received(1)).left()
    await provider.close()
