"""Requests to the model of a session: the next one with estimated tokens, and earlier ones. Also its token usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router

from agents.errors import AgentError
from agents.loop import Agent
from agents.messages import File, Json, Part
from agents.prices import Money
from agents.providers.base import Request, ToolSpec
from agents.providers.forms import dialect_of, form_of, preview
from chat import ids
from chat.access import session_for
from chat.agents_setup import registry
from chat.api.auth import ApiRequest, session_of
from chat.api.context_schemas import (
    AgentQuery,
    ContextEstimate,
    ContextOut,
    ContextQuery,
    RequestPage,
    RequestsQuery,
    SentRequest,
    UsageOut,
)
from chat.api.responses import json_response
from chat.errors import ServiceError
from chat.limits.whole_sessions import reading_whole
from chat.models import Attachment, ChatMessage, ModelRequest, Session, SessionRole, attached_to
from chat.projections.attached import as_text
from chat.projections.context import context, prompt_row
from chat.projections.context_view import Block
from chat.projections.estimate import of_text, of_tools
from chat.queries import cast, presets
from chat.queries.knowledge import tools_of
from chat.queries.mcp_servers import with_servers
from chat.queries.model_requests import past_request, requests_of
from chat.queries.usage import usage_of
from chat.rendering.text.translation import translated
from chat.runner.agent_input import prompt_of, view_of
from chat.runner.attached_files import FileParts, file_sizes, load_file_parts, read
from chat.runner.request_preview import MEASURED, NextRequest, next_request
from chat.session_snapshot import context_percent

router = Router(tags=["Context"])


@router.get(
    "/sessions/{session_id}/context",
    response=ContextOut,
    operation_id="getContext",
    summary="Retrieve the next request",
)
def get_context(request: ApiRequest, session_id: str, query: Query[ContextQuery]) -> HttpResponse:
    """Return the next request to the model in the format of a vendor's API, before your next message is appended.

    To continue the conversation with another program, append a message to `messages`.
    """
    with reading_whole(request.user) as until_read:
        session = session_of(request, session_id)
        _require_agent(session, query.agent)
        upcoming = next_request(session, reader=read if query.file_data else _reference, agent=query.agent)
        form, body = upcoming.in_form(query.form)
        context = {
            "form": form,
            "provider": upcoming.provider_name,
            "model": upcoming.model,
            **asdict(body),
            "files": list(_files(upcoming.rows, upcoming.files)),
            "problem": _problem(upcoming),
        }
        return until_read(json_response(request, context))


@router.get(
    "/sessions/{session_id}/context/estimate",
    response=ContextEstimate,
    operation_id="estimateContext",
    summary="Estimate the tokens of the next request",
)
def estimate_context(request: ApiRequest, session_id: str, query: Query[AgentQuery]) -> HttpResponse:
    """Return the estimated tokens of each message, and the reason for each message that is not sent."""
    with reading_whole(request.user) as until_read:
        session = session_of(request, session_id)
        _require_agent(session, query.agent)
        upcoming = next_request(session, *MEASURED, agent=query.agent)
        blocks, measure = upcoming.estimate()
        total = measure.tokens(measure.estimate)
        estimate = {
            "tokens": total,
            "context_window": upcoming.window,
            "percent": context_percent(total, upcoming.window),
            "calibrated": measure.read is not None,
            "system_tokens": measure.tokens(of_text(upcoming.system)),
            "tools_tokens": measure.tokens(of_tools(upcoming.tools)),
            "messages": [_block_estimate(block, measure.tokens) for block in blocks],
            "problem": _problem(upcoming),
        }
        return until_read(json_response(request, estimate))


@router.get(
    "/sessions/{session_id}/requests",
    response=RequestPage,
    operation_id="listRequests",
    summary="List earlier requests",
)
def list_requests(request: ApiRequest, session_id: str, query: Query[RequestsQuery]) -> HttpResponse:
    """List the requests that were sent to models, newest first. Each response of a model has one request."""
    session = session_of(request, session_id)
    rows = requests_of(session, query.before, query.limit + 1)
    page = rows[: query.limit]
    following = page[-1].pk if len(rows) > len(page) else None
    return json_response(request, {"requests": [_summary(each) for each in page], "next": following})


@router.get(
    "/sessions/{session_id}/requests/{response_id}",
    response=SentRequest,
    operation_id="getRequest",
    summary="Retrieve an earlier request",
)
def get_request(request: ApiRequest, session_id: str, response_id: str, query: Query[ContextQuery]) -> HttpResponse:
    """Return a request that was sent to a model, rebuilt from the history of the session.

    Its other parameters, such as the output limit, are not stored.
    """
    with reading_whole(request.user) as until_read:
        session, role = session_for(request.user, session_id)
        return until_read(json_response(request, _recorded_request(session, role, response_id, query)))


@router.get(
    "/sessions/{session_id}/usage",
    response=UsageOut,
    operation_id="getUsage",
    summary="Retrieve the token usage of a session",
)
def get_usage(request: ApiRequest, session_id: str) -> HttpResponse:
    """Return the tokens and costs by model, the number of turns, and their durations."""
    usage = usage_of(session_of(request, session_id))
    models = [{**asdict(each), "cost": _money(each.cost) if each.cost else None} for each in usage.models]
    totals = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    costs = [_money(cost) for cost in usage.costs]
    return json_response(request, {**asdict(usage), **totals, "models": models, "costs": costs})


def _recorded_request(session: Session, role: SessionRole, response_id: str, query: ContextQuery) -> Json:
    """Return a request that was sent as JSON. Raise ServiceError."""
    past = past_request(session, response_id) if ids.may_be_one(response_id) else None
    if past is None:
        raise ServiceError("no_such_request", _("Request not found."))
    model_request, agent = past.made, _agent_of(session, past.made)
    is_visible = role.covers(SessionRole.EDITOR)
    rows = [row for row in past.rows if is_visible or past.now[row.pk].removed_at is None]
    files = load_file_parts(rows, agent, read if query.file_data else _reference) if agent else {}
    tools = tools_of(session, with_servers(presets.own(session), session), model_request.tools)
    # The prompt may have been a system message that has been removed since. Only editors may read such a message.
    own_prompt = prompt_row(past.rows)
    hides_prompt = own_prompt is not None and own_prompt not in rows
    seen, own = view_of(session, rows, model_request.agent), presets.own(session, model_request.agent)
    rebuilt = Request(
        model_request.model,
        tuple(context(seen, files, past.around)),
        "" if hides_prompt else prompt_of(session, seen, own, model_request.agent, past.system_prompt, past.around),
        tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools),
    )
    provider = agent.provider if agent else None
    form = query.form or form_of(provider, model_request.model)
    body = preview(form, rebuilt, model_request.provider, dialect_of(provider, model_request.model))
    return {
        **_summary(model_request),
        "form": form,
        "system": body.system,
        "messages": body.messages,
        "tool_definitions": body.tools,
        "files": list(_files(rows, files)),
        "hidden": len(past.rows) - len(rows),
        "lost": len(past.lost),
    }


def _money(cost: Money) -> Json:
    return {"amount": f"{cost.amount:f}", "currency": cost.currency}


def _reference(attachment: Attachment, form: str) -> tuple[str, int]:
    """Return a reference to the file, in place of its bytes, and the size of the file in this form."""
    return f"attachment:{attachment.pk}", file_sizes(attachment, form)[1]


def _files(rows: Iterable[ChatMessage], files: FileParts) -> Iterator[Json]:
    for row in rows:
        for attachment in attached_to(row) if row.include_in_context else ():
            parts: tuple[Part, ...] = files.get(attachment.pk) or as_text(attachment)
            sent_as = next((part.kind for part in parts if isinstance(part, File)), None)
            yield {
                "id": attachment.pk,
                "name": attachment.name,
                "message_id": row.pk,
                "sent_as": sent_as or ("text" if attachment.text else "name"),
                "label": getattr(parts[0], "text", "").partition("\n")[0],
            }


def _require_agent(session: Session, name: str) -> None:
    if name and name not in {session.agent, *(each.name for each in cast.others(session))}:
        raise ServiceError("no_such_agent", _("The session has no agent with this name."))


def _problem(upcoming: NextRequest) -> str | None:
    return translated(upcoming.problem) or None


def _block_estimate(block: Block, tokens: Callable[[float], int]) -> Json:
    parts = [
        {
            "message_id": line.row.pk,
            "tokens": tokens(line.tokens),
            "is_result": line.is_result,
            "reason": line.why.value or None,
        }
        for line in block.lines
    ]
    return {"role": block.role, "tokens": tokens(block.tokens), "parts": parts}


def _summary(model_request: ModelRequest) -> Json:
    return {
        "response_id": model_request.pk,
        "created_at": model_request.created_at.isoformat(),
        "revision": model_request.revision,
        "agent": model_request.agent,
        "provider": model_request.provider,
        "model": model_request.model,
        "tools": [str(name) for name in model_request.tools] if isinstance(model_request.tools, list) else [],
    }


def _agent_of(session: Session, model_request: ModelRequest) -> Agent | None:
    """Return an agent with the request's model, or None if that model is no longer configured.

    The model's abilities are those of the current configuration, because requests do not record them.
    """
    try:
        return registry().build_agent(
            replace(presets.own(session), provider=model_request.provider, model=model_request.model)
        )
    except AgentError:
        return None
