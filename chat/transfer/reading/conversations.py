"""A file of conversations, read part by part: a list of what is in it, or everything of those that are chosen.

A part is a letter that says what it is, and behind it JSON of the types below, since parts may come from another
process. For a new format write a module that makes a `ParsedConversation` of a value, and name it in `recognising`.

    outlines        an OUTLINE of each conversation.
    conversations   of each that is chosen HEAD; IDS, CHANGES, batches of MESSAGES, each with its REVISIONS and with a
                    FILE and its DATA for each file; REQUESTS; END. Or a PROBLEM, if it cannot be taken.

Either ends with an ERROR if the file cannot be read any further.
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
from chat.transfer.document.normalise import normalise
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
from chat.transfer.formats.detect import KEYS, parse_conversation
from chat.transfer.formats.parsed import Loss, ParsedConversation, Source, as_text
from chat.transfer.parsing.archive import Entries
from chat.transfer.parsing.values import TooLargeToRead, Unreadable, values_in

OUTLINE, HEAD, IDS, CHANGES, MESSAGES, REVISIONS, FILE, DATA, REQUESTS, END, PROBLEM, ERROR = (
    bytes([letter]) for letter in b"OHICMVFDREPX"
)
# Rows in one part, and bytes of them if they are more than one: what one short transaction writes.
MAX_ROWS = 500
MAX_BYTES = 1_000_000
MAX_IDS = 5_000
MAX_EXPLANATION_CHARS = 300
WAITING = ("queued",)
AT_WORK = ("streaming", "pending", "running", "waiting")


class Outline(BaseModel):
    """One conversation in a file. `began` is ISO 8601 or ""; `count` its messages, `size` its bytes in the file."""

    index: int
    source: Source
    title: str
    began: str
    count: int
    size: int = 0


class Head(BaseModel):
    """A conversation: its session at rest, with the file's ids, and what does not come in as it is in the file."""

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
    """A record of the message with this index in the last batch."""

    message: int
    revision: RevisionPart


class FilePart(BaseModel):
    """A file of the message with this index in the last batch; its bytes follow, none if the file lacks them."""

    message: int
    id: str
    name: str
    position: int


class Problem(BaseModel):
    """A conversation that cannot be taken; `place` says where it is wrong, `kind` names the rule of pydantic's."""

    index: int
    title: str
    reason: Literal["invalid", "doubled", "deep", "long", "unknown"]
    place: str = ""
    kind: str = ""


class Error(BaseModel):
    """Why a file cannot be read any further."""

    reason: Literal["unreadable", "too_much"]


# What a message has that comes in parts of its own.
APART: dict[str, Any] = {"revisions": [], "attachments": []}

Ids = TypeAdapter(list[tuple[str, str]])
Changes = TypeAdapter(list[ChangePart])
Messages = TypeAdapter(list[MessagePart])
Revisions = TypeAdapter(list[MessageRecord])
Requests = TypeAdapter(list[RequestPart])


def outlines(file: IO[bytes], most: int) -> Iterator[bytes]:
    """List the conversations in a file of at most so many bytes, unpacked, and what cannot be one of them."""
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
    """Read the conversations with these indexes, or all; texts may have so many characters, files so many bytes."""
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
    try:
        for index, value in enumerate(values_in(file, most, KEYS, chosen)):
            found: ParsedConversation | Problem | None
            try:
                found = parse_conversation(value.members, value.entries) if value.members is not None else None
            except RecursionError:
                found = Problem(index=index, title=_title(value.members or {}), reason="deep")
            if isinstance(found, Problem):
                yield found
            elif found is not None:
                yield index, value.size, found
            elif value.is_listed and value.members is not None and _is_titled(value.members):
                yield Problem(index=index, title=_title(value.members), reason="unknown")
            if index == last:  # the rest of a large file need not be looked through
                return
    except TooLargeToRead:
        yield Error(reason="too_much")
    except Unreadable:
        yield Error(reason="unreadable")


def _is_titled(members: dict[str, Any]) -> bool:
    return "title" in members or "name" in members


def _title(members: dict[str, Any]) -> str:
    return (as_text(members.get("title")) or as_text(members.get("name")))[:200]


def _conversation(index: int, found: ParsedConversation, longest: int, largest_file: int) -> Iterator[bytes]:
    try:
        document = Document.model_validate(found.document)
        if long := next((place for place, text in _texts(document) if len(text) > longest), ""):
            yield _part(PROBLEM, Problem(index=index, title=found.title, reason="long", place=long))
            return
        normalised = normalise(document, datetime.now(UTC))
        require_unique(normalised)
    except (ValidationError, DuplicateId, RecursionError) as error:
        yield _part(PROBLEM, _problem(index, found.title, error))
        return
    yield _part(HEAD, _head(index, found, document, normalised))
    yield from (IDS + each for each, _ in _lists(map(_json, named_ids(normalised)), MAX_IDS))
    yield from (CHANGES + each for each, _ in _lists(map(_json, normalised.changes)))
    done = 0
    for encoded, count in _lists(_json(each.model_copy(update=APART)) for each in normalised.messages):
        yield MESSAGES + encoded
        batch = normalised.messages[done : done + count]
        done += count
        records = (MessageRecord(message=n, revision=each) for n, row in enumerate(batch) for each in row.revisions)
        yield from (REVISIONS + each for each, _ in _lists(map(_json, records)))
        for number, row in enumerate(batch):
            yield from _files(number, row, found.entries, largest_file)
    yield from (REQUESTS + each for each, _ in _lists(map(_json, normalised.requests)))
    yield END


def _lists(items: Iterable[bytes], most: int = MAX_ROWS) -> Iterator[tuple[bytes, int]]:
    """Put encoded items together into lists, with their counts."""
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


def _head(index: int, found: ParsedConversation, document: Document, normalised: Document) -> Head:
    return Head(
        index=index,
        source=found.source,
        left={kind: count for kind, count in found.left.items() if count},
        kinds=found.left.kinds,
        pinned=found.pinned,
        session=normalised.session,
        began=normalised.began(),
        shown=sum(map(_is_shown, normalised.messages)),
        waiting=_count(document.messages, WAITING),
        at_work=_count(document.messages, AT_WORK),
    )


def _is_shown(part: MessagePart) -> bool:
    return part.removed_at is None and part.type not in TURN_MARKERS


def _count(messages: Sequence[MessagePart], statuses: Sequence[str]) -> int:
    return sum(each.status in statuses and each.removed_at is None for each in messages)


def _texts(document: Document) -> Iterator[tuple[str, str]]:
    """The texts of messages and of what they were, and where they stand."""
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
        yield DATA + (entries.read(file.entry, largest) if file.entry else _decoded(file, largest))


def _decoded(file: AttachmentPart, largest: int) -> bytes:
    """Return a file's bytes; none if it has none, or too many."""
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
