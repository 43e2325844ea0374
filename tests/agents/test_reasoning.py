"""The reasoning options of models, and which part of a choice they get (RUN-16)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from anthropic.types.model import Model as AnthropicModel
from openai.types.shared.chat_model import ChatModel

from agents.config import ProviderConfig
from agents.messages import Message, Text, ToolCall, ToolResult
from agents.providers.anthropic import request as anthropic_request
from agents.providers.base import Request
from agents.providers.dialect import Dialect
from agents.providers.openai import request as openai_request
from agents.reasoning import ANTHROPIC, EFFORTS, OPENAI, Reasoning, ReasoningSupport, support_of

FULL = ("none", "low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize(
    ("kind", "model", "efforts", "budget"),
    [
        ("openai", "gpt-4.1", (), False),
        ("openai", "gpt-4o-mini", (), False),
        ("openai", "o3", ("low", "medium", "high"), False),
        ("openai", "o3-pro", ("low", "medium", "high"), False),
        ("openai", "gpt-5", ("minimal", "low", "medium", "high"), False),
        ("openai", "gpt-5-mini-2025-08-07", ("minimal", "low", "medium", "high"), False),
        ("openai", "gpt-5-chat-latest", (), False),
        ("openai", "gpt-5-pro", (), False),
        ("openai", "gpt-5.1", ("none", "low", "medium", "high"), False),
        ("openai", "gpt-5.2-pro", ("medium", "high", "xhigh"), False),
        ("openai", "gpt-5.5", ("none", "low", "medium", "high", "xhigh"), False),
        ("openai", "gpt-5.6-luna", FULL, False),
        ("openai", "gpt-6-sol", FULL, False),
        ("openai", "gpt-6-astra", FULL[1:], False),
        ("openai", "gpt-6.1-sol", FULL[1:], False),
        ("openai", "gpt-6.1-terra", FULL, False),
        ("openai", "gpt-6.2-astra", FULL[1:], False),
        ("openai", "router/gpt-oss:120b", ("low", "medium", "high"), False),
        ("anthropic", "claude-3-5-haiku-20241022", (), False),
        ("anthropic", "claude-sonnet-4-5", (), True),
        ("anthropic", "claude-haiku-4-5-20251001", (), True),
        ("anthropic", "claude-opus-4-5", ("low", "medium", "high"), True),
        ("anthropic", "claude-opus-4-6", ("low", "medium", "high", "max"), True),
        ("anthropic", "claude-opus-4-8", FULL[1:], False),
        ("anthropic", "claude-haiku-5-5", FULL[1:], False),
        ("anthropic", "claude-fable-5-2", FULL[1:], False),
    ],
)
def test_known_models(kind: str, model: str, efforts: tuple[str, ...], budget: bool) -> None:
    support = support_of(kind, model)
    assert support is not None
    assert (support.efforts, support.budget) == (efforts, budget)


@pytest.mark.parametrize(
    ("kind", "names"), [("openai", get_args(ChatModel)), ("anthropic", get_args(get_args(AnthropicModel)[0]))]
)
def test_every_model_that_the_sdk_knows_is_known_here(kind: str, names: tuple[str, ...]) -> None:
    """A new SDK with new names fails here, so that they are added to the tables."""
    others = ("audio", "codex-mini", "gpt-oss")
    assert [name for name in names if not support_of(kind, name) and not any(one in name for one in others)] == []


def test_tables_are_in_order() -> None:
    for support in (*OPENAI.values(), *ANTHROPIC.values()):
        assert list(support.efforts) == sorted(support.efforts, key=EFFORTS.index)
        assert support.default in ("", *support.efforts)


def test_unknown_models_offer_what_is_configured() -> None:
    server = ProviderConfig.model_validate(
        {
            "type": "openai",
            "base_url": "http://x.y",
            "reasoning_efforts": ["low", "high"],
            "models": {"plain": {"reasoning_efforts": []}, "gpt-6-sol": {"reasoning_efforts": ["medium"]}},
        }
    )
    offers = {name: server.reasoning_support(name) for name in ("any", "plain", "gpt-6-sol")}
    assert {name: support and support.efforts for name, support in offers.items()} == {
        "any": ("low", "high"),
        "plain": (),
        "gpt-6-sol": ("medium",),
    }
    assert support_of("openai", "unheard-of") is None
    assert support_of("demo", "demo") is None


def test_configured_levels_replace_only_the_levels_in_the_list() -> None:
    """RUN-16: a newer model of Claude chooses how much it thinks, whatever levels its operator offers."""
    stated = ReasoningSupport(efforts=("low", "high"), adaptive=True, most_tokens=64_000)
    config = ProviderConfig.model_validate({"type": "anthropic", "reasoning_efforts": ["high"]})
    assert config.reasoning_support("claude-opus-9", stated) == replace(stated, efforts=("high",))


def test_choice_reaches_only_models_that_offer_it() -> None:
    """A session keeps its choice when the model changes, and the parts that the new model lacks are not sent."""
    offers = ReasoningSupport(efforts=("low", "high"))
    assert offers.applied(Reasoning("high", 4000)) == Reasoning("high")
    assert offers.applied(Reasoning("max", 4000)) == Reasoning()
    thinks = ReasoningSupport(budget=True, most_tokens=32_000)
    assert thinks.applied(Reasoning("high", 4000)) == Reasoning(budget=4000)
    assert thinks.applied(Reasoning(budget=64_000)) == Reasoning(budget=28_000)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"reasoning_effort": "high", "thinking_budget": 4000}, Reasoning("high", 4000)),
        ({}, Reasoning()),
        ({"reasoning_effort": "huge", "thinking_budget": 5}, Reasoning()),
        ({"reasoning_effort": ["high"], "thinking_budget": True}, Reasoning()),
        ({"reasoning_effort": None, "thinking_budget": "4000"}, Reasoning()),
    ],
)
def test_choice_is_read_from_any_config(config: dict[str, Any], expected: Reasoning) -> None:
    """MSG-10: invalid values in a hand-edited config are ignored."""
    assert Reasoning.of(config) == expected
    assert Reasoning.of(expected.to_config()) == expected


def asked(reasoning: Reasoning, support: ReasoningSupport | None, *messages: Message, **options: Any) -> Request:
    said = messages or (Message("user", (Text("a"),)),)
    return Request("model-1", said, reasoning=reasoning, support=support, options=options)


EFFORT_ONLY = ReasoningSupport(efforts=("low", "high"))
BOTH = ReasoningSupport(efforts=("low", "high"), budget=True, adaptive=True)
ALWAYS = ReasoningSupport(efforts=("low", "high"), adaptive=True, always=True)
SHOWN = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("reasoning", "support", "options", "thinking", "output"),
    [
        (Reasoning(), None, {}, None, None),
        (Reasoning(), EFFORT_ONLY, {}, None, None),
        (Reasoning("low"), EFFORT_ONLY, {}, None, {"effort": "low"}),
        (Reasoning(), BOTH, {}, None, None),
        (Reasoning("low"), BOTH, {}, SHOWN, {"effort": "low"}),
        (Reasoning(), ALWAYS, {}, SHOWN, None),
        (Reasoning(budget=4000), BOTH, {}, {"type": "enabled", "budget_tokens": 4000}, None),
        (Reasoning(budget=4000), BOTH, {"thinking_budget": 9000}, {"type": "enabled", "budget_tokens": 4000}, None),
        (Reasoning(), BOTH, {"thinking_budget": 9000}, {"type": "enabled", "budget_tokens": 9000}, None),
        (Reasoning(), ALWAYS, {"thinking": "disabled"}, {"type": "disabled"}, None),
        (Reasoning("low"), BOTH, {"output_config": {"format": 1}}, SHOWN, {"format": 1, "effort": "low"}),
    ],
)
def test_anthropic_is_asked_as_chosen(
    reasoning: Reasoning, support: ReasoningSupport | None, options: Any, thinking: Any, output: Any
) -> None:
    """RUN-16: the effort and the budget are sent as chosen, and adaptive reasoning is shown."""
    body = anthropic_request.to_request(asked(reasoning, support, **options), "anthropic")
    assert (body.get("thinking"), body.get("output_config")) == (thinking, output)


def test_budget_waits_where_a_tool_round_began_without_thinking() -> None:
    """CTX-02: a budget is not sent in a round that began without thinking, because the vendor refuses to begin it
    there."""
    call = Message("assistant", (ToolCall("c", "add", {}),))
    round_ = (Message("user", (Text("a"),)), call, Message("user", (ToolResult("c", "1"),)))
    body = anthropic_request.to_request(asked(Reasoning(budget=4000), BOTH, *round_), "anthropic")
    assert "thinking" not in body


def test_openai_chat_is_asked_as_chosen() -> None:
    body = openai_request.to_request(asked(Reasoning("low"), EFFORT_ONLY, reasoning_effort="high"), "o", Dialect())
    assert body["reasoning_effort"] == "low"
    body = openai_request.to_request(asked(Reasoning(), EFFORT_ONLY, reasoning_effort="high"), "o", Dialect())
    assert body["reasoning_effort"] == "high"
