"""Tests of the mapping of a Request to OpenAI's Chat Completions API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.messages import File, Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.arguments import arguments_text
from agents.providers.base import Request, ToolSpec
from agents.providers.conversation import names_by_safe_name
from agents.providers.dialect import Dialect
from agents.providers.openai.request import to_request
from agents.reasoning import Reasoning
from tests.agents.conversations import conversations
from tests.agents.messages import model, note, user
from tests.wire import openai_rules

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def mapped(*messages: Message, dialect: Dialect | None = None, **fields: Any) -> Json:
    return to_request(Request("gpt-x", messages, **fields), "openai", dialect or Dialect())


def said(*messages: Message, **fields: Any) -> list[Json]:
    body = mapped(*messages, **fields)
    openai_rules.check(body)
    sent: list[Json] = body["messages"]
    return sent


@given(
    messages=conversations(),
    tools=st.sampled_from([(), (ADD,)]),
    tool_choice=st.sampled_from(["auto", "none"]),
    max_tokens=st.sampled_from([None, 100]),
)
def test_every_conversation_is_accepted(messages: tuple[Message, ...], **fields: Any) -> None:
    """CTX-02, CTX-03: any rows of a session give a request that keeps the vendor's rules."""
    openai_rules.check(mapped(*messages, system="Be brief.", **fields))


def test_whole_request() -> None:
    """CTX-02: the whole request is as expected."""
    call = ToolCall("call_1", "add", {"a": 1}, '{"a":1}')
    body = mapped(
        *(user("Add."), model(call), user(ToolResult("call_1", "2"))),
        system="Be brief.",
        tools=(ADD,),
        max_tokens=100,
        options={"temperature": 0.5},
    )
    openai_rules.check(body)
    assert body == {
        "model": "gpt-x",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.5,
        "tools": [
            {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": ADD.parameters}}
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Add."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "2"},
        ],
    }


def test_results_come_directly_after_their_calls() -> None:
    """CTX-02: results come directly after their calls, before notes and texts that arrived between them."""
    calls = (ToolCall("a", "add", {}), ToolCall("b", "add", {}))
    results = (user("And?", ToolResult("b", "2")), user(ToolResult("a", "")))
    assert said(model("Well: ", *calls), note("Two minutes left."), *results)[1:] == [
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "system", "content": "Two minutes left."},
        {"role": "user", "content": "And?"},
    ]


def test_adjacent_messages_of_a_role_are_one() -> None:
    """CTX-02: adjacent messages of a role are joined, because some servers' templates refuse two.

    Notes keep their place and role.
    """
    assert said(user("a"), user("b", "!"), note("n"), user("c"), model("d "), model("e"), user("f")) == [
        {"role": "user", "content": "a\n\nb\n\n!"},
        {"role": "system", "content": "n"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d \n\ne"},
        {"role": "user", "content": "f"},
    ]


def test_empty_messages_are_left_out() -> None:
    """CTX-01: an answer of only another model's reasoning is left out."""
    assert said(user("a"), model(Thinking("hm", "anthropic", {"signature": "s"})), user("b")) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_conversation_ends_with_the_user() -> None:
    """CTX-02: a conversation ends with the user, because many servers refuse to continue the model's text."""
    assert said(user("a"), model("b"))[-1] == {"role": "user", "content": "(Continue.)"}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ToolCall("1", "add", {"a": 1}, '{ "a":1 }'), '{ "a":1 }'),
        (ToolCall("1", "add", {"a": "é"}, '{"a": "\\u00e9"}'), '{"a": "\\u00e9"}'),
        (ToolCall("1", "add", {"a": 2}, '{ "a":1 }'), '{"a": 2}'),
        (ToolCall("1", "add", {"a": "é"}), '{"a": "é"}'),
        (ToolCall("1", "add", {}), "{}"),
        (ToolCall("1", "add", {"_raw": "{oops"}, "{oops"), '{"_raw": "{oops"}'),
    ],
)
def test_arguments_are_sent_as_the_model_wrote_them(call: ToolCall, text: str) -> None:
    """MSG-08: arguments are sent byte for byte, unless they were edited or are not an object."""
    assert arguments_text(call) == text
    assert said(user("x"), model(call), user(ToolResult("1", "")))[1]["tool_calls"][0]["function"]["arguments"] == text


def test_reasoning_goes_back_within_its_turn_only() -> None:
    """MSG-08: reasoning is sent within its turn, for models that need it across tool rounds, but not in later turns."""
    own = Thinking("hm", "openai", {"field": "reasoning_content"})
    round_ = [model(own, ToolCall("1", "add", {})), user(ToolResult("1", "x"))]
    now = said(user("a"), *round_)
    later = said(user("a"), *round_, model(own, "b"), user("c"))
    assert [message.get("reasoning_content") for message in now] == [None, "hm", None]
    assert not any("reasoning_content" in message for message in later)


def test_reasoning_between_tags_goes_back_between_tags() -> None:
    """MSG-08: within its turn, reasoning that was in the answer's text is there again."""
    own = Thinking("hm\n", "openai", {"field": "tags"})
    round_ = [model(own, "ok", ToolCall("1", "add", {})), user(ToolResult("1", "x"))]
    now, later = said(user("a"), *round_), said(user("a"), *round_, model("b"), user("c"))
    assert [sent[1]["content"] for sent in (now, later)] == ["<think>\nhm\n</think>\n\nok", "ok"]


@pytest.mark.parametrize("thinking", [Thinking("hm", "elsewhere", {"field": "reasoning"}), Thinking("hm", "openai")])
def test_other_reasoning_is_dropped(thinking: Thinking) -> None:
    """MSG-08: reasoning of another provider, or without the name of its original field, is not sent."""
    sent = said(user("a"), model(thinking, ToolCall("1", "add", {})), user(ToolResult("1", "x")))
    assert sent[1].keys() == {"role", "content", "tool_calls"}


def test_strange_names_and_ids_are_rewritten() -> None:
    """CTX-02: a name of another model or a user is reduced to 64 characters that the vendor allows, and an empty id is
    replaced in the call and its result."""
    call = said(user("a"), model(ToolCall("", "web.fetch " + "x" * 99, {})), user(ToolResult("", "1")))
    assert call[1]["tool_calls"][0]["function"]["name"] == "web_fetch_" + "x" * 54
    assert call[1]["tool_calls"][0]["id"] == call[2]["tool_call_id"] != ""


def test_names_begin_with_a_letter() -> None:
    """CTX-02: Kimi and Gemini refuse all requests with a tool whose name begins with a digit."""
    names = ["21st__search", "_private", "2" * 63 + "a", "2" * 63 + "b", "search"]
    tools = tuple(ToolSpec(name, "x", {}) for name in names)
    body = mapped(user("a"), model(ToolCall("1", names[0], {})), user(ToolResult("1", "x")), tools=tools)
    sent = [tool["function"]["name"] for tool in body["tools"]]
    long = "tool_" + "2" * 58
    assert sent == ["tool_21st__search", "tool__private", f"{long}a", f"{long}b", "search"]
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == sent[0]
    assert names_by_safe_name(names, 64) == dict(zip(sent, names, strict=True))


def test_closing_summary_keeps_the_tools() -> None:
    """RUN-09: tools stay defined in a request that forbids calls."""
    body = mapped(user("a"), tools=(ADD,), tool_choice="none")
    assert (body["tool_choice"], len(body["tools"])) == ("none", 1)
    assert "tool_choice" not in mapped(user("a"), tools=(ADD,))
    assert mapped(user("a")).keys() == {"model", "messages", "stream", "stream_options"}


def test_dialect_decides_what_servers_differ_in() -> None:
    """RUN-10: parameters depend on the dialect, because compatible servers refuse some that others need."""
    without_usage = Dialect(omitted=frozenset({"stream_options"}), limit_field="max_completion_tokens")
    body = mapped(user("a"), max_tokens=5, dialect=without_usage)
    assert (body["max_completion_tokens"], "stream_options" in body, "max_tokens" in body) == (5, False, False)
    quiet = Dialect(reasoning_with_tools=False)
    assert mapped(user("a"), tools=(ADD,), reasoning=Reasoning("high"), dialect=quiet)["reasoning_effort"] == "none"
    assert mapped(user("a"), reasoning=Reasoning("high"), dialect=quiet)["reasoning_effort"] == "high"


def test_options_never_override_the_request() -> None:
    """CTX-01: options do not replace anything that the rows determine."""
    body = mapped(user("a"), options={"messages": [], "stream": False, "seed": 3})
    assert (len(body["messages"]), body["stream"], body["seed"]) == (1, True, 3)


def test_files_are_pieces_of_a_user_message() -> None:
    """CTX-02: a message with files consists of parts; without files it is text."""
    image = File("image", "a.png", "image/png", "iVBORw0KGgo=")
    paper = File("pdf", "b.pdf", "application/pdf", "JVBERi0=")
    sent = said(Message("user", (Text("[Image a.png]"), image, paper, Text("What is it?"))), user("And?"))
    assert sent == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Image a.png]"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                {"type": "text", "text": "What is it?"},
                {"type": "text", "text": "And?"},
            ],
        }
    ]
    assert said(user("a", "b")) == [{"role": "user", "content": "a\n\nb"}]
