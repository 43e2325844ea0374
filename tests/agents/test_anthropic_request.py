"""Tests of the mapping of a Request to Anthropic's Messages API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.messages import File, Json, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.anthropic.request import MAX_ID_LENGTH, default_max_tokens, to_request
from agents.providers.base import Request, ToolSpec
from agents.providers.conversation import CallIds
from agents.reasoning import Reasoning, ReasoningSupport, support_of
from tests.agents.conversations import conversations
from tests.agents.messages import model, note, user
from tests.wire import anthropic_rules
from tests.wire.anthropic import sign

CACHED = {"type": "ephemeral"}
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
SUB = ToolSpec("sub", "Subtracts.", {"type": "object", "properties": {}})


def text(said: str, **more: Any) -> Json:
    return {"type": "text", "text": said, **more}


def mapped(*messages: Message, **fields: Any) -> Json:
    body = to_request(Request("claude-x", messages, **fields), "anthropic")
    anthropic_rules.check(body)
    return body


def said(*messages: Message, **fields: Any) -> list[tuple[str, list[Json]]]:
    """Return the messages of the body, without cache markers."""
    sides = mapped(*messages, **fields)["messages"]
    bare = [[{k: v for k, v in block.items() if k != "cache_control"} for block in side["content"]] for side in sides]
    return [(side["role"], content) for side, content in zip(sides, bare, strict=True)]


@given(
    messages=conversations(),
    system=st.sampled_from(["", " ", "Be brief."]),
    tools=st.sampled_from([(), (ADD,), (ADD, SUB)]),
    tool_choice=st.sampled_from(["auto", "none"]),
    max_tokens=st.sampled_from([None, 1, 2000, 64_000]),
    options=st.sampled_from(
        [
            {},
            {"temperature": 0.2},
            {"thinking_budget": 5000, "temperature": 0.2, "top_k": 3},
            {"thinking": "adaptive"},
            {"thinking": "disabled"},
        ]
    ),
    name=st.sampled_from(["claude-x", "claude-haiku-4-5", "claude-opus-5-5"]),
)
def test_every_conversation_is_accepted(messages: tuple[Message, ...], name: str, **fields: Any) -> None:
    """CTX-02, CTX-03: any rows of a session give a request that keeps the vendor's rules."""
    asked = Request(name, messages, support=support_of("anthropic", name), **fields)
    anthropic_rules.check(to_request(asked, "anthropic"))


def test_whole_request() -> None:
    """CTX-02: the whole request is as expected, with its four cache markers."""
    call = ToolCall("toolu_1", "add", {"a": 1}, '{"a":1}')
    body = mapped(
        user("Add."), model("Well:", call), user(ToolResult("toolu_1", "2")), system="Be brief.", tools=(ADD, SUB)
    )
    assert body == {
        "model": "claude-x",
        "max_tokens": 16_384,
        "system": [text("Be brief.", cache_control=CACHED)],
        "tools": [
            {"name": "add", "description": "Adds.", "input_schema": ADD.parameters},
            {"name": "sub", "description": "Subtracts.", "input_schema": SUB.parameters, "cache_control": CACHED},
        ],
        "messages": [
            {"role": "user", "content": [text("Add.", cache_control=CACHED)]},
            {
                "role": "assistant",
                "content": [
                    text("Well:"),
                    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "2", "cache_control": CACHED}],
            },
        ],
    }


def test_results_come_first_and_in_one_message() -> None:
    """CTX-02: results of a round are in one message directly after their calls, before notes and text."""
    calls = (ToolCall("a", "add", {}), ToolCall("b", "add", {}))
    results = (user("And?", ToolResult("b", "2", is_error=True)), user(ToolResult("a", "")))
    sides = said(model(*calls), note("Two minutes left."), *results)
    assert sides[2] == (
        "user",
        [
            {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": True},
            {"type": "tool_result", "tool_use_id": "a"},
            text("<system-note>\nTwo minutes left.\n</system-note>"),
            text("And?"),
        ],
    )


def test_error_without_text_gets_one() -> None:
    """CTX-02: a failed call without a message gets a text, because the vendor refuses an empty error."""
    calls = (ToolCall("a", "add", {}), ToolCall("b", "add", {}))
    sides = said(model(*calls), user(ToolResult("a", "", is_error=True), ToolResult("b", "\n", is_error=True)))
    assert [block["content"] for block in sides[2][1]] == ["(The call failed without a message.)"] * 2


def test_adjacent_messages_of_a_side_are_one() -> None:
    """CTX-02: adjacent messages of a role are joined, because the vendor requires alternating roles."""
    assert said(user("a"), note("b"), user("c"), model("d"), model("e"), user("f")) == [
        ("user", [text("a"), text("<system-note>\nb\n</system-note>"), text("c")]),
        ("assistant", [text("d"), text("e")]),
        ("user", [text("f")]),
    ]


def test_blank_text_is_left_out() -> None:
    """CTX-01: an answer of only whitespace is left out, and its neighbors are joined."""
    assert said(user("a", " "), model("", " \n"), user("b")) == [("user", [text("a"), text("b")])]


def test_conversation_begins_and_ends_with_the_user() -> None:
    """CTX-02: a request begins and ends with the user, as the vendor requires, even if the rows do not."""
    opening, closing = ("user", [text("(The conversation begins here.)")]), ("user", [text("(Continue.)")])
    assert said(model("Hello. ")) == [opening, ("assistant", [text("Hello. ")]), closing]
    assert said() == [opening]


def test_own_thinking_goes_back_unchanged() -> None:
    """MSG-08: reasoning goes back to its provider with its signature, and hidden reasoning unchanged."""
    own = Thinking("hm ", "anthropic", {"signature": sign("hm ")})
    hidden = Thinking("", "anthropic", {"redacted": "b3BhcXVl"})
    assert said(user("a"), model(own, hidden, "b"), user("c"))[1] == (
        "assistant",
        [
            {"type": "thinking", "thinking": "hm ", "signature": sign("hm ")},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            text("b"),
        ],
    )


@pytest.mark.parametrize(
    "thinking",
    [
        Thinking("hm", "elsewhere", {"signature": "s"}),
        Thinking("", "elsewhere", {"redacted": "b3BhcXVl"}),
        Thinking("hm", "openai", {"field": "reasoning"}),
        Thinking("hm", "anthropic"),
        Thinking("hm"),
    ],
)
def test_thinking_that_it_cannot_take_is_dropped(thinking: Thinking) -> None:
    """MSG-08: reasoning of other providers, or without a signature, is left out."""
    assert said(user("a"), model(thinking, "b"), user("c"))[1] == ("assistant", [text("b")])


def test_answer_never_ends_with_thinking() -> None:
    """RUN-08: an answer that was stopped during reasoning does not end with the reasoning."""
    own = Thinking("hm", "anthropic", {"signature": sign("hm")})
    assert said(user("a"), model("b", own), user("c"))[1] == ("assistant", [text("b")])
    assert said(user("a"), model(own), user("c")) == [("user", [text("a"), text("c")])]


def test_ids_of_other_vendors_are_rewritten_and_stay_pairs() -> None:
    """CTX-03: after a switch of models, calls with invalid or repeated ids get new ones and keep their results."""
    call = ToolCall("functions.add:0", "add", {})
    answer = ToolResult("functions.add:0", "1")
    sides = said(user("a"), model(call), user(answer), model(call), user(answer), tools=(ADD,))
    ids = [side[1][0].get("id") or side[1][0].get("tool_use_id") for side in sides[1:]]
    assert ids == ["functions_add_0", "functions_add_0", "functions_add_0_1", "functions_add_0_1"]


def test_ids_that_look_like_rewritten_ones_stay_apart() -> None:
    """CTX-03: ids that look like rewritten ones also get unique names."""
    ids = CallIds(MAX_ID_LENGTH)
    names = [ids.new(call_id) for call_id in ("a__2", "a:", "a.", "a_", "a__3", "a;", "a__1")]
    assert len(set(names)) == len(names)


def test_strange_names_are_rewritten() -> None:
    """CTX-02: a name of another model or a user is reduced to 128 characters that the vendor allows, and an empty id is
    replaced in the call and its result."""
    sides = said(user("a"), model(ToolCall("", "web.fetch " + "x" * 199, {})), user(ToolResult("", "1")))
    assert sides[1][1][0]["name"] == "web_fetch_" + "x" * 118
    assert sides[1][1][0]["id"] == sides[2][1][0]["tool_use_id"] != ""


def test_tools_that_are_gone_are_still_defined() -> None:
    """RUN-16: the vendor requires definitions for a conversation with calls, so tools that the new agent lacks stay
    defined."""
    body = mapped(user("a"), model(ToolCall("1", "web.fetch", {})), user(ToolResult("1", "x")))
    assert [tool["name"] for tool in body["tools"]] == ["web_fetch"]
    assert body["tool_choice"] == {"type": "none"}


def test_closing_summary_keeps_the_tools() -> None:
    """RUN-09: tools stay defined in a request that forbids calls, because of earlier calls and the cache."""
    body = mapped(user("a"), tools=(ADD,), tool_choice="none")
    assert (body["tool_choice"], len(body["tools"])) == ({"type": "none"}, 1)
    assert "tool_choice" not in mapped(user("a"), tools=(ADD,))


def test_long_conversation_has_four_cache_markers() -> None:
    """MSG-06: the markers are on the system prompt, the tools and the user's last two messages, whose prefixes
    repeat."""
    body = mapped(*[message for i in range(9) for message in (user(f"{i}"), model("ok"))], system="s", tools=(ADD, SUB))
    marked = [i for i, side in enumerate(body["messages"]) for block in side["content"] if "cache_control" in block]
    assert marked == [16, 18]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("claude-3-opus-20240229", 4_096),
        ("claude-3-5-haiku-latest", 8_192),
        ("claude-2.1", 4_096),
        ("claude-x", 16_384),
        ("us.anthropic.claude-opus-4-6-v1:0", 32_000),
        ("claude-opus-6", 32_000),
    ],
)
def test_default_limit_fits_the_model(name: str, limit: int) -> None:
    """RUN-01: the default limit is at most what the model can write, because older models refuse more.

    Newer models get room for their thinking, even if no list states how they reason.
    """
    assert default_max_tokens(name, ReasoningSupport()) == limit


@pytest.mark.parametrize(("effort", "limit"), [("", 32_000), ("high", 32_000), ("xhigh", 64_000), ("max", 64_000)])
def test_default_limit_leaves_room_for_much_thinking(effort: str, limit: int) -> None:
    """RUN-16: at the highest levels, thinking alone can fill the usual limit, and the answer would have no text."""
    support = support_of("anthropic", "claude-opus-5-5")
    asked = Request("claude-opus-5-5", (user("a"),), reasoning=Reasoning(effort), support=support)
    assert to_request(asked, "anthropic")["max_tokens"] == limit
    assert to_request(replace(asked, max_tokens=5_000), "anthropic")["max_tokens"] == 5_000


def test_default_limit_is_never_more_than_the_model_writes() -> None:
    """RUN-05: the vendor's list may state a smaller limit for a model that Parley does not know."""
    asked = Request("claude-tiny-6", (user("a"),), support=ReasoningSupport(adaptive=True, most_tokens=8_000))
    assert to_request(asked, "anthropic")["max_tokens"] == 8_000


THINKING = [
    ({"thinking_budget": 4000}, None, {"type": "enabled", "budget_tokens": 4000}, 16_384),
    ({"thinking_budget": 20_000}, None, {"type": "enabled", "budget_tokens": 20_000}, 36_384),
    ({"thinking_budget": 16_000}, None, {"type": "enabled", "budget_tokens": 16_000}, 32_384),
    ({"thinking_budget": 4000}, 9000, {"type": "enabled", "budget_tokens": 4000}, 9000),
    ({"thinking_budget": 6000}, 8192, {"type": "enabled", "budget_tokens": 4192}, 8192),
    ({"thinking_budget": 4000}, 2000, {"type": "enabled", "budget_tokens": 1024}, 2000),
    ({"thinking_budget": 4000}, 1000, None, 1000),
    ({"thinking": {"type": "enabled", "budget_tokens": 6000}}, 8192, {"type": "enabled", "budget_tokens": 4192}, 8192),
    ({"thinking_budget": 5}, None, {"type": "enabled", "budget_tokens": 1024}, 16_384),
    ({"thinking_budget": 0}, None, None, 16_384),
    ({"thinking": "adaptive"}, 100, {"type": "adaptive"}, 100),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}}, None, "same", 16_384),
]


@pytest.mark.parametrize(("options", "limit", "thinking", "max_tokens"), THINKING, ids=str)
def test_thinking_leaves_room_for_the_answer(options: Json, limit: int | None, thinking: Any, max_tokens: int) -> None:
    """MSG-08: thinking is set by options, within the vendor's limits, and leaves tokens for the answer.

    A configured limit is kept, and a budget that does not fit into it is reduced.
    """
    body = mapped(user("a"), options=options, max_tokens=limit)
    assert body.get("thinking") == (options["thinking"] if thinking == "same" else thinking)
    assert body["max_tokens"] == max_tokens
    assert "thinking_budget" not in body


@pytest.mark.parametrize(
    ("model", "budget", "max_tokens"),
    [
        ("claude-haiku-4-5-20251001", 60_000, 64_000),
        ("claude-sonnet-4-5", 60_000, 64_000),
        ("claude-opus-4-5-20251101", 60_000, 64_000),
        ("claude-opus-4-1-20250805", 28_000, 32_000),
        ("claude-sonnet-4-6", 64_000, 96_000),
    ],
)
def test_thinking_is_bounded_by_what_the_model_can_write(model: str, budget: int, max_tokens: int) -> None:
    """MSG-08: the vendor refuses a limit above the model's own. A larger budget is reduced, so that an answer fits."""
    for chosen in (Reasoning(budget=64_000), Reasoning()):
        options = {} if chosen.budget else {"thinking_budget": 64_000}
        asked = Request(model, (user("a"),), reasoning=chosen, support=support_of("anthropic", model), options=options)
        body = to_request(asked, "anthropic")
        assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (budget, max_tokens)


def test_thinking_takes_no_sampling_options() -> None:
    """MSG-08: a temperature is sent only without thinking, because the vendor refuses both together."""
    options = {"temperature": 0.3, "top_k": 5, "stop_sequences": ["x"]}
    assert mapped(user("a"), options=options | {"thinking_budget": 2000}).keys() & options.keys() == {"stop_sequences"}
    assert mapped(user("a"), options=options | {"thinking": "disabled"})["temperature"] == 0.3


def test_tool_round_begun_without_thinking_goes_on_without() -> None:
    """RUN-16: a round that another model began without thinking continues without it."""
    round_ = [user("a"), model("b", ToolCall("1", "add", {})), user(ToolResult("1", "x"))]
    assert "thinking" not in mapped(*round_, tools=(ADD,), options={"thinking_budget": 2000})
    own = Thinking("hm", "anthropic", {"signature": sign("hm")})
    thought = [user("a"), model(own, ToolCall("1", "add", {})), user(ToolResult("1", "x"))]
    assert "thinking" in mapped(*thought, tools=(ADD,), options={"thinking_budget": 2000})


def thought(text: str) -> Thinking:
    return Thinking(text, "anthropic", {"signature": sign(text)})


ROUNDS = [
    user("a"),
    model(thought("plan"), ToolCall("1", "add", {})),
    user(ToolResult("1", "x")),
    model("Next:", ToolCall("2", "add", {})),
    user(ToolResult("2", "y")),
]
HAIKU = "claude-haiku-4-5"


def test_budget_lasts_for_all_rounds_of_a_turn() -> None:
    """RUN-16, CTX-02: with a budget, a model thinks once in a turn, so later responses do not begin with thinking."""
    asked = Request(HAIKU, tuple(ROUNDS), tools=(ADD,), reasoning=Reasoning(budget=8000))
    body = to_request(replace(asked, support=support_of("anthropic", HAIKU)), "anthropic")
    anthropic_rules.check(body)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8000}
    assert body["messages"][1]["content"][0]["thinking"] == "plan"


def test_turn_goes_on_without_its_thinking_when_thinking_is_turned_off() -> None:
    """RUN-16, CTX-02: a user may turn thinking off while a call waits. Only the turn's own thinking is left out."""
    earlier = [user("before"), model(thought("old"), "Yes.")]
    asked = Request(HAIKU, (*earlier, *ROUNDS), tools=(ADD,), support=support_of("anthropic", HAIKU))
    sent: list[Thinking] = []
    body = to_request(asked, "anthropic", sent_reasoning=sent)
    anthropic_rules.check(body)
    kinds = [[block["type"] for block in side["content"]] for side in body["messages"] if side["role"] == "assistant"]
    assert kinds == [["thinking", "text"], ["tool_use"], ["text", "tool_use"]]
    assert [part.text for part in sent] == ["old"]


def test_turn_keeps_the_thinking_of_a_model_that_always_thinks() -> None:
    """RUN-16: without the parameter, the thinking is left out only if the model is known not to think."""
    for name in ("claude-x", "claude-opus-5-5"):
        asked = Request(name, tuple(ROUNDS), tools=(ADD,), support=support_of("anthropic", name))
        assert to_request(asked, "anthropic")["messages"][1]["content"][0]["type"] == "thinking"


def test_options_never_override_the_request() -> None:
    """CTX-01: options do not replace anything that the rows determine."""
    body = mapped(user("a"), options={"messages": [], "model": "other", "top_p": 0.9})
    assert (body["model"], len(body["messages"]), body["top_p"]) == ("claude-x", 1, 0.9)


def test_same_request_maps_to_the_same_body() -> None:
    """CTX-01: the mapping changes none of its arguments and keeps no state."""
    options = {"thinking_budget": 2000}
    asked = Request("claude-x", (user("a"),), "s", (ADD,), options=options)
    assert to_request(asked, "anthropic") == to_request(asked, "anthropic")
    assert options == {"thinking_budget": 2000}
    assert "cache_control" not in ADD.parameters


def test_files_are_blocks_of_their_own() -> None:
    """CTX-02: files come before the user's question, and after the results of an interrupted round."""
    image = File("image", "a.png", "image/png", "iVBORw0KGgo=")
    paper = File("pdf", "b.pdf", "application/pdf", "JVBERi0=")
    asked = Message("user", (Text("[Image a.png]"), image, paper, Text("What is it?"), ToolResult("1", "x")))
    body = mapped(user("a"), model(ToolCall("1", "add", {})), asked, tools=(ADD,))
    anthropic_rules.check(body)
    kinds = [block["type"] for block in body["messages"][-1]["content"]]
    assert kinds == ["tool_result", "text", "image", "document", "text"]
    assert body["messages"][-1]["content"][2] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
    }
    assert body["messages"][-1]["content"][3]["title"] == "b.pdf"
