"""Read a file of conversations in parts: an outline of all conversations, or the content of chosen ones.

A part is a letter for its type, followed by JSON of the classes below, because parts may come from another process. To
add a format, write a module that converts a value to a `ParsedConversation`, and call it in `formats/detect.py`.

    outlines        yields an OUTLINE of each conversation.
    conversations   yields for each chosen one: HEAD; IDS; CHANGES; batches of MESSAGES, each followed by its REVISIONS
                    and by a FILE and its DATA for each file; REQUESTS; END. If it cannot be imported: a PROBLEM.

Both end with an ERROR if the rest of the file cannot be read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from chat.models import TURN_MARKERS, MessageRole, MessageType
from chat.transfer.document.normalize import normalize
from chat.transfer.document.remap_ids import DuplicateId, named_ids, require_unique
from chat.transfer.document.schema import (
    AttachmentPart,
    ChangePart,
    Document,
    MessagePart,
    RequestPart,
    RevisionPart,
    SessionPart,
)
from chat.transfer.formats.claude import is_manifest
from chat.transfer.formats.detect import KEYS, parse_conversation
from chat.transfer.formats.parsed import Loss, ParsedConversation, Source, as_text
from chat.transfer.parsing.archive import Entries
from chat.transfer.parsing.values import TooLargeToRead, Unreadable, UnreadableFile, Value, values_in

OUTLINE, HEAD, IDS, CHANGES, MESSAGES, REVISIONS, FILE, DATA, REQUESTS, END, PROBLEM, ERROR = (
    bytes([letter]) for letter in b"OHICMVFDREPX"
)
# The most rows and bytes in one part, which is written in one short transaction. A larger row is a separate part.
MAX_ROWS = 500
MAX_BYTES = 1_000_000
MAX_IDS = 5_000
MAX_EXPLANATION_CHARS = 300
WAITING = ("queued",)
AT_WORK = ("streaming", "pending", "running", "waiting")


class Outline(BaseModel):
    """One conversation in a file. `began` is an ISO 8601 time or "". `count` is in messages, `size` in bytes."""

    index: int
    source: Source
    title: str
    began: str
    count: int
    size: int = 0


class Head(BaseModel):
    """The session of a conversation, with the file's ids, and counts for notes about differences from the file."""

    index: int
    source: Source
    left: dict[Loss, int]
    kinds: list[str] = []
    pinned: bool = False
    session: SessionPart
    began: datetime | None
    shown: int
    waiting: int
    at_work: int


class MessageRecord(BaseModel):
    """A revision of the message with this index in the last batch."""

    message: int
    revision: RevisionPart


class FilePart(BaseModel):
    """A file of the message with this index in the last batch. Its data follows, and is empty if it is missing."""

    message: int
    id: str
    name: str
    position: int


class Problem(BaseModel):
    """A conversation, or a file of an archive, that cannot be imported.

    `place` is the position of the error, `kind` is pydantic's error type.
    """

    index: int
    title: str
    reason: Literal["invalid", "doubled", "deep", "long", "unknown", "unreadable"]
    place: str = ""
    kind: str = ""


class Error(BaseModel):
    """The reason why the rest of a file cannot be read."""

    reason: Literal["unreadable", "too_much", "manifest"]


# Keys of a message that are sent as separate parts.
APART: dict[str, Any] = {"revisions": [], "attachments": []}

Ids = TypeAdapter(list[tuple[str, str]])
Changes = TypeAdapter(list[ChangePart])
Messages = TypeAdapter(list[MessagePart])
Revisions = TypeAdapter(list[MessageRecord])
Requests = TypeAdapter(list[RequestPart])


def outlines(file: IO[bytes], most: int) -> Iterator[bytes]:
    """List the conversations in a file, and problems with other values. `most` limits the unpacked file in bytes."""
    for read in _found(file, most, None):
        if isinstance(read, Error):
            yield _part(ERROR, read)
        elif isinstance(read, Problem):
            yield _part(PROBLEM, read)
        else:
            index, size, each = read
            outline = Outline(
                index=index, source=each.source, title=each.title, began=each.began, count=each.count, size=size
            )
            yield _part(OUTLINE, outline)


def conversations(
    file: IO[bytes], most: int, chosen: Collection[int] | None, longest: int, largest_file: int
) -> Iterator[bytes]:
    """Read the conversations with these indexes, or all.

    `longest` limits texts in characters, `largest_file` in bytes.
    """
    for read in _found(file, most, None if chosen is None else frozenset(chosen)):
        if isinstance(read, Error):
            yield _part(ERROR, read)
        elif isinstance(read, Problem):
            yield _part(PROBLEM, read)
        else:
            yield from _conversation(read[0], read[2], longest, largest_file)


def _found(
    file: IO[bytes], most: int, chosen: Collection[int] | None
) -> Iterator[tuple[int, int, ParsedConversation] | Problem | Error]:
    last = None if chosen is None else max(chosen, default=-1)
    is_empty = True
    try:
        for value in values_in(file, most, KEYS, chosen):
            if isinstance(value, UnreadableFile):
                if chosen is None:  # otherwise the list of conversations contains the problem
                    yield Problem(index=0, title=as_text(value.name)[:200], reason="unreadable")
                continue
            conversation = _parsed(value)
            if isinstance(conversation, Problem):
                yield conversation
            elif conversation is not None:
                is_empty = False
                yield value.index, value.size, conversation
            if value.index == last:  # skip the rest of a large file
                return
        if is_empty and chosen is None and is_manifest(file):
            yield Error(reason="manifest")
    except TooLargeToRead:
        yield Error(reason="too_much")
    except Unreadable:
        yield Error(reason="unreadable")


def _parsed(value: Value) -> ParsedConversation | Problem | None:
    """Return the conversation in a value. Return None if it is none, was not chosen, or is empty in another product."""
    if value.members is None:
        return None
    try:
        conversation = parse_conversation(value.members, value.entries)
    except RecursionError:
        return Problem(index=value.index, title=_title(value.members), reason="deep")
    if conversation is None and value.is_listed and {"title", "name"} & value.members.keys():
        return Problem(index=value.index, title=_title(value.members), reason="unknown")
    if conversation is None or conversation.count or conversation.source == Source.PARLEY:
        return conversation
    if conversation.left[Loss.UNKNOWN]:  # it has messages, but none that can be read
        return Problem(index=value.index, title=conversation.title, reason="unknown")
    return None


def _title(members: dict[str, Any]) -> str:
    return (as_text(members.get("title")) or as_text(members.get("name")))[:200]


def _conversation(index: int, conversation: ParsedConversation, longest: int, largest_file: int) -> Iterator[bytes]:
    try:
        document = Document.model_validate(conversation.document)
        if long := next((place for place, text in _texts(document) if len(text) > longest), ""):
            yield _part(PROBLEM, Problem(index=index, title=conversation.title, reason="long", place=long))
            return
        normalized = normalize(document, datetime.now(UTC))
        require_unique(normalized)
    except (ValidationError, DuplicateId, RecursionError) as error:
        yield _part(PROBLEM, _problem(index, conversation.title, error))
        return
    yield _part(HEAD, _head(index, conversation, document, normalized))
    yield from (IDS + each for each, _ in _lists(map(_json, named_ids(normalized)), MAX_IDS))
    yield from (CHANGES + each for each, _ in _lists(map(_json, normalized.changes)))
    done = 0
    for encoded, count in _lists(_json(each.model_copy(update=APART)) for each in normalized.messages):
        yield MESSAGES + encoded
        batch = normalized.messages[done : done + count]
        done += count
        records = (MessageRecord(message=n, revision=each) for n, row in enumerate(batch) for each in row.revisions)
        yield from (REVISIONS + each for each, _ in _lists(map(_json, records)))
        for number, row in enumerate(batch):
            yield from _files(number, row, conversation.entries, largest_file)
    yield from (REQUESTS + each for each, _ in _lists(map(_json, normalized.requests)))
    yield END


def _lists(items: Iterable[bytes], most: int = MAX_ROWS) -> Iterator[tuple[bytes, int]]:
    """Join encoded items into lists, and yield each list with its number of items."""
    batch: list[bytes] = []
    size = 0
    for item in items:
        if batch and (len(batch) == most or size + len(item) > MAX_BYTES):
            yield b"[" + b",".join(batch) + b"]", len(batch)
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield b"[" + b",".join(batch) + b"]", len(batch)


def _json(value: BaseModel | Sequence[str]) -> bytes:
    return (value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value)).encode()


def _part(kind: bytes, value: BaseModel) -> bytes:
    return kind + _json(value)


def _head(index: int, conversation: ParsedConversation, document: Document, normalized: Document) -> Head:
    return Head(
        index=index,
        source=conversation.source,
        left={kind: count for kind, count in conversation.left.items() if count},
        kinds=conversation.left.kinds,
        pinned=conversation.pinned,
        session=normalized.session,
        began=normalized.began(),
        shown=sum(map(_is_shown, normalized.messages)),
        waiting=_count(document.messages, WAITING),
        at_work=_count(document.messages, AT_WORK),
    )


def _is_shown(part: MessagePart) -> bool:
    return part.removed_at is None and part.type not in TURN_MARKERS


def _count(messages: Sequence[MessagePart], statuses: Sequence[str]) -> int:
    return sum(each.status in statuses and each.removed_at is None for each in messages)


def _texts(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the texts of messages and of their revisions, with their positions."""
    for number, message in enumerate(document.messages):
        yield f"messages.{number}.text", message.text
        yield f"messages.{number}.result", message.result
        for place, record in enumerate(message.revisions):
            yield f"messages.{number}.revisions.{place}.before", str(record.before.get("text", ""))


def _files(number: int, message: MessagePart, entries: Entries, largest: int) -> Iterator[bytes]:
    if message.type != MessageType.TEXT or message.role not in (MessageRole.USER, MessageRole.ASSISTANT):
        return
    for position, file in enumerate(message.attachments):
        yield _part(FILE, FilePart(message=number, id=file.id, name=file.name, position=position))
        yield DATA + (entries.read(file.entry, largest) if file.entry else _decode_file(file, largest))


def _decode_file(file: AttachmentPart, largest: int) -> bytes:
    """Return a file's data. It is empty if it is missing or too large."""
    if file.data is None or len(file.data) > (largest + 3) * 4 // 3:
        return b""
    try:
        return base64.b64decode(file.data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _problem(index: int, title: str, error: Exception) -> Problem:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:MAX_EXPLANATION_CHARS]
        return Problem(index=index, title=title, reason="invalid", place=place, kind=first["type"])
    return Problem(index=index, title=title, reason="doubled" if isinstance(error, DuplicateId) else "deep")
