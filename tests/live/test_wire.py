"""The events of a turn as clients get them: their kinds, order and fields."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from agents.errors import ProviderError
from agents.events import ReasoningDelta, Usage
from agents.messages import Json, ToolCall
from agents.providers.scripted import Gate
from agents.tools import NO_CONTEXT, ToolContext, tool
from chat.models import Session, User
from tests.support.client import EventsClient
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import SocketViewer

ID = re.compile(r"m_[0-9a-f]{24}")
TURN = re.compile(r"t_[0-9a-f]{24}")


def call(call_id: str, expression: str) -> ToolCall:
    return ToolCall(call_id, "calculator", {"expression": expression}, f'{{"expression":"{expression}"}}')


async def frames_of_turn(node: TestNode, session: Session, ana: User, text: str) -> list[Json]:
    """Return the frames of one turn, without the answer to the first sync."""
    async with Socket(path_of(session), ana) as socket:
        socket.send(type="sync")
        await socket.next(type="changes")
        await node.send(session, ana, text)
        await socket.next(type="agent_status", status="idle")
        return socket.frames[1:]


def fields(frame: Json) -> Json:
    """Return a frame's own fields, with random values replaced by their types."""
    return {
        key: _kind(key, value)
        for key, value in frame.items()
        if not (key == "row" or (isinstance(value, dict) and key == "message"))
    }


def _kind(key: str, value: Any) -> Any:
    if isinstance(value, str) and ID.fullmatch(value):
        return "message"
    if isinstance(value, str) and TURN.fullmatch(value):
        return "turn"
    if key == "timestamp":
        return "time" if datetime.fromisoformat(value).tzinfo else "time without zone"
    if key == "revision":
        return "next"
    if key in ("duration_ms", "duration_seconds", "first_token_latency_ms"):
        return "duration" if value >= 0 else "before it began"
    return {inner: _kind(inner, each) for inner, each in value.items()} if isinstance(value, dict) else value


def one_text(frames: list[Json]) -> list[Json]:
    """Join the later deltas of each message, because their number depends on the clock."""
    joined: list[Json] = []
    for frame in frames:
        last = joined[-1] if joined else {}
        if frame["type"].endswith("_delta") and "revision" not in frame and frame["type"] == last.get("type") \
                and "revision" not in last:  # fmt: skip
            last["text"] += frame["text"]
        else:
            joined.append(dict(frame))
    return joined


def usage(tokens_in: int, tokens_out: int) -> Json:
    return {
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "first_token_latency_ms": "duration",
    }


async def test_turn_is_sent_as_named_events(node: TestNode, ana: User) -> None:
    """RUN-02, RUN-03, RUN-04, MSG-05: a turn sends reasoning, text, two tools and the answer as events with exactly
    these fields."""
    node.script(
        [
            [
                ReasoningDelta("H"),
                ReasoningDelta("m"),
                "Let",
                " me",
                call("c1", "1+1"),
                call("c2", "2*3"),
                Usage(100, 5),
            ],
            ["Done", Usage(150, 10)],
        ]
    )
    session = await node.session(ana)
    frames = one_text(await frames_of_turn(node, session, ana, "Sums!"))
    plain_frames = [fields(frame) for frame in frames]
    tools = [frame for frame in plain_frames if frame["type"] in ("tool_exec_start", "tool_exec_end", "agent_status")]
    # Rows are also reported as they change, such as finished parts and calls that have not begun.
    others = [frame for frame in plain_frames if frame not in tools and frame["type"] != "message_updated"]
    assert others == [
        {"type": "turn_start", "revision": "next", "id": "message", "turn_id": "turn", "timestamp": "time"},
        {
            "type": "user_message",
            "revision": "next",
            "id": "message",
            "text": "Sums!",
            "timestamp": "time",
            "turn_id": "turn",
            "sender": "Ana",
            "model": "one",
        },
        {
            "type": "reasoning_delta",
            "revision": "next",
            "id": "message",
            "offset": 0,
            "text": "H",
            "timestamp": "time",
            "model": "one",
        },
        {"type": "reasoning_delta", "id": "message", "offset": 1, "text": "m"},
        {
            "type": "text_delta",
            "revision": "next",
            "id": "message",
            "offset": 0,
            "text": "Let",
            "timestamp": "time",
            "model": "one",
        },
        {"type": "text_delta", "id": "message", "offset": 3, "text": " me"},
        {
            "type": "response_done",
            "revision": "next",
            "id": "message",
            "length": 6,
            "duration_ms": "duration",
            "usage": usage(100, 5),
        },
        {
            "type": "token_usage",
            "context_used": 100,
            "context_window": 1000,
            "context_percent": 10.0,
            "session_total_tokens": 105,
            "model": "one",
        },
        {
            "type": "text_delta",
            "revision": "next",
            "id": "message",
            "offset": 0,
            "text": "Done",
            "timestamp": "time",
            "model": "one",
        },
        {
            "type": "response_done",
            "revision": "next",
            "id": "message",
            "length": 4,
            "duration_ms": "duration",
            "usage": usage(150, 10),
        },
        {
            "type": "token_usage",
            "context_used": 150,
            "context_window": 1000,
            "context_percent": 15.0,
            "session_total_tokens": 265,
            "model": "one",
        },
        {
            "type": "turn_done",
            "revision": "next",
            "id": "message",
            "turn_id": "turn",
            "timestamp": "time",
            "duration_seconds": "duration",
        },
    ]
    assert_tools(tools, plain_frames)


def assert_tools(tools: list[Json], plain_frames: list[Json]) -> None:
    """Check two parallel tools, whose starts and ends are in different orders."""
    arguments = {"c1": {"expression": "1+1"}, "c2": {"expression": "2*3"}}
    starts = [frame for frame in tools if frame["type"] == "tool_exec_start"]
    ends = [frame for frame in tools if frame["type"] == "tool_exec_end"]
    for frame in starts + ends:
        del frame["revision"]
    assert sorted(starts, key=lambda frame: str(frame["tool_call"]["id"])) == [
        {
            "type": "tool_exec_start",
            "id": "message",
            "tool_call": {"id": id, "name": "calculator", "arguments": arguments[id]},
            "timestamp": "time",
            "model": "one",
        }
        for id in ("c1", "c2")
    ]
    assert sorted(ends, key=lambda frame: str(frame["tool_result"]["tool_call_id"])) == [
        {
            "type": "tool_exec_end",
            "id": "message",
            "tool_result": {"tool_call_id": id, "content": content, "is_error": False},
            "timestamp": "time",
            "duration_ms": "duration",
        }
        for id, content in (("c1", "2"), ("c2", "6"))
    ]
    statuses = [frame for frame in tools if frame["type"] == "agent_status"]
    calling = {"type": "agent_status", "status": "tool_calling", "tool_name": "calculator"}
    thinking, idle = {"type": "agent_status", "status": "thinking"}, {"type": "agent_status", "status": "idle"}
    assert statuses[0] == thinking
    assert calling in statuses
    assert statuses[-2:] == [thinking, idle]
    for start in starts:
        at = plain_frames.index(start)
        assert plain_frames[at + 1] == calling


async def test_every_durable_event_has_the_whole_row(node: TestNode, ana: User) -> None:
    """LIVE-01: an event's row contains everything that its own fields lack, so that a client has full messages."""
    node.script([[ReasoningDelta("Hm"), "Text", call("c1", "1+1")], ["Done"]])
    session = await node.session(ana)
    frames = await frames_of_turn(node, session, ana, "Go")
    rows = {message.id: message.to_json() for message in (await node.snapshot(session)).messages}
    durable = [frame for frame in frames if "revision" in frame]
    assert [frame["revision"] for frame in durable] == list(range(1, len(durable) + 1))
    last = {frame["id"]: frame.get("message") or frame["row"] for frame in durable}
    assert {id: {key: rows[id][key] for key in row} for id, row in last.items()} == last
    assert {key for row in last.values() for key in row} == {key for row in rows.values() for key in row}


async def test_error_event_has_a_message_and_advice(node: TestNode, ana: User) -> None:
    """RUN-02, RUN-10: a failure sends the error, the turn's end, and idle."""
    node.script([[ProviderError("The model is away.")]])
    session = await node.session(ana)
    plain_frames = [fields(frame) for frame in await frames_of_turn(node, session, ana, "Go")]
    assert [frame["type"] for frame in plain_frames[-3:]] == ["error", "turn_done", "agent_status"]
    words, error = plain_frames[-3].pop("message", ""), {"code": "provider", "remedy": "retry"}
    assert plain_frames[-3] == {
        "type": "error",
        "revision": "next",
        "id": "message",
        "timestamp": "time",
        "model": "one",
        **error,
    }
    assert "The model is away." in words
    assert plain_frames[-1] == {"type": "agent_status", "status": "idle"}


async def test_stop_is_sent_as_events(node: TestNode, ana: User) -> None:
    """RUN-02, RUN-08: a stop sends the text so far, the turn's end, agent_cancelled, and idle."""
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        socket.send(type="sync")
        await socket.next(type="changes")
        await socket.ask(type="send", text="Go")
        await gate.reached()
        assert (await socket.ask(type="cancel"))["stopping"] is True
        await socket.next(type="agent_status", status="idle")
        plain_frames = [frame for frame in socket.frames if "ref" not in frame]
    assert [frame["type"] for frame in plain_frames[-4:]] == [
        "message_updated",
        "turn_done",
        "agent_cancelled",
        "agent_status",
    ]
    assert (plain_frames[-4]["message"]["status"], plain_frames[-4]["message"]["text"]) == ("interrupted", "Once")
    assert plain_frames[-2].keys() == {"type", "turn_id"}
    assert plain_frames[-2]["turn_id"] == plain_frames[-3]["turn_id"]


async def test_queued_message_is_sent_when_added_edited_withdrawn_and_delivered(
    node: TestNode, ana: User, bo: User
) -> None:
    """RUN-06: all viewers see the queued messages."""
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewer = await SocketViewer(EventsClient(), session, bo).open()
    await viewer.until(lambda: viewer.client.caught_up)
    await node.send(session, ana, "Go")
    await gate.reached()
    async with Socket(path_of(session), ana) as socket:
        first, second = [(await socket.ask(type="send", text=text))["id"] for text in ("Keep", "Drop")]
        await socket.ask(type="edit_queued", id=first, text="Kept")
        await socket.ask(type="withdraw", id=second)
    await viewer.until(lambda: second not in viewer.client.messages and viewer.client.texts[-1:] == ["Kept"])
    waiting = viewer.client.messages[first]
    assert (waiting["status"], waiting["sequence"], waiting["edited"]) == ("queued", None, True)
    gate.open()
    await viewer.until(lambda: viewer.client.messages[first]["status"] == "complete")
    await node.idle(session)
    await viewer.leave()


async def test_status_is_true_after_a_reload_at_any_stage(node: TestNode, ana: User) -> None:
    """RUN-03: a page that loads or reconnects gets the agent's present status."""
    before_text, in_text, between, done = Gate(), Gate(), Gate(), Gate()
    node.script([[before_text, "Text", in_text, call("c1", "1+1")], [between, "Bye", done]])
    session = await node.session(ana)

    async def status() -> tuple[str, str]:
        async with Socket(path_of(session), ana) as socket, Socket(path_of(session, "page"), ana) as page:
            socket.send(type="sync")
            page.send(type="sync")
            plain_frames = (await socket.next(type="changes"))["session"]
            assert (await page.next(op="session"))["status"] == plain_frames["agent_status"]
            return plain_frames["agent_status"], plain_frames["tool_name"]

    assert await status() == ("idle", "")
    await node.send(session, ana, "Go")
    for gate in (before_text, in_text, between, done):
        await gate.reached()
        assert await status() == ("thinking", "")
        gate.open()
    await node.idle(session)
    assert await status() == ("idle", "")


@pytest.mark.parametrize("protocol", ["events", "page"])
async def test_status_names_the_tool_that_runs(node: TestNode, ana: User, protocol: str) -> None:
    """RUN-03: the status names the running tool, also for viewers who join while it runs."""
    config = {
        "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
        "agents": {"agent": {"model": "scripted/one", "tools": ["web_fetch"]}},
        "default_agent": "agent",
    }
    node.script([[ToolCall("c1", "web_fetch", {"url": "https://192.0.2.1/"}, "{}")], ["Bye"]], config)
    session = await node.session(ana)
    async with Socket(path_of(session, protocol), ana) as socket:
        socket.send(type="sync")
        await socket.next(**({"op": "synced"} if protocol == "page" else {"type": "changes"}))
        await node.send(session, ana, "Go")
        wanted = {"op": "status"} if protocol == "page" else {"type": "agent_status"}
        await socket.next(**wanted, status="tool_calling", tool_name="web_fetch")
        await socket.next(**wanted, status="idle")


@pytest.mark.parametrize("protocol", ["events", "page"])
async def test_output_of_a_running_tool_reaches_viewers(node: TestNode, ana: User, protocol: str) -> None:
    """UI-10: viewers get the output of a running tool, also if they join later."""
    end = asyncio.Event()

    @tool(name="bash")
    async def shell(context: ToolContext = NO_CONTEXT) -> str:
        """Print something."""
        context.report("output so far\n")
        await end.wait()
        return "result at the end"

    def shows(viewer: Socket, text: str) -> Callable[[], bool]:
        return lambda: any(text in str(frame) for frame in viewer.frames)

    node.script([[ToolCall("c1", "bash", {}, "{}")], ["Bye"]], tools=[shell])
    session = await node.session(ana)
    async with Socket(path_of(session, protocol), ana) as socket:
        socket.send(type="sync")
        await node.send(session, ana, "Go")
        await socket.until(shows(socket, "output so far"))
        async with Socket(path_of(session, protocol), ana) as late:
            late.send(type="sync")
            await late.until(shows(late, "output so far"))
        end.set()
        await socket.until(shows(socket, "result at the end"))
