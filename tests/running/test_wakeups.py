"""Wakeups between processes, on a real Redis."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import redis.asyncio
from pytest_django.fixtures import Settings

from chat.bus import redis_wakeups, wakeups
from chat.bus.redis_wakeups import decode, encode, receive, send_without_loop
from chat.bus.wakeups import Wakeup, WakeupKind, send
from tests.support.redis import Redis

pytestmark = pytest.mark.server


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, settings: Settings) -> AsyncIterator[None]:
    """A cluster of one Redis server."""
    server = Redis(tmp_path, is_cluster=True)
    await server.start()
    settings.REDIS_URL = server.url
    yield
    server.kill()


@pytest_asyncio.fixture
async def server(redis: Redis, settings: Settings) -> AsyncIterator[Redis]:
    """A Redis to which this process sends its wakeups."""
    settings.REDIS_URL = redis.url
    wakeups.open_sender()
    yield redis
    await wakeups.close_sender()


class Worker:
    """A worker that collects its wakeups until the test has seen enough."""

    def __init__(self, name: str, *, has_room: bool = True) -> None:
        self.has_room = has_room
        self._wakeups = receive(lambda: name, lambda: self.has_room)

    async def next(self) -> Wakeup:
        return await asyncio.wait_for(anext(self._wakeups), 20)

    async def close(self) -> None:
        await self._wakeups.aclose()  # type: ignore[attr-defined]  # it is a generator


@pytest.mark.usefixtures("server")
async def test_work_goes_to_a_worker_with_room() -> None:
    """A worker without room leaves requests for work to others."""
    full, free = Worker("full", has_room=False), Worker("free")
    waiting = asyncio.ensure_future(full.next())
    send(Wakeup(WakeupKind.WORK, "s_1"))
    assert await free.next() == Wakeup(WakeupKind.WORK, "s_1")
    send(Wakeup(WakeupKind.STOP, "s_2", "t_2", "full"))
    assert await waiting == Wakeup(WakeupKind.STOP, "s_2", "t_2")
    for worker in (full, free):
        await worker.close()


@pytest.mark.usefixtures("server")
async def test_stop_reaches_only_the_worker_of_the_session() -> None:
    first, second = Worker("first"), Worker("second")
    send(Wakeup(WakeupKind.STOP, "s_1", "t_1", "second"))
    send(Wakeup(WakeupKind.STOP, "s_2", "t_2", "first"))
    assert await first.next() == Wakeup(WakeupKind.STOP, "s_2", "t_2")
    assert await second.next() == Wakeup(WakeupKind.STOP, "s_1", "t_1")
    for worker in (first, second):
        await worker.close()


@pytest.mark.usefixtures("server")
async def test_this_process_acts_on_what_it_can() -> None:
    """A wakeup that this process handles is not sent to others."""
    worker, taken = Worker("other"), []

    def take(wakeup: Wakeup) -> bool:
        taken.append(wakeup)
        return wakeup.session_id == "s_mine"

    unsubscribe = wakeups.listen(take)
    send(Wakeup(WakeupKind.WORK, "s_mine"))
    send(Wakeup(WakeupKind.WORK, "s_other"))
    assert await worker.next() == Wakeup(WakeupKind.WORK, "s_other")
    assert [wakeup.session_id for wakeup in taken] == ["s_mine", "s_other"]
    unsubscribe()
    await worker.close()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("prefix", ["parley", "{team}"])
async def test_worker_is_woken_by_a_cluster(settings: Settings, prefix: str) -> None:
    """In a cluster, such as ElastiCache Serverless, a worker can only wait for lists in one slot."""
    settings.REDIS_PREFIX = prefix
    redis_wakeups._blocking_client.cache_clear()
    worker = Worker("one")
    sent = [
        Wakeup(WakeupKind.STOP, "s_1", "t_1", "one"),
        Wakeup(WakeupKind.MENTION, "s_2", message_id="m_1"),
        Wakeup(WakeupKind.WORK, "s_3"),
    ]
    for wakeup in sent:
        send_without_loop(wakeup)
    received = [await worker.next() for _ in sent]
    assert received == [replace(wakeup, worker="") for wakeup in sent]
    await worker.close()
    redis_wakeups._blocking_client.cache_clear()


@pytest.mark.usefixtures("server")
async def test_mentions_are_shared_with_the_previous_release(settings: Settings) -> None:
    """No row records that a mention is due, so none may be lost while servers are updated one by one."""
    mention = Wakeup(WakeupKind.MENTION, "s_1", message_id="m_1")
    async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as client:
        await client.rpush("parley:mentions", encode(mention))  # type: ignore[misc]  # its stub is for both clients
        worker = Worker("one")
        assert await worker.next() == mention
        await worker.close()
        send(mention)
        assert await client.blpop(["parley:mentions"], timeout=20)  # type: ignore[misc]  # likewise


async def test_worker_listens_again_after_an_outage(server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    """A wakeup that is sent during an outage of Redis is lost, and workers find the work by polling.

    Later ones arrive. The log of the worker reports the outage and its end once, even if the worker sends nothing.
    """
    caplog.set_level(logging.INFO, "chat.bus.redis_wakeups")
    worker = Worker("one")
    waiting = asyncio.ensure_future(worker.next())
    server.kill()
    send(Wakeup(WakeupKind.WORK, "s_lost"))
    await server.start()
    while not waiting.done():
        send(Wakeup(WakeupKind.WORK, "s_later"))
        await asyncio.sleep(0.05)
    assert (await waiting).kind is WakeupKind.WORK
    await worker.close()
    logged = [record.getMessage() for record in caplog.records if "this worker" in record.getMessage()]
    assert re.fullmatch(
        r"Redis is not available, so this worker polls for work: ConnectionError\(.+\)\n"
        "Redis is available again and wakes this worker",
        "\n".join(logged),
    )


async def test_list_of_work_is_bounded(server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without workers, the list of requests does not grow beyond its limit, and it expires."""
    monkeypatch.setattr(redis_wakeups, "MAX_KEPT", 3)
    for number in range(10):
        send(Wakeup(WakeupKind.WORK, f"s_{number}"))
    await wakeups.close_sender()
    async with redis.asyncio.Redis.from_url(server.url) as client:
        (key,) = await client.keys()
        assert await client.llen(key) == 3  # type: ignore[misc]  # its stub is for both clients
        assert 0 < await client.ttl(key) <= redis_wakeups.KEPT_SECONDS


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\xff", b'{"kind": "dance", "session": "s_1"}'])
def test_what_is_no_wakeup_is_ignored(data: bytes) -> None:
    """An unknown wakeup, such as one from another release, is ignored."""
    assert decode(data) is None


def test_wakeup_of_a_later_release_is_read() -> None:
    known = encode(Wakeup(WakeupKind.STOP, "s_1", "t_1"))
    assert decode(known[:-1].encode() + b', "more": 1}') == Wakeup(WakeupKind.STOP, "s_1", "t_1")
