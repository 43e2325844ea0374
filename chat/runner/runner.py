"""The runner of a process: claims sessions that are due, holds their bridges' tasks and acts on the heartbeat."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import Error

from chat.bus import wakeups
from chat.db import Threads
from chat.runner.bridge import Bridge
from chat.runner.delta_publisher import DeltaPublisher
from chat.runner.heartbeat import SAFE_SHARE, Heartbeat
from chat.runner.title_generator import TitleGenerator
from chat.runner.writer import Writer
from chat.runs import lease
from chat.runs.lease import Claim
from chat.runs.lease_keeper import Beat

logger = logging.getLogger(__name__)

POLL = 1.0
CLAIM_AT_ONCE = 20
SLOTS = 2000
GIVE_BACK_AFTER = 5.0
THREADS = 6
# Of these, so many read long contexts at once: claims and stops need the others.
BRIEFS_AT_ONCE = 4
# Without a heartbeat for so many seconds, runs are cut. Before that their text is held back, and goes out late.
CUT_AFTER = 60.0
# Milliseconds (PostgreSQL). Unlike a request, a run can wait for a slow disk: it has its own connection.
LIMITS = {"statement_timeout": 30_000, "lock_timeout": 10_000, "idle_in_transaction_session_timeout": 10_000}


class Runner:
    """Runs sessions on the event loop that starts it. `worker_id` names its lease."""

    def __init__(self) -> None:
        self.worker_id = ""
        # A claim that a power cut undoes is made again, and the process that made it is gone.
        self._threads = Threads(THREADS, "parley-runner", durable=False, limits=LIMITS)
        self._briefs = asyncio.Semaphore(BRIEFS_AT_ONCE)
        self._writer = Writer(self._lose)
        self._pump = DeltaPublisher()
        self._namer = TitleGenerator(self._threads)
        self._running: dict[str, tuple[Bridge, asyncio.Task[None]]] = {}
        # The claims of what runs, and of what is about to be given back. The heartbeat's thread reads them.
        self._claims: dict[str, Claim] = {}
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._heartbeat: Heartbeat | None = None
        self._safe_until = 0.0
        self._cut: asyncio.TimerHandle | None = None
        self._deaf: Callable[[], None] = lambda: None

    async def start(self) -> None:
        self._heartbeat = Heartbeat(self._claims.copy, self._on_beat, self._on_disconnect)
        await self._heartbeat.start()
        self._writer.start()
        loop = asyncio.get_running_loop()
        self._deaf = wakeups.listen(lambda *what: _soon(loop, self._nudged, *what))
        self._spawn(self._claim_forever())

    async def stop(self) -> None:
        """Give everything back: open turns keep what they have and go on with the next worker."""
        self._deaf()
        tasks = [*self._tasks, *(task for _, task in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pump.close()
        await self._writer.close()
        if self._heartbeat is not None:
            await self._heartbeat.stop()
        if self._cut is not None:
            self._cut.cancel()
        await self._threads.close()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _nudged(self, what: wakeups.Wakeup, session_id: str, turn_id: str) -> None:
        if what is wakeups.Wakeup.WORK:
            self._wake.set()
        elif session_id in self._running:
            self._running[session_id][0].stop(turn_id)

    # -- claims -----------------------------------------------------------------------------------------------------

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
        if free <= 0 or time.monotonic() >= self._safe_until:
            return False
        if look_first and not await self._threads.run(lease.work_is_due):
            return False
        claims = await self._threads.run(lease.claim, self.worker_id, free)
        for claim in claims:
            self._take(claim)
        return len(claims) == free

    def _take(self, claim: Claim) -> None:
        present = self._claims.get(claim.session_id)
        if present is not None and present.worker_id == claim.worker_id and present.epoch >= claim.epoch:
            return  # the heartbeat has adopted it since
        if claim.session_id in self._running:
            self._running[claim.session_id][1].cancel()
        bridge = Bridge(claim, writer=self._writer, pump=self._pump, threads=self._threads, briefs=self._briefs)
        task = asyncio.get_running_loop().create_task(bridge.run(), name=claim.session_id)
        self._running[claim.session_id] = (bridge, task)
        self._claims[claim.session_id] = claim
        task.add_done_callback(partial(self._ended, claim))

    def _ended(self, claim: Claim, task: asyncio.Task[None]) -> None:
        if self._running.get(claim.session_id, (None, None))[1] is task:
            del self._running[claim.session_id]
        if not task.cancelled() and task.exception() is not None:
            logger.error("Session %s could not be run", claim.session_id, exc_info=task.exception())
            self._spawn(self._give_back(claim))
            return
        self._forget(claim)
        if not task.cancelled():
            self._spawn(self._namer.name(claim.session_id))

    def _forget(self, claim: Claim) -> None:
        if self._claims.get(claim.session_id) == claim:
            del self._claims[claim.session_id]

    async def _give_back(self, claim: Claim) -> None:
        """Release a session that could not be run, after a while: it is due again."""
        given = False
        while not given:
            await asyncio.sleep(GIVE_BACK_AFTER)
            try:
                await self._threads.run(lease.give_back, claim)
                given = True
            except Exception as error:  # no other worker would: the lease goes on
                _warn("Cannot give a session back, trying again", error)
        self._forget(claim)
        self._wake.set()

    # -- the heartbeat ----------------------------------------------------------------------------------------------

    def _on_beat(self, beat: Beat) -> None:
        """Act on what the rows say. From the beat's beginning, the sessions are safe from others for a lease."""
        self.worker_id = beat.worker_id
        self._safe_until = beat.began + settings.LEASE_SECONDS * SAFE_SHARE
        self._pump.allow_until(self._safe_until)
        if self._cut is not None:
            self._cut.cancel()
        self._cut = asyncio.get_running_loop().call_later(CUT_AFTER, self._cut_all)
        for claim in beat.lost:
            self._lose(claim)
        for session_id, turn_id in beat.stops.items():
            if session_id in self._running:
                self._running[session_id][0].stop(turn_id)
        for claim in beat.adopted:
            self._take(claim)
        if beat.freed:
            self._wake.set()

    def _on_disconnect(self, until: float) -> None:
        """Others can see that the connection is gone, and may have the sessions soon."""
        self._safe_until = min(self._safe_until, until)
        self._pump.allow_until(self._safe_until)

    def _lose(self, claim: Claim) -> None:
        """Cut a run whose claim is lost: all that it does from now on is in vain."""
        running = self._running.get(claim.session_id)
        if running is not None and running[0].claim == claim:
            logger.warning("Session %s has been taken over by another worker", claim.session_id)
            running[1].cancel()

    def _cut_all(self) -> None:
        """Cut the runs of a worker that has not heard of its lease for long: most likely others have them."""
        if self._running:
            logger.warning("The database has been away for too long; %s answers are interrupted", len(self._running))
        for _, task in self._running.values():
            task.cancel()


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
