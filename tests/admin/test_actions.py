"""Actions of staff on a session, on one of its messages, and on several sessions of the list."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from chat import downloads
from chat.access import sessions_of
from chat.admin import actions
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.sessions.actions import delete, set_archived
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import action_page, do, form_in, message_page, page_of, said, soup_of
from tests.support.filled import ANSWER, DONE, HI, START, fill, live
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/chat/session/"


@pytest.fixture
def keeper(staff_with: Callable[..., User]) -> Client:
    """A client of a staff user who may only view sessions."""
    return signed_in(staff_with("view_session", name="kim"))


def logged() -> list[str]:
    """Return the messages of the admin's log."""
    return [entry.get_change_message() for entry in LogEntry.objects.filter(action_flag=2).order_by("pk")]


def act(client: Client, action: str, *sessions: Session) -> Any:
    return client.post(LIST, {"action": action, "_selected_action": [each.pk for each in sessions]}, follow=True)


def test_message_is_excluded_removed_and_put_back(admin: Client, mia: User, session: Session) -> None:
    """ADM-01, MSG-09, MSG-11: each action is in the history and in the log, and redirects to the message."""
    rows = fill(session, START, HI, ANSWER, DONE)
    before = [row.pk for row in live(session)]
    assert do(admin, session, "exclude", rows[1])["Location"].endswith(f"?p=1#{rows[1].pk}")
    do(admin, session, "include", rows[1])
    do(admin, session, "remove", rows[1], here="?p=1")
    assert rows[1].pk not in [row.pk for row in live(session)]
    assert "Hi" in said(admin.get(page_of(session), {"removed": ""}))
    do(admin, session, "restore", rows[1])
    assert [row.pk for row in live(session)] == before
    kinds = list(MessageRevision.objects.order_by("pk").values_list("kind", "user"))
    assert kinds == [(kind, mia.pk) for kind in ("exclude", "include", "remove", "restore")]
    name = f"message “{rows[1].pk} (user)”"
    assert logged() == [
        f"Changed In context: excluded for {name}.",
        f"Changed In context: included for {name}.",
        f"Deleted {name}.",
        f"Changed Status: restored for {name}.",
    ]


def test_queued_message_of_another_user_can_only_be_removed(admin: Client, ana: User, session: Session) -> None:
    """ADM-01, RUN-06: staff remove it from the queue. Only its sender can edit it, and it cannot be restored."""
    fill(session, START, HI, DONE)
    held = ChatMessage.objects.create(session=session, role="user", text="Wait", user=ana, status="queued", held=True)
    assert "text" not in form_in(admin.get(message_page(held)), "message_form")
    pages = [admin.get(address).content.decode() for address in (page_of(session), message_page(held))]
    assert all(f"remove {held.pk}" in page for page in pages)
    do(admin, session, "remove", held)
    assert not ChatMessage.objects.queued(session.pk).exists()
    assert MessageRevision.objects.get().kind == "withdraw"
    assert logged() == [f"Deleted message “{held.pk} (user)”."]
    pages = [admin.get(address).content.decode() for address in (f"{page_of(session)}?removed=", message_page(held))]
    assert all(held.pk in page and f"restore {held.pk}" not in page for page in pages)
    do(admin, session, "restore", held)
    assert "This message was removed from the queue." in said(admin.get(page_of(session)))


def test_list_offers_to_edit_the_queued_messages_that_can_be_edited(
    admin: Client, ana: User, mia: User, session: Session
) -> None:
    """ADM-01, RUN-06: only its sender can edit a queued message, as on its own page."""
    fill(session, START, HI, DONE)
    about: dict[str, Any] = {"session": session, "role": "user", "text": "Wait", "status": "queued", "held": True}
    rows = [ChatMessage.objects.create(**about, user=user) for user in (ana, mia)]
    page = soup_of(admin.get(page_of(session)))
    links = [page.select_one(f'.drop-item[href="{message_page(row)}"]') for row in rows]
    assert [link and link.get_text(strip=True) for link in links] == ["Open", "Edit"]


def test_retry_asks_first(admin: Client, session: Session) -> None:
    """ADM-03, RUN-12: the page says what a retry removes, and asks again if the session has changed since."""
    rows = fill(session, START, HI, ANSWER, DONE)
    page = do(admin, session, "retry", rows[1])
    assert "1 message will be removed." in said(page)
    assert SessionRun.objects.get().state == "idle"
    sure = form_in(page, "retry_form")
    Session.objects.update(revision=99)
    assert "Retry from here?" in said(admin.post(action_page(session), sure))
    admin.post(action_page(session), {**sure, "sure": "99"})
    assert [row.pk for row in live(session)] == [rows[0].pk, rows[1].pk]
    assert (SessionRun.objects.get().state, SessionRun.objects.get().wanted) == ("running", 1)


def test_retry_can_be_taken_back(admin: Client, session: Session) -> None:
    """ADM-03, RUN-12: the removed messages are restored together, after the page says what they replace."""
    rows = fill(session, START, HI, ANSWER, DONE, START, {**HI, "sender": "Bo"}, ANSWER, DONE)
    page = do(admin, session, "retry", rows[1])
    assert "3 messages will be removed. Some of them were written by 1 person." in " ".join(said(page).split())
    admin.post(action_page(session), form_in(page, "retry_form"))
    SessionRun.objects.update(state="idle", turn_id="")
    assert "Restore with surrounding messages" in said(admin.get(f"{page_of(session)}?removed="))
    page = do(admin, session, "restore_attempt", rows[5])
    admin.post(action_page(session), form_in(page, "retry_form"))
    assert live(session) == rows
    assert do(admin, session, "restore_attempt", rows[5]).status_code == 302
    assert "no longer exists" in said(admin.get(page_of(session)))


def test_fork_is_the_staff_s_own(admin: Client, mia: User, session: Session) -> None:
    """A fork made in the admin belongs to the staff user who made it, and is made once (ADM-03, RUN-13, MSG-02)."""
    rows = fill(session, START, HI, ANSWER, DONE)
    pressed = {**form_in(admin.get(message_page(rows[2])), "actions"), "action": f"fork {rows[2].pk}"}
    answer = admin.post(action_page(session), pressed)
    assert admin.post(action_page(session), pressed)["Location"] == answer["Location"]
    made = Session.objects.exclude(pk=session.pk).get()
    assert answer["Location"] == page_of(made)
    assert (made.owner, made.parent_session, made.parent_message_id) == (mia, session, rows[2].pk)
    assert len(live(session)) == 4
    assert logged() == ["Forked the session."]


def test_session_is_stopped_archived_and_restored(admin: Client, session: Session) -> None:
    """Staff can stop, archive and restore a session (ADM-03, RUN-07)."""
    fill(session, START, HI)
    SessionRun.objects.update(state="running", turn_id="t_1", wanted=1)
    do(admin, session, "stop")
    assert SessionRun.objects.get().state == "cancelling"
    do(admin, session, "archive")
    assert Session.objects.get().status == "archived"
    do(admin, session, "unarchive")
    assert Session.objects.get().status == "active"
    assert logged() == ["Stopped the agent.", "Archived the session.", "Restored the session from the archive."]


def test_deleted_session_is_brought_back(admin: Client, ana: User, session: Session, keeper: Client) -> None:
    """ADM-03, MSG-11, LIVE-06: staff who may change sessions restore it as it was: archived or not, with its queue."""
    bring_back = ("undelete", "Restore")
    set_archived(session=session, author=session.owner, archived=True)
    delete(user=ana, session_id=session.pk)
    revision = Session.objects.get().revision
    assert bring_back[1] not in said(keeper.get(page_of(session)))
    assert do(keeper, session, bring_back[0]).status_code == 403
    assert do(admin, session, "archive").status_code == 403
    assert bring_back[1] in said(admin.get(page_of(session)))
    do(admin, session, bring_back[0])
    found = Session.objects.get()
    assert (found.status, found.deleted_at, found.revision) == ("archived", None, revision + 1)
    do(admin, session, bring_back[0])
    delete(user=ana, session_id=session.pk)
    assert "Updated 1 session." in said(act(admin, bring_back[0], session))
    assert sessions_of(ana).get().pk == session.pk
    assert logged() == ["Restored the deleted session."] * 2


def test_what_changes_nothing_is_not_written_down(admin: Client, session: Session) -> None:
    """ADM-02: the log has only actual changes."""
    rows = fill(session, START, HI, ANSWER, DONE)
    do(admin, session, "include", rows[1])
    do(admin, session, "restore", rows[1])
    assert logged() == []
    do(admin, session, "exclude", rows[1])
    do(admin, session, "exclude", rows[1])
    assert len(logged()) == 1


def test_repeating_does_nothing(admin: Client, session: Session) -> None:
    """RUN-07: a stop with nothing running, or a repeated action, is not logged."""
    do(admin, session, "stop")
    do(admin, session, "unarchive")
    assert logged() == []


@pytest.mark.parametrize(("action", "state"), [("remove", "running"), ("retry", "running"), ("restore", "running")])
def test_running_turn_is_safe(admin: Client, session: Session, action: str, state: str) -> None:
    """ADM-02: the action is refused with a reason."""
    row = fill(session, START, HI, ANSWER, DONE)[1]
    SessionRun.objects.update(state=state, turn_id="t_1")
    do(admin, session, action, row, sure=str(Session.objects.get().revision))
    assert "The agent is working" in said(admin.get(page_of(session)))
    assert (len(live(session)), logged()) == (4, [])


@pytest.mark.parametrize(
    "action", ["", "explode m_1", "remove", "remove m_none", "remove \0", "fork \ud7ff", "retry x y"]
)
def test_odd_actions_are_refused(admin: Client, session: Session, action: str) -> None:
    """MSG-12: invalid requests never cause a server error."""
    fill(session, START, HI, DONE)
    assert admin.post(action_page(session), {"action": action}).status_code in (302, 400)
    assert len(live(session)) == 3


@pytest.mark.parametrize("here", ["//elsewhere.example", "https://elsewhere.example", "?p=1\r\nX: y", "\0"])
def test_action_never_redirects_to_another_site(admin: Client, session: Session, here: str) -> None:
    """The admin never redirects to another site (LIVE-06)."""
    assert do(admin, session, "archive", here=here)["Location"] == f"{page_of(session)}?p="


@pytest.mark.both_databases
def test_many_sessions_are_archived_at_once(admin: Client, ana: User, session: Session) -> None:
    """ADM-03: sessions that cannot be archived are named and skipped."""
    gone = create_session(owner=ana)
    Session.objects.filter(pk=gone.pk).update(status="deleted")
    page = act(admin, "archive", session, gone, create_session(owner=ana))
    assert "Updated 2 sessions." in said(page)
    page = act(admin, "archive", session, create_session(owner=ana))
    assert "Updated 1 session." in said(page)
    assert "1 session needed no change." in said(page)
    page = act(admin, "archive", session, gone)
    assert "is deleted" in said(page)
    assert Session.objects.filter(status="archived").count() == 3
    act(admin, "unarchive", session)
    assert Session.objects.get(pk=session.pk).status == "active"


def test_many_agents_are_stopped_at_once(admin: Client, ana: User, session: Session) -> None:
    """Staff can stop the agents of several sessions in one action (ADM-03, RUN-07)."""
    fill(session, START, HI)
    SessionRun.objects.update(state="running", turn_id="t_1", wanted=1)
    act(admin, "stop", session)
    assert SessionRun.objects.get().state == "cancelling"


def test_session_is_exported(admin: Client, session: Session) -> None:
    """ADM-03: JSON and Markdown exports work from the session's page and from the list; each one is logged."""
    fill(session, START, HI, ANSWER, DONE)
    page = reverse("admin:chat_session_export", args=[session.pk, "json"])
    document = json.loads(b"".join(admin.get(page)))
    assert [message["id"] for message in document["messages"]] == [row.pk for row in live(session)]
    answer = act(admin, "export_markdown", session)
    assert b"So" in b"".join(answer)
    assert answer["Content-Disposition"] == 'attachment; filename="Plan.md"'
    assert logged() == ["Exported the session as JSON.", "Exported the session as Markdown."]
    assert admin.get(page.replace("json", "exe")).status_code == 404


def test_several_sessions_are_exported_in_one_archive(admin: Client, ana: User, session: Session) -> None:
    """ADM-03: each session in the archive has a file name of its own."""
    twin = create_session(owner=ana, title="Plan " * 40)
    fill(twin, HI)
    packed = b"".join(act(admin, "export_json", session, twin).streaming_content)
    with ZipFile(BytesIO(packed)) as archive:
        assert len(set(archive.namelist())) == 2
        assert {json.loads(archive.read(name))["session"]["id"] for name in archive.namelist()} == {session.pk, twin.pk}


@pytest.mark.both_databases
def test_archive_holds_all_that_were_selected(
    admin: Client, ana: User, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADM-03: an archive can have more sessions than one change; it names sessions deleted in the meantime."""
    monkeypatch.setattr(actions, "MAX_SESSIONS", 1)
    others = [create_session(owner=ana, title="Other") for _ in range(3)]
    answer = act(admin, "export_markdown", session, *others)
    Session.objects.filter(pk=others[0].pk).delete()
    with ZipFile(BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 4
        assert others[0].pk in archive.read("MISSING.txt").decode()
    assert logged() == ["Exported the session as Markdown."] * 3


@pytest.mark.parametrize("lost", ["account", "staff", "messages", "sessions"])
@pytest.mark.parametrize("count", [1, 2])
def test_export_ends_for_someone_who_is_no_staff_any_more(
    staff_with: Callable[..., User],
    ana: User,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    lost: str,
) -> None:
    """LIVE-06, ADM-03: an export of staff who lose the permission ends, without later messages and incomplete."""
    monkeypatch.setattr(downloads, "RECHECKED", 0.0)
    user = staff_with("view_session", "view_chatmessage", name="rob")
    client = signed_in(user)
    sessions = [session, create_session(owner=ana, title="Other")][:count]
    for each in sessions:
        fill(each, START, HI, *[{**ANSWER, "text": "long " * 100_000} for _ in range(4)], DONE)
    pieces = iter(act(client, "export_json", *sessions))
    assert next(pieces)
    take: dict[str, Callable[[], object]] = {
        "account": lambda: User.objects.filter(pk=user.pk).update(is_active=False),
        "staff": lambda: User.objects.filter(pk=user.pk).update(is_staff=False),
        "messages": lambda: user.user_permissions.filter(codename="view_chatmessage").delete(),
        "sessions": lambda: user.user_permissions.filter(codename="view_session").delete(),
    }
    take[lost]()
    ChatMessage.objects.filter(type="text", role="assistant").update(text="too late")
    with pytest.raises(downloads.CutOffError):
        list(pieces)


def test_log_is_shown_with_the_session(admin: Client, session: Session) -> None:
    """ADM-02: the session's page shows its managers who did what."""
    row = fill(session, START, HI, DONE)[1]
    do(admin, session, "exclude", row)
    page = said(admin.get(page_of(session).replace("change", "history")))
    assert "Mia" in page
    assert "In context: excluded" in page
    assert ChatMessage.objects.get(pk=row.pk).include_in_context is False
