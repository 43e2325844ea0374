"""The server refuses what the vendors refuse, on which the other tests rely."""

from __future__ import annotations

from typing import Any

import pytest

from agents.messages import Json
from tests.wire import anthropic_rules, openai_rules, responses_rules
from tests.wire.anthropic import sign
from tests.wire.responses import call_item, message_item, reasoning_item
from tests.wire.script import RequestRefusedError

TOOL = {"name": "add", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "1"}
TEXT = {"type": "text", "text": "a"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}


def talk(*contents: Any, **fields: Any) -> Json:
    """Return a body for Anthropic with alternating messages, the user's first."""
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return {"model": "m", "max_tokens": 9000, "messages": messages} | fields


ANTHROPIC_REFUSES: dict[str, tuple[Json, str]] = {
    "unknown field": (talk("a", seed=3), "seed: Extra inputs"),
    "no limit": (talk("a", max_tokens=None), "max_tokens"),
    "no message": (talk(), "at least one message"),
    "assistant first": ({**talk(), "messages": [{"role": "assistant", "content": "a"}]}, "first message"),
    "system role": ({**talk(), "messages": [{"role": "system", "content": "a"}]}, "Unexpected role"),
    "two in a row": ({**talk(), "messages": [{"role": "user", "content": "a"}] * 2}, "roles must alternate"),
    "no content": (talk([]), "non-empty content"),
    "content null": (talk(None), "valid list"),
    "empty text": (talk(""), "must be non-empty"),
    "blank text": (talk(" \n"), "non-whitespace"),
    "prefill": (talk("a", "b"), "does not support assistant message prefill"),
    "blank at the end": (talk("a", "b "), "trailing whitespace"),
    "thinking at the end": (talk("a", [TEXT, THOUGHT], "b"), "cannot be `thinking`"),
    "thinking changed": (talk("a", [{**THOUGHT, "thinking": "hn"}, TEXT], "b"), "Invalid `signature`"),
    "thinking of a user": (talk([THOUGHT]), "not permitted in `user`"),
    "no result": (talk("a", [USE], "b", tools=[TOOL]), "without `tool_result`"),
    "result of nothing": (talk("a", "b", [RESULT], tools=[TOOL]), "unexpected `tool_use_id`"),
    "two results": (talk("a", [USE], [RESULT, RESULT], tools=[TOOL]), "single result"),
    "empty error": (
        talk("a", [USE], [{**RESULT, "content": "", "is_error": True}], tools=[TOOL]),
        "cannot be empty if `is_error`",
    ),
    "result after text": (talk("a", [USE], [TEXT, RESULT], tools=[TOOL]), "must come before text"),
    "id twice": (talk("a", [USE], [RESULT], [USE], [RESULT], tools=[TOOL]), "must be unique"),
    "strange id": (
        talk("a", [{**USE, "id": "a:b"}], [{**RESULT, "tool_use_id": "a:b"}], tools=[TOOL]),
        "should match pattern",
    ),
    "arguments as text": (talk("a", [{**USE, "input": "{}"}], [RESULT], tools=[TOOL]), "valid dictionary"),
    "calls without tools": (talk("a", [USE], [RESULT]), "must define `tools`"),
    "strange tool": (talk("a", tools=[{**TOOL, "name": "web.fetch"}]), "should match pattern"),
    "tool twice": (talk("a", tools=[TOOL, TOOL]), "must be unique"),
    "tool without schema": (talk("a", tools=[{**TOOL, "input_schema": {}}]), "input_schema"),
    "choice of nothing": (talk("a", tool_choice={"type": "none"}), "while providing `tools`"),
    "five markers": (talk([MARKED] * 5), "maximum of 4"),
    "blank system": (talk("a", system=" "), "system"),
    "small budget": (talk("a", thinking={"type": "enabled", "budget_tokens": 5}), "equal to 1024"),
    "budget beyond limit": (talk("a", thinking={"type": "enabled", "budget_tokens": 9000}), "must be greater"),
    "temperature": (talk("a", thinking={"type": "adaptive"}, temperature=0), "may only be set to 1"),
    "top_k": (talk("a", thinking={"type": "adaptive"}, top_k=3), "must be unset"),
    "round without thinking": (
        talk("a", [USE], [RESULT], tools=[TOOL], thinking={"type": "enabled", "budget_tokens": 2000}),
        "Expected `thinking`",
    ),
}


@pytest.mark.parametrize("broken", ANTHROPIC_REFUSES)
def test_anthropic_refuses(broken: str) -> None:
    """CTX-02: requests against Anthropic's protocol are refused with its messages."""
    body, words = ANTHROPIC_REFUSES[broken]
    with pytest.raises(RequestRefusedError, match=words):
        anthropic_rules.check(body)


def test_anthropic_takes_what_is_right() -> None:
    """CTX-02: the same parts in the right order are accepted."""
    body = talk("a", [THOUGHT, TEXT, USE], [RESULT, MARKED], tools=[TOOL], tool_choice={"type": "none"})
    anthropic_rules.check(body | {"thinking": {"type": "enabled", "budget_tokens": 2000}, "system": [MARKED]})


CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "1"}
USER = {"role": "user", "content": "a"}
FUNCTION = {"type": "function", "function": {"name": "add"}}


def chat(*messages: Json, **fields: Any) -> Json:
    return {"model": "m", "stream": True, "messages": list(messages)} | fields


OPENAI_REFUSES: dict[str, tuple[Json, str]] = {
    "unknown field": (chat(USER, top_k=3), "Unrecognized request argument supplied: top_k"),
    "options without stream": (chat(USER, stream=False, stream_options={}), "only allowed when 'stream'"),
    "no message": (chat(), "empty array"),
    "unknown role": (chat({"role": "human", "content": "a"}), "Invalid value: 'human'"),
    "content null": (chat({"role": "user", "content": None}), "expected a string, got null"),
    "content of nothing": (chat({"role": "assistant", "content": None}), "expected a string, got null"),
    "content a number": (chat({"role": "user", "content": 3}), "expected a string"),
    "empty calls": (chat(USER, {"role": "assistant", "content": "a", "tool_calls": []}), "tool_calls"),
    "call without id": (chat(USER, CALLING | {"tool_calls": [CALL | {"id": ""}]}, ANSWER), "Missing required"),
    "strange name": (
        chat(USER, CALLING | {"tool_calls": [CALL | {"function": {"name": "a.b", "arguments": "{}"}}]}, ANSWER),
        "does not match pattern",
    ),
    "arguments as object": (
        chat(USER, CALLING | {"tool_calls": [CALL | {"function": {"name": "add", "arguments": {}}}]}, ANSWER),
        "expected a string",
    ),
    "no result": (chat(USER, CALLING, USER), "did not have response messages: c1"),
    "no result at the end": (chat(USER, CALLING), "did not have response messages: c1"),
    "result of nothing": (chat(USER, ANSWER), "must be a response to a preceeding message"),
    "result twice": (chat(USER, CALLING, ANSWER, ANSWER), "must be a response to a preceeding message"),
    "result too late": (chat(USER, CALLING, {"role": "system", "content": "n"}, ANSWER), "did not have response"),
    "no tools": (chat(USER, tools=[]), "empty array"),
    "strange tool": (chat(USER, tools=[{"type": "function", "function": {"name": "a.b"}}]), "does not match"),
    "choice of nothing": (chat(USER, tool_choice="none"), "only allowed when 'tools'"),
}


@pytest.mark.parametrize("broken", OPENAI_REFUSES)
def test_openai_refuses(broken: str) -> None:
    """CTX-02: requests against OpenAI's protocol are refused with its messages."""
    body, words = OPENAI_REFUSES[broken]
    with pytest.raises(RequestRefusedError, match=words):
        openai_rules.check(body)


def test_openai_takes_what_is_right() -> None:
    """CTX-02: the same parts in the right order are accepted."""
    openai_rules.check(chat(USER, CALLING, ANSWER, USER, tools=[FUNCTION], stream_options={"include_usage": True}))


def ask(*items: Json, **fields: Any) -> Json:
    return {"model": "model-1", "store": False, "stream": True, "input": list(items)} | fields


WORDS = {"role": "user", "content": [{"type": "input_text", "text": "a"}]}
THOUGHTS = reasoning_item(["hm"], tail="a")
FETCH = call_item("c1", "fetch", "{}", 1, tail="a")
FETCHED = {"type": "function_call_output", "call_id": "c1", "output": "1"}
SAID = {**message_item("b", 2, tail="a"), "content": [{"type": "output_text", "text": "b", "annotations": []}]}
BARE = {key: value for key, value in FETCH.items() if key != "id"}
PLAIN_TOOL = {"type": "function", "name": "fetch", "parameters": {"type": "object"}, "strict": False}

RESPONSES_REFUSES: dict[str, tuple[Json, str]] = {
    "unknown field": (ask(WORDS, seed=3), "Unknown parameter: 'seed'"),
    "several answers": (ask(WORDS, n=2), "Unknown parameter: 'n'"),
    "no item": (ask(), "empty array"),
    "text of a chat": (ask({"role": "user", "content": [{"type": "text", "text": "a"}]}), "Invalid value: 'text'"),
    "unknown role": (ask({"role": "tool", "content": "a"}), "Invalid value: 'tool'"),
    "content null": (ask({"role": "user", "content": None}), "expected one of a string or array"),
    "calls of a chat": (ask({"role": "assistant", "content": "a", "tool_calls": []}), "Unknown parameter"),
    "unknown item": (ask({"type": "tool_use"}), "Invalid value: 'tool_use'"),
    "result of nothing": (ask(WORDS, FETCHED), "No tool call found for function call output with call_id c1"),
    "result twice": (ask(WORDS, BARE, FETCHED, FETCHED), "No tool call found"),
    "no result": (ask(WORDS, BARE, WORDS), "No tool output found for function call c1"),
    "no result at the end": (ask(WORDS, BARE), "No tool output found for function call c1"),
    "call twice": (ask(WORDS, BARE, FETCHED, BARE), "Duplicate function call ids"),
    "strange name": (ask(WORDS, {**BARE, "name": "a.b"}, FETCHED), "does not match pattern"),
    "arguments as object": (ask(WORDS, {**BARE, "arguments": {}}, FETCHED), "expected a string"),
    "long id of a call": (ask(WORDS, {**BARE, "call_id": "c" * 65}), "string too long"),
    "foreign id": (ask(WORDS, {**BARE, "id": "call_1"}, FETCHED), "begins with 'fc'"),
    "reasoning alone": (ask(WORDS, THOUGHTS), "without its required following item"),
    "reasoning before something else": (ask(WORDS, THOUGHTS, BARE, FETCHED), "without its required following item"),
    "call without its reasoning": (ask(WORDS, FETCH, FETCHED), "without its required 'reasoning' item: 'rs_a'"),
    "text without its reasoning": (ask(WORDS, SAID), "without its required 'reasoning' item: 'rs_a'"),
    "reasoning twice": (ask(WORDS, THOUGHTS, SAID, THOUGHTS, SAID), "Duplicate item"),
    "reasoning of another model": (ask(WORDS, THOUGHTS, SAID, model="model-2"), "could not be verified"),
    "reasoning that is not encrypted": (
        ask(WORDS, reasoning_item(["hm"], tail="a", encrypted=False), SAID),
        "Items are not persisted when `store` is set to false",
    ),
    "reasoning without summary": (
        ask(WORDS, {key: value for key, value in THOUGHTS.items() if key != "summary"}, SAID),
        "Missing required parameter",
    ),
    "no tools": (ask(WORDS, tools=[]), "empty array"),
    "strange tool": (ask(WORDS, tools=[{**PLAIN_TOOL, "name": "a.b"}]), "does not match"),
    "tool of a chat": (ask(WORDS, tools=[FUNCTION]), "does not match"),
    "strict tool": (ask(WORDS, tools=[{**PLAIN_TOOL, "strict": True}]), "'additionalProperties' is required"),
    "choice of nothing": (ask(WORDS, tool_choice="none"), "must be specified with 'tools'"),
    "small limit": (ask(WORDS, max_output_tokens=5), "Expected a value >= 16"),
    "temperature": (ask(WORDS, model="gpt-6-sol", temperature=0.5), "'temperature' is not supported"),
    "effort of a model that has none": (ask(WORDS, model="gpt-4.1", reasoning={"effort": "low"}), "reasoning.effort"),
    "encryption of no reasoning": (
        ask(WORDS, model="gpt-4.1", include=["reasoning.encrypted_content"]),
        "Encrypted content is not supported",
    ),
    "unknown effort": (ask(WORDS, reasoning={"effort": "huge"}), "Invalid value: 'huge'"),
    "no image": (
        ask({"role": "user", "content": [{"type": "input_image", "image_url": "data:,x", "detail": "auto"}]}),
        "unsupported image",
    ),
}


@pytest.mark.parametrize("broken", RESPONSES_REFUSES)
def test_responses_api_refuses(broken: str) -> None:
    """CTX-02: requests against the Responses API's protocol are refused with its messages."""
    body, words = RESPONSES_REFUSES[broken]
    with pytest.raises(RequestRefusedError, match=words):
        responses_rules.check(body)


def test_responses_api_takes_what_is_right() -> None:
    """CTX-02: the same parts in the right order are accepted."""
    responses_rules.check(ask(WORDS, THOUGHTS, FETCH, SAID, FETCHED, WORDS, tools=[PLAIN_TOOL], tool_choice="none"))
    responses_rules.check(ask(WORDS, BARE, FETCHED, model="gpt-6-sol", temperature=0.5, reasoning={"effort": "none"}))
