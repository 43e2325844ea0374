"""Detect a connection to the channel layer that loses messages without an error: a process sends messages to itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from chat.bus.publisher import send_echo

logger = logging.getLogger(__name__)

INTERVAL = 3.0
# The number of a process's messages to itself that may be missing. Then it connects again.
MOST_UNHEARD = 3


class Echo:
    """Sends messages to `channel` ("" while there is none), and calls `reconnect` when they do not arrive."""

    def __init__(self, channel: Callable[[], str], reconnect: Callable[[], Awaitable[None]]) -> None:
        self._channel = channel
        self._reconnect = reconnect
        self._unheard = 0

    def note_message(self) -> None:
        """Note that a message of any kind has arrived."""
        self._unheard = 0

    async def run_forever(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            if not self._channel():
                continue
            if self._unheard >= MOST_UNHEARD:
                logger.warning("The channel layer does not respond, so live updates are delayed; reconnecting")
                self._unheard = 0
                await self._reconnect()
            else:
                self._unheard += 1
                await send_echo(self._channel())
