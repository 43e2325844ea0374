"""Check the rows and files of a whole database, session by session, without changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from django.core.files.storage import default_storage
from django.db import DatabaseError, connection
from django.db.models import F, Q

from chat.errors import FilesUnavailable
from chat.models import Attachment, ChatMessage, KnowledgeFile, MessageDelta, MessageStatus, Session, SessionRun, User
from chat.projections.context import CONTEXT_FIELDS, context
from chat.projections.invariants import (
    is_at_rest,
    problems_at_rest,
    problems_of_calls,
    problems_of_order,
    problems_of_run,
)
from chat.queries.attachments import fetch_attachments
from chat.queries.unreadable import unreadable_values

# The number of sessions that one query reads, and of rows that are fetched at a time.
SESSIONS_AT_ONCE = 200
ROWS_AT_ONCE = 2000
# How many times a session with problems is read again, because it may have changed between two queries.
LOOKS = 3
# The most problems that are listed for one session, because one mistake may show in each of its messages.
MAX_LINES = 5
FIELDS = (*CONTEXT_FIELDS, "session_id", "turn_id", "revision", "held", "removed_at")


@dataclass(slots=True)
class Verification:
    """A check of the database, with the number of checked items by kind."""

    counts: Counter[str] = field(default_factory=Counter)

    def problems(self) -> Iterator[str]:
        """Yield a line for each problem. Memory is bounded by the largest session."""
        yield from _problems_of_database()
        unreadable = list(unreadable_values())
        yield from map(str, unreadable)
        damaged = {each.session_id for each in unreadable}
        for part in self._in_parts():
            suspects = []
            for session, rows, found in _checked_sessions([each for each in part if each not in damaged]):
                self.counts["sessions"] += 1
                self.counts["messages"] += rows
                if found:
                    suspects.append(session.pk)
            for session_id in suspects:
                yield from _settled_problems(session_id)
        yield from self._problems_of_files()
        yield from self._problems_of_knowledge()
        yield from self._problems_of_pictures()

    def _in_parts(self) -> Iterator[list[str]]:
        """Yield the ids of all sessions that are complete."""
        last = ""
        sessions = Session.objects.filter(building_until=None).order_by("pk").values_list("pk", flat=True)
        while part := list(sessions.filter(pk__gt=last)[:SESSIONS_AT_ONCE]):
            yield part
            last = part[-1]

    def _problems_of_files(self) -> Iterator[str]:
        """Yield attachments without their file. Files that forks share are checked once. Raise FilesUnavailable."""
        attached = Attachment.objects.order_by("file", "pk").values_list("file", "session_id", "pk", "size")
        found = attached.iterator(chunk_size=ROWS_AT_ONCE)
        for name, sharing in groupby(found, lambda row: row[0]):
            _name, session_id, pk, size = next(iter(sharing))
            self.counts["files"] += 1
            problem = _problem_of_file(name, size)
            if problem and Attachment.objects.filter(file=name).exists():  # it may have been deleted since
                yield f"{session_id}: attachment {pk} {problem}"

    def _problems_of_knowledge(self) -> Iterator[str]:
        """Yield files of workspaces, including removed ones, whose stored file is missing or has another size."""
        rows = KnowledgeFile.objects.order_by("pk").values_list("workspace_id", "pk", "file", "size")
        for workspace_id, pk, name, size in rows.iterator(chunk_size=ROWS_AT_ONCE):
            self.counts["files"] += 1
            problem = _problem_of_file(name, size)
            if problem and KnowledgeFile.objects.filter(pk=pk, file=name).exists():
                yield f"workspace {workspace_id}: knowledge file {pk} {problem}"

    def _problems_of_pictures(self) -> Iterator[str]:
        """Yield users whose picture file is missing. The sizes of pictures are not stored."""
        rows = User.objects.exclude(picture="").order_by("pk").values_list("pk", "picture")
        for pk, name in rows.iterator(chunk_size=ROWS_AT_ONCE):
            self.counts["files"] += 1
            problem = _problem_of_file(name)
            if problem and User.objects.filter(pk=pk, picture=name).exists():
                yield f"user {pk}: picture {problem}"


def _problem_of_file(name: str, size: int | None = None) -> str:
    try:
        stored = default_storage.size(name)
    except FilesUnavailable:
        raise
    except OSError as error:
        return f"has no file {name}: {error.strerror or error}"
    return "" if size in (stored, None) else f"has {size} bytes, but its file {name} has {stored}"


def _problems_of_database() -> Iterator[str]:
    """Yield the problems of the database as a whole, such as a damaged file or references to missing rows."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA integrity_check(20)")
            yield from (f"database: {line}" for (line,) in cursor.fetchall() if line != "ok")
    try:
        connection.check_constraints()
    except DatabaseError as error:
        yield f"database: {error}"
    rows = ChatMessage.objects.filter(revision__gt=F("session__revision"))
    for session_id, pk in rows.values_list("session_id", "pk")[:20]:
        yield f"{session_id}: message {pk} has a later revision than its session"
    yield from problems_of_workspaces()


def problems_of_workspaces(**filters: object) -> Iterator[str]:
    """Yield rows whose workspace is not that of their session."""
    for kind, model in (("message", ChatMessage), ("run", SessionRun), ("attachment", Attachment)):
        rows = model._default_manager.filter(**filters).exclude(workspace_id=F("session__workspace_id"))
        for session_id, pk, workspace_id in rows.values_list("session_id", "pk", "workspace_id")[:20]:
            place = "no workspace" if workspace_id is None else f"workspace {workspace_id}, which is not its session’s"
            yield f"{session_id}: {kind} {pk} has {place}"


def _settled_problems(session_id: str) -> Iterator[str]:
    """Yield the problems of a session that remain when it is read again and has not changed in between."""
    for _ in range(LOOKS):
        before = _version(session_id)
        found = [line for _session, _rows, lines in _checked_sessions([session_id]) for line in lines]
        if not found:
            return
        if before == _version(session_id):
            yield from (f"{session_id}: {line}" for line in found[:MAX_LINES])
            if more := found[MAX_LINES:]:
                yield f"{session_id}: and {len(more)} more"
            return


def _version(session_id: str) -> tuple[object, ...] | None:
    columns = ("session__revision", "epoch", "written", "state", "wanted", "done")
    return SessionRun.objects.filter(pk=session_id).values_list(*columns).first()


def _checked_sessions(session_ids: Sequence[str]) -> Iterator[tuple[Session, int, list[str]]]:
    """Yield sessions with the number of their messages and their problems."""
    sessions = Session.objects.in_bulk(session_ids)
    runs = SessionRun.objects.in_bulk(session_ids)
    settled = MessageDelta.objects.exclude(message__status=MessageStatus.STREAMING)
    left = settled.filter(message__session__in=session_ids).values_list("message__session", flat=True)
    with_deltas = set(left.distinct())
    present = ChatMessage.objects.filter(Q(sequence__isnull=False) | Q(removed_at=None), session__in=session_ids)
    ordered = present.only(*FIELDS).order_by("session_id", "sequence").iterator(chunk_size=ROWS_AT_ONCE)
    seen = set()
    for session_id, found in groupby(ordered, _session_of):
        seen.add(session_id)
        rows = list(found)
        if session_id in sessions:
            lines = _problems(runs.get(session_id), rows, has_deltas=session_id in with_deltas)
            yield sessions[session_id], len(rows), lines
    for session_id in sessions.keys() - seen:
        yield sessions[session_id], 0, _problems(runs.get(session_id), [], has_deltas=False)


def _session_of(row: ChatMessage) -> str:
    return row.session_id


def _problems(run: SessionRun | None, rows: Sequence[ChatMessage], *, has_deltas: bool) -> list[str]:
    if run is None:
        return ["it has no run"]
    conversation = [row for row in rows if row.sequence is not None]
    queued = [row for row in rows if row.sequence is None]
    found = [*problems_of_run(run), *problems_of_order(conversation)]
    if has_deltas:
        found.append("text is left beside a message that is complete")
    resting = is_at_rest(run)
    if resting:
        found += problems_at_rest([*conversation, *queued])
    fetch_attachments(conversation, with_text=True)
    found += problems_of_calls(context(conversation), may_wait=not resting)
    return found
