"""A node in its own process, for tests that kill it. Its model writes numbered words or calls an endless tool.

It prints a line on stdout for each word that the model writes, with the process's monotonic time. The test compares the
rows with these lines. Run it as `python -m tests.support.node`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import django

PACE = 0.01


def say(*what: object) -> None:
    print(*what, flush=True)  # noqa: T201  # the test reads stdout


def words(first: str) -> Iterator[object]:
    """Yield a thousand words, and report each word when the model writes it."""
    from agents.providers.scripted import Pause

    for number in range(1000):
        text = f"{first}{number} "
        say("said", time.monotonic(), text)
        yield text
        yield Pause(PACE)


async def main() -> None:
    from agents.messages import ToolCall
    from agents.providers.base import Request
    from agents.providers.scripted import Reply
    from agents.tools import tool
    from chat.projections.context import INTERRUPTED
    from chat.runner import runtime
    from tests.support.testing_node import TestNode

    @tool()
    async def dig(place: str) -> str:
        """Dig for a very long time."""
        say("dug", place)
        await asyncio.sleep(3600)
        return "found nothing"

    def reply(request: Request) -> Reply:
        last = request.messages[-1]
        if last.text == "Speak":
            return words("w")  # type: ignore[return-value]  # an iterator of steps is a Reply
        if last.text == "Dig":
            return ["Digging.", ToolCall("d1", "dig", {"place": "here"}), ToolCall("d2", "dig", {"place": "there"})]
        cut = any(INTERRUPTED in message.text for message in request.messages[-2:])
        return ["And so on." if cut else f"Re: {last.text}"]

    node = TestNode()
    node.script(reply, tools=[dig])
    await runtime.start()
    say("ready")
    await asyncio.Event().wait()


if __name__ == "__main__":
    django.setup()
    sys.exit(asyncio.run(main()))
