"""Notifications for session lists: which users get them, for which changes, and at what cost."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.bus.publisher import HUBS, layer, notify_session_lists
from chat.live import notifier
from chat.live.hub import Hub
from chat.live.socket_queue import SocketQueue
from chat.models import Session, SessionRole, User, UserSessionState, Workspace
from chat.queries.session_people import people_in
from chat.runner import runtime
from chat.services.messages.sending import send_message
from chat.services.people import sharing
from chat.services.sessions import lifecycle, user_state
from chat.services.sessions.lifecycle import create_session
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in, person

pytestmark = pytest.mark.usefixtures("no_beacon")
NOTICE = {"op": "rail"}
OWN_NOTICE = {"op": "rail", "own": True}


@pytest.fixture(autouse=True)
def _rings_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "NOTIFY_INTERVAL", 0.0)


async def new_sessions(node: TestNode, *owners: User) -> list[Session]:
    """Return new sessions whose notifications have been delivered."""
    channel = await layer().new_channel("tape")
    await layer().group_add(HUBS, channel)
    made = [await node.session(owner) for owner in owners]
    notified: set[str] = set()
    async with asyncio.timeout(20):
        while {session.pk for session in made} - notified:
            notified.update((await layer().receive(channel))["sessions"])
    await layer().group_discard(HUBS, channel)
    return made


def rings(socket: Socket) -> int:
    return socket.frames.count(NOTICE)


def own_rings(socket: Socket) -> int:
    return socket.frames.count(OWN_NOTICE)


async def test_session_lists_are_notified_of_changes_in_other_sessions(node: TestNode, ana: User, bo: User) -> None:
    """A turn, a new title and sharing notify the users' pages immediately, whatever session they show, and no
    others."""
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


async def test_notices_to_many_pages_are_spread(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that waits for its notification gets one for all changes until then."""
    monkeypatch.setattr(notifier, "AT_ONCE", 1)
    monkeypatch.setattr(notifier, "PAGES_PER_SECOND", 1e-9)
    async with Socket("/ws/me", ana) as one, Socket("/ws/me", ana) as other:
        for socket in (one, other):
            await socket.let_in()
        list_notifier = runtime.hub()._list_notifier
        for _ in range(2):
            list_notifier.notify(people=[ana.pk])
            await node.until(lambda: list_notifier._notifying is None)
        assert len(list_notifier._scheduled) == 2
        assert rings(one) == rings(other) == 0
        for page in list(list_notifier._scheduled):
            list_notifier._scheduled[page].cancel()
            list_notifier._notify_page(page)
        for socket in (one, other):
            await socket.next(**NOTICE)
            await socket.let_in()
            assert rings(socket) == 1


async def test_new_session_is_in_the_lists_at_once(node: TestNode, ana: User) -> None:
    """A new session appears immediately on the user's other pages and devices."""
    async with Socket("/ws/me", ana) as home:
        await home.let_in()
        await node.do(create_session, owner=ana)
        await home.next(**NOTICE)


async def test_news_for_one_person_reach_all_processes(node: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """A pin or a read mark on another device reaches all processes."""
    async with Socket("/ws/me", ana) as anas, Socket("/ws/me", bo) as bos:
        for socket in (anas, bos):
            await socket.let_in()
        notify_session_lists(users=[ana.pk])
        await anas.next(**NOTICE)
        await bos.let_in()
        assert rings(bos) == 0


async def test_events_clients_get_no_list_notifications(node: TestNode, ana: User) -> None:
    """Clients of events have no session list and get no notifications for it."""
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as events, Socket("/ws/me", ana) as home:
        for socket in (events, home):
            await socket.let_in()
        notify_session_lists(sessions=[session.pk])
        await home.next(**NOTICE)
        await events.let_in()
        assert all(frame == {"type": "pong"} for frame in events.frames)


async def test_much_at_once_is_one_message(node: TestNode, ana: User) -> None:
    """Three hundred changes of sessions within a moment give one message to each process."""
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
    """Changes soon after a notification wait for the next one."""
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
    await node.do(people_in, [session.pk])  # the time between two notifications
    assert rung.empty()
    bells.close()


@pytest.mark.both_databases
def test_people_are_found_in_one_query(ana: User, bo: User) -> None:
    """One query finds the users of one or of thirty sessions: owners, and members with access."""
    gone, stranger = person("Gone", ana.memberships.get().workspace), person("Stranger")
    made = [create_session(owner=ana) for _ in range(30)]
    for session in made:
        for user in (bo, gone, stranger):
            let_in(session, user, "viewer")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    Session.objects.filter(pk=made[0].pk).update(status=Session.Status.DELETED)
    for some in (made[:1], made):
        with CaptureQueriesContext(connection) as queries:
            assert people_in([session.pk for session in some]) == {ana.pk, bo.pk}
        assert len(queries) == 1


async def test_pages_on_the_changed_session_learn_that_nothing_else_is_new(node: TestNode, ana: User, bo: User) -> None:
    """No page loads its list for a change of the session that it shows, unless something else is new for its
    user.
    In a session of a thousand users, each turn would load a thousand lists.
    """
    session, other = await new_sessions(node, ana, ana)
    await node.do(sharing.share, session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    async with Socket(path_of(session, "page"), bo) as here, Socket(path_of(other, "page"), ana) as elsewhere:
        for socket in (here, elsewhere):
            socket.send(type="sync")
            await socket.next(op="synced")
        heard = rings(here), rings(elsewhere)
        notify_session_lists(sessions=[session.pk])
        await here.next(**OWN_NOTICE)
        await elsewhere.until(lambda: rings(elsewhere) > heard[1])
        assert (rings(here), own_rings(elsewhere)) == (heard[0], 0)
        own = own_rings(here)
        notify_session_lists(users=[bo.pk], read_in=session.pk)
        await here.until(lambda: own_rings(here) > own)
        for more in ({"users": [bo.pk]}, {"users": [bo.pk], "read_in": other.pk}):
            heard = rings(here), own_rings(here)
            notify_session_lists(sessions=[session.pk])
            notify_session_lists(**more)
            await here.until(lambda heard=heard: rings(here) > heard[0])  # type: ignore[misc]  # see above


async def test_delayed_notice_covers_all_changes_until_it_is_sent(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that waits for its notification loads its list if any change until then requires it."""
    session = await node.session(ana)
    async with Socket(path_of(session, "page"), ana) as page:
        await page.let_in()
        monkeypatch.setattr(notifier, "AT_ONCE", 0)
        monkeypatch.setattr(notifier, "PAGES_PER_SECOND", 1e-9)
        list_notifier = runtime.hub()._list_notifier
        for people, readers, notice in (
            ([], [(ana.pk, session.pk)], notifier.OWN_NOTICE),
            ([ana.pk], [], notifier.NOTICE),
            ([], [(ana.pk, session.pk)], notifier.NOTICE),
        ):
            list_notifier.notify(people=people, readers=readers)
            await node.until(lambda: list_notifier._notifying is None)
            assert list(list_notifier._notices.values()) == [notice]
        list_notifier.close()


async def test_read_marks_are_stored_together(node: TestNode, ana: User, bo: User, workspace: Workspace) -> None:
    """LIVE-01: the marks of thirty users need as many statements as one. Each user's last mark counts."""
    node.script(lambda request: ["Yes."])
    session = await node.session(ana)
    readers = [await node.do(person, f"R{number}", workspace) for number in range(30)]
    for reader in readers:
        await node.do(sharing.share, session=session, author=ana, user=reader, role=SessionRole.VIEWER)
    await node.send(session, ana, "Go")
    await node.idle(session)
    revision = (await node.do(Session.objects.get, pk=session.pk)).revision

    def counted(users: list[User], revision: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            user_state.mark_all_read(
                session_id=session.pk, revisions=dict.fromkeys([each.pk for each in users], revision)
            )
        return len(queries)

    few = await node.do(counted, readers[:1], revision - 1)
    assert await node.do(counted, readers[1:], revision - 1) == few
    async with Socket(path_of(session), readers[0]) as one, Socket(path_of(session), readers[1]) as two:
        answers = await asyncio.gather(
            one.ask(type="read", revision=revision - 1), one.ask(type="read", revision=10**9),
            two.ask(type="read", revision=revision),
        )  # fmt: skip
    assert {each["type"] for each in answers} == {"ack"}
    marks = UserSessionState.objects.filter(session=session, user__in=readers[:3]).order_by("user")
    assert await node.do(lambda: list(marks.values_list("read_revision", flat=True))) == [
        revision,
        revision,
        revision - 1,
    ]


async def test_read_mark_is_stored_when_the_process_stops(node: TestNode, ana: User) -> None:
    """LIVE-01: a stopping process stores the marks without waiting for the interval."""
    node.script(lambda request: ["Yes."])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    revision = (await node.do(Session.objects.get, pk=session.pk)).revision
    async with Socket(path_of(session), ana) as socket:
        await socket.let_in()
        socket.send(type="read", revision=revision)
        await socket.let_in()
        await node.stop()
    assert await node.do(lambda: UserSessionState.objects.get(session=session, user=ana).read_revision) == revision
    await node.start()


@pytest.mark.django_db
def test_marks_together_are_those_of_each_alone(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: marks stored together give the same rows and notifications as single ones, for a user's own and for
    other messages."""
    session = create_session(owner=ana)
    let_in(session, bo, SessionRole.EDITOR)
    stranger = person("Cy")
    notified: list[tuple[list[int], str]] = []
    monkeypatch.setattr(
        user_state, "notify_session_lists", lambda users, read_in: notified.append((list(users), read_in))
    )
    said = send_message(session=session, author=ana, text="Hi")
    session.refresh_from_db()
    revisions = {ana.pk: 10**9, bo.pk: 10**9, stranger.pk: 5, 10**6: 5}
    user_state.mark_all_read(session_id=session.pk, revisions=revisions)
    user_state.mark_all_read(session_id=session.pk, revisions={bo.pk: 1})
    user_state.mark_all_read(session_id="s_unknown", revisions={bo.pk: 1})
    found = UserSessionState.objects.filter(session=session).values_list("user", "read_revision")
    assert dict(found) == {ana.pk: session.revision, bo.pk: session.revision}
    assert notified == [([bo.pk], session.pk)]
    assert said.id
