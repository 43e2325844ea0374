"""Blocking work outside the event loop, in threads that do not delay the end of the process."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class ThreadError(Exception):
    """The work raised an exception that must not leave its thread, such as SystemExit or StopIteration."""

    def __init__(self, original: BaseException) -> None:
        super().__init__(type(original).__name__)
        self.original = original


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the function in its own daemon thread and return its result.

    In contrast to a thread of a pool, a thread that never ends does not block other work or the end of the process.
    Cancelling this stops the wait, but not the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    work = partial(contextvars.copy_context().run, function, *args, **kwargs)
    threading.Thread(target=_work, args=(loop, future, work), name=f"work {function!r}", daemon=True).start()
    return await future


def _work(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
        settle = partial(_settle, future, lambda: future.set_result(result))
    except BaseException as error:
        settle = partial(_settle, future, partial(future.set_exception, _portable(error)))
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        # Expected when a process ends: nothing waits for the result any more, and an operator has nothing to do.
        logger.debug("A thread's work ended after its event loop was closed")


def _portable(error: BaseException) -> Exception:
    """Return the error in a form for a future.

    A future refuses StopIteration, and a SystemExit of the work must not end the process.
    """
    return error if isinstance(error, Exception) and not isinstance(error, StopIteration) else ThreadError(error)


def _settle(future: asyncio.Future[T], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
