"""A request that waits until a turn is over. While it waits for notices of changes, it uses no thread or connection."""

from __future__ import annotations

import asyncio

from chat.live.credentials import Credential
from chat.live.subscriber import Reader
from chat.models import SessionRole, User


class TurnWait(Reader):
    """Wakes its request after each change of the session and of the agent's status. Growing texts do not wake it.

    `name` is the user's name in the session (`sender_in`), which other users see.
    """

    def __init__(self, user: User, role: SessionRole, credential: Credential | None, *, name: str) -> None:
        super().__init__("events", user_id=user.pk, credential=credential, name=name, role=role)
        self._news = asyncio.Event()

    def notify(self, revision: int | None = None) -> None:
        if revision is not None:
            self._news.set()

    def close(self, code: int) -> None:
        self.leave()

    def leave(self) -> None:
        super().leave()
        self._news.set()

    async def changed(self, seconds: float) -> bool:
        """Wait for up to `seconds` for a change. Return whether there was one since the last call."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True
