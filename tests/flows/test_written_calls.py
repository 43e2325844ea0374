"""A call that the model is writing: shown to viewers, stopped, interrupted by a crash, and retried."""

from __future__ import annotations

from agents.errors import Overloaded
from agents.events import ToolCallDelta
from agents.messages import Json, ToolCall
from agents.providers.scripted import Gate, Step
from chat.models import ChatMessage, Session, User
from chat.projections.context import TOOL_NOT_WRITTEN
from tests.support.socket import Socket, path_of
from tests.support.step_viewer import StepViewer, bearer
from tests.support.testing_node import TestNode

CALL = ToolCall("c1", "calculator", {"expression": "6 * 7"})


def delta(text: str, key: str = "c1") -> ToolCallDelta:
    return ToolCallDelta(key, "calculator", text)


async def tools(node: TestNode, session: Session) -> list[ChatMessage]:
    return [row for row in await node.rows(session) if row.type == "tool_group"]


async def written(node: TestNode, session: Session) -> None:
    """Wait until the call's row exists."""
    await node.until(ChatMessage.objects.filter(session=session, type="tool_group", status="streaming").exists)


def first_call(socket: Socket) -> Json | None:
    """Return the call of the first event that has one."""
    messages = (frame["message"] for frame in socket.frames if frame["type"] == "message_updated")
    return next((message for message in messages if message["type"] == "tool_group"), None)


def grown(text: str, socket: Socket) -> str:
    """Return the arguments that began with `text`, as far as the socket has received them."""
    for frame in socket.frames:
        if frame["type"] == "tool_call_delta":
            text = text[: frame["offset"]] + frame["text"]
    return text


async def test_a_call_is_seen_while_it_grows(node: TestNode, ana: User) -> None:
    """RUN-02, LIVE-02, LIVE-03: sockets see the call from its beginning, late ones from the text so far, and the stream
    of steps has it too."""
    first, second = Gate(), Gate()
    growing: list[Step] = [delta('{"expression"'), first, delta(': "6 * 7"'), second, delta("}"), CALL]
    node.script([["Let me see. ", *growing], ["42"]])
    session = await node.session(ana)
    viewer = await StepViewer(session, asked=await bearer(node, ana)).open()
    async with Socket(path_of(session), ana) as socket:
        socket.send(type="sync")
        await socket.next(type="changes")
        await node.send(session, ana, "Go")
        await first.reached()
        call = await socket.until(lambda: first_call(socket))
        assert call is not None
        assert (call["status"], call["tool"]["name"]) == ("streaming", "calculator")
        async with Socket(path_of(session), ana) as late:
            first.open()
            await second.reached()
            late.send(type="sync")
            known = (await late.next(type="changes"))["messages"][-1]["text"]
            assert await late.until(lambda: grown(known, late) == '{"expression": "6 * 7"')
        await viewer.until(lambda: bool(viewer.client.written))
        second.open()
        await node.idle(session)
        assert (await socket.next(type="tool_exec_end"))["tool_result"]["content"] == "42"
    [row] = await tools(node, session)
    assert (row.status, row.text, row.arguments, row.tool_call_id) == ("complete", "", CALL.arguments, "c1")
    call = viewer.client.written[0]["delta"]["tool_calls"][0]
    assert (call["index"], call["function"]["name"]) == (0, "calculator")
    pieces = "".join(each["delta"]["tool_calls"][0]["function"]["arguments"] for each in viewer.client.written)
    assert '{"expression": "6 * 7"}'.startswith(pieces)


async def test_two_calls_grow_in_turns(node: TestNode, ana: User) -> None:
    """MSG-08: two calls that are written alternately have their own places and arguments, and each runs once."""
    other = ToolCall("c2", "calculator", {"expression": "1 + 1"})
    steps: list[Step] = [
        delta('{"exp', "c1"),
        delta('{"ex', "c2"),
        delta("ression", "c1"),
        CALL,
        delta("pression", "c2"),
        other,
    ]
    node.script([steps, ["Done"]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    rows = await tools(node, session)
    assert [(row.tool_call_id, row.status, row.result) for row in rows] == [
        ("c1", "complete", "42"),
        ("c2", "complete", "2"),
    ]


async def test_stop_ends_a_call_that_is_being_written(node: TestNode, ana: User) -> None:
    """RUN-08, CTX-03: the shown part stays, nothing runs, and the model does not get the call."""
    gate = Gate()
    provider = node.script([["I will", delta('{"expression": "6'), gate], ["Fine"]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await written(node, session)
    await node.cancel(session, ana)
    await node.idle(session)
    [row] = await tools(node, session)
    assert (row.status, row.result, row.text) == ("interrupted", TOOL_NOT_WRITTEN, '{"expression": "6')
    await node.send(session, ana, "And now?")
    await node.idle(session)
    assert [message.tool_calls for message in provider.requests[-1].messages] == [(), (), ()]
    assert ("text", "complete", "Fine") in await node.shown(session)


async def test_a_restart_drops_what_was_being_written(node: TestNode, ana: User) -> None:
    """RUN-15, CTX-03: the model gets a new request, and the call that it makes then runs once."""
    gate = Gate()
    provider = node.script([[delta('{"expression": "6'), gate], [CALL], ["Done"]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await written(node, session)
    await node.restart()
    await node.idle(session)
    assert [(row.status, row.result) for row in await tools(node, session)] == [
        ("interrupted", TOOL_NOT_WRITTEN),
        ("complete", "42"),
    ]
    assert not any(message.tool_calls for message in provider.requests[1].messages)


async def test_a_request_that_fails_while_a_call_is_written_is_repeated(node: TestNode, ana: User) -> None:
    """RUN-10: if the request fails, it is repeated, because a part of a call is not an answer."""
    node.script([[delta('{"expression": "6'), Overloaded("Busy", retry_after=0.0)], [CALL], ["Done"]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    assert [row.status for row in await tools(node, session)] == ["interrupted", "complete"]
    assert ("text", "complete", "Done") in await node.shown(session)
