"""The context in the panel: what the next request will hold, message by message, and what an earlier one held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.errors import AgentError
from agents.loop import Agent
from agents.tools import Tool
from agents.words import Words
from chat import ids
from chat.models import ChatMessage, Role, RunState, Session, SessionRun
from chat.projections.briefed import Block, Why, blocks
from chat.projections.context import prompt_row, system_prompt
from chat.projections.estimate import of_text, of_tools
from chat.projections.measure import Measure, measured
from chat.rendering.briefed import Excerpt, block_view
from chat.rendering.words import said
from chat.running.briefing import agent_of, gather
from chat.running.showing import glance, shown
from chat.services.access import session_for
from chat.services.leaving_out import left_out_by
from chat.snapshots import context_percent
from chat.views.context_page import page_of
from chat.views.past_context import past_values
from chat.views.requests import SignedInRequest, number, signed_in

Json = dict[str, Any]
COLUMNS = ("model", "timestamp", "input_tokens", "edited_by_name")


@never_cache
@require_GET
@signed_in
def context(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show what the next request will hold, or the one behind the answer that the message `past` is of: a page of it,
    up to the place `until`, or its end."""
    session, role = session_for(request.user, session_id)
    until = number(request.GET.get("until", ""))
    if asked := request.GET.get("past", ""):
        values = past_values(session, _answer(session, asked), until, with_removed=role.covers(Role.EDITOR))
        return render(request, "chat/panel/past_context.html", {"session": session, **values})
    return render(request, "chat/panel/context.html", _next_values(session, role, until))


def _answer(session: Session, message_id: str) -> ChatMessage:
    """A message that is or was in the session. Raises Http404."""
    rows = ChatMessage.objects.filter(session=session)
    row = rows.filter(pk=message_id).first() if ids.may_be_one(message_id) else None
    if row is None:
        raise Http404
    return row


def _next_values(session: Session, role: Role, until: int | None) -> Json:
    rows = gather(session, *COLUMNS)
    looked = _look(session, rows)
    page = page_of(looked.blocks, until)
    left_out = left_out_by(line.row.pk for block in page.blocks for line in block.lines if line.why == Why.LEFT_OUT)
    may_switch = role.covers(Role.EDITOR) and session.status == Session.Status.ACTIVE
    tokens = looked.measure.tokens
    return {
        **_whole(session, looked),
        "blocks": [block_view(block, tokens, left_out, may_switch=may_switch) for block in page.blocks],
        "page": page,
        "can_edit": may_switch,
        "is_working": SessionRun.objects.get(pk=session.pk).state != RunState.IDLE,
        "queued": ChatMessage.objects.deliverable(session.pk).count(),
        "left_out": sum(line.why == Why.LEFT_OUT for block in looked.blocks for line in block.lines),
        "own_prompt": prompt_row(rows) is None,
    }


@dataclass(frozen=True, slots=True)
class _Looked:
    """The whole request; `problem` says, to a person, why there can be none."""

    system: str
    tools: Sequence[Tool]
    blocks: list[Block]
    measure: Measure
    problem: str = ""


def _look(session: Session, rows: Sequence[ChatMessage]) -> _Looked:
    agent, problem = _agent(session, rows)
    files = shown(rows, agent.takes, glance) if agent else {}
    laid = blocks(rows, files, agent.provider.name if agent else "")
    system = system_prompt(rows, session.system_prompt)
    tools = agent.tools if agent else ()
    measure = measured(laid, of_text(system) + of_tools(tools), (session.provider, session.model))
    return _Looked(system, tools, laid, measure, problem)


def _agent(session: Session, rows: Sequence[ChatMessage]) -> tuple[Agent | None, str]:
    try:
        return agent_of(session, rows), ""
    except AgentError as error:
        words = error.words
        return None, said(words, words.to_json()) if isinstance(words, Words) else words


def _whole(session: Session, looked: _Looked) -> Json:
    total = looked.measure.tokens(looked.measure.estimate)
    return {
        "session": session,
        "total": total,
        "window": session.context_window,
        "percent": context_percent(total, session.context_window),
        "measure": looked.measure,
        "prompt": Excerpt.of(looked.system),
        "prompt_tokens": looked.measure.tokens(of_text(looked.system)),
        "tools": [tool.name for tool in looked.tools],
        "tools_tokens": looked.measure.tokens(of_tools(looked.tools)),
        "problem": looked.problem,
    }
