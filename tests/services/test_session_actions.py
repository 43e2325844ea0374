"""Actions on one or many sessions: archive, delete, restore and leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db.models import F

from agents.providers.scripted import Gate
from chat.access import roles, session_for, sessions_of
from chat.errors import Forbidden, NoSuchSession, ServiceError
from chat.models import ChatMessage, RunState, Session, SessionRun, Share, User
from chat.queries import session_list
from chat.queries.session_list import Listed
from chat.services.messages.sending import send_message, send_now
from chat.services.people import sharing
from chat.services.sessions import actions, user_state
from chat.services.sessions.actions import ActionResult, SessionAction, apply_action
from chat.services.sessions.lifecycle import create_session, rename, set_system_prompt
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User, bo: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    let_in(session, bo, "editor")
    return session


def titles(user: User, *, archived: bool = False) -> list[str]:
    return [row.title for group in session_list.listing(user, UTC, archived=archived).groups for row in group.rows]


def test_changing_a_session_itself_keeps_its_place_in_the_list(session: Session, ana: User) -> None:
    """A new title or prompt does not move a session in the list, which is ordered by the last message."""
    create_session(owner=ana, title="Newer")
    before = Session.objects.get(pk=session.pk).updated_at
    rename(session=session, author=ana, title="Tidy")
    set_system_prompt(session=session, author=ana, system_prompt="Be brief.")
    assert titles(ana) == ["Newer", "Tidy"]
    assert Session.objects.get(pk=session.pk).updated_at == before
    send_message(session=session, author=ana, text="Hi")
    assert titles(ana) == ["Tidy", "Newer"]


def test_archived_session_leaves_the_list_and_can_be_restored(session: Session, ana: User, bo: User) -> None:
    before = Session.objects.get().updated_at
    apply_action(user=ana, action=SessionAction.ARCHIVE, session_ids=[session.pk])
    assert [titles(ana), titles(ana, archived=True), titles(bo, archived=True)] == [[], ["Plan"], ["Plan"]]
    with pytest.raises(ServiceError, match="archived"):
        send_message(session=session, author=ana, text="Hi")
    apply_action(user=ana, action=SessionAction.RESTORE, session_ids=[session.pk])
    assert (titles(ana), Session.objects.get().updated_at) == (["Plan"], before)


def test_archiving_does_not_restore_a_deleted_session(session: Session, ana: User) -> None:
    """LIVE-06: archiving a session that was deleted at the same moment does not restore it."""
    looked_at = Session.objects.get()
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    with pytest.raises(NoSuchSession):
        actions._change(looked_at, status=Session.Status.ARCHIVED)
    assert Session.objects.get().status == Session.Status.DELETED


def test_deleted_session_is_gone_for_all_users(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: lists, pages, sockets, commands and invitation links do not find a deleted session."""
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    for user in (ana, bo):
        assert not sessions_of(user).exists()
        with pytest.raises(NoSuchSession):
            session_for(user, session.pk)
    assert roles([(ana.pk, session.pk), (bo.pk, session.pk)]) == {}
    with pytest.raises(NoSuchSession):
        send_message(session=session, author=ana, text="Hi")
    with pytest.raises(ServiceError, match="has expired"):
        sharing.accept(token=token, user=bo)


@pytest.mark.parametrize("archived", [False, True])
def test_undelete_brings_all_of_it_back(session: Session, ana: User, bo: User, archived: bool) -> None:
    send_message(session=session, author=ana, text="Hi")
    user_state.pin(session=session, user=bo)
    if archived:
        apply_action(user=ana, action=SessionAction.ARCHIVE, session_ids=[session.pk])
    before = [titles(user, archived=archived) for user in (ana, bo)]
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    apply_action(user=ana, action=SessionAction.UNDELETE, session_ids=[session.pk])
    assert [titles(user, archived=archived) for user in (ana, bo)] == before == [["Plan"], ["Plan"]]
    assert Session.objects.get().deleted_at is None
    assert ChatMessage.objects.filter(text="Hi").exists()
    assert user_state.state_of(bo, session).pinned_at is not None


def test_only_its_owner_brings_a_session_back(session: Session, ana: User, bo: User) -> None:
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    with pytest.raises(NoSuchSession):
        apply_action(user=bo, action=SessionAction.UNDELETE, session_ids=[session.pk])


async def test_deleting_stops_the_turn_and_closes_open_pages(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-06, RUN-06, RUN-07: deleting stops the turn and closes pages.

    When the session is restored, queued messages are held, and are answered once a user sends them.
    """
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    async with Socket(path_of(session), bo) as socket:
        socket.send(type="sync")
        await socket.let_in()
        await node.send(session, ana, "Go")
        await gate.reached()
        await node.send(session, bo, "And then")
        await node.do(apply_action, user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
        assert await socket.closed() == 4403
    await node.idle(session)
    async with Socket(path_of(session), bo) as socket:
        assert await socket.closed() == 4404
    assert [row[1:] for row in await node.shown(session)][-1] == ("queued", "And then")
    await node.do(apply_action, user=ana, action=SessionAction.UNDELETE, session_ids=[session.pk])
    async with Socket(path_of(session), bo) as socket:
        await socket.let_in()
    held = await node.do(ChatMessage.objects.get, text="And then")
    assert (held.status, held.held) == ("queued", True)
    await node.do(send_now, session=session, author=bo, message_id=held.pk)
    await node.idle(session)
    assert ("text", "complete", "Two") in await node.shown(session)


@pytest.mark.parametrize("is_over", [True, False])
def test_restored_session_holds_its_queued_messages(session: Session, ana: User, is_over: bool) -> None:
    """RUN-06: a restored session starts no turn by itself, whether or not its stopped turn has already ended."""
    send_message(session=session, author=ana, text="Go")
    send_message(session=session, author=ana, text="And then")
    before = Session.objects.get().updated_at
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    assert SessionRun.objects.get().state == RunState.CANCELLING
    if is_over:
        SessionRun.objects.update(state=RunState.IDLE, turn_id="", done=F("wanted"))  # as the runner sets it
    apply_action(user=ana, action=SessionAction.UNDELETE, session_ids=[session.pk])
    run = SessionRun.objects.get()
    assert (run.state, run.wanted > run.done) == ((RunState.IDLE, False) if is_over else (RunState.CANCELLING, True))
    assert list(ChatMessage.objects.filter(status="queued").values_list("text", "held")) == [("And then", True)]
    assert Session.objects.get().updated_at == before


def test_restored_session_takes_messages_for_no_agent(session: Session, ana: User, bo: User) -> None:
    """RUN-17: queued messages that no agent has to answer are in the conversation again after the restore."""
    send_message(session=session, author=ana, text="@agent Go")
    Session.objects.update(replies=Session.Replies.MENTIONS, replies_auto=False)
    send_message(session=session, author=bo, text="Well done, Ana")
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    SessionRun.objects.update(state=RunState.IDLE, turn_id="", done=F("wanted"))  # as the runner sets it
    apply_action(user=ana, action=SessionAction.UNDELETE, session_ids=[session.pk])
    assert ChatMessage.objects.get(text="Well done, Ana").status == "complete"
    assert SessionRun.objects.get().state == RunState.IDLE


def test_leaving_gives_up_one_s_share(session: Session, ana: User, bo: User) -> None:
    apply_action(user=bo, action=SessionAction.LEAVE, session_ids=[session.pk])
    assert (titles(bo), titles(ana), Share.objects.count()) == ([], ["Plan"], 0)
    with pytest.raises(ServiceError, match="own this session"):
        apply_action(user=ana, action=SessionAction.LEAVE, session_ids=[session.pk])


def test_bulk_actions_change_only_own_sessions(session: Session, ana: User, bo: User) -> None:
    own = create_session(owner=bo, title="Own")
    done = apply_action(user=bo, action=SessionAction.ARCHIVE, session_ids=[session.pk, own.pk, own.pk])
    assert done == ActionResult([own.pk], 1)
    assert (titles(bo), titles(bo, archived=True)) == (["Plan"], ["Own"])
    with pytest.raises(Forbidden):
        apply_action(user=bo, action=SessionAction.DELETE, session_ids=[session.pk])


def row(title: str, days: float, *, pinned: bool = False) -> Listed:
    at = NOW - timedelta(days=days)
    return Listed(title, title, None, 1, "Team", False, pinned, False, False, False, at)


NOW = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)
ROWS = [
    row("p", 99, pinned=True),
    row("a", 0.01),
    row("b", 0.5),
    row("c", 1.5),
    row("d", 7),
    row("e", 8),
    row("f", 30),
    row("g", 31),
]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0, {"pinned": "p", "today": "a", "yesterday": "b", "week": "cd", "month": "ef", "older": "g"}),
        (12, {"pinned": "p", "today": "ab", "yesterday": "c", "week": "d", "month": "ef", "older": "g"}),
    ],
)
def test_days_are_in_the_reader_s_time_zone(hours: int, expected: dict[str, str]) -> None:
    groups = session_list.grouped(ROWS, NOW, timezone(timedelta(hours=hours)))
    assert {group.key: "".join(row.title for row in group.rows) for group in groups} == expected


def test_a_long_list_is_shown_in_parts(ana: User) -> None:
    for number in range(session_list.PAGE + 1):
        create_session(owner=ana, title=f"{number}")
    first = session_list.listing(ana, UTC)
    assert (sum(len(group.rows) for group in first.groups), first.more) == (session_list.PAGE, session_list.PAGE * 3)
    assert session_list.listing(ana, UTC, shown=first.more).more == 0


def test_undelete_holds_what_was_queued_below(session: Session, ana: User) -> None:
    """RUN-06, RUN-18: queued messages in restored subsessions are held, too."""
    child = create_session(owner=ana, title="Task")
    Session.objects.filter(pk=child.pk).update(caller_session=session)
    SessionRun.objects.filter(pk=child.pk).update(state=RunState.RUNNING, turn_id="t_1")
    send_message(session=child, author=ana, text="And this")
    actions.delete(user=ana, session_id=session.pk)
    SessionRun.objects.filter(pk=child.pk).update(state=RunState.IDLE, turn_id="")
    actions.undelete(user=ana, session_id=session.pk)
    row = ChatMessage.objects.get(text="And this")
    assert (row.status, row.held) == ("queued", True)
    assert SessionRun.objects.get(pk=child.pk).state == RunState.IDLE
