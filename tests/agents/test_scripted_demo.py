"""The demo agent shows all features, explains itself, and needs nothing but the request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from agents.approval import Rules
from agents.errors import ConnectionLost, Overloaded, RequestRejected
from agents.events import (
    AgentEvent,
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    TextDelta,
    ToolReturned,
    ToolStarted,
    ToolWaiting,
    TurnFailed,
    TurnFinished,
)
from agents.loop import Agent, run
from agents.messages import Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import ListedModel, Request
from agents.providers.demo import chinese, texts
from agents.providers.demo import provider as demo
from agents.providers.demo.provider import DemoProvider
from agents.providers.scripted import Pause
from agents.sandbox.command import Sandbox
from agents.toolbox import DEFAULT_TOOLS, TOOLBOX
from chat.projections.views import YOU_ARE

TOOLS = tuple(tool.name for tool in DEFAULT_TOOLS)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


async def answer_events(
    *history: Message | str, tools: Sequence[str] = TOOLS, max_rounds: int = 25, sandbox: Sandbox | None = None
) -> list[AgentEvent]:
    messages = [user(one) if isinstance(one, str) else one for one in history]
    agent = Agent(
        "demo",
        "demo",
        DemoProvider(tokens_per_second=0),
        tools=tuple(TOOLBOX[name] for name in tools),
        max_rounds=max_rounds,
        sandbox=sandbox,
        rules=Rules(allow=("bash",)),
    )

    async def sleep(seconds: float) -> None:
        pass

    async with aclosing(run(agent, messages, sleep=sleep)) as events:
        return [event async for event in events]


async def answer(*history: Message | str) -> str:
    """Return the text of the last response."""
    events = await answer_events(*history)
    assert events[-1] == TurnFinished("done")
    return [event.part.text for event in events if isinstance(event, PartDone) and isinstance(event.part, Text)][-1]


@pytest.mark.parametrize("text", ["hello", "help", "What can you do?", "/help", ""])
async def test_demo_says_what_it_is_and_how_to_connect_a_model(text: str) -> None:
    said = await answer(text)
    for words in (
        "demo agent",
        "not an AI",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "start it again",
    ):
        assert words in said


@pytest.mark.parametrize("text", ["你好", "你是谁？", "帮助"])
async def test_demo_answers_chinese_in_chinese(text: str) -> None:
    said = await answer(text)
    assert "不是 AI 模型" in said
    assert "OPENAI_BASE_URL" in said


@pytest.mark.parametrize("prompt", ["你能提供哪些帮助？", "使用你的工具", "给我看表格、列表和代码", "先思考，再回答"])
async def test_demo_answers_its_chinese_prompts_in_chinese(prompt: str) -> None:
    """UI-13: the prompts that a Chinese page suggests are answered in Chinese, with the tools' results."""
    said = await answer(prompt)
    assert said in chinese.TEXTS.values() or said.startswith("工具的结果：")
    assert not set(chinese.TEXTS.values()) & set(chinese.TEXTS)
    assert [words for words in chinese._OF_MARKDOWN if words not in texts.MARKDOWN] == []


async def test_demo_s_chinese_help_names_what_it_understands() -> None:
    """UI-13: the Chinese help has the same rows as the English one, with words that the demo agent understands."""
    for text in (texts.HELP, chinese.HELP):
        words = re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)
        assert len(words) == 15
        assert [word for word in words if not demo._COMMAND.search(word)] == []
    assert "演示助手" not in "".join(chinese.TEXTS.values())


@pytest.mark.parametrize(("text", "kinds"), [("提问", ["form", "selection"]), ("计划", ["plan_review"])])
async def test_demo_asks_in_chinese(text: str, kinds: list[str]) -> None:
    """UI-12, UI-13: the questions are valid, and Chinese."""
    asked = [event for event in await answer_events(text) if isinstance(event, ToolWaiting)]
    assert [event.kind for event in asked] == kinds
    assert all(re.search("[一-鿿]", str(event.call.arguments)) for event in asked)


async def test_demo_streams_markdown_token_by_token() -> None:
    events = await answer_events("Show me a TABLE please")
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(deltas) == texts.MARKDOWN
    assert len(deltas) > 150
    assert all("\n" not in delta.strip() for delta in deltas)


async def test_demo_thinks_before_it_answers() -> None:
    events = await answer_events("think")
    kinds = [type(event) for event in events if isinstance(event, ReasoningDelta | TextDelta)]
    assert kinds == sorted(kinds, key=[ReasoningDelta, TextDelta].index)
    thought, spoken = (event.part for event in events if isinstance(event, PartDone))
    assert isinstance(thought, Thinking)
    assert thought.data == {"signature": "demo"}
    assert isinstance(spoken, Text)


@pytest.mark.parametrize(("text", "kinds"), [("ask", ["form", "selection"]), ("plan", ["plan_review"])])
async def test_demo_asks_people(text: str, kinds: list[str]) -> None:
    """UI-12: the demo agent's questions are valid, and it repeats the answers."""
    events = await answer_events(text)
    asked = [event for event in events if isinstance(event, ToolWaiting)]
    assert [event.kind for event in asked] == kinds
    assert events[-1] == TurnFinished("waiting")
    calls = tuple(event.call for event in asked)
    answered = Message("user", tuple(ToolResult(call.id, "This is the answer.") for call in calls))
    assert (await answer(user(text), Message("assistant", calls), answered)).count("This is the answer.") == len(kinds)


async def test_demo_calls_several_tools_at_once_and_uses_their_results() -> None:
    events = await answer_events("tools")
    calls = [event.call for event in events if isinstance(event, ToolStarted)]
    assert [call.name for call in calls] == ["current_time", "calculator", "calculator"]
    results = {event.result.call_id: event.result for event in events if isinstance(event, ToolReturned)}
    assert not any(result.is_error for result in results.values())
    final = events[-3]
    assert isinstance(final, PartDone)
    assert isinstance(final.part, Text)
    assert all(results[call.id].content in final.part.text for call in calls)


async def test_demo_calculates_what_it_is_asked() -> None:
    assert "`calculator(2 ** 64 / 3)`: 6148914691236517205.333333333" in await answer("calculate 2 ** 64 / 3")
    assert "(failed): Division by zero." in await answer("please calculate: 1/0")
    assert "`calculator(3 * 4)`: 12" in await answer("计算 3 * 4")


async def test_demo_runs_a_command_if_it_may(tmp_path: Path) -> None:
    """The demo agent runs a command to show the sandbox, if it is allowed to."""
    sandbox = Sandbox(tmp_path / "workspace")
    events = await answer_events("bash echo one; echo two", tools=["bash"], sandbox=sandbox)
    assert ToolReturned(ToolResult("demo_1_1", "one\ntwo", origin="bash")) in events
    said = [event.part.text for event in events if isinstance(event, PartDone) and isinstance(event.part, Text)]
    assert "- `bash(echo one; echo two)`:\n\n```\none\ntwo\n```" in said[-1]
    assert texts.NO_BASH in await answer("bash echo one")


async def test_demo_call_ids_do_not_repeat_in_a_conversation() -> None:
    first = await answer_events("tools")
    calls = [event.call for event in first if isinstance(event, ToolStarted)]
    results = [event.result for event in first if isinstance(event, ToolReturned)]
    history = [user("tools"), Message("assistant", tuple(calls)), Message("user", tuple(results)), user("tools")]
    again = [event.call for event in await answer_events(*history) if isinstance(event, ToolStarted)]
    assert not {call.id for call in calls} & {call.id for call in again}
    assert len(again) == 3


async def test_demo_without_tools_says_so() -> None:
    events = await answer_events("tools", tools=[])
    assert PartDone(Text(texts.NO_TOOLS)) in events


async def test_demo_sums_up_at_the_round_limit() -> None:
    """The demo agent sums up at the round limit (RUN-09)."""
    events = await answer_events("tools", max_rounds=1)
    assert PartDone(Text(texts.ROUND_LIMIT)) in events
    assert events[-1] == TurnFinished("limit")


async def test_demo_echoes_exactly() -> None:
    assert await answer("echo  think `x`\n\n  table 🎉") == "think `x`\n\n  table 🎉"
    assert await answer("echo") == texts.NOTHING_TO_ECHO


async def test_demo_knows_who_speaks_in_a_shared_session() -> None:
    """The demo agent gets the names of the senders (CTX-06)."""
    assert "**Ada Lovelace**" in await answer("[Grace] hello", "[Ada Lovelace] who am I?")
    assert await answer("who am I?") == texts.WHO_UNKNOWN


async def test_demo_answers_the_last_message() -> None:
    assert await answer("think", Message("assistant", (Text("…"),)), "echo last") == "last"
    assert await answer(Message("user", (Text("think"), Text("echo last")))) == "last"


async def test_demo_answers_the_message_that_mentions_it() -> None:
    """RUN-17: of several new messages, the demo agent answers the last one for it, not one for other people."""
    assert await answer("@agent echo x", "@Eddie can you look?") == "x"
    assert await answer("[Olive] @Assistant echo x", "[Eddie] @Olive look") == "x"
    assert await answer("@agent echo x", Message("assistant", (Text("x"),)), "echo y") == "y"
    assert await answer("@Eddie hello", "echo mail to a@agent.example") == "mail to a@agent.example"
    summary = Message("user", (Text("They wrote: @agent echo x", foreign=True, origin="summary"),))
    assert await answer(summary, "echo y") == "y"


async def test_demo_answers_as_one_of_several_agents() -> None:
    """CTX-06, RUN-17: the second agent answers the user's message, and not the first agent's answer to it."""
    system = f"Be kind.\n\n{YOU_ARE.format(title='Code Critic', name='critic')}"
    for mention in ("@critic", "@Code Critic"):
        asked = [user(f"[Olive] @assistant {mention} who"), user("[Assistant] This message is from **Olive**.")]
        assert demo._answer(Request("demo", tuple(asked), system)) == [texts.WHO.format(speaker="Olive")]


@pytest.mark.parametrize(
    ("text", "error"), [("error", RequestRejected), ("错误", RequestRejected), ("error mid", ConnectionLost)]
)
async def test_demo_fails_when_asked(text: str, error: type[Exception]) -> None:
    """The demo agent can fail on request (RUN-10)."""
    events = await answer_events(text)
    assert isinstance(events[-1], TurnFailed)
    assert type(events[-1].error) is error
    assert any(isinstance(event, TextDelta) for event in events) is (error is ConnectionLost)


async def test_demo_is_too_busy_when_asked() -> None:
    """RUN-10: the demo agent can report that it is busy, so that the retries are visible."""
    events = await answer_events("error busy")
    assert [type(event) for event in events] == [ResponseStarted, RetryScheduled] * 2 + [ResponseStarted, TurnFailed]
    assert isinstance(events[-1], TurnFailed)
    assert type(events[-1].error) is Overloaded


async def test_demo_long_answer_is_long() -> None:
    assert len(await answer("long")) > 8_000


async def test_demo_reports_plausible_usage() -> None:
    small, large = (await answer_events("echo hi"))[-2], (await answer_events("echo " + "hi " * 1000, "echo hi"))[-2]
    assert isinstance(small, ResponseDone)
    assert isinstance(large, ResponseDone)
    assert small.usage.output_tokens == large.usage.output_tokens == 1
    assert (large.usage.input_tokens or 0) > (small.usage.input_tokens or 0) + 700
    assert 0 < (large.usage.cache_read_tokens or 0) < (large.usage.input_tokens or 0)


def pauses(text: str, tokens_per_second: float) -> list[float]:
    request = Request("demo", (user(text),))
    steps = demo._pace(demo._answer(request), request, tokens_per_second)
    return [step.seconds for step in steps if isinstance(step, Pause)]


def test_demo_types_at_its_pace() -> None:
    waits = pauses("echo one two three", 40)
    assert waits == [demo.FIRST_TOKEN_SECONDS] + [1 / 40] * 3
    assert pauses("slow", 0) == []


def test_demo_slow_answer_takes_its_time() -> None:
    assert demo.SLOW_SECONDS <= sum(pauses("slow", 1000)) < demo.SLOW_SECONDS + 1


async def test_demo_provider_has_one_model() -> None:
    provider = DemoProvider()
    assert await provider.list_models() == {"demo": ListedModel()}
    await provider.close()


def test_demo_results_of_other_tools_are_shown_too() -> None:
    """The demo agent can continue a conversation that a real model began."""
    call = ToolCall("x", "search", {"q": "a", "n": 2})
    assert texts.result_line(call, ToolResult("x", "found")) == "- `search(a, 2)`: found"
