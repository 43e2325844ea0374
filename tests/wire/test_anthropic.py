"""Tests of Anthropic's answers, through its SDK and a real socket."""

from __future__ import annotations

import pytest

from agents.errors import ConnectionLost, ProviderError, ResponseBroken
from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, TextDelta, Usage
from agents.messages import Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import ListedModel, ToolSpec
from agents.reasoning import ReasoningSupport
from tests.wire import Cut, Reply, WireServer
from tests.wire import anthropic as api
from tests.wire.vendors import ANTHROPIC, ask, done, parts, request

ADD = ToolSpec("add", "Adds.", {"properties": {"a": {"type": "integer"}}})
THOUGHT = Thinking("Let me see…\n", "anthropic", {"signature": api.sign("Let me see…\n")})

# One answer with every kind of event.
EVERYTHING: list[Json] = [
    api.message_start(input_tokens=10, cache_read=200, cache_write=30),
    api.ping(),
    *api.thinking(0, "Let me ", "see…\n"),
    *api.redacted_thinking(1, "b3BhcXVl"),
    *api.text(2, "Sure", ": "),
    *api.tool_use(3, "toolu_1", "add", '{"a"', ": 1, ", '"b": "é"}'),
    *api.tool_use(4, "toolu_2", "sub"),
    *api.end("tool_use", output_tokens=42, thinking_tokens=9),
]
HEARD: list[ProviderEvent] = [
    ReasoningDelta("Let me see…\n"),
    PartDone(THOUGHT),
    PartDone(Thinking("", "anthropic", {"redacted": "b3BhcXVl"})),
    TextDelta("Sure: "),
    PartDone(Text("Sure: ")),
    PartDone(ToolCall("toolu_1", "add", {"a": 1, "b": "é"}, '{"a": 1, "b": "é"}')),
    PartDone(ToolCall("toolu_2", "sub", {})),
    ResponseDone("tool_use", Usage(240, 42, 200, 30, 9)),
]


async def test_everything_in_one_answer(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-02, MSG-06, MSG-08: every kind of block arrives in order, with the number of tokens."""
    wire.script(Reply(api.sse(*EVERYTHING)))
    events = await ask(claude)
    assert events == HEARD
    done(events)


def kind_of(event: Json) -> str:
    block = event.get("delta") or event.get("content_block") or {}
    return f"{event['type']} {block.get('type', '')}".strip()


@pytest.mark.parametrize("kind", sorted({kind_of(event) for event in EVERYTHING} - {"ping", "message_stop"}))
async def test_no_event_type_can_be_missing(wire: WireServer, claude: AnthropicProvider, kind: str) -> None:
    """RUN-02: without any one type of event, the answer differs or is missing."""
    wire.script(Reply(api.sse(*(event for event in EVERYTHING if kind_of(event) != kind))))
    try:
        heard = await ask(claude)
    except ProviderError:
        return
    assert heard != HEARD


async def test_pings_and_unknown_events_say_nothing(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-02: pings and unknown events are ignored, because the vendor may add events, deltas and blocks."""
    strange = [
        {"type": "telepathy", "index": 7},
        api.block_start(9, {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        api.delta(9, {"type": "input_json_delta", "partial_json": "{}"}),
        api.delta(9, {"type": "citations_delta", "citation": {}}),
        api.block_stop(9),
        *api.text(10),
    ]
    wire.script(Reply(api.sse(EVERYTHING[0], *strange, *EVERYTHING[2:])))
    assert await ask(claude) == HEARD


async def test_thinking_goes_back_byte_for_byte(wire: WireServer, claude: AnthropicProvider) -> None:
    """MSG-08: thinking goes back exactly, as the server's check of its signature proves."""
    wire.script(Reply(api.sse(*EVERYTHING)), Reply(ANTHROPIC.text("2")))
    first = request("add", tools=(ADD,), options={"thinking_budget": 2000})
    answer = Message("assistant", parts(await ask(claude, first)))
    results = Message("user", (ToolResult("toolu_1", "2"), ToolResult("toolu_2", "", is_error=True)))
    second = request(*first.messages, answer, results, tools=(ADD,), options={"thinking_budget": 2000})
    assert parts(await ask(claude, second)) == (Text("2"),)
    sent = wire.requests[1].body
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me see…\n", "signature": api.sign("Let me see…\n")},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "Sure: "},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": "é"}},
        {"type": "tool_use", "id": "toolu_2", "name": "sub", "input": {}},
    ]
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2000}


async def test_thinking_that_is_not_shown_keeps_its_signature(wire: WireServer, claude: AnthropicProvider) -> None:
    """MSG-08: newer models leave out the text of thinking, and the signature still goes back."""
    wire.script(Reply(api.sse(api.message_start(), *api.thinking(0), *api.text(1, "ok"), *api.end())))
    hidden = Thinking("", "anthropic", {"signature": api.sign("")})
    assert parts(await ask(claude)) == (hidden, Text("ok"))


STOPS = [
    ("end_turn", "end"),
    ("stop_sequence", "end"),
    ("tool_use", "tool_use"),
    ("max_tokens", "max_tokens"),
    ("model_context_window_exceeded", "context"),
    ("refusal", "refusal"),
    ("pause_turn", "pause"),
    ("something_new", "end"),
]


@pytest.mark.parametrize(("reason", "expected"), STOPS)
async def test_stop_reason_is_reported(wire: WireServer, claude: AnthropicProvider, reason: str, expected: str) -> None:
    """RUN-10: the stop reason of the model determines how the turn continues."""
    wire.script(Reply(api.sse(api.message_start(), *api.text(0, "a"), *api.end(reason))))
    assert done(await ask(claude)).stop_reason == expected


async def test_explanation_of_a_refusal_is_read(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-10: the vendor's explanation of a refusal is read, if there is one."""
    refusal: Json = {"type": "refusal", "category": "cyber", "explanation": " This request\nlooks harmful. "}
    for details, expected in ((refusal, "This request looks harmful."), ({**refusal, "explanation": None}, "")):
        change, stop = api.end("refusal")
        change["delta"]["stop_details"] = details
        wire.script(Reply(api.sse(api.message_start(), change, stop)))
        assert done(await ask(claude)) == ResponseDone("refusal", Usage(11, 7, 0, 0), expected)


@pytest.mark.parametrize("written", ['{"a": ', "[1]", '"a"', "{'a': 1}", '{"a": NaN}'])
async def test_arguments_that_are_no_object_are_kept_as_text(
    wire: WireServer, claude: AnthropicProvider, written: str
) -> None:
    """RUN-11: invalid arguments reach the tool, which reports them to the model."""
    wire.script(Reply(api.sse(api.message_start(), *api.tool_use(0, "t1", "add", written), *api.end("tool_use"))))
    assert parts(await ask(claude)) == (ToolCall("t1", "add", {"_raw": written}, written),)


async def test_tool_names_come_back_as_they_were_given(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-11: a name that the vendor refuses is rewritten in the request and restored in the answer."""
    wire.script(Reply(api.sse(api.message_start(), *api.tool_use(0, "t1", "web_fetch_now"), *api.end("tool_use"))))
    asked = request("go", tools=(ToolSpec("web.fetch now", "", {}),))
    assert parts(await ask(claude, asked)) == (ToolCall("t1", "web.fetch now", {}),)


async def test_blocks_that_start_full_are_read(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-02: compatible servers may put the whole block into its start."""
    call: Json = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": "é"}}
    blocks: list[Json] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "all"},
        call,
    ]
    events = [event for i, one in enumerate(blocks) for event in (api.block_start(i, one), api.block_stop(i))]
    wire.script(Reply(api.sse(api.message_start(), *events, *api.end())))
    heard = await ask(claude)
    done(heard)
    thought = Thinking("hm", "anthropic", {"signature": "s"})
    assert parts(heard) == (thought, Text("all"), ToolCall("t1", "add", {"a": "é"}, '{"a": "é"}'))


async def test_answer_in_one_piece_of_json_is_read(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-02: the answer of a server that does not stream is read."""
    message = api.message_start()["message"] | {"stop_reason": "max_tokens", "content": [{"type": "text", "text": "a"}]}
    wire.script(Reply.of_json(message))
    assert await ask(claude) == [
        TextDelta("a"),
        PartDone(Text("a")),
        ResponseDone("max_tokens", Usage(11, 1, 0, 0)),
    ]


BROKEN = {
    "block in a block": [api.block_start(0, {"type": "text", "text": ""}), *api.text(1, "a")],
    "delta of another block": [api.block_start(0, {"type": "text", "text": ""}), api.delta(1, {"type": "text_delta"})],
    "delta without its text": [api.block_start(0, {"type": "text", "text": ""}), api.delta(0, {"type": "text_delta"})],
    "end inside a block": [api.block_start(0, {"type": "text", "text": ""})],
    "start without a block": [{"type": "content_block_start", "index": 0}],
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_stream_that_contradicts_itself_is_broken(wire: WireServer, claude: AnthropicProvider, kind: str) -> None:
    """RUN-10: a contradictory stream is an error and is not interpreted."""
    wire.script(Reply(api.sse(api.message_start(), *BROKEN[kind], *api.end())))
    with pytest.raises(ResponseBroken):
        await ask(claude)


@pytest.mark.parametrize("ending", [[], [Cut()]], ids=["closed", "cut"])
async def test_stop_reason_is_an_end_where_no_block_is_open(
    wire: WireServer, claude: AnthropicProvider, ending: list[Cut]
) -> None:
    """RUN-02: without the last event, as on some servers, the answer counts as complete."""
    wire.script(Reply([*api.sse(api.message_start(), *api.text(0, "a"), *api.end()[:1]), *ending]))
    heard = await ask(claude)
    assert heard[1:] == [PartDone(Text("a")), ResponseDone("end", Usage(11, 7, 0, 0))]


async def test_stop_reason_inside_a_block_is_no_end(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-10: a stop reason inside a block is an error, because the rest of the block is missing."""
    wire.script(Reply(api.sse(api.message_start(), *api.text(0, "a")[:-1], *api.end()[:1])))
    with pytest.raises(ConnectionLost):
        await ask(claude)


async def test_answer_without_its_end_is_lost(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-10: an answer without a stop reason was cut off, even after the last block."""
    wire.script(Reply(api.sse(*EVERYTHING[:-2])))
    with pytest.raises(ConnectionLost):
        await ask(claude)


async def test_server_counts_nothing(wire: WireServer, claude: AnthropicProvider) -> None:
    """MSG-06: figures that the server does not send are unknown, not zero."""
    bare = {"type": "message_start", "message": {"id": "m", "role": "assistant"}}
    wire.script(
        Reply(api.sse(bare, *api.text(0, "a"), {"type": "message_delta", "delta": {}}, {"type": "message_stop"}))
    )
    assert done(await ask(claude)) == ResponseDone("end", Usage())


def capability(supported: bool, **parts: Json) -> Json:
    return {"supported": supported, **parts}


async def test_reasoning_is_read_from_the_list_of_anthropic(wire: WireServer, claude: AnthropicProvider) -> None:
    """RUN-05, RUN-16: the list states how models reason, and what they can read and write. Other servers state less."""
    yes, no = capability(True), capability(False)
    effort = capability(True, low=yes, medium=yes, high=yes, max=no)
    thinking = capability(True, types={"adaptive": yes, "enabled": no, "disabled": yes})
    plain = {"effort": capability(False, low=no), "thinking": capability(False, types={"adaptive": no, "enabled": no})}
    stated: list[Json] = [
        {
            "id": "claude-opus-9",
            "max_input_tokens": 2_000_000,
            "max_tokens": 256_000,
            "capabilities": {"effort": effort, "thinking": thinking},
        },
        {"id": "plain", "max_input_tokens": 0, "max_tokens": None, "capabilities": plain},
        {"id": "odd", "max_input_tokens": "4k", "capabilities": ["vision"]},
        {"id": "silent"},
    ]
    wire.script_lists(Reply.of_json({"data": [{"type": "model"} | model for model in stated], "has_more": False}))
    newest = ReasoningSupport(efforts=("low", "medium", "high"), adaptive=True, always=True, most_tokens=256_000)
    assert await claude.list_models() == {
        "claude-opus-9": ListedModel(2_000_000, newest),
        "plain": ListedModel(None, ReasoningSupport(reasons=False)),
        "odd": ListedModel(),
        "silent": ListedModel(),
    }
