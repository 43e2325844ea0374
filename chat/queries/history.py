"""The history of messages and system prompts: who changed what and when, and removed messages (MSG-11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from chat.models import (
    TURN_MARKERS,
    ChatMessage,
    MessageRevision,
    MessageStatus,
    MessageType,
    Session,
    SessionRevision,
    User,
)
from chat.queries.attachments import fetch_attachments

# The content of a version by its part: "text", or a tool call's "arguments" and "result".
Words = dict[str, str]
PAGE = 20
EXCERPT = 400
SHORT = 100

PLACED = (MessageRevision.Kind.REMOVE, MessageRevision.Kind.RETRY)


@dataclass(frozen=True, slots=True)
class Change:
    """A change by a user; `user` is None if unknown. `made` is the resulting version.

    `suggested_by` is the name of the user who suggested an edit that another user accepted.
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
    """A page of changes, the newest first, and the content `now`.

    A version is named by the id of the change that ended it; the present version is 0. `first` is the version before
    the oldest change on the page. `older` is the `before` of the next page, or None. `newest` is the id of the newest
    change.
    """

    changes: list[Change]
    now: Words
    first: Words
    first_version: int
    older: int | None
    newest: int


@dataclass(frozen=True, slots=True)
class Removed:
    """A removed message: its first words, who removed it, and when.

    `comes_back` is False after a retry, and if the message was queued.
    """

    message: ChatMessage
    excerpt: str
    user: User | None
    at: datetime
    comes_back: bool

    @property
    def was_queued(self) -> bool:
        return self.message.status == MessageStatus.QUEUED

    @property
    def has_more(self) -> bool:
        """True if the message may have more than the lines that are shown."""
        return len(self.excerpt) > SHORT or "\n" in self.excerpt or self.message.type == MessageType.TOOL_GROUP


def history_of(row: ChatMessage, before: int | None = None) -> History:
    """Return a page of a message's history: its newest changes, or the newest before the change `before`."""
    records = MessageRevision.objects.filter(message=row).select_related("user").order_by("-id")
    return _history(records, words_of_row(row), before)


def history_of_prompt(session: Session, before: int | None = None) -> History:
    """Return a page of the history of a session's system prompt, as `history_of` does."""
    kind = SessionRevision.Kind.SYSTEM_PROMPT
    records = SessionRevision.objects.filter(session=session, kind=kind).select_related("user").order_by("-id")
    return _history(records, {"text": session.system_prompt}, before)


def version_of(row: ChatMessage, version: int) -> Words | None:
    """Return the content of a version of a message, or None if there is no such version."""
    if not version:
        return words_of_row(row)
    records = MessageRevision.objects.filter(message=row)
    if not records.filter(pk=version).exists():
        return None
    return _words_before(records, version) or words_of_row(row)


def version_of_prompt(session: Session, version: int) -> Words | None:
    """Return the content of a version of a session's system prompt, or None if there is no such version."""
    if not version:
        return {"text": session.system_prompt}
    record = SessionRevision.objects.filter(session=session, pk=version, kind=SessionRevision.Kind.SYSTEM_PROMPT)
    before = record.values_list("before", flat=True).first()
    return None if before is None else _words(before)


def newest_change(session: Session, row: ChatMessage | None) -> int:
    """Return the id of the last change of a message, or of the session's system prompt; 0 if there is none."""
    if row is not None:
        records: QuerySet[Any] = MessageRevision.objects.filter(message=row)
    else:
        records = SessionRevision.objects.filter(session=session, kind=SessionRevision.Kind.SYSTEM_PROMPT)
    return records.order_by("-pk").values_list("pk", flat=True).first() or 0


def number_of_changes(message_id: str) -> int:
    return MessageRevision.objects.filter(message=message_id).count()


def removed_from(session: Session, before: int | None = None) -> tuple[list[Removed], int | None]:
    """Return the removed messages of a session, the last removed first, and the `before` of the next page, if any.

    Queued messages that their sender withdrew and turn markers are left out. The files of other queued messages are
    fetched, because they stay with their message.
    """
    records = MessageRevision.objects.filter(message__session=session, message__removed_at__isnull=False)
    # If neither user exists anymore, the sender may have withdrawn the message.
    by_another = Q(user=None, message__user__isnull=False) | Q(Q(user__isnull=False), ~Q(user=F("message__user")))
    withdrawn = Q(by_another, kind=MessageRevision.Kind.WITHDRAW)
    records = records.filter(Q(kind__in=PLACED) | withdrawn).exclude(message__type__in=TURN_MARKERS)
    last = MessageRevision.objects.filter(message=OuterRef("message")).order_by("-pk").values("pk")[:1]
    found = records.filter(pk=Subquery(last)).order_by("-pk").select_related("user", "message")
    shown = (found if before is None else found.filter(pk__lt=before)).defer("before", *_LARGE)
    page = list(shown.annotate(excerpt=Left("message__text", EXCERPT))[: PAGE + 1])
    older = page[PAGE - 1].pk if len(page) > PAGE else None
    kind = MessageRevision.Kind.REMOVE
    removed = [
        Removed(record.message, record.excerpt, record.user, record.created_at, record.kind == kind)
        for record in page[:PAGE]
    ]
    fetch_attachments(row.message for row in removed if row.was_queued)
    return removed, older


_LARGE = tuple(f"message__{name}" for name in ("text", "result", "arguments", "provider_data"))


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
    """Return the user of a change. Imported sessions have only a name, so the returned user has no account."""
    name = record.before.get("by")
    return record.user or (User(display_name=name) if isinstance(name, str) and name else None)


def words_of_row(row: ChatMessage) -> Words:
    """Return the content of a message, by its part."""
    if row.type == MessageType.TOOL_GROUP:
        return {"arguments": _pretty(row.arguments or {}), "result": row.result}
    return {"text": row.text}


def _words_before(records: QuerySet[Any], pk: int) -> Words | None:
    """Return the content before a revision, or None if it is the present content.

    A revision without content did not change the content. So it is the content of the next revision that has some.
    """
    later = records.filter(pk__gte=pk).order_by("pk").values_list("before", flat=True)
    kept = next((before for before in later.iterator() if keeps_content(before)), None)
    return None if kept is None else _words(kept)


def keeps_content(before: Mapping[str, Any]) -> bool:
    """Return whether a revision holds the content that was replaced; most kinds hold only flags."""
    return not before.keys().isdisjoint(("text", "tool", "system_prompt"))


def _words(before: Mapping[str, Any]) -> Words:
    """Return the content that a record keeps. Imported records may have any form."""
    tool = before.get("tool")
    if isinstance(tool, dict):
        return {"arguments": _pretty(tool.get("arguments")), "result": str(tool.get("result") or "")}
    return {"text": str(before.get("text", before.get("system_prompt")) or "")}


def _pretty(arguments: object) -> str:
    return json.dumps(arguments or {}, ensure_ascii=False, indent=2)
