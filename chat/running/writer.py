"""The one batched writer of a process: everything that its runs write, several sessions per transaction.

Durable changes are written as soon as the one thread is free; text waits up to 250 ms or 2 KB, which bounds what a
crash can lose. Whoever streams never waits for the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from chat.db import Threads
from chat.live.publish import publish
from chat.services.recording import Job, PendingText, Recorded, record

logger = logging.getLogger(__name__)

TEXT_INTERVAL = 0.25
TEXT_SIZE = 2048


class Fenced(Exception):  # noqa: N818  # not a fault: somebody else runs the session now
    """The claim is no longer ours; nothing was written."""


@dataclass(slots=True)
class _Text:
    """Text of one message that waits to be written."""

    session_id: str
    epoch: int
    offset: int
    parts: list[str] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Waiting:
    job: Job
    done: asyncio.Future[Recorded]


class Writer:
    """Takes changes from the runs of one event loop and writes them from one thread, in order."""

    def __init__(self) -> None:
        self._threads = Threads(1, "parley-writer")
        self._jobs: list[_Waiting] = []
        self._texts: dict[str, _Text] = {}
        self._wake = asyncio.Event()
        self._closing = False
        self._texts_written = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Write all that is waiting, then end."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._threads.close()

    def submit(self, job: Job) -> asyncio.Future[Recorded]:
        """Queue changes. The future gives what was recorded once it is committed and published, or raises Fenced."""
        done: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_seen)
        self._jobs.append(_Waiting(job, done))
        self._wake.set()
        return done

    def append(self, session_id: str, epoch: int, message_id: str, offset: int, text: str) -> None:
        """Queue text of a streaming message."""
        waiting = self._texts.get(message_id)
        if waiting is None:
            if not self._texts:
                self._texts_written = max(self._texts_written, time.monotonic() - TEXT_INTERVAL)
                self._wake.set()
            waiting = self._texts[message_id] = _Text(session_id, epoch, offset)
        waiting.parts.append(text)
        waiting.size += len(text)
        if waiting.size >= TEXT_SIZE:
            self._wake.set()

    async def _run(self) -> None:
        while not (self._closing and not self._jobs and not self._texts):
            if not self._closing:
                await self._sleep()
            jobs, self._jobs = self._jobs, []
            texts = self._due({waiting.job.session_id for waiting in jobs})
            if jobs or texts:
                await self._write_or_fail(jobs, texts)

    async def _write_or_fail(self, jobs: list[_Waiting], texts: dict[str, _Text]) -> None:
        """Write a batch; whatever goes wrong with one must not end the writer, and with it every run."""
        try:
            await self._write(jobs, texts)
        except Exception as error:
            logger.exception("What became of a batch could not be told")
            for waiting in jobs:
                if not waiting.done.done():
                    waiting.done.set_exception(error)

    def _due(self, sessions: set[str]) -> dict[str, _Text]:
        """Take the texts whose time has come: all of them every 250 ms, before that the long ones and those of
        sessions with changes, which may end the very message."""
        now = time.monotonic()
        if self._closing or now - self._texts_written >= TEXT_INTERVAL:
            self._texts_written = now
            texts, self._texts = self._texts, {}
            return texts
        due = [
            message_id
            for message_id, text in self._texts.items()
            if text.size >= TEXT_SIZE or text.session_id in sessions
        ]
        return {message_id: self._texts.pop(message_id) for message_id in due}

    async def _sleep(self) -> None:
        try:
            # Nothing waits: sleep until something does.
            async with asyncio.timeout(self._patience()):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _patience(self) -> float | None:
        if not self._texts:
            return None
        return max(0.0, self._texts_written + TEXT_INTERVAL - time.monotonic())

    async def _write(self, jobs: list[_Waiting], texts: dict[str, _Text]) -> None:
        pending = [
            PendingText(text.session_id, text.epoch, message_id, text.offset, "".join(text.parts))
            for message_id, text in texts.items()
        ]
        try:
            results = await self._record([waiting.job for waiting in jobs], pending)
        except Exception:
            logger.exception("A batch of changes could not be written; its parts are tried one by one")
            await self._write_apart(jobs, pending)
            return
        for waiting, result in zip(jobs, results, strict=True):
            _deliver(waiting, result)

    async def _write_apart(self, jobs: list[_Waiting], pending: list[PendingText]) -> None:
        """One session's bad change must not cost the others theirs."""
        sessions = {waiting.job.session_id for waiting in jobs} | {text.session_id for text in pending}
        for session_id in sessions:
            mine = [waiting for waiting in jobs if waiting.job.session_id == session_id]
            texts = [text for text in pending if text.session_id == session_id]
            try:
                results = await self._record([waiting.job for waiting in mine], texts)
            except Exception as error:
                logger.exception("Changes of session %s could not be written", session_id)
                for waiting in mine:
                    if not waiting.done.done():
                        waiting.done.set_exception(error)
                continue
            for waiting, result in zip(mine, results, strict=True):
                _deliver(waiting, result)

    async def _record(self, jobs: Sequence[Job], texts: Sequence[PendingText]) -> list[Recorded]:
        """Write, again and again while the database is away: the epoch keeps a late success harmless."""
        return await self._threads.insist(record, jobs, texts, unless=lambda: self._closing)


def _deliver(waiting: _Waiting, result: Recorded) -> None:
    if result.fenced:
        if not waiting.done.done():
            waiting.done.set_exception(Fenced(waiting.job.session_id))
        return
    publish(waiting.job.session_id, result.events)
    if not waiting.done.done():
        waiting.done.set_result(result)


def _seen(done: asyncio.Future[Recorded]) -> None:
    """Whoever waits gets the exception; when nobody does, it is no surprise to anyone either."""
    if not done.cancelled():
        done.exception()
