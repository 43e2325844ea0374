"""Purge rows that users deleted more than PURGE_AFTER_DAYS ago. This cannot be undone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest, Length
from django.utils import timezone

from chat.errors import NoSuchSession
from chat.models import (
    ApiToken,
    Attachment,
    ChatMessage,
    Invitation,
    MessageRevision,
    ModelRequest,
    Schedule,
    Session,
    WorkspaceInvitation,
)
from chat.projections.requests import RequestRows, after_deletion
from chat.queries.attachments import stored_name
from chat.services.batches import MAX_ROWS, NO_DEADLINE, Counts, Deadline, Pacer, batches
from chat.services.deletion.sessions import erase_rows
from chat.services.messages import attachments
from chat.services.messages.ordering import close_gaps
from chat.services.people import knowledge
from chat.services.sessions import incomplete
from chat.services.transaction import SessionTransaction


def cutoff() -> datetime | None:
    """Return the time before which deleted rows are purged; None if PURGE_AFTER_DAYS is 0, which purges nothing."""
    days: int = settings.PURGE_AFTER_DAYS
    return timezone.now() - timedelta(days=days) if days else None


def purge(*, before: datetime | None, deadline: Deadline = NO_DEADLINE) -> Counts:
    """Purge rows that were deleted before a time, uploads that were not sent, and sessions abandoned in a crash.

    If `before` is None, rows that users deleted stay. Return how many rows were purged, by kind. If the deadline comes
    first, a later round purges the rest.
    """
    counts = Counts()
    _erase_all(incomplete.abandoned(), counts, deadline)
    counts["uploads"] += attachments.delete_old_unsent()
    if before is not None:
        deleted = Session.objects.filter(status=Session.Status.DELETED, deleted_at__lt=before, building_until=None)
        _erase_all(deleted, counts, deadline)
        _purge_messages(before, counts, deadline)
        _purge_access(before, counts)
        counts["schedules"] += Schedule.objects.filter(removed_at__lt=before).delete()[0]
    counts["knowledge"] += knowledge.purge(before)
    return +counts


def _erase_all(sessions: QuerySet[Session], counts: Counts, deadline: Deadline) -> None:
    for session_id in list(sessions.values_list("pk", flat=True)):
        if not deadline.is_over:
            erase_rows(session_id, counts, deadline)


def _removed_messages(before: datetime) -> QuerySet[ChatMessage]:
    """Return messages that users removed. Rows of earlier attempts stay as long as their session."""
    last = MessageRevision.objects.filter(message=OuterRef("pk")).order_by("-pk").values("kind")[:1]
    removed = ChatMessage.objects.filter(removed_at__lt=before, attempt="").annotate(last_change=Subquery(last))
    return removed.filter(Q(last_change=None) | ~Q(last_change=MessageRevision.Kind.RETRY))


def _purge_messages(before: datetime, counts: Counts, deadline: Deadline) -> None:
    pacer = Pacer()
    for session_id in list(_removed_messages(before).order_by().values_list("session", flat=True).distinct()):
        while not deadline.is_over and (count := _purge_batch(session_id, before)):
            counts["messages"] += count
            pacer.pause()


def _purge_batch(session_id: str, before: datetime) -> int:
    """Purge some of a session's removed messages; return how many."""
    with transaction.atomic():
        try:
            SessionTransaction.lock(session_id)
        except NoSuchSession:
            return 0
        rows = _removed_messages(before).filter(session=session_id).annotate(chars=Length("text") + Length("result"))
        found = list(rows.order_by().values_list("pk", "chars")[:MAX_ROWS])
        names = [pk for pk, _chars in next(batches(found, lambda row: row[1]), [])]
        delete_messages(session_id, names)
    return len(names)


def delete_messages(session_id: str, names: list[str]) -> None:
    """Purge removed messages of a locked session, with their files and revisions.

    The positions of other removed messages, and the records of later requests, stay correct.
    """
    rows = ChatMessage.objects.filter(session=session_id, pk__in=names)
    highest = rows.aggregate(highest=Max("revision"))["highest"]
    if highest is None:
        return
    responses = set(rows.exclude(response_id="").values_list("response_id", flat=True))
    files = list(Attachment.objects.filter(message__in=names).only("file", "size", "created_at"))
    close_gaps(session_id, set(names))
    rows.only("pk").delete()
    kept = ChatMessage.objects.filter(session=session_id, response_id__in=responses)
    _delete_requests(session_id, responses - set(kept.values_list("response_id", flat=True)))
    purged = Greatest(Coalesce(F("purged_revision"), 0), highest)
    Session.objects.filter(pk=session_id).update(purged_revision=purged)
    attachments.delete_unused(map(stored_name, files))
    attachments.remove_copies_on_commit(session_id, files)


def _delete_requests(session_id: str, response_ids: Iterable[str]) -> None:
    """Delete the recorded requests of responses. Row references that the next requests share with them move there."""
    requests = ModelRequest.objects.filter(session=session_id)
    for request in requests.filter(pk__in=list(response_ids)).order_by("-revision", "-created_at"):
        is_later = Q(revision__gt=request.revision) | Q(revision=request.revision, created_at__gt=request.created_at)
        later = requests.filter(is_later)
        following = later.order_by("revision", "created_at").first()
        if following is not None:
            own = after_deletion(
                RequestRows(request.shared, tuple(request.rows)), RequestRows(following.shared, tuple(following.rows))
            )
            following.shared, following.rows = own.shared, list(own.rows)
            following.save(update_fields=["shared", "rows"])
        request.delete()


def _purge_access(before: datetime, counts: Counts) -> None:
    """Purge links and tokens that ended long ago."""
    ended = Q(revoked_at__lt=before) | Q(expires_at__lt=before)
    counts["tokens"] += ApiToken.objects.filter(ended).delete()[0]
    counts["invitations"] += Invitation.objects.filter(expires_at__lt=before).delete()[0]
    counts["invitations"] += WorkspaceInvitation.objects.filter(expires_at__lt=before).delete()[0]
