"""The batched writer: many sessions in one transaction, isolated failures, nothing lost, no statement per token."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from unittest.mock import ANY

import pytest
import pytest_asyncio
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.db import Threads
from chat.models import ChatMessage, MessageDelta, Session, User
from chat.runner.writer import TEXT_SIZE, ClaimJobs, Fenced, NotWritten, Writer
from chat.runs import lease
from chat.runs.changes import Change, CloseTurn, InsertMessage, UpdateMessage
from chat.runs.lease import Claim
from chat.services.messages.sending import send_message
from chat.services.runs.recording import Recorded
from chat.services.sessions.lifecycle import create_session
from tests.support.effort import cases
from tests.support.statements import counted, watched_statements

T = TypeVar("T")


def insert(message_id: str, text: str = "", status: str = "streaming") -> InsertMessage:
    fields = {"type": "text", "role": "assistant", "status": status, "text": text}
    return InsertMessage(message_id, "text_delta", fields)


def end(message_id: str) -> UpdateMessage:
    return UpdateMessage(message_id, "message_updated", {"status": "complete"}, compact=True)


@dataclass
class Desk:
    """A writer, with sessions that have open turns and claims."""

    writer: Writer
    threads: Threads
    ana: User
    claims: list[Claim] = field(default_factory=list)
    _jobs: dict[Claim, ClaimJobs] = field(default_factory=dict)

    async def open(self, count: int) -> list[Claim]:
        self.claims = await asyncio.to_thread(self._open, count)
        return self.claims

    def _open(self, count: int) -> list[Claim]:
        try:
            for _ in range(count):
                send_message(session=create_session(owner=self.ana), author=self.ana, text="Hi")
            return lease.claim(lease.register_worker(), count)
        finally:
            connection.close()

    def jobs(self, claim: Claim) -> ClaimJobs:
        return self._jobs.setdefault(claim, ClaimJobs(self.writer, claim))

    def submit(self, claim: Claim, *changes: Change) -> asyncio.Future[Recorded]:
        return self.jobs(claim).submit(changes)

    def append(self, claim: Claim, message_id: str, offset: int, text: str) -> None:
        self.writer.append(claim, message_id, offset, text)

    async def read(self, function: Callable[[], T]) -> T:
        return await self.threads.run(function)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not await self.threads.run(condition):  # noqa: ASYNC110  # rows have no event to wait for
                await asyncio.sleep(0.005)


@pytest_asyncio.fixture
async def desk(transactional_db: None, ana: User) -> AsyncIterator[Desk]:
    desk = Desk(Writer(), Threads(1, "test"), ana)
    desk.writer.start()
    yield desk
    await desk.writer.close()
    await desk.threads.close()


# A statement by which a writer locks all others out of the sessions.
TAKE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN; LOCK TABLE chat_session IN EXCLUSIVE MODE"}


@contextmanager
def locked_database() -> Iterator[None]:
    """Hold a write lock in another connection until the block ends."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(TAKE[connection.vendor])
                locked.set()
                release.wait(30)
                cursor.execute("ROLLBACK")
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(20)
    try:
        yield
    finally:
        release.set()
        holder.join(20)


@contextmanager
def impatient_connections() -> Iterator[None]:
    """Make connections that are opened now fail at a lock without waiting."""

    def hurry(connection: BaseDatabaseWrapper, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout=1")

    connection_created.connect(hurry)
    try:
        yield
    finally:
        connection_created.disconnect(hurry)


@pytest.mark.sqlite  # counts SQLite's statements
async def test_changes_of_many_sessions_share_a_transaction(desk: Desk) -> None:
    """RUN-01: changes that arrive while the database is busy are written in one transaction for all their sessions."""
    claims = await desk.open(10)
    with watched_statements() as statements:
        with locked_database():
            first = desk.submit(claims[0], insert("m_first"))
            await asyncio.sleep(0)
            rest = [desk.submit(claim, insert(f"m_{number}")) for number, claim in enumerate(claims)]
        await asyncio.gather(first, *rest)
    assert counted(statements, "BEGIN") <= 3  # the lock's own, the delayed one, and one for all others


async def test_jobs_of_a_session_are_written_in_order(desk: Desk) -> None:
    """MSG-03: jobs are written in the order of their submission, and each future gets the result of its own job."""
    (claim,) = await desk.open(1)
    jobs = [desk.submit(claim, insert(f"m_{number}", str(number), "complete")) for number in range(50)]
    results = await asyncio.gather(*jobs)
    revisions = [event.revision for result in results for event in result.events]  # type: ignore[union-attr]  # only messages changed
    assert revisions == list(range(revisions[0], revisions[0] + 50))
    rows = await desk.read(
        lambda: list(ChatMessage.objects.filter(role="assistant").order_by("sequence").values_list("sequence", "text"))
    )
    assert rows == [(number + 3, str(number)) for number in range(50)]


async def test_bad_job_fails_alone(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-10: a failing job does not affect other sessions of its batch, and its future has the reason."""
    claims = await desk.open(3)
    with locked_database():
        blocker = desk.submit(claims[0], insert("m_0"))
        await asyncio.sleep(0)
        bad = desk.submit(claims[1], insert("m_1", status="nonsense"))
        good = desk.submit(claims[2], insert("m_2"))
        desk.append(claims[2], "m_2", 0, "text")
    await blocker
    await good
    with pytest.raises(Exception, match="message_status"):
        await bad
    assert "Could not write a batch of changes" in caplog.text
    await desk.until(lambda: MessageDelta.objects.filter(message="m_2", text="text").exists())


async def test_jobs_after_a_bad_one_report_its_error_and_are_not_written(desk: Desk) -> None:
    """RUN-10: a turn whose changes cannot be written reports the reason, not that later changes lack earlier ones."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    assert await desk.jobs(claim).wait() == Recorded(events=ANY, next_turn=ANY)
    bad = desk.submit(claim, insert("m_1", status="nonsense"))
    await asyncio.wait([bad])
    desk.submit(claim, insert("m_2"))
    with pytest.raises(NotWritten) as raised:
        await desk.jobs(claim).wait()
    assert "message_status" in str(raised.value.__cause__)
    assert not await desk.read(ChatMessage.objects.filter(pk__in=["m_1", "m_2"]).exists)


async def test_fenced_job_gets_an_exception(desk: Desk) -> None:
    """RUN-15: a fenced job fails with the exception `Fenced`. Text of a lost claim is dropped silently."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    zombie = replace(claim, epoch=claim.epoch - 1)
    desk.append(zombie, "m_0", 0, "late")
    with pytest.raises(Fenced):
        await desk.submit(zombie, end("m_0"))
    await desk.submit(claim, end("m_0"), CloseTurn())
    assert await desk.read(lambda: ChatMessage.objects.get(pk="m_0").text) == ""
    with pytest.raises(Fenced):
        await desk.submit(claim, insert("m_1"))


async def test_nothing_is_lost_while_the_database_is_locked(desk: Desk) -> None:
    """RUN-15: jobs and text wait while the database is locked, and no future fails."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    with locked_database():
        for number in range(100):
            desk.append(claim, "m_0", number, "x")
            await asyncio.sleep(0)
        job = desk.submit(claim, end("m_0"))
    await job
    assert await desk.read(lambda: ChatMessage.objects.get(pk="m_0").text) == "x" * 100


@pytest.mark.sqlite  # makes SQLite fail without waiting; tests/postgres has PostgreSQL's outages
async def test_write_that_fails_for_now_is_tried_again(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: a write that fails temporarily is repeated, even if the database gives up waiting."""
    (claim,) = await desk.open(1)
    with impatient_connections():
        with locked_database():
            job = desk.submit(claim, insert("m_0", "ab"))
            async with asyncio.timeout(20):
                while "retrying" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                    await asyncio.sleep(0.005)
            desk.append(claim, "m_0", 2, "cd")
            last = desk.submit(claim, end("m_0"))
        await asyncio.gather(job, last)
    assert await desk.read(lambda: ChatMessage.objects.get(pk="m_0").text) == "abcd"


async def test_text_is_written_without_being_asked(desk: Desk) -> None:
    """RUN-15: text is written after an interval, even if no change follows."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    for offset, text in ((0, "one "), (4, "two "), (8, "three ")):
        desk.append(claim, "m_0", offset, text)
        await desk.until(lambda: "".join(MessageDelta.objects.values_list("text", flat=True)).endswith(text))  # noqa: B023  # awaited here


async def test_long_text_does_not_wait(desk: Desk) -> None:
    """RUN-15: two kilobytes of text are written immediately; shorter pieces are collected."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    desk.append(claim, "m_0", 0, "x")
    await desk.until(MessageDelta.objects.exists)
    for number in range(20):
        desk.append(claim, "m_0", 1 + number * TEXT_SIZE // 10, "y" * (TEXT_SIZE // 10))
    await desk.until(lambda: len("".join(MessageDelta.objects.values_list("text", flat=True))) > TEXT_SIZE)
    assert await desk.read(MessageDelta.objects.count) <= 4


async def test_tokens_cost_no_statements(desk: Desk) -> None:
    """MSG-01: ten thousand tokens need a few writes, and the message's row is written when the message ends."""
    (claim,) = await desk.open(1)
    with watched_statements() as statements:
        await desk.submit(claim, insert("m_0"))
        before = len(statements)
        for number in range(10_000):
            desk.append(claim, "m_0", number * 4, "word")
        await desk.submit(claim, end("m_0"))
        assert len(statements) - before < 25
    assert await desk.read(lambda: len(ChatMessage.objects.get(pk="m_0").text)) == 40_000


async def test_closing_writes_all_that_waits(desk: Desk) -> None:
    """RUN-15: closing the writer writes everything that waits, even within the interval."""
    claims = await desk.open(3)
    for number, claim in enumerate(claims):
        desk.submit(claim, insert(f"m_{number}"))
        desk.append(claim, f"m_{number}", 0, "said")
    await desk.writer.close()
    texts = await desk.read(lambda: list(MessageDelta.objects.values_list("text", flat=True)))
    assert texts == ["said"] * 3


@pytest.mark.sqlite  # makes SQLite fail without waiting
async def test_closing_gives_up_on_a_database_that_is_away(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: the writer can be closed although the database is away, and the job's future gets the error."""
    (claim,) = await desk.open(1)
    with impatient_connections(), locked_database():
        job = desk.submit(claim, insert("m_0"))
        await desk.writer.close()
    with pytest.raises(Exception, match="locked"):
        await job


pieces = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8), st.booleans()),
    max_size=30,
)


@settings(max_examples=cases(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.text(max_size=4, alphabet="ab"), said=pieces)
async def test_folded_text_equals_the_streamed_text(desk: Desk, first: str, said: list[tuple[str, bool]]) -> None:
    """MSG-01, MSG-12: the stored text equals the streamed text in any script, however it was split and flushed."""
    session = await asyncio.to_thread(_session, desk.ana)
    claim = next(iter(await desk.threads.run(lambda: lease.claim(lease.register_worker(), 1))))
    message_id = f"m_{claim.session_id[2:]}"
    desk.submit(claim, insert(message_id, first))
    length = len(first)
    for text, flush in said:
        desk.append(claim, message_id, length, text)
        length += len(text)
        if flush:
            await desk.submit(claim, insert(f"m_{length}_{claim.session_id[2:20]}", status="complete"))
    await desk.submit(claim, end(message_id), CloseTurn())
    row = await desk.threads.run(lambda: ChatMessage.objects.get(pk=message_id))
    assert row.text == first + "".join(text for text, _ in said)
    assert not await desk.read(lambda: MessageDelta.objects.filter(message__session=session).exists())


def _session(ana: User) -> Session:
    try:
        session = create_session(owner=ana)
        send_message(session=session, author=ana, text="Hi")
        return session
    finally:
        connection.close()
