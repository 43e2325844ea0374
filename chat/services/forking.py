"""Forks: a new session that goes on from a message of another one (RUN-13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.live.publish import stirred
from chat.models import (
    UNFINISHED,
    Attachment,
    ChatMessage,
    MessageStatus,
    MessageType,
    Session,
    SessionRun,
    Speaker,
    User,
)
from chat.services.errors import Busy, NoSuchMessage, NoSuchSession, Refused
from chat.services.limits import limited
from chat.services.quotas import require_disk
from chat.services.rows import OpenSession
from chat.services.runs import can_go_on, is_heard
from chat.services.texts import storable
from chat.services.turns import resume_turn

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
ANEW = ("id", "session_id", "sequence", "revision", "run_id", "response_id", "key", "key_digest", "open_suggestions")


@limited("forks", by="author")
@transaction.atomic
def fork(
    *,
    session: Session,
    author: User,
    message_id: str,
    text: str | None = None,
    run: bool = False,
    session_id: str = "",
) -> Session:
    """Copy a session up to a message, inclusive, into a new one that is the author's alone, named `session_id`.

    `text` stands for the last of the copied user texts, and the copy ends with it. `run` goes on from the end, as a
    retry does, if that waits for an answer. Raises Refused: unknown message, unstorable text, no user text to
    change, or the agent is still at work on what would be copied.
    """
    require_disk()
    said = None if text is None else storable(text)
    rows = _rows_until(session, message_id)
    if said is not None:
        rows = _ending_with_user_text(rows)
    goes_on = run and can_go_on(rows[-1]) and (said is not None or is_heard(rows[-1]))
    copied = rows if goes_on else [*rows, *_end_of_turn(rows[-1])]
    made = _make(session, author, message_id, copied, session_id or ids.session_id())
    copies = _copy_rows(made, copied)
    if said is not None:
        _reword(copies[rows[-1].pk], author, said)
    _copy_attachments(made, copies)
    _end(made, goes_on=goes_on)
    transaction.on_commit(lambda: stirred(sessions=[made.pk]))
    return made


def _rows_until(session: Session, message_id: str) -> list[ChatMessage]:
    # Nobody changes what is copied until it is.
    present = Session.objects.select_for_update().filter(pk=session.pk).first()
    if present is None or present.status == Session.Status.DELETED:
        raise NoSuchSession
    live = ChatMessage.objects.live(session.pk)
    last = live.filter(pk=message_id).first()
    if last is None:
        raise NoSuchMessage
    rows = list(live.filter(sequence__lte=last.sequence).only(*READ).order_by("sequence"))
    if any(row.status in (*UNFINISHED, MessageStatus.WAITING) for row in rows):
        raise Busy(_("The agent is at work on this part. Stop it first, or fork at an earlier message."))
    return rows


def _ending_with_user_text(rows: Sequence[ChatMessage]) -> list[ChatMessage]:
    for count in range(len(rows), 0, -1):
        if rows[count - 1].type == MessageType.TEXT and rows[count - 1].role == Speaker.USER:
            return list(rows[:count])
    raise Refused("no_user_message", _("There is no message of a person before this one that could be changed."))


def _end_of_turn(last: ChatMessage) -> QuerySet[ChatMessage]:
    """The row that ends a row's turn, if it comes next."""
    following = ChatMessage.objects.filter(session=last.session_id, sequence=(last.sequence or 0) + 1)
    return following.filter(type=MessageType.TURN_DONE, run_id=last.run_id).only(*READ)


def _make(session: Session, author: User, message_id: str, rows: Sequence[ChatMessage], session_id: str) -> Session:
    made = Session.objects.create(
        pk=session_id,
        owner=author,
        title=_forked_title(session.title),
        parent_session=session,
        parent_message_id=message_id,
        revision=len(rows),
        total_tokens=sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in rows),
        context_used=next((row.input_tokens for row in reversed(rows) if row.input_tokens is not None), None),
        **{name: getattr(session, name) for name in INHERITED},
    )
    SessionRun.objects.create(session=made)
    return made


def _forked_title(title: str) -> str:
    room = 200 - len(_("%(title)s (fork)") % {"title": ""})
    return _("%(title)s (fork)") % {"title": title[:room]} if title else ""


def _copy_rows(made: Session, rows: Sequence[ChatMessage]) -> dict[str, str]:
    """Copy rows with new ids; what belonged together does so again. Returns the copies' ids by those of the rows."""
    turns: dict[str, str] = defaultdict(ids.turn_id, {"": ""})
    responses: dict[str, str] = defaultdict(ids.response_id, {"": ""})
    copies = {row.pk: ids.message_id() for row in rows}
    table = ChatMessage._meta.db_table
    kept = [field.column for field in ChatMessage._meta.concrete_fields if field.column not in ANEW]
    columns = ", ".join(f'"{column}"' for column in (*ANEW, *kept))
    values = ", ".join(["%s"] * len(ANEW) + [f'"{column}"' for column in kept])
    # Thousands of whole rows through Python would hold up everybody who writes.
    statement = f'INSERT INTO "{table}" ({columns}) SELECT {values} FROM "{table}" WHERE "id" = %s'  # noqa: S608  # names of the model's own
    with connection.cursor() as cursor:
        cursor.executemany(
            statement,
            [
                (
                    copies[row.pk],
                    made.pk,
                    place,
                    place,
                    turns[row.run_id],
                    responses[row.response_id],
                    None,
                    None,
                    0,
                    row.pk,
                )
                for place, row in enumerate(rows, 1)
            ],
        )
    return copies


def _reword(message_id: str, author: User, text: str) -> None:
    """Other words are the words of whoever chose them, and are chosen to be answered."""
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
    """Give the copies their files; what is stored is shared by both."""
    given = Attachment.objects.filter(message__session=made.parent_session_id)
    files = [file for file in given if file.message_id in copies]
    for file in files:
        file.message_id = copies[file.message_id or ""]
        file.pk, file.session = ids.attachment_id(), made
    Attachment.objects.bulk_create(files, batch_size=BATCH)


def _end(made: Session, *, goes_on: bool) -> None:
    """Let the last turn go on, or close it."""
    opened = OpenSession.lock(made.pk)
    last = ChatMessage.objects.filter(session=made).order_by("sequence").last()
    if last is None or not last.run_id or last.type == MessageType.TURN_DONE:
        return
    if goes_on:
        resume_turn(opened, last.run_id, made.owner)
    else:
        done = ChatMessage(type=MessageType.TURN_DONE, run_id=last.run_id, mode=last.mode, duration_seconds=0.0)
        opened.insert("turn_done", done)
    opened.save()
