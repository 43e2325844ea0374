"""Viewers who join while a turn runs."""

from __future__ import annotations

import asyncio

import pytest

from agents.events import ReasoningDelta
from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.live.hub import Hub
from chat.models import Session, User
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.testing_node import TestNode
from tests.support.viewer import HubViewer, SocketViewer, Viewer

Anyone = Viewer[EventsClient | PageClient]
PROTOCOLS = (EventsClient, PageClient)
pytestmark = [pytest.mark.usefixtures("no_beacon"), pytest.mark.both_databases]
CALL = ToolCall("c1", "calculator", {"expression": "1+1"}, '{"expression":"1+1"}')


def shown(viewer: Anyone) -> str:
    """Return the last text as the viewer sees it, without markup."""
    client = viewer.client
    if isinstance(client, EventsClient):
        return client.texts[-1] if client.texts else ""
    texts = [client.text_of(id) for id in client.bodies]
    return texts[-1].replace("<p>", "").replace("</p>", "").strip() if texts else ""


async def assert_all_show(node: TestNode, session: Session, viewers: list[Anyone]) -> None:
    await node.idle(session)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
        assert_shows(viewer.client, truth)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_viewer_may_come_at_any_stage(
    node: TestNode, ana: User, protocol: type[EventsClient | PageClient]
) -> None:
    """LIVE-01, LIVE-02, RUN-03: viewers who join before, during or after reasoning and text all end with the same
    state."""
    gates = [Gate() for _ in range(4)]
    node.script(
        [
            [ReasoningDelta("Let "), gates[0], ReasoningDelta("me. "), "I **say", gates[1], "** it", CALL, gates[2]],
            ["So: 2", gates[3], ", I *think*.\n\nBye."],
        ]
    )
    session = await node.session(ana)
    viewers: list[Anyone] = [await SocketViewer(protocol(), session, ana).open()]
    await viewers[0].until(lambda: viewers[0].client.caught_up)
    await node.send(session, ana, "Go")
    for gate in gates:
        await gate.reached()
        viewers.append(await SocketViewer(protocol(), session, ana).open())
        await viewers[-1].until(lambda: viewers[-1].client.caught_up)
        gate.open()
    await assert_all_show(node, session, viewers)
    viewers.append(await SocketViewer(protocol(), session, ana).open())
    await assert_all_show(node, session, viewers)
    for viewer in viewers:
        assert isinstance(viewer, SocketViewer)
        await viewer.leave()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("known", [True, False], ids=["hub heard it", "hub came late"])
async def test_joiner_in_a_pause_sees_all_that_was_said(
    node: TestNode, second_hub: Hub, ana: User, protocol: type[EventsClient | PageClient], known: bool
) -> None:
    """LIVE-02: a viewer who joins during a pause sees all text, even if it is not yet stored."""
    pause, end = Gate(), Gate()
    words = [f"w{number} " for number in range(200)]
    node.script([["Start ", *words, pause, "and ", "the ", "end", end, "."]])
    session = await node.session(ana)
    first: list[Anyone] = [HubViewer(protocol(), session, ana).open(second_hub)] if known else []
    for viewer in first:
        await viewer.until(lambda: viewer.client.caught_up)  # noqa: B023
    await node.send(session, ana, "Go")
    await pause.reached()
    late: Anyone = HubViewer(protocol(), session, ana).open(second_hub)
    said = "Start " + "".join(words)
    await late.until(lambda: shown(late) == said.strip() or shown(late) == said)
    pause.open()
    await end.reached()
    await late.until(lambda: shown(late) == said + "and the end")
    end.open()
    await assert_all_show(node, session, [*first, late])
    for viewer in [*first, late]:
        assert isinstance(viewer, HubViewer)
        viewer.leave()


@pytest.mark.parametrize("delay", range(0, 8, 2))
async def test_joiner_at_the_very_end_sees_the_end(node: TestNode, second_hub: Hub, ana: User, delay: int) -> None:
    """LIVE-02: a viewer whose rows are read at any moment of the turn's end sees the end."""
    end = Gate()
    node.script([["A ", "*text*", end, " that ends\n\nnow"]])
    session = await node.session(ana)
    here: list[Anyone] = [await SocketViewer(protocol(), session, ana).open() for protocol in PROTOCOLS]
    await node.send(session, ana, "Go")
    await end.reached()
    end.open()
    for _ in range(delay * 4):
        await asyncio.sleep(0)
    late: list[Anyone] = [HubViewer(protocol(), session, ana).open(second_hub) for protocol in PROTOCOLS]
    late += [await SocketViewer(protocol(), session, ana).open() for protocol in PROTOCOLS]
    await assert_all_show(node, session, here + late)
    for viewer in here + late:
        if isinstance(viewer, SocketViewer):
            await viewer.leave()
        elif isinstance(viewer, HubViewer):
            viewer.leave()


async def test_viewers_miss_nothing_when_a_hub_restarts_in_mid_stream(
    node: TestNode, second_hub: Hub, ana: User
) -> None:
    """LIVE-02, LIVE-04: viewers of a web process that stops reconnect to another one and miss nothing."""
    pause = Gate()
    node.script([["One ", "[two][x]\n\n", "three ", pause, "four\n\n[x]: http://five.example\n\nsix"]])
    session = await node.session(ana)
    viewers = [HubViewer(protocol(), session, ana) for protocol in PROTOCOLS]
    for viewer in viewers:
        viewer.open(second_hub)
    await node.send(session, ana, "Go")
    await pause.reached()
    for viewer in viewers:
        await viewer.until(lambda: "three" in shown(viewer))  # noqa: B023
    await second_hub.stop()
    third = Hub()
    await third.start()
    for viewer in viewers:
        await viewer.until(lambda: viewer.closed_with)  # noqa: B023
        assert viewer.closed_with == 1012
        viewer.open(third)
        await viewer.until(lambda: viewer.client.caught_up > 1)  # noqa: B023
    pause.open()
    await assert_all_show(node, session, [*viewers])
    for viewer in viewers:
        viewer.leave()
    await third.stop()
    await second_hub.start()


async def test_reconnecting_page_gets_only_what_it_lacks(node: TestNode, ana: User) -> None:
    """LIVE-02, LIVE-04: a reconnecting page keeps its finished blocks and gets only what it lacks."""
    pause, end = Gate(), Gate()
    node.script([["One\n\n", "two\n\n", "three", pause, " four\n\n", "five", end, "."]])
    session = await node.session(ana)
    client: EventsClient | PageClient = PageClient()
    page = await SocketViewer(client, session, ana).open()
    await page.until(lambda: page.client.caught_up)
    await node.send(session, ana, "Go")
    await pause.reached()
    await page.until(lambda: shown(page) == "Onetwothree")
    await page.leave()
    pause.open()
    await end.reached()
    known = len(page.frames)
    await page.open()
    await page.until(lambda: shown(page) == "Onetwothree fourfive")
    snaps = [frame for frame in page.frames[known:] if frame["op"] == "snap"]
    assert [snap["from"] for snap in snaps] == [2]
    end.open()
    await assert_all_show(node, session, [page])
    await page.leave()


async def test_page_that_reconnects_to_another_process_gets_changed_blocks(
    node: TestNode, second_hub: Hub, ana: User
) -> None:
    """LIVE-02: blocks that another process rendered are sent again, because they may have changed since."""
    pause, end = Gate(), Gate()
    node.script(
        [["[two][x]\n\n", "three\n\n", "four", pause, "\n\n[x]: http://five.example\n\nsix\n\nseven", end, "."]]
    )
    session = await node.session(ana)
    page: HubViewer[EventsClient | PageClient] = HubViewer(PageClient(), session, ana)
    page.open(second_hub)
    await page.until(lambda: page.client.caught_up)
    await node.send(session, ana, "Go")
    await pause.reached()
    await page.until(lambda: shown(page) == "[two][x]threefour")
    page.leave()
    pause.open()
    await end.reached()
    third = Hub()
    await third.start()
    page.open(third)
    await page.until(lambda: shown(page).endswith("seven"))
    assert 'href="http://five.example"' in shown(page)
    end.open()
    await assert_all_show(node, session, [page])
    page.leave()
    await third.stop()
