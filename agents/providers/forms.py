"""Requests in the vendors' forms, for users and programs to look at; pure.

A new form is one entry in `FORMS`, and its name in `Form`. A provider names its own form in the class attribute `form`;
OpenAI's has two, and which one a model is asked in is part of its dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.messages import Json, Thinking
from agents.providers.anthropic import request as anthropic_request
from agents.providers.base import Provider, Request
from agents.providers.dialect import USUAL, Dialect
from agents.providers.openai import request as openai_request
from agents.providers.openai import responses_request

DEFAULT = "openai"
# Fields that hold a tool's own names, any of which may look like one of the vendor's.
OF_TOOLS = ("input", "input_schema")
# How an answer is delivered. The model does not get these.
TRANSPORT = ("stream", "stream_options")


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """The parts of a request body: together with `parameters` they are all of it. `system` is None where it is empty or
    where the form has it among the messages. `messages` are the `input` of OpenAI's Responses API, `system` its
    `instructions`."""

    system: str | None
    messages: list[Json]
    tools: list[Json]
    parameters: Json = field(default_factory=dict)


def dialect_of(provider: Provider | None, model: str) -> Dialect:
    """Return how a provider asks a model, with what its endpoint has refused so far."""
    dialect_for: Callable[[str], Dialect] | None = getattr(provider, "dialect_for", None)
    return dialect_for(model) if dialect_for else USUAL


def form_of(provider: Provider | None, model: str) -> str:
    """Return the name of the form in which a provider asks a model; providers that send nothing have the default."""
    form: str = getattr(provider, "form", DEFAULT)
    return "responses" if form == "openai" and dialect_of(provider, model).responses else form


def without_refused(provider: Provider | None, request: Request) -> Request:
    """Leave out the reasoning that the provider's endpoint has refused, as the provider does when it sends."""
    leave_out: Callable[[Request], Request] | None = getattr(provider, "without_refused", None)
    return leave_out(request) if leave_out else request


def preview(form: str, request: Request, provider: str, dialect: Dialect = USUAL) -> VendorRequest:
    """Map a request to a form, without the additions that only make a model answer, and without cache marks.

    `provider` is the name of the configured endpoint, to which reasoning is given back; `dialect` is what it takes.
    """
    to_body, divide = FORMS[form]
    return divide(to_body(request, provider, dialect, is_asked=False))


def given_back(form: str, request: Request, provider: str, dialect: Dialect = USUAL) -> list[Thinking]:
    """Return the reasoning that the body of a request contains: the same objects as in the parts of its messages."""
    found: list[Thinking] = []
    if not any(isinstance(part, Thinking) for message in request.messages for part in message.parts):
        return found  # mapping a long conversation takes time
    FORMS[form][0](request, provider, dialect, is_asked=False, given_back=found)
    return found


def _openai(body: Json) -> VendorRequest:
    return _divided(body, None)


def _responses(body: Json) -> VendorRequest:
    body["messages"] = body.pop("input")
    return _divided(body, body.pop("instructions", None))


def _anthropic(body: Json) -> VendorRequest:
    body = _without_cache_marks(body)
    system = body.pop("system", None)
    return _divided(body, "".join(block["text"] for block in system) if system else None)


def _divided(body: Json, system: str | None) -> VendorRequest:
    parts = ("model", "messages", "tools", *TRANSPORT)
    parameters = {name: value for name, value in body.items() if name not in parts}
    return VendorRequest(system, body["messages"], body.get("tools", []), parameters)


def _without_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        own = {name: each for name, each in value.items() if name != "cache_control"}
        return {name: each if name in OF_TOOLS else _without_cache_marks(each) for name, each in own.items()}
    return [_without_cache_marks(each) for each in value] if isinstance(value, list) else value


class Mapping(Protocol):
    """The function of a form that maps a request to a body."""

    def __call__(
        self,
        request: Request,
        provider: str,
        dialect: Dialect,
        /,
        *,
        is_asked: bool = True,
        given_back: list[Thinking] | None = None,
    ) -> Json: ...


# As REST clients name them: the keys of `FORMS`.
Form = Literal["openai", "responses", "anthropic"]
FORMS: dict[str, tuple[Mapping, Callable[[Json], VendorRequest]]] = {
    "openai": (openai_request.to_request, _openai),
    "responses": (responses_request.to_request, _responses),
    "anthropic": (anthropic_request.to_request, _anthropic),
}
