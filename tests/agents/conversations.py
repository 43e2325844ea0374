"""Random conversations, of any form that a session's rows can have, with one result for each call (CTX-03)."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import strategies as st

from agents.messages import File, Message, Part, Text, Thinking, ToolCall, ToolResult
from tests.wire.anthropic import sign
from tests.wire.responses import reasoning_item

WORDS = st.sampled_from(["hello", "", " ", "\n\t", "two words ", "漢字 😀", "{}", "line\nbreak\n"])
NAMES = st.sampled_from(["calculator", "web.fetch", "unknown", "", "naïve tool", "x" * 200, "a-b_c9"])
IDS = st.sampled_from(["call_0", "toolu_1", "functions.calc:0", "", "漢", "call_1", "a b"])
VALUES = st.dictionaries(st.sampled_from(["a", "b", "expression"]), st.sampled_from([1, "x", None, [1.5], {"c": True}]))
MAKERS = st.sampled_from(["anthropic", "openai", "elsewhere"])

NOTES = WORDS.map(lambda text: Message("system", (Text(text),)))
FILES = st.sampled_from(
    [File("image", "a.png", "image/png", "iVBORw0KGgo="), File("pdf", '漢 "b".pdf', "application/pdf", "JVBERi0=")]
)
USERS = st.lists(st.one_of(WORDS.map(Text), FILES), max_size=3).map(lambda parts: Message("user", tuple(parts)))
THOUGHTS = st.one_of(
    st.tuples(WORDS, MAKERS).map(lambda two: Thinking(two[0], two[1], {"signature": sign(two[0])})),
    MAKERS.map(lambda maker: Thinking("", maker, {"redacted": "b3BhcXVl"})),
    st.tuples(WORDS, MAKERS).map(lambda two: Thinking(*two)),
    WORDS.map(lambda text: Thinking(text, "openai", {"field": "reasoning_content"})),
)
CALLS = st.tuples(IDS, NAMES, VALUES).map(lambda three: ToolCall(*three))


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """Return an answer of a model with the results of its calls: in one message or several, with notes between them."""
    parts: list[Part] = draw(st.lists(st.one_of(WORDS.map(Text), THOUGHTS, CALLS), max_size=5))
    answer = Message("assistant", _with_one_call_per_id(parts))
    results = [ToolResult(call.id, draw(WORDS), draw(st.booleans())) for call in answer.tool_calls]
    results = list(draw(st.permutations(results)))
    after = [Message("user", (result,)) for result in results]
    if results and draw(st.sampled_from([True, False])):
        after = [Message("user", (*draw(USERS).parts, *results))]
    return [answer, *draw(st.lists(NOTES, max_size=1)), *after]


@st.composite
def remembered(draw: st.DrawFn) -> list[Message]:
    """Return a response of OpenAI with the ids of its items, some of which users have changed or removed."""
    tail, model = draw(st.sampled_from(["a1", "b2", "c3"])), draw(st.sampled_from(["gpt-x", "gpt-y", ""]))
    parts: list[Part] = []
    before = ""
    for number in range(draw(st.integers(1, 4))):
        after = {"after": before} if before else {}
        match draw(st.sampled_from(["reasoning", "text", "call"])):
            case "reasoning":
                item = reasoning_item(["hm"], tail=f"{tail}{number}", model=model or "gpt-x")
                parts.append(Thinking("hm", "openai", {"item": json.dumps(item), **after}, model))
                before = item["id"]
            case "text":
                before = f"msg_{_tail(parts)}_{number}"
                parts.append(Text(draw(WORDS), {"item_id": before, "phase": "commentary", **after}))
            case "call":
                call_id = f"call_{tail}_{number}"
                before = f"fc_{_tail(parts)}_{number}"
                parts.append(ToolCall(call_id, "calculator", {}, "", {"item_id": before, **after}))
    kept = [part for part in parts if draw(st.integers(0, 4))]
    answer = Message("assistant", tuple(part if draw(st.integers(0, 4)) else _edited(part) for part in kept))
    return [answer, Message("user", tuple(ToolResult(call.id, "1") for call in answer.tool_calls))]


def _edited(part: Part) -> Part:
    """Return a part that a user has edited, so that it is no longer the model's."""
    return replace(part, data={}) if isinstance(part, Text | Thinking | ToolCall) else part


def _tail(parts: list[Part]) -> str:
    """Return the tail of the reasoning that an item follows."""
    before = [json.loads(part.data["item"])["id"] for part in parts if isinstance(part, Thinking)]
    return before[-1].removeprefix("rs_") if before else "0"


def _with_one_call_per_id(parts: list[Part]) -> tuple[Part, ...]:
    seen: set[str] = set()
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            if part.id in seen:
                continue
            seen.add(part.id)
        kept.append(part)
    return tuple(kept)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Return users' messages, notes and rounds in any order, with any of them at the beginning and the end."""
    one = st.one_of(USERS.map(lambda message: [message]), NOTES.map(lambda message: [message]), rounds(), remembered())
    return tuple(message for group in draw(st.lists(one, max_size=7)) for message in group)
