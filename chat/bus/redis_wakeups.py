"""Wakeups between processes, over Redis lists.

A request for work is put into a list from which one worker with free places takes it. A mention is put into a list from
which any worker takes it. A wakeup for a running session is put into the list of its worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import redis
import redis.asyncio
from django.conf import settings

from chat.bus.wakeups import Wakeup, WakeupKind
from chat.log_context import described

logger = logging.getLogger(__name__)

# The seconds for which a list is kept after its last wakeup, and the most wakeups in it. Workers poll the rows sooner.
KEPT_SECONDS = 30
MAX_KEPT = 1000
# The seconds for which Redis delays an empty answer, the seconds after which a request to it fails, and the seconds
# between two attempts.
BLOCK_SECONDS = 2
SOCKET_TIMEOUT = 5.0
RETRY_AFTER = 0.5
# The most wakeups that wait for a Redis that is down or slow. More wakeups are dropped, because workers poll.
MAX_WAITING = 5000


class RedisSender:
    """The sender of wakeups, in one task. Wakeups that collect during a round trip are sent in one pipeline."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, socket_timeout=SOCKET_TIMEOUT, socket_connect_timeout=SOCKET_TIMEOUT
        )
        self._waiting: list[Wakeup] = []
        self._task: asyncio.Task[None] | None = None
        self._down = False

    def put(self, wakeup: Wakeup) -> None:
        """Queue a wakeup. May be called from any thread. If the loop has just been closed, nothing is sent."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._enqueue, wakeup)

    async def close(self) -> None:
        """Send the queued wakeups, for at most SOCKET_TIMEOUT seconds, and disconnect."""
        await asyncio.sleep(0)  # `put` may have just scheduled a call of `_enqueue`
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=SOCKET_TIMEOUT)
            task.cancel()
        await self._client.aclose()

    def _enqueue(self, wakeup: Wakeup) -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(wakeup)
        if self._task is None:
            self._task = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._push(batch)
        finally:
            self._task = None

    async def _push(self, batch: Sequence[Wakeup]) -> None:
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key, values in _by_list(batch).items():
                    pipeline.rpush(key, *values)
                    pipeline.ltrim(key, -MAX_KEPT, -1)
                    pipeline.expire(key, KEPT_SECONDS)
                await pipeline.execute()
            self._down = False
        except (redis.RedisError, OSError) as error:
            if not self._down:
                logger.warning("Redis is not available, so workers poll for work and stops: %s", described(error))
            self._down = True


async def receive(worker_id: Callable[[], str], has_room: Callable[[], bool]) -> AsyncIterator[Wakeup]:
    """Yield the wakeups for a worker, without end: its own, mentions, and requests for work while it has room.

    While Redis is down, wait until it is back.
    """
    client = redis.asyncio.Redis.from_url(
        settings.REDIS_URL, socket_timeout=SOCKET_TIMEOUT, socket_connect_timeout=SOCKET_TIMEOUT
    )
    is_down = False
    try:
        while True:
            keys = [_worker_list(worker_id()), _mention_list(), *([_work_list()] if has_room() else [])]
            try:
                found: Any = await client.blpop(keys, timeout=BLOCK_SECONDS)  # type: ignore[misc]  # its stub is for both clients
            except (redis.RedisError, OSError) as error:
                if not is_down:
                    logger.warning("Redis is not available, so this worker polls for work: %s", described(error))
                is_down = True
                await asyncio.sleep(RETRY_AFTER)
                continue
            if is_down:
                logger.info("Redis is available again and wakes this worker")
            is_down = False
            if found is not None and (wakeup := decode(found[1])) is not None:
                yield wakeup
    finally:
        await client.aclose()


def encode(wakeup: Wakeup) -> str:
    values = {"kind": wakeup.kind.value, "session": wakeup.session_id, "turn": wakeup.turn_id}
    return json.dumps({**values, "message": wakeup.message_id} if wakeup.message_id else values)


def decode(data: bytes) -> Wakeup | None:
    """Read a wakeup, which may be from another release. Ignore unknown fields; return None for an unknown kind."""
    try:
        found = json.loads(data)
        turn_id, message_id = str(found.get("turn", "")), str(found.get("message", ""))
        return Wakeup(WakeupKind(found["kind"]), str(found["session"]), turn_id, message_id=message_id)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _by_list(batch: Sequence[Wakeup]) -> dict[str, list[str]]:
    lists: dict[str, dict[str, None]] = {}
    for wakeup in batch:
        lists.setdefault(_list_of(wakeup), {})[encode(wakeup)] = None
    return {key: list(values) for key, values in lists.items()}


def _list_of(wakeup: Wakeup) -> str:
    match wakeup.kind:
        case WakeupKind.WORK:
            return _work_list()
        case WakeupKind.MENTION:
            return _mention_list()
        case _:
            return _worker_list(wakeup.worker)


def _work_list() -> str:
    return _beside_mentions("work")


def _mention_list() -> str:
    """Return the list of mentions. Full workers read it, too, because no row records that a mention is due.

    Its name never changes, so that workers of two releases can read the mentions of both during an update.
    """
    return f"{settings.REDIS_PREFIX}:mentions"


def _worker_list(worker_id: str) -> str:
    return _beside_mentions(f"worker:{worker_id}")


def _beside_mentions(name: str) -> str:
    """Return a key in the same slot of a Redis cluster as the list of mentions, because workers read all lists at once.

    In a cluster, a command can only have keys of one slot. The text in braces, or the whole key without braces, decides
    about the slot. A prefix with braces already puts all keys into one slot.
    """
    if "{" in settings.REDIS_PREFIX:
        return f"{settings.REDIS_PREFIX}:{name}"
    return f"{settings.REDIS_PREFIX}:{{{_mention_list()}}}:{name}"


def send_without_loop(wakeup: Wakeup) -> None:
    """Send from a process without a running loop, such as a command."""
    try:
        with _blocking_client().pipeline(transaction=False) as pipeline:
            for key, values in _by_list([wakeup]).items():
                pipeline.rpush(key, *values)
                pipeline.expire(key, KEPT_SECONDS)
            pipeline.execute()
    except (redis.RedisError, OSError) as error:
        logger.warning("Redis is not available, so a worker finds the session by polling: %s", described(error))


@lru_cache(maxsize=1)
def _blocking_client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=1.0)
