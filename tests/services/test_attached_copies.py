"""The copies of attached files in a session's folder, after their message was removed, purged or erased."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks
from pytest_django.fixtures import Settings

from agents.sandbox.copies import ATTACHMENTS, Copy, update_copies
from chat.agents_setup import sandbox
from chat.models import Attachment, ChatMessage, Session, SessionRole, User
from chat.queries.attachments import copy_mark
from chat.queries.workspace import has_file
from chat.services.deletion import purging, requests
from chat.services.messages.editing import remove
from chat.services.people.sharing import share
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User, bo: User, own_files: None, settings: Settings, tmp_path: Path) -> Session:
    settings.WORKSPACES = str(tmp_path / "workspaces")
    made = create_session(owner=ana, title="Plan")
    share(session=made, author=ana, user=bo, role=SessionRole.EDITOR)
    return made


def attach(session: Session, user: User) -> ChatMessage:
    """Fill the session with a message that has a file, and copy the file as for a request to a model."""
    _start, message, *_rest = fill(session, START, {**HI, "user": user}, ANSWER, DONE)
    made = attached(session, message, user)
    update_copies(sandbox(session.pk).workspace, ATTACHMENTS, [Copy("a.txt", *copy_mark(made), lambda: b"words")])
    return message


def attached(session: Session, message: ChatMessage, user: User) -> Attachment:
    values = {"name": "a.txt", "media_type": "text/plain", "size": 5, "kind": Attachment.Kind.TEXT}
    return Attachment.objects.create(
        session=session, message=message, user=user, file=ContentFile(b"words", name="a.txt"), **values
    )


def has_copy(session: Session) -> bool:
    """Return whether users who may see the session find the copy among its files."""
    return has_file(session, f"{ATTACHMENTS}/a.txt")


def test_copies_go_with_a_removed_message(
    session: Session, ana: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """MSG-11: no one sees a file of a removed message, also not in the session's folder."""
    message = attach(session, ana)
    assert has_copy(session)
    with django_capture_on_commit_callbacks(execute=True):
        remove(session=session, author=ana, message_id=message.pk)
    assert not has_copy(session)


def test_copies_stay_with_a_removed_answer(
    session: Session, ana: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """An answer has no files, so that nothing must be copied again."""
    attach(session, ana)
    answer = ChatMessage.objects.get(session=session, role="assistant")
    with django_capture_on_commit_callbacks(execute=True):
        remove(session=session, author=ana, message_id=answer.pk)
    assert has_copy(session)


def test_copies_stay_with_another_removed_message(
    session: Session, ana: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """A turn that runs may use them, and an archived session gets no new ones."""
    message = attach(session, ana)
    _start, other, *_rest = fill(session, START, {**HI, "user": ana}, ANSWER, DONE, turn_id="t_2")
    file = attached(session, other, ana)
    Attachment.objects.filter(pk=file.pk).update(created_at=timezone.now() + timedelta(minutes=1))
    with django_capture_on_commit_callbacks(execute=True):
        remove(session=session, author=ana, message_id=other.pk)
    assert has_copy(session)
    assert message.attachments.exists()


def test_copies_go_with_a_purged_message(
    session: Session, ana: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """A message that an earlier version has removed is purged with its copies."""
    message = attach(session, ana)
    remove(session=session, author=ana, message_id=message.pk)
    with django_capture_on_commit_callbacks(execute=True):
        purging.purge(before=timezone.now() + timedelta(days=1))
    assert not Attachment.objects.exists()
    assert not has_copy(session)


def test_copies_go_with_an_erased_user(
    session: Session, bo: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """The files of an erased user go from the folders of other users' sessions, too."""
    attach(session, bo)
    assert has_copy(session)
    with django_capture_on_commit_callbacks(execute=True):
        erasure = requests.request_user(user=bo, author=None)
        assert requests.carry_out(erasure)
    assert not has_copy(session)
