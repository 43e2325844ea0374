"""Errors that vendors report, before and inside a stream."""

from __future__ import annotations

import pytest

from agents.errors import (
    AuthenticationFailed,
    ContextTooLong,
    ModelNotFound,
    NoCredit,
    Overloaded,
    ParameterRefused,
    ProviderError,
    RateLimited,
    RequestRejected,
    ResponseTimedOut,
    ToolsRefused,
)
from agents.events import ProviderEvent, TextDelta
from agents.messages import Text
from agents.providers.base import ToolSpec
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer
from tests.wire.vendors import ANTHROPIC, KEY, OPENAI, Vendor, ask, plain, request

BEFORE = [
    (400, "invalid_request_error", "temperature: out of range", ParameterRefused),
    (400, "invalid_request_error", "messages.3.content: must not be empty", RequestRejected),
    (401, "authentication_error", "invalid x-api-key", AuthenticationFailed),
    (402, "billing_error", "Payment required", NoCredit),
    (403, "permission_error", "Your key may not use this", AuthenticationFailed),
    (404, "not_found_error", "model: model-1", ModelNotFound),
    (408, "timeout_error", "The request took too long to arrive", ResponseTimedOut),
    (413, "request_too_large", "Request exceeds the maximum size", ContextTooLong),
    (422, "invalid_request_error", "bad field", RequestRejected),
    (429, "rate_limit_error", "Too many requests", RateLimited),
    (500, "api_error", "Internal server error", Overloaded),
    (503, "server_error", "The server is busy", Overloaded),
    (529, "overloaded_error", "Overloaded", Overloaded),
]
TOO_LONG = [
    (ANTHROPIC, "invalid_request_error", "prompt is too long: 210134 tokens > 200000 maximum"),
    (
        ANTHROPIC,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    ),
    (
        OPENAI,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ),
    (OPENAI, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
    (OPENAI, "invalid_request_error", "The input token count (1200000) exceeds the maximum number of tokens allowed."),
    (OPENAI, "invalid_request_error", "Please reduce the length of the messages or completion."),
    (OPENAI, "", "This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
    (OPENAI, "invalid_request_error", "Invalid request: Your request exceeded model token limit: 262144"),
    (OPENAI, "invalid_request_error", "prompt token count of 130000 exceeds the limit of 128000"),
    (OPENAI, "", "Range of input length should be [1, 129024]"),
    (ANTHROPIC, "invalid_request_error", "A maximum of 100 PDF pages may be provided."),
    (ANTHROPIC, "invalid_request_error", "Too much media: 0 document pages + 107 images > 100"),
    (ANTHROPIC, "invalid_request_error", "too many images and documents: 120 + 0 > 100"),
]


@pytest.mark.parametrize(("status", "kind", "message", "expected"), BEFORE, ids=lambda value: str(value)[:20])
async def test_status_tells_who_can_act(
    wire: WireServer, vendor: Vendor, status: int, kind: str, message: str, expected: type[ProviderError]
) -> None:
    """RUN-10: the status determines the kind of error, and with it who can act; the text is the server's."""
    wire.script(vendor.error(status, kind, message))
    provider = vendor.make(wire)
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    assert (type(caught.value), caught.value.status) == (expected, status)
    assert message in str(caught.value)
    await provider.close()


@pytest.mark.parametrize(("vendor", "kind", "message"), TOO_LONG, ids=lambda value: str(value)[:30])
async def test_each_wording_of_a_full_context_is_understood(
    wire: WireServer, vendor: Vendor, kind: str, message: str
) -> None:
    """RUN-10: in each vendor's wording, the user reads that the conversation is too long."""
    wire.script(vendor.error(400, kind, message), Reply(vendor.failure(kind, message)))
    provider = vendor.make(wire)
    for _ in range(2):
        with pytest.raises(ContextTooLong, match="too long for model-1"):
            await ask(provider)
    await provider.close()


OTHER_STATUSES = {
    "more tokens than OpenAI allows in a minute": (
        429,
        "tokens",
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 36278. The "
        "input or output tokens must be reduced in order to run successfully.",
    ),
    "context full at llama.cpp": (500, "server_error", "Context size has been exceeded."),
    "prompt of an earlier llama.cpp": (500, "exceed_context_size_error", "the request exceeds the available size"),
}


@pytest.mark.parametrize(("status", "kind", "message"), OTHER_STATUSES.values(), ids=OTHER_STATUSES)
async def test_full_context_is_understood_whatever_the_status(
    wire: WireServer, status: int, kind: str, message: str
) -> None:
    """RUN-10: if waiting cannot help because the conversation is too long, the error offers to compact it."""
    body = openai.error_body(message, kind, status)
    wire.script(Reply.of_json(body, status), Reply(openai.sse(body)))
    provider = OPENAI.make(wire)
    for _ in range(2):
        with pytest.raises(ContextTooLong, match="too long for model-1"):
            await ask(provider)
    await provider.close()


async def test_usual_limit_of_tokens_is_a_rate_limit(wire: WireServer) -> None:
    """RUN-10: a request that fits the limit, but not now, succeeds later."""
    words = "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 25000, Requested 9000."
    wire.script(OPENAI.error(429, "rate_limit_exceeded", words))
    provider = OPENAI.make(wire)
    with pytest.raises(RateLimited, match="Retry later"):
        await ask(provider)
    await provider.close()


async def test_refused_key_is_named_by_its_variable_and_never_shown(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the error names the variable of the refused key without the key."""
    wire.script(vendor.error(401, "authentication_error", f"Incorrect API key provided: {KEY}"))
    provider = vendor.make(wire, key_hint="VENDOR_API_KEY")
    with pytest.raises(AuthenticationFailed, match=r"\(VENDOR_API_KEY\).*provided: \[key\]$") as caught:
        await ask(provider)
    assert KEY not in str(caught.value)
    assert KEY not in repr(provider.endpoint)
    await provider.close()


ECHOES = [
    ("my-own-key-0123", "bad key my-own-key-0123!", r"bad key \[key\]!$"),
    ("my-own-key-0123", "your other key sk-ant-api03-AAAA is bad", r"your other key \[key\] is bad$"),
    ("key", "the key is bad", "the key is bad$"),
]


@pytest.mark.parametrize(("key", "message", "shown"), ECHOES)
async def test_echoed_keys_are_hidden(wire: WireServer, vendor: Vendor, key: str, message: str, shown: str) -> None:
    """RUN-10: keys that a server quotes are replaced, and other words are not."""
    wire.script(vendor.error(401, "authentication_error", message))
    provider = vendor.make(wire, key=key)
    with pytest.raises(AuthenticationFailed, match=shown):
        await ask(provider)
    await provider.close()


async def test_missing_key_is_asked_for(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the error for a missing key names the variable to set."""
    wire.script(vendor.error(401, "authentication_error", "no key"))
    provider = vendor.make(wire, key="", key_hint="VENDOR_API_KEY")
    with pytest.raises(AuthenticationFailed, match=r"needs an API key\. Set VENDOR_API_KEY"):
        await ask(provider)
    await provider.close()


@pytest.mark.parametrize("message", ["You exceeded your current quota.", "Insufficient Balance"])
async def test_empty_account_is_not_a_rate_limit(wire: WireServer, message: str) -> None:
    """RUN-10: an account without credit is not a rate limit, because waiting does not help."""
    wire.script(OPENAI.error(429, "insufficient_quota", message))
    provider = OPENAI.make(wire)
    with pytest.raises(RequestRejected, match="insufficient credit"):
        await ask(provider)
    await provider.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry_after": "7"}, 7.0), ({"retry_after_ms": "1500"}, 1.5), ({"retry_after": "soon"}, None), ({}, None)],
    ids=str,
)
async def test_retry_after_is_passed_on(
    wire: WireServer, vendor: Vendor, headers: dict[str, str], seconds: float | None
) -> None:
    """RUN-10: the server's Retry-After is part of the error."""
    wire.script(vendor.error(429, "rate_limit_error", "slow down", **headers))
    provider = vendor.make(wire)
    with pytest.raises(RateLimited) as caught:
        await ask(provider)
    assert caught.value.retry_after == seconds
    await provider.close()


async def test_retry_after_may_be_a_date(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: Retry-After may be a date, and one in the past means no wait."""
    wire.script(vendor.error(429, "rate_limit_error", "slow down", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    provider = vendor.make(wire)
    with pytest.raises(RateLimited) as caught:
        await ask(provider)
    assert caught.value.retry_after == 0.0
    await provider.close()


@pytest.mark.parametrize("status", [429, 529])
async def test_short_wait_is_made_by_the_sdk(wire: WireServer, vendor: Vendor, status: int) -> None:
    """RUN-10: after a short wait, the SDK repeats a request that was refused before any text, and users do not
    notice."""
    refusal = vendor.error(status, "overloaded_error", "wait", retry_after="0.01")
    wire.script(refusal, refusal, Reply(vendor.text("ok")))
    provider = vendor.make(wire, max_retries=2)
    assert plain(await ask(provider)) == (Text("ok"),)
    assert len(wire.requests) == 3
    await provider.close()


async def test_long_wait_is_not_made_in_silence(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: a long Retry-After is reported immediately instead of waited for in the SDK."""
    wire.script(vendor.error(429, "rate_limit_error", "wait", retry_after="60"), Reply(vendor.text("ok")))
    provider = vendor.make(wire, max_retries=2)
    with pytest.raises(RateLimited, match="in 60 s"):
        await ask(provider)
    assert len(wire.requests) == 1
    await provider.close()


INSIDE = [
    ("overloaded_error", Overloaded),
    ("api_error", Overloaded),
    ("rate_limit_error", RateLimited),
    ("invalid_request_error", RequestRejected),
    ("authentication_error", AuthenticationFailed),
    ("server_error", Overloaded),
    ("never_heard_of", Overloaded),
]


@pytest.mark.parametrize(("kind", "expected"), INSIDE)
async def test_error_inside_a_stream_ends_it(
    wire: WireServer, vendor: Vendor, kind: str, expected: type[ProviderError]
) -> None:
    """RUN-10: the text before the error is kept, and the error follows it."""
    wire.script(Reply([*vendor.opening("half"), *vendor.failure(kind, "it happened")]))
    provider = vendor.make(wire)
    seen: list[ProviderEvent] = []
    with pytest.raises(expected, match="it happened") as caught:
        await ask(provider, seen=seen)
    assert type(caught.value) is expected
    assert seen == [TextDelta("half")]
    await provider.close()


STRANGE_BODIES = [
    ('{"detail": [{"loc": ["body", "top_k"], "msg": "extra"}]}', "application/json", "top_k"),
    ('{"error": "model \'x\' not found, try pulling it first"}', "application/json", "try pulling it"),
    ('{"object": "error", "message": "bad thing", "code": 40001}', "application/json", "bad thing"),
    ("plain words", "text/plain", "plain words"),
    ('["odd"]', "application/json", "400"),
    (
        '[{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]',
        "application/json",
        "not valid",
    ),
    (
        '{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no such voice"}}}',
        "application/json",
        "no such voice",
    ),
    (
        '{"error": {"message": "Provider returned error", "metadata": {"raw": "{\\"message\\": \\"bad order\\"}"}}}',
        "application/json",
        "error: bad order",
    ),
]


@pytest.mark.parametrize(("body", "kind", "words"), STRANGE_BODIES)
async def test_other_servers_error_bodies_are_read(wire: WireServer, body: str, kind: str, words: str) -> None:
    """RUN-10: the error formats of compatible servers are read."""
    wire.script(Reply([body.encode()], 400, content_type=kind))
    provider = OPENAI.make(wire)
    with pytest.raises(RequestRejected if "not found" not in body else ModelNotFound, match=words):
        await ask(provider)
    await provider.close()


async def test_refused_prompt_is_no_refused_parameter(wire: WireServer) -> None:
    """RUN-10: if Azure's filter refuses the conversation, the error does not ask for another setting."""
    words = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    body = {"error": {"message": words, "type": None, "param": "prompt", "code": "content_filter", "status": 400}}
    wire.script(Reply.of_json(body, 400))
    provider = OPENAI.make(wire)
    with pytest.raises(RequestRejected, match="rejected the request") as caught:
        await ask(provider)
    assert caught.value.remedy == "model"
    await provider.close()


NO_TOOLS = {
    "Ollama": (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    "vLLM": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "OpenRouter": (404, "No endpoints found that support tool use. To learn more about provider routing, visit: …"),
}


@pytest.mark.parametrize("server", NO_TOOLS)
async def test_refused_tools_are_named(wire: WireServer, server: str) -> None:
    """RUN-10: if a server accepts no tools for a model, the error offers a chat without tools."""
    status, words = NO_TOOLS[server]
    wire.script(Reply.of_json({"error": {"message": words, "code": status}}, status))
    provider = OPENAI.make(wire)
    with pytest.raises(ToolsRefused, match="model-1 on openai doesn’t support tools") as caught:
        await ask(provider, request(tools=(ToolSpec("add", "Adds.", {}),)))
    assert "“Chat without tools”" in str(caught.value)
    assert (len(wire.requests), words in str(caught.value)) == (1, True)
    await provider.close()


@pytest.mark.parametrize(
    "words",
    [
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 222 "
        "instead.",
        "'tools' : maximum number of items is 128",
        "Maximum tools limit reached. 219 tools have been provided but the maximum is 200.",
        "tools[0].function_declarations: [FIELD_INVALID] At most 512 function declarations can be specified.",
        "Invalid 'tools[21].function.description': string too long. Expected a string with maximum length 1024, but "
        "got a string with length 2780 instead.",
    ],
)
async def test_too_many_tools_have_a_way_out(wire: WireServer, words: str) -> None:
    """RUN-10: if a server accepts fewer tools, or shorter descriptions, the error says how to send fewer."""
    error = {"message": words, "type": "invalid_request_error", "param": "tools", "code": "array_above_max_length"}
    wire.script(Reply.of_json({"error": error}, 400))
    provider = OPENAI.make(wire)
    with pytest.raises(ToolsRefused, match="openai doesn’t accept this many tools") as caught:
        await ask(provider, request(tools=(ToolSpec("add", "Adds.", {}),)))
    assert "of its MCP servers" in str(caught.value)
    assert (len(wire.requests), words in str(caught.value)) == (1, True)
    await provider.close()


@pytest.mark.parametrize(
    "words",
    [
        "No endpoints found that support image input",
        "No endpoints found matching your data policy (Free model publication). Configure: https://openrouter.ai/…",
        "No endpoints available matching your guardrail restrictions and data policy.",
    ],
)
async def test_missing_route_is_no_unknown_model(wire: WireServer, words: str) -> None:
    """RUN-10: if OpenRouter has no server for a request, the error does not call the model unknown."""
    wire.script(Reply.of_json({"error": {"message": words, "code": 404}}, 404))
    provider = OPENAI.make(wire)
    with pytest.raises(RequestRejected) as caught:
        await ask(provider)
    assert type(caught.value) is RequestRejected
    assert str(caught.value) == f"openai rejected the request (404). It says: {words}"
    await provider.close()


async def test_model_without_any_route_is_unknown(wire: WireServer) -> None:
    """RUN-10: if OpenRouter has no server at all for a model, another model is needed."""
    wire.script(Reply.of_json({"error": {"message": "No endpoints found for model-1.", "code": 404}}, 404))
    provider = OPENAI.make(wire)
    with pytest.raises(ModelNotFound):
        await ask(provider)
    await provider.close()


async def test_web_page_is_not_quoted(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the text of a proxy's error page is not shown to users."""
    wire.script(Reply([b"<!DOCTYPE html><html><body>Bad gateway</body></html>"], 502, content_type="text/html"))
    provider = vendor.make(wire)
    with pytest.raises(Overloaded) as caught:
        await ask(provider)
    assert str(caught.value) == f"{vendor.name} is overloaded or down (502). Retry later."
    await provider.close()
