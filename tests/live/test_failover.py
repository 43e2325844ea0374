"""Rows that the beacon finds behind or ahead of what was sent: after a failover, or while an event is on its way."""

from __future__ import annotations

import asyncio

import pytest
from django.db.models import F

from chat.live import hub as hubs
from chat.live.hub import Hub
from chat.live.subscriber import TRY_LATER
from chat.models import ChatMessage, Session, User
from chat.queries import messages
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.testing_node import TestNode
from tests.support.viewer import HubViewer, SocketViewer


@pytest.fixture
def _quick_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)


@pytest.mark.usefixtures("_quick_beacon")
async def test_viewers_who_have_more_than_the_rows_start_again(node: TestNode, ana: User) -> None:
    """LIVE-02: viewers with more than the rows reconnect and drop what no longer exists."""
    node.script([["Kept"], ["Lost"], ["New"]])
    session = await node.session(ana)
    await node.send(session, ana, "One")
    await node.idle(session)
    kept = await node.do(Session.objects.get, pk=session.pk)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    page = await SocketViewer(PageClient(), session, ana).open()
    await node.send(session, ana, "Two")
    await node.idle(session)
    for each in (viewer, page):
        await each.until(lambda: "Lost" in str(each.frames))  # noqa: B023  # waits within the round
    await node.do(go_back, kept)
    for each in (viewer, page):
        assert await each.socket.closed() == TRY_LATER
        await each.cut()
    rest = await node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, rest))
    await page.until(lambda: page.client.reload)
    await node.send(session, ana, "Three")
    await node.idle(session)
    truth = await node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    for each in (viewer, page):
        await each.leave()


@pytest.mark.usefixtures("no_beacon")
async def test_event_that_is_on_its_way_is_not_lost(
    node: TestNode, second_hub: Hub, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: if the beacon reads rows before their event arrives, no viewer is asked to sync."""
    session = await node.session(ana)
    viewer = HubViewer(PageClient(), session, ana).open(second_hub)
    await viewer.until(lambda: viewer.feed.revision >= 0)
    head, loop = viewer.feed.revision + 1, asyncio.get_running_loop()

    def revisions(session_ids: list[str]) -> dict[str, int]:
        loop.call_soon_threadsafe(loop.call_later, 0.01, setattr, viewer.feed, "revision", head)
        return dict.fromkeys(session_ids, head)

    monkeypatch.setattr(messages, "revisions", revisions)
    await second_hub._beacon([viewer.feed])
    assert viewer.feed.revision == head
    assert [frame for frame in viewer.frames if frame.get("op") == "head"] == []
    viewer.leave()


def go_back(kept: Session) -> None:
    ChatMessage.objects.filter(session=kept, revision__gt=kept.revision).delete()
    Session.objects.filter(pk=kept.pk).update(revision=kept.revision, updated_at=F("updated_at"))
