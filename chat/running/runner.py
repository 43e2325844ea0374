"""The runner of a process: claims sessions that are due, holds their bridges' tasks and keeps the lease."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import DatabaseError

from chat.db import Threads
from chat.running import lease, nudge
from chat.running.bridge import Bridge
from chat.running.lease import Claim
from chat.running.pump import Pump
from chat.running.writer import Writer

logger = logging.getLogger(__name__)

POLL = 1.0
CLAIM_AT_ONCE = 20
SLOTS = 2000
GIVE_BACK_AFTER = 5.0
THREADS = 6


class Runner:
    """Runs sessions on the event loop that starts it. `worker_id` names its lease."""

    def __init__(self) -> None:
        self.worker_id = ""
        self._threads = Threads(THREADS, "parley-runner")
        self._writer = Writer()
        self._pump = Pump()
        self._running: dict[str, tuple[Bridge, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._deaf: Callable[[], None] = lambda: None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.worker_id = await self._threads.run(lease.enlist)
        self._writer.start()
        self._deaf = nudge.listen(lambda *what: _soon(loop, self._nudged, *what))
        self._tasks = [loop.create_task(self._claim_forever()), loop.create_task(self._beat_forever())]

    async def stop(self) -> None:
        """Give everything back: open turns keep what they have and go on with the next worker."""
        self._deaf()
        for task in [*self._tasks, *(task for _, task in self._running.values())]:
            task.cancel()
        await asyncio.gather(*self._tasks, *(task for _, task in self._running.values()), return_exceptions=True)
        self._pump.close()
        await self._writer.close()
        await self._threads.run(lease.retire, self.worker_id)
        await self._threads.close()

    def _nudged(self, what: nudge.Nudge, session_id: str, turn_id: str) -> None:
        if what is nudge.Nudge.WORK:
            self._wake.set()
        elif session_id in self._running:
            self._running[session_id][0].stop(turn_id)

    async def _claim_forever(self) -> None:
        nudged = True
        while True:
            try:
                while await self._claim_some(look_first=not nudged):
                    nudged = True
            except DatabaseError as error:
                logger.warning("Cannot claim sessions, trying again: %s", error)
            nudged = await _set_within(self._wake, POLL)

    async def _claim_some(self, *, look_first: bool) -> bool:
        """Claim a few; True when there may be more. An idle poll only looks."""
        free = min(CLAIM_AT_ONCE, SLOTS - len(self._running))
        if free <= 0 or (look_first and not await self._threads.run(lease.work_is_due)):
            return False
        claims = await self._threads.run(lease.claim, self.worker_id, free)
        for claim in claims:
            self._take(claim)
        return len(claims) == free

    def _take(self, claim: Claim) -> None:
        if claim.session_id in self._running:  # our own lease had run out: the older claim is fenced
            self._running[claim.session_id][1].cancel()
        bridge = Bridge(claim, writer=self._writer, pump=self._pump, threads=self._threads)
        task = asyncio.get_running_loop().create_task(bridge.run(), name=claim.session_id)
        self._running[claim.session_id] = (bridge, task)
        task.add_done_callback(partial(self._ended, claim))

    def _ended(self, claim: Claim, task: asyncio.Task[None]) -> None:
        if self._running.get(claim.session_id, (None, None))[1] is task:
            del self._running[claim.session_id]
        if task.cancelled() or task.exception() is None:
            return
        logger.error("Session %s could not be run", claim.session_id, exc_info=task.exception())
        loop = asyncio.get_running_loop()
        loop.call_later(GIVE_BACK_AFTER, lambda: self._tasks.append(loop.create_task(self._give_back(claim))))

    async def _give_back(self, claim: Claim) -> None:
        await self._threads.run(lease.give_back, claim)
        self._wake.set()

    async def _beat_forever(self) -> None:
        """Renew the lease; look for stops whose nudge was lost; fence ourselves when the lease may be gone."""
        alive = time.monotonic()
        while True:
            await asyncio.sleep(settings.LEASE_SECONDS / 5)
            asked = time.monotonic()
            try:
                renewed = await self._threads.run(lease.renew, self.worker_id)
                owned = await self._threads.run(lease.owned, self.worker_id)
            except DatabaseError as error:
                logger.warning("Cannot renew the lease: %s", error)
                if time.monotonic() - alive > settings.LEASE_SECONDS * 0.75:
                    self._drop_all()
                continue
            if not renewed:
                logger.warning("The lease has run out; others may have taken over")
                self._drop_all()
                self.worker_id = await self._threads.run(lease.enlist)
                self._wake.set()
                owned = {}
            alive = asked
            self._compare(owned)

    def _compare(self, owned: dict[str, lease.Owned]) -> None:
        for session_id, (bridge, task) in list(self._running.items()):
            found = owned.get(session_id)
            if found is not None and found.epoch > bridge.claim.epoch:
                task.cancel()
            elif found is not None and found.stop_turn:
                bridge.stop(found.stop_turn)

    def _drop_all(self) -> None:
        for _, task in self._running.values():
            task.cancel()


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event and clear it; False when the time is up first."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True


def _soon(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    """Call on the loop, from any thread; a loop that has just ended needs no nudge any more."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *args)
