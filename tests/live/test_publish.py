"""Messages to the channel layer: they are small and in order, and are dropped while the layer hangs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import msgpack  # type: ignore[import-untyped]  # has no types; what the Redis layer packs with
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.bus import publisher as publishing
from chat.bus.events import (
    ChatEvent,
    MessageChanged,
    MessageRemoved,
    StatusChanged,
    TextAppended,
    decode,
    encode,
)
from chat.bus.memory_layer import MemoryLayer
from chat.bus.publisher import Publisher, layer_messages
from chat.overrides.redis_layer import RedisLayer
from chat.services.transaction import MAX_SIZE_IN_EVENT
from chat.snapshots import MessageSnapshot, ToolSnapshot, UsageSnapshot
from tests.support.effort import cases

LIMIT = 64 * 1024
# Characters with the longest encoding in UTF-8.
WIDE = "😀"


def snapshot(text: str = "", tool: ToolSnapshot | None = None) -> MessageSnapshot:
    return MessageSnapshot(
        id="m_" + "0" * 24,
        session_id="s_" + "0" * 24,
        sequence=2**53,
        revision=2**53,
        type="tool_group" if tool else "text",
        role="assistant",
        status="interrupted",
        text=text,
        sender=WIDE * 200,
        user_id=2**53,
        model=WIDE * 200,
        provider=WIDE * 80,
        turn_id="t_" + "0" * 24,
        response_id="r_" + "0" * 24,
        include_in_context=True,
        edited=True,
        timestamp="2026-01-01T00:00:00.000000+00:00",
        duration_ms=2**53,
        duration_seconds=1.5,
        usage=UsageSnapshot(2**53, 2**53, 2**53, 2**53, 2**53, 2**53),
        tool=tool,
    )


def tool(characters: int) -> ToolSnapshot:
    return ToolSnapshot(
        "c" * 200, WIDE * 200, {"a": WIDE * (characters // 2 - 10)}, WIDE * (characters // 2), True, None
    )


events = st.lists(
    st.one_of(
        st.builds(TextAppended, st.just("m_1"), st.just(0), st.integers(0, 50_000).map(lambda n: WIDE * n)),
        st.builds(
            lambda n, revision: MessageChanged("message_updated", revision, "m_1", snapshot(WIDE * n), {"usage": {}}),
            st.integers(0, MAX_SIZE_IN_EVENT),
            st.integers(1, 100),
        ),
        st.builds(
            lambda n, revision: MessageChanged("tool_exec_end", revision, "m_1", snapshot(tool=tool(n))),
            st.integers(100, MAX_SIZE_IN_EVENT),
            st.integers(1, 100),
        ),
        st.builds(MessageRemoved, st.integers(1, 100), st.just("m_1")),
        st.just(StatusChanged("tool_calling", "x" * 200)),
    ),
    max_size=12,
)


@given(events)
@settings(deadline=None, max_examples=cases(60))
def test_layer_messages_stay_below_64_kilobytes(published: list[ChatEvent]) -> None:
    """LIVE-01: all events of a commit arrive in order in small messages, each with the commit's head."""
    sent = list(layer_messages("s_" + "0" * 24, published))
    assert all(len(msgpack.packb(message)) < LIMIT for message in sent)
    heard = [decode(event) for message in sent for event in message["events"]]
    assert _joined(heard) == _joined(published)
    head = max(
        (event.revision for event in published if isinstance(event, MessageChanged | MessageRemoved)), default=None
    )
    assert {message["head"] for message in sent} == ({head} if published else set())


def _joined(published: list[ChatEvent]) -> list[ChatEvent]:
    """Return the events with successive texts joined."""
    joined: list[ChatEvent] = []
    for event in published:
        last = joined[-1] if joined else None
        if (
            isinstance(event, TextAppended)
            and isinstance(last, TextAppended)
            and event.offset == last.offset + len(last.text)
        ):
            joined[-1] = TextAppended(last.id, last.offset, last.text + event.text)
        else:
            joined.append(event)
    return joined


@given(events)
@settings(deadline=None, max_examples=cases(30))
def test_events_survive_the_layer(published: list[ChatEvent]) -> None:
    """LIVE-01: an event is the same after encode, pack, unpack and decode."""
    for event in published:
        assert decode(msgpack.unpackb(msgpack.packb(encode(event)))) == event


def test_long_numbers_are_packed_as_text() -> None:
    """LIVE-01: msgpack has no integers of more than 64 bits. An error would drop what is sent with it."""
    layer = RedisLayer(hosts=["redis://127.0.0.1:1/0"])
    question = ToolSnapshot("c", "form", {"most": 2**64 - 1, "least": -(2**64)}, "", True, None)
    changed = MessageChanged("tool_exec_end", 1, "m_1", snapshot(tool=replace(question, answer={"id": 10**400})))
    heard = decode(layer.deserialize(layer.serialize(encode(changed))))
    assert isinstance(heard, MessageChanged)
    assert heard.message is not None
    assert heard.message.tool is not None
    assert heard.message.tool.arguments == {"most": 2**64 - 1, "least": str(-(2**64))}
    assert heard.message.tool.answer == {"id": str(10**400)}


class Moody(MemoryLayer):
    """A layer that hangs or refuses until the test ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = "good"
        self.sent: list[int] = []
        self.tried = asyncio.Event()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.tried.set()
        if self.mood == "hangs":
            await asyncio.get_running_loop().create_future()
        if self.mood == "refuses":
            raise ConnectionError("no layer")
        self.sent.append(message["n"])


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Moody:
    layer = Moody()
    monkeypatch.setattr(publishing, "get_channel_layer", lambda: layer)
    return layer


async def test_hanging_layer_is_abandoned_and_logged_once(
    moody: Moody, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """LIVE-02: messages that a hanging layer does not take are dropped.

    Publishers never wait, and the backlog is bounded.
    """
    monkeypatch.setattr(publishing, "SEND_TIMEOUT", 0.01)
    monkeypatch.setattr(publishing, "MAX_WAITING", 5)
    sender = Publisher()
    sender.open()
    for mood in ("hangs", "refuses"):
        moody.mood = mood
        moody.tried.clear()
        sender.put("g", [{"n": 0}])
        await moody.tried.wait()
    for number in range(1, 10):
        sender.put("g", [{"n": number}])
    moody.mood = "good"
    await sender.close()
    assert moody.sent == [5, 6, 7, 8, 9]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_close_does_not_wait_for_a_hanging_layer(moody: Moody, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a server stops even if its layer hangs."""
    sender = Publisher()
    sender.open()
    moody.mood = "hangs"
    sender.put("g", [{"n": 0}])
    await moody.tried.wait()
    monkeypatch.setattr(publishing, "SEND_TIMEOUT", 0.01)
    await asyncio.wait_for(sender.close(), 20)
