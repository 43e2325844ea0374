"""Providers learn from refusals: the request is changed for that model from then on."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from agents.errors import Overloaded, RequestRejected
from agents.messages import Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import Request, ToolSpec
from agents.providers.openai.provider import OpenAIProvider
from agents.reasoning import Reasoning, ReasoningSupport
from tests.wire import Reply, WireServer
from tests.wire import anthropic as messages_api
from tests.wire import openai as chat_api
from tests.wire import responses as responses_api
from tests.wire.anthropic import sign
from tests.wire.vendors import ANTHROPIC, OPENAI, RESPONSES, ask, parts, request

ADD = ToolSpec("add", "Adds.", {"properties": {"a": {"type": "integer"}}})
ADAPTIVE = ReasoningSupport(efforts=("low", "high"), budget=True, adaptive=True, always=True)


def refusal(message: str, param: str | None = None, status: int = 400) -> Reply:
    return Reply.of_json(chat_api.error_body(message, param=param), status)


def has(body: dict[str, Any], path: str) -> bool:
    """Return whether a body has a parameter; dots separate nested names."""
    name, _dot, rest = path.partition(".")
    return name in body and (not rest or has(body[name], rest))


CHAT: dict[str, tuple[Reply, Request, str]] = {
    "stream_options": (
        refusal("Unrecognized request argument supplied: stream_options"),
        request(),
        "stream_options",
    ),
    "stream_options, as vLLM says it": (
        refusal(
            "[{'type': 'extra_forbidden', 'loc': ['body', 'stream_options'], 'msg': 'Extra inputs are not permitted'}]"
        ),
        request(),
        "stream_options",
    ),
    "include_usage": (refusal("include_usage is not known here"), request(), "stream_options"),
    "status 422": (refusal("Unknown parameter: stream_options", status=422), request(), "stream_options"),
    "temperature": (
        refusal("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        request(options={"temperature": 0.3}),
        "temperature",
    ),
    "a level of effort": (
        refusal("Unsupported value: 'reasoning_effort' does not support 'high' with this model."),
        request(reasoning=Reasoning("high")),
        "reasoning_effort",
    ),
    "thinking, as Ollama says it": (
        refusal('"llama3.2" does not support thinking'),
        request(reasoning=Reasoning("high")),
        "reasoning_effort",
    ),
}
RESPONSES_API: dict[str, tuple[Reply | None, Request, str]] = {
    "temperature": (None, request(model="gpt-6-sol", options={"temperature": 0.3}), "temperature"),
    "encrypted reasoning": (None, request(model="gpt-4.9"), "include"),
    "effort": (None, request(model="gpt-4.9", reasoning=Reasoning("high")), "reasoning.effort"),
    "a level of effort": (
        refusal("Unsupported value: 'none' is not supported with the 'gpt-6.1-sol' model.", "reasoning.effort"),
        request(reasoning=Reasoning("none")),
        "reasoning.effort",
    ),
    "summaries": (
        refusal("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
        request(),
        "reasoning.summary",
    ),
    "an option": (None, request(options={"seed": 7}), "seed"),
}
MESSAGES: dict[str, tuple[Reply | None, Request, str]] = {
    "an option": (None, request(options={"seed": 7}), "seed"),
    "temperature": (
        messages_api.error(400, "invalid_request_error", "`temperature` is deprecated for this model."),
        request(options={"temperature": 0.3}),
        "temperature",
    ),
    "effort": (
        messages_api.error(400, "invalid_request_error", "This model does not support the effort parameter."),
        request(reasoning=Reasoning("low")),
        "output_config.effort",
    ),
    "display": (
        messages_api.error(400, "invalid_request_error", "thinking.adaptive.display: Extra inputs are not permitted"),
        request(support=ADAPTIVE),
        "thinking.display",
    ),
    "adaptive thinking": (
        messages_api.error(400, "invalid_request_error", "adaptive thinking is not supported on this model"),
        request(support=ADAPTIVE),
        "thinking",
    ),
}
CASES = [
    *((OPENAI, case, CHAT[case]) for case in CHAT),
    *((RESPONSES, case, RESPONSES_API[case]) for case in RESPONSES_API),
    *((ANTHROPIC, case, MESSAGES[case]) for case in MESSAGES),
]


@pytest.mark.parametrize(
    ("vendor", "case"), [(vendor, case) for vendor, _name, case in CASES], ids=[f"{v.name}: {n}" for v, n, _c in CASES]
)
async def test_refused_parameter_is_left_out_at_once_and_from_then_on(
    wire: WireServer, caplog: pytest.LogCaptureFixture, vendor: Any, case: tuple[Reply | None, Request, str]
) -> None:
    """RUN-10: each model refuses one request, which is logged and which users do not see."""
    reply, asked, parameter = case
    wire.script(*([reply] if reply else []), Reply(vendor.text("a")), Reply(vendor.text("b")))
    provider = vendor.make(wire)
    with caplog.at_level(logging.WARNING):
        for expected in ("a", "b"):
            assert [part.text for part in parts(await ask(provider, asked)) if isinstance(part, Text)] == [expected]
    refused, *others = [has(one.body, parameter) for one in wire.requests if one.body["model"] == asked.model]
    assert refused
    assert not any(others[-2:])
    learned = [record.getMessage() for record in caplog.records if record.name == "agents.providers.http.client"]
    assert len(learned) == 1
    assert f"without {parameter}" in learned[0]
    await provider.close()


LONG_ID = "call_" + "a" * 36
CALL_IDS = {
    "OpenAI": (
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a "
        "string with length 41 instead.",
        "call_1",
        r".{1,40}",
    ),
    "Mistral": (
        f"Tool call id was {LONG_ID} but must be a-z, A-Z, 0-9, with a length of 9.",
        "Cal1Of9ab",
        r"[a-zA-Z0-9]{9}",
    ),
}


@pytest.mark.parametrize("server", CALL_IDS)
async def test_ids_of_calls_get_the_form_that_the_server_wants(
    wire: WireServer, gpt: OpenAIProvider, server: str
) -> None:
    """CTX-02, RUN-16: another vendor's ids of calls are replaced after a refusal, the server's own are not."""
    said, own, form = CALL_IDS[server]
    wire.script(refusal(said), Reply(OPENAI.text("a")), Reply(OPENAI.text("b")))
    calls = (ToolCall(LONG_ID, "add", {}), ToolCall(own, "add", {}))
    results = Message("user", tuple(ToolResult(call.id, "1") for call in calls))
    asked = request("hello", Message("assistant", calls), results, tools=(ADD,))
    for _ in range(2):
        await ask(gpt, asked)
    sent = [one.body["messages"] for one in wire.requests]
    assert sent[1] == sent[2]
    ids = [[call["id"] for call in messages[1]["tool_calls"]] for messages in sent[:2]]
    assert ids[0] == [LONG_ID, own]
    assert re.fullmatch(form, ids[1][0])
    assert ids[1][1] == own
    assert [message["tool_call_id"] for message in sent[1][2:]] == ids[1]


async def test_calls_of_other_models_are_signed_where_the_server_requires_it(
    wire: WireServer, gpt: OpenAIProvider
) -> None:
    """CTX-02, RUN-16: Gemini continues a turn that another model has begun. Its own signatures are sent unchanged."""
    wire.script(
        refusal(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance."
        ),
        Reply(OPENAI.text("a")),
        Reply(OPENAI.text("b")),
    )
    own = {"extra_content": '{"google": {"thought_signature": "abc"}}', "maker": f"{gpt.name}/{request().model}"}
    responses = [(ToolCall("c1", "add", {}), ToolCall("c2", "add", {})), (ToolCall("c3", "add", {}, data=own),)]
    history: list[Message] = []
    for calls in responses:
        history.append(Message("assistant", calls))
        history.append(Message("user", tuple(ToolResult(call.id, "1") for call in calls)))
    for _ in range(2):
        await ask(gpt, request("hello", *history, tools=(ADD,)))
    sent = [one.body["messages"] for one in wire.requests]
    assert sent[1] == sent[2]
    made = [call.get("extra_content") for message in sent[1] for call in message.get("tool_calls", ())]
    passed = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert made == [passed, None, {"google": {"thought_signature": "abc"}}]
    assert not any("extra_content" in call for call in sent[0][1]["tool_calls"])


NOTE = Message("system", (Text("Be brief."),))
RESULT = (Message("assistant", (ToolCall("c1", "add", {}),)), Message("user", (ToolResult("c1", "1"),)))
SENT_NOTE = {"role": "user", "content": "<system-note>\nBe brief.\n</system-note>"}
STRICT_ORDERS: dict[str, tuple[str, int, list[Message], list[Json]]] = {
    "Mistral": (
        "Unexpected role 'user' after role 'tool'",
        400,
        [*RESULT, Message("user", (Text("and?"),))],
        [{"role": "assistant", "content": "(No answer yet.)"}, {"role": "user", "content": "and?"}],
    ),
    "vLLM with Qwen": (
        "System message must be at the beginning. System message must be at the beginning.",
        400,
        [Message("assistant", (Text("hi"),)), NOTE],
        [{"role": "assistant", "content": "hi"}, SENT_NOTE],
    ),
    "llama.cpp with Qwen": (
        "While executing CallExpression at line 85: Jinja Exception: System message must be at the beginning.",
        500,
        [*RESULT, NOTE],
        [{"role": "assistant", "content": "(No answer yet.)"}, SENT_NOTE],
    ),
}


@pytest.mark.parametrize("server", STRICT_ORDERS)
async def test_messages_get_the_order_that_the_server_wants(wire: WireServer, gpt: OpenAIProvider, server: str) -> None:
    """CTX-02, RUN-09: a session goes on after Stop or at the round limit if the model's template is strict."""
    said, status, messages, expected = STRICT_ORDERS[server]
    wire.script(refusal(said, status=status), Reply(OPENAI.text("a")), Reply(OPENAI.text("b")))
    for _ in range(2):
        await ask(gpt, request("hello", *messages, tools=(ADD,)))
    first, *later = [one.body["messages"] for one in wire.requests]
    assert [sent[-2:] for sent in later] == [expected] * 2
    assert first[-2:] != expected


NO_SYSTEM = {
    "vLLM with Gemma 2": ("System role not supported System role not supported", 400),
    "mistral.rs with Gemma 2": ("invalid operation: Gemma 2 models do not support the system role", 500),
}


@pytest.mark.parametrize("server", NO_SYSTEM)
async def test_system_prompt_goes_where_the_server_accepts_it(
    wire: WireServer, gpt: OpenAIProvider, server: str
) -> None:
    """CTX-02, RUN-10: a model whose template has no system role gets the system prompt before the first text."""
    said, status = NO_SYSTEM[server]
    wire.script(refusal(said, status=status), Reply(OPENAI.text("a")), Reply(OPENAI.text("b")))
    for _ in range(2):
        await ask(gpt, request("hello", Message("assistant", (Text("hi"),)), NOTE, system="Be kind."))
    first, *later = [one.body["messages"] for one in wire.requests]
    assert first[0] == {"role": "system", "content": "Be kind."}
    opening = {"role": "user", "content": "<system-note>\nBe kind.\n</system-note>\n\nhello"}
    assert later == [[opening, {"role": "assistant", "content": "hi"}, SENT_NOTE]] * 2


async def test_system_prompt_moves_only_if_another_order_is_refused_too(wire: WireServer, gpt: OpenAIProvider) -> None:
    """CTX-02, RUN-10: a template may refuse a system prompt with the words in which others refuse an order."""
    said = "Conversation roles must alternate user/assistant/user/assistant/..."
    wire.script(refusal(said), refusal(said), Reply(OPENAI.text("a")))
    await ask(gpt, request("hello", system="Be kind."))
    sent = [[message["role"] for message in one.body["messages"]] for one in wire.requests]
    assert sent == [["system", "user"], ["system", "user"], ["user"]]


MISSING_REASONING = {
    "DeepSeek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "Kimi": "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
}


@pytest.mark.parametrize("server", MISSING_REASONING)
async def test_reasoning_of_earlier_turns_is_sent_where_it_is_required(
    wire: WireServer, gpt: OpenAIProvider, server: str
) -> None:
    """RUN-10, MSG-08: a session goes on after a turn with tools if the server requires the reasoning of all turns.

    An answer without reasoning, such as another model's, gets a placeholder, because its absence is refused, too.
    """
    wire.script(refusal(MISSING_REASONING[server]), Reply(OPENAI.text("a")), Reply(OPENAI.text("b")))
    thought = Thinking("hm", "openai", {"field": "reasoning_content"}, "model-1")
    foreign = Thinking("hm", "other", {"field": "reasoning_content"}, "model-2")
    call, result = ToolCall("c1", "add", {}), ToolResult("c1", "1")
    earlier = (Message("assistant", (thought, call)), Message("user", (result,)), Message("assistant", (Text("1"),)))
    asked = request("hello", *earlier, "and now?", Message("assistant", (foreign, Text("2"))), "go on", tools=(ADD,))
    for _ in range(2):
        await ask(gpt, asked)
    sent = [[message.get("reasoning_content") for message in one.body["messages"]] for one in wire.requests]
    assert sent[0] == [None] * 7
    assert sent[1] == sent[2] == [None, "hm", None, " ", None, " ", None]


async def test_another_model_is_asked_in_full(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: a parameter that one model refused is still sent to others."""
    wire.script(refusal("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"))
    for model in ("one", "two"):
        await ask(gpt, request(model=model, options={"temperature": 0.3}))
    assert ["temperature" in one.body for one in wire.requests] == [True, False, True]


async def test_limit_is_named_as_the_server_wants_it(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: if max_tokens is refused, as by newer models, max_completion_tokens is sent from then on.

    Other servers accept only max_tokens.
    """
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    wire.script(refusal(said), Reply(OPENAI.text("a")), Reply(OPENAI.text("b")))
    for _ in range(2):
        await ask(gpt, request(max_tokens=5))
    assert [(one.body.get("max_tokens"), one.body.get("max_completion_tokens")) for one in wire.requests] == [
        (5, None),
        (None, 5),
        (None, 5),
    ]


TOOLS_AND_REASONING = "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions."


async def test_tools_without_reasoning_where_both_are_refused(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: reasoning is left out if both are refused. A request without tools still has it."""
    wire.script(refusal(f"{TOOLS_AND_REASONING} Set reasoning_effort to 'none'."))
    chosen = Reasoning("high")
    await ask(gpt, request(tools=(ADD,), reasoning=chosen))
    await ask(gpt, request(tools=(ADD,), reasoning=chosen))
    await ask(gpt, request(reasoning=chosen))
    assert [one.body["reasoning_effort"] for one in wire.requests] == ["high", "none", "none", "high"]


async def test_responses_api_where_the_refusal_names_it(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10, RUN-16: after a refusal that names the Responses API, the model's requests go there.

    OpenAI's current models accept tools with reasoning only in that API.
    """
    wire.script(refusal(f"{TOOLS_AND_REASONING} To use function tools, use /v1/responses."))
    for _ in range(2):
        await ask(gpt, request(tools=(ADD,)))
    paths = ["/v1/chat/completions", "/v1/responses", "/v1/responses"]
    assert [one.path for one in wire.requests] == paths


async def test_chat_completions_where_there_is_no_responses_api(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-10: a server without the Responses API gets Chat Completions."""
    wire.script(refusal("Not Found", status=404))
    for _ in range(2):
        await ask(o)
    paths = ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]
    assert [one.path for one in wire.requests] == paths


async def test_unknown_model_is_no_missing_api(wire: WireServer, o: OpenAIProvider) -> None:
    """An unknown model is not taken for a missing API (RUN-10)."""
    wire.script(*[refusal("The model 'x' does not exist or you do not have access to it.", status=404)] * 9)
    with pytest.raises(Exception, match="does not know the model"):
        await ask(o)
    assert len(wire.requests) == 1


async def test_budget_gives_way_to_adaptive_thinking(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-10: newer models refuse a budget and get adaptive thinking."""
    said = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
    wire.script(messages_api.error(400, "invalid_request_error", said))
    for _ in range(2):
        await ask(claude, request(reasoning=Reasoning(budget=4000), support=ADAPTIVE))
    assert [one.body["thinking"]["type"] for one in wire.requests] == ["enabled", "adaptive", "adaptive"]


def thinking_of(body: dict[str, Any]) -> list[str]:
    """Return the reasoning in a request, by its text."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block["thinking"] for block in blocks if block["type"] == "thinking"]


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block. It is bound to a different conversation.",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`. To use thinking blocks, enable `thinking` in your request.",
        "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    ],
)
async def test_thinking_that_no_longer_fits_is_left_out(
    wire: WireServer, claude: AnthropicProvider, message: str
) -> None:
    """MSG-08, RUN-10: Anthropic binds thinking to the earlier messages, which users may have changed.

    If it is refused, the conversation continues without it. Later thinking is sent.
    """
    old = Message("assistant", (Thinking("hm", "anthropic", {"signature": sign("hm")}), Text("x")))
    new = Message("assistant", (Thinking("so", "anthropic", {"signature": sign("so")}), Text("y")))
    wire.script(messages_api.error(400, "invalid_request_error", message))
    await ask(claude, request("?", old, "And?"))
    await ask(claude, request("?", old, "And?", new, "So?"))
    assert [thinking_of(one.body) for one in wire.requests] == [["hm"], [], ["so"]]


async def test_reasoning_that_the_api_cannot_read_is_left_out(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08, RUN-10: reasoning that the API refuses is left out, because OpenAI encrypts it for one account."""

    def answer(tail: str, maker: str) -> Message:
        item = responses_api.reasoning_item(["hm"], tail=tail, model=maker)
        thought = Thinking("hm", "responses", {"item": json.dumps(item)})
        return Message("assistant", (thought, Text("x", {"item_id": f"msg_{tail}_1", "after": f"rs_{tail}"})))

    old, new = answer("a", "elsewhere"), answer("b", "model-1")
    await ask(o, request("?", old, "And?"))
    await ask(o, request("?", old, "And?", new, "So?"))
    sent = [[item["id"] for item in one.body["input"] if "id" in item] for one in wire.requests]
    assert sent == [["rs_a", "msg_a_1"], [], ["rs_b", "msg_b_1"]]


async def test_refusal_of_reasoning_without_any_stands(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-10: a refusal of reasoning in a request without any is reported, because nothing can be left out."""
    wire.script(messages_api.error(400, "invalid_request_error", "Invalid `signature` in `thinking` block"))
    with pytest.raises(RequestRejected):
        await ask(claude)
    assert len(wire.requests) == 1


async def test_server_that_takes_no_form_is_not_asked_forever(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: after all forms of a parameter were refused, the error is reported and nothing is stored."""
    wire.script(*[refusal("Unknown parameter: max_completion_tokens, stream_options")] * 4)
    with pytest.raises(RequestRejected):
        await ask(gpt, request(max_tokens=5))
    assert len(wire.requests) == 4
    await ask(gpt, request(max_tokens=5))
    assert (wire.requests[-1].body["max_tokens"], "stream_options" in wire.requests[-1].body) == (5, True)


async def test_failure_that_only_mentions_a_parameter_teaches_nothing(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: an error of a failing server is not a refusal of a parameter."""
    wire.script(refusal("crashed while reading stream_options, unknown", status=500))
    with pytest.raises(Overloaded):
        await ask(gpt)
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "message", ["max_completion_tokens is too large: 99999999", "Unsupported content for messages", "Unknown model"]
)
async def test_other_refusals_are_not_tried_again(wire: WireServer, gpt: OpenAIProvider, message: str) -> None:
    """RUN-10: essential parameters, and errors that a user must resolve, are not left out."""
    wire.script(refusal(message))
    with pytest.raises(RequestRejected, match=message):
        await ask(gpt, request(max_tokens=5))
    assert len(wire.requests) == 1
