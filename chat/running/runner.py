"""The runner of a process: claims sessions that are due, holds their bridges' tasks and keeps the lease."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import Error

from chat.db import Threads
from chat.running import lease, nudge
from chat.running.bridge import Bridge
from chat.running.lease import Claim
from chat.running.naming import Namer
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
        # A claim that a power cut undoes is made again, and the process that made it is gone.
        self._threads = Threads(THREADS, "parley-runner", durable=False)
        self._writer = Writer()
        self._pump = Pump()
        self._namer = Namer(self._threads)
        self._running: dict[str, tuple[Bridge, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._fenced = False
        self._deaf: Callable[[], None] = lambda: None

    async def start(self) -> None:
        await self._threads.run(lease.forget_dead)
        self.worker_id = await self._threads.run(lease.enlist)
        self._writer.start()
        loop = asyncio.get_running_loop()
        self._deaf = nudge.listen(lambda *what: _soon(loop, self._nudged, *what))
        self._spawn(self._claim_forever())
        self._spawn(self._beat_forever())

    async def stop(self) -> None:
        """Give everything back: open turns keep what they have and go on with the next worker."""
        self._deaf()
        tasks = [*self._tasks, *(task for _, task in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pump.close()
        await self._writer.close()
        await self._threads.run(lease.retire, self.worker_id)
        await self._threads.close()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
            except Exception as error:  # whatever it was, the sessions still have to be run
                _warn("Cannot claim sessions, trying again", error)
            nudged = await _set_within(self._wake, POLL)

    async def _claim_some(self, *, look_first: bool) -> bool:
        """Claim a few; True when there may be more. An idle poll only looks."""
        free = min(CLAIM_AT_ONCE, SLOTS - len(self._running))
        if free <= 0 or self._fenced or (look_first and not await self._threads.run(lease.work_is_due)):
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
        if task.cancelled():
            return
        if task.exception() is None:
            self._spawn(self._namer.name(claim.session_id))
            return
        logger.error("Session %s could not be run", claim.session_id, exc_info=task.exception())
        self._spawn(self._give_back(claim))

    async def _give_back(self, claim: Claim) -> None:
        """Let go of a session that could not be run, after a while: it is due again."""
        given = False
        while not given:
            await asyncio.sleep(GIVE_BACK_AFTER)
            try:
                await self._threads.run(lease.give_back, claim)
                given = True
            except Exception as error:  # nobody else would: the lease goes on
                _warn("Cannot give a session back, trying again", error)
        self._wake.set()

    async def _beat_forever(self) -> None:
        """Renew the lease; fence ourselves when it may be gone."""
        alive = time.monotonic()
        while True:
            await asyncio.sleep(settings.LEASE_SECONDS / 5)
            asked = time.monotonic()
            try:
                await self._beat()
                alive = asked
            except Exception as error:
                _warn("Cannot renew the lease", error)
                if time.monotonic() - alive > settings.LEASE_SECONDS * 0.75:
                    self._fence()

    async def _beat(self) -> None:
        """Renew; look for stops whose nudge was lost."""
        if self._fenced or not await self._threads.run(lease.renew, self.worker_id):
            await self._begin_anew()
        self._compare(await self._threads.run(lease.owned, self.worker_id))

    async def _begin_anew(self) -> None:
        """Others may have taken over what we ran: give back the rest, and go on with a lease of our own."""
        logger.warning("The lease has run out; others may have taken over")
        self._fence()
        await self._threads.run(lease.retire, self.worker_id)
        self.worker_id = await self._threads.run(lease.enlist)
        self._fenced = False
        self._wake.set()

    def _fence(self) -> None:
        self._fenced = True
        for _, task in self._running.values():
            task.cancel()

    def _compare(self, owned: dict[str, lease.Owned]) -> None:
        for session_id, (bridge, task) in list(self._running.items()):
            found = owned.get(session_id)
            if found is not None and found.epoch > bridge.claim.epoch:
                task.cancel()
            elif found is not None and found.epoch == bridge.claim.epoch and found.stop_turn:
                bridge.stop(found.stop_turn)


def _warn(what: str, error: Exception) -> None:
    """A database that is away is news, anything else a fault of ours."""
    logger.warning("%s: %s", what, error, exc_info=not isinstance(error, Error))


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
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
