"""Tests of the mapping of a Request to OpenAI's Responses API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.messages import File, Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import Request, ToolSpec
from agents.providers.dialect import Dialect
from agents.providers.openai.responses_request import to_request
from agents.reasoning import NO_REASONING, Reasoning
from tests.agents.conversations import conversations
from tests.agents.messages import model, note, user
from tests.wire import responses_rules
from tests.wire.responses import reasoning_item

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
MODEL = "gpt-x"


def mapped(*messages: Message, dialect: Dialect | None = None, **fields: Any) -> Json:
    return to_request(Request(fields.pop("model", MODEL), messages, **fields), "openai", dialect or Dialect())


def sent(*messages: Message, **fields: Any) -> list[Json]:
    body = mapped(*messages, **fields)
    responses_rules.check(body)
    items: list[Json] = body["input"]
    return items


def thought(tail: str, maker: str = MODEL, provider: str = "openai", after: str = "") -> Thinking:
    item = reasoning_item(["hm"], tail=tail, model=maker)
    return Thinking("hm", provider, {"item": json.dumps(item)} | ({"after": after} if after else {}), maker)


def said(text: str, tail: str) -> Text:
    return Text(text, {"item_id": f"msg_{tail}_1", "after": f"rs_{tail}"})


def called(call_id: str, tail: str, after: str = "") -> ToolCall:
    data = {"item_id": f"fc_{tail}_1", "after": after or f"rs_{tail}"}
    return ToolCall(call_id, "add", {"a": 1}, '{"a": 1}', data)


SECOND_REASONING_REMOVED = (user("?"), model(thought("a"), said("x", "b")), user("And?"))


@given(
    messages=conversations(),
    tools=st.sampled_from([(), (ADD,)]),
    tool_choice=st.sampled_from(["auto", "none"]),
    max_tokens=st.sampled_from([None, 5, 100]),
)
@example(messages=SECOND_REASONING_REMOVED, tools=(), tool_choice="auto", max_tokens=None)
def test_every_conversation_is_accepted(messages: tuple[Message, ...], **fields: Any) -> None:
    """CTX-02, CTX-03: any rows, with any changes of users, give a request that the API accepts."""
    responses_rules.check(mapped(*messages, system="Be brief.", **fields))


def test_whole_request() -> None:
    """CTX-02: the whole request is as expected, and nothing is stored at the vendor."""
    body = mapped(
        *(user("Add."), model(thought("a"), called("call_1", "a")), user(ToolResult("call_1", "2"))),
        system="Be brief.",
        tools=(ADD,),
        max_tokens=100,
        reasoning=Reasoning("low"),
    )
    responses_rules.check(body)
    assert body == {
        "model": MODEL,
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "max_output_tokens": 100,
        "reasoning": {"summary": "auto", "effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": "add",
                "description": "Adds.",
                "parameters": ADD.parameters,
                "strict": False,
            }
        ],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Add."}]},
            reasoning_item(["hm"], tail="a", model=MODEL),
            {"type": "function_call", "id": "fc_a_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "2"},
        ],
    }


def kinds(items: list[Json]) -> list[str]:
    """Return the kinds of the model's items, with a + for those with an id."""
    own = [item for item in items if item.get("role") != "user" and item.get("type") != "function_call_output"]
    return [f"{item.get('type', 'message')}{'+' if 'id' in item else ''}" for item in own]


RESULT = user(ToolResult("c", "1"))
REPLAYS: dict[str, tuple[list[Message], list[str]]] = {
    "as it was": (
        [model(thought("a"), said("x", "a"), called("c", "a", "msg_a_1")), RESULT],
        ["reasoning+", "message+", "function_call+"],
    ),
    "two in a row": (
        [model(thought("a"), thought("b", after="rs_a"), said("x", "b"))],
        ["reasoning+", "reasoning+", "message+"],
    ),
    "the first of two in a row is gone": ([model(thought("b", after="rs_a"), said("x", "b"))], ["message"]),
    "the second of two in a row is gone": ([model(thought("a"), said("x", "b"))], ["message"]),
    "reasoning after a text": (
        [model(thought("a"), said("x", "a"), thought("b", after="msg_a_1"), called("c", "b")), RESULT],
        ["reasoning+", "message+", "reasoning+", "function_call+"],
    ),
    "the text before a call is gone": (
        [model(thought("a"), called("c", "a", "msg_a_1")), RESULT],
        ["function_call"],
    ),
    "what it followed is not on record": (
        [model(thought("a"), Text("x", {"item_id": "msg_a_1"}))],
        ["message"],
    ),
    "another model's": ([model(thought("a", "gpt-y"), said("x", "a"))], ["message"]),
    "another provider's": ([model(thought("a", provider="azure"), said("x", "a"))], ["message"]),
    "its maker is not on record": (
        [model(Thinking("hm", "openai", thought("a").data), said("x", "a"))],
        ["reasoning+", "message+"],
    ),
    "what followed it is gone": ([model(thought("a"))], []),
    "what followed it was edited": ([model(thought("a"), "x")], ["message"]),
    "only a later item was edited": (
        [model(thought("a"), called("c", "a"), "x"), RESULT],
        ["reasoning+", "function_call+", "message"],
    ),
    "the reasoning is gone": ([model(said("x", "a"), called("c", "a")), RESULT], ["message", "function_call"]),
    "the second reasoning cannot go back": (
        [model(thought("a"), said("x", "a"), Thinking("hm"), called("c", "b")), RESULT],
        ["reasoning+", "message+", "function_call"],
    ),
    "the second reasoning was removed": (
        [model(thought("a"), said("x", "a"), called("c", "b")), RESULT],
        ["reasoning+", "message+", "function_call"],
    ),
    "the same item twice in a row": (
        [model(thought("a"), thought("a", after="rs_a"), said("x", "a"))],
        ["message"],
    ),
    "the same item twice": (
        [model(thought("a"), said("x", "a")), user("?"), model(thought("a"), said("x", "a"))],
        ["reasoning+", "message+", "message"],
    ),
}


@pytest.mark.parametrize("what", REPLAYS)
def test_reasoning_goes_back_with_what_followed_it_or_not_at_all(what: str) -> None:
    """MSG-08: the API refuses reasoning without its following item, ids without their reasoning, and others'
    reasoning."""
    messages, expected = REPLAYS[what]
    assert kinds(sent(user("?"), *messages, user("And?"))) == expected


JUNK = ["", "{", "[]", "7", '{"type": "reasoning"}', '{"type": "message", "id": "rs_1", "summary": []}', "[" * 100_000]
JUNK += [json.dumps({**reasoning_item(["hm"], tail="a"), **odd}) for odd in ({"id": "x"}, {"summary": 3}, {"id": 3})]
JUNK += [json.dumps(reasoning_item(["hm"], tail="a", encrypted=False))]


@pytest.mark.parametrize("item", JUNK)
def test_data_that_is_no_reasoning_item_is_left_out(item: str) -> None:
    """MSG-10: invalid items of hand-edited or imported rows are left out, because the API stores nothing to look up."""
    message = model(Thinking("hm", "openai", {"item": item}), said("x", "a"))
    assert kinds(sent(user("?"), message, user("And?"))) == ["message"]


@pytest.mark.parametrize("item_id", ["", "x", "fc_1", "msg_" + "x" * 64])
def test_ids_that_are_not_the_apis_are_left_out(item_id: str) -> None:
    """Ids that the API would not accept are left out of the request (MSG-10)."""
    items = sent(user("?"), model(thought("a"), Text("x", {"item_id": item_id, "after": "rs_a"})), user("And?"))
    assert kinds(items) == ["message"]


def test_item_id_goes_out_once() -> None:
    """MSG-08: an id is sent once, because the API refuses duplicates, which hand-edited rows may have."""
    twice = Text("x", {"item_id": "msg_a_1", "after": "rs_b"})
    items = sent(user("?"), model(thought("a"), said("x", "a")), model(thought("b"), twice), user("And?"))
    assert [item["id"] for item in items if item.get("type") == "message" and "id" in item] == ["msg_a_1"]


def test_record_of_the_item_before_is_not_sent() -> None:
    """MSG-08: the stored id of the previous item is not sent, because the API refuses fields that it does not know."""
    items = sent(user("?"), model(thought("a"), thought("b", after="rs_a"), said("x", "b")), user("And?"))
    assert kinds(items) == ["reasoning+", "reasoning+", "message+"]
    assert not any("after" in item for item in items)


def test_phase_goes_back_with_its_text() -> None:
    """MSG-08: a text goes back with its phase, which distinguishes remarks from the final answer."""
    items = sent(user("?"), model(Text("So.", {"phase": "final_answer"})), user("And?"))
    assert items[1] == {"role": "assistant", "content": "So.", "phase": "final_answer"}


def test_results_come_before_words() -> None:
    """CTX-02, CTX-03: notes and texts between calls and results come after the results."""
    calls = (ToolCall("a", "add", {}), ToolCall("b", "add", {}))
    results = (user("And?", ToolResult("b", "2")), user(ToolResult("a", "")))
    assert sent(model("Well: ", *calls), note("Two minutes left."), *results)[1:] == [
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
        {"role": "system", "content": [{"type": "input_text", "text": "Two minutes left."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "And?"}]},
    ]


def test_conversation_ends_with_the_user_and_is_never_empty() -> None:
    """A request ends with a user item and is never empty (CTX-02)."""
    go_on = {"role": "user", "content": [{"type": "input_text", "text": "(Continue.)"}]}
    assert sent(user("a"), model("b"))[-1] == go_on
    assert sent() == [go_on]
    assert sent(user("")) == [go_on]


def test_strange_names_and_ids_are_rewritten() -> None:
    """CTX-02: names are rewritten to at most 64 characters that the API allows, and each id is unique."""
    long = "漢" + "x" * 99
    calls = model(ToolCall(long, "web.fetch " + "x" * 99, {}), ToolCall(long + "y", "add", {}), ToolCall("", "add", {}))
    results = user(ToolResult(long, "1"), ToolResult(long + "y", "2"), ToolResult("", "3"))
    items = sent(user("a"), calls, results)
    assert items[1]["name"] == "web_fetch_" + "x" * 54
    ids = [item["call_id"] for item in items[1:4]]
    assert [item["call_id"] for item in items[4:]] == ids
    assert len(set(ids)) == 3


def test_files_are_pieces_of_a_user_message() -> None:
    """Files are sent as parts of the user's message (CTX-02)."""
    image = File("image", "a.png", "image/png", "iVBORw0KGgo=")
    paper = File("pdf", "b.pdf", "application/pdf", "JVBERi0=")
    assert sent(user("[Image a.png]", image, paper, "What is it?"))[0]["content"] == [
        {"type": "input_text", "text": "[Image a.png]"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
        {"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_text", "text": "What is it?"},
    ]


def test_closing_summary_keeps_the_tools() -> None:
    """RUN-09: tools stay defined in a request that forbids calls."""
    body = mapped(user("a"), tools=(ADD,), tool_choice="none")
    responses_rules.check(body)
    assert (body["tool_choice"], len(body["tools"])) == ("none", 1)
    assert "tool_choice" not in mapped(user("a"), tools=(ADD,))


def test_options_are_named_as_this_api_names_them() -> None:
    """RUN-10: a configuration for Chat Completions works, and its options replace nothing of the request."""
    options = {
        "reasoning_effort": "low",
        "verbosity": "high",
        "max_completion_tokens": 50,
        "reasoning": {"summary": "detailed"},
        "input": [],
        "stream": False,
        "store": True,
    }
    body = mapped(user("a"), options=options)
    assert body["reasoning"] == {"summary": "detailed", "effort": "low"}
    assert (body["text"], body["max_output_tokens"]) == ({"verbosity": "high"}, 50)
    assert (len(body["input"]), body["stream"], body["store"]) == (1, True, False)
    assert mapped(user("a"), options=options, reasoning=Reasoning("high"))["reasoning"]["effort"] == "high"
    assert mapped(user("a"), options={"reasoning": "low"})["reasoning"] == {"summary": "auto"}


def test_models_that_do_not_reason_are_asked_for_no_reasoning() -> None:
    """RUN-16: models without reasoning, such as gpt-4.1, get no reasoning parameters, which they refuse."""
    body = mapped(user("a"), model="gpt-4.1", support=NO_REASONING)
    responses_rules.check(body)
    assert body.keys() == {"model", "input", "stream", "store"}


def test_what_an_endpoint_refuses_is_left_out() -> None:
    """Parameters that an endpoint refused are left out of the request (RUN-10)."""
    body = mapped(user("a"), dialect=Dialect(omitted=frozenset({"include", "reasoning.summary"})))
    assert body.keys() == {"model", "input", "stream", "store"}
    body = mapped(user("a"), reasoning=Reasoning("low"), dialect=Dialect(omitted=frozenset({"reasoning.summary"})))
    assert body["reasoning"] == {"effort": "low"}
