"""Large forks, which are copied in several transactions and hidden until they are complete."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from chat.access import deleted_session_for, session_for, session_for_staff
from chat.errors import NoSuchSession, ServiceError
from chat.models import Attachment, ChatMessage, Session, SessionRun, User
from chat.queries.session_list import listed_before
from chat.services import batches
from chat.services.batches import Pacer
from chat.services.deletion import purging, sessions
from chat.services.idempotency import create_once
from chat.services.messages.editing import edit, remove
from chat.services.people.sharing import unshare
from chat.services.sessions import incomplete
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, fill, live
from tests.support.rest import check_rest
from tests.support.testing_node import let_in

TALK = [START, HI, {**ANSWER, "response_id": "r_1"}, DONE]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_ROWS", 3)


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """A function that lets an action run once, between the first and the second batch."""

    def install(act: Callable[[], object]) -> None:
        left = [act]
        monkeypatch.setattr(Pacer, "pause", lambda pacer: left.pop()() if left else None)

    return install


def shown(session: Session) -> list[tuple[str, str]]:
    return [(row.type, row.text) for row in live(session)]


@pytest.mark.django_db
def test_fork_in_batches_equals_one_at_once(session: Session, ana: User, own_files: None) -> None:
    """RUN-13: turns, responses, files and places are the same as in a fork in one transaction."""
    rows = fill(session, *TALK) + fill(session, *TALK, turn_id="t_2")
    Attachment.objects.create(session=session, message=rows[5], name="a.txt", kind="text", size=1, file="attachments/x")
    made = fork(session=session, author=ana, message_id=rows[6].pk)
    assert shown(made) == shown(session)
    copies = live(made)
    assert [row.sequence for row in copies] == [row.revision for row in copies] == list(range(1, 9))
    assert [len({row.turn_id for row in part}) for part in (copies, copies[:4], copies[4:])] == [2, 1, 1]
    file = Attachment.objects.get(session=made)
    assert (file.message, file.file.name) == (copies[5], "attachments/x")
    assert (made.status, made.building_until, made.revision) == ("active", None, 8)
    assert session_for(ana, made.pk)[0] == made
    check_rest(made)


@pytest.mark.django_db
def test_fork_in_batches_can_replace_the_last_text(session: Session, ana: User) -> None:
    """RUN-13: the last user text is replaced and answered in a fork in batches too."""
    rows = fill(session, *TALK) + fill(session, *TALK, turn_id="t_2")
    made = fork(session=session, author=ana, message_id=rows[6].pk, text="Ho", run=True)
    assert shown(made)[-1] == ("text", "Ho")
    assert SessionRun.objects.get(pk=made.pk).state == "running"


@pytest.mark.django_db
def test_unfinished_fork_is_seen_by_no_one(
    session: Session, ana: User, between: Callable[[Callable[[], object]], None]
) -> None:
    """LIVE-06: no one sees an unfinished fork: not staff, and not its maker, who cannot restore it as a deleted session
    either."""
    rows = fill(session, *TALK, *TALK)
    staff = User.objects.create_superuser("staff")

    def look() -> None:
        made = Session.objects.get(parent_session=session)
        assert ChatMessage.objects.filter(session=made).count() == 3
        for gate in (session_for, deleted_session_for):
            with pytest.raises(NoSuchSession):
                gate(ana, made.pk)
        with pytest.raises(NoSuchSession):
            session_for_staff(staff, made.pk, needs_change=False)
        assert [row.listed.id for row in listed_before(ana).rows] == [session.pk]
        with pytest.raises(ServiceError) as refused:
            fork(session=session, author=ana, message_id=rows[7].pk)
        assert refused.value.code == "busy"
        looked.append(made.pk)

    looked: list[str] = []
    between(look)
    made = fork(session=session, author=ana, message_id=rows[7].pk)
    assert looked == [made.pk]


@pytest.mark.django_db
def test_key_of_an_unfinished_fork_waits(session: Session, ana: User, between: Callable[[Any], None]) -> None:
    """MSG-02: a request repeated during the copy makes no second fork and does not return an incomplete one."""
    rows = fill(session, *TALK, *TALK)

    def ask() -> tuple[Session, bool]:
        def make(pk: str, digest: str | None) -> Session:
            return fork(session=session, author=ana, message_id=rows[7].pk, session_id=pk, key_digest=digest)

        return create_once(user=ana, purpose="fork", key="k", request={"text": None}, make=make)

    def ask_again() -> None:
        with pytest.raises(ServiceError) as refused:
            ask()
        assert refused.value.code == "busy"

    between(ask_again)
    made, _repeated = ask()
    assert ask() == (made, True)
    with pytest.raises(ServiceError) as refused:
        create_once(user=ana, purpose="fork", key="k", request={"text": "New"}, make=lambda *_names: made)
    assert refused.value.code == "key_taken"


@pytest.mark.django_db
def test_messages_changed_during_the_copy_are_copied(
    session: Session, ana: User, between: Callable[[Any], None]
) -> None:
    """RUN-13: a message that is removed during the copy is in the copy.

    A message that is edited has its old or its new text.
    """
    rows = fill(session, *TALK, *TALK)

    def change() -> None:
        remove(session=session, author=ana, message_id=rows[5].pk)
        edit(session=session, author=ana, message_id=rows[6].pk, text="New")

    between(change)
    made = fork(session=session, author=ana, message_id=rows[7].pk)
    assert [text for kind, text in shown(made) if kind == "text"] == ["Hi", "So", "Hi", "New"]
    check_rest(made)


@pytest.mark.django_db
def test_fork_of_a_session_that_is_erased_during_the_copy_fails(
    session: Session, ana: User, between: Callable[[Any], None]
) -> None:
    """RUN-13: if the original is erased during the copy, no row of the copy stays."""
    rows = fill(session, *TALK, *TALK)
    between(lambda: sessions.erase_rows(session.pk))
    with pytest.raises(NoSuchSession):
        fork(session=session, author=ana, message_id=rows[7].pk)
    assert (Session.objects.count(), ChatMessage.objects.count()) == (0, 0)


@pytest.mark.django_db
def test_fork_by_a_user_who_loses_access_during_the_copy_fails(
    session: Session, ana: User, bo: User, between: Callable[[Any], None]
) -> None:
    """LIVE-06: a user who loses access during the copy gets no fork.

    Staff, who fork without access, still get theirs.
    """
    let_in(session, bo, "viewer")
    rows = fill(session, *TALK, *TALK)

    def take() -> None:
        unshare(session=session, author=ana, user=bo)
        edit(session=session, author=ana, message_id=rows[6].pk, text="Not for Bo")

    between(take)
    with pytest.raises(NoSuchSession):
        fork(session=session, author=bo, message_id=rows[7].pk)
    assert list(Session.objects.all()) == [session]
    assert fork(session=session, author=bo, message_id=rows[7].pk).owner == bo


@pytest.mark.django_db
def test_failed_fork_leaves_nothing(session: Session, ana: User, between: Callable[[Any], None]) -> None:
    """A failed fork leaves no rows behind (RUN-13)."""
    rows = fill(session, *TALK, *TALK)

    def fail() -> None:
        raise OSError("disk")

    between(fail)
    with pytest.raises(OSError, match="disk"):
        fork(session=session, author=ana, message_id=rows[7].pk)
    assert list(Session.objects.all()) == [session]
    assert ChatMessage.objects.count() == 8


@pytest.mark.django_db
def test_fork_that_a_crash_cut_is_cleaned_up(session: Session, ana: User) -> None:
    """RUN-13: an interrupted fork is deleted after a while, and a process that resumes it later is refused."""
    made = create_session(owner=ana)
    Session.objects.filter(pk=made.pk).update(**incomplete.new_columns())
    fill(made, HI)
    made.refresh_from_db()
    purging.purge(before=None)
    assert Session.objects.filter(pk=made.pk).exists()
    Session.objects.filter(pk=made.pk).update(building_until="2026-01-01T00:00Z")
    with pytest.raises(NoSuchSession):
        incomplete.touch(made)
    purging.purge(before=None)
    assert not Session.objects.filter(pk=made.pk).exists()
    assert not ChatMessage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_others_write_between_the_batches(session: Session, ana: User, between: Callable[[Any], None]) -> None:
    """Other users can write between the batches of a large fork on SQLite."""
    rows = fill(session, *TALK, *TALK)
    written: list[str] = []

    def write() -> None:
        try:
            written.append(create_session(owner=ana).pk)
        finally:
            connection.close()

    def write_elsewhere() -> None:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(20)

    between(write_elsewhere)
    fork(session=session, author=ana, message_id=rows[7].pk)
    assert len(written) == 1
