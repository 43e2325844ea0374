"""Erase sessions with their rows and files. This cannot be undone.

Rows are deleted in batches, so that other writers can write in between, and an erasure continues after a crash. A
session that is only deleted can be restored until it is purged (purging.py).
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast, Coalesce, Length
from django.utils import timezone

from agents.sandbox.folder import remove_folder
from chat import agents_setup
from chat.bus.events import AccessChanged
from chat.errors import NoSuchSession
from chat.models import (
    Attachment,
    ChatMessage,
    MessageRevision,
    ModelRequest,
    Session,
    SessionRevision,
    Share,
    User,
)
from chat.queries.session_people import people_in
from chat.runs import lease
from chat.services.batches import MAX_ROWS, NO_DEADLINE, Counts, Deadline, Pacer, batches
from chat.services.deletion.log_scrubbing import scrub_session
from chat.services.messages import attachments
from chat.services.people import guests
from chat.services.sessions import incomplete
from chat.services.transaction import SessionTransaction, notify_session_lists

logger = logging.getLogger(__name__)


def close(session_id: str) -> bool:
    """Close a session for all users permanently (LIVE-06): end its run's claim and its open pages.

    Return False if the session does not exist.
    """
    with transaction.atomic():
        try:
            tx = SessionTransaction.lock(session_id)
        except NoSuchSession:  # or an incomplete session without a run
            left = Session.objects.filter(pk=session_id)
            return bool(left.update(status=Session.Status.DELETED, building_until=incomplete.until()))
        lease.ask_to_stop(session_id, None)
        lease.revoke(session_id)
        people = people_in([session_id])
        Session.objects.filter(pk=session_id).update(
            status=Session.Status.DELETED,
            deleted_at=Coalesce(F("deleted_at"), timezone.now()),
            building_until=incomplete.until(),
        )
        tx.events.append(AccessChanged())
        tx.publish_on_commit()
        notify_session_lists(users=people)
    return True


def erase_unused(*, owner: User, session_id: str) -> None:
    """Erase a session that was created to upload a file for its first message, if it was not used.

    Such a session has no title, message, file or share. The maintenance job deletes its row.
    """
    own = Session.objects.filter(pk=session_id, owner=owner, title="", status=Session.Status.ACTIVE, workspace_role="")
    used = (ChatMessage, Attachment, Share)
    if own.exists() and not any(model._default_manager.filter(session=session_id).exists() for model in used):
        close(session_id)


def erase_rows(session_id: str, counts: Counts | None = None, deadline: Deadline = NO_DEADLINE) -> bool:
    """Delete a session with all its rows and files. Return False if the deadline came first.

    Adds the numbers of deleted rows, by kind, to `counts`.
    """
    counts = Counts() if counts is None else counts
    if not close(session_id):
        _delete_folders(session_id)  # a crash may have left the folders
        return True
    pacer = Pacer()
    for kind, rows in _parts(session_id):
        while names := _next_batch(rows):
            if deadline.is_over:
                return False
            counts["files"] += _delete_batch(session_id, rows.model, names)
            counts[kind] += len(names)
            pacer.pause()
    _delete_session(session_id)
    _delete_folders(session_id)
    counts["sessions"] += 1
    return True


def discard(session_id: str) -> None:
    """Delete an incomplete session. If the database is unavailable, the maintenance job deletes it later."""
    try:
        if Session.objects.filter(pk=session_id, building_until__isnull=False).exists():
            erase_rows(session_id)
    except Exception:
        logger.exception("Could not delete the incomplete session %s", session_id)


def _parts(session_id: str) -> list[tuple[str, QuerySet[Any]]]:
    """Return the queries for the session's large tables, with each row's size.

    Small tables cascade from the session.
    """
    kept = Length(Cast("before", TextField()))
    return [
        ("revisions", MessageRevision.objects.filter(message__session=session_id).annotate(chars=kept)),
        ("messages", ChatMessage.objects.filter(session=session_id).annotate(chars=Length("text") + Length("result"))),
        ("revisions", SessionRevision.objects.filter(session=session_id).annotate(chars=kept)),
        ("requests", ModelRequest.objects.filter(session=session_id).annotate(chars=Length(Cast("rows", TextField())))),
        ("uploads", Attachment.objects.filter(session=session_id).annotate(chars=Length("text"))),
    ]


def _next_batch(rows: QuerySet[Any]) -> list[Any]:
    """Return the primary keys of as many rows as one transaction deletes."""
    sizes = list(rows.order_by().values_list("pk", "chars")[:MAX_ROWS])
    first = next(batches(sizes, lambda row: row[1] or 0), [])
    return [pk for pk, _chars in first]


def _delete_batch(session_id: str, model: type[Any], names: list[Any]) -> int:
    """Delete rows in one transaction, with files that no other row uses. Return how many rows had a file."""
    files = _files_of(model, names)
    with transaction.atomic():
        Session.objects.filter(pk=session_id).update(building_until=incomplete.until())
        model._default_manager.filter(pk__in=names).only("pk").delete()
        attachments.delete_unused(files)
    return len(files)


def _files_of(model: type[Any], names: list[Any]) -> list[str]:
    if model not in (ChatMessage, Attachment):
        return []
    column = "pk__in" if model is Attachment else "message__in"
    return list(Attachment.objects.filter(**{column: names}).values_list("file", flat=True))


def _delete_folders(session_id: str) -> None:
    attachments.delete_folder(session_id)
    remove_folder(agents_setup.sandbox(session_id).workspace)


@transaction.atomic
def _delete_session(session_id: str) -> None:
    """Delete the session's row, shares, drafts and invitations, and its title in the admin's log."""
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        return
    scrub_session(session)
    members = list(Share.objects.filter(session=session).values_list("user", flat=True))
    session.delete()
    guests.end_memberships(workspace_id=session.workspace_id, user_ids=members)
