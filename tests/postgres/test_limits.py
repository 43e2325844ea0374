"""A PostgreSQL server that is slow, locked, full or read-only: time limits, and the answers to users."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import StringIO
from queue import Queue

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections, transaction
from django.test import Client
from django.utils import timezone

from chat import downloads
from chat.asgi.socket_credentials import AuthenticatedSockets
from chat.db import Threads, prepare_for_migrations, restore_time_limits
from chat.files.user_locks import UserLocks
from chat.live import sign_ins
from chat.live.subscriber import TRY_LATER
from chat.models import ChatMessage, RunState, SessionRun, User, Workspace
from chat.overrides.postgres.base import DatabaseWrapper
from chat.queries.verifying import Verification
from chat.runner import runtime
from chat.runner.writer import LIMITS, Writer
from chat.runs import lease
from chat.runs.changes import InsertMessage
from chat.security.password_hashing import hashing
from chat.services.maintenance import jobs
from chat.services.messages.sending import send_message
from chat.services.people import api_tokens
from chat.services.runs import control
from chat.services.runs.recording import Job
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import token_of
from tests.support.database import address
from tests.support.socket import ROUTES, Socket, path_of
from tests.support.testing_node import TestNode

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
OF_REQUESTS = {"statement_timeout": "5000", "lock_timeout": "4000", "idle_in_transaction_session_timeout": "30000"}


def limits() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name LIKE '%%_timeout' AND setting <> '0'", [])
        return dict(cursor.fetchall())


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Lock a table for all other connections."""
    with psycopg.connect(address(), autocommit=False) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def impatient() -> Iterator[None]:
    """Let the test's connection fail at a lock after a moment."""
    wrapper = connections["default"]
    assert isinstance(wrapper, DatabaseWrapper)
    wrapper.set_limits({"lock_timeout": 50})
    try:
        yield
    finally:
        wrapper.set_limits(wrapper.limits)


async def test_statements_of_threads_can_be_cancelled() -> None:
    """A server that stops does not wait for a long statement of maintenance."""
    threads = Threads(1, "test", limits={"statement_timeout": 0})
    statement = asyncio.ensure_future(threads.run(call_pg_sleep))
    async with asyncio.timeout(20):
        while not statement.done():  # the first attempts may come before the statement
            await threads.cancel()
    with pytest.raises(OperationalError, match="user request"):
        await statement
    await threads.close()


def call_pg_sleep() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")


def test_requests_have_time_limits() -> None:
    """RUN-10: a hanging request releases its connection and locks."""
    assert OF_REQUESTS.items() <= limits().items()


def test_migrations_wait_only_for_locks_for_a_limited_time() -> None:
    """RUN-10: a migration may take long. But while it waits for a table, all others wait behind it."""
    prepare_for_migrations(DEFAULT_DB_ALIAS)
    assert {name: limits().get(name) for name in OF_REQUESTS} == {**dict.fromkeys(OF_REQUESTS), "lock_timeout": "1000"}
    restore_time_limits(DEFAULT_DB_ALIAS)
    assert OF_REQUESTS.items() <= limits().items()


def test_statements_of_commands_take_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-04: commands read and vacuum whole tables, but do not wait longer for locks than requests."""
    found: dict[str, str] = {}

    def problems(_verification: Verification) -> Iterator[str]:
        found.update(limits())
        yield from ()

    monkeypatch.setattr(Verification, "problems", problems)
    call_command("verify", stdout=StringIO())
    assert {name: found.get(name) for name in OF_REQUESTS} == {**OF_REQUESTS, "statement_timeout": None}
    assert OF_REQUESTS.items() <= limits().items()


async def test_statements_of_maintenance_take_longer_than_those_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure that a request could not complete would fail in each round with the limit of requests."""
    found: Queue[str] = Queue()
    monkeypatch.setattr(runtime, "MAINTENANCE_INTERVAL", 0)
    monkeypatch.setattr(jobs, "run", lambda _deadline: found.put(limits()["statement_timeout"]))
    maintenance = runtime.Maintenance()
    assert await asyncio.to_thread(found.get, timeout=20) == "300000"
    await maintenance.stop()


def compilation() -> tuple[str, str]:
    """Return whether this connection compiles queries, and whether it would by PostgreSQL's configuration."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setting, reset_val FROM pg_settings WHERE name = 'jit'")
        current, configured = cursor.fetchone()
        return current, configured


def test_requests_do_not_compile_queries() -> None:
    """PostgreSQL's default is to compile expensive queries, again for each execution."""
    assert compilation() == ("off", "on")


async def test_threads_do_not_compile_queries() -> None:
    """Separate connections do not compile queries either."""
    threads = Threads(1, "test")
    assert await threads.run(compilation) == ("off", "on")
    await threads.close()


async def test_threads_have_connections_outside_the_pool_and_limits_of_their_own() -> None:
    """RUN-15: requests that use the whole pool take no connection from the runner."""
    threads = Threads(1, "test", limits=LIMITS)
    found = await threads.run(limits)
    assert {name: int(found[name]) for name in LIMITS} == LIMITS
    assert "pool" not in await threads.run(lambda: connection.settings_dict["OPTIONS"])
    await threads.close()


def test_pages_and_api_ask_to_come_back_later(ana: User) -> None:
    """RUN-10: a locked table gives 503 after a time, also in the session middleware, and never 500."""
    client = Client(raise_request_exception=False)
    client.force_login(ana)
    _, secret = api_tokens.create(user=ana, name="T", scope="write", days=30)
    with impatient():
        with locked("chat_loginsession"):
            page = client.get("/")
        with locked("chat_session"):
            listing = client.get("/api/sessions", headers={"Authorization": f"Bearer {secret}"})
            script = client.get("/session-list", headers={"Accept": "application/json"})
    assert (page.status_code, page["Retry-After"]) == (503, "2")
    assert b"Parley" in page.content
    assert (listing.status_code, listing["Content-Type"]) == (503, "application/problem+json")
    assert listing.json()["code"] == "unavailable"
    assert script.status_code == 503
    assert client.get("/").status_code == 200


def test_pool_without_a_free_connection_is_503(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-10: a request that gets no connection is answered with 503 and can be repeated."""
    client = Client(raise_request_exception=False)
    client.force_login(ana)
    connection.close()
    pool = connections["default"].pool  # type: ignore[attr-defined]  # the stubs do not know it
    monkeypatch.setattr(pool, "timeout", 0.05)
    taken = [pool.getconn(timeout=20) for _ in range(pool.max_size)]
    try:
        assert client.get("/").status_code == 503
    finally:
        for each in taken:
            pool.putconn(each)
    assert client.get("/").status_code == 200
    connection.close()
    connections["default"].close_pool()  # type: ignore[attr-defined]  # see above; the next test has a small one again


@pytest.mark.parametrize("wait", [lambda: UserLocks().hold(1), hashing])
def test_waiting_requests_hold_no_pooled_connection(
    wait: Callable[[], AbstractContextManager[None]],
) -> None:
    """RUN-10: waiting uploads and password checks hold no connection, because one user could exhaust the pool."""
    User.objects.count()
    assert connection.connection is not None
    with wait():
        assert connection.connection is None
    assert User.objects.count() == 0


def test_transactions_keep_their_connection() -> None:
    """RUN-10: a request that waits inside a transaction keeps its connection."""
    with transaction.atomic():
        Workspace.objects.create(name="W")
        with hashing():
            assert connection.connection is not None
    assert Workspace.objects.count() == 1


def test_stop_of_a_waiting_turn_takes_no_lock_that_an_answer_holds(ana: User) -> None:
    """RUN-07: at the same time, a user may answer the question. Two locks in another order would be a deadlock."""
    session = create_session(owner=ana)
    waits = {"state": RunState.WAITING, "turn_id": "t_1", "turn_started_at": timezone.now()}
    SessionRun.objects.filter(pk=session.pk).update(**waits)
    with psycopg.connect(address()) as other, impatient():
        other.execute("SELECT FROM chat_session WHERE id = %s FOR UPDATE", [session.pk])
        assert control.cancel(session=session, author=ana)
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.stopped_by, run.wanted - run.done) == (RunState.CANCELLING, ana, 1)


async def test_downloads_that_a_client_reads_slowly_take_none_of_the_pool() -> None:
    """RUN-10: each batch of a download takes a connection only while it is read."""

    def pieces() -> Iterator[bytes]:
        for _ in range(2):
            yield b"%d" % User.objects.count() * downloads.BYTES_AT_ONCE

    batches = downloads._asynchronous(pieces())
    for _ in range(2):
        assert len(await anext(batches)) == downloads.BYTES_AT_ONCE
        assert await sync_to_async(lambda: connection.connection)() is None
    assert [batch async for batch in batches] == []


async def test_socket_that_cannot_be_signed_in_is_to_come_back(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05: the socket closes with a code by which clients know that they have to reconnect."""
    monkeypatch.setitem(sign_ins.LIMITS, "lock_timeout", 50)
    session, token = await node.session(ana), await node.do(token_of, ana)
    headers = [(b"authorization", f"Bearer {token}".encode())]
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(locked("chat_apitoken"))
        app = AuthenticatedSockets(ROUTES)
        socket = await stack.enter_async_context(Socket(path_of(session), headers=headers, app=app))
        assert await socket.closed() == TRY_LATER


async def test_standby_is_a_database_that_is_away() -> None:
    """RUN-15: a demoted primary refuses writes, and the next attempt finds the new one."""
    tries = iter([True, False])

    def write() -> None:
        with transaction.atomic():
            if next(tries):
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION READ ONLY")
            Workspace.objects.create(name="W")

    threads = Threads(1, "test", limits={})
    await threads.run_with_retry(write)
    assert await threads.run(Workspace.objects.count) == 1
    await threads.close()


async def test_long_transaction_of_one_session_holds_up_no_other(ana: User) -> None:
    """RUN-01: one writer serves all sessions, and rows of a locked session are written when it is free."""
    writer, threads = Writer(), Threads(1, "test", limits={})
    writer.start()

    def prepare() -> list[lease.Claim]:
        for _ in range(2):
            send_message(session=create_session(owner=ana), author=ana, text="Hi")
        return lease.claim(lease.register_worker(), 2)

    slow, quick = await threads.run(prepare)
    row = {"type": "text", "role": "assistant", "status": "complete", "text": "Hello"}
    with psycopg.connect(address()) as other:
        other.execute("SELECT 1 FROM chat_session WHERE id = %s FOR UPDATE", [slow.session_id])
        waiting = writer.submit(Job(slow, 1, [InsertMessage("m_slow", "message_updated", row)]))
        async with asyncio.timeout(20):
            await writer.submit(Job(quick, 1, [InsertMessage("m_quick", "message_updated", row)]))
        assert not waiting.done()
    async with asyncio.timeout(20):
        await waiting
    written = await threads.run(lambda: set(ChatMessage.objects.filter(text="Hello").values_list("pk", flat=True)))
    assert written == {"m_slow", "m_quick"}
    await writer.close()
    await threads.close()
