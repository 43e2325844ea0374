"""Differences between Chat Completions servers and OpenAI's, through the SDK and a real socket."""

from __future__ import annotations

import re

import pytest

from agents.errors import Overloaded, ProviderError, RequestRejected
from agents.events import PartDone, ResponseDone, Usage
from agents.messages import Json, Part, Text, Thinking, ToolCall
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import Reply, WireServer
from tests.wire import openai as api
from tests.wire.vendors import OPENAI, ask, done, hear, parts

FIELD = {"field": "reasoning_content"}


def fragment(**fields: object) -> Json:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return api.chunk({"tool_calls": [{**fields, "function": function}]})


A, B = ToolCall("a", "add", {"x": 1}, '{"x":1}'), ToolCall("b", "add", {"x": 2}, '{"x":2}')
FRAGMENTS: dict[str, tuple[list[Json], list[ToolCall]]] = {
    "id and name come late": (
        [
            fragment(index=0, arguments='{"x"'),
            fragment(index=0, id="a", arguments=":1}"),
            fragment(index=0, name="add"),
        ],
        [A],
    ),
    "name and id come again": (
        [fragment(index=0, id="a", name="add", arguments=one) for one in ('{"x"', ":1", "}")],
        [A],
    ),
    "fragments of two calls are mixed": (
        [
            fragment(index=0, id="a", name="add", arguments='{"x"'),
            fragment(index=1, id="b", name="add", arguments='{"x":'),
            fragment(index=0, arguments=":1}"),
            fragment(index=1, arguments="2}"),
        ],
        [A, B],
    ),
    "no index": (
        [
            fragment(id="a", name="add", arguments='{"x"'),
            fragment(arguments=":1}"),
            fragment(id="b", name="add", arguments='{"x":2}'),
        ],
        [A, B],
    ),
    "no index, mixed": (
        [
            fragment(id="a", name="add", arguments='{"x"'),
            fragment(id="b", name="add", arguments='{"x":2}'),
            fragment(id="a", arguments=":1}"),
        ],
        [A, B],
    ),
    "index 0 for every call": (
        [fragment(index=0, id=one.id, name=one.name, arguments=one.raw) for one in (A, B)],
        [A, B],
    ),
    "another id with each fragment": (
        [
            fragment(index=0, id="a", name="add", arguments='{"x"'),
            fragment(index=0, id="other", arguments=":1}"),
            fragment(index=0, id="third", arguments=""),
            fragment(index=1, id="b", name="add", arguments='{"x":2}'),
        ],
        [A, B],
    ),
    "whole arguments again at the end": (
        [
            fragment(index=0, id="a", name="add", arguments='{"x"'),
            fragment(index=0, arguments=":1}"),
            fragment(index=0, id="a", name="add", arguments='{"x":1}'),
        ],
        [A],
    ),
    "two calls in one chunk": (
        [
            api.chunk(
                {
                    "tool_calls": [
                        {"index": i, "id": one.id, "function": {"name": one.name, "arguments": one.raw}}
                        for i, one in enumerate((A, B))
                    ]
                }
            )
        ],
        [A, B],
    ),
    "arguments as an object": (
        [fragment(index=0, id="a", name="add", arguments={"x": 1})],
        [ToolCall("a", "add", {"x": 1}, '{"x": 1}')],
    ),
    "no arguments": ([fragment(index=0, id="a", name="add", arguments=None)], [ToolCall("a", "add", {})]),
    "no name": ([fragment(index=0, id="a", arguments="{}")], [ToolCall("a", "unknown", {}, "{}")]),
    "no function": ([api.chunk({"tool_calls": [{"index": 0, "id": "a"}]})], [ToolCall("a", "unknown", {})]),
    "broken arguments": (
        [fragment(index=0, id="a", name="add", arguments='{"x":')],
        [ToolCall("a", "add", {"_raw": '{"x":'}, '{"x":')],
    ),
}


@pytest.mark.parametrize("habit", FRAGMENTS)
@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
async def test_calls_come_together_whatever_the_habit(
    wire: WireServer, gpt: OpenAIProvider, habit: str, reason: str
) -> None:
    """RUN-11: fragments of calls with any labels are joined, also if the finish reason is `stop`."""
    chunks, calls = FRAGMENTS[habit]
    heard = await hear(wire, gpt, *chunks, api.finish(reason))
    assert heard == [*map(PartDone, calls), ResponseDone("tool_use", Usage())]


@pytest.mark.parametrize(
    "chunks",
    [
        [fragment(index=0, name="add", arguments="{}"), fragment(index=1, name="add", arguments="{}")],
        [fragment(index=0, id="", name="add", arguments="{}"), fragment(index=0, id="", name="add", arguments="{}")],
        [fragment(name="add", arguments="{}"), fragment(name="add", arguments="{}")],
        [fragment(index=0, id="x", name="add", arguments="{}"), fragment(index=1, id="x", name="add", arguments="{}")],
        [
            api.chunk({"function_call": {"name": "add", "arguments": "{"}}),
            api.chunk({"function_call": {"arguments": "}"}}),
        ],
    ],
    ids=["no ids", "no ids and one index", "no ids and no index", "one id twice", "before there were ids"],
)
async def test_calls_without_an_id_of_their_own_get_one(
    wire: WireServer, gpt: OpenAIProvider, chunks: list[Json]
) -> None:
    """CTX-03: a call without an id gets one, so that its result can refer to it."""
    calls = [part for part in parts(await hear(wire, gpt, *chunks)) if isinstance(part, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [("add", {})] * len(calls)
    assert len({call.id for call in calls}) == len(calls) == (1 if "function_call" in str(chunks) else 2)
    assert re.fullmatch(r"call_[0-9a-f]{24}", calls[-1].id)


async def test_calls_with_the_same_index_and_id_are_kept_apart(wire: WireServer, gpt: OpenAIProvider) -> None:
    """RUN-11: whole arguments that differ are another call, even if the server labels it as the first one."""
    heard = await hear(wire, gpt, *(fragment(index=0, id="a", name="add", arguments=one.raw) for one in (A, B)))
    assert [part.arguments for part in parts(heard) if isinstance(part, ToolCall)] == [A.arguments, B.arguments]


PIECES: dict[str, tuple[list[Json], list[Part]]] = {
    "reasoning in the other field": (
        api.reasoning("hm", field="reasoning") + api.text("ok"),
        [Thinking("hm", "openai", {"field": "reasoning"}), Text("ok")],
    ),
    "reasoning in both fields": (
        [api.chunk({"reasoning": "hm", "reasoning_content": "hm", "content": None}), *api.text("ok")],
        [Thinking("hm", "openai", FIELD), Text("ok")],
    ),
    "reasoning and text in turns": (
        [*api.reasoning("a"), *api.text("b"), *api.reasoning("c"), *api.text("d", "e")],
        [Thinking("a", "openai", FIELD), Text("b"), Thinking("c", "openai", FIELD), Text("de")],
    ),
    "text after a call": (
        [
            *api.text("a"),
            *api.tool_call(0, "x", "add", "{}"),
            *api.text("\n"),
            *api.tool_call(1, "y", "add"),
            *api.text("b"),
        ],
        [Text("a"), Text("b"), ToolCall("x", "add", {}, "{}"), ToolCall("y", "add", {})],
    ),
    "typed pieces": (
        [
            api.chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
            api.chunk({"content": [{"type": "text", "text": "ok"}, {"type": "reference", "reference_ids": [1]}]}),
        ],
        [Thinking("hm", "openai"), Text("ok")],
    ),
    "reasoning between tags": (
        api.text("<th", "ink>\na</thi", "nk>", "\n\n", "b <think>", "c"),
        [Thinking("a", "openai", {"field": "tags"}), Text("b <think>c")],
    ),
    "reasoning between tags, and a call": (
        [*api.text("<think>a</thi"), *api.tool_call(0, "x", "add", "{}"), *api.text("b</think>")],
        [Thinking("a</thi", "openai", {"field": "tags"}), Text("b</think>"), ToolCall("x", "add", {}, "{}")],
    ),
    "tags after reasoning": (
        [*api.reasoning("a"), *api.text("<think>", "b")],
        [Thinking("a", "openai", FIELD), Text("<think>b")],
    ),
    "beginning of a tag": (
        [*api.text("<thi"), api.chunk({"refusal": "No."})],
        [Text("<thiNo.")],
    ),
    "message in place of delta": ([{"choices": [{"index": 0, "message": {"content": "ok"}}]}], [Text("ok")]),
    "nothing in between": (
        [
            *api.text("o"),
            {"choices": []},
            {"choices": None},
            {"choices": [{"index": 0}]},
            {"choices": [{"index": 0, "delta": None}]},
            api.chunk({"content": None, "tool_calls": None, "refusal": None}),
            api.chunk({"content": ""}),
            {},
            *api.text("k"),
        ],
        [Text("ok")],
    ),
    "nothing at all": ([], []),
    "several answers": (
        [
            {"choices": [{"index": 1, "delta": {"content": "no"}}]},
            {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "o"}}]},
            {"choices": [{"delta": {"content": "k"}}]},
            {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
        ],
        [Text("ok")],
    ),
}


@pytest.mark.parametrize("habit", PIECES)
async def test_text_and_reasoning_are_read_whatever_the_habit(
    wire: WireServer, gpt: OpenAIProvider, habit: str
) -> None:
    """RUN-02, UI-01: parts are complete and in the model's order."""
    chunks, expected = PIECES[habit]
    assert parts(await hear(wire, gpt, *chunks, api.finish("stop"))) == tuple(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'event: error\ndata: {"message": "boom"}\n\n', Overloaded),
        (b'data: {"error": "boom"}\n\n', Overloaded),
        (b'data: {"error": {"message": "boom", "code": 502}, "choices": []}\n\n', Overloaded),
        (b'data: {"error": {"message": "boom", "code": 400}}\n\n', RequestRejected),
        (b'data: {"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}\n\n', RequestRejected),
    ],
)
async def test_errors_in_a_stream_have_many_forms(
    wire: WireServer, gpt: OpenAIProvider, line: bytes, expected: type[ProviderError]
) -> None:
    """RUN-10: in each form, the error is recognized and has the server's message."""
    wire.script(Reply([*OPENAI.opening("a"), line]))
    with pytest.raises(expected, match="boom"):
        await ask(gpt)


USAGES = [
    ({"prompt_tokens": 9, "completion_tokens": 3}, Usage(9, 3, None, None)),
    ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(9, 3, None, None)),
    ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": [4]}, Usage(9, 3, None, None)),
    ({"prompt_tokens": 9, "completion_tokens": 3, "completion_tokens_details": "none"}, Usage(9, 3, None, None)),
    ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}, Usage(9, 3, 4, None)),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 32,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(9, 23, None, None, 20),
    ),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 23,
            "total_tokens": 32,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(9, 23, None, None, 20),
    ),
    # Gemini does not state the tokens of its reasoning; they are only in the total.
    ({"completion_tokens": 1, "prompt_tokens": 9, "total_tokens": 103}, Usage(9, 94, None, None, 93)),
    # A server that counts cached tokens only in the total.
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 16,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
        Usage(9, 3, 4, None),
    ),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        },
        Usage(9, 3, 4, 2),
    ),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        },
        Usage(9, 3, 4, 2),
    ),
]


@pytest.mark.parametrize(("sent", "usage"), USAGES, ids=str)
async def test_usage_is_read_from_wherever_it_comes(
    wire: WireServer, gpt: OpenAIProvider, sent: Json, usage: Usage
) -> None:
    """MSG-06: usage is read from a separate chunk, from the last one, from its choice, or from each."""
    own = await hear(wire, gpt, *api.text("a"), api.finish(), api.usage() | {"usage": sent})
    last = await hear(wire, gpt, *api.text("a"), api.finish() | {"usage": sent})
    kimi = api.finish()
    kimi["choices"][0]["usage"] = sent
    in_choice = await hear(wire, gpt, *api.text("a"), kimi)
    growing = [chunk | {"usage": {"prompt_tokens": 9, "completion_tokens": 1}} for chunk in api.text("a")]
    each = await hear(wire, gpt, *growing, api.finish() | {"usage": sent})
    assert [done(events).usage for events in (own, last, in_choice, each)] == [usage] * 4
