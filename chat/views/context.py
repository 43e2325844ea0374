"""The context tab of the panel: the messages of the next request to the model, or of a past request."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.messages import Json
from chat.access import session_for
from chat.limits.whole_sessions import reading_whole
from chat.models import ChatMessage, RunState, Session, SessionRole, SessionRun
from chat.projections.compaction import plan
from chat.projections.context import prompt_row
from chat.projections.context_view import ExclusionReason
from chat.projections.estimate import of_text, of_tools
from chat.projections.measure import Measure
from chat.queries import cast
from chat.queries.memory import uses_notes
from chat.rendering.messages.context_blocks import Excerpt, block_view
from chat.rendering.text.translation import translated
from chat.runner.request_preview import MEASURED, NextRequest, next_request
from chat.services.messages.context_inclusion import last_exclusions
from chat.session_snapshot import context_percent
from chat.views.context_page import context_page
from chat.views.past_context import past_values
from chat.views.requests import SignedInRequest, message_or_404, number, signed_in


@never_cache
@require_GET
@signed_in
def context(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show a page of the next request to the session's own agent, or to the session's agent named `agent`.

    With `past`, show the request whose response contains that message. The page ends with the message at `until`.
    """
    with reading_whole(request.user):
        return _context(request, *session_for(request.user, session_id))


def _context(request: SignedInRequest, session: Session, role: SessionRole) -> HttpResponse:
    until = number(request.GET.get("until", ""))
    if asked := request.GET.get("past", ""):
        values = past_values(
            session,
            message_or_404(ChatMessage.objects.filter(session=session), asked),
            until,
            with_removed=role.covers(SessionRole.EDITOR),
        )
        return render(request, "chat/panel/past_context.html", {"session": session, **values})
    return render(request, "chat/panel/context.html", _next_values(session, role, until, request.GET.get("agent", "")))


def _next_values(session: Session, role: SessionRole, until: int | None, agent: str) -> Json:
    found = next_request(session, *MEASURED, "edited_by_name", "turn_id", agent=agent)
    laid, measure = found.estimate()
    page = context_page(laid, until)
    exclusions = last_exclusions(
        line.row.pk for block in page.blocks for line in block.lines if line.why == ExclusionReason.LEFT_OUT
    )
    may_switch = role.covers(SessionRole.EDITOR) and session.status == Session.Status.ACTIVE
    is_working = SessionRun.objects.get(pk=session.pk).state != RunState.IDLE
    is_own = not found.name and may_switch and not is_working
    return {
        **_whole(found, measure),
        **_agents(session, found.name),
        "blocks": [block_view(block, measure.tokens, exclusions, may_switch=may_switch) for block in page.blocks],
        "page": page,
        "can_edit": may_switch,
        "is_working": is_working,
        "can_compact": is_own and plan(found.rows, session.context_window) is not None,
        "queued": ChatMessage.objects.deliverable(session.pk).count(),
        "excluded_count": sum(line.why == ExclusionReason.LEFT_OUT for block in laid for line in block.lines),
        "own_prompt": prompt_row(found.rows) is None,
        "notes": found.notes,
        "uses_notes": uses_notes(session),
    }


def _agents(session: Session, name: str) -> Json:
    """Return the agents to choose from, if the session has several, and the agent whose request is shown."""
    agents = cast.members(session)
    shown = next((each for each in agents if each.name == (name or session.agent)), None)
    return {"agents": agents, "agent": shown}


def _whole(found: NextRequest, measure: Measure) -> Json:
    session, total = found.session, measure.tokens(measure.estimate)
    return {
        "session": session,
        "total": total,
        "window": found.window,
        "percent": context_percent(total, found.window),
        "measure": measure,
        "prompt": Excerpt.of(found.system),
        "prompt_tokens": measure.tokens(of_text(found.system)),
        "tools": [tool.name for tool in found.tools],
        "tools_tokens": measure.tokens(of_tools(found.tools)),
        "problem": translated(found.problem),
    }
