"""No text of strangers or models blocks the event loop, and pages show the same as after a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time

import pytest

from agents.messages import ToolCall
from agents.providers.scripted import Gate
from agents.tools import tool
from chat.live.feed import Feed
from chat.models import Session, User
from chat.services.messages import editing
from tests.live.states import assert_shows, is_at
from tests.rendering.families import FAMILIES
from tests.support.client import EventsClient
from tests.support.effort import shorten_collections
from tests.support.page_client import PageClient
from tests.support.testing_node import TestNode
from tests.support.viewer import SocketViewer

# The CPU time in seconds that one callback may take in its thread. Other processes do not affect it.
BUDGET = 0.1
Watcher = SocketViewer[EventsClient | PageClient]


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """A function that returns the longest time of a callback since its last call."""
    run, costs = asyncio.Handle._run, [0.0]

    def measured(handle: asyncio.Handle) -> None:
        started = thread_time()
        run(handle)
        costs.append(thread_time() - started)

    def clock() -> float:
        most = max(costs)
        costs[:] = [0.0]
        return most

    monkeypatch.setattr(asyncio.Handle, "_run", measured)
    shorten_collections()  # a server does not have the objects of earlier tests
    return clock


async def watch(node: TestNode, owner: User) -> tuple[Session, list[Watcher]]:
    """Run one turn in a session, which loads everything that is loaded once, and watch it with a page and a client."""
    session = await node.session(owner)
    viewers: list[Watcher] = [await SocketViewer(face(), session, owner).open() for face in (PageClient, EventsClient)]
    await node.send(session, owner, "Hello")
    await node.idle(session)
    return session, viewers


async def assert_shown(node: TestNode, session: Session, viewers: list[Watcher]) -> None:
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
        assert_shows(viewer.client, truth)
        await viewer.leave()


@pytest.mark.parametrize(
    ("family", "size"),
    [("pictures", 20_000), ("references", 60_000), ("wide tables", 20_000), ("one code", 8_000), ("emphasis", 200_000)],
)
async def test_no_stream_holds_up_the_loop(
    node: TestNode, ana: User, longest: Callable[[], float], family: str, size: int
) -> None:
    """LIVE-01, UI-01: an answer that is costly to render, such as one that a page asked the model to write, does not
    block the loop. When the page shows a simpler form while the answer streams, the final form replaces it."""
    text = FAMILIES[family](size)
    half = [text[start : start + 2_000] for start in range(0, len(text), 2_000)]
    pause = Gate()
    node.script([["Hi"], ["See:\n\n", *half[: len(half) // 2], pause, *half[len(half) // 2 :], "\n\nEnd."]])
    session, viewers = await watch(node, ana)
    longest()
    await node.send(session, ana, "Go")
    await pause.reached()
    late: Watcher = SocketViewer(PageClient(), session, ana)
    await late.open()
    await late.until(lambda: late.client.caught_up)
    pause.open()
    await node.idle(session)
    truth = await node.snapshot(session)
    for viewer in [*viewers, late]:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023
    assert longest() < BUDGET
    await assert_shown(node, session, [*viewers, late])


async def test_no_finished_message_holds_up_the_loop(node: TestNode, ana: User, longest: Callable[[], float]) -> None:
    """MSG-12, UI-10: a long message, a long result of a tool, and an edited answer that is costly to render do not
    block the loop."""

    @tool()
    def bash(command: str) -> str:
        """Run a command."""
        return "\x1b[1mx" * 400_000

    call = ToolCall("c1", "bash", {"command": "make"}, '{"command":"make"}')
    node.script([["Hi"], [call], ["Done"]], tools=[bash])
    session, viewers = await watch(node, ana)
    longest()
    await node.send(session, ana, "http://a `b`\n" * 150_000)
    await node.idle(session)
    answer = (await node.rows(session))[-2]
    text = FAMILIES["pictures"](300_000)
    await node.do(editing.edit, session=session, author=ana, message_id=answer.pk, text=text)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023
    assert longest() < BUDGET
    await assert_shown(node, session, viewers)


async def test_a_session_waits_for_its_own_drawings_alone(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: frames after a costly message keep their order, and other sessions continue in the meantime."""
    drawing, may_go = asyncio.Event(), asyncio.Event()
    drawn = Feed._draw_frames

    async def slowly(feed: Feed, message: object) -> object:
        if feed.session_id == dear.pk:
            drawing.set()
            await may_go.wait()
        return await drawn(feed, message)  # type: ignore[arg-type]

    dear, viewers = await watch(node, ana)
    other, others = await watch(node, ana)
    monkeypatch.setattr(Feed, "_draw_frames", slowly)
    monkeypatch.setattr(Feed, "_is_ready", lambda feed, event: feed.session_id != dear.pk)
    await node.send(dear, ana, "Slow")
    await drawing.wait()
    await node.send(other, ana, "Quick")
    await node.idle(other)
    await assert_shown(node, other, others)
    may_go.set()
    await node.idle(dear)
    await assert_shown(node, dear, viewers)
