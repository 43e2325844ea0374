"""Tests of how requests are shown in the vendors' forms."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agents.messages import Message, Text
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import Provider, Request, ToolSpec
from agents.providers.dialect import Dialect
from agents.providers.forms import FORMS, dialect_of, form_of, preview
from agents.providers.openai.provider import OpenAIProvider
from agents.providers.openai.responses_request import to_request
from agents.providers.scripted import ScriptedProvider
from agents.reasoning import Reasoning

LOCAL = "http://127.0.0.1:9/v1"
FORM_OF: list[tuple[Provider | None, str]] = [
    (OpenAIProvider("openai", "k"), "responses"),
    (OpenAIProvider("openai", "k", api="chat"), "openai"),
    (OpenAIProvider("house", "k", LOCAL), "openai"),
    (OpenAIProvider("house", "k", LOCAL, api="responses"), "responses"),
    (AnthropicProvider("anthropic", "k"), "anthropic"),
    (ScriptedProvider([]), "openai"),
    (None, "openai"),
]
SPOKEN = Request(
    "gpt-x",
    (Message("user", (Text("Hi"),)), Message("assistant", (Text("Ho"),))),
    system="Be brief.",
    tools=(ToolSpec("add", "Adds.", {"type": "object", "properties": {}}),),
    max_tokens=99,
    reasoning=Reasoning("low"),
)


@pytest.mark.parametrize(("provider", "form"), FORM_OF)
def test_form_is_that_in_which_the_provider_asks(provider: Provider | None, form: str) -> None:
    """The shown request has the form that the provider sends (CTX-02)."""
    assert form_of(provider, "m") == form


def test_form_follows_what_was_learned_of_a_model() -> None:
    """CTX-02: the form of a model follows a server's refusal, which may apply to that model only."""
    provider = OpenAIProvider("openai", "k")
    chat = replace(provider.dialect, responses=False)
    asyncio.run(provider._learn("old", provider.dialect, chat))
    assert (form_of(provider, "old"), form_of(provider, "new")) == ("openai", "responses")
    assert dialect_of(provider, "old") == chat


def test_responses_form_is_the_whole_body() -> None:
    """CTX-02: with `parameters`, the form is the whole body, without additions for a final answer."""
    body = to_request(SPOKEN, "openai", Dialect(responses=True))
    shown = preview("responses", SPOKEN, "openai", Dialect(responses=True))
    added = body["input"].pop()
    assert added["role"] == "user"
    whole = {"input": shown.messages, "instructions": shown.system, "tools": shown.tools, **shown.parameters}
    assert {"model": SPOKEN.model, "stream": True, **whole} == body


@pytest.mark.parametrize("form", FORMS)
def test_what_the_server_refuses_is_not_shown(form: str) -> None:
    """Parameters that a server refuses are not in the shown request (CTX-02)."""
    limits = {"max_tokens", "max_output_tokens"}
    assert limits & preview(form, SPOKEN, "openai").parameters.keys()
    assert not limits & preview(form, SPOKEN, "openai", Dialect(omitted=frozenset(limits))).parameters.keys()
