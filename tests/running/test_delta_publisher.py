"""DeltaPublisher: it sends text to the viewers in frames, after the message of the text and never without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest_asyncio
from channels.layers import get_channel_layer

from chat.bus.events import TextAppended, decode
from chat.bus.publisher import group_of, publisher
from chat.runner.delta_publisher import DeltaPublisher, OutgoingText
from chat.services.runs.recording import Recorded


class Viewer:
    """A viewer that collects what is published about a session."""

    def __init__(self) -> None:
        self.layer = get_channel_layer()

    async def listen(self) -> None:
        assert self.layer is not None
        self.channel = await self.layer.new_channel()
        await self.layer.group_add(group_of("s_1"), self.channel)

    async def hear(self) -> list[TextAppended]:
        assert self.layer is not None
        message = await asyncio.wait_for(self.layer.receive(self.channel), 20)
        events = [decode(event) for event in message["events"]]
        return [event for event in events if isinstance(event, TextAppended)]

    async def leave(self) -> None:
        assert self.layer is not None
        await self.layer.group_discard(group_of("s_1"), self.channel)


@pytest_asyncio.fixture
async def viewer() -> AsyncIterator[Viewer]:
    publisher.open()
    viewer = Viewer()
    await viewer.listen()
    yield viewer
    await viewer.leave()
    await publisher.close()


def recorded(stream: OutgoingText) -> asyncio.Future[Recorded]:
    """Return a future for the write of the message's own row, whose result announces the message."""
    future: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
    future.add_done_callback(stream.announce)
    return future


def grow(deltas: DeltaPublisher, stream: OutgoingText, *texts: str) -> None:
    for text in texts:
        stream.parts.append(text)
        stream.length += len(text)
        deltas.add(stream)


async def test_text_of_a_moment_is_one_frame(viewer: Viewer) -> None:
    """LIVE-02: the first token is sent immediately and the next ones are collected.

    Each frame names the offset of its text.
    """
    deltas, stream = DeltaPublisher(), OutgoingText("s_1", "m_1", "text", 2, 2)
    recorded(stream).set_result(Recorded())
    await asyncio.sleep(0)
    grow(deltas, stream, "c", "dé", "👩", "f")
    assert await viewer.hear() == [TextAppended("m_1", 2, "c")]
    assert await viewer.hear() == [TextAppended("m_1", 3, "dé👩f")]
    deltas.close()


async def test_text_waits_for_its_message(viewer: Viewer) -> None:
    """LIVE-01: text of a message is published only after the message."""
    deltas, first, second = (
        DeltaPublisher(),
        OutgoingText("s_1", "m_1", "text", 0, 0),
        OutgoingText("s_1", "m_2", "reasoning", 0, 0),
    )
    message = recorded(first)
    recorded(second).set_result(Recorded())
    await asyncio.sleep(0)
    grow(deltas, first, "early")
    grow(deltas, second, "hm")
    assert await viewer.hear() == [TextAppended("m_2", 0, "hm", reasoning=True)]
    message.set_result(Recorded())
    assert await viewer.hear() == [TextAppended("m_1", 0, "early")]
    deltas.close()


async def test_text_of_a_message_that_could_not_be_written_is_not_published(viewer: Viewer) -> None:
    """RUN-15: text is not published if the claim was lost or the change was refused."""
    fates: list[Callable[[asyncio.Future[Recorded]], object]] = [
        lambda future: future.set_exception(ValueError("refused")),
        lambda future: future.cancel(),
    ]
    for fate in fates:
        deltas, stream = DeltaPublisher(), OutgoingText("s_1", "m_1", "text", 0, 0)
        grow(deltas, stream, "lost")
        fate(recorded(stream))
        await asyncio.sleep(0)
        grow(deltas, stream, "lost too")
        other = OutgoingText("s_1", "m_2", "text", 0, 0)
        recorded(other).set_result(Recorded())
        await asyncio.sleep(0)
        grow(deltas, other, "heard")
        assert await viewer.hear() == [TextAppended("m_2", 0, "heard")]
        deltas.close()


async def test_dropped_stream_says_no_more(viewer: Viewer) -> None:
    """LIVE-01: a dropped stream publishes no more text, because the message's end contains its last words."""
    deltas, stream, other = (
        DeltaPublisher(),
        OutgoingText("s_1", "m_1", "text", 0, 0),
        OutgoingText("s_1", "m_2", "text", 0, 0),
    )
    for each in (stream, other):
        recorded(each).set_result(Recorded())
    await asyncio.sleep(0)
    grow(deltas, stream, "first ", "last ", "words")
    deltas.drop(stream)
    assert await viewer.hear() == [TextAppended("m_1", 0, "first ")]
    assert stream.take() == [TextAppended("m_1", 6, "last words")]
    assert stream.take() == []
    stream.not_before = other.not_before = 0.0
    grow(deltas, other, "heard")
    assert await viewer.hear() == [TextAppended("m_2", 0, "heard")]
    deltas.close()
