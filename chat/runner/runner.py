"""The runner of a process. It claims sessions that are due, runs a bridge for each, and acts on heartbeats."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import Error

from chat import metrics
from chat.bus import wakeups
from chat.bus.wakeups import Wakeup, WakeupKind, send
from chat.db import Threads
from chat.log_context import set_worker
from chat.runner.agent_input import AgentInput, first_input
from chat.runner.bridge import Bridge, RunEnd
from chat.runner.delta_publisher import DeltaPublisher
from chat.runner.heartbeat import SAFE_SHARE, Heartbeat
from chat.runner.push_notifier import PushNotifier
from chat.runner.title_generator import TitleGenerator
from chat.runner.writer import Writer
from chat.runs import lease, local_runner
from chat.runs.lease import Claim
from chat.runs.lease_keeper import HeartbeatResult
from chat.runs.local_runner import BegunTurn

logger = logging.getLogger(__name__)

# Seconds between two checks for due sessions when nothing wakes the runner. Redis can lose a wakeup.
POLL = 1.0
TEAM_POLL = 0.25
CLAIM_AT_ONCE = 20
# Seconds. A process whose event loop is this late leaves new sessions to other processes until the next poll.
BUSY_LAG = 0.1
GIVE_BACK_AFTER = 5.0
THREADS = 6
# The number of threads that may read contexts at the same time. The others are left for claims and stops.
INPUT_READS_AT_ONCE = 4
# Milliseconds (PostgreSQL). They are longer than for a request, because a run can wait for a slow disk.
LIMITS = {"statement_timeout": 30_000, "lock_timeout": 10_000, "idle_in_transaction_session_timeout": 10_000}


class Runner:
    """Runs sessions on the event loop that starts it. `worker_id` names its lease."""

    def __init__(self) -> None:
        self.worker_id = ""
        # Claims need no fsync: after a power cut, another worker claims the session again.
        self._threads = Threads(THREADS, "parley-runner", durable=False, limits=LIMITS)
        self._input_reads = asyncio.Semaphore(INPUT_READS_AT_ONCE)
        self._writer = Writer(self._cancel_lost)
        self._delta_publisher = DeltaPublisher()
        self._title_generator = TitleGenerator(self._threads)
        self._push_notifier = PushNotifier()
        self._running: dict[str, tuple[Bridge, asyncio.Task[RunEnd]]] = {}
        # The claims that run or are about to be given back, by session. The heartbeat's thread reads them, too.
        self._claims: dict[str, Claim] = {}
        # Turns that services are beginning now with claims for this runner, and those that are already stopped.
        self._reserving = threading.Lock()
        self._reserved = 0
        self._stopped_early: dict[str, str] = {}
        # Whether due sessions wait for a place in this process.
        self._is_full = False
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._handovers: set[asyncio.Task[None]] = set()
        self._heartbeat: Heartbeat | None = None
        self._poll = TEAM_POLL if settings.REDIS_URL else POLL
        self._lag = 0.0
        # The process is about to stop, or an administrator has drained the worker.
        self._is_draining = self._is_stopping = self._is_drained = False
        self._safe_until = 0.0
        self._renewed_at = 0.0
        self._unsubscribe: Callable[[], None] = lambda: None
        self._unregister: Callable[[], None] = lambda: None

    async def start(self) -> None:
        self._heartbeat = Heartbeat(self._claims.copy, self._on_beat, self._on_disconnect)
        await self._heartbeat.start()
        self._writer.start()
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._unsubscribe = wakeups.listen(partial(self._take_wakeup, loop))
        self._unregister = local_runner.register(self)
        self._spawn(self._claim_forever())
        if settings.REDIS_URL:
            self._spawn(self._receive_forever())
            self._spawn(self._measure_lag())

    async def drain(self, seconds: float) -> None:
        """Claim no more sessions, and wait up to `seconds` until none runs.

        Turns with tools are handed over before their next response, and other workers continue them.
        """
        self._is_draining = True
        for bridge, _ in self._running.values():
            bridge.hand_over()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while tasks := [*(task for _, task in self._running.values()), *self._handovers]:
                    await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Release all sessions. Open turns keep their rows, and the next worker continues them."""
        self._is_stopping = True
        self._unregister()
        self._unsubscribe()
        tasks = [*self._tasks, *(task for _, task in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._delta_publisher.close()
        await self._push_notifier.close()
        await self._writer.close()
        if self._heartbeat is not None:
            await self._heartbeat.stop()
        await self._threads.close()

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def running(self) -> int:
        """The number of running sessions."""
        return len(self._running)

    @property
    def lease_age(self) -> float | None:
        """The seconds since the lease was renewed; None before the first heartbeat."""
        return time.monotonic() - self._renewed_at if self._renewed_at else None

    # -- turns that services of this process begin, called from their threads ---------------------------------------

    def reserve(self) -> str:
        """Reserve a place and return the worker's id; return "" if there is none or other sessions wait for one."""
        with self._reserving:
            if self._is_full or not self._has_room() or time.monotonic() >= self._safe_until:
                return ""
            self._reserved += 1
            return self.worker_id

    def take(self, turn: BegunTurn) -> None:
        """Run a turn in a reserved place.

        The calling thread builds the first input of the model, because it would take time to wake another thread.
        """
        _call_soon(self._loop, self._on_begun, turn, first_input(turn))

    def release(self) -> None:
        """Give up a reserved place."""
        with self._reserving:
            self._reserved -= 1
        _call_soon(self._loop, self._wake.set)

    def _on_begun(self, turn: BegunTurn, agent_input: AgentInput | None) -> None:
        with self._reserving:
            self._reserved -= 1
        if self._is_stopping:  # the claim is released with the worker
            return
        metrics.claims.inc()
        self._start_bridge(turn.claim, turn, agent_input)
        turn_id = self._stopped_early.pop(turn.claim.session_id, "")
        if turn_id and (running := self._running.get(turn.claim.session_id)) is not None:
            running[0].stop(turn_id)

    # -- wakeups ----------------------------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        """Return whether this process can take more sessions. Can be called from any thread."""
        if self._is_draining or self._is_stopping or self._is_drained or self._lag >= BUSY_LAG:
            return False
        capacity: int = settings.CAPACITY
        return len(self._running) + self._reserved < capacity

    def _take_wakeup(self, loop: asyncio.AbstractEventLoop, wakeup: Wakeup) -> bool:
        """Act on a wakeup of this process and return True, unless another worker must handle it. From any thread."""
        if wakeup.kind is WakeupKind.WORK:
            if not self._has_room():
                return False
        elif wakeup.kind is WakeupKind.MENTION:
            if self._is_stopping:
                return False
        elif wakeup.worker != self.worker_id and wakeup.session_id not in self._claims:
            return False
        _call_soon(loop, self._on_wakeup, wakeup)
        return True

    def _on_wakeup(self, wakeup: Wakeup) -> None:
        if wakeup.kind is WakeupKind.WORK:
            self._wake.set()
        elif wakeup.kind is WakeupKind.MENTION:
            self._push_notifier.people_mentioned(wakeup.session_id, wakeup.message_id)
        elif wakeup.session_id in self._running:
            bridge = self._running[wakeup.session_id][0]
            if wakeup.kind is WakeupKind.STOP:
                bridge.stop(wakeup.turn_id)
            else:
                bridge.check_for_answers()
        elif wakeup.kind is WakeupKind.STOP and self._reserved and wakeup.worker == self.worker_id:
            self._stopped_early[wakeup.session_id] = wakeup.turn_id

    async def _receive_forever(self) -> None:
        """Act on wakeups of other processes. Pass on a wakeup for work if this process is full."""
        from chat.bus.redis_wakeups import receive  # most installations have no Redis

        async for wakeup in receive(lambda: self.worker_id, self._has_room):
            if wakeup.kind is WakeupKind.WORK and not self._has_room():
                send(wakeup)
            else:
                self._on_wakeup(wakeup)

    async def _measure_lag(self) -> None:
        """Measure how late the event loop is, every TEAM_POLL seconds."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(TEAM_POLL)
            self._lag = time.monotonic() - began - TEAM_POLL

    # -- claims -----------------------------------------------------------------------------------------------------

    async def _claim_forever(self) -> None:
        woken = True
        while True:
            try:
                while await self._claim_some(look_first=not woken):
                    woken = True
            except Exception as error:  # the loop must survive any error, because the sessions are still due
                _warn("Could not claim sessions; retrying", error)
            woken = False
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    woken = await self._wake.wait()
                self._wake.clear()

    async def _claim_some(self, *, look_first: bool) -> bool:
        """Claim due sessions and return whether more may be due. `look_first` avoids a write lock if none is due."""
        free: int = min(CLAIM_AT_ONCE, settings.CAPACITY - len(self._running) - self._reserved)
        self._is_full = free <= 0
        if free <= 0 or self._is_draining or self._is_drained or time.monotonic() >= self._safe_until:
            return False
        if look_first and not await self._threads.run(lease.is_work_due):
            return False
        with metrics.claim_seconds.time():
            claims = await self._threads.run(lease.claim, self.worker_id, free)
        metrics.claims.inc(len(claims))
        for claim in claims:
            self._start_bridge(claim)
        self._is_full = len(claims) == free
        return self._is_full

    def _start_bridge(
        self, claim: Claim, begun: BegunTurn | None = None, agent_input: AgentInput | None = None
    ) -> None:
        present = self._claims.get(claim.session_id)
        if present is not None and present.worker_id == claim.worker_id and present.epoch >= claim.epoch:
            return  # the heartbeat has adopted the claim in the meantime
        if claim.session_id in self._running:
            self._running[claim.session_id][1].cancel()
        bridge = Bridge(
            claim,
            writer=self._writer,
            delta_publisher=self._delta_publisher,
            threads=self._threads,
            input_reads=self._input_reads,
            begun=begun,
            agent_input=agent_input,
        )
        if self._is_draining or self._is_drained:
            bridge.hand_over()
        task = asyncio.get_running_loop().create_task(bridge.run(), name=claim.session_id)
        self._running[claim.session_id] = (bridge, task)
        self._claims[claim.session_id] = claim
        task.add_done_callback(partial(self._on_bridge_done, bridge))

    def _on_bridge_done(self, bridge: Bridge, task: asyncio.Task[RunEnd]) -> None:
        claim = bridge.claim
        if self._running.get(claim.session_id, (None, None))[1] is task:
            del self._running[claim.session_id]
            if len(self._running) == settings.CAPACITY - 1:
                self._wake.set()  # a place is free
        if not task.cancelled() and task.exception() is not None:
            logger.error("Could not run session %s", claim.session_id, exc_info=task.exception())
            self._spawn(self._give_back(claim, failed=True))
        elif not task.cancelled() and task.result() is RunEnd.HANDED_OVER:
            self._handovers.add(handover := self._spawn(self._give_back(claim, failed=False)))
            handover.add_done_callback(self._handovers.discard)
        else:
            self._forget(claim)
            if not task.cancelled():
                self._spawn(self._title_generator.name(claim.session_id))
                self._push_notifier.run_ended(claim, bridge.starters)

    def _forget(self, claim: Claim) -> None:
        if self._claims.get(claim.session_id) == claim:
            del self._claims[claim.session_id]

    async def _give_back(self, claim: Claim, *, failed: bool) -> None:
        """Release a session so that it is due again. If it has failed, wait GIVE_BACK_AFTER seconds first."""
        given = False
        if failed:
            await asyncio.sleep(GIVE_BACK_AFTER)
        while not given:
            try:
                await self._threads.run(partial(lease.give_back, claim, failed=failed))
                given = True
            except Exception as error:  # this worker keeps its lease, so no other worker would free the session
                _warn("Could not release a session; retrying", error)
                await asyncio.sleep(GIVE_BACK_AFTER)
        self._forget(claim)
        self._wake.set()

    # -- the heartbeat ----------------------------------------------------------------------------------------------

    def _on_beat(self, beat: HeartbeatResult) -> None:
        """Act on a heartbeat. For one lease from the beginning of the beat, no other worker takes the sessions."""
        self.worker_id = beat.worker_id
        self._renewed_at = beat.began
        set_worker(beat.worker_id)
        self._safe_until = beat.began + settings.LEASE_SECONDS * SAFE_SHARE
        self._delta_publisher.allow_until(self._safe_until)
        for claim in beat.lost:
            self._cancel_lost(claim)
        for session_id, turn_id in beat.stops.items():
            if session_id in self._running:
                self._running[session_id][0].stop(turn_id)
        for claim in beat.adopted:
            self._start_bridge(claim)
        for session_id in self._running if beat.drained else beat.leaving:
            if session_id in self._running:
                self._running[session_id][0].hand_over()
        if self._is_drained and not beat.drained:
            self._wake.set()
        self._is_drained = beat.drained
        if beat.freed:
            self._wake.set()

    def _on_disconnect(self, until: float) -> None:
        """Stop publishing at `until`.

        Other workers see that the connection is closed and may take the sessions then.
        """
        self._safe_until = min(self._safe_until, until)
        self._delta_publisher.allow_until(self._safe_until)

    def _cancel_lost(self, claim: Claim) -> None:
        """Cancel a run whose claim is lost, because its changes would be rejected."""
        running = self._running.get(claim.session_id)
        if running is not None and running[0].claim == claim:
            logger.warning("Session %s has been taken over by another worker", claim.session_id)
            running[1].cancel()


def _warn(message: str, error: Exception) -> None:
    """Log an error, with a traceback unless it is a database error."""
    logger.warning("%s: %s", message, error, exc_info=not isinstance(error, Error))


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    """Call a function on the loop, from any thread. If the loop has just been closed, do nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
