"""What a request to a model is made from: the rows of its context, read or cached, and facts about the session.

The facts are read in one statement. Most sessions have no files, summaries, servers, notes and rules, and each of them
would otherwise take a separate query.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import Q

from chat.models import CONTENT_TYPES, ChatMessage, Session, without_files
from chat.projections.context import CONTEXT_FIELDS, from_summary, system_prompt
from chat.projections.context_view import blocks
from chat.projections.estimate import of_text
from chat.queries.attachments import fetch_attachments
from chat.queries.senders import KnownSenders, around_request, sender_cache
from chat.row_statements import read_rows

# The most characters that all cached rows may have. Each row counts for CHARS_OF_ROW more, for its other columns.
MAX_CHARS = 20_000_000
CHARS_OF_ROW = 1000
# Larger than any revision.
NO_REVISION = 2**62

_FIELDS = (*CONTEXT_FIELDS, "revision")
_ALL = "session_id = %s AND sequence IS NOT NULL ORDER BY sequence"
# The newest row by its key, and all rows that changed later. Both parts have an index.
_SINCE = "id = %s OR (session_id = %s AND revision > %s)"
_FACTS = """
    SELECT
        EXISTS (SELECT 1 FROM chat_attachment WHERE session_id = %(session)s) AS has_files,
        EXISTS (SELECT 1 FROM chat_chatmessage
            WHERE session_id = %(session)s AND summarises IS NOT NULL) AS has_summaries,
        EXISTS (SELECT 1 FROM chat_mcpserver WHERE workspace_id = %(workspace)s AND is_enabled) AS has_servers,
        EXISTS (SELECT 1 FROM chat_memorynote WHERE workspace_id = %(workspace)s)
            OR EXISTS (SELECT 1 FROM chat_memorynote WHERE user_id = %(owner)s) AS has_notes,
        EXISTS (SELECT 1 FROM chat_approvalrule WHERE workspace_id = %(workspace)s) AS has_rules,
        EXISTS (SELECT 1 FROM chat_sessionrun r JOIN chat_chatmessage m ON m.run_id = r.turn_id
            WHERE r.session_id = %(session)s AND NOT r.turn_id = '' AND m.session_id = r.session_id
                AND m.type = 'turn_start' AND NOT m.workflow_id = '') AS is_scheduled,
        -- Removed rows have changed, too.
        (SELECT id FROM chat_chatmessage WHERE session_id = %(session)s ORDER BY revision DESC LIMIT 1) AS newest_id,
        (SELECT MAX(revision) FROM chat_chatmessage WHERE session_id = %(session)s) AS newest_revision,
        (SELECT revision FROM chat_modelrequest WHERE session_id = %(session)s
            ORDER BY created_at DESC, response_id DESC LIMIT 1) AS last_request,
        -- No message up to the summary has changed or been removed since its senders were read.
        EXISTS (SELECT 1 FROM chat_chatmessage WHERE id = %(known_id)s AND revision = %(known_revision)s)
            AND NOT EXISTS (SELECT 1 FROM chat_chatmessage
                WHERE session_id = %(session)s AND revision > %(known_revision)s
                    AND (sequence IS NULL OR sequence <= %(known_place)s)) AS are_senders_known
"""


class RequestFacts(NamedTuple):
    """What exists, including removed summaries and notes. `is_scheduled` is True if a schedule began the open turn.

    `newest_id` and `newest_revision` are of the message that was changed last, including removed messages.
    `last_request` is the session's revision at its last recorded request, or None if there is none. `senders` are the
    cached senders of the messages before the summary, or None if they have to be read.
    """

    has_files: bool
    has_summaries: bool
    has_servers: bool
    has_notes: bool
    has_rules: bool
    is_scheduled: bool
    newest_id: str | None
    newest_revision: int | None
    last_request: int | None
    senders: KnownSenders | None

    @property
    def newest(self) -> tuple[str, int]:
        return self.newest_id or "", self.newest_revision or 0


def request_facts(session: Session) -> RequestFacts:
    """Read the facts of a session."""
    known = sender_cache.get(session.pk)
    known_id, known_revision = known.newest if known else ("", NO_REVISION)
    values: dict[str, Any] = {
        "session": session.pk,
        "workspace": session.workspace_id,
        "owner": session.owner_id,
        "known_id": known_id,
        "known_revision": known_revision,
        "known_place": known.place if known else 0,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, values)
        *facts, are_senders_known = cursor.fetchone()
    is_purged = (session.purged_revision or 0) > known_revision
    return RequestFacts._make([*facts, known if are_senders_known and not is_purged else None])


def context_rows(session: Session, *more: str) -> list[ChatMessage]:
    """Read the conversation's rows for the context, in order, with their files. `more` are further columns to read.

    Rows before the last summary are not read, except the first that is in the context, because it may be the system
    prompt (CTX-07). The session was read before, so rows may be newer than its revision, but never older.
    """
    live = ChatMessage.objects.in_conversation(session.pk)
    summaries = live.filter(summarises__isnull=False, include_in_context=True).order_by("-sequence")
    last = summaries.values_list("sequence", flat=True).first()
    found = live.only(*CONTEXT_FIELDS, "revision", *more)
    if last is not None:
        in_context = live.filter(include_in_context=True, type__in=CONTENT_TYPES).order_by("sequence")
        found = found.filter(Q(sequence__gte=last) | Q(pk__in=in_context.values("pk")[:1]))
    rows = list(found.order_by("sequence"))
    fetch_attachments(rows, with_text=True)
    return from_summary(rows)


def estimated_context(session: Session) -> int:
    """Return an estimate of the context's tokens, for use after a summary was added, included or excluded."""
    rows = context_rows(session)
    rest = around_request(session.pk, rows)
    system = of_text(system_prompt(rows, session.system_prompt, rest))
    return round(system + sum(block.tokens for block in blocks(rows, around=rest)))


def is_another_context(session: Session, known: int | None, has_summaries: bool) -> bool:
    """Return whether a summary has changed which rows are in the context since a request at the revision `known`."""
    if known is None or (session.purged_revision or 0) > known:
        return True
    if not has_summaries:
        return False
    return ChatMessage.objects.filter(session=session.pk, summarises__isnull=False, revision__gt=known).exists()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session's rows in order, and the id and revision of the row that was changed last."""

    rows: list[ChatMessage]
    newest: tuple[str, int]
    chars: int


class ContextCache:
    """The rows of recently used sessions, up to MAX_CHARS. It serves only sessions without files and summaries.

    Without it, a turn with many tool rounds, or a turn in a long session, would read all rows before each request. The
    rows in the database stay the only truth (MSG-01). Cached rows are used only if the newest change among them is
    still in the database, and every later change is read. All changes of a session's rows are made in the order of
    their revisions. So if the newest change is in the database, the earlier ones are, too, even after a failover that
    has lost the last transactions.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def rows(self, session: Session, facts: RequestFacts) -> list[ChatMessage]:
        """Return the rows of a session's conversation, in order. Callers must not change them.

        `facts` were read earlier, so rows that have changed since are newer than the newest row in `facts`.
        """
        with self._lock:
            before = self._kept.get(session.pk)
        kept = _extend(session, before) if before is not None else None
        if kept is None:
            rows = read_rows(ChatMessage, _FIELDS, _ALL, [session.pk])
            kept = _compose([], rows, facts.newest, 0)
        elif settings.CHECK_CONTEXT_CACHE:
            _check(session, kept)
        self._keep(session.pk, kept)
        return kept.rows

    def forget(self, session_id: str) -> None:
        """Drop the cached rows of a session."""
        with self._lock:
            self._drop(session_id)

    def _keep(self, session_id: str, kept: _Kept) -> None:
        with self._lock:
            self._drop(session_id)
            if kept.newest[0]:
                self._kept[session_id] = kept
                self._chars += kept.chars
            while self._chars > MAX_CHARS:
                self._drop(next(iter(self._kept)))

    def _drop(self, session_id: str) -> None:
        dropped = self._kept.pop(session_id, None)
        self._chars -= dropped.chars if dropped else 0


def _extend(session: Session, before: _Kept) -> _Kept | None:
    """Return the cached rows with later changes applied; return None if all rows have to be read again."""
    message_id, revision = before.newest
    if (session.purged_revision or 0) > revision:
        return None
    found = read_rows(ChatMessage, _FIELDS, _SINCE, [message_id, session.pk, revision])
    if (message_id, revision) not in {(row.pk, row.revision) for row in found}:
        return None
    changed = sorted((row for row in found if row.revision > revision), key=lambda row: row.revision)
    if not changed:
        return before
    newest = changed[-1].pk, changed[-1].revision
    last = (before.rows[-1].sequence or 0) if before.rows else 0
    if all(row.sequence is not None and row.sequence > last for row in changed):
        return _compose(before.rows, sorted(changed, key=_place), newest, before.chars)
    others = {row.pk for row in changed}
    rows = [row for row in before.rows if row.pk not in others] + [row for row in changed if row.sequence is not None]
    return _compose([], sorted(rows, key=_place), newest, 0)


def _compose(before: list[ChatMessage], rows: Sequence[ChatMessage], newest: tuple[str, int], chars: int) -> _Kept:
    for row in rows:
        without_files(row)
    added = sum(len(row.text) + len(row.result) + CHARS_OF_ROW for row in rows)
    return _Kept([*before, *rows], newest, chars + added)


def _place(row: ChatMessage) -> int:
    return row.sequence or 0


def _check(session: Session, kept: _Kept) -> None:
    """Raise AssertionError if cached rows differ from the stored ones, unless these have changed in the meantime."""
    stored = read_rows(ChatMessage, _FIELDS, _ALL, [session.pk])
    now = request_facts(session)
    is_same = [_values(row) for row in kept.rows] == [_values(row) for row in stored]
    if not is_same and now.newest == kept.newest:
        raise AssertionError(f"the kept rows of session {session.pk} differ from the stored ones")


def _values(row: ChatMessage) -> list[object]:
    return [getattr(row, name) for name in _FIELDS]


contexts = ContextCache()
