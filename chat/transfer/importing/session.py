"""Import one conversation completely, as a private session of the importing user, or not at all."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat import ids
from chat.errors import ServiceError
from chat.files.contents import Contents
from chat.models import (
    IMPORTED,
    Attachment,
    ChatMessage,
    ModelRequest,
    Session,
    SessionRun,
    User,
    UserSessionState,
    Workspace,
)
from chat.services.deletion import sessions
from chat.services.messages import attachments
from chat.services.runs import attempt_counts
from chat.services.sessions import incomplete
from chat.services.transaction import notify_session_lists
from chat.transfer.document.remap_ids import IdMap, remap_message, remap_request, remap_revision
from chat.transfer.importing.agent_mapping import map_agent
from chat.transfer.importing.rows import (
    change_row,
    message_row,
    prepare_insert,
    request_row,
    revision_row,
    session_row,
)
from chat.transfer.reading import conversations as reading
from chat.transfer.reading.conversations import FilePart, Head

# The most usable attachments of one import, and the most seconds for reading attachments.
MAX_FILES = 200
MAX_SECONDS = 60.0
# The most file names in a note, and the most characters of a name.
MAX_NAMED = 5
MAX_NAME_CHARS = 80
MAX_TITLE_LENGTH = 200
TABLES = {"session": Session, "message": ChatMessage, "attachment": Attachment, "request": ModelRequest}


class IdsTaken(Exception):
    """Another import has used the same ids after they were checked."""


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """An imported session. `messages` counts those it shows. `notes` tell the user the differences from the file."""

    session: Session
    messages: int
    kept_ids: bool
    notes: list[str]


class FileReader:
    """Reads the attachments of one import. It applies the limits unless an operator imports them."""

    def __init__(self, user: User, *, is_bounded: bool = True) -> None:
        self._user = user
        self._is_bounded = is_bounded
        self._count = 0
        self._seconds = 0.0

    @property
    def is_spent(self) -> bool:
        return self._is_bounded and (self._count >= MAX_FILES or self._seconds >= MAX_SECONDS)

    def read(self, data: bytes) -> Contents | None:
        """Return a file's validated content, or None if it cannot be used."""
        started = time.monotonic()
        try:
            contents = attachments.read_file(data, self._user)
            self._count += 1
            return contents
        except ServiceError:
            return None
        finally:
            self._seconds += time.monotonic() - started


class SessionImport:
    """Writes the parts of one conversation (`chat.transfer.reading.conversations`) in their order, batch by batch.

    With `keep_ids`, it uses the file's ids if none of them exists on this server. Otherwise it creates new ones.
    """

    def __init__(
        self, head: Head, *, owner: User, workspace: Workspace, files: FileReader, is_own: bool, keep_ids: bool
    ) -> None:
        self._head = head
        self._owner = owner
        self._workspace = workspace
        self._files = files
        self._is_own = is_own
        self._keep_ids = keep_ids
        self._mapped = map_agent(head.session)
        self._ids = IdMap()
        self._session: Session | None = None
        self._rows: list[ChatMessage] = []
        self._file: FilePart | None = None
        self._lost: list[str] = []
        self._left_out = 0

    def add(self, kind: bytes, body: bytes) -> None:
        """Add a part.

        Raise IdsTaken, or NoSuchSession if the import took too long. Written rows stay until `discard`.
        """
        if kind == reading.IDS:
            self._keep_ids = self._keep_ids and not _is_in_use(reading.Ids.validate_json(body))
            return
        session = self._session or self._create_session()
        with self._detecting_taken_ids():
            self._write(kind, body, session)

    def finish(self, notes: Sequence[str] = ()) -> ImportedSession:
        """Make the session visible to its owner. Raise IdsTaken and NoSuchSession, as `add` does."""
        session = self._session or self._create_session()
        with transaction.atomic():
            incomplete.complete(session, self._head.session.status)
            attempt_counts.count_all(session.pk)
            SessionRun.objects.create(session=session)
            pinned_at = timezone.now() if self._head.pinned else None
            UserSessionState.objects.create(
                session=session, user=session.owner, read_revision=session.revision, pinned_at=pinned_at
            )
            notify_session_lists(sessions=[session.pk])
        kept = self._keep_ids and session.pk == self._head.session.id
        return ImportedSession(session, self._head.shown, kept, [*self._mapped.notes, *self._notes(), *notes])

    def discard(self) -> None:
        """Delete the written rows, unless the session is finished."""
        if self._session is not None:
            sessions.discard(self._session.pk)

    def _create_session(self) -> Session:
        self._ids = IdMap(keep=self._keep_ids)
        columns = self._mapped.columns | incomplete.new_columns() | {"title": self._title()}
        session = session_row(
            self._head.session,
            {**columns, "config": {**columns["config"], IMPORTED: timezone.now().isoformat()}},
            session_id=self._ids.session(self._head.session.id) or ids.session_id(),
            owner=self._owner,
            workspace=self._workspace,
            began=self._head.began,
        )
        with self._detecting_taken_ids():
            prepare_insert([session]).run()
        self._session = session  # only now: `discard` must not delete another import's session with this id
        return session

    def _title(self) -> str:
        """Return the file's title, marked if the owner already has a session with this title."""
        title = self._head.session.title
        present = Session.objects.filter(owner=self._owner, workspace=self._workspace, title=title)
        if not title or not present.exclude(status=Session.Status.DELETED).exists():
            return title
        room = MAX_TITLE_LENGTH - len(_("%(title)s (imported)") % {"title": ""})
        return _("%(title)s (imported)") % {"title": title[:room]}

    @contextmanager
    def _detecting_taken_ids(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            if not self._keep_ids:
                raise
            raise IdsTaken from None

    def _write(self, kind: bytes, body: bytes, session: Session) -> None:
        names = self._ids
        if kind == reading.MESSAGES:
            parts = [remap_message(each, names) for each in reading.Messages.validate_json(body)]
            self._rows = [message_row(each, session, is_own=self._is_own) for each in parts]
            _insert(session, self._rows)
        elif kind == reading.REVISIONS:
            records = reading.Revisions.validate_json(body)
            revised = [(remap_revision(each.revision, names, session.pk), self._rows[each.message]) for each in records]
            _insert(session, [revision_row(part, row) for part, row in revised])
        elif kind == reading.CHANGES:
            _insert(session, [change_row(each, session) for each in reading.Changes.validate_json(body)])
        elif kind == reading.REQUESTS:
            requests = [remap_request(each, names) for each in reading.Requests.validate_json(body)]
            _insert(session, [request_row(each, session) for each in requests])
        elif kind == reading.FILE:
            self._file = FilePart.model_validate_json(body)
        elif kind == reading.DATA and self._file is not None:
            self._write_file(self._file, body, session)

    def _write_file(self, file: FilePart, data: bytes, session: Session) -> None:
        if self._files.is_spent:
            self._left_out += 1
            return
        contents = self._files.read(data)
        if contents is None:
            self._lost.append(file.name[:MAX_NAME_CHARS])
            return
        incomplete.touch(session)
        attachments.keep_with(
            self._rows[file.message],
            author=session.owner,
            name=file.name,
            contents=contents,
            pk=self._ids.attachments(file.id) or ids.attachment_id(),
            position=file.position,
        )

    def _notes(self) -> list[str]:
        """Return notes about differences from the file."""
        lost = ngettext(
            "%(count)s file could not be used: %(names)s.",
            "%(count)s files could not be used: %(names)s.",
            len(self._lost),
        )
        left_out = ngettext(
            "%(count)s file was left out: an import can have up to %(most)s files "
            "and take up to a minute to read them.",
            "%(count)s files were left out: an import can have up to %(most)s files "
            "and take up to a minute to read them.",
            self._left_out,
        )
        queued = ngettext(
            "%(count)s message was still queued. It was removed.",
            "%(count)s messages were still queued. They were removed.",
            self._head.waiting,
        )
        unfinished = ngettext(
            "%(count)s message was not finished. It is marked as interrupted.",
            "%(count)s messages were not finished. They are marked as interrupted.",
            self._head.at_work,
        )
        notes = (
            (lost, len(self._lost)),
            (left_out, self._left_out),
            (queued, self._head.waiting),
            (unfinished, self._head.at_work),
        )
        names = ", ".join([*self._lost[:MAX_NAMED], *(["…"] if len(self._lost) > MAX_NAMED else [])])
        return [words % {"count": count, "most": MAX_FILES, "names": names} for words, count in notes if count]


def _insert(session: Session, rows: Sequence[Model]) -> None:
    """Insert rows in a separate transaction. They are prepared before it takes locks."""
    prepared = prepare_insert(rows)
    with transaction.atomic():
        incomplete.touch(session)
        prepared.run()


def _is_in_use(named: Sequence[tuple[str, str]]) -> bool:
    """Return whether any row has one of these ids."""
    by_kind = defaultdict[str, list[str]](list)
    for kind, name in named:
        if name:
            by_kind[kind].append(name)
    return any(TABLES[kind]._default_manager.filter(pk__in=names).exists() for kind, names in by_kind.items())
