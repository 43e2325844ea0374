"""A session in other forms: what its model is sent, and what it has cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpResponse
from ninja import Query, Router, Schema

from agents.providers import anthropic_request, openai_request
from agents.providers.base import Request
from agents.providers.dialect import USUAL
from chat.api.answers import answer
from chat.api.auth import ApiRequest, session_of
from chat.models import ChatMessage, Session
from chat.projections.context import CONTEXT_FIELDS, context, system_prompt
from chat.services.attachments import fetch_attachments
from chat.services.usage import ModelUsage, usage_of

router = Router(tags=["projections"])
Json = dict[str, Any]


class Form(Schema):
    """Whose form."""

    form: Literal["openai", "anthropic"] = "openai"


class Context(Schema):
    """What the model is sent next: `messages` in the form that was asked for; `system` where that form has it apart."""

    model: str
    system: str | None
    messages: list[Json]


class UsageOut(Schema):
    """What a session has cost so far. Cached input is counted in `input_tokens`; removed messages are in it."""

    models: list[ModelUsage]
    input_tokens: int
    output_tokens: int
    turns: int
    longest_seconds: float | None
    first_token_ms: int | None


@router.get(
    "/sessions/{session_id}/context",
    response=Context,
    operation_id="getContext",
    summary="Read the conversation as the model is sent it",
)
def get_context(request: ApiRequest, session_id: str, query: Query[Form]) -> HttpResponse:
    """As OpenAI's Chat Completions or Anthropic's Messages take it; files are told of by their text."""
    session = session_of(request, session_id)
    rows = list(ChatMessage.objects.live(session.pk).only(*CONTEXT_FIELDS).order_by("sequence"))
    fetch_attachments(rows, with_text=True)
    asked = Request(session.model, tuple(context(rows)), system_prompt(rows, session.system_prompt))
    return answer(request, FORMS[query.form](session, asked))


@router.get("/sessions/{session_id}/usage", response=UsageOut, operation_id="getUsage", summary="Read what it has cost")
def get_usage(request: ApiRequest, session_id: str) -> HttpResponse:
    """Tokens by model, turns, and how quick they were."""
    usage = usage_of(session_of(request, session_id))
    totals = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return answer(request, {**asdict(usage), **totals})


def _openai(session: Session, asked: Request) -> Json:
    body = openai_request.to_request(asked, session.provider, USUAL)
    return {"model": session.model, "system": None, "messages": body["messages"]}


def _anthropic(session: Session, asked: Request) -> Json:
    body = anthropic_request.to_request(asked, session.provider)
    return {"model": session.model, "system": asked.system, "messages": body["messages"]}


FORMS = {"openai": _openai, "anthropic": _anthropic}
