"""Erasing sessions permanently, called through the services."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from chat.access import session_for
from chat.admin import audit_log
from chat.errors import NoSuchSession
from chat.models import (
    Attachment,
    ChatMessage,
    Erasure,
    Invitation,
    Membership,
    MessageRevision,
    ModelRequest,
    Session,
    SessionRun,
    Share,
    User,
    UserSessionState,
)
from chat.queries import attachments
from chat.runs import lease
from chat.services import batches
from chat.services.batches import Deadline, Pacer
from chat.services.deletion import overwriting, requests, sessions
from chat.services.maintenance import jobs
from chat.services.messages.editing import edit
from chat.services.messages.sending import send_message
from chat.services.people.sharing import invite, share
from chat.services.runs.recording import Job, Outcome, record
from chat.services.sessions.actions import undelete
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session, rename, set_system_prompt
from chat.services.sessions.user_state import save_draft
from tests.support.filled import ANSWER, DONE, HI, START, fill, live

SECRET = "xyzzyplugh"


@pytest.fixture
def session(ana: User, bo: User, own_files: None) -> Session:
    """A session with every kind of row; all of them contain SECRET."""
    made = create_session(owner=ana, title=f"Old {SECRET}", system_prompt=SECRET)
    rows = fill(made, START, {**HI, "text": SECRET}, {**ANSWER, "text": SECRET, "response_id": "r_1"}, DONE)
    share(session=made, author=ana, user=bo, role="editor")
    invite(session=made, author=ana, role="viewer")
    rename(session=made, author=ana, title=f"New {SECRET}")
    set_system_prompt(session=made, author=ana, system_prompt=f"New {SECRET}")
    edit(session=made, author=bo, message_id=rows[2].pk, text=f"New {SECRET}")
    save_draft(session=made, user=bo, text=SECRET)
    ModelRequest.objects.create(response_id="r_1", session=made, revision=1, rows=[[rows[1].pk, 1]])
    for message in (rows[1], None):
        file = Attachment(session=made, message=message, user=ana, name=SECRET, kind="text", size=1, text=SECRET)
        file.file.save("a", ContentFile(SECRET.encode()))
    made.refresh_from_db()
    return made


def tables_with_rows_of(session: Session) -> set[str]:
    """Return the models with a row that refers to the session or to one of its messages."""
    found = set()
    for model in apps.get_app_config("chat").get_models():
        for field in model._meta.concrete_fields:
            if field.related_model in (Session, ChatMessage):
                name = field.name if field.related_model is Session else f"{field.name}__session"
                if model._default_manager.filter(**{name: session.pk}).exists():
                    found.add(model.__name__)
    return found


@pytest.mark.django_db
def test_nothing_of_an_erased_session_is_left(session: Session, ana: User) -> None:
    """Rows, revisions, files, drafts, shares, invitations and the title in the admin's log are deleted."""
    staff = User.objects.create_superuser("staff")
    audit_log.log_change(staff, session, audit_log.ARCHIVED)
    LogEntry.objects.log_actions(staff.pk, [session.shares.get()], CHANGE, single_object=True)
    for model, words in ((Share, "Bo in {} (editor)"), (Invitation, "invitation to {} (viewer)")):
        kind = ContentType.objects.get_for_model(model)  # earlier versions stored the title
        LogEntry.objects.create(
            user=staff, content_type=kind, object_id="1", object_repr=words.format(session.title), action_flag=CHANGE
        )
    files = list(Attachment.objects.values_list("file", flat=True))
    assert {"ChatMessage", "MessageRevision", "SessionRevision", "Share", "Attachment"} <= tables_with_rows_of(session)
    erasure = requests.request_session(session_id=session.pk, author=staff)
    assert requests.carry_out(erasure)
    assert tables_with_rows_of(session) == set()
    assert not Session.objects.filter(pk=session.pk).exists()
    assert not MessageRevision.objects.exists()
    assert not any(default_storage.exists(name) for name in files)
    assert not default_storage.exists(f"attachments/{session.pk}")
    assert not LogEntry.objects.filter(object_repr__contains=SECRET).exists()
    assert erasure.counts == {"sessions": 1, "messages": 4, "revisions": 3, "requests": 1, "uploads": 1, "files": 2}
    assert (str(erasure), erasure.requested_by) == (f"session {session.pk}", staff)


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite  # VACUUM takes care of PostgreSQL's files
def test_no_file_of_the_database_contains_erased_text(session: Session, ana: User) -> None:
    """Neither free pages nor the log nor the text index contain erased text."""
    other = create_session(owner=ana)
    fill(other, {**HI, "text": "Words that stay"})
    places = [Path(f"{connection.settings_dict['NAME']}{end}") for end in ("", "-wal")]

    def holds(words: bytes) -> bool:
        return any(words in place.read_bytes() for place in places if place.exists())

    assert holds(SECRET.encode())
    sessions.erase_rows(session.pk)
    overwriting.request()
    jobs.run()
    assert not overwriting.is_requested()
    assert not holds(SECRET.encode())
    assert holds(b"Words that stay")
    with connection.cursor() as cursor:
        cursor.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, chat_search, row)")
        cursor.execute("SELECT term FROM temp.terms")
        terms = {term for (term,) in cursor.fetchall()}
        cursor.execute("DROP TABLE temp.terms")
        cursor.execute("SELECT block FROM chat_search_data")
        blocks = b"".join(block for (block,) in cursor.fetchall())
    assert "wor" in terms
    assert not terms & {"xyz", "yzz", "zzy", "zyp", "ypl", "plu", "lug", "ugh"}
    assert b"xyz" not in blocks


@pytest.mark.django_db
def test_files_stay_while_a_fork_uses_them(session: Session, ana: User, bo: User) -> None:
    """RUN-13: the bytes of a file are deleted with the last session that uses it."""
    made = fork(session=session, author=bo, message_id=live(session)[1].pk)
    file = Attachment.objects.get(session=made)
    sessions.erase_rows(session.pk)
    made.refresh_from_db()
    assert made.parent_session is None
    assert attachments.data_of(attachments.fetch(bo, file.pk)) == SECRET.encode()
    sessions.erase_rows(made.pk)
    assert not default_storage.exists(file.file.name or "")


@pytest.mark.django_db
def test_erased_session_is_gone_at_once(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: an erased session is gone when the request returns, even if the deletion takes longer, and cannot be
    restored."""
    erasure = requests.request_session(session_id=session.pk, author=None)
    for user in (ana, bo):
        with pytest.raises(NoSuchSession):
            session_for(user, session.pk)
    with pytest.raises(NoSuchSession):
        undelete(user=ana, session_id=session.pk)
    assert not requests.carry_out(erasure, Deadline(0))
    assert ChatMessage.objects.exists()
    assert (Erasure.objects.get().finished_at, requests.unfinished()) == (None, [erasure])


@pytest.mark.django_db(transaction=True)
def test_erasing_continues_after_a_failure(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The maintenance job continues a failed deletion, and the record counts all deleted rows."""
    monkeypatch.setattr(batches, "MAX_ROWS", 1)
    erasure = requests.request_session(session_id=session.pk, author=None)

    def crash(pacer: Pacer) -> None:
        if not MessageRevision.objects.filter(message__session=session).exists():
            raise OSError("disk")

    with monkeypatch.context() as patch:
        patch.setattr(Pacer, "pause", crash)
        with pytest.raises(OSError, match="disk"):
            requests.carry_out(erasure)
    assert Session.objects.filter(pk=session.pk).exists()
    assert jobs.run()
    assert not Session.objects.filter(pk=session.pk).exists()
    erasure.refresh_from_db()
    assert erasure.finished_at is not None
    assert erasure.counts == {"sessions": 1, "messages": 4, "revisions": 3, "requests": 1, "uploads": 1, "files": 2}
    assert not jobs.run()  # no job is due


@pytest.mark.django_db
def test_run_of_an_erased_session_cannot_write(ana: User) -> None:
    """RUN-15: the worker of an erased session is fenced immediately, and no other worker claims the session."""
    made = create_session(owner=ana)
    send_message(session=made, author=ana, text="Hi")
    worker = lease.register_worker()
    claim = lease.claim(worker, 10)[0]
    sessions.close(made.pk)
    assert record([Job(claim, 1, ())], []).jobs[0].outcome is Outcome.FENCED
    assert lease.claim(worker, 10) == []
    assert not lease.is_work_due()
    sessions.erase_rows(made.pk)
    assert not SessionRun.objects.exists()


@pytest.mark.django_db
def test_guests_of_an_erased_session_leave_the_workspace(session: Session, bo: User) -> None:
    """LIVE-06: a guest's membership ends with the last session that is shared with them."""
    Membership.objects.filter(user=bo).update(role=Membership.Role.GUEST)
    sessions.erase_rows(session.pk)
    assert not Membership.objects.filter(user=bo).exists()
    assert not Invitation.objects.exists()
    assert not UserSessionState.objects.exists()
