"""Store in a row how many attempts follow it, so that pages show them without another query (RUN-12).

Attempts are numbered by the time at which they began, so that each keeps its number when another one becomes current.
Attempts with only errors are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from chat.models import TURN_MARKERS, ChatMessage, MessageRevision, MessageType
from chat.queries.attachments import fetch_attachments
from chat.services.transaction import SessionTransaction

# An attempt that has only rows of these types is not counted.
UNCOUNTED = (*TURN_MARKERS, MessageType.ERROR)


def count_all(session_id: str) -> None:
    """Count the attempts of an imported session, without events and revisions."""
    for name, earlier in _earlier(session_id).items():
        row = ChatMessage.objects.in_conversation(session_id).filter(pk=name).first()
        if row is not None:
            ChatMessage.objects.filter(pk=name).update(**_count_columns(row, earlier))


def count(tx: SessionTransaction, anchor: ChatMessage) -> None:
    """Count the attempts that follow a row, and update the row if the numbers have changed."""
    anchor = tx.messages().get(pk=anchor.pk)
    fields = _count_columns(anchor, _earlier(tx.session.pk).get(anchor.pk, {}))
    if any(getattr(anchor, name) != value for name, value in fields.items()):
        fetch_attachments([anchor])
        tx.update("message_updated", anchor, fields)


def _count_columns(anchor: ChatMessage, earlier: Mapping[str, datetime]) -> dict[str, int]:
    """Return the columns that count the attempts after a row. `earlier` has the start times of the earlier attempts."""
    following = ChatMessage.objects.in_conversation(anchor.session_id).filter(sequence=(anchor.sequence or 0) + 1)
    began = following.values_list("created_at", flat=True).first()
    current = 1 + sum(began is None or other < began for other in earlier.values())
    return {"attempt_count": len(earlier) + 1 if earlier else 0, "attempt_current": current if earlier else 0}


def numbers(session_id: str, anchors: Iterable[ChatMessage]) -> dict[str, int]:
    """Return the numbers of the earlier attempts that follow these rows, by their id."""
    found = _earlier(session_id)
    return {
        name: number if number < anchor.attempt_current else number + 1
        for anchor in anchors
        for number, name in enumerate(sorted(found.get(anchor.pk, {}), key=found.get(anchor.pk, {}).__getitem__), 1)
    }


def _earlier(session_id: str) -> dict[str, dict[str, datetime]]:
    """Return the ids and start times of the earlier attempts that are counted, by their anchor, in two queries."""
    rows = ChatMessage.objects.filter(session=session_id, removed_at__isnull=False).exclude(attempt="")
    names = set(rows.exclude(type__in=UNCOUNTED).values_list("attempt", flat=True))
    if not names:
        return {}
    records = MessageRevision.objects.filter(
        message__session=session_id,
        message__attempt__in=names,
        message__attempt_place=0,
        kind=MessageRevision.Kind.RETRY,
    )
    places = records.order_by("pk").values_list("message__attempt", "before__anchor", "message__created_at")
    latest = {name: (anchor, began) for name, anchor, began in places}
    found: dict[str, dict[str, datetime]] = defaultdict(dict)
    for name, (anchor, began) in latest.items():
        found[anchor or ""][name] = began
    return found
