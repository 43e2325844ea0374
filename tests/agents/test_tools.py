"""The schema of a tool for models, and the isolation of the turn from its failures."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agents.errors import ToolError
from agents.messages import ToolCall, ToolResult
from agents.threads import in_thread
from agents.tools import MAX_ERROR_CHARACTERS, Tool, call_tool, tool


class Place(BaseModel):
    city: str
    country: str = "DE"


def use(arguments: dict[str, Any]) -> ToolCall:
    return ToolCall("c", "x", arguments)


async def test_tool_describes_itself_by_its_signature() -> None:
    @tool(time_limit=5, parallel=False, approval=True)
    def forecast(
        place: Annotated[Place, Field(description="where")],
        days: Annotated[int, Field(ge=1, le=7)] = 3,
        *,
        schema: Literal["short", "long"] = "short",
    ) -> str:
        """Tell the weather.

        For up to a week.
        """
        return f"{place.city}/{place.country} {days} {schema}"

    assert (forecast.name, forecast.description) == ("forecast", "Tell the weather.\n\nFor up to a week.")
    assert (forecast.time_limit, forecast.parallel, forecast.approval) == (5, False, True)
    assert forecast.parameters == {
        "additionalProperties": False,
        "properties": {
            "place": {
                "description": "where",
                "properties": {"city": {"type": "string"}, "country": {"default": "DE", "type": "string"}},
                "required": ["city"],
                "title": "Place",
                "type": "object",
            },
            "days": {"default": 3, "maximum": 7, "minimum": 1, "type": "integer"},
            "schema": {"default": "short", "enum": ["short", "long"], "type": "string"},
        },
        "required": ["place"],
        "type": "object",
    }
    result = await forecast.run(use({"place": {"city": "Bonn"}, "schema": "long"}))
    assert result == ToolResult("c", "Bonn/DE 3 long")


async def test_tool_without_parameters_is_an_empty_object() -> None:
    @tool(name="go-on")
    async def go() -> None:
        """Go."""

    assert (go.name, go.parameters) == ("go-on", {"additionalProperties": False, "properties": {}, "type": "object"})
    assert await go.run(use({})) == ToolResult("c", "null")


def test_tool_that_a_model_could_not_use_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="docstring"):
        tool()(lambda: None)

    def many(*numbers: int) -> None:
        """Add."""

    with pytest.raises(TypeError, match="by name"):
        tool()(many)
    many.__doc__ = None
    with pytest.raises(TypeError, match="docstring"):
        tool()(many)


@tool()
def half(n: int, unit: str = "") -> str:
    """Halve a number."""
    return f"{n / 2:g}{unit}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Invalid arguments for half: n: Field required"),
        ({"n": "many"}, "Invalid arguments for half: n: Input should be a valid integer, unable to parse"),
        ({"n": 1, "m": 2}, "Invalid arguments for half: m: Extra inputs are not permitted"),
        ({"n": None, "unit": 3}, "n: Input should be a valid integer; unit: Input should be a valid string"),
        ({"_raw": '{"n": 1'}, "The arguments of half are not a JSON object. Call it again with valid JSON."),
    ],
)
async def test_bad_arguments_are_reported_to_the_model(arguments: dict[str, Any], words: str) -> None:
    """RUN-11: the model reads which arguments are wrong."""
    result = await half.run(use(arguments))
    assert result.is_error
    assert words in result.content


async def test_unknown_tool_is_answered_with_the_names_there_are() -> None:
    result = await call_tool({"half": half}, ToolCall("c", "quarter", {}))
    assert result == ToolResult("c", "There is no tool named 'quarter'. Available tools: half.", is_error=True)
    assert "none" in (await call_tool({}, ToolCall("c", "quarter", {}))).content


class Hostile(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ToolError("Try Bonn."), "Try Bonn."),
        (KeyError("x"), "KeyError: 'x'"),
        (BaseException("base"), "BaseException: base"),
        (GeneratorExit("gone"), "GeneratorExit: gone"),
        (TimeoutError("own"), "TimeoutError: own"),
        (ExceptionGroup("several", [ValueError("a")]), "ExceptionGroup: several (1 sub-exception)"),
        (Hostile(), "Hostile: [Hostile: cannot be shown]"),
    ],
)
async def test_whatever_a_tool_raises_is_an_error_result(blocking: bool, error: BaseException, content: str) -> None:
    """Any exception of a tool becomes an error result (RUN-11, MSG-10)."""
    result = await raising(error, blocking).run(use({}))
    assert (result.is_error, result.content) == (True, content)


def raising(error: BaseException, blocking: bool) -> Tool:
    def fail() -> None:
        """Fail."""
        raise error

    async def fail_soon() -> None:
        """Fail."""
        raise error

    return tool()(fail if blocking else fail_soon)


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), StopIteration(3), asyncio.CancelledError()])
async def test_thread_cannot_end_the_process(error: BaseException) -> None:
    """RUN-11: a library that calls exit() ends only its tool."""
    result = await raising(error, blocking=True).run(use({}))
    assert result.is_error


async def test_cancellation_from_within_is_the_tools_own_failure() -> None:
    """RUN-11: a tool that awaits a cancelled task fails without stopping the turn."""

    @tool()
    async def wait() -> None:
        """Wait for what no one will do."""
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    assert await wait.run(use({})) == ToolResult("c", "wait was cancelled from within.", is_error=True)


@pytest.mark.parametrize(
    ("blocking", "end"),
    [
        (True, ". It still runs and may succeed. If it changes something, check whether it did before you repeat it."),
        (False, " and was stopped."),
    ],
)
async def test_tool_has_a_time_limit(blocking: bool, end: str) -> None:
    """RUN-11: a tool that takes too long ends with an error result, which does not claim that a thread was stopped."""
    release = threading.Event()

    def wait() -> None:
        """Wait."""
        release.wait()

    async def wait_forever() -> None:
        """Wait."""
        await asyncio.Event().wait()

    slow = tool(name="wait", time_limit=0.01)(wait if blocking else wait_forever)
    result = await slow.run(use({}))
    release.set()
    assert result == ToolResult("c", f"wait took longer than 0.01 seconds{end}", is_error=True)


async def test_long_error_is_cut() -> None:
    result = await raising(ValueError("x" * 1_000_000), blocking=False).run(use({}))
    assert len(result.content) < MAX_ERROR_CHARACTERS + 100


async def test_results_are_safe_text() -> None:
    """MSG-07, MSG-10, MSG-12: structured results are JSON, and characters that cannot be stored are replaced."""

    @tool()
    async def report() -> dict[str, Any]:
        """Report."""
        return {"name": "Zoë\x00", "n": [1, 2.5, None, True]}

    assert (await report.run(use({}))).content == '{"name": "Zoë�", "n": [1, 2.5, null, true]}'


async def test_blocking_tool_sees_the_context_of_its_turn() -> None:
    speaker = contextvars.ContextVar("speaker", default="unknown")
    speaker.set("Ada")

    @tool()
    def who() -> str:
        """Tell who asks."""
        return speaker.get()

    assert (await who.run(use({}))).content == "Ada"


async def test_thread_that_ends_after_its_waiter_is_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    """After a cancelled wait, the thread's late result has no effect."""
    started, release = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        started.set()
        release.wait()

    waiting = asyncio.create_task(in_thread(work))
    await in_thread(started.wait)
    waiting.cancel()
    await asyncio.wait([waiting])
    release.set()
    await in_thread(threads[0].join)
    assert waiting.cancelled()
    assert caplog.text == ""


def test_thread_that_outlives_the_loop_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    release, ended = threading.Event(), threading.Event()

    def work() -> None:
        release.wait()
        ended.set()

    async def leave() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())
    release.set()
    assert ended.wait(5)
    for thread in threading.enumerate():
        if thread.name.startswith("work "):
            thread.join(5)
    assert capfd.readouterr().err == ""
    assert sys.exc_info() == (None, None, None)
