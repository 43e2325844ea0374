"""The timeout of a stream that sends nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from agents.providers.http.transport import ReadTimeout


class SilenceError(Exception):
    pass


def made() -> ReadTimeout:
    return ReadTimeout(lambda seconds: SilenceError(f"{seconds:g} s"))


async def never() -> None:
    await asyncio.Event().wait()


async def test_what_comes_in_time_is_given() -> None:
    """RUN-10: data that arrives in time is returned."""
    timeout = made()
    assert await timeout.wait_for(asyncio.sleep(0, "came"), 20) == "came"
    timeout.close()


async def test_silence_ends_the_wait() -> None:
    """RUN-10: the error has the time of the wait, and the task does not stay cancelled."""
    timeout = made()
    with pytest.raises(SilenceError, match=r"0\.01 s"):
        await timeout.wait_for(never(), 0.01)
    current = asyncio.current_task()
    assert current
    assert current.cancelling() == 0
    timeout.close()


async def test_shorter_wait_after_a_longer_one_counts() -> None:
    """RUN-10: a short wait after a longer one ends at its own time, not at the earlier timer's."""
    timeout = made()
    await timeout.wait_for(asyncio.sleep(0), 1000)
    with pytest.raises(SilenceError):
        await asyncio.wait_for(timeout.wait_for(never(), 0.01), 20)
    timeout.close()


async def test_longer_wait_after_a_shorter_one_counts() -> None:
    """RUN-10: if the first wait's timer fires during a longer second wait, it is set again."""
    timeout = made()
    fired = asyncio.Event()
    await timeout.wait_for(asyncio.sleep(0), 0.01)
    asyncio.get_running_loop().call_later(0.05, fired.set)
    await timeout.wait_for(fired.wait(), 20)
    with pytest.raises(SilenceError):
        await asyncio.wait_for(timeout.wait_for(never(), 0.01), 20)
    timeout.close()


async def test_time_between_waits_does_not_count() -> None:
    """RUN-11: the time between two waits does not count, and the next wait is bounded again."""
    timeout = made()
    fired = asyncio.Event()
    await timeout.wait_for(asyncio.sleep(0), 0.01)
    asyncio.get_running_loop().call_later(0.05, fired.set)
    await fired.wait()
    with pytest.raises(SilenceError):
        await asyncio.wait_for(timeout.wait_for(never(), 0.01), 20)
    timeout.close()


async def test_cancelling_is_not_taken_for_silence() -> None:
    """RUN-07: a cancelled task stays cancelled."""
    timeout = made()
    task = asyncio.create_task(timeout.wait_for(never(), 1000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    timeout.close()


async def test_cancelling_takes_precedence_over_a_simultaneous_timeout() -> None:
    """RUN-07: a stop at the moment of the timeout is a stop."""
    timeout = made()

    async def cancelled_as_it_expires() -> None:
        try:
            await never()
        finally:
            current = asyncio.current_task()
            assert current
            current.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(timeout.wait_for(cancelled_as_it_expires(), 0.01))
    timeout.close()


async def test_cancelling_after_an_earlier_silence_is_not_taken_for_it() -> None:
    """RUN-07: a stream that timed out once can still be stopped while its end is read."""
    timeout = made()

    async def silence_then_wait() -> None:
        with pytest.raises(SilenceError):
            await timeout.wait_for(never(), 0.01)
        again.set()
        await timeout.wait_for(never(), 1000)

    again = asyncio.Event()
    task = asyncio.create_task(silence_then_wait())
    await again.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    timeout.close()


async def test_closed_patience_is_let_go() -> None:
    """LIVE-01: a timer of minutes does not keep the closed timeout of a finished stream in memory."""
    timeout = made()
    await timeout.wait_for(asyncio.sleep(0), 1000)
    reference = weakref.ref(timeout)
    timeout.close()
    del timeout
    gc.collect()
    assert reference() is None
