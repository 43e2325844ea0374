"""Reject changes of a text that are based on an older revision (MSG-11)."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision


def require_current(row: ChatMessage, seen: int | None, current: object) -> None:
    """Reject a change of a message that was edited after its revision `seen`. None accepts any revision.

    Raise ServiceError "stale" with the message's `current` content, its `revision`, and the editor's name as `by`.
    Only edits count, not other changes such as a new position.
    """
    if seen is None:
        return
    edits = MessageRevision.objects.filter(message=row, kind=MessageRevision.Kind.EDIT).select_related("user")
    last = edits.order_by("-pk").first()
    if last is None or last.before.get("revision", 0) < seen:
        return
    raise ServiceError(
        "stale",
        _("This message was edited in the meantime."),
        current=current,
        revision=row.revision,
        by=last.user.sender if last.user else "",
    )
