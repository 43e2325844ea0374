"""The in-memory storage of the limits library, without its threads."""

from __future__ import annotations

import threading

import pytest
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from chat.overrides.limits_memory import SweptMemoryStorage


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads that a test starts."""
    threads: list[threading.Thread] = []
    start = threading.Thread.start

    def note(thread: threading.Thread) -> None:
        threads.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    return threads


@pytest.mark.parametrize(("storage", "has_threads"), [(SweptMemoryStorage, False), (MemoryStorage, True)])
def test_counting_starts_no_thread(
    started: list[threading.Thread], storage: type[MemoryStorage], *, has_threads: bool
) -> None:
    """Both storages count the same, but only the library's starts threads. If it stops that, the override can go."""
    memory = storage()
    created = len(started)
    assert created == 1  # in the library's constructor
    limiter = MovingWindowRateLimiter(memory)
    limit = parse("3/minute")
    admitted = []
    for _ in range(4):
        for timer in started:
            timer.join(20)
        admitted.append(limiter.hit(limit, "name"))
    assert admitted == [True, True, True, False]
    assert (len(started) > created) == has_threads


def test_expired_counts_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SweptMemoryStorage()
    memory.incr("name", 0)
    memory._sweep_at = 0.0
    memory.incr("other", 60)
    assert list(memory.storage) == ["other"]
