"""News for lists of sessions: who is rung, for what, and what it costs."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat import access
from chat.bus.publisher import HUBS, layer, notify_session_lists
from chat.live import notifier
from chat.live.hub import Hub
from chat.live.socket_queue import SocketQueue
from chat.models import Session, SessionRole, User
from chat.services.people import sharing
from chat.services.sessions import lifecycle
from chat.services.sessions.lifecycle import create_session
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in, person

pytestmark = pytest.mark.usefixtures("no_beacon")
RAIL = {"op": "rail"}


@pytest.fixture(autouse=True)
def _rings_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "NOTIFY_INTERVAL", 0.0)


async def new_sessions(node: TestNode, *owners: User) -> list[Session]:
    """Sessions of which everyone has been notified by now."""
    channel = await layer().new_channel("tape")
    await layer().group_add(HUBS, channel)
    made = [await node.session(owner) for owner in owners]
    told: set[str] = set()
    async with asyncio.timeout(20):
        while {session.pk for session in made} - told:
            told.update((await layer().receive(channel))["sessions"])
    await layer().group_discard(HUBS, channel)
    return made


def rings(socket: Socket) -> int:
    return socket.frames.count(RAIL)


async def test_session_lists_are_notified_of_changes_in_other_sessions(node: TestNode, ana: User, bo: User) -> None:
    """A turn, a new title and sharing notify pages at once, whatever session they show; no one else is notified."""
    node.script(lambda request: ["Yes."])
    session, other = await new_sessions(node, ana, bo)
    async with Socket("/ws/me", ana) as home, Socket(path_of(other, "page"), bo) as elsewhere:
        await home.let_in()
        elsewhere.send(type="sync")
        await elsewhere.next(op="synced")
        heard = rings(home)
        await node.send(session, ana, "Go")
        await node.idle(session)
        await home.until(lambda: rings(home) > heard)
        heard = rings(home)
        await node.do(lifecycle.rename, session=session, author=ana, title="New")
        await home.until(lambda: rings(home) > heard)
        await elsewhere.let_in()
        assert rings(elsewhere) == 0
        await node.do(sharing.share, session=session, author=ana, user=bo, role=SessionRole.VIEWER)
        await elsewhere.until(lambda: rings(elsewhere) > 0)
        heard = rings(elsewhere)
        await node.do(sharing.unshare, session=session, author=ana, user=bo)
        await elsewhere.until(lambda: rings(elsewhere) > heard)


async def test_new_session_is_in_the_lists_at_once(node: TestNode, ana: User) -> None:
    """ui.md: on one's other pages and devices."""
    async with Socket("/ws/me", ana) as home:
        await home.let_in()
        await node.do(create_session, owner=ana)
        await home.next(**RAIL)


async def test_news_for_one_person_reach_all_processes(node: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """ui.md: a pin or what was read on another device."""
    async with Socket("/ws/me", ana) as anas, Socket("/ws/me", bo) as bos:
        for socket in (anas, bos):
            await socket.let_in()
        notify_session_lists(users=[ana.pk])
        await anas.next(**RAIL)
        await bos.let_in()
        assert rings(bos) == 0


async def test_events_clients_get_no_list_notifications(node: TestNode, ana: User) -> None:
    """ui.md: programs have no list."""
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as events, Socket("/ws/me", ana) as home:
        for socket in (events, home):
            await socket.let_in()
        notify_session_lists(sessions=[session.pk])
        await home.next(**RAIL)
        await events.let_in()
        assert all(frame == {"type": "pong"} for frame in events.frames)


async def test_much_at_once_is_one_message(node: TestNode, ana: User) -> None:
    """ui.md: three hundred sessions that stir within a moment are one message to each process."""
    made = await new_sessions(node, ana, ana, ana)
    channel = await layer().new_channel("tape")
    await layer().group_add(HUBS, channel)
    for _ in range(100):
        for session in made:
            notify_session_lists(sessions=[session.pk])
    notify_session_lists(users=[ana.pk])
    heard = await layer().receive(channel)
    assert sorted(heard["sessions"]) == sorted(session.pk for session in made)
    assert heard["people"] == [ana.pk]


async def test_pages_are_not_rung_all_the_time(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """ui.md: what comes while the bell still sounds waits for the next ring."""
    monkeypatch.setattr(notifier, "NOTIFY_INTERVAL", 3600.0)
    session = await node.session(ana)
    rung: asyncio.Queue[str] = asyncio.Queue()

    async def closed(code: int) -> None:
        raise AssertionError(code)

    page = SocketQueue("page", rung.put, closed, user_id=ana.pk)
    bells = notifier.SessionListNotifier(node.threads, lambda: [page])
    bells.notify(sessions=[session.pk])
    assert await asyncio.wait_for(rung.get(), 20) == notifier.NOTICE
    bells.notify(sessions=[session.pk])
    await node.do(access.people_in, [session.pk])  # as long as a ring takes
    assert rung.empty()
    bells.close()


@pytest.mark.both_databases
def test_people_are_found_in_one_query(ana: User, bo: User) -> None:
    """ui.md: of one session as of thirty: its owner and those in it, as long as they may see it."""
    gone, stranger = person("Gone", ana.memberships.get().workspace), person("Stranger")
    made = [create_session(owner=ana) for _ in range(30)]
    for session in made:
        for user in (bo, gone, stranger):
            let_in(session, user, "viewer")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    Session.objects.filter(pk=made[0].pk).update(status=Session.Status.DELETED)
    for some in (made[:1], made):
        with CaptureQueriesContext(connection) as queries:
            assert access.people_in([session.pk for session in some]) == {ana.pk, bo.pk}
        assert len(queries) == 1
