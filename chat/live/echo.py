"""Detect a connection to the channel layer that is dead without an error: messages of a process to itself are lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from chat.bus.publisher import send_echo

logger = logging.getLogger(__name__)

INTERVAL = 3.0
# So many of a process's messages to itself may be missing before it connects again.
MOST_UNHEARD = 3


class Echo:
    """Sends messages to `channel` ("" while there is none), and calls `reconnect` when nothing comes back."""

    def __init__(self, channel: Callable[[], str], reconnect: Callable[[], Awaitable[None]]) -> None:
        self._channel = channel
        self._reconnect = reconnect
        self._unheard = 0

    def heard(self) -> None:
        """Note that a message has come, of whatever kind."""
        self._unheard = 0

    async def run_forever(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            if not self._channel():
                continue
            if self._unheard >= MOST_UNHEARD:
                logger.warning("The channel layer is silent, live updates are delayed; connecting again")
                self._unheard = 0
                await self._reconnect()
            else:
                self._unheard += 1
                await send_echo(self._channel())
