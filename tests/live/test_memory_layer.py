"""The guarantees of the channel layer for a single process, on which the hub relies."""

from __future__ import annotations

import asyncio

import pytest
from channels.exceptions import ChannelFull

from chat.bus.memory_layer import MemoryLayer


async def test_group_send_reaches_every_member_in_order() -> None:
    """LIVE-01: a message to a group reaches each of its channels, in order, and no other channel."""
    layer = MemoryLayer()
    first, second, other = [await layer.new_channel("hub") for _ in range(3)]
    for channel in (first, second):
        await layer.group_add("session.s_1", channel)
    await layer.group_add("session.s_2", other)
    for number in range(3):
        await layer.group_send("session.s_1", {"number": number})
    await layer.group_send("session.s_2", {"number": 9})
    for channel in (first, second):
        assert [await layer.receive(channel) for _ in range(3)] == [{"number": number} for number in range(3)]
    assert await layer.receive(other) == {"number": 9}


async def test_group_discard_ends_delivery() -> None:
    """LIVE-06: a channel that left its group gets no more messages of it."""
    layer = MemoryLayer()
    channel = await layer.new_channel()
    await layer.group_add("group", channel)
    await layer.group_discard("group", channel)
    await layer.group_send("group", {"late": True})
    await layer.send(channel, {"late": False})
    assert await layer.receive(channel) == {"late": False}


async def test_receive_waits_and_can_be_given_up() -> None:
    """LIVE-02: a cancelled receiver takes no message from the channel."""
    layer = MemoryLayer()
    waiting = asyncio.create_task(layer.receive("channel"))
    await asyncio.sleep(0)
    waiting.cancel()
    await layer.send("channel", {"number": 1})
    assert await layer.receive("channel") == {"number": 1}
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_full_channel_refuses_and_does_not_hold_up_its_group() -> None:
    """LIVE-02: a full channel drops the newest message without affecting its group. The revisions show the gap."""
    layer = MemoryLayer(capacity=1)
    for channel in ("full", "free"):
        await layer.group_add("group", channel)
    await layer.send("full", {"number": 0})
    await layer.group_send("group", {"number": 1})
    with pytest.raises(ChannelFull):
        await layer.send("full", {"number": 2})
    assert [await layer.receive("full"), await layer.receive("free")] == [{"number": 0}, {"number": 1}]


@pytest.mark.parametrize("name", ["", "with space", "ünicode", "x" * 100])
async def test_bad_names_are_refused(name: str) -> None:
    """LIVE-01: names that other layers would refuse are refused."""
    layer = MemoryLayer()
    with pytest.raises(TypeError):
        await layer.group_add(name, "channel")
    with pytest.raises(TypeError):
        await layer.group_add("group", name)
