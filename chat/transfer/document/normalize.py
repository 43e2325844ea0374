"""Normalize a document: finish every message, and give each message a place and each turn an end (CTX-03)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from chat import ids
from chat.models import UNFINISHED, MessageRevision, MessageRole, MessageStatus, MessageType, Session
from chat.projections.context import TOOL_INTERRUPTED
from chat.runs.elicitations import asked_of
from chat.transfer.document.schema import AskedPart, Document, MessagePart

_UNFINISHED = {str(status) for status in UNFINISHED}
_SAYS = {MessageType.REASONING.value, MessageType.TOOL_GROUP.value}


def normalize(document: Document, now: datetime) -> Document:
    """Return the document without anything that a session without a run cannot contain.

    A document without unfinished work is unchanged. Unfinished messages become interrupted, and queued ones become
    withdrawn. `now` is used if a time is missing.
    """
    live, others = _split(document.messages)
    used: set[str] = set()
    placed = list(_in_turns([_finish(each) for each in live], used))
    for place, each in enumerate(placed, 1):
        each.sequence, each.revision = place, each.revision or place
        each.attempt, each.attempt_place = "", None
    return document.model_copy(
        update={
            "messages": [*placed, *_withdrawn([_placeless(each, now) for each in others], used)],
            "session": _session(document, [*placed, *others]),
        }
    )


def _split(messages: Sequence[MessagePart]) -> tuple[list[MessagePart], list[MessagePart]]:
    """Return the messages of the conversation, in order, and those without a place."""
    copies = [each.model_copy() for each in messages]
    live = [each for each in copies if each.removed_at is None and each.status != MessageStatus.QUEUED]
    places = {id(each): (each.sequence is None, each.sequence or 0) for each in live}
    return sorted(live, key=lambda each: places[id(each)]), [each for each in copies if id(each) not in places]


def _finish(message: MessagePart) -> MessagePart:
    _role(message)
    message.asked = list(_closed_questions(message.asked))
    if message.status not in _UNFINISHED:
        return message
    message.status = MessageStatus.INTERRUPTED.value
    if message.type == MessageType.TOOL_GROUP and not message.result:
        message.result, message.is_error = TOOL_INTERRUPTED, True
    return message


def _closed_questions(asked: Sequence[AskedPart]) -> Iterator[AskedPart]:
    """Yield the questions of a call, without invalid ones. Open questions are closed, as no one can answer them now."""
    for each in asked:
        for known in asked_of([each.record()]):
            yield each.model_copy(update={"withdrawn": "leaving"}) if known.is_open else each


def _role(message: MessagePart) -> None:
    """Set the role of reasoning and tool calls to assistant, because users and the system only send texts."""
    if message.type in _SAYS and message.role != MessageRole.ASSISTANT:
        message.role = MessageRole.ASSISTANT.value if message.role else ""
    if (message.type, message.role) != (MessageType.TEXT, MessageRole.SYSTEM):
        message.summarises = None


def _placeless(message: MessagePart, now: datetime) -> MessagePart:
    """Return a message as removed from the conversation."""
    message.sequence = None
    if message.status == MessageStatus.QUEUED and (message.type, message.role) != ("text", "user"):
        message.status = MessageStatus.COMPLETE.value
    if message.status != MessageStatus.QUEUED:
        _finish(message)
    # A queued message was never part of the conversation, so no attempt can restore it.
    if not message.attempt or message.attempt_place is None or message.status == MessageStatus.QUEUED:
        message.attempt, message.attempt_place = "", None
    message.removed_at = message.removed_at or message.created_at or message.timestamp or now
    return message


def _withdrawn(messages: Sequence[MessagePart], used: set[str]) -> list[MessagePart]:
    """Return the messages without a place, and make sure that their attempts can be restored.

    The first message of an attempt must have the record of the retry, which contains the place of the attempt.
    Otherwise its messages become ordinary removed messages. A turn that is open at the end of an attempt gets an end.
    """
    attempts: dict[str, list[MessagePart]] = {}
    for each in messages:
        if each.attempt:
            attempts.setdefault(each.attempt, []).append(each)
    ends: list[MessagePart] = []
    dropped: set[int] = set()
    for name, rows in attempts.items():
        rows.sort(key=lambda each: each.attempt_place or 0)
        is_known = any(record.kind == MessageRevision.Kind.RETRY for record in rows[0].revisions)
        begun = rows[0] if rows[0].run_id and rows[0].type != MessageType.TURN_START else None
        whole = list(_in_turns(rows, used, begun)) if is_known else rows
        for place, each in enumerate(whole):
            each.attempt, each.attempt_place = (name, place) if is_known else ("", None)
            each.removed_at = each.removed_at or rows[0].removed_at
        kept, known = set(map(id, whole)), set(map(id, rows))
        ends += [each for each in whole if id(each) not in known]
        dropped |= known - kept
    return [*(each for each in messages if id(each) not in dropped), *ends]


def _in_turns(
    messages: Sequence[MessagePart], used: set[str], turn: MessagePart | None = None
) -> Iterator[MessagePart]:
    """Yield the messages in turns that start, end and do not overlap. Each message belongs to the turn around it.

    `used` are the ids of earlier turns. `turn` is a message of the turn that is open at the beginning.
    """
    for each in messages:
        if turn is not None and each.type == MessageType.TURN_START:
            yield _end_of(turn)
        if each.type == MessageType.TURN_START:
            turn = each
            turn.run_id = ids.turn_id() if each.run_id in used | {""} else each.run_id
            used.add(turn.run_id)
        elif each.type == MessageType.TURN_DONE and turn is None:
            continue
        each.run_id = turn.run_id if turn else ""
        turn = None if each.type == MessageType.TURN_DONE else turn
        yield each
    if turn is not None:
        yield _end_of(turn)


def _end_of(start: MessagePart) -> MessagePart:
    return MessagePart(
        type=MessageType.TURN_DONE.value, run_id=start.run_id, mode=start.mode, timestamp=start.timestamp
    )


def _session(document: Document, messages: Sequence[MessagePart]) -> object:
    session = document.session
    revision = max([session.revision, *(each.revision for each in messages)])
    is_deleted = session.status == Session.Status.DELETED
    status = Session.Status.ACTIVE.value if is_deleted else session.status
    return session.model_copy(update={"revision": revision, "status": status})
