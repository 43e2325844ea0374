"""Purging deleted data after PURGE_AFTER_DAYS without affecting other data."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import (
    ApiToken,
    Attachment,
    ChatMessage,
    Invitation,
    JobLease,
    LoginSession,
    MessageRevision,
    ModelRequest,
    Session,
    User,
)
from chat.queries.messages import changes_since, has_history_since
from chat.queries.model_requests import past_request
from chat.services.deletion import purging
from chat.services.maintenance import jobs, leases
from chat.services.messages.editing import remove, restore
from chat.services.people import api_tokens
from chat.services.people.sharing import invite
from chat.services.runs.control import retry
from chat.services.sessions.actions import delete
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, THOUGHT, fill, live

pytestmark = pytest.mark.django_db
DAYS = timedelta(days=31)


@pytest.fixture
def session(ana: User, own_files: None) -> Session:
    return create_session(owner=ana, title="Plan")


def long_ago() -> datetime:
    return timezone.now() - DAYS


def age(message_id: str) -> None:
    """Make a message's removal 31 days old."""
    assert ChatMessage.objects.filter(pk=message_id, removed_at__isnull=False).update(removed_at=long_ago()) == 1


def purge() -> None:
    purging.purge(before=timezone.now() - timedelta(days=30))


def test_deleted_sessions_go_after_their_time(ana: User) -> None:
    """Deleted sessions are not purged before their time, and archived ones never."""
    old, new, kept = (create_session(owner=ana) for _ in range(3))
    for each in (old, new):
        delete(user=ana, session_id=each.pk)
    Session.objects.filter(pk__in=[old.pk, kept.pk]).update(archived_at=long_ago())
    Session.objects.filter(pk=old.pk).update(deleted_at=long_ago())
    purge()
    assert set(Session.objects.values_list("pk", flat=True)) == {new.pk, kept.pk}


def test_removed_messages_are_purged_with_revisions_and_files(session: Session, ana: User) -> None:
    """Revisions and files are deleted with the message. Messages that were removed later can return to their places."""
    rows = fill(session, *[{**HI, "text": text} for text in "abcdef"])
    for row in rows[1:3]:
        file = Attachment(session=session, message=row, name="a", kind="text", size=1)
        file.file.save("a", ContentFile(b"a"))
    for row in (rows[2], rows[1], rows[3]):
        remove(session=session, author=ana, message_id=row.pk)
    age(rows[2].pk)
    gone, stays = [Attachment.objects.get(message=row).file.name or "" for row in (rows[2], rows[1])]
    purge()
    assert not ChatMessage.objects.filter(pk=rows[2].pk).exists()
    assert not MessageRevision.objects.filter(message=rows[2].pk).exists()
    assert (default_storage.exists(gone), default_storage.exists(stays)) == (False, True)
    for row in (rows[3], rows[1]):  # the row before each of them has been purged
        assert restore(session=session, author=ana, message_id=row.pk)
    assert [row.text for row in live(session)] == ["a", "b", "d", "e", "f"]


def test_places_stay_true_when_a_whole_row_of_neighbors_goes(session: Session, ana: User) -> None:
    """MSG-11: when removed neighbors are purged, a removed message that followed them returns behind the message
    before them."""
    rows = fill(session, *[{**HI, "text": text} for text in "abcde"])
    for row in rows[1:4]:
        remove(session=session, author=ana, message_id=row.pk)
    for row in rows[1:3]:
        age(row.pk)
    purge()
    restore(session=session, author=ana, message_id=rows[3].pk)
    assert [row.text for row in live(session)] == ["a", "d", "e"]


def test_messages_that_a_retry_withdrew_are_not_purged(session: Session, ana: User) -> None:
    """RUN-12: messages that a retry withdrew are not purged, because they are an earlier attempt, which no one has
    deleted."""
    rows = fill(session, START, HI, ANSWER, DONE)
    retry(session=session, author=ana, message_id=rows[2].pk)
    age(rows[2].pk)
    purge()
    assert ChatMessage.objects.filter(pk=rows[2].pk).exists()
    MessageRevision.objects.filter(message=rows[2].pk).delete()  # an imported session may lack the revision
    purge()
    assert ChatMessage.objects.filter(pk=rows[2].pk).exists()


def test_clients_that_were_away_for_long_reload(session: Session, ana: User) -> None:
    """LIVE-02: a client with a revision from before the purge reloads, because it cannot learn of the removal any
    more."""
    rows = fill(session, *[HI] * 3)
    before = Session.objects.get(pk=session.pk).revision
    remove(session=session, author=ana, message_id=rows[1].pk)
    after = Session.objects.get(pk=session.pk).revision
    age(rows[1].pk)
    assert [has_history_since(Session.objects.get(pk=session.pk), since) for since in (0, before, after)] == [True] * 3
    purge()
    present = Session.objects.get(pk=session.pk)
    assert present.revision == after
    assert [has_history_since(present, since) for since in (0, before, after, after + 1)] == [True, False, True, False]
    changes = changes_since(session.pk, before)
    assert changes is not None
    assert (changes.is_known, changes.removed) == (False, [])
    remove(session=session, author=ana, message_id=rows[0].pk)
    age(rows[0].pk)
    purge()  # which purges a message that was removed later
    present = Session.objects.get(pk=session.pk)
    assert [has_history_since(present, since) for since in (before, after, present.revision)] == [False, False, True]


def test_requests_after_a_purged_one_are_complete(session: Session, ana: User) -> None:
    """MSG-01: the request of a purged response is deleted, and later requests still list all their messages."""
    rows = fill(session, HI, {**ANSWER, "response_id": "r_1"}, HI, {**ANSWER, "response_id": "r_2"}, HI)
    names = [[row.pk, row.revision] for row in rows]
    for place, (response, shared) in enumerate((("r_1", 0), ("r_2", 1), ("r_3", 3))):
        asked = names[shared : 2 * place + 1]
        ModelRequest.objects.create(
            response_id=response, session=session, revision=place + 1, shared=shared, rows=asked
        )
    remove(session=session, author=ana, message_id=rows[3].pk)
    age(rows[3].pk)
    purge()
    assert past_request(session, "r_2") is None
    past = past_request(session, "r_3")
    assert past is not None
    assert [row.pk for row in past.rows] == [rows[place].pk for place in (0, 1, 2, 4)]
    assert past.lost == [rows[3].pk]


def test_request_stays_with_the_rest_of_its_response(session: Session, ana: User) -> None:
    """MSG-01: a request is kept as long as one row of its response exists."""
    rows = fill(session, HI, {**THOUGHT, "response_id": "r_1"}, {**ANSWER, "response_id": "r_1"})
    ModelRequest.objects.create(response_id="r_1", session=session, revision=1, shared=0, rows=[[rows[0].pk, 1]])
    remove(session=session, author=ana, message_id=rows[1].pk)
    age(rows[1].pk)
    purge()
    assert not ChatMessage.objects.filter(pk=rows[1].pk).exists()
    assert past_request(session, "r_1") is not None


def test_links_and_tokens_go_when_they_ended_long_ago(session: Session, ana: User) -> None:
    """Old links and tokens are deleted with their names and the users who made them."""
    for days in (30, 30):
        api_tokens.create(user=ana, name="Script", scope="read", days=days)
        invite(session=session, author=ana, role="viewer")
    old = ApiToken.objects.earliest("pk"), Invitation.objects.earliest("pk")
    for row in old:
        type(row)._default_manager.filter(pk=row.pk).update(expires_at=long_ago())
    revoked, _secret = api_tokens.create(user=ana, name="Revoked", scope="read", days=30)
    ApiToken.objects.filter(pk=revoked.pk).update(revoked_at=long_ago())
    purge()
    counts = [model.objects.count() for model in (ApiToken, Invitation)]
    assert counts == [1, 1]


def test_unsent_uploads_are_purged_after_a_day(session: Session, ana: User) -> None:
    """Unsent uploads are purged after a day, even if there is no further upload and nothing else is purged."""
    file = Attachment(session=session, user=ana, name="a", kind="text", size=1)
    file.file.save("a", ContentFile(b"a"))
    purging.purge(before=None)
    assert Attachment.objects.exists()
    Attachment.objects.update(created_at=timezone.now() - timedelta(days=2))
    purging.purge(before=None)
    assert not Attachment.objects.exists()
    assert not default_storage.exists(file.file.name or "")


def test_nothing_is_purged_before_its_time(ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """PURGE_AFTER_DAYS counts from the first start of a version that purges. 0 keeps everything."""
    monkeypatch.setattr(
        "chat.services.deletion.overwriting.overwrite_deleted", lambda deadline: True
    )  # outside of a transaction
    made = create_session(owner=ana)
    delete(user=ana, session_id=made.pk)
    Session.objects.filter(pk=made.pk).update(deleted_at=timezone.now() - timedelta(days=300))

    def run_next_day() -> bool:
        JobLease.objects.filter(name=jobs.PURGE).update(finished_at=timezone.now() - timedelta(days=2))
        assert jobs.run()
        return Session.objects.filter(pk=made.pk).exists()

    LoginSession.objects.create(pk="expired", expire_date=long_ago())
    assert jobs.run()
    assert not LoginSession.objects.exists()
    assert not jobs.run()  # it runs once a day
    assert run_next_day()
    JobLease.objects.filter(name=jobs.PURGE).update(created_at=long_ago())
    settings.PURGE_AFTER_DAYS = 0
    assert run_next_day()
    settings.PURGE_AFTER_DAYS = 30
    assert not run_next_day()


def test_one_process_at_a_time_has_a_job() -> None:
    """A process keeps a job while it renews the lease, and another process takes over when it dies."""
    mine = leases.acquire("job", 60)
    assert mine is not None
    assert leases.acquire("job", 60) is None
    assert leases.renew("job", mine, 60)
    JobLease.objects.update(expires_at=long_ago())  # its process died
    other = leases.acquire("job", 60)
    assert other is not None
    assert not leases.renew("job", mine, 60)
    leases.release("job", mine)
    assert leases.acquire("job", 60) is None
    leases.release("job", other)
    assert leases.acquire("job", 60) is not None
