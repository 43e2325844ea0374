"""Requests in the vendors' forms, for users and programs to look at; pure.

A new form is one entry in `FORMS`. A provider names its own form in the class attribute `form`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.messages import Json
from agents.providers import anthropic_request, openai_request
from agents.providers.base import Provider, Request

DEFAULT = "openai"
# Fields that hold a tool's own names, any of which may look like one of the vendor's.
OF_TOOLS = ("input", "input_schema")
# How an answer is delivered, which says nothing about what the model is told.
TRANSPORT = ("stream", "stream_options")


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """The parts of a request body: together with `parameters` they are all of it. `system` is None where it is empty or
    where the form has it among the messages."""

    system: str | None
    messages: list[Json]
    tools: list[Json]
    parameters: Json = field(default_factory=dict)


def form_of(provider: Provider | None) -> str:
    """Return the name of the form in which a provider sends requests; providers that send none have the default."""
    return getattr(provider, "form", DEFAULT)


def preview(form: str, request: Request, provider: str, limit_field: str = "max_tokens") -> VendorRequest:
    """Map a request to a form, without the additions that only make a model answer, and without cache marks.

    `provider` is the name of the configured endpoint, to which reasoning is given back; `limit_field` is how it calls
    the output limit in OpenAI's form.
    """
    return FORMS[form](request, provider, limit_field)


def _openai(request: Request, provider: str, limit_field: str) -> VendorRequest:
    dialect = openai_request.Dialect(limit_field=limit_field)
    body = openai_request.to_request(request, provider, dialect, is_asked=False)
    return _divided(body, None)


def _anthropic(request: Request, provider: str, _limit_field: str) -> VendorRequest:
    body = _without_cache_marks(anthropic_request.to_request(request, provider, is_asked=False))
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


FORMS: dict[str, Callable[[Request, str, str], VendorRequest]] = {"openai": _openai, "anthropic": _anthropic}
