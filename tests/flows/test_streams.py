"""The common behavior of the streams of steps and of events."""

from __future__ import annotations

import pytest

from chat.live import step_stream
from chat.models import User
from tests.support.step_viewer import EventViewer, StepViewer, bearer
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.parametrize("viewer_of", [StepViewer, EventViewer])


async def test_headers_say_that_it_streams(
    node: TestNode, ana: User, viewer_of: type[StepViewer] | type[EventViewer]
) -> None:
    """LIVE-02, LIVE-03: the headers keep caches, buffering proxies and compressors from delaying the stream."""
    asked = {**await bearer(node, ana), "Accept-Encoding": "gzip"}
    viewer = await viewer_of(await node.session(ana), asked=asked).open()
    await viewer.until(lambda: viewer.client.last_event_id)
    assert viewer.status == 200
    assert viewer.headers["content-type"] == "text/event-stream"
    assert viewer.headers["cache-control"] == "private, no-store"
    assert viewer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in viewer.headers
    await viewer.cut()


async def test_silence_is_filled_with_heartbeats(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch, viewer_of: type[StepViewer] | type[EventViewer]
) -> None:
    """LIVE-02, LIVE-03: comments keep the connection alive while nothing happens."""
    monkeypatch.setattr(step_stream, "HEARTBEAT", 0.01)
    viewer = await viewer_of(await node.session(ana), asked=await bearer(node, ana)).open()
    await viewer.until(lambda: viewer.text.count(step_stream.BEAT) > 1)
    await viewer.cut()


async def test_last_event_id_counts_more_than_the_address(
    node: TestNode, ana: User, viewer_of: type[StepViewer] | type[EventViewer]
) -> None:
    """LIVE-02, LIVE-03: Last-Event-ID takes precedence over the address, because clients reconnect with their first
    address."""
    node.script([["One."], ["Two."]])
    session = await node.session(ana)
    viewer = await viewer_of(session, asked=await bearer(node, ana), since=0).open()
    await node.send(session, ana, "First words")
    await node.idle(session)
    revision = str((await node.snapshot(session)).revision)
    await viewer.until(lambda: viewer.client.last_event_id == revision)
    await viewer.cut()
    before = len(viewer.text)
    await node.send(session, ana, "Second words")
    await viewer.open()
    await viewer.until(lambda: "Second words" in viewer.text[before:])
    assert "First words" not in viewer.text[before:]
    await viewer.cut()
    await node.idle(session)
