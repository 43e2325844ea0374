"""Complete sockets: repeated sends, slow readers, and commands beside a long sync."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, OperationalError

from agents.messages import Json
from agents.providers.scripted import Gate
from chat import consumers
from chat.live import event_json, sync
from chat.live import feed as feeds
from chat.live import hub as hubs
from chat.live import socket_queue as socket_queues
from chat.live.subscriber import Protocol
from chat.models import ChatMessage, Session, User
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import SocketViewer

PROTOCOLS = (EventsClient, PageClient)


async def test_resent_message_is_the_first_one(node: TestNode, ana: User) -> None:
    """LIVE-04, MSG-02: a send whose answer was lost is repeated with its key over a new connection, and adds
    nothing."""
    node.script([["Yes."]])
    session = await node.session(ana)
    command = {"type": "send", "text": "Once", "key": "k1", "ref": "r1"}
    async with Socket(path_of(session), ana) as socket:
        socket.send(**command)
        first = await socket.next(ref="r1")
    async with Socket(path_of(session, "page"), ana) as socket:
        socket.send(**command)
        again = await socket.next(ref="r1")
        other = await socket.ask(type="send", text="Once", key="k2")
    turn = {"turn_id": first["turn_id"], "sequence": 2}
    assert first == {"type": "ack", "ref": "r1", "id": first["id"], "queued": False, "repeated": False, **turn}
    assert again == {**first, "repeated": True}
    assert other["id"] != first["id"]
    await node.idle(session)
    assert await node.do(ChatMessage.objects.filter(session=session, text="Once").count) == 2


async def refusal_after(error: Exception, node: TestNode, user: User, monkeypatch: pytest.MonkeyPatch) -> Json:
    """Send a command that fails with this error, and return its refusal."""

    def fail(*_: object) -> None:
        raise error

    session = await node.session(user)
    async with Socket(path_of(session), user) as socket:
        await socket.let_in()
        monkeypatch.setattr(consumers, "execute", fail)
        return await socket.ask(type="send", text="Hello", key="k1")


async def test_command_in_an_outage_is_one_line_in_the_log(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-03: an outage is not an error of Parley, and each client repeats its commands."""
    refused = await refusal_after(OperationalError("it is away"), node, ana, monkeypatch)
    assert (refused["type"], refused["code"]) == ("refused", "unavailable")
    [line] = [record for record in caplog.records if record.name == "chat.consumers"]
    assert (line.levelname, line.exc_info) == ("WARNING", None)


async def test_command_that_the_database_refuses_is_an_error_of_parley(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-03: as over REST. Clients repeat a command that is refused as `unavailable`, and this one fails each time."""
    refused = await refusal_after(IntegrityError("UNIQUE constraint failed"), node, ana, monkeypatch)
    assert (refused["type"], refused["code"]) == ("refused", "internal")
    [line] = [record for record in caplog.records if record.name == "chat.consumers"]
    assert line.levelname == "ERROR"
    assert line.exc_info
    caplog.clear()  # this error is expected


async def test_frame_does_not_wait_for_the_thread_of_the_views(node: TestNode, ana: User) -> None:
    """LIVE-02: a slow synchronous view does not delay the frames of sockets."""
    node.script([["Yes."]])
    session = await node.session(ana)
    is_busy, is_done = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def take_its_time() -> None:
        loop.call_soon_threadsafe(is_busy.set)
        is_done.wait()

    async with Socket(path_of(session), ana) as socket:
        await socket.let_in()
        view = asyncio.create_task(sync_to_async(take_its_time)())
        await is_busy.wait()
        try:
            await socket.let_in()
            assert (await socket.ask(type="send", text="Hello"))["type"] == "ack"
            await node.idle(session)
        finally:
            is_done.set()
            await view


async def test_key_of_another_person_is_refused(node: TestNode, ana: User, bo: User) -> None:
    """MSG-02, LIVE-04: a key belongs to the user who used it, and returns no message of another user."""
    node.script(lambda request: ["Yes."])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    async with Socket(path_of(session), ana) as anas, Socket(path_of(session), bo) as bos:
        assert (await anas.ask(type="send", text="Mine", key="k"))["type"] == "ack"
        assert (await bos.ask(type="send", text="Mine", key="k"))["code"] == "key_taken"
    await node.idle(session)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_slow_viewer_loses_frames_and_catches_up(
    node: TestNode, ana: User, protocol: type[EventsClient | PageClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: a viewer who falls behind is asked to resync, and has the same state in the end."""
    monkeypatch.setattr(socket_queues, "MAX_FRAMES", 10)
    gates = [Gate() for _ in range(12)]
    node.script([[step for number, gate in enumerate(gates) for step in (f"{number} *w*\n\n", gate)], ["Bye"]])
    session = await node.session(ana)
    slow: SocketViewer[EventsClient | PageClient] = await SocketViewer(protocol(), session, ana).open()
    quick: SocketViewer[EventsClient | PageClient] = await SocketViewer(protocol(), session, ana).open()
    for viewer in (slow, quick):
        await viewer.until(lambda: viewer.client.caught_up)  # noqa: B023  # waits within the round
    slow.socket.flowing.clear()
    await node.send(session, ana, "Go")
    for gate in gates:
        await gate.reached()
        known = len(quick.frames)
        gate.open()
        await quick.until(lambda: len(quick.frames) > known)  # noqa: B023  # waits within the round
    await node.send(session, ana, "More")
    await node.idle(session)
    slow.socket.flowing.set()
    truth = await node.snapshot(session)
    for viewer in (slow, quick):
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
        if isinstance(viewer.client, PageClient):
            viewer.client.drawn.clear()
        assert_shows(viewer.client, truth)
        await viewer.leave()
    resync = {"type": "resync"} if protocol is EventsClient else {"op": "resync"}
    assert (resync in slow.frames, resync in quick.frames) == (True, False)


async def test_stop_does_not_wait_for_a_sync(node: TestNode, ana: User) -> None:
    """RUN-07: a client that does not read its sync can still stop the agent."""
    gate = Gate()
    node.script([["Text", gate]])
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        await socket.ask(type="send", text="Go")
        await gate.reached()
        socket.flowing.clear()
        for _ in range(10):
            socket.send(type="sync")
        socket.send(type="cancel")
        await node.idle(session)
        socket.flowing.set()
    assert [status for _, status, _ in await node.shown(session)][-1] == "interrupted"


async def test_syncs_that_wait_are_answered_by_the_last(node: TestNode, ana: User) -> None:
    """LIVE-02: a client that requests many syncs without reading gets only a few answers, and the last has the present
    state."""
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        socket.flowing.clear()
        for _ in range(50):
            socket.send(type="sync", since=0)
        socket.send(type="rename", title="Done")
        await node.until(lambda: Session.objects.get(pk=session.pk).title == "Done")
        socket.flowing.set()
        await socket.until(lambda: any((frame.get("session") or {}).get("title") == "Done" for frame in socket.frames))
        assert len([frame for frame in socket.frames if frame["type"] == "changes"]) <= 3


async def test_long_history_comes_in_parts(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a long history is sent in parts, bounded by messages and characters.

    A client that loses a part requests it again.
    """
    monkeypatch.setattr(event_json, "MAX_MESSAGES", 4)
    monkeypatch.setattr(event_json, "MAX_CHARS", 1000)
    node.script(lambda request: ["y" * 700])
    session = await node.session(ana)
    for _ in range(4):
        await node.send(session, ana, "x" * 700)
        await node.idle(session)
    truth = await node.snapshot(session)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    parts = [frame for frame in viewer.frames if frame["type"] == "changes"]
    assert [frame["part"] for frame in parts] == list(range(len(parts)))
    assert len(parts) >= 8
    assert all(len(frame["messages"]) <= 4 for frame in parts)
    broken = EventsClient()
    broken.sync()
    for frame in (*parts[:3], *parts[4:]):
        broken.receive(frame)
    assert (broken.wants_sync, broken.revision) == (True, 0)
    await viewer.leave()


async def test_page_that_missed_too_much_reloads(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a page that lacks too many messages reloads instead of getting each of them."""
    monkeypatch.setattr(sync, "MAX_CHANGES", 3)
    node.script([["Yes"]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    async with Socket(path_of(session, "page"), ana) as page:
        page.send(type="sync", since=0)
        await page.next(op="reload")
        assert page.frames[0] == {"op": "reload"}
        assert not {"syncing", "synced"} & {frame["op"] for frame in page.frames}


async def test_closed_sockets_leave_nothing_running(node: TestNode, ana: User) -> None:
    """RUN-14: many tabs that connect, sync and leave leave no task."""
    session = await node.session(ana)
    before = asyncio.all_tasks()
    for number in range(60):
        socket = Socket(path_of(session, "page" if number % 2 else "events"), ana)
        await socket.open()
        for _ in range(3):
            socket.send(type="sync")
        await socket.leave()
    async with asyncio.timeout(20):
        while left := {task for task in asyncio.all_tasks() - before if not task.done()}:
            await asyncio.wait(left)


async def test_server_stops_quietly_under_viewers_who_catch_up(node: TestNode, ana: User) -> None:
    """LIVE-02: a server that stops closes its viewers with 1012, even if they do not read, without a logged error."""
    session = await node.session(ana)
    sockets = [await Socket(path_of(session, "page" if number % 2 else "events"), ana).open() for number in range(6)]
    for socket in sockets:
        await socket.let_in()
        socket.flowing.clear()
        for _ in range(5):
            socket.send(type="sync")
        socket.send(type="ping")
    await node.restart()
    for socket in sockets:
        assert await socket.closed() == 1012
        await socket.leave()


async def test_first_viewer_waits_for_the_subscription_only(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: the first viewer's sync is answered when the subscription is ready, not when its timeout ends."""
    monkeypatch.setattr(feeds, "SUBSCRIBE_TIMEOUT", 3600.0)
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        socket.send(type="sync")
        await socket.next(type="changes")


async def test_sockets_of_one_user_catch_up_a_few_at_a_time(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: the number of parallel syncs of a user is bounded, because each answer is in memory until the client
    reads it."""
    monkeypatch.setattr(hubs, "SYNCS_PER_USER", 2)
    reads: list[User] = []
    read = sync.read

    def counted(protocol: Protocol, language: str, user: User, *rest: Any) -> sync.Answer:
        reads.append(user)
        return read(protocol, language, user, *rest)

    monkeypatch.setattr(sync, "read", counted)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    sockets = [await Socket(path_of(session), ana).open() for _ in range(5)]
    for socket in sockets:
        socket.flowing.clear()
        socket.send(type="sync")
    await node.until(lambda: reads.count(ana) >= 2)
    async with Socket(path_of(session), bo) as other:
        other.send(type="sync")
        await other.next(type="changes")
        assert reads.count(ana) == 2
    for socket in sockets:
        await socket.leave()
