"""Changing what has been said: words, what the model hears of it, and what is there at all (MSG-09, MSG-11)."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Busy, NoSuchMessage, ServiceError
from chat.models import (
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
from chat.services.messages import sending
from chat.services.messages.ordering import fits, put_back, stands_after, take_out
from chat.services.messages.senders import sender_in
from chat.services.messages.validation import bounded, storable, storable_object
from chat.services.optimistic_lock import require_seen
from chat.services.transaction import SessionTransaction, record_of, save_revision

Kind = MessageRevision.Kind
WORDS = (MessageType.TEXT, MessageType.REASONING)
SAID = (*WORDS, MessageType.TOOL_GROUP)


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
    """Change the words of a message, from the next response on for the model too (ADM-02); returns its revision.

    `seen` is the message's revision that the author had before them: ServiceError as "stale", with the `current` text
    and `revision`, when somebody has edited the message since. A queued message is its sender's; a person's message is
    edited by them, by the session's owner, and by staff in the admin (`as_staff`): ServiceError as "not_yours" for
    others.
    """
    tx, row = open_row(session, message_id)
    text = storable(text, may_be_empty=bool(attached_to(row)))
    if row.type not in WORDS:
        raise ServiceError("not_editable", _("This message has no text to edit."))
    if not as_staff and row.status != MessageStatus.QUEUED and not may_edit(tx.session, row, author):
        words = _("Only the author and the session owner can edit this message. You can suggest an edit.")
        raise ServiceError("not_yours", words)
    require_seen(row, seen, row.text)
    if text == row.text:
        return row.revision
    if row.status == MessageStatus.QUEUED:
        return sending.edit_queued(session=session, author=author, message_id=message_id, text=text)
    require_at_rest(tx, row)
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
    """Change what a tool was asked and what it answered; the call keeps its one result (CTX-03).

    `arguments` is a JSON object. ServiceError as "stale" when somebody has changed either since the revision `seen`,
    with all three as `current`; as "not_a_tool_call" for other messages.
    """
    tx, row = open_row(session, message_id)
    if row.type != MessageType.TOOL_GROUP:
        raise ServiceError("not_a_tool_call", _("This message isn’t a tool call."))
    wanted = {"arguments": storable_object(arguments), "result": bounded(result), "is_error": is_error}
    present = {name: getattr(row, name) for name in wanted} | {"arguments": row.arguments or {}}
    require_seen(row, seen, present)
    if json.dumps(wanted) == json.dumps(present):  # in Python, true would be 1
        return
    require_at_rest(tx, row)
    save_revision(row, author, Kind.EDIT)
    marks = edit_marks(tx, row, author)
    tx.update("message_updated", row, {**wanted, **_consequences(row, wanted), **marks})
    tx.save()


@transaction.atomic
def add(*, session: Session, author: User, after_id: str | None, role: str, text: str) -> ChatMessage:
    """Write a message of one's own between two others; `after_id` None: before all of them.

    What stands between two turns becomes a turn of its own. A user's words are the author's; a message's time is that
    of what stands before it, so that times go on in their order, and the record says who added it when. Raises
    ServiceError: the agent works, text that cannot be kept, a place within a response.
    """
    if role not in MessageRole.values:
        raise ServiceError("no_such_role", _("The role must be user, assistant or system."))
    text = storable(text)
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    _require_idle(tx)
    after = None if after_id is None else _standing(tx, after_id)
    following = tx.messages().filter(sequence=(after.sequence or 0) + 1 if after else 1).first()
    if after and following and same_response(after, following):
        raise ServiceError(
            "inside_response", _("A response and its tool calls belong together. Add a message before or after them.")
        )
    row = _written(tx.session, author, role, text)
    row.timestamp = after.timestamp if after and following else following.timestamp if following else row.timestamp
    rows = _in_turn(row, after)
    for each in rows:
        each.removed_at = timezone.now()  # nowhere, until it has a place
        each.save(force_insert=True)
    MessageRevision.objects.create(message=row, user=author, kind=Kind.ADD, before={})
    put_back(tx, rows, after)
    tx.save()
    return row


@transaction.atomic
def include(*, session: Session, author: User, message_id: str, included: bool) -> bool:
    """Say whether the model is sent a message; a tool call and its result are one (MSG-09, CTX-03).

    Returns whether that was otherwise before.
    """
    tx, row = open_row(session, message_id)
    if row.type not in SAID:
        raise ServiceError("never_sent", _("This is never sent to the model."))
    if row.status == MessageStatus.QUEUED:
        raise ServiceError("queued", _("This message is queued. Its sender can edit or remove it."))
    require_at_rest(tx, row)
    if row.include_in_context == included:
        return False
    save_revision(row, author, Kind.INCLUDE if included else Kind.EXCLUDE)
    tx.update("message_updated", row, {"include_in_context": included})
    tx.save()
    return True


@transaction.atomic
def remove(*, session: Session, author: User, message_id: str, as_staff: bool = False) -> None:
    """Take a message out of view and context; `restore` brings it back. What is left of its turn goes with it.

    A person's message is removed and restored by those who may edit it: ServiceError as "not_yours" for others.
    """
    tx, row = open_row(session, message_id)
    _require_own(tx, row, author, as_staff=as_staff)
    _require_idle(tx)
    if row.type in TURN_MARKERS:
        raise ServiceError("not_removable", _("This can’t be removed apart from its turn."))
    take_out(tx, _with_its_markers(row), author, Kind.REMOVE)
    tx.save()


@transaction.atomic
def restore(*, session: Session, author: User, message_id: str, as_staff: bool = False) -> bool:
    """Put a removed message back in its place; returns whether it was removed.

    ServiceError as "replaced" when that place has gone: a retry has withdrawn what was around it.
    """
    tx, row = open_row(session, message_id, removed=True)
    _require_own(tx, row, author, as_staff=as_staff)
    _require_idle(tx)
    if row.removed_at is None:
        return False
    rows = _with_its_markers_again(row)
    after = stands_after(tx, rows[0])
    if not fits(rows[0], after) or not _was_removed(row):
        raise ServiceError(
            "replaced", _("A retry replaced this part of the session, so the message can’t be restored.")
        )
    for each in rows:
        save_revision(each, author, Kind.RESTORE)
    put_back(tx, rows, after)
    tx.save()
    return True


def may_edit(session: Session, row: ChatMessage, user: User) -> bool:
    """Whether an editor of the session may change and remove a message: a person's is theirs and the owner's."""
    return row.type != MessageType.TEXT or row.role != MessageRole.USER or user.pk in (row.user_id, session.owner_id)


def edit_row(tx: SessionTransaction, row: ChatMessage, editor: User, text: str, *, suggested_by: str = "") -> None:
    """Give a text or reasoning other words, and keep what it was."""
    more = {"accepted_from": suggested_by} if suggested_by else {}
    MessageRevision.objects.create(message=row, user=editor, kind=Kind.EDIT, before=record_of(row, Kind.EDIT, **more))
    # A signature is of the words as they were; the record keeps it.
    words = {"text": text, "provider_data": None}
    tx.update("message_updated", row, {**words, **edit_marks(tx, row, editor, suggested_by)})


def edit_marks(tx: SessionTransaction, row: ChatMessage, editor: User, suggested_by: str = "") -> dict[str, Any]:
    """Return the columns that say who edited a row, and when. An author's own edit has no name (MSG-11)."""
    is_author = row.role == MessageRole.USER and row.user_id == editor.pk
    return {
        "edited_at": timezone.now(),
        "edited_by": None if is_author else editor,
        "edited_by_name": "" if is_author else sender_in(tx.session, editor),
        "suggested_by_name": suggested_by,
    }


def open_row(session: Session, message_id: str, *, removed: bool = False) -> tuple[SessionTransaction, ChatMessage]:
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    rows = ChatMessage.objects.filter(session=session.pk, pk=message_id)
    row = (rows if removed else rows.filter(removed_at__isnull=True)).first()
    if row is None:
        raise NoSuchMessage
    return tx, row


def _standing(tx: SessionTransaction, message_id: str) -> ChatMessage:
    row = tx.messages().filter(pk=message_id).first() if ids.may_be_one(message_id) else None
    if row is None:
        raise NoSuchMessage
    return row


def require_at_rest(tx: SessionTransaction, row: ChatMessage) -> None:
    """Refuse changes of what the agent is using: it would overwrite the change, or not know of it."""
    if tx.run.state != RunState.IDLE and row.run_id == tx.run.turn_id:
        raise Busy(_("The agent is using this message. Stop it, or wait until it finishes."))


def _require_own(tx: SessionTransaction, row: ChatMessage, author: User, *, as_staff: bool) -> None:
    if not as_staff and not may_edit(tx.session, row, author):
        words = _("Only the author and the session owner can remove this message. You can exclude it from context.")
        raise ServiceError("not_yours", words)


def _require_idle(tx: SessionTransaction) -> None:
    if tx.run.state != RunState.IDLE:
        raise Busy


def _consequences(row: ChatMessage, wanted: dict[str, Any]) -> dict[str, Any]:
    """What else a changed call is: done, if its result is another; not as the model wrote it, if it asks for more."""
    status = MessageStatus.FAILED if wanted["is_error"] else MessageStatus.COMPLETE
    was_cut = row.status == MessageStatus.INTERRUPTED and row.result == wanted["result"]
    is_asked_alike = json.dumps(wanted["arguments"]) == json.dumps(row.arguments or {})
    return {
        "status": row.status if was_cut else status,
        "provider_data": row.provider_data if is_asked_alike else None,
    }


def _written(session: Session, author: User, role: str, text: str) -> ChatMessage:
    row = ChatMessage(
        session=session, type=MessageType.TEXT, role=role, text=text, mode=session.mode, timestamp=timezone.now()
    )
    if role == MessageRole.USER:
        row.user, row.sender = author, sender_in(session, author)
    if role == MessageRole.ASSISTANT:
        row.model, row.provider = session.model, session.provider
    return row


def _in_turn(row: ChatMessage, after: ChatMessage | None) -> list[ChatMessage]:
    """Let a new row be of the turn in which it will stand, or of one of its own, with its markers."""
    if after and after.run_id and after.type != MessageType.TURN_DONE:
        row.run_id = after.run_id
        return [row]
    row.run_id = ids.turn_id()
    common = {"session": row.session, "run_id": row.run_id, "mode": row.mode, "timestamp": row.timestamp}
    start = ChatMessage(type=MessageType.TURN_START, **common)
    return [start, row, ChatMessage(type=MessageType.TURN_DONE, duration_seconds=0.0, **common)]


def same_response(before: ChatMessage, row: ChatMessage) -> bool:
    """Whether two neighbours are of one response of the model; hand-written calls belong to the text before them."""
    is_said = before.type in SAID and row.type in SAID
    by_model = is_said and not {before.role, row.role} & {MessageRole.USER, MessageRole.SYSTEM}
    return by_model and before.response_id == row.response_id and bool(row.response_id or row.type == "tool_group")


def _with_its_markers(row: ChatMessage) -> list[ChatMessage]:
    """The row, between the markers of its turn if it is all that the turn has left."""
    if row.sequence is None or not row.run_id:
        return [row]
    around = ChatMessage.objects.filter(
        session=row.session_id,
        run_id=row.run_id,
        type__in=TURN_MARKERS,
        sequence__in=(row.sequence - 1, row.sequence + 1),
    )
    markers = list(around.order_by("sequence"))
    return [markers[0], row, markers[1]] if len(markers) == 2 else [row]


def _with_its_markers_again(row: ChatMessage) -> list[ChatMessage]:
    """The row, between the markers that went with the last of its turn."""
    markers = ChatMessage.objects.filter(session=row.session_id, run_id=row.run_id, type__in=TURN_MARKERS)
    if not row.run_id or markers.filter(sequence__isnull=False).exists():
        return [row]
    removed = [marker for marker in markers if _was_removed(marker)]
    start = [marker for marker in removed if marker.type == MessageType.TURN_START]
    done = [marker for marker in removed if marker.type == MessageType.TURN_DONE]
    return [*start, row, *done]


def _was_removed(row: ChatMessage) -> bool:
    """Whether a user removed it from the session: not a retry, and not its sender from the queue."""
    return (
        MessageRevision.objects.filter(message=row).order_by("pk").values_list("kind", flat=True).last() == Kind.REMOVE
    )
