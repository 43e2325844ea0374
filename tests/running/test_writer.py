"""The batched writer: many sessions in one transaction, no one hurt by another, nothing lost, nothing per token."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
import pytest_asyncio
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.db import Threads
from chat.models import ChatMessage, MessageDelta, Session, User
from chat.runner.writer import TEXT_SIZE, Fenced, Writer
from chat.runs import lease
from chat.runs.changes import Change, CloseTurn, InsertMessage, UpdateMessage
from chat.runs.lease import Claim
from chat.services.messages.sending import send_message
from chat.services.runs.recording import Job, Recorded
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
    """A writer, and sessions whose turns are open and claimed."""

    writer: Writer
    threads: Threads
    ana: User
    claims: list[Claim] = field(default_factory=list)
    _written: Counter[Claim] = field(default_factory=Counter)

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

    def submit(self, claim: Claim, *changes: Change) -> asyncio.Future[Recorded]:
        self._written[claim] += 1
        return self.writer.submit(Job(claim, self._written[claim], changes))

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


# How a writer keeps all others out of the sessions.
TAKE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN; LOCK TABLE chat_session IN EXCLUSIVE MODE"}


@contextmanager
def locked_database() -> Iterator[None]:
    """Another user writes and does not come to an end."""
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
    """Connections that are opened now do not wait for a lock."""

    def hurry(connection: BaseDatabaseWrapper, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout=1")

    connection_created.connect(hurry)
    try:
        yield
    finally:
        connection_created.disconnect(hurry)


@pytest.mark.sqlite  # counts its statements
async def test_changes_of_many_sessions_share_a_transaction(desk: Desk) -> None:
    """RUN-01: what came while the database was busy is one write, however many sessions it is for."""
    claims = await desk.open(10)
    with watched_statements() as statements:
        with locked_database():
            first = desk.submit(claims[0], insert("m_first"))
            await asyncio.sleep(0)
            rest = [desk.submit(claim, insert(f"m_{number}")) for number, claim in enumerate(claims)]
        await asyncio.gather(first, *rest)
    assert counted(statements, "BEGIN") <= 3  # the lock's own, the one that it held up, and all others


async def test_jobs_of_a_session_are_written_in_order(desk: Desk) -> None:
    """MSG-03: as they were submitted; each future gets what its own job made."""
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
    """RUN-10: the other sessions of its batch do not notice; its own future says why."""
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
    assert "could not be written" in caplog.text
    await desk.until(lambda: MessageDelta.objects.filter(message="m_2", text="text").exists())


async def test_fenced_job_gets_an_exception(desk: Desk) -> None:
    """RUN-15: by an exception of its own; text of a lost claim is dropped without a word."""
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
    """RUN-15: jobs and text wait; no one's future fails."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    with locked_database():
        for number in range(100):
            desk.append(claim, "m_0", number, "x")
            await asyncio.sleep(0)
        job = desk.submit(claim, end("m_0"))
    await job
    assert await desk.read(lambda: ChatMessage.objects.get(pk="m_0").text) == "x" * 100


@pytest.mark.sqlite  # asks it not to wait; PostgreSQL's outages: tests/postgres
async def test_write_that_fails_for_now_is_tried_again(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: also when the database gives up waiting."""
    (claim,) = await desk.open(1)
    with impatient_connections():
        with locked_database():
            job = desk.submit(claim, insert("m_0", "ab"))
            async with asyncio.timeout(20):
                while "trying again" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                    await asyncio.sleep(0.005)
            desk.append(claim, "m_0", 2, "cd")
            last = desk.submit(claim, end("m_0"))
        await asyncio.gather(job, last)
    assert await desk.read(lambda: ChatMessage.objects.get(pk="m_0").text) == "abcd"


async def test_text_is_written_without_being_asked(desk: Desk) -> None:
    """RUN-15: what was said is in the rows before long, though no change comes that would carry it."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    for offset, text in ((0, "one "), (4, "two "), (8, "three ")):
        desk.append(claim, "m_0", offset, text)
        await desk.until(lambda: "".join(MessageDelta.objects.values_list("text", flat=True)).endswith(text))  # noqa: B023  # awaited here


async def test_long_text_does_not_wait(desk: Desk) -> None:
    """RUN-15: two kilobytes are written at once; shorter pieces are collected."""
    (claim,) = await desk.open(1)
    await desk.submit(claim, insert("m_0"))
    desk.append(claim, "m_0", 0, "x")
    await desk.until(MessageDelta.objects.exists)
    for number in range(20):
        desk.append(claim, "m_0", 1 + number * TEXT_SIZE // 10, "y" * (TEXT_SIZE // 10))
    await desk.until(lambda: len("".join(MessageDelta.objects.values_list("text", flat=True))) > TEXT_SIZE)
    assert await desk.read(MessageDelta.objects.count) <= 4


async def test_tokens_cost_no_statements(desk: Desk) -> None:
    """MSG-01: ten thousand tokens are a handful of writes, and the message's row is written when it ends."""
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
    """RUN-15: an orderly end loses nothing, not even within the interval."""
    claims = await desk.open(3)
    for number, claim in enumerate(claims):
        desk.submit(claim, insert(f"m_{number}"))
        desk.append(claim, f"m_{number}", 0, "said")
    await desk.writer.close()
    texts = await desk.read(lambda: list(MessageDelta.objects.values_list("text", flat=True)))
    assert texts == ["said"] * 3


@pytest.mark.sqlite  # likewise
async def test_closing_gives_up_on_a_database_that_is_away(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: a process can end; a user who waited is notified."""
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
    """MSG-01, MSG-12: however it was cut and whenever it was flushed, in any script."""
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
