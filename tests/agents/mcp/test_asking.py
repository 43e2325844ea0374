"""Questions of MCP servers to users during a call, over a pipe and over HTTP (UI-18)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, cast

import mcp_types as types
import pytest

from agents.elicitation import CANCELLED, Elicitation
from agents.mcp.asking import WHICH_CALL, Questions
from agents.messages import Json, ToolCall, ToolResult
from agents.tools import Tool, ToolContext
from tests.agents.mcp.test_servers import http_server, opened, program, tools

Answer = Callable[[Elicitation, float], Awaitable[Json]]
FILLED = {"date": "2026-12-24", "people": 4, "room": "Hall", "vegan": False, "extras": ["music"]}
ACCEPT = {"action": "accept", "content": FILLED}


def answering(*answers: Json, seen: list[Elicitation] | None = None) -> Answer:
    """Return a function that answers questions with the given answers in order."""
    left = list(answers)

    async def ask(question: Elicitation, seconds: float) -> Json:
        if seen is not None:
            seen.append(question)
        return question.for_server(question.check(left.pop(0)))

    return ask


async def run(tool: Tool, ask: Answer | None, **arguments: Any) -> ToolResult:
    return await tool.run(ToolCall("1", tool.name, arguments), ToolContext(ask=ask))


async def test_a_program_asks_and_gets_the_answer() -> None:
    """UI-18: users see the titles of options, and the server gets its own values."""
    seen: list[Elicitation] = []
    async with opened(program()) as servers:
        found = await tools(servers)
        result = await run(found["book"], answering(ACCEPT, seen=seen))
    assert result.content == (
        "accept [('date', '2026-12-24'), ('extras', ['music']), ('people', 4), ('room', 'h'), ('vegan', False)]"
    )
    (question,) = seen
    assert (question.server, question.message) == ("it", "When do you want to come to the inn?")
    assert [(field.label, field.type, field.required) for field in question.fields] == [
        ("Day", "date", True),
        ("How many people", "number", True),
        ("room", "choice", False),
        ("vegan", "yes_no", False),
        ("extras", "choices", False),
    ]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declined_and_cancelled_are_the_protocols_words(action: str) -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        assert (await run(found["book"], answering({"action": action}))).content == f"{action} []"


async def test_no_one_is_there_to_be_asked() -> None:
    """MSG-09: in a run without users, the server gets the answer "cancel" immediately."""
    async with opened(program()) as servers:
        found = await tools(servers)
        assert (await run(found["book"], None)).content == "cancel []"


async def test_question_of_a_resource_is_cancelled_without_asking_a_user() -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        tool = found["read_resource"]
        result = await tool.run(ToolCall("1", tool.name, {"uri": "notes://asked/one"}), ToolContext(ask=answering()))
    assert "cancel []" in result.content


async def test_page_to_open_has_its_host() -> None:
    seen: list[Elicitation] = []
    async with opened(program()) as servers:
        found = await tools(servers)
        assert (await run(found["sign_in"], answering({"action": "accept"}, seen=seen))).content == "accept"
        bad = await run(found["sign_in"], answering(), url="javascript:alert(1)")
        assert bad.is_error
    assert (seen[0].host, seen[0].url) == ("pay.example.com", "https://pay.example.com/sign-in?a=1")


async def test_call_that_needs_a_page_says_so_to_the_model() -> None:
    """The protocol's error -32042 reaches the model as a message about the page."""
    async with opened(program()) as servers:
        found = await tools(servers)
        opening = await run(found["needs_page"], answering({"action": "accept"}))
        assert (opening.is_error, "a person has opened the page" in opening.content) == (True, True)
        refused = await run(found["needs_page"], answering({"action": "decline"}))
        assert "no one has opened it" in refused.content
        assert "no one has opened it" in (await run(found["needs_page"], None)).content


async def test_form_that_cannot_be_shown_is_the_servers_error() -> None:
    async with opened(program()) as servers:
        result = await run((await tools(servers))["ask_nonsense"], answering())
    assert (result.is_error, "table has the type 'object'" in result.content) == (True, True)


async def test_time_limit_does_not_run_while_people_are_asked() -> None:
    async def slow(question: Elicitation, seconds: float) -> Json:
        await asyncio.sleep(0.6)
        return CANCELLED

    async with opened(program(time_limit=0.5)) as servers:
        found = await tools(servers)
        assert (await run(found["book"], slow)).content == "cancel []"


async def test_question_that_the_server_takes_back_is_withdrawn() -> None:
    ended: list[str] = []

    async def forever(question: Elicitation, seconds: float) -> Json:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(question.message)
        return CANCELLED

    async with opened(program()) as servers:
        found = await tools(servers)
        assert (await run(found["ask_and_leave"], forever)).content == "left"
    assert ended == ["Still there?"]


async def both(found: dict[str, Tool]) -> list[str]:
    """Call a tool twice at the same time. After both calls have asked, check that each question is of its own call, and
    decline both."""
    asked = asyncio.Barrier(2)

    def naming(room: str) -> Answer:
        async def ask(question: Elicitation, seconds: float) -> Json:
            await asked.wait()
            assert question.message.endswith(f"come to {room}?")
            return question.for_server(question.check({"action": "decline"}))

        return ask

    results = await asyncio.gather(*(run(found["book"], naming(room), where=room) for room in ("a", "b")))
    return [result.content for result in results]


async def test_each_question_reaches_its_own_call_over_http() -> None:
    """UI-18: two sessions share a connection, and each gets the question of its own call."""
    async with http_server(internal_hosts=("127.0.0.1",)) as (config, _), opened(config) as servers:
        async with asyncio.timeout(30):
            assert await both(await tools(servers)) == ["decline []", "decline []"]


async def test_question_of_a_program_with_several_calls_is_refused() -> None:
    """A pipe does not identify the asking call, so with several calls the question is refused."""
    async with opened(program()) as servers:
        found = await tools(servers)
        never = asyncio.create_task(run(found["never"], answering()))
        async with asyncio.timeout(30):
            while "never" not in (await run(found["begun"], None)).content:
                pass
        result = await run(found["book"], answering())
        never.cancel()
    assert (result.is_error, WHICH_CALL in result.content) == (True, True)


async def test_question_of_a_call_that_has_ended_reaches_no_other() -> None:
    """UI-18: over HTTP a question names its call. A question of an ended call is not shown in another session."""
    questions, asked = Questions("it"), list[Elicitation]()

    async def ask(question: Elicitation) -> Json:
        asked.append(question)
        return CANCELLED

    with questions.during_call(ask):
        of_the_first = copy_context()
    late = types.ElicitRequestFormParams(message="Which key?", requested_schema={"type": "object", "properties": {}})
    with questions.during_call(ask):
        answer = questions.answer(cast("Any", None), late)
        refused = await asyncio.create_task(answer, context=of_the_first)
    assert (asked, refused) == ([], types.ErrorData(code=types.INVALID_REQUEST, message=WHICH_CALL))
