"""Requests to a session's model: the next one with estimates, and earlier ones; and the session's token usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.errors import AgentError
from agents.i18n import TranslatableText
from agents.loop import Agent
from agents.messages import File, Json, Part
from agents.prices import Money
from agents.providers.base import Request, ToolSpec
from agents.providers.forms import Form, dialect_of, form_of, preview
from chat import ids
from chat.access import session_for
from chat.agents_setup import registry
from chat.api.auth import ApiRequest, session_of
from chat.api.message_schemas import MoneyOut
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
from chat.rendering.text.translation import translate
from chat.runner.agent_input import prompt_of, view_of
from chat.runner.file_parts import FileParts, file_sizes, load_file_parts, read
from chat.runner.request_preview import MEASURED, NextRequest, next_request
from chat.session_snapshot import context_percent

router = Router(tags=["Context"])
FORM = (
    "The vendor's API form: OpenAI's Chat Completions or Responses, or Anthropic's Messages. "
    "Default: that of the session's provider"
)
MOST_REQUESTS = 100


class AgentQuery(Schema):
    agent: str = Field("", max_length=200, description="One of the session's agents, by name; its own if left out")


class ContextQuery(AgentQuery):
    form: Form | None = Field(None, description=FORM)
    file_data: bool = Field(False, description="Include the bytes of files, which may be megabytes")


class ContextFile(Schema):
    """How a file is sent in the request."""

    id: str
    name: str
    message_id: str
    sent_as: Literal["image", "pdf", "text", "name"] = Field(
        description="The file itself; the text in it; or only its name, because the model does not take such files"
    )
    label: str = Field(description="What the model reads about the file, with the reason if it is not sent itself")


class ContextOut(Schema):
    """A request body in parts: `model`, `messages`, `tools` if there are any, `parameters`, and
    `system` if it is not null. In the form `responses`, `messages` are the `input` and `system` the `instructions`."""

    form: Form
    provider: str
    model: str
    system: str | None = Field(description="Null where the form has it among the messages, or it is empty")
    messages: list[Json]
    tools: list[Json]
    parameters: Json = Field(description="The other fields of the request, such as the output limit")
    files: list[ContextFile]
    problem: str | None = Field(description="Why no request can be sent now, such as a model that is not configured")


class ContextPart(Schema):
    message_id: str
    tokens: int
    is_result: bool = Field(description="The result of a tool call; the call itself is another part")
    reason: Literal["left_out", "error", "led_nowhere", "not_given_back", "empty", "prompt", "at_work"] | None = Field(
        description="Why the model is not sent it; null if it is"
    )


class EstimatedMessage(Schema):
    """A message of the request, or with a null `role` a message of the session that is not in it."""

    role: Literal["user", "assistant", "system"] | None
    tokens: int
    parts: list[ContextPart]


class ContextEstimate(Schema):
    """Estimated tokens of the next request."""

    tokens: int
    context_window: int | None
    percent: float | None
    calibrated: bool = Field(description="The estimate was corrected by the count of an earlier response")
    system_tokens: int
    tools_tokens: int
    messages: list[EstimatedMessage]
    problem: str | None


class RequestsQuery(Schema):
    before: str | None = Field(None, max_length=32, pattern=r"^[A-Za-z0-9_]+$", description="`next` of the page before")
    limit: int = Field(50, ge=1, le=MOST_REQUESTS, description="The most that a page has")


class RequestSummary(Schema):
    """A request that was sent to a model."""

    response_id: str
    created_at: datetime
    revision: int = Field(description="The session's revision then")
    agent: str
    provider: str
    model: str
    tools: list[str]


class RequestPage(Schema):
    """The newest first."""

    requests: list[RequestSummary]
    next: str | None


class SentRequest(RequestSummary):
    """A request as it was sent, rebuilt from the history of the session. Its other parameters are not recorded."""

    form: Form
    system: str | None
    messages: list[Json]
    tool_definitions: list[Json]
    files: list[ContextFile]
    hidden: int = Field(description="Messages in it that were removed since, which only editors may read")
    lost: int = Field(description="Messages in it that no longer exist")


class ModelUsage(Schema):
    """Tokens of one model."""

    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: MoneyOut | None = Field(description="By the configured price; null if there is none")


class UsageOut(Schema):
    """Cached input is counted in `input_tokens`; removed messages count too."""

    models: list[ModelUsage]
    costs: list[MoneyOut] = Field(description="By currency; empty if the price of one of the models is not configured")
    input_tokens: int
    output_tokens: int
    turns: int
    longest_seconds: float | None
    first_token_ms: int | None


@router.get(
    "/sessions/{session_id}/context",
    response=ContextOut,
    operation_id="getContext",
    summary="Read the next request",
)
def get_context(request: ApiRequest, session_id: str, query: Query[ContextQuery]) -> HttpResponse:
    """The next request to the model, in the form of the vendor's API. Append a message to continue elsewhere."""
    with reading_whole(request.user):
        session = session_of(request, session_id)
        _require_agent(session, query.agent)
        upcoming = next_request(session, reader=read if query.file_data else _reference, agent=query.agent)
        provider = upcoming.agent.provider if upcoming.agent else None
        form = query.form or form_of(provider, upcoming.request.model)
        name = upcoming.provider_name
        body = preview(form, upcoming.request, name, dialect_of(provider, upcoming.request.model))
        context = {
            "form": form,
            "provider": name,
            "model": upcoming.request.model,
            **asdict(body),
            "files": list(_files(upcoming.rows, upcoming.files)),
            "problem": _problem(upcoming),
        }
        return json_response(request, context)


@router.get(
    "/sessions/{session_id}/context/estimate",
    response=ContextEstimate,
    operation_id="estimateContext",
    summary="Estimate the tokens of the next request",
)
def estimate_context(request: ApiRequest, session_id: str, query: Query[AgentQuery]) -> HttpResponse:
    """The tokens of each message, and why messages are not sent."""
    with reading_whole(request.user):
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
            "messages": [_estimated(block, measure.tokens) for block in blocks],
            "problem": _problem(upcoming),
        }
        return json_response(request, estimate)


@router.get(
    "/sessions/{session_id}/requests",
    response=RequestPage,
    operation_id="listRequests",
    summary="List the requests that were sent",
)
def list_requests(request: ApiRequest, session_id: str, query: Query[RequestsQuery]) -> HttpResponse:
    """One for each response of a model."""
    session = session_of(request, session_id)
    rows = requests_of(session, query.before, query.limit + 1)
    page = rows[: query.limit]
    following = page[-1].pk if len(rows) > len(page) else None
    return json_response(request, {"requests": [_summary(each) for each in page], "next": following})


@router.get(
    "/sessions/{session_id}/requests/{response_id}",
    response=SentRequest,
    operation_id="getRequest",
    summary="Read a request that was sent",
)
def get_request(request: ApiRequest, session_id: str, response_id: str, query: Query[ContextQuery]) -> HttpResponse:
    """Messages name the request that they answer by `response_id`."""
    with reading_whole(request.user):
        session, role = session_for(request.user, session_id)
        return json_response(request, _sent(session, role, response_id, query))


@router.get("/sessions/{session_id}/usage", response=UsageOut, operation_id="getUsage", summary="Read token usage")
def get_usage(request: ApiRequest, session_id: str) -> HttpResponse:
    """Tokens by model, number of turns, and how fast they were."""
    usage = usage_of(session_of(request, session_id))
    models = [{**asdict(each), "cost": _money(each.cost) if each.cost else None} for each in usage.models]
    totals = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    costs = [_money(cost) for cost in usage.costs]
    return json_response(request, {**asdict(usage), **totals, "models": models, "costs": costs})


def _sent(session: Session, role: SessionRole, response_id: str, query: ContextQuery) -> Json:
    """Return a request that was sent. Raises ServiceError."""
    past = past_request(session, response_id) if ids.may_be_one(response_id) else None
    if past is None:
        raise ServiceError("no_such_request", _("Request not found."))
    model_request, agent = past.made, _agent_of(session, past.made)
    is_visible = role.covers(SessionRole.EDITOR)
    rows = [row for row in past.rows if is_visible or past.now[row.pk].removed_at is None]
    files = load_file_parts(rows, agent.takes, read if query.file_data else _reference) if agent else {}
    tools = tools_of(session, with_servers(presets.own(session), session), model_request.tools)
    # A system message that was removed since replaced the session's prompt: only editors may read it.
    own_prompt = prompt_row(past.rows)
    hides_prompt = own_prompt is not None and own_prompt not in rows
    seen, own = view_of(session, rows, model_request.agent), presets.own(session, model_request.agent)
    rebuilt = Request(
        model_request.model,
        tuple(context(seen, files)),
        "" if hides_prompt else prompt_of(session, seen, own, model_request.agent, past.system_prompt),
        tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools),
    )
    form = query.form or form_of(agent.provider if agent else None, model_request.model)
    body = preview(form, rebuilt, model_request.provider)
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
    """Return a file's id in place of its bytes, and its size."""
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
        raise ServiceError("no_such_agent", _("There is no agent of this name in the session."))


def _problem(upcoming: NextRequest) -> str | None:
    text = upcoming.problem
    return (translate(text, text.to_json()) if isinstance(text, TranslatableText) else text) or None


def _estimated(block: Block, tokens: Callable[[float], int]) -> Json:
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
    """Return an agent with the request's model as configured now: the abilities of models are not recorded."""
    try:
        return registry().build_agent(
            replace(presets.own(session), provider=model_request.provider, model=model_request.model)
        )
    except AgentError:
        return None
