"""The thread that renews a worker's lease."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import pytest
from django.db import OperationalError

from chat.runner import heartbeat
from chat.runner.heartbeat import Heartbeat
from chat.runs.lease import Claim
from chat.runs.lease_keeper import HeartbeatResult

STALL = 0.2
pytestmark = pytest.mark.django_db(transaction=True)


class Keeper:
    """A keeper whose database is away between its first beat and a later one."""

    interval, grace, has_others = 0.01, 1.0, False

    first = 0

    def __init__(self, _lock: object) -> None:
        self._beats = self.first

    def beat(self, _running: Mapping[str, Claim]) -> HeartbeatResult:
        self._beats += 1
        if 1 < self._beats < 12:
            raise OperationalError("the database is away")
        return HeartbeatResult(f"beat {self._beats}", 0.0)

    def disconnected(self) -> None: ...

    def end(self) -> None: ...


async def test_outage_of_the_database_is_no_blocked_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-15: after a long outage of the database, the lease is renewed at once, and the event loop is not blamed."""
    monkeypatch.setattr(heartbeat, "LeaseKeeper", Keeper)
    monkeypatch.setattr(heartbeat, "MAX_STALL", STALL)
    monkeypatch.setattr(heartbeat, "jittered", lambda _seconds: STALL / 5)
    done = asyncio.Event()
    thread = Heartbeat(dict, lambda beat: done.set() if beat.worker_id == "beat 12" else None, lambda _until: None)
    await thread.start()
    async with asyncio.timeout(30):
        await done.wait()
    await thread.stop()
    assert "the database is away" in caplog.text
    assert "The event loop is blocked" not in caplog.text


async def test_worker_with_a_blocked_loop_does_not_renew_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-15: if reports wait too long for the event loop, there are no beats until the loop has handled one."""
    monkeypatch.setattr(heartbeat, "LeaseKeeper", Keeper)
    monkeypatch.setattr(heartbeat, "MAX_STALL", STALL)
    monkeypatch.setattr(heartbeat, "jittered", lambda _seconds: 0.0)
    monkeypatch.setattr(Keeper, "first", 12)
    blamed, handled = threading.Event(), asyncio.Event()
    monkeypatch.setattr(heartbeat.logger, "error", lambda _text: blamed.set())
    thread = Heartbeat(dict, lambda _beat: handled.set(), lambda _until: None)
    await thread.start()
    assert blamed.wait(30)  # blocks the loop
    handled.clear()
    async with asyncio.timeout(30):
        await handled.wait()
    await thread.stop()
