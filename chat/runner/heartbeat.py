"""The heartbeat: a thread that keeps a worker's lease, with a database connection of its own (RUN-15).

Work that waits for threads, for the pool of connections, or for the event loop must not cost the lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Mapping

from django.conf import settings
from django.db import Error, connection

from chat.db import FIRST_DELAY, LONGEST_DELAY, jittered, own_connection
from chat.runs.lease import Claim
from chat.runs.lease_keeper import Beat, LeaseKeeper
from chat.runs.liveness import process_lock

logger = logging.getLogger(__name__)

# A worker publishes for so much of its lease, or of the time in which its lock may be free; then others may soon have
# its sessions.
SAFE_SHARE = 0.75
# An event loop that does not take the heartbeat's reports for so long runs nothing: others should have its sessions.
LONGEST_STALL = 60.0
# Milliseconds (PostgreSQL). A beat never waits for another transaction for long.
LIMITS = {"statement_timeout": 5_000, "lock_timeout": 1_000, "idle_in_transaction_session_timeout": 5_000}


class Heartbeat:
    """The thread. `running` is called in it; `report` and `silence` are called on the event loop that starts it.

    `silence(until)`: the connection is lost, and with it the lock; from that moment on others may have the sessions.
    """

    def __init__(
        self,
        running: Callable[[], Mapping[str, Claim]],
        report: Callable[[Beat], None],
        silence: Callable[[float], None],
    ) -> None:
        self._running = running
        self._report = report
        self._silence = silence
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[None] = self._loop.create_future()
        self._heard = time.monotonic()
        self._delay = FIRST_DELAY
        self._stopping = False
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._run, name="parley-heartbeat", daemon=True)

    async def start(self) -> None:
        """Register the worker; return when its first beat was reported. Raises what that one raises."""
        self._thread.start()
        await self._first

    async def stop(self) -> None:
        """Give everything back, then end."""
        self._stopping = True
        self.hurry()
        await asyncio.to_thread(self._thread.join)
        os.close(self._wake)
        os.close(self._waker)

    def hurry(self) -> None:
        """Let the next beat come at once; from any thread."""
        os.write(self._waker, b"!")

    def _run(self) -> None:
        own_connection(durable=False, limits=LIMITS)
        keeper = LeaseKeeper(process_lock(settings.LEASE_SECONDS))
        try:
            self._beat_until_stopped(keeper)
            keeper.end()
        except Error as error:
            logger.warning("The sessions of this worker are free when its lease ends: %s", error)
        except RuntimeError as error:  # the event loop is closed, without having stopped this
            logger.error("The heartbeat ends with its event loop: %s", error)
        finally:
            connection.close()

    def _beat_until_stopped(self, keeper: LeaseKeeper) -> None:
        is_first = True
        while not self._stopping:
            if time.monotonic() - self._heard > LONGEST_STALL:
                logger.error("The event loop is stalled; the lease is not renewed, so that others take the sessions")
                self._loop.call_soon_threadsafe(self._hear)
                self._wait(keeper.interval)
                continue
            try:
                beat = keeper.beat(self._running())
            except Exception as error:
                if is_first:
                    self._loop.call_soon_threadsafe(self._first.set_exception, error)
                    return
                self._wait(self._after(error, keeper))
            else:
                is_first, self._delay = False, FIRST_DELAY
                self._loop.call_soon_threadsafe(self._deliver, beat)
                self._wait(keeper.interval)

    def _after(self, error: Exception, keeper: LeaseKeeper) -> float:
        """Return how long to wait after a beat that failed."""
        logger.warning("Cannot renew the lease: %s", error, exc_info=not isinstance(error, Error))
        if _is_cut():
            connection.close()
            keeper.disconnected()
            self._loop.call_soon_threadsafe(self._silence, time.monotonic() + keeper.grace * SAFE_SHARE)
        delay, self._delay = self._delay, min(LONGEST_DELAY, self._delay * 2)
        return jittered(delay)

    def _wait(self, seconds: float) -> None:
        """Wait, but not longer than until `hurry`, or until the server closes the connection: its lock is free then."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if connection.vendor == "postgresql" and connection.connection is not None:
            poll.register(connection.connection.fileno(), select.POLLIN)
        if any(file == self._wake for file, _ in poll.poll(seconds * 1000)):
            os.read(self._wake, 1024)

    def _deliver(self, beat: Beat) -> None:
        self._hear()
        self._report(beat)
        if not self._first.done():
            self._first.set_result(None)

    def _hear(self) -> None:
        self._heard = time.monotonic()


def _is_cut() -> bool:
    """Return whether the calling thread has lost its connection to PostgreSQL, and with it its lock."""
    raw = connection.connection
    return connection.vendor == "postgresql" and (raw is None or raw.closed)
