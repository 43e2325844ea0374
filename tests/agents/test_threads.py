"""Blocking work in threads of its own, when the event loop ends first."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from agents.threads import in_thread


def test_thread_that_outlives_its_event_loop_logs_nothing_for_operators(caplog: pytest.LogCaptureFixture) -> None:
    """The end of a process does not wait for threads, so this is no event that an operator has to read about."""
    began, go_on = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go_on.wait()

    async def give_up() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(began.wait)
        task.cancel()
        await asyncio.wait([task])

    with caplog.at_level(logging.DEBUG, logger="agents.threads"):
        asyncio.run(give_up())
        thread = next(thread for thread in threading.enumerate() if "outlives" in thread.name)
        go_on.set()
        thread.join()

    assert [(record.levelname, record.name) for record in caplog.records if record.name == "agents.threads"] == [
        ("DEBUG", "agents.threads")
    ]
