"""Folding the stream gives what the rows hold, whatever is said and done in the session."""

from __future__ import annotations

from random import Random

import pytest

from chat.models import User
from chat.rendering.frames import message_html
from chat.rendering.markdown import blocks
from chat.services.reading import Changes
from tests.live.conversation import converse
from tests.support.client import EventsClient, Json
from tests.support.house import House, let_in
from tests.support.page_client import PageClient
from tests.support.viewer import BadLink, SocketViewer


def rows_state(changes: Changes) -> Json:
    """What the rows say, in the form of EventsClient.state."""
    rows = [message.to_json() for message in changes.messages]
    rows.sort(key=lambda row: (row["sequence"] is None, row["sequence"] or 0, row["id"]))
    return {"messages": rows, "session": changes.session.to_json()}


def drawn_rows(changes: Changes) -> dict[str, str]:
    drawn = {message.id: str(message_html(message)).strip() for message in changes.messages}
    return {message_id: html for message_id, html in drawn.items() if html}


def assert_page_equals(page: PageClient, changes: Changes) -> None:
    """The articles are those that a page load draws; what was streamed is what the renderer makes of the whole."""
    assert {id: article.html for id, article in page.articles.items()} == drawn_rows(changes)
    texts = {message.id: message.text for message in changes.messages}
    drawn = {id: streamed for id, streamed in page.drawn.items() if id in texts}
    assert drawn == {id: list(blocks(texts[id])) for id in drawn}
    assert (page.revision, page.status) == (changes.revision, changes.session.agent_status)


@pytest.mark.parametrize("seed", range(8))
async def test_folded_events_equal_the_rows(house: House, ana: User, bo: User, seed: int) -> None:
    """LIVE-01: fold(snapshot, events) == snapshot taken later: messages, figures and status, on both faces."""
    chance = Random(seed)
    session = await house.session(ana)
    await house.do(let_in, session, bo, "editor")
    events = await SocketViewer(EventsClient(), session, bo).open()
    page = await SocketViewer(PageClient(), session, ana).open()
    await events.until(lambda: events.client.caught_up)
    await page.until(lambda: page.client.caught_up)
    await converse(house, session, [ana, bo], chance)
    truth = await house.snapshot(session)
    await events.until(lambda: events.client.revision == truth.revision)
    await page.until(lambda: page.client.revision == truth.revision)
    await events.until(lambda: events.client.session["agent_status"] == "idle")
    await page.until(lambda: page.client.status == "idle")
    assert events.client.state() == rows_state(truth)
    assert_page_equals(page.client, truth)
    await events.leave()
    await page.leave()


@pytest.mark.parametrize("seed", range(6))
async def test_bad_link_loses_nothing_for_good(house: House, ana: User, bo: User, seed: int) -> None:
    """LIVE-02: whatever is dropped, doubled, delayed or cut off, after the last sync the fold equals the rows."""
    chance = Random(1000 + seed)
    session = await house.session(ana)
    await house.do(let_in, session, bo, "editor")
    viewers: list[SocketViewer[EventsClient | PageClient]] = []
    for number in range(4):
        client: EventsClient | PageClient = EventsClient() if number % 2 else PageClient()
        viewers.append(await SocketViewer(client, session, bo, BadLink(Random(chance.random()))).open())

    async def now_and_then() -> None:
        if chance.random() < 0.3:
            await chance.choice(viewers).cut()

    await converse(house, session, [ana, bo], chance, now_and_then)
    truth = await house.snapshot(session)
    for viewer in viewers:
        await viewer.settle()
        if isinstance(viewer.client, EventsClient):
            assert viewer.client.state() == rows_state(truth)
        else:
            assert {id: article.html for id, article in viewer.client.articles.items()} == drawn_rows(truth)
            assert viewer.client.status == "idle"
        await viewer.leave()
