"""Taking in sessions from files: each becomes the importer's own, private and at rest, or nothing of it does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import ngettext

from chat.db import allow_long_statements
from chat.files.contents import Contents
from chat.imports.document import AttachmentPart, Document, MessagePart
from chat.imports.renaming import ids_in, renamed
from chat.imports.resting import at_rest
from chat.live.publish import stirred
from chat.models import (
    Attachment,
    ChatMessage,
    MessageType,
    ModelRequest,
    Participation,
    Session,
    SessionRun,
    Speaker,
    User,
    Workspace,
)
from chat.services import attachments
from chat.services.errors import Refused
from chat.services.fitting import fitted
from chat.services.imported_rows import Rows, rows_of
from chat.services.inserting import Insertion, insertion

# Databases bound how many values a query has.
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Imported:
    """A session that has come in; `messages` are those that it shows, `notes` say what is not as it was in the file."""

    session: Session
    messages: int
    kept_ids: bool
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _File:
    """A file that was read, and the message that it belongs to."""

    message_id: str
    part: AttachmentPart
    position: int
    contents: Contents


def import_document(
    *,
    owner: User,
    document: Document,
    workspace: Workspace | None = None,
    is_own: bool = False,
    keep_ids: bool = True,
) -> Imported:
    """Make a session of a checked document, for its owner alone, in a workspace of theirs; else where they are.

    `is_own`: the person in it is the owner, as in an export of theirs from another program. `keep_ids`: with the
    document's own ids, if none of them is in use here; else, and without it, with new ones. Raises DoubledId.
    """
    rested = at_rest(document, timezone.now())
    keep = keep_ids and not _is_known(rested)
    make = partial(_import, owner, document, workspace=workspace, is_own=is_own)
    try:
        return make(renamed(rested, keep=keep), kept=keep)
    except IntegrityError:
        if not keep:
            raise
        # Somebody else has imported the same file in between.
        return make(renamed(rested), kept=False)


def _import(
    owner: User, document: Document, named: Document, *, workspace: Workspace | None, is_own: bool, kept: bool
) -> Imported:
    files, lost = _read_files(named)
    chosen = fitted(named.session)
    rows = rows_of(named, chosen.columns, owner, is_own=is_own, workspace=workspace)
    stored: list[Attachment] = []
    try:
        _write(rows, _prepare(rows), files, stored)
    except BaseException:
        attachments.forget_stored(stored)
        raise
    notes = [*chosen.notes, *_notes(document, lost)]
    shown = sum(map(_is_shown, named.messages))
    return Imported(rows.session, shown, kept and rows.session.pk == document.session.id, notes)


def _is_shown(part: MessagePart) -> bool:
    return part.removed_at is None and part.type not in (MessageType.TURN_START, MessageType.TURN_DONE)


def _is_known(document: Document) -> bool:
    """Whether anything here has an id of the document's already."""
    tables = {"session": Session, "message": ChatMessage, "attachment": Attachment, "request": ModelRequest}
    named = list(ids_in(document))
    for kind, model in tables.items():
        names = [name for each, name in named if each == kind and name]
        batches = (names[at : at + BATCH] for at in range(0, len(names), BATCH))
        if any(model._default_manager.filter(pk__in=batch).exists() for batch in batches):
            return True
    return False


def _prepare(rows: Rows) -> list[Insertion]:
    """Make all rows ready before anything is locked; what refers to others comes after them."""
    tables: list[Sequence[Model]] = [
        [rows.session],
        list(rows.messages.values()),
        rows.revisions,
        rows.changes,
        rows.requests,
    ]
    return [made for table in tables if (made := insertion(table))]


@transaction.atomic
def _write(rows: Rows, insertions: Sequence[Insertion], files: Sequence[_File], stored: list[Attachment]) -> None:
    """Write everything; `stored` tells of the files that lie in the storage, whatever becomes of the rows."""
    allow_long_statements()
    session = rows.session
    for each in insertions:
        each.run()
    SessionRun.objects.create(session=session)
    for file in files:
        stored.append(_keep(file, rows))
    Participation.objects.create(session=session, user=session.owner, read_revision=session.revision)
    transaction.on_commit(lambda: stirred(sessions=[session.pk]))


def _keep(file: _File, rows: Rows) -> Attachment:
    return attachments.keep_with(
        rows.messages[file.message_id],
        author=rows.session.owner,
        name=file.part.name,
        contents=file.contents,
        pk=file.part.id,
        position=file.position,
    )


def _read_files(document: Document) -> tuple[list[_File], int]:
    """The files that came along, and how many did not, or cannot be used."""
    files: list[_File] = []
    given = [
        (message, place, each)
        for message in document.messages
        for place, each in enumerate(message.attachments)
        if message.role == Speaker.USER
    ]
    for message, place, each in given:
        try:
            contents = attachments.read_file(base64.b64decode(each.data or "", validate=True))
        except (Refused, binascii.Error, ValueError):
            continue
        files.append(_File(message.id, each, place, contents))
    return files, len(given) - len(files)


def _notes(document: Document, lost: int) -> list[str]:
    """What is not as it was in the file, in words."""
    waiting = _count(document.messages, ("queued",))
    at_work = _count(document.messages, ("streaming", "pending", "running", "waiting"))
    files = ngettext(
        "%(count)s file could not be read or was not in the export.",
        "%(count)s files could not be read or were not in the export.",
        lost,
    )
    queued = ngettext(
        "%(count)s message was still queued. It was taken back.",
        "%(count)s messages were still queued. They were taken back.",
        waiting,
    )
    unfinished = ngettext(
        "%(count)s message was not finished. It is marked as interrupted.",
        "%(count)s messages were not finished. They are marked as interrupted.",
        at_work,
    )
    told = ((files, lost), (queued, waiting), (unfinished, at_work))
    return [words % {"count": count} for words, count in told if count]


def _count(messages: Sequence[MessagePart], statuses: Sequence[str]) -> int:
    return sum(each.status in statuses and each.removed_at is None for each in messages)
