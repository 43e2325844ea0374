"""Forks: a new session that continues from a message of another one (RUN-13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.bus.publisher import stirred
from chat.errors import Busy, NoSuchMessage, NoSuchSession, ServiceError
from chat.limits.quotas import require_disk
from chat.limits.rates import limited
from chat.models import (
    UNFINISHED,
    Attachment,
    ChatMessage,
    MessageRole,
    MessageStatus,
    MessageType,
    Session,
    SessionRun,
    User,
)
from chat.services.batches import Pacer, batches
from chat.services.deletion import sessions
from chat.services.messages.validation import storable
from chat.services.runs.control import can_go_on, is_heard
from chat.services.runs.turns import resume_turn
from chat.services.sessions import incomplete
from chat.services.transaction import SessionTransaction

BATCH = 500
# What a session takes over from the one that it was forked from.
INHERITED = ("workspace_id", "mode", "agent", "provider", "model", "system_prompt", "config", "context_window")
# What decides about a copy; the rest of a row goes from row to row inside the database.
READ = (
    "session_id",
    "sequence",
    "type",
    "role",
    "status",
    "mode",
    "run_id",
    "response_id",
    "input_tokens",
    "output_tokens",
)
# What a copy gets of its own, and what it has none of: a message that is removed while it is copied stays in the copy.
OWN = ("id", "session_id", "sequence", "revision", "run_id", "response_id", "open_suggestions", "attempt")
NONE = ("key", "key_digest", "removed_at", "attempt_place")


@dataclass(slots=True)
class Copying:
    """The rows to copy, in order, and the new ids of what they belong to, by the old ones."""

    rows: list[ChatMessage]
    goes_on: bool
    copies: dict[str, str] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=lambda: defaultdict(ids.turn_id, {"": ""}))
    responses: dict[str, str] = field(default_factory=lambda: defaultdict(ids.response_id, {"": ""}))

    @property
    def batches(self) -> list[list[ChatMessage]]:
        return list(batches(self.rows, _size))


@limited("forks", by="author")
def fork(
    *,
    session: Session,
    author: User,
    message_id: str,
    text: str | None = None,
    run: bool = False,
    session_id: str = "",
    key_digest: str | None = None,
) -> Session:
    """Copy a session up to a message, inclusive, into a new one that is the author's alone, named `session_id`.

    `text` replaces the last of the copied user texts, and the copy ends with it. `run` continues from the end, as a
    retry does, if that waits for an answer. A large session is copied in several transactions and appears when all of
    it is there; what is edited meanwhile is copied with its old or its new text. Raises ServiceError: unknown message,
    unstorable text, no user text to change, the agent is still working on what would be copied, or another large copy
    of the author's is being made.
    """
    require_disk()
    said = None if text is None else storable(text)
    columns = {"pk": session_id or ids.session_id(), "key_digest": key_digest}
    copying = _copying(session, message_id, said, run)
    if len(copying.batches) > 1:
        return _fork_in_batches(session, author, message_id, said, copying, columns)
    with transaction.atomic():
        Session.objects.select_for_update().filter(pk=session.pk).first()  # no changes during the copy
        copying = _copying(session, message_id, said, run)
        made = _make(session, author, message_id, copying, columns)
        _copy(made, copying, copying.rows)
        _finish(made, author, copying, said)
    return made


def _fork_in_batches(
    session: Session, author: User, message_id: str, said: str | None, copying: Copying, columns: dict[str, Any]
) -> Session:
    incomplete.require_none_of(author)
    made = _make(session, author, message_id, copying, columns | incomplete.new_columns())
    pacer = Pacer()
    try:
        for batch in copying.batches:
            with transaction.atomic():
                incomplete.touch(made)
                _copy(made, copying, batch)
            pacer.pause()
        with transaction.atomic():
            incomplete.complete(made)
            _finish(made, author, copying, said)
    except BaseException:
        sessions.discard(made.pk)
        raise
    return made


def _copying(session: Session, message_id: str, said: str | None, run: bool) -> Copying:
    rows = _rows_until(session, message_id)
    if said is not None:
        rows = _ending_with_user_text(rows)
    goes_on = run and can_go_on(rows[-1]) and (said is not None or is_heard(rows[-1]))
    return Copying(rows if goes_on else [*rows, *_end_of_turn(rows[-1])], goes_on)


def _rows_until(session: Session, message_id: str) -> list[ChatMessage]:
    present = Session.objects.filter(pk=session.pk).exclude(status=Session.Status.DELETED)
    if not present.exists():
        raise NoSuchSession
    live = ChatMessage.objects.live(session.pk)
    last = live.filter(pk=message_id).values_list("sequence", flat=True).first()
    if last is None:
        raise NoSuchMessage
    rows = list(_read(live.filter(sequence__lte=last).order_by("sequence")))
    if any(row.status in (*UNFINISHED, MessageStatus.WAITING) for row in rows):
        raise Busy(_("The agent is using this message. Stop it, or fork at an earlier message."))
    return rows


def _read(rows: QuerySet[ChatMessage]) -> QuerySet[ChatMessage]:
    return rows.only(*READ).annotate(size=Length("text") + Length("result"))


def _size(row: ChatMessage) -> int:
    size: int = row.size  # type: ignore[attr-defined]  # by _read
    return size


def _ending_with_user_text(rows: Sequence[ChatMessage]) -> list[ChatMessage]:
    for count in range(len(rows), 0, -1):
        if rows[count - 1].type == MessageType.TEXT and rows[count - 1].role == MessageRole.USER:
            return list(rows[:count])
    raise ServiceError("no_user_message", _("There is no earlier user message to edit."))


def _end_of_turn(last: ChatMessage) -> QuerySet[ChatMessage]:
    """The row that ends a row's turn, if it comes next."""
    following = ChatMessage.objects.filter(session=last.session_id, sequence=(last.sequence or 0) + 1)
    return _read(following.filter(type=MessageType.TURN_DONE, run_id=last.run_id))


@transaction.atomic
def _make(session: Session, author: User, message_id: str, copying: Copying, columns: dict[str, Any]) -> Session:
    rows = copying.rows
    made = Session.objects.create(
        owner=author,
        title=_forked_title(session.title),
        parent_session=session,
        parent_message_id=message_id,
        revision=len(rows),
        total_tokens=sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in rows),
        context_used=next((row.input_tokens for row in reversed(rows) if row.input_tokens is not None), None),
        **{name: getattr(session, name) for name in INHERITED},
        **columns,
    )
    SessionRun.objects.create(session=made)
    return made


def _forked_title(title: str) -> str:
    room = 200 - len(_("%(title)s (fork)") % {"title": ""})
    return _("%(title)s (fork)") % {"title": title[:room]} if title else ""


def _copy(made: Session, copying: Copying, rows: Sequence[ChatMessage]) -> None:
    """Copy rows, with new ids, and their files after those that are copied already."""
    table = ChatMessage._meta.db_table
    kept = [each.column for each in ChatMessage._meta.concrete_fields if each.column not in (*OWN, *NONE)]
    columns = ", ".join(f'"{column}"' for column in (*OWN, *NONE, *kept))
    values = ", ".join(["%s"] * len(OWN) + ["NULL"] * len(NONE) + [f'"{column}"' for column in kept])
    # Thousands of whole rows through Python would block all other writers.
    statement = f'INSERT INTO "{table}" ({columns}) SELECT {values} FROM "{table}" WHERE "id" = %s'  # noqa: S608  # names of the model's own
    parameters = []
    for place, row in enumerate(rows, len(copying.copies) + 1):
        turn, response = copying.turns[row.run_id], copying.responses[row.response_id]
        copying.copies[row.pk] = ids.message_id()
        parameters.append((copying.copies[row.pk], made.pk, place, place, turn, response, 0, "", row.pk))
    with connection.cursor() as cursor:
        cursor.executemany(statement, parameters)
    _copy_attachments(made, {row.pk: copying.copies[row.pk] for row in rows})


def _finish(made: Session, author: User, copying: Copying, said: str | None) -> None:
    if ChatMessage.objects.filter(session=made).count() != len(copying.rows):
        raise NoSuchSession  # the original was erased during the copy
    if said is not None:
        _reword(copying.copies[copying.rows[-1].pk], author, said)
    _end(made, goes_on=copying.goes_on)
    transaction.on_commit(lambda: stirred(sessions=[made.pk]))


def _reword(message_id: str, author: User, text: str) -> None:
    """Make the edited text a message of the user who forks, which the agent answers."""
    said = ChatMessage.objects.filter(pk=message_id)
    said.update(include_in_context=True)
    said.exclude(text=text).update(
        text=text,
        user=author,
        sender=author.sender[:200],
        timestamp=timezone.now(),
        edited_at=None,
        edited_by=None,
        edited_by_name="",
        suggested_by_name="",
    )


def _copy_attachments(made: Session, copies: dict[str, str]) -> None:
    """Give the copies their files; the stored bytes are shared by both.

    The rows are locked, so that the last user of the bytes cannot go before the copies are counted as users.
    """
    files = list(Attachment.objects.select_for_update().filter(message__in=list(copies)))
    for file in files:
        file.message_id = copies[file.message_id or ""]
        file.pk, file.session = ids.attachment_id(), made
    Attachment.objects.bulk_create(files, batch_size=BATCH)


def _end(made: Session, *, goes_on: bool) -> None:
    """Let the last turn go on, or close it."""
    tx = SessionTransaction.lock(made.pk)
    last = ChatMessage.objects.filter(session=made).order_by("sequence").last()
    if last is None or not last.run_id or last.type == MessageType.TURN_DONE:
        return
    if goes_on:
        resume_turn(tx, last.run_id, made.owner)
    else:
        done = ChatMessage(type=MessageType.TURN_DONE, run_id=last.run_id, mode=last.mode, duration_seconds=0.0)
        tx.insert("turn_done", done)
    tx.save()
