"""History pages: versions of messages and the system prompt, removed messages, and conflicting edits.

Users who may see a session may see the history of its messages. Removed messages are for users who may restore them.
"""

from __future__ import annotations

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from chat.access import session_for
from chat.limits.rates import spend
from chat.models import ChatMessage, MessageType, Session, SessionRole, User
from chat.queries import history
from chat.rendering.messages import versions
from chat.rendering.text.text_diff import pieces_for_display
from chat.services.messages.editing import may_edit
from chat.views.requests import SignedInRequest, message_or_404, number_or_404, signed_in

# The parameter `id` of the system prompt. Other values are ids of messages.
PROMPT = "system_prompt"


@never_cache
@require_GET
@signed_in
def message_history(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the changes of a message or of the system prompt, or with `before` only those before that change."""
    session, role = session_for(request.user, session_id)
    row, before = _row(request, session, role), _number(request, "before")
    entries = history.history_of_prompt(session, before) if row is None else history.history_of(row, before)
    values = {
        "of": PROMPT if row is None else row.pk,
        "row": row,
        "history": entries,
        "versions": versions.list_versions(entries),
        "first": versions.first_version(entries),
        "can_restore": _may_change(session, role) and _has_versions(row) and _may_edit(session, row, request.user),
    }
    page = "chat/history_page.html" if before is not None else "chat/history.html"
    return render(request, page, values)


@never_cache
@require_GET
@signed_in
def version(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the text of a version and the current text as JSON.

    `revision` is that of the message and `newest` the number of the last change.
    """
    session, role = session_for(request.user, session_id)
    row, at = _row(request, session, role), _number(request, "at") or 0
    words = history.version_of_prompt(session, at) if row is None else history.version_of(row, at)
    if words is None:
        raise Http404
    now = {"text": session.system_prompt} if row is None else history.words_of_row(row)
    values = {
        "text": versions.full_text(words),
        "now": versions.full_text(now),
        "revision": None if row is None else row.revision,
        "newest": history.newest_change(session, row),
    }
    return JsonResponse(values)


@never_cache
@require_GET
@signed_in
def removed(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the removed messages to editors, or with `before` only those removed before that change."""
    session, role = session_for(request.user, session_id, SessionRole.EDITOR)
    before = _number(request, "before")
    rows, older = history.removed_from(session, before)
    can_restore = _may_change(session, role)
    restorable = {row.message.pk for row in rows if can_restore and may_edit(session, row.message, request.user)}
    values = {
        "acts": versions.group_removals(rows),
        "older": older,
        "can_restore": can_restore,
        "restorable": restorable,
    }
    return render(request, "chat/removed_page.html" if before is not None else "chat/removed.html", values)


@require_POST
@signed_in
def compare(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the difference between the user's text `mine` and the current text, and who wrote the current text.

    Raise RateLimited.
    """
    session, role = session_for(request.user, session_id, SessionRole.EDITOR)
    row, mine = _row(request, session, role), request.POST.get("mine", "")
    spend("finds", request.user.pk)
    entries = history.history_of_prompt(session) if row is None else history.history_of(row)
    now = versions.full_text(entries.now)
    writer, at = versions.last_writer(entries)
    values = {"now": now, "writer": writer, "at": at, "pieces": pieces_for_display(now, mine)}
    html = render_to_string("chat/conflict.html", values, request)
    return JsonResponse({"current": now, "revision": None if row is None else row.revision, "html": html})


def _may_change(session: Session, role: SessionRole) -> bool:
    return role.covers(SessionRole.EDITOR) and session.status == Session.Status.ACTIVE


def _may_edit(session: Session, row: ChatMessage | None, user: User) -> bool:
    return row is None or may_edit(session, row, user)


def _has_versions(row: ChatMessage | None) -> bool:
    """Return whether a version of the message can be restored. None stands for the system prompt."""
    return row is None or (row.removed_at is None and row.type in (MessageType.TEXT, MessageType.REASONING))


def _row(request: SignedInRequest, session: Session, role: SessionRole) -> ChatMessage | None:
    """Return the requested message, or None for the system prompt. Raise Http404."""
    asked = (request.POST if request.method == "POST" else request.GET).get("id", "")
    if asked == PROMPT:
        return None
    row = message_or_404(ChatMessage.objects.filter(session=session).select_related("user"), asked)
    if row.removed_at is not None and not role.covers(SessionRole.EDITOR):
        raise Http404
    return row


def _number(request: SignedInRequest, name: str) -> int | None:
    return number_or_404(request.GET[name]) if name in request.GET else None
