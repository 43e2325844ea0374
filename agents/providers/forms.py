"""Requests in the vendors' forms, for users and programs that inspect them. Pure.

To add a form, add an entry to `FORMS` and its name to `Form`. A provider's own form is in its class attribute `form`.
OpenAI's provider has two forms, and the dialect of a model selects one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from agents.messages import Json, Message, Text, Thinking
from agents.providers.anthropic import request as anthropic_request
from agents.providers.base import Provider, Request
from agents.providers.dialect import USUAL, Dialect
from agents.providers.openai import request as openai_request
from agents.providers.openai import responses_request

DEFAULT = "openai"
# Fields with names that a tool defines. Such a name may be the same as the name of a vendor's field.
OF_TOOLS = ("input", "input_schema")
# Stands for the text that a user may send next.
NEXT = Message("user", (Text("…"),))
# Parameters of how an answer is delivered. The model does not get them.
TRANSPORT = ("stream", "stream_options")


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """The parts of a request body. `parameters` are all fields that the other parts do not have.

    `system` is None if it is empty or if the form has it among the messages. For OpenAI's Responses API, `messages` is
    its `input` and `system` its `instructions`.
    """

    system: str | None
    messages: list[Json]
    tools: list[Json]
    parameters: Json = field(default_factory=dict)


def dialect_of(provider: Provider | None, model: str) -> Dialect:
    """Return the dialect in which a provider asks a model, without the parameters that its endpoint has refused."""
    dialect_for: Callable[[str], Dialect] | None = getattr(provider, "dialect_for", None)
    return dialect_for(model) if dialect_for else USUAL


def form_of(provider: Provider | None, model: str) -> str:
    """Return the name of the form in which a provider asks a model, or the default for one that sends no requests."""
    form: str = getattr(provider, "form", DEFAULT)
    return "responses" if form == "openai" and dialect_of(provider, model).responses else form


def without_refused_reasoning(provider: Provider | None, request: Request) -> Request:
    """Return the request as the provider sends it: without reasoning that its endpoint has refused."""
    remove_reasoning: Callable[[Request], Request] | None = getattr(provider, "without_refused_reasoning", None)
    return remove_reasoning(request) if remove_reasoning else request


def preview(form: str, request: Request, provider: str, dialect: Dialect = USUAL) -> VendorRequest:
    """Return a request in a form, without additions that only make a model answer, and without cache marks.

    `provider` is the name of the configured endpoint; only its own reasoning is included. `dialect` describes which
    parameters the endpoint accepts.
    """
    to_body, divide = FORMS[form]
    return divide(to_body(request, provider, dialect, is_asked=False))


def sent_reasoning(form: str, request: Request, provider: str, dialect: Dialect = USUAL) -> list[Thinking]:
    """Return the reasoning in the body of a request, as the same objects that are parts of its messages."""
    found: list[Thinking] = []
    if not any(isinstance(part, Thinking) for message in request.messages for part in message.parts):
        return found  # skip the mapping, which takes time for a long conversation
    to_body, _divide = FORMS[form]
    to_body(request, provider, dialect, is_asked=False, sent_reasoning=found)
    return found


def before_next_message(form: str, request: Request, provider: str, dialect: Dialect = USUAL) -> Request:
    """Return a request without the reasoning that is not sent once a user's next message is appended."""
    sent = sent_reasoning(form, request, provider, dialect)
    if not sent:
        return request
    later = sent_reasoning(form, replace(request, messages=(*request.messages, NEXT)), provider, dialect)
    lost = set(map(id, sent)) - set(map(id, later))
    messages = (
        replace(message, parts=tuple(part for part in message.parts if id(part) not in lost))
        for message in request.messages
    )
    return replace(request, messages=tuple(messages))


def _openai(body: Json) -> VendorRequest:
    return _split_body(body, None)


def _responses(body: Json) -> VendorRequest:
    body["messages"] = body.pop("input")
    return _split_body(body, body.pop("instructions", None))


def _anthropic(body: Json) -> VendorRequest:
    body = _without_cache_marks(body)
    system = body.pop("system", None)
    return _split_body(body, "".join(block["text"] for block in system) if system else None)


def _split_body(body: Json, system: str | None) -> VendorRequest:
    parts = ("model", "messages", "tools", *TRANSPORT)
    parameters = {name: value for name, value in body.items() if name not in parts}
    return VendorRequest(system, body["messages"], body.get("tools", []), parameters)


def _without_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        own = {name: each for name, each in value.items() if name != "cache_control"}
        return {name: each if name in OF_TOOLS else _without_cache_marks(each) for name, each in own.items()}
    return [_without_cache_marks(each) for each in value] if isinstance(value, list) else value


class ToBody(Protocol):
    """A form's function that maps a request to a body."""

    def __call__(
        self,
        request: Request,
        provider: str,
        dialect: Dialect,
        /,
        *,
        is_asked: bool = True,
        sent_reasoning: list[Thinking] | None = None,
    ) -> Json: ...


# The keys of `FORMS`, which REST clients use, too.
Form = Literal["openai", "responses", "anthropic"]
FORMS: dict[str, tuple[ToBody, Callable[[Json], VendorRequest]]] = {
    "openai": (openai_request.to_request, _openai),
    "responses": (responses_request.to_request, _responses),
    "anthropic": (anthropic_request.to_request, _anthropic),
}
