"""A session's messages as its page in the admin lists them: a page at a time, each with how it begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Max, Q, QuerySet, TextField
from django.db.models.functions import Cast, Left
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from chat.models import TURN_MARKERS, ChatMessage, MessageRole, MessageStatus, MessageType, Session
from chat.services.messages.editing import SAID, WORDS, same_response

if TYPE_CHECKING:
    Pages = Paginator[Any]
else:
    Pages = Paginator

PER_PAGE = 50
# Of each text, in characters; the whole stands on the message's own page.
EXCERPT = 1200


@dataclass(frozen=True, slots=True)
class Counts:
    """How many messages a session has: standing in it, waiting for the agent, removed."""

    live: int
    queued: int
    removed: int


class Places(Pages):
    """Pages of rows that are counted already."""

    def __init__(self, rows: QuerySet[Any], count: int) -> None:
        super().__init__(rows, PER_PAGE)
        self._known = count

    @cached_property
    def count(self) -> int:
        return self._known


def counts_of(session: Session) -> Counts:
    """Count, in one query. Places have no gaps: the last one is the number of those that have one."""
    queued = Count("pk", filter=Q(status=MessageStatus.QUEUED, removed_at__isnull=True))
    removed = Count("pk", filter=Q(removed_at__isnull=False))
    rows = ChatMessage.objects.filter(session=session)
    return Counts(**rows.aggregate(live=Max("sequence", default=0), queued=queued, removed=removed))


def standing(session: Session, counts: Counts, number: str | None) -> Page[Any]:
    """A page of what stands in a session, in order; the last one where the number is none."""
    pages = Places(_with_excerpts(ChatMessage.objects.live(session.pk)).order_by("sequence"), counts.live)
    return pages.get_page(number if number else pages.num_pages)


def queued(session: Session) -> QuerySet[Any]:
    return _with_excerpts(ChatMessage.objects.queued(session.pk))


def removed(session: Session, counts: Counts, number: str | None) -> Page[Any]:
    """A page of what was removed, the latest first."""
    rows = ChatMessage.objects.filter(session=session, removed_at__isnull=False)
    return Places(_with_excerpts(rows).order_by("-removed_at", "-pk"), counts.removed).get_page(number)


def page_with(row: ChatMessage) -> int:
    """On which page a message stands."""
    return ((row.sequence or 1) - 1) // PER_PAGE + 1


def label_of(row: ChatMessage) -> str:
    """What kind of message this is, in words."""
    if row.type == MessageType.TEXT:
        return {str(MessageRole.USER): _("User"), str(MessageRole.SYSTEM): _("System")}.get(row.role, _("Assistant"))
    return {
        MessageType.REASONING: _("Reasoning"),
        MessageType.TOOL_GROUP: _("Tool call"),
        MessageType.ERROR: _("Error"),
        MessageType.TURN_START: _("Turn started"),
        MessageType.TURN_DONE: _("Turn ended"),
    }[MessageType(row.type)]


def status_of(row: ChatMessage) -> str:
    """What is to say of a message's status; nothing when it is complete."""
    return {
        MessageStatus.QUEUED: _("Queued"),
        MessageStatus.STREAMING: _("Being written"),
        MessageStatus.PENDING: _("Not started"),
        MessageStatus.RUNNING: _("Running"),
        MessageStatus.WAITING: _("Waiting for a person"),
        MessageStatus.INTERRUPTED: _("Interrupted"),
        MessageStatus.FAILED: _("Failed"),
    }.get(MessageStatus(row.status), "")


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the list. `text`, `asked` and `result` are how they begin; `is_cut`: one of them is longer."""

    row: Any
    label: str
    status: str
    who: str
    text: str
    asked: str
    result: str
    is_cut: bool
    is_marker: bool
    can_edit: bool
    can_exclude: bool
    has_room_after: bool


def shown(rows: Iterable[Any]) -> list[Shown]:
    """Rows as the list shows them; between those of one response there is no room for others."""
    rows = list(rows)
    return [_shown(row, following) for row, following in zip_longest(rows, rows[1:])]


def _shown(row: Any, following: Any) -> Shown:
    parts = (row.text_begins or "", row.asked_begins or "", row.result_begins or "")
    return Shown(
        row=row,
        label=label_of(row),
        status=status_of(row),
        who=row.tool_name or row.sender or row.model,
        text=parts[0][:EXCERPT],
        asked=parts[1][:EXCERPT] if row.type == MessageType.TOOL_GROUP else "",
        result=parts[2][:EXCERPT],
        is_cut=any(len(part) > EXCERPT for part in parts),
        is_marker=row.type in TURN_MARKERS,
        can_edit=row.type in (*WORDS, MessageType.TOOL_GROUP),
        can_exclude=row.type in SAID and row.status != MessageStatus.QUEUED,
        has_room_after=row.sequence is not None and not (following and same_response(row, following)),
    )


def _with_excerpts(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Fifty texts may be a hundred megabytes: only how they begin is read."""
    whole = ("text", "result", "arguments", "provider_data")
    beginnings: QuerySet[Any] = rows.defer(*whole).annotate(
        text_begins=Left("text", EXCERPT + 1),
        result_begins=Left("result", EXCERPT + 1),
        asked_begins=Left(Cast(F("arguments"), TextField()), EXCERPT + 1),
    )
    return beginnings
