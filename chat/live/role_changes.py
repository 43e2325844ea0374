"""Show changes of users' roles in a workspace on the open pages of its sessions (LIVE-06)."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from chat.db import Threads
from chat.live.feed import Feed
from chat.live.socket_queue import RELOAD, SocketQueue
from chat.queries.session_people import sessions_concerned

logger = logging.getLogger(__name__)

# Seconds for which changes are collected. When many people join at once, the pages read once who has access.
COLLECT_FOR = 0.5


class RoleChanges:
    """Collects changes, then reloads the users' own pages. Others' pages read again who has access, and who approves.

    `feeds` are the feeds of this process. `check_access` checks the roles of a feed's subscribers.
    """

    def __init__(
        self,
        threads: Threads,
        feeds: Mapping[str, Feed],
        check_access: Callable[[Iterable[Feed]], Coroutine[Any, Any, None]],
    ) -> None:
        self._threads = threads
        self._feeds = feeds
        self._check_access = check_access
        # The ids of the users whose roles have changed, by workspace.
        self._users = defaultdict[int, set[int]](set)
        self._pages = defaultdict[int, set[SocketQueue]](set)
        self._showing: asyncio.Task[None] | None = None

    def add(self, workspace_id: int, user_id: int, sockets: Iterable[SocketQueue]) -> None:
        """Soon show that a user's role has changed. `sockets` are the user's, which were opened before the change."""
        if not self._feeds:
            return
        self._users[workspace_id].add(user_id)
        self._pages[workspace_id].update(each for each in sockets if each.protocol == "page")
        if self._showing is None:
            self._showing = asyncio.get_running_loop().create_task(self._show_all())

    def close(self) -> None:
        if self._showing is not None:
            self._showing.cancel()

    async def _show_all(self) -> None:
        try:
            while self._users:
                await asyncio.sleep(COLLECT_FOR)
                workspace_id, users = self._users.popitem()
                try:
                    await self._show(workspace_id, users, self._pages.pop(workspace_id))
                except Exception as error:  # the beacon checks access again
                    logger.warning("Could not show changed roles: %r", error)
        finally:
            self._showing = None

    async def _show(self, workspace_id: int, users: set[int], pages: set[SocketQueue]) -> None:
        owners = await self._threads.run(sessions_concerned, workspace_id, users, list(self._feeds))
        feeds = [feed for pk in owners if (feed := self._feeds.get(pk)) is not None]
        # Others lose access if the owner of an open session leaves. The users' own access is checked for each change.
        await self._check_access([feed for feed in feeds if owners[feed.session_id] in users])
        for page in pages:
            if page.session_id in owners and not page.closed:
                page.answer(RELOAD)
        for feed in feeds:
            feed.send_access_changed()
