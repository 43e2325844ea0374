"""Export sessions as files, piece by piece, so that long sessions need little memory.

The order of messages is read once, at the start. Each message is read when it is written.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from datetime import UTC, tzinfo
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.core.files.storage import default_storage
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from agents.messages import Json
from chat.errors import ServiceError
from chat.limits.rates import spend
from chat.models import (
    Attachment,
    ChatMessage,
    MessageDelta,
    MessageRevision,
    MessageStatus,
    ModelRequest,
    Session,
    SessionRevision,
    SessionRole,
    User,
)
from chat.queries.attachments import stored_name
from chat.queries.messages import snapshots
from chat.queries.unreadable import unreadable_values_of
from chat.services.batches import batches, read_in_batches
from chat.services.people.security_log import Kind, record
from chat.transfer.exporting import as_json, as_markdown

T = TypeVar("T")
BATCH = 200
# The tables from which sessions are exported.
EXPORTED = (Session, SessionRevision, ModelRequest, ChatMessage, MessageDelta, MessageRevision, Attachment)
# Bytes that are read from a file in one step. A multiple of three, so that the base64 pieces can be concatenated.
PORTION = 3 * 2**18
# The prefix of the placeholder for a stored file's bytes. It is random, so that no content can contain it.
_TOKEN = secrets.token_hex(16)
_MARK = re.compile(f'"{_TOKEN}:([^"]*)"')


class ExportFormat(StrEnum):
    """The formats of an exported session."""

    JSON = "json"
    MARKDOWN = "markdown"


EXTENSIONS = {ExportFormat.JSON: "json", ExportFormat.MARKDOWN: "md"}
MEDIA_TYPES = {ExportFormat.JSON: "application/json", ExportFormat.MARKDOWN: "text/markdown"}


class UnreadableError(ServiceError):
    """A session contains values that another program has written into the database and that cannot be read."""

    CODE: ClassVar[str] = "unreadable"

    def __init__(self) -> None:
        words = _(
            "This session can’t be exported, because it contains a value that can’t be read. On the server, "
            "“manage.py verify” names the value."
        )
        super().__init__(self.CODE, words)


def require_readable(session_id: str) -> None:
    """Raise UnreadableError if an export would fail halfway, or contain something else than the database."""
    if any(unreadable_values_of(session_id, EXPORTED)):
        raise UnreadableError


def export_session(
    session: Session, author: User | None, role: SessionRole, form: ExportFormat, zone: tzinfo = UTC
) -> Iterator[str]:
    """Export a session for a user with a role in it. Viewers get what they can see, others get everything.

    `author` is None for operators' commands. The security log records the export when its first piece is read. Raise
    RateLimited, and UnreadableError before anything is written.
    """
    require_readable(session.pk)
    if author is not None:
        spend("exports", author.pk)
    if form == ExportFormat.MARKDOWN:
        pieces = export_markdown(session, zone=zone)
    else:
        pieces = export_json(session, whole=role.covers(SessionRole.EDITOR))
    return when_read(pieces, Kind.EXPORTED, actor=author, person=session.owner_id, target=session, form=form)


def when_read(pieces: Iterator[T], kind: Kind, **values: Any) -> Iterator[T]:
    """Return the pieces, and record an entry of the security log when the first one is read.

    The entry has the origin of the request that calls this, although the response is read after the request's end.
    """
    context = copy_context()

    def recorded() -> Iterator[T]:
        context.run(partial(record, kind, **values))
        yield from pieces

    return recorded()


def export_json(session: Session, *, whole: bool = True) -> Iterator[str]:
    """Write a session as a JSON document that can be imported again. Each message is on one line.

    With `whole`, include removed messages and all revisions, which editors may see. Otherwise write only the
    conversation, which a viewer may see and fork. The bytes of attachments are in base64, and read during writing.
    """
    yield f'{{"format": {_dump(as_json.FORMAT)}, "version": {as_json.VERSION},\n'
    yield f'"session": {_dump(as_json.session_record(session))},\n'
    if whole:
        changes = SessionRevision.objects.filter(session=session).select_related("user").order_by("pk")
        yield from _array("changes", map(as_json.session_change_record, read_in_batches(changes, BATCH)))
        yield ",\n"
        requests = read_in_batches(ModelRequest.objects.filter(session=session), BATCH)
        yield from _array("requests", map(as_json.request_record, requests))
        yield ",\n"
    yield from _array("messages", _messages(session, whole=whole), with_files=True)
    yield "}\n"


def export_markdown(session: Session, *, zone: tzinfo = UTC) -> Iterator[str]:
    """Export the conversation and its queued messages as Markdown, in the active language and in `zone`."""
    return _in_language(_markdown(session, zone), get_language())


def _markdown(session: Session, zone: tzinfo) -> Iterator[str]:
    yield as_markdown.head(session, zone, timezone.now())
    for rows in _batches(session, whole=False):
        texts, files = _texts(rows), _files(rows)
        yield from (as_markdown.message(row, texts[row.pk], files[row.pk], zone) for row in rows)


def _messages(session: Session, *, whole: bool) -> Iterator[Json]:
    for rows in _batches(session, whole=whole):
        texts, attached = _texts(rows), _files(rows)
        revisions = _revisions(rows) if whole else defaultdict(list)
        for row in rows:
            records = [as_json.attachment_record(each, _mark(each)) for each in attached[row.pk]]
            yield as_json.message_record(row, texts[row.pk], revisions[row.pk], records)


def _batches(session: Session, *, whole: bool) -> Iterator[list[ChatMessage]]:
    """Yield the session's rows in batches: the conversation in order, then rows without a place by time."""
    live = _sizes(ChatMessage.objects.in_conversation(session.pk).order_by("sequence"))
    placeless = ChatMessage.objects.filter(session=session, sequence__isnull=True).order_by("created_at", "pk")
    others = _sizes(placeless if whole else placeless.filter(removed_at__isnull=True))
    places = {name: place for place, (name, _chars) in enumerate(live, 1)}
    for batch in batches([*live, *others], lambda row: row[1]):
        names = [name for name, _chars in batch]
        found = ChatMessage.objects.in_bulk(names)
        yield [_set_place(found[name], places.get(name)) for name in names if name in found]


def _sizes(rows: QuerySet[ChatMessage]) -> list[tuple[str, int]]:
    """Return the ids of rows and the lengths of their texts. Batches are cut by length, to limit memory."""
    return list(rows.annotate(chars=Length("text") + Length("result")).values_list("pk", "chars"))


# prefetch_related creates a query set for each row, which would take longer than everything else.
def _files(rows: Iterable[ChatMessage]) -> defaultdict[str, list[Attachment]]:
    files = Attachment.objects.filter(message__in=[row.pk for row in rows]).defer("text")
    return _grouped((each.message_id or "", each) for each in files)


def _revisions(rows: Iterable[ChatMessage]) -> defaultdict[str, list[MessageRevision]]:
    changes = MessageRevision.objects.filter(message__in=[row.pk for row in rows]).select_related("user")
    return _grouped((each.message_id, each) for each in changes.order_by("pk"))


def _grouped(pairs: Iterable[tuple[str, T]]) -> defaultdict[str, list[T]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for name, each in pairs:
        groups[name].append(each)
    return groups


def _set_place(row: ChatMessage, place: int | None) -> ChatMessage:
    """Return the row at its place at the start of the export, unless it has been removed in the meantime."""
    row.sequence = None if row.removed_at else place or row.sequence
    return row


def _texts(rows: Iterable[ChatMessage]) -> dict[str, str]:
    """Return the texts of rows. For streaming rows, this is their text up to now."""
    rows = list(rows)
    texts = {row.pk: row.text for row in rows}
    growing = [row for row in rows if row.status == MessageStatus.STREAMING]
    return texts | {each.id: each.text for each in snapshots(growing)}


def _mark(attachment: Attachment) -> str | None:
    """Return the placeholder of a file's bytes, or None if the stored file is missing."""
    stored = stored_name(attachment)
    return f"{_TOKEN}:{stored}" if default_storage.exists(stored) else None


def _array(name: str, values: Iterable[Json], *, with_files: bool = False) -> Iterator[str]:
    yield f"{_dump(name)}: ["
    before = "\n"
    for value in values:
        yield before
        yield from _fill_placeholders(_dump(value)) if with_files else (_dump(value),)
        before = ",\n"
    yield "\n]"


def _fill_placeholders(text: str) -> Iterator[str]:
    """Yield JSON in which placeholders are replaced by the files' bytes."""
    for place, piece in enumerate(_MARK.split(text)):
        if place % 2:
            yield '"'
            yield from _base64_of(json.loads(f'"{piece}"'))
            yield '"'
        else:
            yield piece


def _base64_of(stored: str) -> Iterator[str]:
    with default_storage.open(stored) as file:
        while data := file.read(PORTION):
            yield base64.b64encode(data).decode()


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _in_language(pieces: Iterator[str], language: str) -> Iterator[str]:
    """Yield pieces in one language, whatever language is active in the thread that iterates."""
    while True:
        with override(language):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece
