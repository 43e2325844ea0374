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

from agents.messages import Json
from chat import ids
from chat.access import still_has_role
from chat.errors import Busy, NoSuchMessage, NoSuchSession, ServiceError
from chat.limits.quotas import require_disk
from chat.limits.rates import limited
from chat.models import (
    FORKED_FILES,
    IMPORTED,
    UNFINISHED,
    Attachment,
    ChatMessage,
    MessageRole,
    MessageType,
    Session,
    SessionRun,
    User,
)
from chat.queries import presets
from chat.services.batches import Pacer, batches
from chat.services.deletion import sessions
from chat.services.messages.mentioning import with_agents
from chat.services.messages.validation import validate_message
from chat.services.runs.control import can_continue, has_context
from chat.services.runs.turns import address_again, answer_unaddressed, is_unaddressed, resume_turn
from chat.services.sessions import forked_files, incomplete
from chat.services.sessions.forked_files import FoundFiles
from chat.services.transaction import SessionTransaction, notify_session_lists
from chat.services.webhooks import outbox

BATCH = 500
# Columns that a fork copies from its session.
INHERITED = (
    "workspace_id",
    "mode",
    "replies",
    "replies_auto",
    "agent",
    "provider",
    "model",
    "system_prompt",
    "context_window",
)
# Fields of messages that the copy needs in Python. The database copies the others.
READ_FIELDS = (
    "session_id",
    "sequence",
    "type",
    "role",
    "status",
    "mode",
    "turn_id",
    "response_id",
    "summarises",
    "input_tokens",
    "output_tokens",
)
# Database columns of messages for which the copy has its own values, by `_own_values`.
OWN_COLUMNS = (
    "id",
    "session_id",
    "workspace_id",
    "sequence",
    "revision",
    "run_id",
    "response_id",
    "open_suggestions",
    "attempt",
    "attempt_count",
    "attempt_current",
)
# Database columns of messages that are null in the copy. A message that is removed during the copy stays in it.
NULL_COLUMNS = ("key", "key_digest", "removed_at", "attempt_place", "subsession")


@dataclass(slots=True)
class CopyPlan:
    """The rows to copy, in order, and the new ids of messages, turns and responses, by the old ids.

    `files` is the result of copying the session's files, for `forked_files.mark`.
    """

    rows: list[ChatMessage]
    resumes: bool
    files: Json | None = None
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
    """Copy a session up to and including a message into a new private session of the author, with id `session_id`.

    `text` replaces the last copied user text, and the copy ends there. `run` continues from the end, as a retry does,
    if the last row needs an answer. The session files are copied as they are now, unless they are too large.
    The copy stores the result (`chat.queries.forked_files`).

    A session that is large or has files is copied in several transactions, and appears when it is complete. A message
    that is edited in the meantime is copied with its old or its new text. If the author loses access in the meantime,
    the fork fails. Call it outside of transactions. Raise ServiceError if the message does not exist, the text cannot
    be stored, there is no user text to replace, the agent is using a row to copy, or another large session of the
    author is being copied.
    """
    require_disk()
    has_role = still_has_role(author, session)  # False for staff who fork in the admin
    new_text = None if text is None else validate_message(text)
    columns = {"pk": session_id or ids.session_id(), "key_digest": key_digest}
    plan = _plan_copy(session, message_id, new_text, run)
    files = forked_files.find_files(session, author)
    if len(plan.batches) > 1 or files is not None:
        return _fork_in_batches(session, author, message_id, new_text, plan, files, columns, has_role=has_role)
    with transaction.atomic():
        Session.objects.select_for_update().filter(pk=session.pk).first()  # no changes during the copy
        plan = _plan_copy(session, message_id, new_text, run)
        copy = _make(session, author, message_id, plan, columns)
        _copy(copy, plan, plan.rows)
        _finish(copy, author, plan, new_text)
    return copy


def _fork_in_batches(
    session: Session,
    author: User,
    message_id: str,
    new_text: str | None,
    plan: CopyPlan,
    files: FoundFiles | None,
    columns: dict[str, Any],
    *,
    has_role: bool,
) -> Session:
    if len(plan.batches) > 1 or (files is not None and files.is_large):
        incomplete.require_none_of(author)
    copy = _make(session, author, message_id, plan, columns | incomplete.new_columns())
    pacer = Pacer()
    try:
        # Before the rows: if the original is erased during the copy, rows are missing, and the fork fails.
        plan.files = forked_files.copy_files(files, copy) if files is not None else None
        for batch in plan.batches:
            with transaction.atomic():
                incomplete.touch(copy)
                _copy(copy, plan, batch)
            pacer.pause()
        with transaction.atomic():
            if has_role and not still_has_role(author, session):
                raise NoSuchSession  # the copy may have messages that were written after the access was lost
            incomplete.complete(copy)
            _finish(copy, author, plan, new_text)
    except BaseException:
        sessions.discard(copy.pk)
        forked_files.remove_files(copy)  # another process may have erased the session before they were copied
        raise
    return copy


def _plan_copy(session: Session, message_id: str, new_text: str | None, run: bool) -> CopyPlan:
    rows = _rows_until(session, message_id)
    if new_text is not None:
        rows = _ending_with_user_text(rows)
    if is_unaddressed(rows[-1]):
        return CopyPlan(rows, run and (new_text is not None or rows[-1].include_in_context))
    resumes = run and can_continue(rows[-1]) and (new_text is not None or has_context(rows[-1]))
    return CopyPlan(rows if resumes else [*rows, *_end_of_turn(rows[-1])], resumes)


def _rows_until(session: Session, message_id: str) -> list[ChatMessage]:
    present = Session.objects.filter(pk=session.pk).exclude(status=Session.Status.DELETED)
    if not present.exists():
        raise NoSuchSession
    live = ChatMessage.objects.in_conversation(session.pk)
    last = live.filter(pk=message_id).values_list("sequence", flat=True).first()
    if last is None:
        raise NoSuchMessage
    rows = list(_read(live.filter(sequence__lte=last).order_by("sequence")))
    if any(row.status in UNFINISHED for row in rows):
        raise Busy(_("The agent is using this message. Stop it, or fork at an earlier message."))
    return rows


def _read(rows: QuerySet[ChatMessage]) -> QuerySet[ChatMessage]:
    return rows.only(*READ_FIELDS).annotate(size=Length("text") + Length("result"))


def _size(row: ChatMessage) -> int:
    size: int = row.size  # type: ignore[attr-defined]  # by _read
    return size


def _ending_with_user_text(rows: Sequence[ChatMessage]) -> list[ChatMessage]:
    for count in range(len(rows), 0, -1):
        if rows[count - 1].type == MessageType.TEXT and rows[count - 1].role == MessageRole.USER:
            return list(rows[:count])
    raise ServiceError("no_user_message", _("There is no earlier user message to edit."))


def _end_of_turn(last: ChatMessage) -> QuerySet[ChatMessage]:
    """Return the row after this one if it ends the turn, otherwise no row."""
    following = ChatMessage.objects.filter(session=last.session_id, sequence=(last.sequence or 0) + 1)
    return _read(following.filter(type=MessageType.TURN_DONE, turn_id=last.turn_id))


@transaction.atomic
def _make(session: Session, author: User, message_id: str, plan: CopyPlan, columns: dict[str, Any]) -> Session:
    rows = plan.rows
    # People approve tool calls for one session, so the fork asks again.
    config = presets.without_approvals(session.config_values)
    config.pop(FORKED_FILES, None)
    if config.get(IMPORTED):
        config[IMPORTED] = True  # without the time, because the fork was not imported from a file
    # Only the author can write in the fork.
    alone = {"replies": Session.Replies.ALL} if session.replies_auto else {}
    copy = Session.objects.create(
        owner=author,
        title=_forked_title(session.title),
        parent_session=session,
        parent_message_id=message_id,
        revision=len(rows),
        total_tokens=sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in rows),
        context_used=next((row.input_tokens for row in reversed(rows) if row.input_tokens is not None), None),
        config=config,
        **{name: getattr(session, name) for name in INHERITED} | alone,
        **columns,
    )
    SessionRun.objects.create(session=copy)
    return copy


def _forked_title(title: str) -> str:
    room = 200 - len(_("%(title)s (fork)") % {"title": ""})
    return _("%(title)s (fork)") % {"title": title[:room]} if title else ""


def _copy(copy: Session, plan: CopyPlan, rows: Sequence[ChatMessage]) -> None:
    """Append copies of rows, with new ids, and copies of their attachments."""
    table = ChatMessage._meta.db_table
    own_or_null = (*OWN_COLUMNS, *NULL_COLUMNS)
    kept_columns = [each.column for each in ChatMessage._meta.concrete_fields if each.column not in own_or_null]
    columns = ", ".join(f'"{column}"' for column in (*own_or_null, *kept_columns))
    new_values = ["%s"] * len(OWN_COLUMNS) + ["NULL"] * len(NULL_COLUMNS)
    values = ", ".join(new_values + [f'"{column}"' for column in kept_columns])
    # Copied in the database, because thousands of rows in Python would block all other writers.
    statement = f'INSERT INTO "{table}" ({columns}) SELECT {values} FROM "{table}" WHERE "id" = %s'  # noqa: S608  # names of the model's own
    parameters = []
    for place, row in enumerate(rows, len(plan.copies) + 1):
        plan.copies[row.pk] = ids.message_id()
        own = _own_values(copy, plan, row, place)
        parameters.append((*(own[column] for column in OWN_COLUMNS), row.pk))
    with connection.cursor() as cursor:
        cursor.executemany(statement, parameters)
    _copy_attachments(copy, {row.pk: plan.copies[row.pk] for row in rows})


def _own_values(copy: Session, plan: CopyPlan, row: ChatMessage, place: int) -> dict[str, str | int]:
    """Return the values of OWN_COLUMNS for the copy of a row."""
    return {
        "id": plan.copies[row.pk],
        "session_id": copy.pk,
        "workspace_id": copy.workspace_id,
        "sequence": place,
        "revision": place,
        "run_id": plan.turns[row.turn_id],
        "response_id": plan.responses[row.response_id],
        "open_suggestions": 0,
        "attempt": "",
        "attempt_count": 0,
        "attempt_current": 0,
    }


def _finish(copy: Session, author: User, plan: CopyPlan, new_text: str | None) -> None:
    if ChatMessage.objects.filter(session=copy).count() != len(plan.rows):
        raise NoSuchSession  # the original was erased during the copy
    is_reworded = new_text is not None and _reword(copy, plan.copies[plan.rows[-1].pk], author, new_text)
    forked_files.mark(copy, plan.files)
    _end(copy, resumes=plan.resumes, is_reworded=is_reworded)
    outbox.session_created(copy)
    notify_session_lists(sessions=[copy.pk])


def _reword(copy: Session, message_id: str, author: User, text: str) -> bool:
    """Replace a message's text, and make the user who forks its author. Return False if it has this text already.

    It mentions only agents, because no other user has access to the fork.
    """
    message = ChatMessage.objects.filter(pk=message_id)
    message.update(include_in_context=True)
    changed = message.exclude(text=text).update(
        text=text,
        user=author,
        sender=author.sender[:200],
        timestamp=timezone.now(),
        workflow_id="",
        for_agent=True,
        mentions=None,
        arguments=with_agents(copy, None, text),
        edited_at=None,
        edited_by=None,
        edited_by_name="",
        suggested_by_name="",
    )
    return changed == 1


def _copy_attachments(copy: Session, copies: dict[str, str]) -> None:
    """Copy the attachments of messages. The copies share the stored files.

    The rows are locked, so that the last row of a stored file cannot be deleted before its copy exists.
    """
    files = list(Attachment.objects.select_for_update().filter(message__in=list(copies)))
    for file in files:
        file.message_id = copies[file.message_id or ""]
        file.pk, file.session, file.workspace_id = ids.attachment_id(), copy, copy.workspace_id
    Attachment.objects.bulk_create(files, batch_size=BATCH)


def _end(copy: Session, *, resumes: bool, is_reworded: bool) -> None:
    """Resume the last turn, or close it. A text that was for no agent gets a turn if the copy resumes.

    The session's own agent answers a new text that mentions no agent, even if it answers mentions only.
    """
    tx = SessionTransaction.lock(copy.pk)
    last = ChatMessage.objects.filter(session=copy).order_by("sequence").last()
    if last is None or last.type == MessageType.TURN_DONE or not (last.turn_id or (is_unaddressed(last) and resumes)):
        return
    if is_unaddressed(last):
        answer_unaddressed(tx, last.text, copy.owner)
    elif resumes:
        if last.type == MessageType.TEXT and last.role == MessageRole.USER:
            address_again(tx, last.turn_id, [copy.agent] if is_reworded else [])
        resume_turn(tx, last.turn_id, copy.owner)
    else:
        done = ChatMessage(type=MessageType.TURN_DONE, turn_id=last.turn_id, mode=last.mode, duration_seconds=0.0)
        tx.insert("turn_done", done)
    tx.save()
