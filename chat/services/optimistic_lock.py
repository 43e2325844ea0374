"""Refuse changes of a text whose author has not seen its latest revision (MSG-11)."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision


def require_seen(row: ChatMessage, seen: int | None, current: object) -> None:
    """Refuse a change of a message that has been edited since its revision `seen`; None: whatever it is, it is meant.

    Raises ServiceError: "stale", with what the message says as `current`, its `revision`, and `by` whom (a name, or
    ""). Other changes, of its place above all, do not matter.
    """
    if seen is None:
        return
    edits = MessageRevision.objects.filter(message=row, kind=MessageRevision.Kind.EDIT).select_related("user")
    last = edits.order_by("-pk").first()
    if last is None or last.before.get("revision", 0) < seen:
        return
    raise ServiceError(
        "stale",
        _("Someone else edited this message in the meantime."),
        current=current,
        revision=row.revision,
        by=last.user.sender if last.user else "",
    )
