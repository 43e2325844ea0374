"""The connection of a hub to the channel layer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from chat.bus.publisher import group_of, layer
from chat.live.layer_connection import LayerConnection


async def test_session_is_subscribed_if_the_hub_connects_before_its_first_try_has_begun() -> None:
    """LIVE-02: the try for the old connection is cancelled, which must not stop the one for the new connection."""
    feeds: dict[str, Any] = {"s_1": SimpleNamespace(subscribed=asyncio.Event())}
    received = asyncio.Queue[Any]()
    connection = LayerConnection(feeds, received.put_nowait)
    connection.update("s_1")
    await connection.start()
    async with asyncio.timeout(30):
        await feeds["s_1"].subscribed.wait()
        await layer().group_send(group_of("s_1"), {"type": "session.events"})
        assert await received.get() == {"type": "session.events"}
    await connection.stop()
