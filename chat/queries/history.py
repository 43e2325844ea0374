"""What messages and system prompts were: who changed what, when, and what was taken out of a session (MSG-11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Left

from chat.models import TURN_MARKERS, ChatMessage, MessageRevision, MessageType, Session, SessionRevision, User

# What was said, by the name of the part: "text", or a tool call's "arguments" and "result".
Words = dict[str, str]
PAGE = 20
EXCERPT = 400
SHORT = 100

PLACED = (MessageRevision.Kind.REMOVE, MessageRevision.Kind.RETRY)


@dataclass(frozen=True, slots=True)
class Change:
    """A change by a user; `user` is None if unknown. `made` is the resulting version.

    `suggested_by` names who suggested an edit that another user accepted.
    """

    id: int
    kind: str
    user: User | None
    at: datetime
    before: Words
    after: Words
    made: int
    suggested_by: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """Changes, the newest first, and what is there now.

    A version is named by the record of the change that ended it; the present one is 0. `first` is the version before
    the oldest change here, `older` the place to go on from, if there are more. `newest` names the last change of all.
    """

    changes: list[Change]
    now: Words
    first: Words
    first_version: int
    older: int | None
    newest: int


@dataclass(frozen=True, slots=True)
class Removed:
    """A message that was taken away: its first words, and by whom it went, when. `comes_back`: not after a retry."""

    message: ChatMessage
    excerpt: str
    user: User | None
    at: datetime
    comes_back: bool

    @property
    def has_more(self) -> bool:
        """Whether a few lines may not be all of it."""
        return len(self.excerpt) > SHORT or "\n" in self.excerpt or self.message.type == MessageType.TOOL_GROUP


def history_of(row: ChatMessage, before: int | None = None) -> History:
    """Read a page of a message's history, from before a record on; in one query, or two."""
    records = MessageRevision.objects.filter(message=row).select_related("user").order_by("-id")
    return _history(records, words_of_row(row), before)


def history_of_prompt(session: Session, before: int | None = None) -> History:
    """Read a page of the history of a session's system prompt, likewise."""
    kind = SessionRevision.Kind.SYSTEM_PROMPT
    records = SessionRevision.objects.filter(session=session, kind=kind).select_related("user").order_by("-id")
    return _history(records, {"text": session.system_prompt}, before)


def version_of(row: ChatMessage, version: int) -> Words | None:
    """What a message was; None: no such version."""
    if not version:
        return words_of_row(row)
    records = MessageRevision.objects.filter(message=row)
    if not records.filter(pk=version).exists():
        return None
    return _words_before(records, version) or words_of_row(row)


def version_of_prompt(session: Session, version: int) -> Words | None:
    """What a session's system prompt was; None: no such version."""
    if not version:
        return {"text": session.system_prompt}
    record = SessionRevision.objects.filter(session=session, pk=version, kind=SessionRevision.Kind.SYSTEM_PROMPT)
    before = record.values_list("before", flat=True).first()
    return None if before is None else _words(before)


def newest_change(session: Session, row: ChatMessage | None) -> int:
    """The number of the last change of a message, or of the session's system prompt; 0 where there was none."""
    if row is not None:
        records: QuerySet[Any] = MessageRevision.objects.filter(message=row)
    else:
        records = SessionRevision.objects.filter(session=session, kind=SessionRevision.Kind.SYSTEM_PROMPT)
    return records.order_by("-pk").values_list("pk", flat=True).first() or 0


def number_of_changes(message_id: str) -> int:
    return MessageRevision.objects.filter(message=message_id).count()


def removed_from(session: Session, before: int | None = None) -> tuple[list[Removed], int | None]:
    """Read the removed messages of a session, the last first, and the place of the next page if there is one.

    Queued messages that their sender withdrew and turn markers are left out.
    """
    records = MessageRevision.objects.filter(message__session=session, message__removed_at__isnull=False)
    records = records.filter(kind__in=PLACED).exclude(message__type__in=TURN_MARKERS)
    last = MessageRevision.objects.filter(message=OuterRef("message")).order_by("-pk").values("pk")[:1]
    found = records.filter(pk=Subquery(last)).order_by("-pk").select_related("user", "message")
    shown = (found if before is None else found.filter(pk__lt=before)).defer("before", *_LARGE)
    page = list(shown.annotate(excerpt=Left("message__text", EXCERPT))[: PAGE + 1])
    older = page[PAGE - 1].pk if len(page) > PAGE else None
    return [_removed(record, record.excerpt) for record in page[:PAGE]], older


_LARGE = tuple(f"message__{name}" for name in ("text", "result", "arguments", "provider_data"))


def _removed(record: MessageRevision, excerpt: str) -> Removed:
    came_of = record.kind == MessageRevision.Kind.REMOVE
    return Removed(record.message, excerpt, record.user, record.created_at, came_of)


def _history(records: QuerySet[Any], now: Words, before: int | None) -> History:
    newer = records.filter(pk=before).first() if before is not None else None
    page = list((records if newer is None else records.filter(pk__lt=newer.pk))[: PAGE + 1])
    made, after = (newer.pk, _words_before(records, newer.pk) or now) if newer else (0, now)
    newest = page[0].pk if page and newer is None else 0
    changes = []
    for record in page[:PAGE]:
        was = _words(record.before) if keeps_content(record.before) else after
        suggested_by = str(record.before.get("accepted_from", ""))
        changes.append(Change(record.pk, record.kind, _who(record), record.created_at, was, after, made, suggested_by))
        if was != after:
            after, made = was, record.pk
    older = changes[-1].id if len(page) > PAGE else None
    return History(changes, now, after, made, older, newest)


def _who(record: MessageRevision | SessionRevision) -> User | None:
    """Who did it. Of a session that was imported their name alone is known, and no account has it."""
    name = record.before.get("by")
    return record.user or (User(display_name=name) if isinstance(name, str) and name else None)


def words_of_row(row: ChatMessage) -> Words:
    """What a message says, in parts."""
    if row.type == MessageType.TOOL_GROUP:
        return {"arguments": _pretty(row.arguments or {}), "result": row.result}
    return {"text": row.text}


def _words_before(records: QuerySet[Any], pk: int) -> Words | None:
    """Return the content before a revision; None: it is the present one.

    A revision without content did not change it: it was then what the next revision with content kept.
    """
    later = records.filter(pk__gte=pk).order_by("pk").values_list("before", flat=True)
    kept = next((before for before in later.iterator() if keeps_content(before)), None)
    return None if kept is None else _words(kept)


def keeps_content(before: Mapping[str, Any]) -> bool:
    """Return whether a revision holds the content that was replaced; most kinds hold only flags."""
    return not before.keys().isdisjoint(("text", "tool", "system_prompt"))


def _words(before: Mapping[str, Any]) -> Words:
    """What a record says that was there; records may be hand-made."""
    tool = before.get("tool")
    if isinstance(tool, dict):
        return {"arguments": _pretty(tool.get("arguments")), "result": str(tool.get("result") or "")}
    return {"text": str(before.get("text", before.get("system_prompt")) or "")}


def _pretty(arguments: object) -> str:
    return json.dumps(arguments or {}, ensure_ascii=False, indent=2)
