"""Sessions that are too large for one transaction: written in batches, and visible once they are whole.

While it is written, a session has the status of a deleted one, so that nobody sees it, and `building_until`, which no
deleted session has. Each batch is a transaction of its own, so others can write in between. What a crash leaves behind
is deleted when its time has passed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from chat.models import Attachment, ChatMessage, ModelRequest, Session, SessionRevision, SessionRun
from chat.services import incomplete
from chat.services.attachments import forget_stored
from chat.services.erasing import erase_rows
from chat.services.inserting import Insertion, insertion

logger = logging.getLogger(__name__)
# Longer than a batch takes, and reading a file that belongs to it.
TIME_FOR_A_BATCH = timedelta(minutes=3)
ROWS_AT_ONCE = 500


class Abandoned(Exception):  # noqa: N818  # named for the session
    """The session has been given up and deleted: a batch took too long."""


def begin(session: Session) -> None:
    """Write the row of a session whose other rows follow; its times stay as they are."""
    session.status, session.building_until = Session.Status.DELETED, timezone.now() + TIME_FOR_A_BATCH
    made = insertion([session])
    if made is not None:
        made.run()


def write(session: Session, batch: Iterable[Insertion | None] = ()) -> None:
    """Write rows in a transaction, and give the session time for the next batch. Raises Abandoned."""
    with transaction.atomic():
        still = Session.objects.filter(pk=session.pk, building_until__isnull=False)
        if still.update(building_until=timezone.now() + TIME_FOR_A_BATCH) != 1:
            raise Abandoned
        for each in batch:
            if each is not None:
                each.run()


def finish(session: Session, status: str) -> None:
    """Show the session to its people, in the caller's transaction. Raises Abandoned."""
    if (
        Session.objects.filter(pk=session.pk, building_until__isnull=False).update(status=status, building_until=None)
        != 1
    ):
        raise Abandoned
    session.status, session.building_until = status, None
    SessionRun.objects.create(session=session)


def discard(session_id: str) -> None:
    """Delete a session that is not finished, in batches as it was written; one that is finished stays."""
    if not Session.objects.filter(pk=session_id, building_until__isnull=False).exists():
        return
    for file in Attachment.objects.filter(session=session_id):
        file.delete()
        forget_stored([file])
    while rows := list(ChatMessage.objects.filter(session=session_id).values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        ChatMessage.objects.filter(pk__in=rows).delete()
    for model in (ModelRequest, SessionRevision):
        model._default_manager.filter(session=session_id).delete()
    Session.objects.filter(pk=session_id, building_until__isnull=False).delete()


def discard_abandoned() -> int:
    """Delete the sessions that nobody finishes any more, since their server ended; returns how many there were."""
    abandoned = list(incomplete.abandoned().values_list("pk", flat=True))
    for session_id in abandoned:
        erase_rows(session_id)
    if abandoned:
        logger.warning("%d sessions were deleted that had not been written to their end", len(abandoned))
    return len(abandoned)
