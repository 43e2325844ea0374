"""The one batched writer of a process: everything that its runs write, several sessions per transaction.

Durable changes are written as soon as the one thread is free; text waits up to 250 ms or 2 KB, which bounds what a
crash can lose. Streaming never blocks on the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import OperationalError

from chat.bus.publisher import publish
from chat.db import LOCK_TIMEOUT, Threads, sqlstate
from chat.runs.lease import Claim
from chat.services.runs.recording import Batch, Job, Outcome, PendingText, Recorded, record

logger = logging.getLogger(__name__)

TEXT_INTERVAL = 0.25
TEXT_SIZE = 2048
# Seconds until the sessions are tried again whose rows a long transaction has locked.
BUSY_INTERVAL = 0.05
# Milliseconds (PostgreSQL). One long transaction must not hold up the writer of all sessions.
LIMITS = {"statement_timeout": 30_000, "lock_timeout": 250, "idle_in_transaction_session_timeout": 10_000}


class Fenced(Exception):  # not a fault: another worker runs the session now
    """The claim is lost; nothing was written."""


class Rewound(Exception):  # see above; a failover is no fault of the turn
    """The rows lack earlier jobs of the claim; nothing was written."""


@dataclass(slots=True)
class _Text:
    """Text of one message that waits to be written."""

    claim: Claim
    offset: int
    parts: list[str] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Waiting:
    job: Job
    done: asyncio.Future[Recorded]


def _ignore(claim: Claim) -> None:
    """Do nothing about a lost claim."""


class Writer:
    """Takes changes from the runs of one event loop and writes them from one thread, in order.

    `on_fenced` is called for a claim whose text was not written because another worker has the session.
    """

    def __init__(self, on_fenced: Callable[[Claim], None] = _ignore) -> None:
        self._threads = Threads(1, "parley-writer", limits=LIMITS)
        self._on_fenced = on_fenced
        self._jobs: list[_Waiting] = []
        self._texts: dict[str, _Text] = {}
        # What others had locked at its first try. It is tried again as it is: whether that try has written it is not
        # known for certain, when the answer to its COMMIT was lost.
        self._busy_jobs: list[_Waiting] = []
        self._busy_texts: list[PendingText] = []
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
        """Queue changes. The future gives what was recorded once it is committed and published.

        It raises Fenced or Rewound, or what kept the changes from being written.
        """
        done: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_seen)
        self._jobs.append(_Waiting(job, done))
        self._wake.set()
        return done

    def append(self, claim: Claim, message_id: str, offset: int, text: str) -> None:
        """Queue text of a streaming message."""
        waiting = self._texts.get(message_id)
        if waiting is None:
            if not self._texts:
                self._texts_written = max(self._texts_written, time.monotonic() - TEXT_INTERVAL)
                self._wake.set()
            waiting = self._texts[message_id] = _Text(claim, offset)
        waiting.parts.append(text)
        waiting.size += len(text)
        if waiting.size >= TEXT_SIZE:
            self._wake.set()

    async def _run(self) -> None:
        while not (self._closing and not self._waits()):
            if not self._closing or self._busy():
                await self._sleep()
            wait = not self._busy()
            jobs, self._jobs, self._busy_jobs = [*self._busy_jobs, *self._jobs], [], []
            texts, self._busy_texts = [*self._busy_texts, *self._due({each.job.claim.session_id for each in jobs})], []
            if jobs or texts:
                await self._write_or_fail(jobs, texts, wait)

    def _waits(self) -> bool:
        return bool(self._jobs or self._texts or self._busy())

    def _busy(self) -> bool:
        return bool(self._busy_jobs or self._busy_texts)

    async def _write_or_fail(self, jobs: list[_Waiting], texts: list[PendingText], wait: bool) -> None:
        """Write a batch; whatever goes wrong with one must not end the writer, and with it every run."""
        try:
            await self._write(jobs, texts, wait)
        except Exception as error:
            logger.exception("The results of a batch could not be delivered")
            for waiting in jobs:
                if not waiting.done.done():
                    waiting.done.set_exception(error)

    def _due(self, sessions: set[str]) -> list[PendingText]:
        """Take the texts whose time has come: all of them every 250 ms, before that the long ones and those of
        sessions with changes, which may end the very message."""
        now = time.monotonic()
        if self._closing or now - self._texts_written >= TEXT_INTERVAL:
            self._texts_written = now
            due, self._texts = self._texts, {}
        else:
            names = [
                message_id
                for message_id, text in self._texts.items()
                if text.size >= TEXT_SIZE or text.claim.session_id in sessions
            ]
            due = {message_id: self._texts.pop(message_id) for message_id in names}
        return [
            PendingText(text.claim, message_id, text.offset, "".join(text.parts)) for message_id, text in due.items()
        ]

    async def _sleep(self) -> None:
        try:
            # Nothing waits: sleep until something does.
            async with asyncio.timeout(self._patience()):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _patience(self) -> float | None:
        if self._busy():
            return BUSY_INTERVAL
        if not self._texts:
            return None
        return max(0.0, self._texts_written + TEXT_INTERVAL - time.monotonic())

    async def _write(self, jobs: list[_Waiting], texts: list[PendingText], wait: bool) -> None:
        try:
            batch = await self._record([waiting.job for waiting in jobs], texts, wait)
        except Exception:
            logger.exception("A batch of changes could not be written; its parts are tried one by one")
            await self._write_apart(jobs, texts)
            return
        self._deliver(jobs, texts, batch)

    async def _write_apart(self, jobs: list[_Waiting], texts: list[PendingText]) -> None:
        """One session's bad change must not cost the others theirs."""
        sessions = {each.job.claim.session_id for each in jobs} | {text.claim.session_id for text in texts}
        for session_id in sessions:
            mine = [waiting for waiting in jobs if waiting.job.claim.session_id == session_id]
            its_texts = [text for text in texts if text.claim.session_id == session_id]
            try:
                batch = await self._record([waiting.job for waiting in mine], its_texts, wait=True)
            except Exception as error:
                logger.exception("Changes of session %s could not be written", session_id)
                for waiting in mine:
                    if not waiting.done.done():
                        waiting.done.set_exception(error)
                continue
            self._deliver(mine, its_texts, batch)

    async def _record(self, jobs: Sequence[Job], texts: Sequence[PendingText], wait: bool) -> Batch:
        """Write, again and again while the database is away: claims and numbers keep a late success harmless."""
        return await self._threads.run_with_retry(_record_patiently, jobs, texts, wait, unless=lambda: self._closing)

    def _deliver(self, jobs: Sequence[_Waiting], texts: Sequence[PendingText], batch: Batch) -> None:
        self._busy_texts += [text for text, outcome in zip(texts, batch.texts, strict=True) if outcome is Outcome.BUSY]
        for waiting, recorded in zip(jobs, batch.jobs, strict=True):
            if recorded.outcome is Outcome.BUSY:
                self._busy_jobs.append(waiting)
            else:
                _deliver(waiting, recorded)
        fenced = [text.claim for text, outcome in zip(texts, batch.texts, strict=True) if outcome is Outcome.FENCED]
        for claim in dict.fromkeys(fenced):
            self._on_fenced(claim)


def _record_patiently(jobs: Sequence[Job], texts: Sequence[PendingText], wait: bool) -> Batch:
    """Write a batch; if others have locked rows of it for long, or at all with `wait` off, write the rest."""
    if wait:
        try:
            return record(jobs, texts)
        except OperationalError as error:
            if sqlstate(error) != LOCK_TIMEOUT:
                raise
    return record(jobs, texts, wait=False)


def _deliver(waiting: _Waiting, recorded: Recorded) -> None:
    """Publish what a job has changed, and tell its run."""
    session_id = waiting.job.claim.session_id
    if recorded.outcome in (Outcome.FENCED, Outcome.REWOUND):
        if not waiting.done.done():
            error = Fenced(session_id) if recorded.outcome is Outcome.FENCED else Rewound(session_id)
            waiting.done.set_exception(error)
        return
    publish(session_id, recorded.events)
    if not waiting.done.done():
        waiting.done.set_result(recorded)


def _seen(done: asyncio.Future[Recorded]) -> None:
    """Retrieve the exception, so that a future without a waiter logs no warning."""
    if not done.cancelled():
        done.exception()
