"""The heartbeat is a thread that renews a worker's lease on a database connection of its own (RUN-15).

So the renewal does not depend on free threads, on the connection pool, or on the event loop.
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

from chat.db import FIRST_DELAY, MAX_DELAY, jittered, own_connection
from chat.runs.lease import Claim
from chat.runs.lease_keeper import HeartbeatResult, LeaseKeeper
from chat.runs.liveness import process_lock

logger = logging.getLogger(__name__)

# The part of the lease, or of the lock's grace period, in which a worker publishes. Later, other workers may soon take
# its sessions.
SAFE_SHARE = 0.75
# Seconds for which the result of a beat waits for the event loop. Then the loop counts as blocked, and the lease is not
# renewed.
MAX_STALL = 60.0
# Seconds between two checks for workers that have died.
LOOK_SECONDS = 0.5
# Milliseconds (PostgreSQL). They keep a beat from waiting long for another transaction.
LIMITS = {"statement_timeout": 5_000, "lock_timeout": 1_000, "idle_in_transaction_session_timeout": 5_000}


class Heartbeat:
    """The heartbeat's thread. Each beat calls `claims`, from the thread, for the claims that the worker runs.

    `on_beat` and `on_disconnect` are called on the event loop that starts the heartbeat: with the result of a beat, and
    when the connection and its lock are lost. Other workers may take the sessions after the time that `on_disconnect`
    gets, in seconds of the monotonic clock.
    """

    def __init__(
        self,
        claims: Callable[[], Mapping[str, Claim]],
        on_beat: Callable[[HeartbeatResult], None],
        on_disconnect: Callable[[float], None],
    ) -> None:
        self._claims = claims
        self._on_beat = on_beat
        self._on_disconnect = on_disconnect
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[None] = self._loop.create_future()
        # The time of the oldest beat whose result the event loop has not handled yet; None if there is none.
        self._waiting_since: float | None = None
        self._delay = FIRST_DELAY
        self._stopping = False
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._run, name="parley-heartbeat", daemon=True)

    async def start(self) -> None:
        """Register the worker and wait for its first beat. Raise the error of that beat."""
        self._thread.start()
        await self._first

    async def stop(self) -> None:
        """Release the worker's sessions and end the thread."""
        self._stopping = True
        self.hurry()
        await asyncio.to_thread(self._thread.join)
        os.close(self._wake)
        os.close(self._waker)

    def hurry(self) -> None:
        """Start the next beat immediately. Can be called from any thread."""
        os.write(self._waker, b"!")

    def _run(self) -> None:
        own_connection(durable=False, limits=LIMITS)
        keeper = LeaseKeeper(process_lock(settings.LEASE_SECONDS))
        try:
            self._beat_until_stopped(keeper)
            keeper.end()
        except Error as error:
            logger.warning(
                "Could not release the lease; the sessions of this worker stay claimed until it expires: %s", error
            )
        except RuntimeError as error:  # the event loop was closed without stopping the heartbeat
            logger.error("The heartbeat stopped, because its event loop is closed: %s", error)
        finally:
            connection.close()

    def _beat_until_stopped(self, keeper: LeaseKeeper) -> None:
        is_first = True
        while not self._stopping:
            waiting_since = self._waiting_since
            if waiting_since is not None and time.monotonic() - waiting_since > MAX_STALL:
                logger.error(
                    "The event loop is blocked; the lease is not renewed, so that other workers take the sessions"
                )
                self._wait(keeper.interval)
                continue
            try:
                beat = keeper.beat(self._claims())
                is_first, self._delay = False, FIRST_DELAY
                self._waiting_since = self._waiting_since or time.monotonic()
                self._loop.call_soon_threadsafe(self._deliver, beat)
                self._check_until_next_beat(keeper)
            except Exception as error:
                if is_first:
                    self._loop.call_soon_threadsafe(self._first.set_exception, error)
                    return
                self._wait(self._delay_after(error, keeper))

    def _check_until_next_beat(self, keeper: LeaseKeeper) -> None:
        """Wait until the next beat is due. Return early when a check finds that a worker has died."""
        beat_at = time.monotonic() + keeper.interval
        while (left := beat_at - time.monotonic()) > 0:
            pause = min(left, LOOK_SECONDS) if keeper.has_others else left
            if self._wait(pause) or (pause < left and keeper.free_dead_workers()):
                return

    def _delay_after(self, error: Exception, keeper: LeaseKeeper) -> float:
        """Log a failed beat, and return how many seconds to wait before the next one."""
        logger.warning("Could not renew the lease: %s", error, exc_info=not isinstance(error, Error))
        if _is_disconnected():
            connection.close()
            keeper.disconnected()
            self._loop.call_soon_threadsafe(self._on_disconnect, time.monotonic() + keeper.grace * SAFE_SHARE)
        delay, self._delay = self._delay, min(MAX_DELAY, self._delay * 2)
        return jittered(delay)

    def _wait(self, seconds: float) -> bool:
        """Wait until the time is over, `hurry` is called, or the server closes the connection and so frees its lock.

        Return whether the wait ended early.
        """
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if connection.vendor == "postgresql" and connection.connection is not None:
            poll.register(connection.connection.fileno(), select.POLLIN)
        woken = poll.poll(seconds * 1000)
        if any(file == self._wake for file, _ in woken):
            os.read(self._wake, 1024)
        return bool(woken)

    def _deliver(self, beat: HeartbeatResult) -> None:
        self._waiting_since = None
        self._on_beat(beat)
        if not self._first.done():
            self._first.set_result(None)


def _is_disconnected() -> bool:
    """Return whether the calling thread has lost its connection to PostgreSQL, and its lock."""
    raw = connection.connection
    return connection.vendor == "postgresql" and (raw is None or raw.closed)
