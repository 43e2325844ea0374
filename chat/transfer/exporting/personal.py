"""Export all data of one user as a ZIP archive, which is written piece by piece.

It contains the user's own sessions completely, and the user's messages and files in sessions of others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import ClassVar

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.files.storage import default_storage
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.messages import Json
from chat.access import sessions_of
from chat.downloads import file_name, zip_archive
from chat.errors import ServiceError
from chat.models import (
    AgentPreset,
    ApiToken,
    Attachment,
    ChatMessage,
    Invitation,
    KnowledgeFile,
    Membership,
    MemoryNote,
    MessageRevision,
    PushSubscription,
    Schedule,
    SecurityEvent,
    Session,
    Share,
    Suggestion,
    User,
    UserSessionState,
    WorkspaceInvitation,
)
from chat.queries import workspace
from chat.queries.attachments import stored_name
from chat.services.batches import batches, read_in_batches
from chat.services.maintenance import leases
from chat.services.people.security_log import Kind
from chat.transfer.exporting import as_json
from chat.transfer.exporting.sessions import (
    UnreadableError,
    export_json,
    export_markdown,
    require_readable,
    when_read,
)

Entry = tuple[str, Iterable[bytes]]
# Seconds until the lease of an aborted export expires. A running export renews its lease.
LEASE_SECONDS = 60.0
RENEWED_EVERY = 15.0
PORTION = 256 * 1024
ACCOUNT = (
    *("username", "display_name", "first_name", "last_name", "email", "date_joined", "last_login"),
    *("language", "theme", "clock", "send_key", "notify"),
)
TOKEN = ("name", "scope", "created_at", "last_used_at", "expires_at", "revoked_at")
BROWSER = ("name", "created_at", "refreshed_at", "last_success_at")
SUGGESTION = ("text", "status", "created_at", "decided_at")
NOTE = ("text", "session_id", "created_at", "updated_at", "removed_at")
KNOWLEDGE = ("name", "size", "created_at", "removed_at")
AGENT = (
    "name",
    "title",
    "icon",
    "model",
    "system_prompt",
    "tools",
    "prompts",
    "is_shared",
    "archived_at",
    "created_at",
)
SCHEDULE = ("session_id", "text", "cron", "zone", "is_on", "created_at", "updated_at", "removed_at")
WORKSPACE_INVITATION = ("uses", "max_uses", "created_at", "expires_at")
INVITATION = ("session_id", "role", "uses", "max_uses", "created_at", "expires_at")


class ExportRunning(ServiceError):
    CODE: ClassVar[str] = "export_running"

    def __init__(self) -> None:
        words = _("Your export is already being created. Try again in a minute.")
        super().__init__(self.CODE, words, retry_after=int(LEASE_SECONDS))


class PersonExport(Iterator[bytes]):
    """The pieces of an export of all data of a user. Close it, because its lease lasts until then, or until its end."""

    def __init__(self, pieces: Generator[bytes], end: Callable[[], None]) -> None:
        self._pieces = pieces
        self._end = end

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """Release the lease, also if no piece was read, when the generator has not begun and does not end."""
        self._pieces.close()
        self._end()


def export_person(*, user: User, author: User | None, zone: tzinfo = UTC) -> PersonExport:
    """Export all data of a user as a ZIP archive. `author` is None for operators' commands.

    The security log records the export when its first piece is read, because a HEAD request reads none. Raise
    ExportRunning, before anything is written, while another export of the same user runs.
    """
    name = f"export {user.pk}"
    holder = leases.acquire(name, LEASE_SECONDS)
    if holder is None:
        raise ExportRunning
    entries = when_read(_entries(user, zone), Kind.PERSON_EXPORTED, actor=author, person=user)
    pieces = _renewing(zip_archive(entries, timezone.now()), name, holder)
    return PersonExport(pieces, partial(leases.drop, name, holder))


def _renewing(pieces: Iterator[bytes], name: str, holder: str) -> Generator[bytes]:
    renewed = time.monotonic()
    try:
        for piece in pieces:
            yield piece
            if time.monotonic() - renewed > RENEWED_EVERY:
                leases.renew(name, holder, LEASE_SECONDS)
                renewed = time.monotonic()
    finally:
        leases.drop(name, holder)


def _entries(user: User, zone: tzinfo) -> Iterator[Entry]:
    yield "README.txt", [_readme(user).encode()]
    yield "account.json", _json(_account(user))
    if user.picture and default_storage.exists(user.picture.name or ""):
        yield "picture.webp", _read_stored(user.picture.name or "")
    yield "drafts.json", _array(_drafts(user))
    yield "security-events.json", _array(_security_events(user))
    sessions = Session.objects.filter(owner=user, building_until=None).order_by("created_at", "pk")
    for session_id in list(sessions.values_list("pk", flat=True)):
        yield from _session(session_id, zone)
    others = ChatMessage.objects.written_by(user).exclude(session__owner=user)
    yield "other-sessions/messages.json", _array(_messages(user, others))
    yield "other-sessions/suggestions.json", _array(_suggestions(user))
    files = Attachment.objects.filter(user=user).exclude(session__owner=user).defer("text").order_by("pk")
    for file in read_in_batches(files):
        yield from _file("other-sessions/files", file)


def _session(session_id: str, zone: tzinfo) -> Iterator[Entry]:
    """Yield a session as JSON and as Markdown, its attachments and files, or the reason why it is left out."""
    try:
        require_readable(session_id)
    except UnreadableError as error:
        yield f"unreadable-sessions/{session_id}.txt", [f"{error.message}\n".encode()]
        return
    session = Session.objects.filter(pk=session_id).first()
    if session is None:  # purged in the meantime
        return
    folder = "deleted-sessions" if session.status == Session.Status.DELETED else "sessions"
    folder = f"{folder}/{session.pk} {file_name(session.title, '', '').rstrip('.')}".rstrip()
    yield f"{folder}/session.json", (piece.encode() for piece in export_json(session))
    yield f"{folder}/session.md", (piece.encode() for piece in export_markdown(session, zone=zone))
    for file in read_in_batches(Attachment.objects.filter(session=session).defer("text").order_by("pk")):
        yield from _file(f"{folder}/files", file)
    for path, pieces in workspace.files_below(session, ""):
        yield f"{folder}/session-files/{path}", pieces


def _file(folder: str, file: Attachment) -> Iterator[Entry]:
    if default_storage.exists(stored_name(file)):
        stem, dot, ending = file.name.rpartition(".")
        yield (
            f"{folder}/{file.pk} {file_name(stem if dot else ending, file.pk, ending if dot else '')}",
            _read_stored(stored_name(file)),
        )


def _messages(user: User, rows: QuerySet[ChatMessage]) -> Iterator[Json]:
    """Yield a user's messages in sessions of others, with the user's revisions. Titles need access to the session."""
    titles = dict(sessions_of(user).exclude(owner=user).order_by().values_list("pk", "title"))
    sizes = list(rows.order_by("session", "created_at", "pk").annotate(chars=Length("text")).values_list("pk", "chars"))
    for batch in batches(sizes, lambda row: row[1]):
        message_ids = [pk for pk, _chars in batch]
        found = ChatMessage.objects.in_bulk(message_ids)
        revisions = (
            MessageRevision.objects.filter(message__in=message_ids, user=user).select_related("user").order_by("pk")
        )
        changes: dict[str, list[MessageRevision]] = {}
        for revision in revisions:
            changes.setdefault(revision.message_id, []).append(revision)
        for row in (found[pk] for pk in message_ids if pk in found):
            record = as_json.message_record(row, row.text, changes.get(row.pk, []), [])
            yield {"session": row.session_id, "title": titles.get(row.session_id), **record}


def _suggestions(user: User) -> Iterator[Json]:
    """Yield the edits that a user suggested. All of them are edits of other users' messages."""
    rows = Suggestion.objects.filter(user=user).select_related("message").order_by("created_at", "pk")
    for each in read_in_batches(rows.defer("message__text"), 20):
        yield {"session": each.message.session_id, "message": each.message_id, **_columns(each, SUGGESTION)}


def _account(user: User) -> Json:
    tokens = ApiToken.objects.filter(user=user).order_by("pk")
    invitations = Invitation.objects.filter(created_by=user).order_by("pk")
    return {
        **_columns(user, ACCOUNT),
        "workspaces": [
            {"workspace": each.workspace.name, "role": each.role, "since": each.created_at}
            for each in Membership.objects.filter(user=user).select_related("workspace").order_by("pk")
        ],
        "api_tokens": [_columns(each, TOKEN) for each in tokens],
        "browsers_with_notifications": [_columns(each, BROWSER) for each in PushSubscription.objects.filter(user=user)],
        "shared_with_me": [
            {"session": each.session_id, "title": each.session.title, "role": each.role, "since": each.created_at}
            for each in Share.objects.filter(user=user, session__in=sessions_of(user)).select_related("session")
        ],
        "shared_by_me": [
            {"session": each.session_id, "with": each.user.sender, "role": each.role, "since": each.created_at}
            for each in Share.objects.filter(session__owner=user).select_related("user").order_by("pk")
        ],
        "invitations": [_columns(each, INVITATION) for each in invitations],
        "workspace_invitations": [
            {"workspace": each.workspace.name, **_columns(each, WORKSPACE_INVITATION)}
            for each in WorkspaceInvitation.objects.filter(created_by=user).select_related("workspace").order_by("pk")
        ],
        "notes": [_columns(each, NOTE) for each in MemoryNote.objects.filter(user=user)],
        "knowledge_files": [
            {"workspace": each.workspace.name, **_columns(each, KNOWLEDGE)}
            for each in KnowledgeFile.objects.filter(added_by=user).select_related("workspace").order_by("pk")
        ],
        "schedules": [_columns(each, SCHEDULE) for each in Schedule.objects.filter(owner=user)],
        "agents": [_columns(each, AGENT) for each in AgentPreset.objects.filter(user=user).order_by("pk")],
    }


def _columns(row: Model, names: Sequence[str]) -> Json:
    return {name: getattr(row, name) for name in names}


def _drafts(user: User) -> Iterator[Json]:
    rows = UserSessionState.objects.filter(user=user).exclude(draft="").order_by("pk")
    for each in read_in_batches(rows, 20):
        yield {"session": each.session_id, "draft": each.draft, "at": each.draft_at}


def _security_events(user: User) -> Iterator[Json]:
    """Yield the log entries about a user's account."""
    kind = ContentType.objects.get_for_model(User)
    events = SecurityEvent.objects.filter(Q(actor=user) | Q(person=user)).order_by("at", "pk")
    for event in read_in_batches(events):
        # Entries of others omit the address.
        own = _columns(event, ("face", "address")) if event.actor_id in (user.pk, None) else {}
        yield {"at": event.at, "what": event.kind, "by_me": event.actor_id == user.pk, **own}
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(user.pk)).order_by("pk")
    for entry in read_in_batches(entries):
        yield {"at": entry.action_time, "what": entry.get_change_message()}


def _readme(user: User) -> str:
    lines = [
        _("All data that Parley has about %(name)s, exported on %(time)s.")
        % {"name": user.sender, "time": f"{timezone.now():%Y-%m-%d %H:%M} UTC"},
        "",
        _("account.json: your account, workspaces, API tokens (without secrets), shares and invitations"),
        _("drafts.json: your unsent drafts"),
        _("security-events.json: your entries in the security log"),
        _("sessions: the sessions that you own, for importing (session.json) and reading (session.md), with files"),
        _("deleted-sessions: deleted sessions that are not purged yet; importing the archive leaves them out"),
        _("other-sessions: your messages, suggested edits and files in sessions of others"),
        _("unreadable-sessions: sessions that are left out, because they contain values that can’t be read"),
    ]
    return "\n".join(lines) + "\n"


def _read_stored(name: str) -> Iterator[bytes]:
    with default_storage.open(name) as file:
        while data := file.read(PORTION):
            yield data


def _json(value: object) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False, indent=2, default=as_json.plain).encode()]


def _array(values: Iterable[Json]) -> Iterator[bytes]:
    yield b"["
    before = "\n"
    for value in values:
        yield (before + json.dumps(value, ensure_ascii=False, default=as_json.plain)).encode()
        before = ",\n"
    yield b"\n]\n"
