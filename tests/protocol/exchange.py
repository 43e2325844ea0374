"""Conversations with everything that a client can meet, over the events socket and as a stream of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agents.errors import ProviderError
from agents.events import ReasoningDelta, ToolCallDelta, Usage
from agents.messages import Json, ToolCall
from agents.providers.scripted import Gate, Reply, Step
from chat.models import Session, User
from chat.services.messages import editing
from tests.api.asking import token_of
from tests.support.socket import Socket, path_of
from tests.support.step_viewer import StepViewer
from tests.support.testing_node import TestNode

SUM = ToolCall("call_1", "calculator", {"expression": "6 * 7"}, '{"expression":"6 * 7"}')


class Exchange:
    """The frames of a conversation in their order; `sent` and `received` are the two directions."""

    def __init__(self, node: TestNode, session: Session, user: User) -> None:
        self._house = node
        self._session = session
        self._socket = Socket(path_of(session), user)
        self._refs = iter(range(1, 1000))
        self._gates = [Gate(), Gate()]
        self.sent: list[Json] = []
        self.lines: list[tuple[str, Json]] = []

    @property
    def received(self) -> list[Json]:
        return [frame for way, frame in self.lines if way == "<"]

    async def run(self) -> None:
        """Run a conversation with a message, reasoning, tools, an answer, a queue, a stop, refusals, changes, a fork
        and a failure."""
        self._house.script(self._replies())
        self._socket.on_frame = lambda frame: self.lines.append(("<", frame))
        async with self._socket:
            await self._ask("sync", since=0, have={})
            await self._socket.next(type="changes")
            said = await self._ask("send", text="What is 6 times 7?", key="k-1", attachments=[])
            await self._grown(self._gates[0], "text_delta")
            waiting = await self._ask("send", text="And 7 times 7?", key="k-2", attachments=[])
            await self._ask("edit_queued", id=waiting["id"], text="And 7 squared?")
            self._gates[0].open()
            await self._until(lambda: self._count("turn_done") == 1)
            await self._grown(self._gates[1], "reasoning_delta")
            await self._ask("cancel")
            await self._house.idle(self._session)
            await self._until(lambda: self._count("turn_done") == 2)
            await self._announce(said["id"])
            await self._change(said["id"])
            await self._ask("send", text="Once more?")
            await self._until(lambda: self._count("turn_done") == 3)
            await self._ask("sync", since=self._head() - 1, have={})
            await self._until(lambda: self._count("changes") == 2)
            await self._socket.until(lambda: self._socket.presence)
            await self._ask("ping")

    async def _announce(self, message_id: str) -> None:
        for number, is_open in enumerate((True, False), start=1):
            await self._ask("editing", id=message_id, open=is_open)
            await self._until(lambda: self._count("editing") == number)  # noqa: B023  # waits within the round

    async def _change(self, message_id: str) -> None:
        tool = next(frame["id"] for frame in self.received if frame["type"] == "tool_exec_end")
        await self._ask("rename", title="Six times seven")
        await self._ask("edit", id=message_id, text="What is six times seven?", revision=2)
        await self._ask("edit", id=message_id, text="What is 6 · 7?", revision=2)
        await self._ask("remove", id=tool)
        await self._until(lambda: self._count("messages_shifted") > 0)
        await self._ask("fork", id=message_id, text="What is 7 times 6?", run=False)

    def _replies(self) -> list[Reply]:
        first, second = self._gates
        return [
            [ReasoningDelta("A sum. "), "I shall ", first, "calculate.", *_growing(SUM), Usage(812, 31)],
            [ReasoningDelta("Squared: "), ReasoningDelta("forty-"), second, "…"],
            [ProviderError("The model is overloaded. Retry in a minute.")],
        ]

    async def _ask(self, kind: str, **fields: Any) -> Json:
        """Send a command, and wait for the answer with its `ref` if it has one."""
        command = {"type": kind, "ref": str(next(self._refs)), **fields}
        self.lines.append((">", command))
        self._socket.send(**command)
        if kind == "ping":
            return await self._socket.next(type="pong")
        return {} if kind == "sync" else await self._socket.next(ref=command["ref"])

    def _head(self) -> int:
        return max(int(frame.get("revision", 0)) for frame in self.received)

    async def _grown(self, gate: Gate, kind: str) -> None:
        """Wait until the text before a gate is published."""
        await gate.reached()
        await self._until(lambda: self._count(kind) > 0)

    async def _until(self, condition: Callable[[], bool]) -> None:
        await self._socket.until(condition)

    def _count(self, kind: str) -> int:
        return sum(frame["type"] == kind for frame in self.received)


def _growing(call: ToolCall) -> Iterator[Step]:
    """Yield a call in two pieces, like a model that writes it."""
    for piece in (call.raw[:5], call.raw[5:]):
        yield ToolCallDelta(call.id, call.name, piece)
    yield call


async def followed(node: TestNode, session: Session, user: User) -> StepViewer:
    """Follow a session's steps: a question, a call and an answer, and then exclude the question."""
    first, second = Gate(), Gate()
    node.script([["I shall ", first, "calculate.", second, SUM, Usage(812, 31)], ["It is 42.", Usage(850, 5)]])
    token = await node.do(token_of, user, "read")
    viewer = await StepViewer(session, asked={"Authorization": f"Bearer {token}"}).open()
    sent = await node.send(session, user, "What is 6 times 7?")
    for gate, words in ((first, "I shall"), (second, "calculate.")):
        await gate.reached()
        await viewer.until(lambda: words in viewer.text)  # noqa: B023  # waits within the round
        gate.open()
    await viewer.until(lambda: "It is 42." in viewer.text)
    await node.idle(session)
    await node.do(editing.set_included, session=session, author=user, message_id=sent.id, included=False)
    await viewer.until(lambda: '"removed":true' in viewer.text)
    await viewer.cut()
    return viewer
