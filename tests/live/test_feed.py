"""A feed whose events arrive late, twice, in the wrong order, in part, or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from agents.errors import Overloaded
from agents.providers.scripted import Gate
from chat.bus.events import ChatEvent, MessageChanged, SessionChanged, StatusChanged, TextAppended, decode
from chat.bus.publisher import group_of, layer
from chat.db import Threads
from chat.live.feed import Feed
from chat.live.streaming_message import StreamingMessage
from chat.live.turn_wait import TurnWait
from chat.models import ChatMessage, Session, SessionRole, User
from chat.services.messages import editing, sending
from chat.services.sessions import lifecycle
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import PATIENCE
from tests.support.testing_node import TestNode
from tests.support.viewer import FeedViewer

Anyone = FeedViewer[EventsClient | PageClient]


@dataclass
class Tape:
    """A recorder of a session's published events, which the test plays to a feed."""

    node: TestNode
    session: Session
    owner: User
    feed: Feed
    channel: str

    async def next(self) -> tuple[int | None, list[ChatEvent]]:
        async with asyncio.timeout(20):
            while (message := await layer().receive(self.channel))["type"] != "session.events":
                pass
        return message["head"], [decode(event) for event in message["events"]]

    async def until(self, kind: type[ChatEvent], name: str = "") -> list[tuple[int | None, list[ChatEvent]]]:
        """Return all messages up to the first one with such an event."""
        recorded = [await self.next()]
        while not any(isinstance(event, kind) and (not name or event.name == name) for event in recorded[-1][1]):  # type: ignore[union-attr]
            recorded.append(await self.next())
        return recorded

    def play(self, *recorded: tuple[int | None, list[ChatEvent]]) -> None:
        for head, events in recorded:
            self.feed.receive(events, head)

    def play_without_text(self, *recorded: tuple[int | None, list[ChatEvent]]) -> None:
        for head, events in recorded:
            self.feed.receive([event for event in events if not isinstance(event, TextAppended)], head)

    async def viewer(self, client: EventsClient | PageClient) -> Anyone:
        viewer: Anyone = FeedViewer(client, self.session, self.owner)
        viewer.join(self.feed)
        await viewer.until(lambda: client.caught_up)
        return viewer

    async def both(self) -> list[Anyone]:
        return [await self.viewer(EventsClient()), await self.viewer(PageClient())]

    async def assert_shown_to(self, viewers: list[Anyone]) -> None:
        truth = await self.node.snapshot(self.session)
        for viewer in viewers:
            await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
            assert_shows(viewer.client, truth)


@pytest_asyncio.fixture
async def tape(node: TestNode, ana: User) -> AsyncIterator[Tape]:
    session = await node.session(ana)
    channel = await layer().new_channel("tape")
    await layer().group_add(group_of(session.pk), channel)
    feed = Feed(session.pk, node.threads)
    feed.subscribed.set()
    yield Tape(node, session, ana, feed, channel)
    feed.close()


@pytest.mark.both_databases
async def test_beacon_makes_viewers_fetch_a_lost_last_event(tape: Tape) -> None:
    """LIVE-02: the beacon makes viewers fetch a lost last event, even if a new viewer already has it."""
    viewers = await tape.both()
    await tape.node.do(lifecycle.rename, session=tape.session, author=tape.owner, title="Lost")
    viewers += await tape.both()
    truth = await tape.node.snapshot(tape.session)
    tape.feed.beat(truth.revision)
    await tape.assert_shown_to(viewers)
    assert viewers[0].frames[-2] == {"type": "head", "revision": truth.revision}
    assert all(frame.get("type") != "head" for frame in viewers[2].frames)  # this viewer already had it


@pytest.mark.both_databases
async def test_status_of_an_earlier_commit_is_not_sent_after_a_later_one(tape: Tape) -> None:
    """RUN-03: an event of an earlier commit that is published later does not replace the newer status."""
    viewers = await tape.both()
    tape.node.script([["Yes."], ["No."]])
    await tape.node.send(tape.session, tape.owner, "One")
    first = await tape.until(MessageChanged, "turn_done")
    await tape.node.idle(tape.session)
    await tape.node.send(tape.session, tape.owner, "Two")
    second = await tape.until(MessageChanged, "turn_done")
    *working, done = first
    assert StatusChanged("idle") in done[1]
    beginning, *rest = second
    assert StatusChanged("thinking") in beginning[1]
    tape.play(*working, beginning, done)
    last = [viewer.client for viewer in viewers]
    assert isinstance(last[0], EventsClient)
    await viewers[0].until(lambda: last[0].caught_up == 2)
    assert [frame["status"] for frame in viewers[0].frames if frame["type"] == "agent_status"] == ["thinking"] * 2
    tape.play(*rest)
    await tape.assert_shown_to(viewers)


@pytest.mark.parametrize("lost", [1, 3, 5])
async def test_gap_in_live_text_is_filled_from_the_rows(tape: Tape, lost: int) -> None:
    """LIVE-02: live text that did not reach this process is read from the rows, wherever the gap is."""
    viewers = await tape.both()
    gates = [Gate() for _ in range(6)]
    tape.node.script([["Say: ", *(step for n, gate in enumerate(gates) for step in (f"{n} *w*\n\n", gate)), "end"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    texts = 0
    for gate in gates:
        await gate.reached()
        for recorded in await tape.until(TextAppended):
            texts += any(isinstance(event, TextAppended) for event in recorded[1])
            if texts != lost:
                tape.play(recorded)
        gate.open()
    tape.play(*await tape.until(MessageChanged, "turn_done"))
    await tape.assert_shown_to(viewers)


async def test_client_syncs_when_the_end_of_a_text_was_lost(tape: Tape) -> None:
    """LIVE-02: the end of a response has its length, so the client notices that the last part is missing."""
    viewers = await tape.both()
    gate = Gate()
    tape.node.script([["First ", gate, "last"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    await gate.reached()
    gate.open()
    recorded = await tape.until(MessageChanged, "turn_done")
    tape.play_without_text(*recorded)
    await tape.assert_shown_to(viewers)


async def test_beacon_reveals_text_that_was_lost_before_a_pause(tape: Tape) -> None:
    """LIVE-02: the beacon finds live text that was lost before a pause, although no later text shows the gap."""
    viewers = await tape.both()
    gate = Gate()
    tape.node.script([["First ", "lost", gate, "last"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    await gate.reached()
    recorded = await tape.until(TextAppended)
    tape.play_without_text(*recorded)
    await tape.node.until(lambda: ChatMessage.objects.filter(deltas__text__contains="lost").exists())
    events, page = (viewer.client for viewer in viewers)
    assert isinstance(events, EventsClient)
    assert isinstance(page, PageClient)
    await viewers[0].until(lambda: events.texts[-1:] == ["First "])  # the rows are read for the events before the text
    tape.feed.beat(0)
    tape.feed.beat(0)
    await viewers[0].until(lambda: events.texts[-1] == "First lost")
    await viewers[1].until(lambda: [page.text_of(id) for id in page.bodies] == ["<p>First lost</p>"])
    gate.open()
    tape.play(*await tape.until(MessageChanged, "turn_done"))
    await tape.assert_shown_to(viewers)


@pytest.mark.both_databases
async def test_joining_viewer_gets_live_text_that_is_not_in_the_rows_yet(tape: Tape) -> None:
    """LIVE-02: a new viewer gets the text of the last writer's interval, which is not in the rows yet."""
    gate = Gate()
    tape.node.script([["First ", gate]])
    await tape.node.send(tape.session, tape.owner, "Go")
    await gate.reached()
    tape.play(*await tape.until(MessageChanged, "text_delta"))
    (message_id,) = [row.pk for row in await tape.node.rows(tape.session) if row.text == "First "]
    await tape.both()
    tape.feed.receive([TextAppended(message_id, 6, "words")])
    late = await tape.both()
    events, page = (viewer.client for viewer in late)
    assert isinstance(events, EventsClient)
    assert isinstance(page, PageClient)
    await late[0].until(lambda: events.texts[-1] == "First words")
    await late[1].until(lambda: page.text_of(message_id) == "<p>First words</p>")
    gate.open()
    await tape.node.idle(tape.session)


async def test_finished_text_is_not_begun_again_by_late_events(tape: Tape) -> None:
    """LIVE-02: a viewer who has synced past a message's events does not get its beginning again."""
    tape.node.script([["Some ", "*text*"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    recorded = await tape.until(MessageChanged, "turn_done")
    await tape.node.idle(tape.session)
    viewers = await tape.both()
    before = [len(viewer.frames) for viewer in viewers]
    tape.play(*recorded)
    await tape.node.do(lifecycle.rename, session=tape.session, author=tape.owner, title="New")
    tape.play(*await tape.until(SessionChanged))
    await tape.assert_shown_to(viewers)
    received = [viewer.frames[known:] for viewer, known in zip(viewers, before, strict=True)]
    assert {frame["type"] for frame in received[0]} <= {"text_delta", "agent_status", "token_usage", "session_updated"}
    assert {frame["op"] for frame in received[1]} <= {"status", "usage", "session"}


@pytest.mark.parametrize("offset", [0, 3])
async def test_text_of_a_message_that_is_not_known_is_looked_up(node: TestNode, offset: int) -> None:
    """LIVE-02: text of an unknown message makes the feed read the row, because the message may have ended already."""
    sent: list[object] = []
    ended: list[str] = []
    streaming = StreamingMessage(
        "m_none", node.threads, send=lambda frame, short: sent.append(frame), filled=sent.append, ended=ended.append
    )
    streaming.receive(TextAppended("m_none", offset, "late"))
    await streaming.wait_for_gap()
    assert (ended, sent) == (["m_none"], [])
    streaming.close()


async def test_streamed_text_can_be_edited_when_it_is_over(tape: Tape) -> None:
    """LIVE-01, MSG-09: an edit of a finished message replaces the state of its stream."""
    viewers = await tape.both()
    tape.node.script([["Some *text*\n\n", "and more"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    tape.play(*await tape.until(MessageChanged, "turn_done"))
    await tape.node.idle(tape.session)
    await tape.assert_shown_to(viewers)
    page = viewers[1].client
    assert isinstance(page, PageClient)
    ((streamed, _),) = page.drawn
    assert streamed == ["<p>Some <em>text</em></p>", "<p>and more</p>"]
    answer = (await tape.node.rows(tape.session))[-2]
    await tape.node.do(editing.edit, session=tape.session, author=tape.owner, message_id=answer.pk, text="Less")
    tape.play(*await tape.until(MessageChanged, "message_updated"))
    await tape.assert_shown_to(viewers)


async def test_repeated_events_change_nothing(tape: Tape) -> None:
    """Repeated events change nothing (LIVE-02)."""
    viewers = await tape.both()
    tape.node.script([["Some ", "text"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    for recorded in await tape.until(MessageChanged, "turn_done"):
        tape.play(recorded, recorded)
    await tape.node.idle(tape.session)
    await tape.assert_shown_to(viewers)


async def test_large_message_is_read_from_its_row(tape: Tape) -> None:
    """MSG-12, LIVE-01: a message that is too large for an event arrives in full and in order."""
    viewers = await tape.both()
    tape.node.script([["y" * 30_000, "z" * 30_000]])
    await tape.node.send(tape.session, tape.owner, "😀" * 20_000)
    recorded = await tape.until(MessageChanged, "turn_done")
    by_reference = [event for _, events in recorded for event in events if getattr(event, "message", 0) is None]
    assert len(by_reference) >= 3
    tape.play(*recorded)
    await tape.node.idle(tape.session)
    await tape.assert_shown_to(viewers)


async def test_message_that_is_gone_before_it_is_read_is_removed(tape: Tape) -> None:
    """LIVE-01: a large queued message that was withdrawn before this process could read it is reported as removed."""
    gate = Gate()
    tape.node.script([[gate], ["Bye"]])
    await tape.node.send(tape.session, tape.owner, "Go")
    await gate.reached()
    tape.play(*await tape.until(MessageChanged, "user_message"))
    viewers = await tape.both()
    sent = await tape.node.send(tape.session, tape.owner, "q" * 20_000)
    await tape.node.do(sending.withdraw, session=tape.session, author=tape.owner, message_id=sent.id)
    tape.play(await tape.next(), await tape.next())
    await tape.assert_shown_to(viewers)
    assert [viewer.client.caught_up for viewer in viewers] == [1, 1]
    gate.open()
    await tape.node.idle(tape.session)


async def test_viewers_sync_after_an_event_that_cannot_be_rendered(
    tape: Tape, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-10, LIVE-02: an event that cannot be rendered is logged once; later events arrive, and viewers sync."""
    broken = Threads(1, "broken")
    await broken.close()
    feed = Feed(tape.session.pk, broken)
    feed.subscribed.set()
    viewers = await tape.both()
    for viewer in viewers:  # they read through the working feed and get events of the broken one
        feed.join(viewer.socket_queue)
    feed.revision = tape.feed.revision
    await tape.node.do(lifecycle.rename, session=tape.session, author=tape.owner, title="New")
    head, events = await tape.next()
    feed.receive([*events, StatusChanged("waiting")], head)
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.caught_up == 2)  # noqa: B023
    assert {"type": "agent_status", "status": "waiting"} in viewers[0].frames
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    caplog.clear()


async def test_request_that_waits_for_a_turn_reads_it_when_the_turn_pauses(tape: Tape) -> None:
    """UI-12, RUN-03: a waiting request is notified when the turn begins to wait, which has no revision of its own.

    It may have read the rows between the commit of the question and this one.
    """
    request = TurnWait(tape.owner, SessionRole.EDITOR, None, name=tape.owner.sender)
    tape.feed.join(request)
    tape.feed.receive([StatusChanged("waiting")])
    assert await request.changed(PATIENCE)


async def test_viewer_with_a_later_revision_than_the_rows_reloads(tape: Tape) -> None:
    """LIVE-02: a viewer with a later revision than the rows reloads, because the rows may come from a backup."""
    events, page = EventsClient(), PageClient()
    events.revision = page.revision = 1000
    events.messages["m_gone"] = {"id": "m_gone", "sequence": 1, "text": "", "status": "complete", "type": "text"}
    await tape.viewer(events)
    assert_shows(events, await tape.node.snapshot(tape.session))
    viewer: Anyone = FeedViewer(page, tape.session, tape.owner)
    viewer.join(tape.feed)
    await viewer.until(lambda: page.reload)


async def test_viewers_see_why_nothing_comes_while_a_request_is_repeated(tape: Tape) -> None:
    """RUN-10, RUN-03: the status has the error and the seconds until the next request, and the answer follows."""
    viewers = await tape.both()
    tape.node.script([[Overloaded("Busy.", retry_after=0.01)], ["Yes."]])
    await tape.node.send(tape.session, tape.owner, "Hi")
    tape.play(*await tape.until(MessageChanged, "turn_done"))
    events, page = viewers
    await events.until(lambda: events.frames[-1].get("status") == "idle")
    assert [frame for frame in events.frames if frame["type"] == "agent_status"] == [
        {"type": "agent_status", "status": "thinking"},
        {"type": "agent_status", "status": "thinking", "activity": "retrying", "code": "overloaded", "retry_in": 1},
        {"type": "agent_status", "status": "thinking"},
        {"type": "agent_status", "status": "idle"},
    ]
    await page.until(lambda: any("Retrying in 1 s" in str(frame.get("html")) for frame in page.frames))
