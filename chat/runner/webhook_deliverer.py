"""Deliver due events to webhooks: immediately after a commit of this process, and at regular intervals."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from django.utils import timezone

from chat.db import Threads
from chat.runner.webhook_sending import send
from chat.services.webhooks import delivering, outbox
from chat.services.webhooks.delivering import Answer, Taken

logger = logging.getLogger(__name__)

# Seconds until the next check if nothing is due earlier. The check finds deliveries that another process has left.
LOOK_INTERVAL = 15.0
# The number of webhooks that this process sends to at the same time. A webhook has one request at a time. Slow webhooks
# have as many places of their own, and so have those whose speed is not known, because none has answered quickly yet.
AT_ONCE = 8
# Seconds after which a request, and its webhook until it answers more quickly again, counts as slow.
QUICK_SECONDS = 1.0
# Seconds. A webhook that answers quickly gets its due deliveries one after another for this time, then others follow.
TURN_SECONDS = 2.0
# Seconds until a webhook to which another process is delivering is checked again.
BUSY_SECONDS = 1.0
STOP_SECONDS = 2.0


class WebhookDeliverer:
    """Delivers while the process runs. Deliveries that are unfinished when it ends are due again after their lease.

    A slow request leaves its place to another webhook after QUICK_SECONDS. The next requests to the same webhook begin
    while fewer than AT_ONCE slow ones are running, and in the order of their last ones.
    """

    def __init__(self, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        # A commit that is lost in a power cut loses no data, because the delivery is repeated.
        self._threads = Threads(1, "parley-webhooks", durable=False)
        self._loop = asyncio.get_running_loop()
        self._hinted = asyncio.Event()
        self._working: dict[int, asyncio.Task[None]] = {}
        self._turns: dict[int, float] = {}
        self._slow: set[int] = set()
        self._quick: set[int] = set()
        self._is_stopping = False
        outbox.listen(self._hint)
        self._task = self._loop.create_task(self._run_forever())

    async def stop(self) -> None:
        """Let running requests end, for up to STOP_SECONDS. Requests that are cut off are repeated later."""
        outbox.unlisten(self._hint)
        self._is_stopping = True
        self._task.cancel()
        await asyncio.wait([self._task])
        if working := list(self._working.values()):
            _done, late = await asyncio.wait(working, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.wait(working)
        await self._threads.close()

    def _hint(self) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._hinted.set)

    async def _run_forever(self) -> None:
        while True:
            self._hinted.clear()
            try:
                pause = await self._begin_due()
            except Exception as error:  # usually the database is unavailable; the next check tries again
                logger.warning("Could not check for webhook deliveries: %r", error)
                pause = LOOK_INTERVAL
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hinted.wait()

    async def _begin_due(self) -> float:
        """Begin deliveries to due webhooks, as far as there are places. Return the seconds until the next check."""
        due = await self._threads.run(delivering.due)
        now = self._clock()
        self._turns = {id: turn for id, turn in self._turns.items() if id in due or id in self._working}
        ready = [id for id, at in due.items() if at <= now and id not in self._working]
        ready.sort(key=lambda id: (self._turns.get(id, 0.0), due[id]))
        running = Counter(map(self._speed, self._working))
        for id in ready:
            if running[speed := self._speed(id)] < AT_ONCE:
                running[speed] += 1
                self._working[id] = self._loop.create_task(self._work(id))
        later = [(at - now).total_seconds() for at in due.values() if at > now]
        return min([LOOK_INTERVAL, *later])

    async def _work(self, webhook_id: int) -> None:
        """Deliver to one webhook for up to TURN_SECONDS."""
        pause = 0.0
        try:
            if not await self._deliver(webhook_id):
                pause = BUSY_SECONDS
        except Exception as error:  # as above
            logger.warning("Could not deliver to webhook %s: %r", webhook_id, error)
            pause = BUSY_SECONDS
        finally:
            self._turns[webhook_id] = self._loop.time()
            self._working.pop(webhook_id, None)
            self._loop.call_later(pause, self._hinted.set)

    async def _deliver(self, webhook_id: int) -> bool:
        """Send due deliveries in order until one fails. Return whether this process could take any."""
        until, is_any = self._loop.time() + TURN_SECONDS, False
        while self._loop.time() < until and not self._is_stopping:
            taken = await self._threads.run(delivering.take, webhook_id, self._clock())
            if taken is None:
                break
            is_any = True
            answer = await self._send(taken)
            await self._threads.run(delivering.finish, taken, answer, self._clock())
            if answer.problem:
                break
        return is_any

    async def _send(self, taken: Taken) -> Answer:
        began = self._loop.time()
        timer = self._loop.call_later(QUICK_SECONDS, self._found_slow, taken.webhook_id)
        try:
            return await send(taken, self._clock())
        finally:
            timer.cancel()
            if self._loop.time() - began < QUICK_SECONDS:
                self._slow.discard(taken.webhook_id)
                self._quick.add(taken.webhook_id)

    def _speed(self, webhook_id: int) -> str:
        return "slow" if webhook_id in self._slow else "quick" if webhook_id in self._quick else "unknown"

    def _found_slow(self, webhook_id: int) -> None:
        self._quick.discard(webhook_id)
        self._slow.add(webhook_id)
        self._hinted.set()
