"""Counters that expire, for rate limits: in memory, or in Redis if several processes count together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from django.conf import settings
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from chat.log_context import described
from chat.overrides.limits_memory import SweptMemoryStorage

logger = logging.getLogger(__name__)
T = TypeVar("T")
Storage = MemoryStorage | RedisStorage

# Redis must answer within this time. After a failure it is not used for a while, so that not every request waits.
TIMEOUT_SECONDS = 0.5
PAUSE_SECONDS = 10.0


class Counters:
    """Counters in Redis, if it is configured. While Redis is unavailable, each process counts for itself in memory."""

    def __init__(self, redis_url: str, prefix: str) -> None:
        self._memory = SweptMemoryStorage()
        # The storage drops its own locks together with their keys, so this lock protects it.
        self._lock = Lock()
        self._redis: RedisStorage | None = None
        if redis_url:
            self._redis = RedisStorage(
                redis_url,
                key_prefix=prefix,
                wrap_exceptions=True,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
            )
        self._is_paused = False
        self._retry_at = 0.0

    def storage(self, use: Callable[[Storage], T]) -> T:
        """Return what `use` returns for the storage that counts at present."""
        if self._redis is not None and (not self._is_paused or time.monotonic() >= self._retry_at):
            try:
                found = use(self._redis)
            except (StorageError, OSError) as error:
                if not self._is_paused:
                    logger.warning(
                        "Redis is not available, so each process counts rate limits separately: %s", described(error)
                    )
                self._is_paused, self._retry_at = True, time.monotonic() + PAUSE_SECONDS
            else:
                if self._is_paused:
                    self._is_paused = False
                    logger.info("Redis is available again and counts rate limits")
                return found
        with self._lock:
            return use(self._memory)

    def window(self, use: Callable[[MovingWindowRateLimiter], T]) -> T:
        """Return what `use` returns for a limiter with a moving window."""
        return self.storage(lambda storage: use(MovingWindowRateLimiter(storage)))


@lru_cache(maxsize=1)
def counters() -> Counters:
    """Return the counters of this process."""
    return Counters(settings.REDIS_URL, f"{settings.REDIS_PREFIX}:limits")


def reset() -> None:
    """Discard the counts of this process, and read the settings again."""
    counters.cache_clear()
