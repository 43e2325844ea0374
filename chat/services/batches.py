"""Split long jobs into batches with short transactions and pauses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import TypeVar

from django.db.models import Model, QuerySet

T = TypeVar("T")
M = TypeVar("M", bound=Model)
# How many rows a job changed, by kind.
Counts = Counter[str]

# Limits of one batch. SQLite writes and indexes as much in about half a second.
MAX_ROWS = 200
MAX_CHARS = 1_000_000
# The pause after a batch, as a share of the time that the batch took, and its limits in seconds.
PAUSE_SHARE = 0.25
MIN_PAUSE = 0.002
MAX_PAUSE = 0.25


def batches(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Split items into batches of bounded number and total size. An item above the limit gets its own batch."""
    batch: list[T] = []
    chars = 0
    for item in items:
        more = size(item)
        if batch and (len(batch) == MAX_ROWS or chars + more > MAX_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += more
    if batch:
        yield batch


def read_in_batches(rows: QuerySet[M], size: int = MAX_ROWS) -> Iterator[M]:
    """Yield rows in their order, reading `size` rows at a time.

    Use it if the consumer can take long, such as a client that reads an export slowly, because no query stays open
    between the reads. SQLite keeps everything that is written after an open query began in its log, which would grow
    until the disk is full.
    """
    keys = list(rows.values_list("pk", flat=True))
    for start in range(0, len(keys), size):
        yield from rows.filter(pk__in=keys[start : start + size])


class Deadline:
    """The end of a job's working time: after `seconds`, or when `stopping` is set because the process stops.

    The next round of the job continues the work.
    """

    def __init__(self, seconds: float | None = None, stopping: Event | None = None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds
        self._stopping = stopping

    @property
    def is_over(self) -> bool:
        is_late = self._at is not None and time.monotonic() >= self._at
        return is_late or (self._stopping is not None and self._stopping.is_set())


NO_DEADLINE = Deadline()


class Pacer:
    """Pauses between the batches of a job, so that other writers can use the database. Blocks the calling thread."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Sleep for a share of the time since the last pause."""
        worked = time.monotonic() - self._since
        time.sleep(min(MAX_PAUSE, max(MIN_PAUSE, worked * PAUSE_SHARE)))
        self._since = time.monotonic()
