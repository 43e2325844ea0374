"""The writer of a process writes the changes of all its runs in batches, with several sessions per transaction.

It writes durable changes as soon as its thread is free. Text waits for up to 250 ms or 2 KB, which limits what a crash
can lose. Streaming never blocks on the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django.db import OperationalError

from chat import metrics
from chat.bus.events import TextAppended
from chat.db import LOCK_TIMEOUT, Threads, sqlstate
from chat.runs.changes import Change
from chat.runs.lease import Claim
from chat.services.runs.recording import Batch, Job, Outcome, PendingText, Recorded, record

logger = logging.getLogger(__name__)

TEXT_INTERVAL = 0.25
TEXT_SIZE = 2048
# Seconds between two tries to write sessions whose rows another transaction has locked.
BUSY_INTERVAL = 0.05
# Milliseconds (PostgreSQL). One long transaction must not block the writer of all sessions.
LIMITS = {"statement_timeout": 30_000, "lock_timeout": 250, "idle_in_transaction_session_timeout": 10_000}


class Fenced(Exception):  # not an error: another worker runs the session now
    """The claim is lost; nothing was written."""


class Rewound(Exception):  # not an error of the turn: the database lost rows in a failover
    """The rows lack earlier jobs of the claim; nothing was written."""


class NotWritten(Exception):  # its cause is the error
    """Changes of the turn could not be written."""


@dataclass(slots=True)
class _QueuedText:
    """Text of one message that is not in a batch yet."""

    claim: Claim
    offset: int
    parts: list[str] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _QueuedJob:
    job: Job
    done: asyncio.Future[Recorded]


def _ignore(claim: Claim) -> None:
    """Ignore a lost claim."""


class Writer:
    """Takes changes from the runs of one event loop and writes them from one thread, in order.

    `on_fenced` is called for a claim whose text was not written because another worker has the session.
    """

    def __init__(self, on_fenced: Callable[[Claim], None] = _ignore) -> None:
        self._threads = Threads(1, "parley-writer", limits=LIMITS)
        self._on_fenced = on_fenced
        self._jobs: list[_QueuedJob] = []
        self._texts: dict[str, _QueuedText] = {}
        # Jobs and texts whose rows were locked at the first try. They are tried again unchanged, because the first try
        # may have written them if the answer to its COMMIT was lost.
        self._busy_jobs: list[_QueuedJob] = []
        self._busy_texts: list[PendingText] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._texts_written = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Write everything that is queued, then stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._threads.close()

    def submit(self, job: Job) -> asyncio.Future[Recorded]:
        """Queue changes. The future has the result when they are committed and published.

        It raises Fenced, Rewound, or the error of the write.
        """
        done: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
        self._jobs.append(_QueuedJob(job, done))
        self._wake.set()
        return done

    def append(self, claim: Claim, message_id: str, offset: int, text: str) -> None:
        """Queue text of a streaming message."""
        queued = self._texts.get(message_id)
        if queued is None:
            if not self._texts:
                self._texts_written = max(self._texts_written, time.monotonic() - TEXT_INTERVAL)
                self._wake.set()
            queued = self._texts[message_id] = _QueuedText(claim, offset)
        queued.parts.append(text)
        queued.size += len(text)
        if queued.size >= TEXT_SIZE:
            self._wake.set()

    async def _run(self) -> None:
        while not self._closing or self._jobs or self._texts or self._has_busy():
            if not self._closing or self._has_busy():
                await self._sleep()
            wait = not self._has_busy()
            jobs, self._jobs, self._busy_jobs = [*self._busy_jobs, *self._jobs], [], []
            due = self._take_due_texts({queued.job.claim.session_id for queued in jobs})
            texts, self._busy_texts = [*self._busy_texts, *due], []
            if jobs or texts:
                await self._write(jobs, texts, wait)

    def _has_busy(self) -> bool:
        return bool(self._busy_jobs or self._busy_texts)

    async def _write(self, jobs: list[_QueuedJob], texts: list[PendingText], wait: bool) -> None:
        """Write a batch. Catch every error, because the writer serves all runs and must continue."""
        try:
            try:
                with metrics.flush_seconds.time():
                    batch = await self._record([queued.job for queued in jobs], texts, wait)
            except Exception:
                logger.exception("Could not write a batch of changes; writing each session separately")
                await self._write_by_session(jobs, texts)
            else:
                self._deliver(jobs, texts, batch)
        except Exception as error:
            logger.exception("Could not deliver the results of a batch of changes")
            _fail(jobs, error)

    def _take_due_texts(self, sessions: set[str]) -> list[PendingText]:
        """Take the texts to write now.

        Every 250 ms these are all texts. Otherwise they are long texts, and texts of `sessions`, because the changes of
        a session may end the message of its text.
        """
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
        """Sleep until a job is submitted, texts are due, or busy sessions must be tried again."""
        seconds = None
        if self._has_busy():
            seconds = BUSY_INTERVAL
        elif self._texts:
            seconds = max(0.0, self._texts_written + TEXT_INTERVAL - time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    async def _write_by_session(self, jobs: list[_QueuedJob], texts: list[PendingText]) -> None:
        """Write each session in its own transaction, so that one bad change does not affect the others."""
        sessions = {queued.job.claim.session_id for queued in jobs} | {text.claim.session_id for text in texts}
        for session_id in sessions:
            its_jobs = [queued for queued in jobs if queued.job.claim.session_id == session_id]
            its_texts = [text for text in texts if text.claim.session_id == session_id]
            try:
                batch = await self._record([queued.job for queued in its_jobs], its_texts, wait=True)
            except Exception as error:
                logger.exception("Could not write the changes of session %s", session_id)
                _fail(its_jobs, error)
                continue
            self._deliver(its_jobs, its_texts, batch)

    async def _record(self, jobs: Sequence[Job], texts: Sequence[PendingText], wait: bool) -> Batch:
        """Write a batch, and retry while the database is unavailable. Claims and job numbers make a repeat harmless."""
        return await self._threads.run_with_retry(
            _record_or_skip_locked, jobs, texts, wait, unless=lambda: self._closing
        )

    def _deliver(self, jobs: Sequence[_QueuedJob], texts: Sequence[PendingText], batch: Batch) -> None:
        """Set the results of a batch for the runs. `record` has already published its events."""
        self._busy_texts += [text for text, outcome in zip(texts, batch.texts, strict=True) if outcome is Outcome.BUSY]
        for queued, recorded in zip(jobs, batch.jobs, strict=True):
            session_id = queued.job.claim.session_id
            if recorded.outcome is Outcome.BUSY:
                self._busy_jobs.append(queued)
            elif queued.done.done():
                continue
            elif recorded.outcome is Outcome.FENCED:
                metrics.fenced_writes.inc()
                queued.done.set_exception(Fenced(session_id))
            elif recorded.outcome is Outcome.REWOUND:
                queued.done.set_exception(Rewound(session_id))
            else:
                queued.done.set_result(recorded)
        fenced = [text.claim for text, outcome in zip(texts, batch.texts, strict=True) if outcome is Outcome.FENCED]
        metrics.fenced_writes.inc(len(fenced))
        for claim in dict.fromkeys(fenced):
            self._on_fenced(claim)


class ClaimJobs:
    """The jobs of one claim, numbered in order. `written` is the number of the last one that is in the rows."""

    def __init__(self, writer: Writer, claim: Claim, written: int = 0) -> None:
        self._writer = writer
        self._claim = claim
        self._number = written
        self._last: asyncio.Future[Recorded] | None = None
        self._error: BaseException | None = None

    def submit(self, changes: Sequence[Change], before: Sequence[TextAppended] = ()) -> asyncio.Future[Recorded]:
        """Submit changes as the next job. `before` is text that is published before them."""
        self._number += 1
        self._last = self._writer.submit(Job(self._claim, self._number, changes, before))
        self._last.add_done_callback(self._keep_first_error)
        return self._last

    async def wait(self) -> Recorded | None:
        """Wait until all jobs are written. Return the result of the last job, or None if there was none.

        Raise Fenced, or NotWritten from the first error of a write.
        """
        if self._last is None:
            return None
        await asyncio.wait([self._last])
        error = self._error or self._last.exception()
        if isinstance(error, Fenced):
            raise error
        if error is not None:
            raise NotWritten from error
        return self._last.result()

    def _keep_first_error(self, recorded: asyncio.Future[Recorded]) -> None:
        if not recorded.cancelled():
            error = recorded.exception()  # always retrieved, because a future with an unread error would log a warning
            self._error = self._error or error


def _record_or_skip_locked(jobs: Sequence[Job], texts: Sequence[PendingText], wait: bool) -> Batch:
    """Write a batch without the sessions whose rows are locked. With `wait`, wait for the locks first."""
    if wait:
        try:
            return record(jobs, texts)
        except OperationalError as error:
            if sqlstate(error) != LOCK_TIMEOUT:
                raise
    return record(jobs, texts, wait=False)


def _fail(jobs: Sequence[_QueuedJob], error: Exception) -> None:
    """Set an error as the result of the jobs that have no result yet."""
    for queued in jobs:
        if not queued.done.done():
            queued.done.set_exception(error)
