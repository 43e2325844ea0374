"""Suggested edits of a user's message, by editors of the session who may not change it (MSG-11)."""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageStatus, Session, Suggestion, User
from chat.services.messages.editing import edit_row, may_edit, open_row, require_unused
from chat.services.messages.senders import sender_in
from chat.services.messages.validation import validate_message
from chat.services.optimistic_lock import require_current
from chat.services.transaction import SessionTransaction

Status = Suggestion.Status


class NoSuchSuggestion(ServiceError):
    CODE: ClassVar[str] = "no_such_suggestion"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("This suggestion no longer exists."))


@transaction.atomic
def suggest(*, session: Session, author: User, message_id: str, text: str, seen: int | None = None) -> Suggestion:
    """Suggest another text for a user's message. A later suggestion of the same author replaces their open one.

    Raise ServiceError if the author may edit the message, it is not a user's message, it is queued, or the text is the
    same, and "stale" if the message was edited after the revision `seen`.
    """
    tx, row = open_row(session, message_id)
    text = validate_message(text)
    if may_edit(tx.session, row, author):
        raise ServiceError("may_edit", _("You can edit this message yourself."))
    if row.status == MessageStatus.QUEUED:
        raise ServiceError("queued", _("This message is queued. Its sender can edit or remove it."))
    require_current(row, seen, row.text)
    if text == row.text:
        raise ServiceError("unchanged", _("The suggestion is the same as the message."))
    now = {
        "text": text,
        "revision": row.revision,
        "user_name": sender_in(session, author),
        "created_at": timezone.now(),
    }
    suggestion, _is_new = Suggestion.objects.update_or_create(
        message=row, user=author, status=Status.OPEN, defaults=now
    )
    _count(tx, row)
    return suggestion


@transaction.atomic
def accept(*, session: Session, author: User, suggestion_id: str, seen: int | None = None) -> int:
    """Set the message's text to the suggestion, as the message's author or the session's owner. Return the revision.

    `seen` is the message's revision that the user compared with. Raise ServiceError as `editing.edit` does.
    """
    tx, row, suggestion = _open(session, suggestion_id)
    if not may_edit(tx.session, row, author):
        raise ServiceError("not_yours", _("Only the author and the session owner can accept a suggestion."))
    require_current(row, seen, row.text)
    require_unused(tx, row)
    if row.text != suggestion.text:
        edit_row(tx, row, author, suggestion.text, suggested_by=suggestion.user_name)
    _decide(suggestion, Status.ACCEPTED, author)
    _count(tx, row)
    return row.revision


@transaction.atomic
def dismiss(*, session: Session, author: User, suggestion_id: str) -> None:
    """Decline a suggestion, or withdraw the author's own. It stays stored. Raise ServiceError."""
    tx, row, suggestion = _open(session, suggestion_id)
    if suggestion.user_id != author.pk and not may_edit(tx.session, row, author):
        raise ServiceError("not_yours", _("Only the author and the session owner can decline a suggestion."))
    _decide(suggestion, Status.DISMISSED, author)
    _count(tx, row)


def open_suggestions(row: ChatMessage) -> list[Suggestion]:
    """Return a message's open suggestions, the oldest first."""
    return list(row.suggestions.filter(status=Status.OPEN).select_related("user"))


def _open(session: Session, suggestion_id: str) -> tuple[SessionTransaction, ChatMessage, Suggestion]:
    found = Suggestion.objects.filter(pk=suggestion_id, message__session=session.pk, status=Status.OPEN)
    message_id = found.values_list("message_id", flat=True).first()
    if message_id is None:
        raise NoSuchSuggestion
    tx, row = open_row(session, message_id)
    suggestion = found.first()
    if suggestion is None:  # another user decided just now
        raise NoSuchSuggestion
    return tx, row, suggestion


def _decide(suggestion: Suggestion, status: Suggestion.Status, author: User) -> None:
    suggestion.status, suggestion.decided_by, suggestion.decided_at = status, author, timezone.now()
    suggestion.save(update_fields=["status", "decided_by", "decided_at"])


def _count(tx: SessionTransaction, row: ChatMessage) -> None:
    """Publish the number of the message's open suggestions, also when only the text of one has changed."""
    count = row.suggestions.filter(status=Status.OPEN).count()
    tx.update("message_updated", row, {"open_suggestions": count})
    tx.save()
