"""`manage.py verify` finds invalid data and reports nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import Attachment, ChatMessage, KnowledgeFile, MessageDelta, Session, SessionRun, User, Workspace
from chat.queries.verifying import MAX_LINES, Verification
from chat.services.sessions import lifecycle
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, TOOL, fill
from tests.support.rest import check_rest

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    """A session of two turns, one of them with a tool."""
    session = lifecycle.create_session(owner=ana, title="Talk")
    fill(session, START, HI, TOOL, {**ANSWER, "response_id": "r_2"}, DONE)
    fill(session, START, HI, ERROR, DONE, turn_id="t_2")
    check_rest(session)
    return session


def found() -> list[str]:
    return list(Verification().problems())


def test_database_in_order_has_no_problems(session: Session, ana: User) -> None:
    """OPS-04: a valid database has no problems, because false alarms would be ignored."""
    lifecycle.create_session(owner=ana, title="Empty")
    out = io.StringIO()

    call_command("verify", stdout=out)

    assert out.getvalue() == "No problems found. Checked 2 sessions, 9 messages, 0 files.\n"


Damage = Callable[[Session], object]


def with_a_gap(session: Session) -> None:
    ChatMessage.objects.filter(session=session, sequence=9).update(sequence=12)


def without_an_end(session: Session) -> None:
    ChatMessage.objects.filter(session=session, sequence=9).update(type="error")


def in_another_turn(session: Session) -> None:
    ChatMessage.objects.filter(session=session, sequence=7).update(turn_id="t_1")


def with_text_left(session: Session) -> None:
    MessageDelta.objects.create(message=ChatMessage.objects.get(session=session, sequence=4), offset=2, text="and")


def with_a_stuck_turn(session: Session) -> None:
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_3")


def with_a_queue_that_no_one_asks_for(session: Session) -> None:
    ChatMessage.objects.create(session=session, role="user", text="Hello?", status="queued")


def with_a_newer_row(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(revision=3)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (with_a_gap, "the sequence of its messages has gaps"),
        (without_an_end, "turn t_2 has no end"),
        (in_another_turn, "text .* is outside of its turn"),
        (with_text_left, "text is left beside a message that is complete"),
        (with_a_stuck_turn, "its turn is running, but no worker has it, and no run is requested: it would never end"),
        (with_a_queue_that_no_one_asks_for, "message .* is queued, but no turn runs"),
        (with_a_newer_row, "message .* has a later revision than its session"),
    ],
)
def test_damage_is_found(session: Session, damage: Damage, line: str) -> None:
    """OPS-04, MSG-03, MSG-07: each kind of damage, which real bugs have caused, is found."""
    damage(session)
    out = io.StringIO()

    with pytest.raises(CommandError, match=r"problems found. Checked 1 sessions, \d+ messages, 0 files"):
        call_command("verify", stdout=out)
    lines = out.getvalue().splitlines()
    assert [each for each in lines if each.startswith(f"{session.pk}: ")] == lines
    assert any(re.fullmatch(f"{session.pk}: {line}", each) for each in lines)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("table", "column", "value", "shown"),
    [
        ("chat_chatmessage", "timestamp", "'2026-13-45 10:00:00'", "2026-13-45 10:00:00"),
        ("chat_chatmessage", "timestamp", "'2026-02-30 10:00:00'", "2026-02-30 10:00:00"),
        ("chat_chatmessage", "created_at", "'soon'", "soon"),
        ("chat_chatmessage", "text", "x'ff00'", "2 bytes"),
        ("chat_chatmessage", "text", "CAST(x'e46b' AS TEXT)", "2 bytes"),
        ("chat_chatmessage", "timestamp", "CAST(x'e46b' AS TEXT)", "2 bytes"),
        ("chat_chatmessage", "duration_ms", "'long'", "long"),
        ("chat_session", "updated_at", "1700000000", "1700000000"),
    ],
)
def test_values_that_cannot_be_read_are_found(
    session: Session, ana: User, table: str, column: str, value: str, shown: str
) -> None:
    """OPS-04: values that other programs have written with SQL are named, and the other sessions are still checked."""
    other = lifecycle.create_session(owner=ana, title="Other")
    fill(other, START, HI)
    row = session.pk if table == "chat_session" else ChatMessage.objects.get(session=session, sequence=2).pk
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {value} WHERE id = %s", [row])  # noqa: S608  # values of the test

    lines = found()

    assert lines[0] == f"{session.pk}: {column} of {table} {row} cannot be read: {shown}"
    assert [each for each in lines[1:] if not each.startswith(f"{other.pk}: ")] == []
    assert lines[1:]


@pytest.mark.sqlite
def test_other_forms_of_times_can_be_read(session: Session) -> None:
    """OPS-04: times in other forms of ISO 8601, which Django reads, are not reported."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE chat_chatmessage SET created_at = '2026-02-28T23:30:00-05:00', timestamp = '2026-02-28 10:00'"
        )
    assert found() == []


def test_problems_of_one_session_are_a_few_lines(session: Session) -> None:
    """OPS-04: the problems of a session take a few lines, so that they do not hide those of other sessions."""
    ChatMessage.objects.filter(session=session, type="turn_start").update(type="error")

    lines = found()

    assert len(lines) == MAX_LINES + 1
    assert lines[-1].startswith(f"{session.pk}: and ")


def test_session_that_runs_is_not_at_rest(session: Session) -> None:
    """OPS-04: the check may run beside a server: a running session is not reported as unfinished."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_3", wanted=1)
    fill(session, START, HI, {**ANSWER, "status": "streaming", "text": ""}, turn_id="t_3")

    assert found() == []


def test_attachment_without_its_file_is_found(session: Session, ana: User) -> None:
    """OPS-04: missing files and files of another size are found. A file that several attachments share is checked
    once."""
    message = ChatMessage.objects.get(session=session, sequence=2)
    columns = {"session": session, "message": message, "user": ana, "kind": "text", "media_type": "text/plain"}
    kept = Attachment(name="kept.txt", size=2, **columns)
    kept.file.save("x", ContentFile(b"Hi"))
    Attachment.objects.create(name="shared.txt", size=2, file=kept.file.name, **columns)
    assert found() == []
    lost = Attachment.objects.create(name="lost.txt", size=9, file="attachments/gone", **columns)
    with kept.file.storage.open(str(kept.file), "wb") as file:
        file.write(b"Hello")

    assert found() == [
        f"{session.pk}: attachment {lost.pk} has no file attachments/gone: No such file or directory",
        f"{session.pk}: attachment {min(kept.pk, Attachment.objects.get(name='shared.txt').pk)} has 2 bytes, "
        f"but its file {kept.file.name} has 5",
    ]


def test_other_rows_without_their_file_are_found(ana: User, workspace: Workspace) -> None:
    """OPS-04: missing files of workspaces, also removed ones, and of users' pictures are found."""
    values = {"workspace": workspace, "kind": "text", "size": 2, "characters": 2, "passage_count": 1}
    there = KnowledgeFile(name="kept.md", **values)
    there.file.save("x", ContentFile(b"Hi"))
    ana.picture.save("picture", ContentFile(b"pixels"))
    assert found() == []
    removed = {"removed_at": timezone.now(), "file": "knowledge/gone"}
    lost = KnowledgeFile.objects.create(name="lost.md", **values, **removed)
    User.objects.filter(pk=ana.pk).update(picture="pictures/gone")
    with there.file.storage.open(str(there.file), "wb") as file:
        file.write(b"Hello")

    verification = Verification()
    of_workspace = f"workspace {workspace.pk}: knowledge file"
    assert list(verification.problems()) == [
        f"{of_workspace} {there.pk} has 2 bytes, but its file {there.file.name} has 5",
        f"{of_workspace} {lost.pk} has no file knowledge/gone: No such file or directory",
        f"user {ana.pk}: picture has no file pictures/gone: No such file or directory",
    ]
    assert verification.counts["files"] == 3


def test_queries_do_not_grow_with_sessions(session: Session, ana: User) -> None:
    """OPS-04: sessions are read in batches of two hundred, so the number of queries does not grow with each session."""
    with CaptureQueriesContext(connection) as few:
        assert found() == []
    for _ in range(20):
        fill(lifecycle.create_session(owner=ana, title="More"), START, ANSWER, DONE)
    with CaptureQueriesContext(connection) as many:
        assert found() == []
    assert len(many) == len(few)
