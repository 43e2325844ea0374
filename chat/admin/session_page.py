"""The page of one session in the admin: its fields, its state, and its messages with pagination."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminForm
from django.contrib.admin.utils import unquote
from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Max, Q, QuerySet, TextField
from django.db.models.functions import Cast, Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import role_in
from chat.admin import audit_log
from chat.admin.fields import Conflict, format_json
from chat.admin.permissions import (
    Pages,
    StaffRequest,
    may_change,
    may_change_messages,
    may_read_messages,
    session_or_404,
    title_for,
)
from chat.admin.session_form import SessionForm, save, with_conflicts
from chat.admin.session_list import run_badge, state_badge
from chat.models import (
    CONTENT_TYPES,
    TURN_MARKERS,
    UNFINISHED,
    ChatMessage,
    MessageRole,
    MessageStatus,
    MessageType,
    RunState,
    Session,
    User,
)
from chat.rendering.text.formatting import count
from chat.services.messages.editing import TEXT_TYPES, same_response

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator

PER_PAGE = 50
# The length of an excerpt of a text, in characters. The page of the message shows the whole text.
EXCERPT = 1200


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of messages in a session: in its conversation, queued for the agent, and removed."""

    live: int
    queued: int
    removed: int


class CountedPaginator(AnyPaginator):
    """A paginator that gets the number of rows instead of counting them."""

    def __init__(self, rows: QuerySet[Any], count: int) -> None:
        super().__init__(rows, PER_PAGE)
        self._count = count

    @cached_property
    def count(self) -> int:
        return self._count


def count_messages(session: Session) -> Counts:
    """Count the messages of a session in one query.

    Sequence numbers have no gaps, so the highest is the number of messages in the conversation.
    """
    queued = Count("pk", filter=Q(status=MessageStatus.QUEUED, removed_at__isnull=True))
    removed = Count("pk", filter=Q(removed_at__isnull=False))
    rows = ChatMessage.objects.filter(session=session)
    return Counts(**rows.aggregate(live=Max("sequence", default=0), queued=queued, removed=removed))


def conversation_page(session: Session, counts: Counts, number: str | None) -> Page[Any]:
    """Return a page of a session's conversation in order, or the last page if `number` is empty."""
    rows = _with_excerpts(ChatMessage.objects.in_conversation(session.pk)).order_by("sequence")
    paginator = CountedPaginator(rows, counts.live)
    return paginator.get_page(number if number else paginator.num_pages)


def removed_page(session: Session, counts: Counts, number: str | None) -> Page[Any]:
    """Return a page of a session's removed messages, the last removed first."""
    rows = ChatMessage.objects.filter(session=session, removed_at__isnull=False)
    return CountedPaginator(_with_excerpts(rows).order_by("-removed_at", "-pk"), counts.removed).get_page(number)


def page_number(row: ChatMessage) -> int:
    """Return the number of the page that shows a message of the conversation."""
    return ((row.sequence or 1) - 1) // PER_PAGE + 1


def label_of(row: ChatMessage) -> str:
    """Return the name of a message's type, or of its role for texts, in the user's language."""
    if row.type == MessageType.TEXT:
        return {str(MessageRole.USER): _("User"), str(MessageRole.SYSTEM): _("System")}.get(row.role, _("Assistant"))
    return {
        MessageType.REASONING: _("Reasoning"),
        MessageType.TOOL_GROUP: _("Tool call"),
        MessageType.ERROR: _("Error"),
        MessageType.TURN_START: _("Turn started"),
        MessageType.TURN_DONE: _("Turn ended"),
    }[MessageType(row.type)]


def title_of(row: ChatMessage) -> str:
    """Return the heading of a message's page: its number in the conversation, and who or what wrote it."""
    author = row.tool_name or row.sender or row.model or label_of(row)
    if row.sequence is None:
        return _("Message · %(author)s") % {"author": author}
    return _("Message %(number)s · %(author)s") % {"number": count(row.sequence), "author": author}


def status_of(row: ChatMessage) -> str:
    """Return the name of a message's status in the user's language, or "" if the message is complete."""
    return {
        MessageStatus.QUEUED: _("Queued"),
        MessageStatus.STREAMING: _("Being written"),
        MessageStatus.PENDING: _("Not started"),
        MessageStatus.RUNNING: _("Running"),
        MessageStatus.WAITING: _("Waiting for an answer"),
        MessageStatus.INTERRUPTED: _("Interrupted"),
        MessageStatus.FAILED: _("Failed"),
    }.get(MessageStatus(row.status), "")


def may_be_edited(row: ChatMessage, user: User) -> bool:
    """Return whether a message has content that this user can edit now. Only its sender edits a queued message."""
    is_open = row.status not in UNFINISHED and (row.status != MessageStatus.QUEUED or row.user_id == user.pk)
    return is_open and row.type in (*TEXT_TYPES, MessageType.TOOL_GROUP)


def may_be_removed(row: ChatMessage) -> bool:
    """Return whether a message has a button that removes it, from the conversation or from the queue."""
    return row.removed_at is None and row.type not in TURN_MARKERS


def may_be_restored(row: ChatMessage) -> bool:
    """Return whether a message was removed from the conversation. Messages removed from the queue have no position."""
    return row.removed_at is not None and row.status != MessageStatus.QUEUED


@dataclass(frozen=True, slots=True)
class MessageItem:
    """A message in the list.

    `text`, `arguments` and `result` are excerpts. `is_cut` is true if one of them was longer. `can_add_after` is true
    if a message can be added after this one. It is false within one response of the model.
    """

    row: Any
    title: str
    label: str
    status: str
    who: str
    text: str
    arguments: str
    result: str
    is_cut: bool
    is_marker: bool
    can_edit: bool
    can_exclude: bool
    can_add_after: bool
    can_remove: bool
    can_restore: bool


def build_items(rows: Iterable[Any], user: User) -> list[MessageItem]:
    """Build the list's items for a user from rows with excerpts."""
    rows = list(rows)
    return [_build_item(row, following, user) for row, following in zip_longest(rows, rows[1:])]


def _build_item(row: Any, following: Any, user: User) -> MessageItem:
    excerpts = (row.text_excerpt or "", row.arguments_excerpt or "", row.result_excerpt or "")
    return MessageItem(
        row=row,
        title=title_of(row),
        label=label_of(row),
        status=status_of(row),
        who=row.tool_name or row.sender or row.model,
        text=excerpts[0][:EXCERPT],
        arguments=excerpts[1][:EXCERPT] if row.type == MessageType.TOOL_GROUP else "",
        result=excerpts[2][:EXCERPT],
        is_cut=any(len(excerpt) > EXCERPT for excerpt in excerpts),
        is_marker=row.type in TURN_MARKERS,
        can_edit=may_be_edited(row, user),
        can_exclude=row.type in CONTENT_TYPES and row.status != MessageStatus.QUEUED,
        can_add_after=row.sequence is not None and not (following and same_response(row, following)),
        can_remove=may_be_removed(row),
        can_restore=may_be_restored(row),
    )


def _with_excerpts(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Read only an excerpt of each text, because the texts of one page can have a hundred megabytes."""
    deferred = ("text", "result", "arguments", "provider_data")
    excerpts: QuerySet[Any] = rows.defer(*deferred).annotate(
        text_excerpt=Left("text", EXCERPT + 1),
        result_excerpt=Left("result", EXCERPT + 1),
        arguments_excerpt=Left(Cast(F("arguments"), TextField()), EXCERPT + 1),
    )
    return excerpts


CONFIGURATION = [
    "workspace_role",
    ("agent", "model"),
    ("reasoning_effort", "thinking_budget"),
    ("mode", "max_rounds"),
    "tools",
]
FIELDSETS: list[Any] = [(None, {"fields": ["title", *CONFIGURATION, "system_prompt"]})]
# For staff who may not read messages. Titles and system prompts are left out, because they can repeat their text.
FIELDSETS_WITHOUT_TEXT: list[Any] = [(None, {"fields": CONFIGURATION})]


def show(request: StaffRequest, object_id: str, model_admin: admin.ModelAdmin[Session]) -> HttpResponse:
    """Show the page of a session, or save its form."""
    session_id = unquote(object_id)
    session = session_or_404(request, session_id, needs_change=request.method == "POST")
    can_read = may_read_messages(request.user)
    form = SessionForm(
        session,
        request.POST if request.method == "POST" else None,
        is_editable=may_change(request.user, session),
        with_text=can_read,
    )
    conflicts: list[Conflict] = []
    if request.method == "POST" and form.is_valid():
        conflicts = save(form, request.user)
        if not form.errors and not conflicts:
            messages.success(request, _("The session was saved.") if form.changed_data else _("Nothing was changed."))
            return HttpResponseRedirect(url_of(session.pk, f"?{request.GET.urlencode() or 'p='}"))
        form = with_conflicts(form, conflicts) if conflicts else form
    # The page shows the messages even if the form has errors, so this request is logged as reading.
    audit_log.log_reading(request.user, session, is_new=request.method != "POST" and not request.GET)
    fieldsets = FIELDSETS if can_read else FIELDSETS_WITHOUT_TEXT
    values = {
        "adminform": AdminForm(form, fieldsets, {}, (), model_admin=model_admin),  # type: ignore[arg-type]  # it also takes forms without a model
        "errors": form.errors,
        "conflicts": conflicts,
        **_values(request, session, model_admin),
        **_messages(request, session),
    }
    return render(request, "admin/chat/session/change_form.html", values)


@require_GET
def state(request: StaffRequest, session_id: str) -> JsonResponse:
    """Return the present state of a session as JSON, for the script of its page."""
    session = session_or_404(request, session_id)
    values = {
        "state": run_badge(session),
        "status": state_badge(session),
        "revision": session.revision,
        "works": session.run.state != RunState.IDLE,
    }
    return JsonResponse(values, headers={"Cache-Control": "no-store"})


def url_of(session_id: str, query: str = "") -> str:
    """Return the URL of a session's page. A request without a query is logged as a new reading of the session."""
    path = reverse("admin:chat_session_change", args=[admin.utils.quote(session_id)])
    return f"{path}{query}"


def frame(request: HttpRequest, session: Session, title: str) -> dict[str, Any]:
    """Return the template context that all pages of a session share."""
    return {
        **admin.site.each_context(request),
        "opts": Session._meta,
        "original": session,
        "session": session,
        "session_title": title_for(request.user, session),
        "parent_title": title_for(request.user, session.parent_session) if session.parent_session else "",
        "title": title,
        "key": uuid4().hex,
        "has_view_permission": True,
    }


def _values(request: StaffRequest, session: Session, model_admin: admin.ModelAdmin[Session]) -> dict[str, Any]:
    is_editable = may_change(request.user, session)
    return {
        **frame(request, session, title_for(request.user, session)),
        "change": True,
        "media": model_admin.media,
        "state": state_badge(session),
        "run": run_badge(session),
        "config": format_json(session.config) if may_read_messages(request.user) else "",
        "can_erase": request.user.has_perm("chat.erase_session"),
        "works": session.run.state != RunState.IDLE,
        "is_deleted": session.status == Session.Status.DELETED,
        "can_undelete": request.user.has_perm("chat.change_session") and session.status == Session.Status.DELETED,
        "is_archived": session.status == Session.Status.ARCHIVED,
        "has_change_permission": is_editable,
        "show_save": is_editable,
        "show_close": True,
        "can_write": is_editable and may_change_messages(request.user) and session.status == Session.Status.ACTIVE,
        "can_fork": is_editable and may_read_messages(request.user),
        "is_member": role_in(request.user, session) is not None,
    }


def _messages(request: StaffRequest, session: Session) -> dict[str, Any]:
    if not may_read_messages(request.user):
        return {"can_read": False}
    counts = count_messages(session)
    shows_removed = "removed" in request.GET
    list_page = removed_page if shows_removed else conversation_page
    page = list_page(session, counts, request.GET.get("p"))
    # Queued messages follow the last page of the conversation.
    shows_queued = not shows_removed and not page.has_next()
    queued = _with_excerpts(ChatMessage.objects.queued(session.pk)) if shows_queued else ()
    return {
        "can_read": True,
        "counts": counts,
        "shows_removed": shows_removed,
        "page": page,
        "page_range": page.paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1),
        "rows": build_items(page.object_list, request.user),
        "queued": build_items(queued, request.user),
        "here": f"?{'removed=&' if shows_removed else ''}p={page.number}",
    }


PAGES: Pages = {"<str:session_id>/state/": (state, "chat_session_state")}
