"""Tests of answers over OpenAI's Responses API, through the SDK and a real socket."""

from __future__ import annotations

import json

import pytest

from agents.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextTooLong,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
)
from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, TextDelta, Usage
from agents.messages import Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import ToolSpec
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import Reply, WireServer
from tests.wire import responses as api
from tests.wire.vendors import RESPONSES, ask, done, parts, request

ADD = ToolSpec("add", "Adds.", {"properties": {"a": {"type": "integer"}}})
ITEM = {"item": json.dumps(api.reasoning_item(["Let me see…", "It is a sum."], tail="a1"))}

# One answer with every kind of event.
EVERYTHING: list[Json] = api.whole(
    api.reasoning(0, ["Let me ", "see…"], ["It is a sum."], tail="a1"),
    api.message(1, "Sure", ": ", tail="a1", phase="commentary"),
    api.function_call(2, "call_1", "add", '{"a": 1, ', '"b": "é"}', tail="a1"),
    api.function_call(3, "call_2", "sub", tail="a1"),
    usage=api.usage(240, 42, 200, 17),
)
HEARD: list[ProviderEvent] = [
    ReasoningDelta("Let me see…\n\nIt is a sum."),
    PartDone(Thinking("Let me see…\n\nIt is a sum.", "responses", ITEM)),
    TextDelta("Sure: "),
    PartDone(Text("Sure: ", {"item_id": "msg_a1_1", "after": "rs_a1", "phase": "commentary"})),
    PartDone(
        ToolCall("call_1", "add", {"a": 1, "b": "é"}, '{"a": 1, "b": "é"}', {"item_id": "fc_a1_2", "after": "msg_a1_1"})
    ),
    PartDone(ToolCall("call_2", "sub", {}, "", {"item_id": "fc_a1_3", "after": "fc_a1_2"})),
    ResponseDone("tool_use", Usage(240, 42, 200, 0, 17)),
]


async def hear(wire: WireServer, provider: OpenAIProvider, *events: Json) -> list[ProviderEvent]:
    """Return the provider's events for these, after checking that they are consistent."""
    wire.script(Reply(api.sse(*events)))
    heard = await ask(provider)
    done(heard)
    return [_readable(event) for event in heard]


def _readable(event: ProviderEvent) -> ProviderEvent:
    """Return the event with the reasoning item as readable JSON."""
    match event:
        case PartDone(Thinking(text, provider, {"item": item})):
            return PartDone(Thinking(text, provider, {"item": json.dumps(json.loads(item))}))
    return event


async def test_everything_in_one_answer(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02, MSG-06, MSG-08: every kind of item arrives in order, with the number of tokens."""
    assert await hear(wire, o, *EVERYTHING) == HEARD


async def test_events_that_repeat_others_are_not_needed(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: some servers leave out the events that repeat others."""
    needed = ("delta", "output_item.done", "response.completed")
    assert await hear(wire, o, *(event for event in EVERYTHING if event["type"].endswith(needed))) == HEARD


async def test_response_without_deltas_gives_the_same_events(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: some servers send whole items, or only the whole response."""
    whole = [event for event in EVERYTHING if "delta" not in event["type"]]
    assert await hear(wire, o, *whole) == HEARD
    assert await hear(wire, o, EVERYTHING[-1]) == HEARD


async def test_deltas_alone_are_an_answer(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: text whose item does not end is reported without an id."""
    last = {"type": "response.completed", "response": api.response((), "completed", usage=api.usage())}
    heard = await hear(wire, o, api.text_delta(0, "a"), api.text_delta(0, "b"), last)
    assert heard == [TextDelta("ab"), PartDone(Text("ab")), ResponseDone("end", Usage(11, 7, 0, 0, 0))]


async def test_arguments_of_parallel_calls_are_kept_apart(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-11: if the items repeat nothing, the alternating deltas of two calls are kept apart."""
    one, two = api.function_call(0, "c1", "add", '{"a":', "1}"), api.function_call(1, "c2", "add", '{"a":', "2}")
    grown = [event for pair in zip(one, two, strict=True) for event in pair if event["type"].endswith(".delta")]
    ends = [{**event, "item": {**event["item"], "arguments": ""}} for event in (one[-1], two[-1])]
    last = {"type": "response.completed", "response": api.response((), "completed", usage=api.usage())}
    calls = [event.part for event in await hear(wire, o, *grown, *ends, last) if isinstance(event, PartDone)]
    assert [(call.id, call.arguments) for call in calls if isinstance(call, ToolCall)] == [
        ("c1", {"a": 1}),
        ("c2", {"a": 2}),
    ]


@pytest.mark.parametrize("kind", ["delta", "output_item.done", "completed"])
async def test_no_kind_of_event_counts_for_nothing(wire: WireServer, o: OpenAIProvider, kind: str) -> None:
    """RUN-02: deltas or finished items alone, without the end of the response, count as a lost connection."""
    events = [event for event in EVERYTHING if kind in event["type"] and kind != "completed"]
    wire.script(Reply(api.sse(*events)))
    with pytest.raises(ConnectionLost):
        await ask(o)


async def test_events_without_a_name_are_known_by_their_type(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: compatible servers leave out the line `event:`, and end with [DONE]."""
    lines = [one.split(b"\n", 1)[1] for one in api.sse(*EVERYTHING)]
    wire.script(Reply([*lines, b"data: [DONE]\n\n"]))
    assert [_readable(event) for event in await ask(o)] == HEARD


async def test_items_that_grow_in_turns_are_parts_in_turns(wire: WireServer, o: OpenAIProvider) -> None:
    """UI-01: if two items are open at the same time, nothing is lost or repeated."""
    one, two = api.message(0, "a", "b"), api.message(1, "c", "d")
    mixed = [event for pair in zip(one, two, strict=True) for event in pair]
    events = api.whole(mixed)
    texts = [event.part for event in await hear(wire, o, *events) if isinstance(event, PartDone)]
    assert sorted("".join(part.text for part in texts if isinstance(part, Text))) == ["a", "b", "c", "d"]


async def test_response_goes_back_as_it_was(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08: the items of a tool round go back exactly and in order, with the encrypted reasoning."""
    wire.script(Reply(api.sse(*EVERYTHING)), Reply(RESPONSES.text("2")))
    answer = Message("assistant", parts(await ask(o, request("add", tools=(ADD,)))))
    results = Message("user", (ToolResult("call_1", "2"), ToolResult("call_2", "?", True)))
    second = request("add", answer, results, tools=(ADD,))
    assert parts(await ask(o, second))[0] == Text("2", {"item_id": "msg_0_0"})
    made = [{**event["item"]} for event in EVERYTHING if event["type"] == "response.output_item.done"]
    for item in made:
        item.pop("status", None)
        if item["type"] == "message":
            item["status"] = "completed"
            item["content"] = [{"type": "output_text", "text": "Sure: ", "annotations": []}]
    made[-1]["arguments"] = "{}"
    assert wire.requests[1].body["input"][1:] == [
        *made,
        {"type": "function_call_output", "call_id": "call_1", "output": "2"},
        {"type": "function_call_output", "call_id": "call_2", "output": "?"},
    ]


async def test_reasoning_of_another_model_stays_behind(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08, RUN-16: after a switch of models, the earlier model's reasoning is not sent, because it cannot be
    read."""
    wire.script(Reply(api.sse(*EVERYTHING)), Reply(RESPONSES.text("2")))
    made = parts(await ask(o))
    thought = made[0]
    assert isinstance(thought, Thinking)
    answer = Message("assistant", (Thinking(thought.text, "responses", thought.data, "model-1"), made[1]))
    await ask(o, request("add", answer, "And now?", model="model-2"))
    assert [item.get("type", "message") for item in wire.requests[1].body["input"]] == ["message"] * 3
    assert len(wire.requests) == 2


async def test_hidden_reasoning_goes_back_too(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08: reasoning without a summary shows nothing, and goes back with the item that follows."""
    heard = await hear(wire, o, *api.whole(api.reasoning(0, tail="a1"), api.message(1, "ok", tail="a1")))
    item = json.dumps(api.reasoning_item([], tail="a1"))
    assert heard[0] == PartDone(Thinking("", "responses", {"item": item}))
    answer = Message("assistant", tuple(event.part for event in heard if isinstance(event, PartDone)))
    await ask(o, request("a", answer, "b"))
    assert wire.requests[1].body["input"][1] == json.loads(item)


async def test_reasoning_before_an_item_that_is_not_kept_stays_behind(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08: reasoning before an empty message is not sent, because the API accepts no other item in its place."""
    items = (api.reasoning(0, ["hm"], tail="a1"), api.message(1, tail="a1"), api.message(2, "ok", tail="a1"))
    heard = await hear(wire, o, *api.whole(*items))
    made = tuple(event.part for event in heard if isinstance(event, PartDone))
    assert made[1:] == (Text("ok", {"item_id": "msg_a1_2", "after": "msg_a1_1"}),)
    await ask(o, request("a", Message("assistant", made), "b"))
    assert wire.requests[1].body["input"][1] == {"role": "assistant", "content": "ok"}


async def test_reasoning_that_the_api_cannot_read_again_is_only_shown(wire: WireServer, o: OpenAIProvider) -> None:
    """MSG-08: reasoning without encrypted content is not sent, because the server stores nothing."""
    plain = api.reasoning(0, ["hm"], tail="a1", encrypted=False)
    heard = await hear(wire, o, *api.whole(plain, api.reasoning(1, tail="b2", encrypted=False), api.message(2, "ok")))
    assert [event.part for event in heard if isinstance(event, PartDone)] == [
        Thinking("hm", "responses"),
        Text("ok", {"item_id": "msg_0_2", "after": "rs_b2"}),
    ]


async def test_raw_reasoning_text_is_shown(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: the reasoning of open models is shown and goes back."""
    item = {"id": "rs_a1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm…"}]}
    delta = {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm…"}
    heard = await hear(wire, o, *api.whole([delta, api.done(0, item)], api.message(1, "ok", tail="a1")))
    assert heard[:2] == [ReasoningDelta("hm…"), PartDone(Thinking("hm…", "responses", {"item": json.dumps(item)}))]


async def test_refusal_is_shown_and_told(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-10: the user reads the refusal, which does not go back as an answer."""
    heard = await hear(wire, o, *api.whole(api.refusal(0, "I ", "won't.")))
    assert heard == [
        TextDelta("I won't."),
        PartDone(Text("I won't.")),
        ResponseDone("refusal", Usage(11, 7, 0, 0, 0)),
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("steered", "max_tokens"),
        (None, "max_tokens"),
    ],
)
async def test_incomplete_answer_says_why(
    wire: WireServer, o: OpenAIProvider, reason: str | None, expected: str
) -> None:
    """RUN-10: the text stays, and an incomplete call is not run."""
    cut = api.function_call(1, "call_1", "add", '{"a": ', status="incomplete")
    events = api.whole(
        api.message(0, "Well", status="incomplete"), cut, status="incomplete", incomplete_details={"reason": reason}
    )
    heard = await hear(wire, o, *events)
    assert done(heard).stop_reason == expected
    data = {"item_id": "fc_0_1", "after": "msg_0_0"}
    assert heard[2] == PartDone(ToolCall("call_1", "add", {"_raw": '{"a": '}, '{"a": ', data))


FAILURES: list[tuple[str, str, type[ProviderError]]] = [
    ("server_error", "The model failed.", Overloaded),
    ("rate_limit_exceeded", "Slow down.", RateLimited),
    ("invalid_prompt", "The prompt is flagged.", RequestRejected),
    ("image_parse_error", "That is no image.", RequestRejected),
    ("context_length_exceeded", "Your input exceeds the context window of this model.", ContextTooLong),
    ("invalid_api_key", "No.", AuthenticationFailed),
    ("never_heard_of", "What?", Overloaded),
]


@pytest.mark.parametrize(("code", "words", "expected"), FAILURES)
@pytest.mark.parametrize("make", [api.failed, api.error_event], ids=["failed", "error"])
async def test_failure_inside_the_stream_raises_the_matching_error_and_keeps_the_text(
    wire: WireServer, o: OpenAIProvider, make: object, code: str, words: str, expected: type[ProviderError]
) -> None:
    """RUN-10: the text before the failure stays."""
    assert callable(make)
    wire.script(Reply([*RESPONSES.opening("half"), *api.sse(make(code, words))]))
    seen: list[ProviderEvent] = []
    with pytest.raises(expected, match=words) as caught:
        await ask(o, seen=seen)
    assert type(caught.value) is expected
    assert seen == [TextDelta("half")]


async def test_failure_without_words_is_the_servers(wire: WireServer, o: OpenAIProvider) -> None:
    """A failure without a message is reported as the server's (RUN-10)."""
    wire.script(Reply(api.sse({"type": "response.failed", "response": api.response((), "failed")})))
    with pytest.raises(Overloaded):
        await ask(o)


async def test_answer_in_one_piece_of_json_is_read(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-02: the answer of a server that does not stream is read."""
    wire.script(Reply.of_json(EVERYTHING[-1]["response"]))
    assert [_readable(event) for event in await ask(o)] == HEARD
    wire.script(Reply.of_json(api.response((), "failed", error={"code": "server_error", "message": "Loading"})))
    with pytest.raises(Overloaded, match="Loading"):
        await ask(o)


async def test_tool_names_come_back_as_they_were_given(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-11: a name that the vendor refuses is rewritten in the request and restored in the answer."""
    wire.script(Reply(api.sse(*api.whole(api.function_call(0, "a", "web_fetch", "{}")))))
    heard = await ask(o, request("go", tools=(ToolSpec("web.fetch", "", {}),)))
    assert parts(heard) == (ToolCall("a", "web.fetch", {}, "{}", {"item_id": "fc_0_0"}),)


async def test_reasoning_models_take_tools_and_reasoning_together(wire: WireServer, o: OpenAIProvider) -> None:
    """RUN-16: current models accept tools with reasoning in the Responses API, unlike in Chat Completions."""
    await ask(o, request("Think, then calculate 6 * 7", model="gpt-6.1-sol", tools=(ADD,)))
    assert wire.requests[0].path == "/v1/responses"
    assert wire.requests[0].body["reasoning"] == {"summary": "auto"}
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    ("url", "api_name", "expected"),
    [
        (None, None, True),
        (None, "chat", False),
        ("http://localhost:11434/v1", None, False),
        ("http://localhost:11434/v1", "responses", True),
    ],
)
def test_form_is_openais_own_or_as_configured(url: str | None, api_name: str | None, expected: bool) -> None:
    """OpenAI uses its Responses API unless configured otherwise (RUN-16)."""
    provider = OpenAIProvider("openai", "k", url, api=api_name)  # type: ignore[arg-type]  # one of the two names
    assert provider.dialect.responses == expected
