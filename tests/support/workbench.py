"""A tool whose calls begin and end under the test's control."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from agents.messages import ToolCall
from agents.tools import Tool, tool


class Workbench:
    """A tool whose call `work(n)` reports its start and waits for `let_go(n)`. `did` lists the finished calls."""

    def __init__(self) -> None:
        self.did: list[int] = []
        self.begins: list[int] = []
        self._begun: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._may_go: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.tool = self._tool("work", parallel=True)
        self.lone_tool = self._tool("lone_work", parallel=False)

    def _tool(self, name: str, *, parallel: bool) -> Tool:
        @tool(name=name, parallel=parallel)
        async def work(n: int) -> str:
            """Do a piece of work."""
            self.begins.append(n)
            self._begun[n].set()
            await self._may_go[n].wait()
            self.did.append(n)
            return f"did {n}"

        return work

    def let_go(self, *numbers: int) -> None:
        for number in numbers:
            self._may_go[number].set()

    async def begun(self, *numbers: int) -> None:
        """Wait until these calls are running."""
        async with asyncio.timeout(20):
            for number in numbers:
                await self._begun[number].wait()


def work(*numbers: int, name: str = "work") -> list[ToolCall]:
    """Return the model's calls of the tool."""
    return [ToolCall(f"w{number}", name, {"n": number}) for number in numbers]
