"""The order of messages: remove neighboring rows from a session, and put them back in their position.

A removed row has no sequence number. The revision of its removal names the row before it, which is in the session or
was removed earlier. So a removed row keeps its position relative to the others when rows move.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db import connection
from django.db.models import F
from django.utils import timezone

from chat.bus.events import MessageRemoved, MessagesShifted
from chat.models import Attachment, ChatMessage, MessageRevision, MessageType, User, may_have_files
from chat.queries.history import PLACED
from chat.services.messages.attachments import remove_copies_on_commit
from chat.services.sessions.user_state import keep_read
from chat.services.transaction import SessionTransaction, record_of

BATCH = 500


def remove_rows(
    tx: SessionTransaction,
    rows: Sequence[ChatMessage],
    author: User,
    kind: MessageRevision.Kind,
    *,
    attempt: str = "",
    edited: str = "",
) -> None:
    """Remove neighboring rows and close the gap. The rows and their revisions stay stored (MSG-11).

    In an `attempt`, the rows keep their order. The first row's revision then stores the id of the row before as
    `anchor`, and `edited`, the message that was edited for the rows' replacement, as `edited_message`.
    """
    first, beyond = _place(rows[0]), _place(rows[-1]) + 1
    before = list(tx.messages().filter(sequence=first - 1).values_list("pk", flat=True))
    anchor = {"anchor": before[0] if before else ""} if attempt else {}
    if attempt and edited:
        anchor["edited_message"] = edited
    _remember_all(tx, rows, before[0] if before else "", author, kind, anchor)
    base = tx.next_revision() - first
    for row in rows:
        tx.events.append(MessageRemoved(base + _place(row), row.pk))
    tx.session.revision = base + beyond - 1
    # One statement, because there may be thousands of rows.
    tx.messages().filter(sequence__range=(first, beyond - 1)).update(
        revision=F("sequence") + base,
        attempt=attempt,
        attempt_place=F("sequence") - first if attempt else None,
        sequence=None,
        removed_at=timezone.now(),
    )
    _shift(tx, beyond, first - beyond)
    if with_files := [row.pk for row in rows if may_have_files(row)]:
        files = Attachment.objects.filter(message__in=with_files)
        remove_copies_on_commit(tx.session.pk, files.only("size", "created_at"))


def restore_rows(tx: SessionTransaction, rows: Sequence[ChatMessage], after: ChatMessage | None) -> None:
    """Put removed rows back, one after the other, after a row of the session, or at the beginning for None."""
    first = _place(after) + 1 if after else 1
    _shift(tx, first, len(rows))
    for place, row in enumerate(rows, first):
        tx.update("message_updated", row, {"sequence": place, "removed_at": None})


def row_before(tx: SessionTransaction, row: ChatMessage) -> ChatMessage | None:
    """Return the row of the session after which a removed row belongs, or None if it belongs at the beginning."""
    before = _removed_after(tx.session.pk)
    at, steps = row.pk, len(before)
    while at in before and steps >= 0:
        at, steps = before[at], steps - 1
    return tx.messages().filter(pk=at).first()


def close_gaps(session_id: str, going: Collection[str]) -> None:
    """Prepare the deletion of removed rows. Rows that refer to them as the row before get an earlier one instead."""
    before = _removed_after(session_id)

    def remaining(name: str) -> str:
        steps = len(before)
        while name in going and steps >= 0:
            name, steps = before.get(name, ""), steps - 1
        return name

    removed = MessageRevision.objects.filter(message__session=session_id, message__removed_at__isnull=False)
    placed = removed.filter(kind__in=PLACED).exclude(message__in=going)
    places = placed.values_list("pk", "before__after", "before__anchor")
    moved = [pk for pk, *names in places if any(name in going for name in names if name)]
    records = list(MessageRevision.objects.filter(pk__in=moved))
    for record in records:
        known = {name: remaining(record.before[name]) for name in ("after", "anchor") if name in record.before}
        record.before = {**record.before, **known}
    MessageRevision.objects.bulk_update(records, ["before"], batch_size=BATCH)


def fits(first: ChatMessage, after: ChatMessage | None) -> bool:
    """Return whether a row may be put back after `after`: inside its turn, or between two turns if it begins a turn."""
    if not first.turn_id:
        return True
    if first.type == MessageType.TURN_START:
        return after is None or after.type == MessageType.TURN_DONE or not after.turn_id
    return after is not None and after.turn_id == first.turn_id


def _remember_all(
    tx: SessionTransaction,
    rows: Sequence[ChatMessage],
    before: str,
    author: User,
    kind: MessageRevision.Kind,
    anchor: Mapping[str, str],
) -> None:
    following = {after: removed for removed, after in _removed_after(tx.session.pk).items()}
    records = []
    for row in rows:
        seen = set[str]()
        while before in following and before not in seen:
            seen.add(before)
            before = following[before]
        more = anchor if row is rows[0] else {}
        record = record_of(row, kind, after=before, **more)
        records.append(MessageRevision(message=row, user=author, kind=kind, before=record))
        before = row.pk
    MessageRevision.objects.bulk_create(records, batch_size=BATCH)


def _removed_after(session_id: str) -> dict[str, str]:
    """Return the id of the row before each removed row of the session, by the removed row's id."""
    records = MessageRevision.objects.filter(
        message__session=session_id, message__removed_at__isnull=False, kind__in=PLACED
    )
    places = records.order_by("pk").values_list("message_id", "before__after")
    return {message_id: after for message_id, after in places if after is not None}


def _shift(tx: SessionTransaction, start: int, by: int) -> None:
    """Add `by` to all sequence numbers from `start` on.

    The numbers must be unique at any time, so the rows move one by one, beginning next to the free numbers. That way
    SQLite changes a few bytes of each row. Temporary numbers of another size would rewrite the whole text.
    """
    tx.reset_sequence()
    rows = tx.messages().filter(sequence__gte=start).order_by("sequence" if by < 0 else "-sequence")
    moving = list(rows.values_list("pk", flat=True))
    if not moving:
        return
    revision = tx.next_revision()
    keep_read(tx.session.pk, revision)
    table = ChatMessage._meta.db_table
    statement = f'UPDATE "{table}" SET "sequence" = "sequence" + %s, "revision" = %s WHERE "id" = %s'  # noqa: S608  # the model's own table
    with connection.cursor() as cursor:
        cursor.executemany(statement, [(by, revision, pk) for pk in moving])
    tx.events.append(MessagesShifted(revision, start, by))


def _place(row: ChatMessage) -> int:
    if row.sequence is None:
        raise ValueError(f"{row.pk} has no position")
    return row.sequence
