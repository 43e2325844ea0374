"""Tests of Chat Completions' answers, OpenAI's and its imitators', through the SDK and a real socket."""

from __future__ import annotations

import json

import pytest

from agents.errors import ConnectionLost, Overloaded, ProviderError
from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, TextDelta, Usage
from agents.messages import Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import ToolSpec
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import Reply, WireServer
from tests.wire import openai as api
from tests.wire.vendors import OPENAI, ask, done, hear, parts, request

ADD = ToolSpec("add", "Adds.", {"properties": {"a": {"type": "integer"}}})
FIELD = {"field": "reasoning_content"}

# One answer with every kind of chunk, named by its content.
EVERYTHING: list[tuple[str, Json]] = [
    ("role", api.role()),
    *(("reasoning", chunk) for chunk in api.reasoning("Let me ", "see…\n")),
    *(("content", chunk) for chunk in api.text("Sure", ": ")),
    *zip(["call", "arguments", "arguments"], api.tool_call(0, "call_1", "add", '{"a": 1, ', '"b": "é"}'), strict=True),
    *zip(["call"], api.tool_call(1, "call_2", "sub"), strict=True),
    ("finish", api.finish("length")),
    ("usage", api.usage(240, 42, 200)),
]
HEARD: list[ProviderEvent] = [
    ReasoningDelta("Let me see…\n"),
    PartDone(Thinking("Let me see…\n", "openai", FIELD)),
    TextDelta("Sure: "),
    PartDone(Text("Sure: ")),
    PartDone(ToolCall("call_1", "add", {"a": 1, "b": "é"}, '{"a": 1, "b": "é"}')),
    PartDone(ToolCall("call_2", "sub", {})),
    ResponseDone("max_tokens", Usage(240, 42, 200, None, 0)),
]


async def test_everything_in_one_answer(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-02, MSG-06, MSG-08: every kind of part arrives in order, with the number of tokens."""
    assert await hear(wire, gpt, *(chunk for _, chunk in EVERYTHING)) == HEARD


@pytest.mark.parametrize("kind", ["reasoning", "content", "call", "arguments", "finish", "usage"])
async def test_no_kind_of_chunk_can_be_missing(wire: WireServer, gpt: OpenAIProvider, kind: str) -> None:
    """RUN-02: without any one kind of chunk, the answer differs or is missing."""
    wire.script(Reply(api.sse(*(chunk for name, chunk in EVERYTHING if name != kind))))
    try:
        heard = await ask(gpt)
    except ProviderError:
        return
    assert heard != HEARD


async def test_role_and_the_last_line_say_nothing_new(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-02: servers may leave out the role, [DONE] or the last blank line."""
    chunks = [chunk for name, chunk in EVERYTHING if name != "role"]
    assert await hear(wire, gpt, *chunks, ended=False) == HEARD
    wire.script(Reply([*api.sse(*chunks, done=False), b"data: [DONE]"]))
    assert await ask(gpt) == HEARD


async def test_call_goes_back_byte_for_byte(wire: WireServer, gpt: OpenAIProvider) -> None:
    """MSG-08: arguments are sent exactly, reasoning in its field, and calls with their results."""
    wire.script(
        Reply(api.sse(*(chunk for _, chunk in EVERYTHING[:8]), api.finish("tool_calls"))), Reply(OPENAI.text("2"))
    )
    answer = Message("assistant", parts(await ask(gpt, request("add", tools=(ADD,)))))
    second = request("add", answer, Message("user", (ToolResult("call_1", "2"),)), tools=(ADD,))
    assert parts(await ask(gpt, second)) == (Text("2"),)
    function = {"name": "add", "arguments": '{"a": 1, "b": "é"}'}
    assert wire.requests[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Sure: ",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
            "reasoning_content": "Let me see…\n",
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
    ]


async def test_signature_of_a_call_goes_back_to_its_model(wire: WireServer, gpt: OpenAIProvider) -> None:
    """MSG-08: a call has its signature in the next requests to the same model, and in no others.

    Gemini's models refuse a request without it, and other servers refuse a field that they do not know.
    """
    extra = {"google": {"thought_signature": "c2ln"}}
    head, *rest = api.tool_call(0, "call_1", "add", "{}")
    head["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = extra
    wire.script(Reply(api.sse(head, *rest, *api.tool_call(1, "call_2", "add", "{}"), api.finish("tool_calls"))))
    answer = Message("assistant", parts(await ask(gpt, request("add", tools=(ADD,)))))
    results = Message("user", (ToolResult("call_1", "2"), ToolResult("call_2", "2")))
    for model in ("model-1", "model-2"):
        await ask(gpt, request("add", answer, results, tools=(ADD,), model=model))
    sent = [one.body["messages"][1]["tool_calls"] for one in wire.requests[1:]]
    assert [[call.get("extra_content") for call in calls] for calls in sent] == [[extra, None], [None, None]]


async def test_details_of_reasoning_go_back_within_their_turn(wire: WireServer, gpt: OpenAIProvider) -> None:
    """MSG-08: OpenRouter gets the details of the reasoning whole, for the model that made them.

    It refuses a request to Gemini's models without them, because Gemini's signature is among them.
    """
    text = {"type": "reasoning.text", "index": 0, "format": "google-gemini-v1"}
    secret = {"type": "reasoning.encrypted", "index": 1, "format": "google-gemini-v1", "data": "c2ln"}
    pieces = [
        [{**text, "text": "Let ", "signature": None}],
        [{**text, "text": "me see"}, {**secret, "id": "call_1"}],
        [{**secret, "id": "call_2"}, {**text, "text": "…", "signature": "s"}],
    ]
    chunks = [api.chunk({"reasoning_details": piece}) for piece in pieces]
    wire.script(Reply(api.sse(*chunks, *api.tool_call(0, "call_1", "add", "{}"), api.finish("tool_calls"))))
    answer = Message("assistant", parts(await ask(gpt, request("add", tools=(ADD,)))))
    result = Message("user", (ToolResult("call_1", "2"),))
    await ask(gpt, request("add", answer, result, tools=(ADD,)))
    await ask(gpt, request("add", answer, result, tools=(ADD,), model="model-2"))
    await ask(gpt, request("add", answer, result, Message("assistant", (Text("2"),)), "and?", tools=(ADD,)))
    sent = [one.body["messages"][1].get("reasoning_details") for one in wire.requests[1:]]
    whole = {**text, "text": "Let me see…", "signature": "s"}
    assert sent == [[whole, {**secret, "id": "call_1"}, {**secret, "id": "call_2"}], None, None]


REFUSED_DETAILS = {
    "Anthropic": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "Gemini": "Corrupted thought signature.",
    "Vertex": "Unable to submit request because Thought signature is not valid.",
}


@pytest.mark.parametrize("maker", REFUSED_DETAILS)
async def test_details_of_reasoning_that_are_refused_are_left_out(
    wire: WireServer, gpt: OpenAIProvider, maker: str
) -> None:
    """MSG-08, RUN-10: the vendor behind OpenRouter may refuse the reasoning of a turn whose beginning has changed.

    The calls stay. Later reasoning is sent.
    """

    def round_(call_id: str, text: str) -> tuple[Message, Message]:
        details = json.dumps([{"type": "reasoning.text", "text": text, "signature": "s"}])
        call = ToolCall(call_id, "add", {}, data={"reasoning_details": details, "maker": f"{gpt.name}/model-1"})
        thought = Thinking(text, gpt.name, {"field": "reasoning"})
        return Message("assistant", (thought, call)), Message("user", (ToolResult(call_id, "1"),))

    raw = json.dumps({"error": {"message": REFUSED_DETAILS[maker]}})
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    wire.script(Reply.of_json(body, 400))
    old, new = round_("c1", "hm"), round_("c2", "so")
    await ask(gpt, request("?", *old, tools=(ADD,)))
    await ask(gpt, request("?", *old, *new, tools=(ADD,)))
    answers = [[one for one in each.body["messages"] if one["role"] == "assistant"] for each in wire.requests]
    assert [[one.get("reasoning") for one in each] for each in answers] == [["hm"], [None], [None, "so"]]
    sent = [["reasoning_details" in one for one in each] for each in answers]
    assert sent == [[True], [False], [False, True]]
    assert [[len(one["tool_calls"]) for one in each] for each in answers] == [[1], [1], [1, 1]]


STOPS = [
    ("stop", "end"),
    ("length", "max_tokens"),
    ("content_filter", "refusal"),
    ("tool_calls", "end"),
    ("function_call", "end"),
    ("eos_token", "end"),
    ("max_tokens", "max_tokens"),
    ("model_length", "context"),
    ("model_context_window_exceeded", "context"),
    ("sensitive", "refusal"),
    ("MAX_TOKENS", "max_tokens"),
    ("content_filter: RECITATION", "refusal"),
]


@pytest.mark.parametrize(("reason", "expected"), STOPS)
async def test_finish_reason_is_reported_as_a_stop_reason(
    wire: WireServer, gpt: OpenAIProvider, reason: str, expected: str
) -> None:
    """RUN-10: the finish reason determines how the turn continues; without a call there is no tool round."""
    assert done(await hear(wire, gpt, *api.text("a"), api.finish(reason))).stop_reason == expected


async def test_refusal_is_shown_and_told(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: a refusal comes in its own field, and the user reads it."""
    heard = await hear(wire, gpt, api.chunk({"refusal": "I "}), api.chunk({"refusal": "won't."}), api.finish())
    assert heard[1:] == [PartDone(Text("I won't.")), ResponseDone("refusal", Usage())]


@pytest.mark.parametrize(
    "reason",
    [
        "abort",
        "error",
        "network_error",
        "insufficient_system_resource",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ],
)
async def test_server_that_gives_up_is_out_of_order(wire: WireServer, gpt: OpenAIProvider, reason: str) -> None:
    """RUN-10: some servers report a failure in the finish reason."""
    wire.script(Reply(api.sse(*api.text("a"), api.finish(reason))))
    with pytest.raises(Overloaded):
        await ask(gpt)


async def test_answer_without_its_end_is_lost(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: without a finish reason and [DONE], the answer was cut off."""
    wire.script(Reply(api.sse(*api.text("a"), done=False)))
    with pytest.raises(ConnectionLost):
        await ask(gpt)


async def test_done_alone_is_an_end(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-02: some servers send [DONE] without a finish reason, which is an end."""
    assert await hear(wire, gpt, *api.text("a")) == [
        TextDelta("a"),
        PartDone(Text("a")),
        ResponseDone("end", Usage()),
    ]


async def test_answer_in_one_piece_of_json_is_read(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-02: the answer of a server that does not stream is read."""
    calls = [{"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}}]
    message = {"content": "ok", "reasoning_content": "hm", "tool_calls": calls}
    wire.script(Reply.of_json(api.completion(message, "tool_calls")))
    heard = await ask(gpt)
    call = ToolCall("a", "add", {"x": 1}, '{"x":1}')
    assert parts(heard) == (Thinking("hm", "openai", FIELD), Text("ok"), call)
    assert done(heard) == ResponseDone("tool_use", Usage(11, 7, 0, None, 0))


async def test_error_in_one_piece_of_json_is_an_error(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-10: some servers report an error with status 200."""
    wire.script(Reply.of_json(api.error_body("Model is loading", "server_error")))
    with pytest.raises(Overloaded, match="Model is loading"):
        await ask(gpt)


async def test_tool_names_come_back_as_they_were_given(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-11: a name that the vendor refuses is rewritten in the request and restored in the answer."""
    wire.script(Reply(api.sse(*api.tool_call(0, "a", "web_fetch", "{}"), api.finish("tool_calls"))))
    heard = await ask(gpt, request("go", tools=(ToolSpec("web.fetch", "", {}),)))
    assert parts(heard) == (ToolCall("a", "web.fetch", {}, "{}"),)


@pytest.mark.parametrize(
    ("url", "usual"),
    [
        (None, ("max_completion_tokens", "short")),
        ("https://eu.api.openai.com/v1", ("max_completion_tokens", "short")),
        ("https://team.openai.azure.com/openai/v1", ("max_completion_tokens", "short")),
        ("http://localhost:11434/v1", ("max_tokens", "any")),
        ("https://example.com/api.openai.com/v1", ("max_tokens", "any")),
        ("https://notopenai.com/v1", ("max_tokens", "any")),
    ],
)
def test_address_tells_the_dialect(url: str | None, usual: tuple[str, str]) -> None:
    """RUN-10: the vendor's own address has its own dialect from the first request."""
    dialect = OpenAIProvider("openai", "k", url, api="chat").dialect
    assert (dialect.limit_field, dialect.call_ids) == usual
