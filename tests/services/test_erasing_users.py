"""Erasing users permanently, called through the services."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import Q
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.access import session_for
from chat.errors import NoSuchSession, ServiceError
from chat.models import (
    WITH_DECISIONS,
    ApiToken,
    Attachment,
    ChatMessage,
    Erasure,
    Membership,
    MessageRevision,
    Session,
    SessionRevision,
    SessionRun,
    Share,
    SignInLink,
    Suggestion,
    User,
    Workspace,
)
from chat.projections.context import context
from chat.queries.messages import changes_since
from chat.queries.search import search
from chat.services import batches, import_uploads
from chat.services.batches import Deadline
from chat.services.deletion import requests, users
from chat.services.messages.editing import edit, remove
from chat.services.messages.sending import send_message
from chat.services.messages.suggestions import accept, suggest
from chat.services.people import accounts, api_tokens
from chat.services.people.sharing import invite, share
from chat.services.runs.attempts import attempts_of, restore_attempt
from chat.services.runs.control import retry
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session, rename
from chat.services.sessions.user_state import save_draft
from chat.snapshots import MessageSnapshot
from tests.support.filled import ANSWER, DONE, START, TOOL, fill, live
from tests.support.protocol import check_context
from tests.support.rest import check_rest
from tests.support.testing_node import person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]
SECRET = "xyzzyplugh"


def said_by(user: User, text: str = SECRET) -> dict[str, Any]:
    return {"role": "user", "text": text, "sender": user.sender, "user": user}


def erase(user: User, author: User | None = None) -> Erasure:
    erasure = requests.request_user(user=user, author=author)
    assert requests.carry_out(erasure)
    return erasure


def test_texts_in_sessions_of_others_are_replaced(ana: User, bo: User) -> None:
    """CTX-03, LIVE-01: the user's texts are replaced, messages of others stay in their places, and viewers are notified
    of each change."""
    theirs = create_session(owner=ana, title="Plan")
    rows = fill(theirs, START, said_by(ana, "Hello"), said_by(bo), ANSWER, TOOL, {**ANSWER, "text": "Done"}, DONE)
    Attachment(session=theirs, message=rows[2], user=bo, name=SECRET, kind="text", size=1).file.save(
        "a", ContentFile(b"a")
    )
    edit(session=theirs, author=bo, message_id=rows[2].pk, text=f"New {SECRET}")
    before = Session.objects.get(pk=theirs.pk)
    erasure = erase(bo)
    present = live(theirs)
    assert [(row.text, row.sender, row.user) for row in present if row.role == "user"] == [
        ("Hello", "Ana", ana),
        ("[erased]", "Deleted user", None),
    ]
    assert [row.pk for row in present] == [row.pk for row in rows]
    check_context(present)
    check_rest(theirs)
    assert SECRET not in str(context(present))
    changes = changes_since(theirs.pk, before.revision)
    assert changes is not None
    assert [message.id for message in changes.messages] == [rows[2].pk]
    after = Session.objects.get(pk=theirs.pk)
    assert (after.updated_at, after.revision) == (before.updated_at, before.revision + 1)
    assert not MessageRevision.objects.filter(message=rows[2].pk).exists()
    assert not Attachment.objects.exists()
    assert search(ana, SECRET).messages == []
    assert erasure.counts == {"users": 1, "messages": 1}


def test_messages_that_no_one_can_see_are_deleted(ana: User, bo: User) -> None:
    """MSG-11, RUN-06: removed and queued messages of the user are deleted.

    Other removed messages can still be restored to their places.
    """
    theirs = create_session(owner=ana)
    share(session=theirs, author=ana, user=bo, role="editor")
    rows = fill(theirs, START, said_by(ana, "a"), said_by(bo), said_by(ana, "c"), ANSWER, DONE)
    for row in rows[2:4]:
        remove(session=theirs, author=ana, message_id=row.pk)
    send_message(session=theirs, author=ana, text="Work")
    queued = send_message(session=theirs, author=bo, text=SECRET)
    assert queued.queued
    erase(bo)
    assert not ChatMessage.objects.filter(text__contains=SECRET).exists()
    assert not ChatMessage.objects.filter(pk__in=[queued.id, rows[2].pk]).exists()
    record = MessageRevision.objects.get(message=rows[3].pk, kind="remove")
    assert record.before["after"] == rows[1].pk
    changes = changes_since(theirs.pk, 1)
    assert changes is not None
    assert not changes.is_known


def test_texts_in_an_earlier_attempt_are_replaced(ana: User, bo: User) -> None:
    """RUN-12: an earlier attempt with erased texts can still be restored in its order and place."""
    theirs = create_session(owner=ana)
    rows = fill(theirs, START, said_by(ana, "a"), said_by(bo), ANSWER, DONE)
    retry(session=theirs, author=ana, message_id=rows[2].pk)
    SessionRun.objects.update(state="idle", turn_id="")
    erase(bo)
    attempt = attempts_of(theirs)[0].id
    restore_attempt(session=theirs, author=ana, attempt=attempt)
    assert [row.text for row in live(theirs)] == ["", "a", "[erased]", "So", ""]
    assert SECRET not in str(list(MessageRevision.objects.values_list("before", flat=True)))
    check_context(live(theirs))


def test_their_name_and_suggestions_go_from_messages_of_others(ana: User, bo: User) -> None:
    """MSG-11: edits and accepted suggestions stay without the user's name, and viewers are notified."""
    theirs = create_session(owner=ana)
    share(session=theirs, author=ana, user=bo, role="editor")
    User.objects.filter(pk=bo.pk).update(display_name=SECRET)
    bo.refresh_from_db()
    rows = fill(theirs, START, said_by(ana, "one"), said_by(ana, "two"), ANSWER, DONE)
    edit(session=theirs, author=bo, message_id=rows[3].pk, text="Edited")
    accepted = suggest(session=theirs, author=bo, message_id=rows[1].pk, text="ONE")
    accept(session=theirs, author=ana, suggestion_id=accepted.pk)
    edit(session=theirs, author=ana, message_id=rows[1].pk, text="One")
    suggest(session=theirs, author=bo, message_id=rows[2].pk, text=SECRET)
    ChatMessage.objects.filter(pk=rows[4].pk).update(stopped_by=bo, stopped_by_name=SECRET)
    before = Session.objects.get(pk=theirs.pk).revision
    erase(bo)
    present = live(theirs)
    assert [row.text for row in present[1:4]] == ["One", "two", "Edited"]
    assert (present[3].edited_by, present[3].edited_by_name) == (None, "Deleted user")
    assert (present[4].stopped_by, present[4].stopped_by_name) == (None, "Deleted user")
    assert present[2].open_suggestions == 0
    assert not Suggestion.objects.exists()
    assert SECRET not in str(list(MessageRevision.objects.values_list("before", flat=True)))
    assert SECRET not in str(list(ChatMessage.objects.values_list("edited_by_name", "suggested_by_name", "sender")))
    changes = changes_since(theirs.pk, before)
    assert changes is not None
    assert {message.id for message in changes.messages} == {rows[2].pk, rows[3].pk, rows[4].pk}


def summary_for(user: User) -> dict[str, Any]:
    """Return a summary of a model that the user requested."""
    return {"role": "system", "text": "Ana wants tea.", "sender": user.sender, "user": user, "summarises": 2}


def test_summaries_that_they_requested_keep_their_text(ana: User, bo: User) -> None:
    """CTX-07: a summary replaces the messages before it, so an agent would forget them with its text."""
    theirs = create_session(owner=ana)
    rows = fill(theirs, START, said_by(ana, "Tea"), ANSWER, DONE, START, summary_for(bo), DONE)
    fill(theirs, START, said_by(bo), ANSWER, DONE, turn_id="t_2")
    edit(session=theirs, author=ana, message_id=rows[5].pk, text="Ana wants green tea.")
    copy = fork(session=theirs, author=ana, message_id=rows[6].pk)
    assert users.plan(bo).messages == 1
    assert erase(bo).counts == {"users": 1, "messages": 1}
    for session in (theirs, copy):
        row = ChatMessage.objects.get(session=session, summarises=2)
        assert (row.text, row.sender, row.user) == ("Ana wants green tea.", "Deleted user", None)
        assert "green tea" in str(context(live(session)))
    assert MessageRevision.objects.filter(message=rows[5].pk, kind="edit", user=ana).exists()


def test_mentions_and_the_times_of_a_schedule_go_with_the_text(ana: User, bo: User) -> None:
    """LIVE-07: the mentions of an erased message would have places outside of its text."""
    theirs = create_session(owner=ana)
    schedule = {"cron": "0 9 * * *", "zone": "Asia/Tokyo"}
    kept = {"arguments": {"agent_mentions": [["demo", 0, 5]], "schedule": schedule}, "mentions": [[ana.pk, 6, 4]]}
    row = fill(theirs, said_by(bo, "@demo @Ana") | kept | {"workflow_id": "c_1"})[0]
    erase(bo)
    message = MessageSnapshot.from_row(live(theirs)[0])
    assert (message.id, message.mentions, message.agent_mentions, message.schedule) == (row.pk, (), (), None)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("condition", "index"),
    [
        (Q(edited_by__in=[1]), "message_by_editor"),
        (Q(stopped_by__in=[1]), "message_by_stopper"),
        (Q(answered_by__in=[1]), "message_by_answerer"),
        (WITH_DECISIONS, "message_with_decisions"),
    ],
)
def test_messages_that_name_a_user_are_found_by_indexes(condition: Q, index: str) -> None:
    """Erasing a user reads few messages, and not all of the installation: its statements would exceed their limit."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")  # with few rows, PostgreSQL would use no index
    assert index in ChatMessage.objects.filter(condition).order_by().explain()


def test_copies_of_texts_in_forks_are_replaced(ana: User, bo: User) -> None:
    """RUN-13: the user's texts are also replaced in forks of other users."""
    shared = create_session(owner=bo)
    share(session=shared, author=bo, user=ana, role="viewer")
    rows = fill(shared, START, said_by(bo), ANSWER, DONE)
    made = fork(session=shared, author=ana, message_id=rows[2].pk)
    erase(bo)
    assert not Session.objects.filter(pk=shared.pk).exists()
    assert [row.text for row in live(made)] == ["", "[erased]", "So", ""]


def test_shared_sessions_go_to_the_editor_in_them_longest(ana: User, bo: User, workspace: Workspace) -> None:
    """A shared session goes to its longest-standing active editor, not to viewers or guests.

    Other sessions are erased.
    """
    cy, guest, gone = (person(name, workspace) for name in ("Cy", "Guest", "Gone"))
    Membership.objects.filter(user=guest).update(role="guest")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    shared, read, own = (create_session(owner=bo, title=title) for title in ("Shared", "Read", "Own"))
    for user in (guest, gone, cy, ana):
        Share.objects.create(session=shared, user=user, role="editor")
    Share.objects.create(session=read, user=ana, role="viewer")
    plan = users.plan(bo)
    assert (plan.sessions, plan.handed_over) == (2, [(shared, cy)])
    erase(bo)
    assert list(Session.objects.values_list("pk", "owner")) == [(shared.pk, cy.pk)]
    assert session_for(cy, shared.pk)[1] == "owner"
    assert session_for(ana, shared.pk)[1] == "editor"
    for lost in (read, own):
        with pytest.raises(NoSuchSession):
            session_for(ana, lost.pk)


def test_picture_stays_until_the_deletion_of_the_account_is_committed(
    bo: User, django_capture_on_commit_callbacks: Any
) -> None:
    """OPS-08: if a later account of a list cannot be deleted, all of them keep their pictures."""
    bo.picture.save("picture", ContentFile(b"face"))
    picture = str(bo.picture.name)
    with django_capture_on_commit_callbacks(execute=True):
        users.delete_row(bo)
        assert default_storage.exists(picture)
    assert not default_storage.exists(picture)


def test_account_goes_with_everything_on_it(ana: User, bo: User, django_capture_on_commit_callbacks: Any) -> None:
    """LIVE-06: password, logins, tokens, links, drafts, shares, invitations, picture and uploads are deleted."""
    theirs = create_session(owner=ana)
    share(session=theirs, author=ana, user=bo, role="editor")
    save_draft(session=theirs, user=bo, text=SECRET)
    own = create_session(owner=bo)
    invite(session=own, author=bo, role="viewer")
    _token, secret = api_tokens.create(user=bo, name=SECRET, scope="read", days=0)
    bo.picture.save("picture", ContentFile(b"face"))
    accounts.sign_in_link(user=bo)
    unsent = Attachment(session=theirs, user=bo, name=SECRET, kind="text", size=1)
    unsent.file.save("a", ContentFile(b"a"))
    upload = import_uploads.keep(owner=bo, file=ContentFile(b"[]"))
    client = Client()
    client.force_login(bo)
    erasure = requests.request_user(user=bo, author=None)
    assert client.get("/settings/").status_code == 302  # immediately, however long the rest takes
    assert api_tokens.find_valid(secret) is None
    assert not SignInLink.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        assert requests.carry_out(erasure)
    assert not User.objects.filter(pk=bo.pk).exists()
    assert not ApiToken.objects.exists()
    assert not Share.objects.exists()
    stored = [bo.picture.name, unsent.file.name, f"imports/{erasure.target}/{upload.id}"]
    assert [name for name in stored if default_storage.exists(name or "")] == []
    assert (erasure.target, erasure.finished_at is not None) == (str(bo.pk), True)


@pytest.mark.parametrize(("roles", "heir"), [(["member", "admin", "admin"], 1), (["guest", "member", "member"], 1)])
def test_workspace_keeps_an_owner(bo: User, workspace: Workspace, roles: list[str], heir: int) -> None:
    """UI-20: if its last owner is erased, an admin, or otherwise a member, becomes its owner."""
    Membership.objects.filter(user=bo).update(role="owner")
    away = person("Away", workspace)
    Membership.objects.filter(user=away).update(role="admin")
    User.objects.filter(pk=away.pk).update(is_active=False)
    others = [person(name, workspace) for name in ("Cy", "Di", "Ed")]
    for user, role in zip(others, roles, strict=True):
        Membership.objects.filter(user=user).update(role=role)
    assert users.plan(bo).workspaces == [(workspace, others[heir])]
    erase(bo)
    assert [each.user for each in workspace.memberships.filter(role="owner")] == [others[heir]]
    assert users.plan(others[0]).workspaces == []


@pytest.mark.postgres
def test_owners_who_are_erased_at_once_do_not_count_on_each_other(bo: User, workspace: Workspace) -> None:
    """UI-20: the workspace is locked before its other owners are read."""
    Membership.objects.filter(user=bo).update(role="owner")
    with CaptureQueriesContext(connection) as queries:
        users.close_account(bo, None)
    statements = [each["sql"] for each in queries]
    locked = [i for i, each in enumerate(statements) if 'FROM "chat_workspace"' in each and "FOR UPDATE" in each]
    read = [
        i for i, each in enumerate(statements) if each.startswith("SELECT") and "is_active" in each.split("WHERE")[-1]
    ]
    assert locked[0] < min(i for i in read if '"chat_membership"' in statements[i])


def test_workspace_without_other_members_is_deleted(ana: User, workspace: Workspace) -> None:
    """A workspace without other members is deleted, because its name may identify the user."""
    alone = person("Dee")
    home = Workspace.objects.get(members=alone)
    create_session(owner=alone, workspace=home)
    erase(alone)
    erase(ana)
    assert not Workspace.objects.filter(pk=home.pk).exists()


def test_audit_log_keeps_actions_of_staff_without_their_name(ana: User, bo: User) -> None:
    """ADM-02: the entries of a staff member stay, under one shared account that no one can use."""
    staff = User.objects.create_superuser("clerk-7", display_name="Clerk Seven", email="clerk@example.org")
    session = create_session(owner=ana)
    LogEntry.objects.log_actions(staff.pk, [session], CHANGE, single_object=True)
    root = User.objects.create_superuser("root")
    LogEntry.objects.log_actions(root.pk, [staff], CHANGE, single_object=True)
    added = [{"added": {"name": "membership", "object": f"{staff} · Team"}}]
    LogEntry.objects.log_actions(root.pk, [bo.workspaces.get()], CHANGE, change_message=added, single_object=True)
    erase(staff, root)
    entry = LogEntry.objects.get(object_id=session.pk)
    assert (entry.user.sender, entry.user.is_active, entry.user.is_staff) == ("Deleted user", False, False)
    assert not User.objects.filter(email__contains="clerk").exists()
    for entry in LogEntry.objects.all():
        assert "clerk" not in entry.object_repr
        assert "clerk" not in entry.get_change_message()


def test_titles_made_from_erased_texts_are_cleared(ana: User, bo: User) -> None:
    """A title made from erased texts is cleared. A title that a user chose belongs to the session and stays."""
    own, given = create_session(owner=ana), create_session(owner=ana)
    for session in (own, given):
        share(session=session, author=ana, user=bo, role="editor")
        send_message(session=session, author=bo, text=f"About {SECRET}")
    rename(session=given, author=ana, title="Ours")
    assert Session.objects.get(pk=own.pk).title == f"About {SECRET}"
    erase(bo)
    assert list(Session.objects.order_by("created_at").values_list("title", flat=True)) == ["", "Ours"]
    assert SECRET not in str(Session.objects.get(pk=own.pk).config)
    assert not SessionRevision.objects.filter(user=None, kind="title", session=own).exists()


def test_erasing_continues_where_it_was(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a deadline, erasing continues without repeating work, and the record counts all of it."""
    monkeypatch.setattr(batches, "MAX_ROWS", 2)
    theirs = create_session(owner=ana)
    fill(theirs, START, *[said_by(bo)] * 5, DONE)
    create_session(owner=bo)
    erasure = requests.request_user(user=bo, author=None)
    rounds = 0
    while not requests.carry_out(erasure, Deadline(0)):
        rounds += 1
        assert rounds < 10
    assert rounds > 1
    assert [row.text for row in live(theirs)].count("[erased]") == 5
    assert erasure.counts == {"users": 1, "sessions": 1, "messages": 5}


def test_last_administrator_and_oneself_cannot_be_erased(ana: User) -> None:
    """The last administrator cannot be erased, and users cannot erase themselves."""
    root = User.objects.create_superuser("root")
    for author, code in ((ana, "last_administrator"), (root, "own_account")):
        with pytest.raises(ServiceError) as refused:
            requests.request_user(user=root, author=author)
        assert refused.value.code == code
    root.refresh_from_db()
    assert root.is_active
