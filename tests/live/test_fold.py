"""The events, applied to a snapshot, give the contents of the rows after any actions in the session."""

from __future__ import annotations

from random import Random

import pytest

from chat.models import User
from tests.live.conftest import LANGUAGES
from tests.live.conversation import converse
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import BadLink, SocketViewer

pytestmark = pytest.mark.usefixtures("translated")


@pytest.mark.parametrize("seed", range(4))
async def test_folded_events_equal_the_rows(node: TestNode, ana: User, bo: User, seed: int) -> None:
    """LIVE-01, UI-13: fold(snapshot, events) equals a later snapshot in messages, figures and status, for pages and
    clients, in each language."""
    chance = Random(seed)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewers: list[SocketViewer[EventsClient | PageClient]] = [SocketViewer(EventsClient(), session, bo)]
    viewers += [SocketViewer(PageClient(), session, ana, language=language) for language in LANGUAGES]
    for viewer in viewers:
        await viewer.open()
        await viewer.until(lambda: viewer.client.caught_up)  # noqa: B023  # waits within the round
    await converse(node, session, [ana, bo], chance)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
        assert_shows(viewer.client, truth, viewer.language)
        await viewer.leave()


@pytest.mark.parametrize("seed", range(4))
async def test_bad_link_loses_nothing_for_good(node: TestNode, ana: User, bo: User, seed: int) -> None:
    """LIVE-02: after any loss, duplication, delay or break, the state after the last sync equals the rows."""
    chance = Random(1000 + seed)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewers: list[SocketViewer[EventsClient | PageClient]] = []
    for number in range(4):
        client: EventsClient | PageClient = EventsClient() if number % 2 else PageClient()
        link = BadLink(Random(chance.random()))
        viewers.append(await SocketViewer(client, session, bo, link, LANGUAGES[number % 3]).open())

    async def now_and_then() -> None:
        if chance.random() < 0.3:
            await chance.choice(viewers).cut()

    await converse(node, session, [ana, bo], chance, now_and_then)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.settle()
        if isinstance(viewer.client, PageClient):
            viewer.client.drawn.clear()  # ignore what the client showed during the bad connection
        assert_shows(viewer.client, truth, viewer.language)
        await viewer.leave()


async def test_responses_to_commands_are_no_events(node: TestNode, ana: User) -> None:
    """LIVE-01: a response can have a `revision`, which is not that of the client's state."""
    session = await node.session(ana)
    await node.send(session, ana, "echo hello")
    await node.idle(session)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    await viewer.until(lambda: viewer.client.caught_up)
    message = next(row for row in viewer.client.rows if row["role"] == "user")
    edit = {"type": "edit", "id": message["id"], "revision": message["revision"]}
    viewer.send({**edit, "ref": "1", "text": "echo bye"})
    viewer.send({**edit, "ref": "2", "text": "echo again"})  # from the earlier revision
    await viewer.until(lambda: len([frame for frame in viewer.client.others if "ref" in frame]) == 2)
    truth = await node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    answers = {frame["ref"]: frame for frame in viewer.client.others if "ref" in frame}
    assert {ref: (answer["type"], "revision" in answer) for ref, answer in answers.items()} == {
        "1": ("ack", True),
        "2": ("refused", True),
    }
    await viewer.leave()
