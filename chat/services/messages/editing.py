"""Edit, add, include, exclude, remove and restore messages (MSG-09, MSG-11)."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Busy, NoSuchMessage, ServiceError
from chat.models import (
    CONTENT_TYPES,
    TURN_MARKERS,
    ChatMessage,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    RunState,
    Session,
    User,
    attached_to,
)
from chat.queries.context_rows import estimated_context
from chat.services.idempotency import request_digest, require_same_request
from chat.services.messages import sending
from chat.services.messages.mentioning import mentioned_ids, mentions_after_edit, notify_mentioned
from chat.services.messages.ordering import fits, remove_rows, restore_rows, row_before
from chat.services.messages.senders import sender_in
from chat.services.messages.validation import validate_arguments, validate_message, validate_text
from chat.services.optimistic_lock import require_current
from chat.services.runs.turns import require_idle
from chat.services.transaction import SessionTransaction, record_of, require_active, save_revision

Kind = MessageRevision.Kind
TEXT_TYPES = (MessageType.TEXT, MessageType.REASONING)


@transaction.atomic
def edit(
    *,
    session: Session,
    author: User,
    message_id: str,
    text: str,
    seen: int | None = None,
    as_staff: bool = False,
) -> int:
    """Change a message's text. The model gets it from its next response on (ADM-02). Return the message's revision.

    `seen` is the revision that the author's change is based on. Raise ServiceError "stale", with the `current` text
    and `revision`, if the message was edited after it. A queued message can be edited by its sender, a user's message
    by that user, by the session's owner, and by staff in the admin (`as_staff`). Raise ServiceError "not_yours" for
    others.
    """
    tx, row = open_row(session, message_id)
    _require_editable(tx.session, row, author, as_staff=as_staff)
    text = validate_message(text, may_be_empty=bool(attached_to(row)))
    require_current(row, seen, row.text)
    if text == row.text:
        return row.revision
    if row.status == MessageStatus.QUEUED:
        return sending.edit_queued(session=session, author=author, message_id=message_id, text=text)
    require_unused(tx, row)
    edit_row(tx, row, author, text)
    tx.save()
    return row.revision


@transaction.atomic
def edit_tool_call(
    *,
    session: Session,
    author: User,
    message_id: str,
    arguments: object,
    result: str,
    is_error: bool,
    seen: int | None = None,
) -> None:
    """Change a tool call's arguments and result (CTX-03).

    `arguments` is a JSON object. Raise ServiceError "stale", with all three values as `current`, if the call was
    edited after the revision `seen`, and "not_a_tool_call" for other messages.
    """
    tx, row = open_row(session, message_id)
    if row.type != MessageType.TOOL_GROUP:
        raise ServiceError("not_a_tool_call", _("This message isn’t a tool call."))
    values = {"arguments": validate_arguments(arguments), "result": validate_text(result), "is_error": is_error}
    present = {name: getattr(row, name) for name in values} | {"arguments": row.arguments or {}}
    require_current(row, seen, present)
    if json.dumps(values) == json.dumps(present):  # not ==, because True equals 1 in Python
        return
    require_unused(tx, row)
    save_revision(row, author, Kind.EDIT)
    marks = edit_marks(tx, row, author)
    tx.update("message_updated", row, {**values, **_status_after_edit(row, values), **marks})
    tx.save()


@transaction.atomic
def add(
    *, session: Session, author: User, after_id: str | None, role: str, text: str, key: str = ""
) -> tuple[ChatMessage, bool]:
    """Add a message after another one, or at the beginning if `after_id` is None.

    A message between two turns becomes a turn. The author is the sender of a user message. The message gets the time of
    the message before it, so that times stay in order. Its revision records who added it and when.

    A repeated request with the same `key` adds nothing (MSG-02). Return the message, and whether it existed already.
    Raise ServiceError if the agent is running, the text cannot be stored, or the position is inside a response.
    """
    if role not in MessageRole.values:
        raise ServiceError("no_such_role", _("The role must be user, assistant or system."))
    text = validate_message(text)
    tx = SessionTransaction.lock(session.pk)
    digest = request_digest({"after": after_id, "role": role, "text": text}) if key else None
    if key and (before := ChatMessage.objects.filter(session=session, idempotency_key=key).first()) is not None:
        require_same_request(before.key_digest, digest)
        return before, True
    tx.require_active()
    require_idle(tx.run)
    after = None if after_id is None else tx.message(after_id)
    following = tx.messages().filter(sequence=(after.sequence or 0) + 1 if after else 1).first()
    if after and following and same_response(after, following):
        raise ServiceError(
            "inside_response", _("A response and its tool calls belong together. Add a message before or after them.")
        )
    row = _new_row(tx.session, author, role, text)
    row.idempotency_key, row.key_digest = key or None, digest
    row.timestamp = after.timestamp if after and following else following.timestamp if following else row.timestamp
    rows = _with_turn(row, after)
    for each in rows:
        each.removed_at = timezone.now()  # without a position, until the row gets one
        each.save(force_insert=True)
    MessageRevision.objects.create(message=row, user=author, kind=Kind.ADD, before={})
    restore_rows(tx, rows, after)
    tx.save()
    return row, False


@transaction.atomic
def set_included(*, session: Session, author: User, message_id: str, included: bool, seen: int | None = None) -> bool:
    """Include a message in the context, or exclude it (MSG-09). A tool call changes together with its result (CTX-03).

    Return True if the message was changed. Raise ServiceError "stale" if it was edited after the revision `seen`.
    """
    tx, row = open_row(session, message_id)
    if row.type not in CONTENT_TYPES:
        raise ServiceError("never_sent", _("This is never sent to the model."))
    if row.status == MessageStatus.QUEUED:
        raise _queued_error()
    require_current(row, seen, row.text)
    require_unused(tx, row)
    if row.include_in_context == included:
        return False
    save_revision(row, author, Kind.INCLUDE if included else Kind.EXCLUDE)
    tx.update("message_updated", row, {"include_in_context": included})
    _save(tx, row)
    return True


@transaction.atomic
def remove(*, session: Session, author: User, message_id: str, as_staff: bool = False) -> None:
    """Remove a message from the session and the context, with its turn's markers if nothing else is left of the turn.

    `restore` puts it back. A user's message can be removed and restored by users who may edit it. Raise ServiceError
    "not_yours" for others.
    """
    tx, row = open_row(session, message_id)
    _require_own(tx, row, author, as_staff=as_staff)
    if row.status == MessageStatus.QUEUED:
        raise _queued_error()
    require_idle(tx.run)
    if row.type in TURN_MARKERS:
        raise ServiceError("not_removable", _("This line belongs to its turn and can’t be removed on its own."))
    remove_rows(tx, with_own_markers(row), author, Kind.REMOVE)
    _save(tx, row)


@transaction.atomic
def restore(*, session: Session, author: User, message_id: str, as_staff: bool = False) -> bool:
    """Put a removed message back in its position. Return whether it was removed.

    Raise ServiceError "replaced" if a retry has withdrawn the messages around it, and "never_delivered" for a message
    that was removed from the queue.
    """
    tx, row = open_row(session, message_id, removed=True)
    _require_own(tx, row, author, as_staff=as_staff)
    require_idle(tx.run)
    if row.removed_at is None:
        return False
    if row.status == MessageStatus.QUEUED:
        raise ServiceError(
            "never_delivered",
            _("This message was removed from the queue. It has no position in the session, so it can’t be restored."),
        )
    if row.type in TURN_MARKERS:
        raise ServiceError("not_removable", _("This line is restored with the messages of its turn."))
    rows = _with_removed_markers(row)
    after = row_before(tx, rows[0])
    if not fits(rows[0], after) or not _was_removed(row):
        raise ServiceError(
            "replaced", _("A retry replaced this part of the session, so the message can’t be restored.")
        )
    for each in rows:
        save_revision(each, author, Kind.RESTORE)
    restore_rows(tx, rows, after)
    _save(tx, row)
    return True


def may_edit(session: Session, row: ChatMessage, user: User) -> bool:
    """Return whether an editor of the session may edit and remove a message.

    Only the sender and the session's owner may change a user's message.
    """
    return row.type != MessageType.TEXT or row.role != MessageRole.USER or user.pk in (row.user_id, session.owner_id)


def require_editor(*, session: Session, author: User, message_id: str | None) -> None:
    """Raise ServiceError if an editor may not edit a message; None stands for the system prompt (LIVE-08)."""
    require_active(session)
    if message_id is None:
        return
    rows = ChatMessage.objects.filter(session=session, pk=message_id, removed_at__isnull=True)
    row = rows.only("type", "role", "status", "user").first()
    if row is None:
        raise NoSuchMessage
    _require_editable(session, row, author)
    if row.status == MessageStatus.QUEUED and row.user_id != author.pk:
        raise ServiceError("not_yours", _("Only the sender can edit a queued message."))


def _require_editable(session: Session, row: ChatMessage, author: User, *, as_staff: bool = False) -> None:
    if row.type not in TEXT_TYPES:
        raise ServiceError("not_editable", _("This message has no text to edit."))
    if not as_staff and row.status != MessageStatus.QUEUED and not may_edit(session, row, author):
        message = _("Only the author and the session owner can edit this message. You can suggest an edit.")
        raise ServiceError("not_yours", message)


def edit_row(tx: SessionTransaction, row: ChatMessage, editor: User, text: str, *, suggested_by: str = "") -> None:
    """Change the text of a text or reasoning row, and save a revision."""
    more = {"accepted_from": suggested_by} if suggested_by else {}
    MessageRevision.objects.create(message=row, user=editor, kind=Kind.EDIT, before=record_of(row, Kind.EDIT, **more))
    # The provider's signature is for the old text. The revision keeps it.
    columns = {"text": text, "provider_data": None, **mentions_after_edit(tx.session, row, text)}
    before = mentioned_ids(row)
    tx.update("message_updated", row, {**columns, **edit_marks(tx, row, editor, suggested_by)})
    notify_mentioned(tx, row, before=before)


def edit_marks(tx: SessionTransaction, row: ChatMessage, editor: User, suggested_by: str = "") -> dict[str, Any]:
    """Return the columns for the editor and the time of an edit. They name no editor if it is the author (MSG-11)."""
    is_author = row.role == MessageRole.USER and row.user_id == editor.pk
    return {
        "edited_at": timezone.now(),
        "edited_by": None if is_author else editor,
        "edited_by_name": "" if is_author else sender_in(tx.session, editor),
        "suggested_by_name": suggested_by,
    }


def _save(tx: SessionTransaction, row: ChatMessage) -> None:
    """Save a change of the context. A summary changes which messages are in it, so count the tokens again (CTX-07)."""
    if row.summarises is None:
        tx.save()
    else:
        tx.session.context_used = estimated_context(tx.session)
        tx.usage_changed()
        tx.save("context_used")


def open_row(session: Session, message_id: str, *, removed: bool = False) -> tuple[SessionTransaction, ChatMessage]:
    """Lock an active session, and return one of its messages, queued ones included; with `removed`, removed ones, too.

    Raise NoSuchMessage, NoSuchSession, and ServiceError if the session is archived.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    rows = ChatMessage.objects.filter(session=session.pk, pk=message_id)
    row = (rows if removed else rows.filter(removed_at__isnull=True)).first()
    if row is None:
        raise NoSuchMessage
    return tx, row


def require_unused(tx: SessionTransaction, row: ChatMessage) -> None:
    """Raise Busy for a row that the agent is using, because the agent would overwrite the change or miss it."""
    if tx.run.state != RunState.IDLE and row.turn_id == tx.run.turn_id:
        raise in_use_error()


def in_use_error() -> Busy:
    return Busy(_("The agent is using this message. Stop it, or wait until it finishes."))


def _queued_error() -> ServiceError:
    return ServiceError("queued", _("This message is queued. Its sender can edit or remove it."))


def _require_own(tx: SessionTransaction, row: ChatMessage, author: User, *, as_staff: bool) -> None:
    if not as_staff and not may_edit(tx.session, row, author):
        message = _("Only the author and the session owner can remove this message. You can exclude it from context.")
        raise ServiceError("not_yours", message)


def _status_after_edit(row: ChatMessage, values: dict[str, Any]) -> dict[str, Any]:
    """Return the status and the raw arguments of an edited call. A new result completes a call that was cut off."""
    status = MessageStatus.FAILED if values["is_error"] else MessageStatus.COMPLETE
    was_cut = row.status == MessageStatus.INTERRUPTED and row.result == values["result"]
    has_same_arguments = json.dumps(values["arguments"]) == json.dumps(row.arguments or {})
    return {
        "status": row.status if was_cut else status,
        "provider_data": row.provider_data if has_same_arguments else None,
    }


def _new_row(session: Session, author: User, role: str, text: str) -> ChatMessage:
    row = ChatMessage(
        session=session, type=MessageType.TEXT, role=role, text=text, mode=session.mode, timestamp=timezone.now()
    )
    if role == MessageRole.USER:
        row.user, row.sender = author, sender_in(session, author)
    if role == MessageRole.ASSISTANT:
        row.model, row.provider = session.model, session.provider
    return row


def _with_turn(row: ChatMessage, after: ChatMessage | None) -> list[ChatMessage]:
    """Return a new row as part of the turn at its position, or with the markers of a new turn."""
    if after and after.turn_id and after.type != MessageType.TURN_DONE:
        row.turn_id = after.turn_id
        return [row]
    row.turn_id = ids.turn_id()
    common = {"session": row.session, "turn_id": row.turn_id, "mode": row.mode, "timestamp": row.timestamp}
    start = ChatMessage(type=MessageType.TURN_START, **common)
    return [start, row, ChatMessage(type=MessageType.TURN_DONE, duration_seconds=0.0, **common)]


def same_response(before: ChatMessage, row: ChatMessage) -> bool:
    """Return whether two neighbors belong to one response. Calls added by users belong to the text before them."""
    is_content = before.type in CONTENT_TYPES and row.type in CONTENT_TYPES
    by_model = is_content and not {before.role, row.role} & {MessageRole.USER, MessageRole.SYSTEM}
    return by_model and before.response_id == row.response_id and bool(row.response_id or row.type == "tool_group")


def with_own_markers(row: ChatMessage) -> list[ChatMessage]:
    """Return the row, together with the markers of its turn if the turn has no other row."""
    if row.sequence is None or not row.turn_id:
        return [row]
    around = ChatMessage.objects.filter(
        session=row.session_id,
        turn_id=row.turn_id,
        type__in=TURN_MARKERS,
        sequence__in=(row.sequence - 1, row.sequence + 1),
    )
    markers = list(around.order_by("sequence"))
    return [markers[0], row, markers[1]] if len(markers) == 2 else [row]


def _with_removed_markers(row: ChatMessage) -> list[ChatMessage]:
    """Return the row, together with the markers that were removed with the last row of its turn."""
    markers = ChatMessage.objects.filter(session=row.session_id, turn_id=row.turn_id, type__in=TURN_MARKERS)
    if not row.turn_id or markers.filter(sequence__isnull=False).exists():
        return [row]
    removed = [marker for marker in markers if _was_removed(marker)]
    start = [marker for marker in removed if marker.type == MessageType.TURN_START]
    done = [marker for marker in removed if marker.type == MessageType.TURN_DONE]
    return [*start, row, *done]


def _was_removed(row: ChatMessage) -> bool:
    """Return whether a user removed the row from the session. Retries and withdrawals from the queue do not count."""
    return (
        MessageRevision.objects.filter(message=row).order_by("pk").values_list("kind", flat=True).last() == Kind.REMOVE
    )
