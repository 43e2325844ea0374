"""Steps: the context, message by message, with the metadata of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.messages import Json, Message, Part, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import Request
from agents.providers.dialect import Dialect
from agents.providers.openai.request import to_request
from chat.models import ChatMessage, Session
from chat.projections.context import Around, author_of, call_ids, context, from_summary, speaker, system_prompt
from chat.projections.steps import AT_WORK, Step, steps
from tests.projections.test_context_random import any_rows
from tests.support.effort import cases

PROMPT = "Be brief."


def row(number: int, **fields: object) -> ChatMessage:
    values = {"id": f"m_{number}", "session": Session(id="s_1"), "sequence": number, "turn_id": "t_1", **fields}
    return ChatMessage(**values)


def projected(rows: list[ChatMessage]) -> list[Step]:
    return [each.step for each in steps(rows)]


def context_messages(rows: list[ChatMessage]) -> list[Message]:
    """Return the finished messages of the context without reasoning, which OpenAI's form lacks."""
    messages = [replace(each, parts=_without_thinking(each.parts)) for each in context(rows)]
    if messages and messages[-1].tool_results:
        open_calls = {index for index, each in enumerate(_last_calls(rows)) if each.status in AT_WORK}
        waiting = [each.id for index, each in enumerate(messages[-2].tool_calls) if index in open_calls]
        results = tuple(each for each in messages[-1].tool_results if each.call_id not in waiting)
        messages[-1:] = [Message("user", results)] if results else []
    return messages


def _without_thinking(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not isinstance(part, Thinking))


def _last_calls(rows: list[ChatMessage]) -> list[ChatMessage]:
    """Return the rows of the last message's calls, in order."""
    count = len(next(each for each in reversed(context(rows)) if each.role == "assistant").tool_calls)
    calls = [each for each in rows if each.type == "tool_group" and each.include_in_context]
    return calls[-count:]


def as_context(found: Sequence[Step], prompt: str) -> list[Json]:
    """Read steps like a client: as messages of OpenAI's API, with the system prompt first."""
    fields = ("role", "content", "tool_calls", "tool_call_id", "name")
    values = [{name: getattr(step, name) for name in fields} for step in found]
    messages = [
        {name: value for name, value in each.items() if value is not None or name == "content"} for each in values
    ]
    system = {"role": "system", "content": prompt}
    return messages if not prompt or messages[:1] == [system] else [system, *messages]


def read_back(messages: list[Json], prompt: str) -> tuple[Message, ...]:
    """Return the messages of OpenAI's form after the system prompt."""
    if prompt:
        assert messages[0] == {"role": "system", "content": prompt}
    return tuple(map(_message, messages[1:] if prompt else messages))


def _message(each: Json) -> Message:
    if each["role"] == "tool":
        return Message("user", (ToolResult(each["tool_call_id"], each["content"]),))
    text = (Text(each["content"]),) if each["content"] else ()
    calls = (_call(call) for call in each.get("tool_calls", ()))
    return Message(each["role"], (*text, *calls))


def _call(call: Json) -> ToolCall:
    said = call["function"]["arguments"]
    return ToolCall(call["id"], call["function"]["name"], json.loads(said), said)


def request(prompt: str, messages: tuple[Message, ...]) -> Json:
    return to_request(Request("one", messages, prompt), "scripted", Dialect())


@settings(max_examples=cases(150), deadline=None)
@given(rows=any_rows())
def test_five_fields_are_the_context(rows: list[ChatMessage]) -> None:
    """CTX-04, CTX-02: the request that is read back from the steps equals the one built from the rows."""
    rows = from_summary(rows)  # CTX-07
    prompt = system_prompt(rows, PROMPT)
    said = read_back(as_context(projected(rows), prompt), prompt)
    assert request(prompt, said) == request(prompt, tuple(context_messages(rows)))


@settings(max_examples=cases(60), deadline=None)
@given(rows=any_rows())
def test_steps_are_in_order_and_apart(rows: list[ChatMessage]) -> None:
    """CTX-04: ids and numbers are unique, numbers increase, and a result follows its call."""
    found = projected(rows)
    assert len({step.id for step in found}) == len(found)
    numbers = [step.sequence for step in found]
    assert numbers == sorted(set(numbers))
    called: set[str] = set()
    for step in found:
        called |= {call["id"] for call in step.tool_calls or ()}
        assert step.tool_call_id is None or step.tool_call_id in called


def test_steps_say_which_agent_they_are_of() -> None:
    """CTX-04: texts, calls and results have their agent."""
    made_by = {"role": "assistant", "mode": "plan", "agent_id": "coder", "workflow_id": "w_1", "response_id": "r_1"}
    call = {"type": "tool_group", "tool_call_id": "c1", "tool_name": "add", "result": "2", "status": "complete"}
    rows = [row(1, type="text", role="user", text="Hi"), row(2, type="text", text="So", **made_by)]
    rows.append(row(3, **call, **made_by))
    found = [(step.role, step.mode, step.agent_id, step.workflow_id) for step in projected(rows)[1:]]
    assert found == [("assistant", "plan", "coder", "w_1"), ("tool", "plan", "coder", "w_1")]


@settings(max_examples=cases(60), deadline=None)
@given(rows=any_rows(), at=st.integers(0, 8))
def test_end_of_a_session_has_the_steps_that_the_whole_has_there(rows: list[ChatMessage], at: int) -> None:
    """CTX-04: steps can be built from any user message on, without the earlier rows."""
    if at >= len(rows) or not rows[at].include_in_context or speaker(rows[at]) != "user":
        return
    before = [each for each in rows[:at] if each.include_in_context]
    people = frozenset(author_of(each) for each in rows if each.include_in_context and speaker(each) == "user")
    around = Around(people, call_ids((each.id, each.tool_call_id) for each in before if each.type == "tool_group"))
    end = [each.step for each in steps(rows[at:], around)]
    assert end == [step for step in projected(rows) if step.sequence > 2 * at + 1]


def test_call_with_the_id_of_an_earlier_one_has_the_same_name_in_a_part_of_the_session() -> None:
    """CTX-03, CTX-04: a repeated id gets the same new name in a part of the session, because some servers count their
    calls per response."""
    call = {"type": "tool_group", "role": "assistant", "tool_call_id": "c1", "tool_name": "add", "result": "2"}
    said = {"type": "text", "role": "user", "text": "Go"}
    rows = [row(1, **said), row(2, **call, response_id="r_1"), row(3, **said), row(4, **call, response_id="r_2")]
    people = frozenset({author_of(rows[0])})
    part = [each.step for each in steps(rows[2:], Around(people, call_ids([(rows[1].id, "c1")])))]
    assert part == [step for step in projected(rows) if step.sequence > 5]
    assert part[-1].tool_call_id == "call_m_4"


def test_response_and_its_tools_are_steps_of_the_model() -> None:
    """CTX-04, MSG-06: the steps have the response's figures and the tool's."""
    call = {"response_id": "r_1", "role": "assistant", "model": "one", "provider": "scripted"}
    rows = [
        row(1, type="turn_start"),
        row(2, role="user", sender="Ana", text="17 × 23?", mode="run", agent_id="helper", workflow_id="nightly"),
        row(3, type="reasoning", text="Hm.", **call),
        row(4, text="I count.", duration_ms=1200, **call),
        row(5, type="tool_group", tool_call_id="c1", tool_name="calculator", arguments={"e": "17*23"}, result="391",
            duration_ms=5, input_tokens=10, output_tokens=4, total_tokens=14, cache_read_tokens=2,
            cache_write_tokens=1, first_token_latency_ms=80, **call),
    ]  # fmt: skip
    asked, said, result = projected(rows)
    assert (asked.id, asked.sequence, asked.role, asked.content, asked.metrics) == ("m_2", 4, "user", "17 × 23?", None)
    assert (asked.mode, asked.agent_id, asked.workflow_id) == ("run", "helper", "nightly")
    assert (said.id, said.run_id, said.sequence, said.role, said.content) == ("m_4", "t_1", 8, "assistant", "I count.")
    function = {"name": "calculator", "arguments": '{"e": "17*23"}'}
    assert said.tool_calls == [{"id": "c1", "type": "function", "function": function}]
    assert said.metrics is not None
    assert (said.metrics.duration_ms, said.metrics.model_name, said.metrics.total_tokens) == (1200, "one", 14)
    assert (said.metrics.cache_tokens, said.metrics.first_token_latency_ms) == (3, 80)
    assert (result.id, result.sequence, result.role, result.content) == ("m_5.result", 11, "tool", "391")
    assert (result.tool_call_id, result.name) == ("c1", "calculator")
    assert result.metrics is not None
    assert (result.metrics.tool_exec_time_ms, result.metrics.total_tokens) == (5, None)


def test_running_call_has_no_result_yet() -> None:
    """CTX-04, MSG-07: a running call has no result, unlike in a request, which needs a placeholder."""
    rows = [row(1, role="user", text="Dig"), row(2, type="tool_group", tool_call_id="c1", status="running")]
    assert [step.id for step in projected(rows)] == ["m_1", "m_2"]
    rows[1].status, rows[1].result = "complete", "a bone"
    assert [step.id for step in projected(rows)] == ["m_1", "m_2", "m_2.result"]


def test_system_row_is_the_prompt() -> None:
    """CTX-04: the session's prompt comes first unless a row replaces it."""
    rows = [row(1, role="user", text="Hello")]
    assert as_context(projected(rows), PROMPT)[0] == {"role": "system", "content": PROMPT}
    rows = [row(1, role="system", text="Be long."), row(2, role="user", text="Hello")]
    said = as_context(projected(rows), system_prompt(rows, PROMPT))
    assert said == [{"role": "system", "content": "Be long."}, {"role": "user", "content": "Hello"}]
