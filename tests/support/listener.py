"""A listener to the live text that is published for a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from channels.layers import get_channel_layer

from chat.bus.events import TextAppended, decode
from chat.bus.publisher import group_of
from chat.models import Session


class Listener:
    """A listener that collects the text published for a session after `start` is called."""

    def __init__(self, session: Session) -> None:
        self._group = group_of(session.pk)
        self._heard: list[str] = []

    async def start(self) -> None:
        layer = get_channel_layer()
        assert layer is not None
        self._layer, self._channel = layer, await layer.new_channel()
        await layer.group_add(self._group, self._channel)

    async def until(self, is_enough: Callable[[str], bool]) -> None:
        """Wait until the received text satisfies a condition."""
        async with asyncio.timeout(20):
            while not is_enough("".join(self._heard)):
                await self._hear()

    async def heard(self) -> str:
        """Return all text received so far."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                while True:
                    await self._hear()
        return "".join(self._heard)

    async def _hear(self) -> None:
        message = await self._layer.receive(self._channel)
        events = [decode(event) for event in message.get("events", ())]
        self._heard += [event.text for event in events if isinstance(event, TextAppended)]
