"""Pages about single messages: source, details, suggestions, and search in a session."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat import ids
from chat.access import session_for
from chat.limits.rates import spend
from chat.models import ChatMessage, Session, SessionRole
from chat.queries import history, messages, presets, search
from chat.queries.usage import cost_of_message, usage_of
from chat.rendering.messages.as_markdown import as_markdown
from chat.rendering.text.text_diff import pieces_for_display
from chat.services.messages.editing import may_edit
from chat.services.messages.suggestions import open_suggestions
from chat.snapshots import MessageSnapshot
from chat.views.requests import SignedInRequest, absolute, message_or_404, signed_in


@never_cache
@require_GET
@signed_in
def source(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the message as Markdown. With `files`, include links to its files."""
    session, _role = session_for(request.user, session_id)
    message = _message(request, session)
    site = absolute(request, "") if "files" in request.GET else ""
    return HttpResponse(as_markdown(message, site), content_type="text/plain; charset=utf-8")


@never_cache
@require_GET
@signed_in
def details(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the author or model, time, duration, tokens and number of changes of a message."""
    session, _role = session_for(request.user, session_id)
    message = _message(request, session)
    cost = cost_of_message(message)
    values = {
        "message": message,
        "cost": cost,
        "turn_costs": usage_of(session, message.turn_id).costs if cost and message.turn_id else (),
        "agent": "" if message.user_id else presets.own(session).title,
        "changes": history.number_of_changes(message.id),
    }
    return render(request, "chat/messages/details.html", values)


@never_cache
@require_GET
@signed_in
def suggestions(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the open suggestions for a message, each as a diff. Raise RateLimited."""
    session, role = session_for(request.user, session_id)
    row = message_or_404(ChatMessage.objects.in_conversation(session.pk), request.GET.get("id", ""))
    spend("finds", request.user.pk)
    is_active = session.status == Session.Status.ACTIVE and role.covers(SessionRole.EDITOR)
    values = {
        "row": row,
        "suggestions": [
            {"row": each, "pieces": pieces_for_display(row.text, each.text), "is_own": each.user_id == request.user.pk}
            for each in open_suggestions(row)
        ],
        "can_withdraw": is_active,
        "can_decide": is_active and may_edit(session, row, request.user),
    }
    return render(request, "chat/messages/suggestions.html", values)


@never_cache
@require_GET
@signed_in
def find(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the ids of the messages that match the query `q`. Raise RateLimited."""
    session, _role = session_for(request.user, session_id)
    spend("finds", request.user.pk)
    return JsonResponse(asdict(search.find_in_session(session, request.GET.get("q", ""))))


def _message(request: SignedInRequest, session: Session) -> MessageSnapshot:
    asked = request.GET.get("id", "")
    message = messages.message_snapshot(asked) if ids.may_be_one(asked) else None
    if message is None or message.session_id != session.pk:
        raise Http404
    return message
