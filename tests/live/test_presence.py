"""Which users are present and which are typing, on one process and on several."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import groupby

import pytest
from django.utils import translation

from chat.bus import publisher
from chat.bus.publisher import group_of, layer
from chat.live import hub as hubs
from chat.live import presence
from chat.live.hub import Hub
from chat.live.presence import Presence, PresenceTracker, Present, presence_event, presence_frame, presence_text
from chat.models import User
from chat.services.people import sharing
from tests.live.conftest import LANGUAGES
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import HubViewer, SocketViewer

INTERFACES = (EventsClient, PageClient)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays of zero, because these tests do not measure them."""
    monkeypatch.setattr(presence, "ARRIVING", 0.0)
    monkeypatch.setattr(presence, "LEAVING", 0.0)


@pytest.fixture
def _quick_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)


class Names(HTMLParser):
    """The users whose faces are in a frame's HTML, and the text of its button."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.faces: list[str] = []
        self.label = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.label = self.label or values.get("aria-label") or ""
        if "title" in values:
            self.faces.append(values["title"] or "")


def label_of(client: PageClient) -> str:
    return Names(client.parts.get("presence", "")).label


async def test_all_viewers_see_who_is_present(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-05: pages and clients show the present users. Two tabs are one user, who leaves with the last tab."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    events = await SocketViewer(EventsClient(), session, ana).open()
    page = await SocketViewer(PageClient(), session, ana).open()
    await events.until(lambda: events.client.people == {"Ana": False})
    tabs = [await SocketViewer(PageClient(), session, bo).open() for _ in range(2)]
    await events.until(lambda: events.client.people == {"Ana": False, "Bo": False})
    await page.until(lambda: label_of(page.client) == "Online: Ana and Bo")
    # Wait until both tabs are subscribed: a later subscription would bring Bo back.
    await tabs[0].until(lambda: label_of(tabs[0].client) == "Online: Ana and Bo")
    await tabs[1].until(lambda: label_of(tabs[1].client) == "Online: Ana and Bo")
    frames_before = len(events.socket.presence)
    await tabs.pop().leave()
    await tabs.pop().leave()
    await events.until(lambda: events.client.people == {"Ana": False})
    await page.until(lambda: label_of(page.client) == "Online: Ana")
    # A busy server may repeat a frame, so count only the changes.
    assert len(list(groupby(events.socket.presence[frames_before - 1 :]))) == 2
    await events.leave()
    await page.leave()


async def test_who_is_removed_is_gone_at_once(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05, LIVE-06: a removed user disappears immediately, unlike one whose page closed and who may return."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    theirs = await SocketViewer(EventsClient(), session, bo).open()
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    await viewer.until(lambda: set(viewer.client.people) == {"Ana", "Bo"})
    monkeypatch.setattr(presence, "LEAVING", 3600.0)
    await node.do(sharing.unshare, session=session, author=ana, user=bo)
    await viewer.until(lambda: set(viewer.client.people) == {"Ana"})
    await theirs.leave()
    await viewer.leave()


async def test_who_is_refused_a_command_is_gone_at_once(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-06: a removed user's command can arrive before the hub has checked their access; they disappear then."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    async with Socket(path_of(session, "page"), bo) as theirs:
        theirs.send(type="sync")
        await viewer.until(lambda: set(viewer.client.people) == {"Ana", "Bo"})
        monkeypatch.setattr(presence, "LEAVING", 3600.0)
        for check in ("_check_access_soon", "_check_user_soon"):
            monkeypatch.setattr(Hub, check, lambda hub, of: None)
        await node.do(sharing.unshare, session=session, author=ana, user=bo)
        theirs.send(type="send", text="Am I still here?")
        assert await theirs.until(lambda: theirs.close_code) == 4403
        await viewer.until(lambda: set(viewer.client.people) == {"Ana"})
    await viewer.leave()


@pytest.mark.parametrize("client", INTERFACES)
async def test_typing_is_shown_until_the_message_comes(
    node: TestNode, ana: User, bo: User, client: type[EventsClient | PageClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """“Typing” is shown until the message arrives (LIVE-05)."""
    monkeypatch.setattr(presence, "TYPING", 3600.0)
    node.script(lambda request: ["Yes."])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewer: SocketViewer[EventsClient | PageClient] = await SocketViewer(client(), session, bo).open()
    async with Socket(path_of(session, "page"), ana) as anas:
        anas.send(type="sync")
        await anas.next(op="synced")
        for _ in range(2):
            assert (await anas.ask(type="typing"))["type"] == "ack"
            await viewer.until(lambda: typing(viewer.client) == ["Ana"])
            assert (await anas.ask(type="send", text="Done"))["type"] == "ack"
            await viewer.until(lambda: not typing(viewer.client))
    await node.idle(session)
    await viewer.leave()


def typing(client: EventsClient | PageClient) -> list[str]:
    if isinstance(client, PageClient):
        return client.typing
    return [name for name, is_typing in client.people.items() if is_typing]


async def test_typing_that_is_not_renewed_ends(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05: a user who stops typing is not shown as typing after a while."""
    monkeypatch.setattr(presence, "TYPING", 0.05)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewer = await SocketViewer(EventsClient(), session, bo).open()
    async with Socket(path_of(session), ana) as anas:
        anas.send(type="sync")
        await anas.next(type="changes")
        # Only the typing of users who are known to be online is shown, which must not take longer than the typing.
        await viewer.until(lambda: "Ana" in viewer.client.people)
        await anas.ask(type="typing")
        await viewer.until(lambda: viewer.client.people.get("Ana"))
        await viewer.until(lambda: not viewer.client.people.get("Ana"))
    await viewer.leave()


async def test_hubs_tell_each_other(node: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """LIVE-05: users on another process are present too, and a new feed requests them."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    there = HubViewer(EventsClient(), session, bo).open(second_hub)
    await there.until(lambda: there.client.people)
    here = await SocketViewer(EventsClient(), session, ana).open()
    await here.until(lambda: set(here.client.people) == {"Ana", "Bo"})
    await there.until(lambda: set(there.client.people) == {"Ana", "Bo"})
    await here.socket.ask(type="typing")
    await there.until(lambda: there.client.people["Ana"])
    there.leave()
    await here.until(lambda: set(here.client.people) == {"Ana"})
    await here.leave()


@pytest.mark.usefixtures("_quick_beacon")
async def test_killed_process_takes_its_people_along(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05: the users of a killed process disappear when its last report expires."""
    monkeypatch.setattr(presence, "SILENT", 0.3)
    session = await node.session(ana)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    await viewer.until(lambda: viewer.client.people)
    publisher.notify_viewers(session.pk, "killed", {bo.pk: "Bo"}, asks=False)
    await viewer.until(lambda: set(viewer.client.people) == {"Ana", "Bo"})
    await viewer.until(lambda: set(viewer.client.people) == {"Ana"})
    await viewer.leave()


@pytest.mark.usefixtures("_quick_beacon")
async def test_lost_presence_messages_are_repeated(
    node: TestNode, second_hub: Hub, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05: presence reports are repeated, because the layer may lose some."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    channel = await layer().new_channel("tape")
    await layer().group_add(group_of(session.pk), channel)
    there = HubViewer(EventsClient(), session, bo).open(second_hub)
    here = await SocketViewer(EventsClient(), session, ana).open()
    await there.until(lambda: set(there.client.people) == {"Ana", "Bo"})
    while ((said := await layer().receive(channel)).get("people") or [[0]])[0][0] != ana.pk:
        pass
    there.feed.presence.receive(said["hub"], {}, asks=False)
    assert set(there.client.people) == {"Ana", "Bo"}
    await there.until(lambda: set(there.client.people) == {"Bo"})
    monkeypatch.setattr(presence, "REPEAT", 0.0)
    await there.until(lambda: set(there.client.people) == {"Ana", "Bo"})
    there.leave()
    await here.leave()


@pytest.mark.usefixtures("translated")
async def test_presence_frames_are_in_the_page_s_language(node: TestNode, ana: User) -> None:
    """UI-13, LIVE-05: there is one presence frame for each language."""
    session = await node.session(ana)
    for language in LANGUAGES:
        viewer = await SocketViewer(PageClient(), session, ana, language=language).open()
        with translation.override(language):
            words = presence_text(present("Ana"))
        await viewer.until(lambda: label_of(viewer.client) == words)  # noqa: B023  # waits within the round
        await viewer.leave()


def present(*names: str) -> Presence:
    return Presence(tuple(Present(number, name) for number, name in enumerate(names)), (), len(names))


@pytest.mark.parametrize(
    ("names", "words", "faces", "more"),
    [
        ("", "No one is here", 0, ""),
        ("A", "Online: A", 1, ""),
        ("AB", "Online: A and B", 2, ""),
        ("ABC", "Online: A, B and C", 3, "+1"),
        ("ABCD", "Online: A, B and 2 others", 4, "+2"),
        ("ABCDEF", "Online: A, B and 4 others", 4, "+2+4"),
    ],
)
def test_first_faces_are_shown_with_a_count_of_the_others(names: str, words: str, faces: int, more: str) -> None:
    """Of many users only the first avatars are shown, with a count (LIVE-05)."""
    frame = presence_frame(present(*names))
    drawn = Names(frame["html"])
    assert (drawn.label, drawn.faces) == (words, list(names[:faces]))
    assert "".join(re.findall(r"\+\d", frame["html"])) == more  # those without a face: on wide screens, on phones


async def test_crowd_is_counted_and_its_arrivals_are_sent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-05: in a large session, frames list only some users with the count of all, and arrivals are sent together.
    Typing is shown immediately.
    """
    monkeypatch.setattr(presence, "MAX_PACE", 1e9)
    monkeypatch.setattr(presence, "SECONDS_PER_USER", 1e9)
    shown: list[Presence] = []
    tracker = PresenceTracker("s_1", "mine", dict, lambda before: shown.append(tracker.shown), lambda: None)
    names = [f"Person {number}" for number in range(1000)]
    for count in range(990, 1000):
        tracker.receive("other", dict(enumerate(names[:count])), asks=False)
    assert [(len(each.listed), each.count) for each in shown] == [(20, 990)]
    tracker.start_typing(989)
    assert shown[1:] == [Presence(shown[0].listed, (Present(989, "Person 989"),), 990)]
    event = presence_event(shown[1])
    assert [person["name"] for person in event["people"] if person["typing"]] == ["Person 989"]
    assert (len(event["people"]), event["count"]) == (21, 990)
    assert len(str(event)) < 2000
    assert Names(presence_frame(shown[1])["html"]).label == "Online: Person 0, Person 1 and 988 others"

    monkeypatch.setattr(presence, "MAX_PACE", 0.0)
    tracker.receive("other", dict(enumerate(names)), asks=False)
    assert shown[-1].count == 1000
    tracker.close()


async def test_last_arrival_in_a_crowd_is_shown_when_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-05: the last change in a large session is delayed, not lost."""
    monkeypatch.setattr(presence, "MAX_PACE", 0.05)
    counts: asyncio.Queue[int] = asyncio.Queue()
    tracker = PresenceTracker("s_1", "mine", dict, lambda before: counts.put_nowait(tracker.shown.count), lambda: None)
    for count in (30, 31, 32):
        tracker.receive("other", {number: str(number) for number in range(count)}, asks=False)
    async with asyncio.timeout(20):
        assert [await counts.get() for _ in range(2)] == [30, 32]
    tracker.close()


def test_names_are_text() -> None:
    """LIVE-05: a user's name is escaped and cannot become markup."""
    frame = presence_frame(present("<img src=x>", '"><script>'))
    assert "<img" not in frame["html"]
    assert "<script" not in frame["html"]
    assert Names(frame["html"]).faces == ["<img src=x>", '"><script>']


async def test_crowd_s_names_fit_the_layer(node: TestNode, ana: User) -> None:
    """LIVE-05: the report of one hub is bounded."""
    sent: list[publisher.Message] = []

    class Spy(publisher.Publisher):
        def put(self, group: str, messages: Sequence[publisher.Message], listed: Sequence[str] = ()) -> None:
            sent.extend(messages)

    before = publisher.publisher
    publisher.publisher = Spy()
    try:
        publisher.notify_viewers("s_1", "hub", dict.fromkeys(range(5000), "名" * 300), asks=True)
    finally:
        publisher.publisher = before
    assert len(str(sent[0]).encode()) < 60_000
