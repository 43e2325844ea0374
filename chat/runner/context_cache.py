"""Keep the rows of contexts in this process, so that a request reads only what has changed since the one before.

A turn with many tool rounds, or in a long session, would read all rows before each request. The rows in the database
stay the only truth (MSG-01): kept rows are used as far as the newest change among them is still there, and every change
after it is read. All changes of a session's rows are made in the order of their revisions. So if the newest one is in
the rows, those before it are, too, even after a failover that has lost the last transactions.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings

from chat.models import ChatMessage, Session, without_files
from chat.projections.context import CONTEXT_FIELDS
from chat.queries.request_facts import RequestFacts, request_facts
from chat.row_statements import read_rows

# How many characters all kept rows may have. One row counts as many more, for its other columns.
MOST_CHARS = 20_000_000
CHARS_OF_ROW = 1000

_FIELDS = (*CONTEXT_FIELDS, "revision")
_ALL = "session_id = %s AND sequence IS NOT NULL ORDER BY sequence"
# The newest row by its key, and all that changed later. Both parts have an index.
_SINCE = "id = %s OR (session_id = %s AND revision > %s)"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session's rows in order, and the row that was changed last among all rows of the session."""

    rows: list[ChatMessage]
    newest: tuple[str, int]
    chars: int


class ContextCache:
    """The rows of sessions that were used last, within MOST_CHARS. For sessions without files and summaries."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def rows(self, session: Session, facts: RequestFacts) -> list[ChatMessage]:
        """Return the rows of a session's conversation, in order; they must not be changed.

        `facts` were read before: rows that have changed since are newer than the newest one that they name.
        """
        with self._lock:
            before = self._kept.get(session.pk)
        kept = _extended(session, before) if before is not None else None
        if kept is None:
            rows = read_rows(ChatMessage, _FIELDS, _ALL, [session.pk])
            kept = _kept([], rows, (facts.newest_id or "", facts.newest_revision or 0), 0)
        elif settings.CHECK_CONTEXT_CACHE:
            _check(session, kept)
        self._keep(session.pk, kept)
        return kept.rows

    def forget(self, session_id: str) -> None:
        """Drop what is kept of a session."""
        with self._lock:
            self._drop(session_id)

    def _keep(self, session_id: str, kept: _Kept) -> None:
        with self._lock:
            self._drop(session_id)
            if kept.newest[0]:
                self._kept[session_id] = kept
                self._chars += kept.chars
            while self._chars > MOST_CHARS:
                self._drop(next(iter(self._kept)))

    def _drop(self, session_id: str) -> None:
        dropped = self._kept.pop(session_id, None)
        self._chars -= dropped.chars if dropped else 0


def _extended(session: Session, before: _Kept) -> _Kept | None:
    """Return the rows with what has changed since; None if they have to be read again."""
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
        return _kept(before.rows, sorted(changed, key=_place), newest, before.chars)
    others = {row.pk for row in changed}
    rows = [row for row in before.rows if row.pk not in others] + [row for row in changed if row.sequence is not None]
    return _kept([], sorted(rows, key=_place), newest, 0)


def _kept(before: list[ChatMessage], rows: Sequence[ChatMessage], newest: tuple[str, int], chars: int) -> _Kept:
    for row in rows:
        without_files(row)
    return _Kept([*before, *rows], newest, chars + _chars(rows))


def _chars(rows: Iterable[ChatMessage]) -> int:
    return sum(len(row.text) + len(row.result) + CHARS_OF_ROW for row in rows)


def _place(row: ChatMessage) -> int:
    return row.sequence or 0


def _check(session: Session, kept: _Kept) -> None:
    """Raise AssertionError if kept rows differ from the stored ones, unless those have been changed just now."""
    stored = read_rows(ChatMessage, _FIELDS, _ALL, [session.pk])
    now = request_facts(session)
    is_same = [_values(row) for row in kept.rows] == [_values(row) for row in stored]
    if not is_same and (now.newest_id, now.newest_revision) == kept.newest:
        raise AssertionError(f"the kept rows of session {session.pk} differ from the stored ones")


def _values(row: ChatMessage) -> list[object]:
    return [getattr(row, name) for name in _FIELDS]


contexts = ContextCache()
