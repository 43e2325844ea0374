"""Files of messages: each is sent once, by the user who uploaded it, and shown wherever the message is shown."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from datetime import timedelta
from errno import ENOSPC
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.errors import ServiceError
from chat.models import Attachment, ChatMessage, MessageRevision, Session, SessionRole, User, attached_to
from chat.queries import attachments as stored
from chat.queries import messages as reading
from chat.queries.context_rows import context_rows
from chat.services.messages import attachments
from chat.services.messages.editing import edit
from chat.services.messages.sending import edit_queued, send_message, withdraw
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from chat.snapshots import AttachmentSnapshot, MessageSnapshot
from tests.support import files
from tests.support.testing_node import let_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def uploaded(session: Session, author: User, data: bytes = b"words", name: str = "a.txt") -> str:
    file = File(BytesIO(data))
    return attachments.upload(session=session, author=author, name=name, size=len(data), file=file).pk


def names(messages: list[MessageSnapshot]) -> list[list[str]]:
    return [[each.name for each in message.attachments] for message in messages if message.role == "user"]


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(ServiceError) as refused:
        work()
    assert refused.value.message
    return refused.value.code


def test_files_go_with_their_message_in_the_order_of_the_sender(session: Session, ana: User) -> None:
    """MSG-03, LIVE-01: pages, changes and single reads of a message contain its files, in the order of the sender."""
    ids = [uploaded(session, ana, name=name) for name in ("one.txt", "two.txt", "three.txt")]
    ids.append(uploaded(session, ana, files.picture("PNG", (30, 20)), "four.png"))
    sent = send_message(session=session, author=ana, text="Look", attachment_ids=ids[::-1])
    shown = reading.page_before(session).messages
    assert names(shown) == [["four.png", "three.txt", "two.txt", "one.txt"]]
    size = Attachment.objects.get(pk=ids[3]).size
    picture = AttachmentSnapshot(ids[3], "four.png", "image", "image/png", size, 30, 20, None)
    assert shown[1].attachments[0] == picture
    changes = reading.changes_since(session.pk, 0)
    assert changes is not None
    assert changes.messages[1] == reading.message_snapshot(sent.id) == shown[1]
    assert MessageSnapshot.from_json(shown[1].to_json()) == shown[1]


class NoRoomForMore(FileSystemStorage):
    """A storage that runs out of space after half of a file of this `form`."""

    form = ""

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        if name and name.partition(".")[2] == self.form:
            super().save(name, ContentFile(content.read()[: content.size // 2]), max_length)
            raise OSError(ENOSPC, "No space left on device")
        return super().save(name, content, max_length)


@pytest.mark.parametrize("form", ["", stored.THUMB])
def test_a_file_that_cannot_be_kept_whole_leaves_nothing(
    session: Session, ana: User, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """MSG-12: if a file cannot be stored in full, no row and no bytes stay, and the error asks the user to try
    again."""
    monkeypatch.setattr(NoRoomForMore, "form", form.removeprefix("."))
    here = {"BACKEND": f"{__name__}.{NoRoomForMore.__qualname__}", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = {**settings.STORAGES, "default": here}
    assert refusal(lambda: uploaded(session, ana, files.picture(size=(800, 600)), "a.png")) == "unavailable"
    assert not Attachment.objects.exists()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_message_may_be_files_alone(session: Session, ana: User) -> None:
    """A message can consist of files only (UI-09)."""
    assert refusal(lambda: send_message(session=session, author=ana, text=" ")) == "empty"
    send_message(session=session, author=ana, text="", attachment_ids=[uploaded(session, ana)])
    assert names(reading.page_before(session).messages) == [["a.txt"]]


def test_a_file_is_sent_once_and_a_repeated_send_adds_nothing(session: Session, ana: User) -> None:
    """Repeating a send with its key sends the file once (MSG-02)."""
    ids = [uploaded(session, ana)]
    first = send_message(session=session, author=ana, text="A", key="k", attachment_ids=ids)
    again = send_message(session=session, author=ana, text="A", key="k", attachment_ids=ids)
    assert (again.id, again.repeated) == (first.id, True)
    other = refusal(lambda: send_message(session=session, author=ana, text="B", attachment_ids=ids))
    assert other == "attachment_gone"


def test_refused_files_change_nothing(session: Session, ana: User, bo: User) -> None:
    """LIVE-06, MSG-11: files of other users or sessions, unknown files and too many files are refused, and nothing
    changes."""
    let_in(session, bo, SessionRole.EDITOR)
    mine, theirs = uploaded(session, ana), uploaded(session, bo)
    elsewhere = uploaded(create_session(owner=ana), ana)
    for foreign in (theirs, elsewhere, "a_unknown"):
        send = lambda foreign=foreign: send_message(  # noqa: E731
            session=session, author=ana, text="A", attachment_ids=[mine, foreign]
        )
        assert refusal(send) == "attachment_gone"
    many = [uploaded(session, ana) for _ in range(attachments.MAX_PER_MESSAGE + 1)]
    assert refusal(lambda: send_message(session=session, author=ana, text="A", attachment_ids=many)) == "invalid"
    assert not ChatMessage.objects.exists()
    assert not Attachment.objects.exclude(message=None).exists()
    send_message(session=session, author=ana, text="A", attachment_ids=[mine, mine])


def test_queued_messages_keep_their_files(session: Session, ana: User) -> None:
    """RUN-06: a queued message keeps its files when its text is edited or removed.

    If it is withdrawn, the sender can send them again.
    """
    send_message(session=session, author=ana, text="Work!")
    file = uploaded(session, ana)
    waiting = send_message(session=session, author=ana, text="This", attachment_ids=[file])
    Attachment.objects.update(created_at=timezone.now() - timedelta(days=3))
    edit_queued(session=session, author=ana, message_id=waiting.id, text="")
    queued = reading.page_before(session).queued
    assert (names(queued), queued[0].text) == ([["a.txt"]], "")
    assert [each.pk for each in withdraw(session=session, author=ana, message_id=waiting.id)] == [file]
    assert reading.page_before(session).queued == []
    uploaded(session, ana, name="b.txt")  # deletes old files that were not sent
    send_message(session=session, author=ana, text="This again", attachment_ids=[file])
    assert names(reading.page_before(session).queued) == [["a.txt"]]
    before = MessageRevision.objects.get(message=waiting.id, kind="withdraw").before
    assert [each["name"] for each in before["attachments"]] == ["a.txt"]


def test_files_of_others_stay_with_a_message_that_the_owner_removes(session: Session, ana: User, bo: User) -> None:
    """RUN-06, MSG-11: if the owner removes a queued message of another user, the owner cannot send its files."""
    let_in(session, bo, "editor")
    send_message(session=session, author=ana, text="Work!")
    file = uploaded(session, bo)
    waiting = send_message(session=session, author=bo, text="This", attachment_ids=[file])
    assert withdraw(session=session, author=ana, message_id=waiting.id) == []
    assert Attachment.objects.get(pk=file).message_id == waiting.id


def test_text_of_a_message_with_a_file_can_be_emptied(session: Session, ana: User) -> None:
    """ADM-02: the text of a message can be emptied if it has a file."""
    rows = [ChatMessage.objects.create(session=session, sequence=place, role="user", text="A") for place in (1, 2)]
    Attachment.objects.filter(pk=uploaded(session, ana)).update(message=rows[0])
    edit(session=session, author=ana, message_id=rows[0].pk, text="")
    assert reading.page_before(session).messages[0].text == ""
    assert refusal(lambda: edit(session=session, author=ana, message_id=rows[1].pk, text="")) == "empty"


def test_a_forked_conversation_has_its_files(session: Session, ana: User) -> None:
    """RUN-13: a fork uses the same stored bytes, and users of the fork can open the files."""
    sent = send_message(session=session, author=ana, text="Look", attachment_ids=[uploaded(session, ana)])
    made = fork(session=session, author=ana, message_id=sent.id, text=None, run=False)
    copied = Attachment.objects.get(session=made)
    assert names(reading.page_before(made).messages) == [["a.txt"]]
    assert stored.data_of(stored.fetch(ana, copied.pk)) == b"words"


def test_many_files_need_as_many_queries_as_one(session: Session, ana: User, bo: User) -> None:
    """LIVE-02: one query reads the files of all messages, without their text."""
    costs = []
    for count in (1, 30):
        filled = create_session(owner=ana)
        rows = ChatMessage.objects.bulk_create(
            ChatMessage(session=filled, sequence=number, revision=number, role="user") for number in range(1, count + 1)
        )
        file = {"kind": "text", "media_type": "text/plain", "size": 5, "file": "a", "text": "secret" * 100}
        Attachment.objects.bulk_create(Attachment(session=filled, message=row, name="a", **file) for row in rows)
        with CaptureQueriesContext(connection) as queries:
            assert len(names(reading.page_before(filled).messages)) == count
        costs.append(len(queries))
        assert not any('"chat_attachment"."text"' in query["sql"] for query in queries)
    assert costs[0] == costs[1]


def test_messages_are_freed_without_the_garbage_collector(ana: User, session: Session) -> None:
    """Messages have no reference cycles, which would keep a session's messages in memory until the next garbage
    collection."""
    send_message(session=session, author=ana, text="Hi")
    gc.disable()
    try:
        rows = context_rows(session)
        assert [attached_to(row) for row in rows if row.role == "user"] == [[]]
        left = [weakref.ref(row) for row in rows]
        del rows
        assert [ref() for ref in left] == [None] * len(left)
    finally:
        gc.enable()
