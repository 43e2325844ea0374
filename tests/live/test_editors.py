"""Open editors of messages, on one process and on several."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.messages import Json
from chat.bus import publisher
from chat.commands import SYSTEM_PROMPT
from chat.live import editors as editing
from chat.live import hub as hubs
from chat.live import presence
from chat.live.editors import EditorTracker, OpenEditor, editing_words, editors_frame
from chat.live.hub import Hub
from chat.live.subscriber import Subscriber
from chat.models import Session, SessionRole, User
from chat.services.messages.editing import remove
from chat.services.people import sharing
from chat.services.sessions.actions import SessionAction, apply_action
from tests.access.test_sockets import SERVED
from tests.live.conftest import LANGUAGES
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import Socket, path_of
from tests.support.step_viewer import EventViewer, bearer
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import HubViewer, SocketViewer

INTERFACES = (EventsClient, PageClient)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "ARRIVING", 0.0)
    monkeypatch.setattr(presence, "LEAVING", 0.0)
    monkeypatch.setattr(editing, "TOGETHER", 0.0)


@pytest.fixture
def _quick_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)


async def talk(node: TestNode, ana: User, bo: User, role: str = "editor") -> tuple[Session, str, str]:
    """Return a session of two users, with the ids of Ana's question and of the agent's answer."""
    node.script(lambda request: ["Yes."])
    session = await node.session(ana)
    await node.do(let_in, session, bo, role)
    await node.send(session, ana, "Is it?")
    await node.idle(session)
    question, answer = [row.pk for row in await node.rows(session) if row.type == "text"]
    return session, question, answer


@pytest.mark.parametrize("client", INTERFACES)
async def test_viewers_see_who_is_editing(
    node: TestNode, ana: User, bo: User, client: type[EventsClient | PageClient]
) -> None:
    """LIVE-08: pages and clients show who edits messages and the system prompt, also after joining and reconnecting.

    Two sockets of a user count as one person. A closed socket ends only its own editors.
    """
    session, _question, answer = await talk(node, ana, bo)
    viewer: SocketViewer[EventsClient | PageClient] = await SocketViewer(client(), session, ana).open()
    tabs = [await SocketViewer(EventsClient(), session, bo).open() for _ in range(2)]
    for tab in tabs:
        assert (await tab.socket.ask(type="editing", id=answer))["type"] == "ack"
    await viewer.until(lambda: viewer.client.editors == {answer: ["Bo"]})
    await tabs[0].socket.ask(type="editing", id=SYSTEM_PROMPT)
    await viewer.until(lambda: viewer.client.editors == {answer: ["Bo"], SYSTEM_PROMPT: ["Bo"]})
    late: SocketViewer[EventsClient | PageClient] = await SocketViewer(client(), session, ana).open()
    await late.until(lambda: late.client.editors == {answer: ["Bo"], SYSTEM_PROMPT: ["Bo"]})
    await tabs[0].socket.ask(type="editing", id=SYSTEM_PROMPT, open=False)
    await viewer.until(lambda: viewer.client.editors == {answer: ["Bo"]})
    await tabs.pop().leave()
    await late.cut()
    await late.until(lambda: late.client.editors == {answer: ["Bo"]})
    reading = await SocketViewer(EventsClient(), session, bo).open()
    await reading.until(lambda: reading.client.editors)
    await tabs.pop().leave()
    await viewer.until(lambda: viewer.client.editors == {})
    await late.until(lambda: late.client.editors == {})
    await reading.leave()
    await viewer.leave()
    await late.leave()


async def test_two_people_edit_the_same_message(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-08: two users who edit the same message are both named and see each other."""
    session, _question, answer = await talk(node, ana, bo)
    viewers = [await SocketViewer(PageClient(), session, user).open() for user in (ana, bo)]
    for viewer in viewers:
        await viewer.socket.ask(type="editing", id=answer)
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.editors == {answer: ["Ana", "Bo"]})  # noqa: B023
    for viewer in viewers:
        await viewer.leave()


async def test_removed_message_has_no_editor(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-08: a removed message's editors end immediately for all viewers, and editors of other messages stay."""
    session, question, answer = await talk(node, ana, bo)
    viewer = await SocketViewer(EventsClient(), session, bo).open()
    async with Socket(path_of(session), ana) as anas:
        anas.send(type="sync")
        await anas.next(type="changes")
        for message_id in (question, answer):
            await anas.ask(type="editing", id=message_id)
        await viewer.until(lambda: viewer.client.editors == {question: ["Ana"], answer: ["Ana"]})
        await node.do(remove, session=session, author=ana, message_id=answer)
        await viewer.until(lambda: viewer.client.editors == {question: ["Ana"]})
        refused = await anas.ask(type="editing", id=answer)
        assert refused["code"] == "no_such_message"
        assert (await anas.ask(type="editing", id=answer, open=False))["type"] == "ack"
    await viewer.leave()


@pytest.mark.usefixtures("_quick_beacon")
async def test_editor_that_is_not_renewed_is_closed(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-08: an editor that its page fails to close expires."""
    session, _question, answer = await talk(node, ana, bo)
    viewer = await SocketViewer(EventsClient(), session, bo).open()
    async with Socket(path_of(session), ana) as anas:
        anas.send(type="sync")
        await anas.next(type="changes")
        await anas.ask(type="editing", id=answer)
        await viewer.until(lambda: viewer.client.editors == {answer: ["Ana"]})
        monkeypatch.setattr(editing, "EDITING", 0.05)
        await anas.ask(type="editing", id=answer)
        await viewer.until(lambda: viewer.client.editors == {})
    await viewer.leave()


async def test_who_may_not_edit_is_refused(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-08: opening an editor is refused for another user's message, for rows without text, and in an archived
    session."""
    session, question, answer = await talk(node, ana, bo)
    marker = next(row.pk for row in await node.rows(session) if row.type == "turn_start")
    async with Socket(path_of(session), bo) as bos:
        await bos.let_in()
        codes = [(await bos.ask(type="editing", id=each)).get("code") for each in (question, marker, answer, "")]
        assert codes == ["not_yours", "not_editable", None, "no_such_message"]
        await node.do(apply_action, user=ana, action=SessionAction.ARCHIVE, session_ids=[session.pk])
        codes = [(await bos.ask(type="editing", id=each)).get("code") for each in (answer, SYSTEM_PROMPT)]
        assert codes == ["archived", "archived"]


async def test_viewers_cannot_say_that_they_edit(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-08: viewers cannot open an editor, but see the editors of others."""
    session, _question, answer = await talk(node, ana, bo, "viewer")
    viewer = await SocketViewer(PageClient(), session, bo).open()
    assert (await viewer.socket.ask(type="editing", id=answer))["code"] == "forbidden"
    other = await SocketViewer(EventsClient(), session, ana).open()
    await other.socket.ask(type="editing", id=answer)
    await viewer.until(lambda: viewer.client.editors == {answer: ["Ana"]})
    await viewer.leave()
    await other.leave()


@pytest.mark.usefixtures("_quick_beacon")
@pytest.mark.parametrize("role", ["viewer", None])
async def test_who_may_no_longer_edit_has_no_editor(node: TestNode, ana: User, bo: User, role: str | None) -> None:
    """LIVE-06, LIVE-08: a lowered role or lost access ends the user's open editors, even if the socket stays."""
    session, _question, answer = await talk(node, ana, bo)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    bos = await SocketViewer(EventsClient(), session, bo).open()
    await bos.socket.ask(type="editing", id=answer)
    await viewer.until(lambda: viewer.client.editors == {answer: ["Bo"]})
    if role is None:
        await node.do(sharing.unshare, session=session, author=ana, user=bo)
    else:
        await node.do(sharing.share, session=session, author=ana, user=bo, role=SessionRole(role))
    await viewer.until(lambda: viewer.client.editors == {})
    await bos.leave()
    await viewer.leave()


async def test_archived_session_has_no_editors(node: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """LIVE-08: when a session is archived, no user may edit it, so all editors end immediately, on all processes."""
    session, question, answer = await talk(node, ana, bo)
    far = HubViewer(EventsClient(), session, bo).open(second_hub)
    viewer = await SocketViewer(EventsClient(), session, bo).open()
    async with Socket(path_of(session), ana) as anas:
        anas.send(type="sync")
        await anas.next(type="changes")
        for target in (question, SYSTEM_PROMPT):
            assert (await anas.ask(type="editing", id=target))["type"] == "ack"
        await viewer.socket.ask(type="editing", id=answer)
        for one in (viewer, far):
            await one.until(lambda: one.client.editors.keys() == {question, answer, SYSTEM_PROMPT})  # noqa: B023
        await node.do(apply_action, user=ana, action=SessionAction.ARCHIVE, session_ids=[session.pk])
        for one in (viewer, far):
            await one.until(lambda: one.client.editors == {})  # noqa: B023
    far.leave()
    await viewer.leave()


async def test_hubs_tell_each_other(node: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """LIVE-08: an editor on another process is shown here, also to viewers who join later, and ends with its socket."""
    session, question, answer = await talk(node, ana, bo)
    here = await SocketViewer(EventsClient(), session, ana).open()
    await here.socket.ask(type="editing", id=answer)
    await here.until(lambda: here.client.editors == {answer: ["Ana"]})
    there = HubViewer(PageClient(), session, bo).open(second_hub)
    await there.until(lambda: there.client.editors == {answer: ["Ana"]})
    there.feed.presence.editors.note(there.socket_queue, answer, is_open=True)
    there.feed.presence.editors.note(there.socket_queue, question, is_open=True)
    await here.until(lambda: here.client.editors == {answer: ["Ana", "Bo"], question: ["Bo"]})
    await node.do(remove, session=session, author=ana, message_id=answer)
    await here.until(lambda: here.client.editors == {question: ["Bo"]})
    there.leave()
    await here.until(lambda: here.client.editors == {})
    await here.leave()


@pytest.mark.usefixtures("_quick_beacon")
async def test_killed_process_takes_its_editors_along(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-08: the editors of a killed process disappear like its users (LIVE-05), even if the user is also here."""
    monkeypatch.setattr(presence, "SILENT", 0.3)
    session, _question, answer = await talk(node, ana, bo)
    viewer = await SocketViewer(EventsClient(), session, ana).open()
    bos = await SocketViewer(EventsClient(), session, bo).open()
    await viewer.until(lambda: set(viewer.client.people) == {"Ana", "Bo"})
    publisher.notify_viewers(session.pk, "killed", {bo.pk: "Bo"}, asks=False, editing=[(answer, bo.pk)])
    await viewer.until(lambda: viewer.client.editors == {answer: ["Bo"]})
    await viewer.until(lambda: viewer.client.editors == {})
    await bos.leave()
    await viewer.leave()


async def test_event_streams_say_who_is_editing(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-08: a stream of server-sent events reports editors as sockets do."""
    session, _question, answer = await talk(node, ana, bo)
    stream = await EventViewer(session, asked=await bearer(node, ana)).open()
    bos = await SocketViewer(EventsClient(), session, bo).open()
    await bos.socket.ask(type="editing", id=answer)
    said = f'{{"type":"editing","editors":[{{"id":"{answer}","user_id":{bo.pk},"name":"Bo"}}]}}'
    await stream.until(lambda: said in stream.text)
    await bos.leave()
    await stream.until(lambda: '{"type":"editing","editors":[]}' in stream.text)
    await stream.cut()


async def test_read_only_token_cannot_say_that_it_edits(node: TestNode, ana: User) -> None:
    """LIVE-08: the commands of a read-only token are refused."""
    session = await node.session(ana)
    headers = [(name.lower().encode(), value.encode()) for name, value in (await bearer(node, ana)).items()]
    async with Socket(path_of(session), headers=headers, app=SERVED) as socket:
        await socket.let_in()
        assert (await socket.ask(type="editing", id=SYSTEM_PROMPT))["code"] == "read_only_token"


# -- the tracker by itself --------------------------------------------------------------------------------------------


class CountingTracker:
    """A tracker that counts its reports and changes; every user has a name."""

    def __init__(self, pace: float = 0.0) -> None:
        self.reports: list[Sequence[tuple[str, int]]] = []
        self.shown: asyncio.Queue[tuple[OpenEditor, ...]] = asyncio.Queue()
        self.tracker = EditorTracker(
            lambda user_id: f"Person {user_id}",
            lambda: pace,
            lambda: self.reports.append(self.tracker.mine),
            lambda: self.shown.put_nowait(self.tracker.shown),
        )

    async def next(self) -> tuple[OpenEditor, ...]:
        async with asyncio.timeout(20):
            return await self.shown.get()


def viewer_of(user_id: int, role: SessionRole = SessionRole.EDITOR) -> Subscriber:
    return Subscriber("events", user_id=user_id, role=role)


async def test_editors_that_open_together_are_sent_together() -> None:
    """LIVE-08: processes and viewers get one report, however many editors open and close in a moment."""
    counting = CountingTracker()
    subscribers = [viewer_of(number) for number in range(10)]
    for subscriber in subscribers:
        for is_open in (True, False, True):
            counting.tracker.note(subscriber, "m_1", is_open=is_open)
    shown = await counting.next()
    assert [each.name for each in shown] == ["Person 0", "Person 1", "Person 2", "Person 3"]
    assert counting.reports == [tuple(("m_1", number) for number in range(10))]
    counting.tracker.note(subscribers[9], "m_1", is_open=True)  # a renewal is not a change
    counting.tracker.note(subscribers[0], "m_1", is_open=False)
    assert [each.name for each in await counting.next()] == ["Person 1", "Person 2", "Person 3", "Person 4"]
    assert (len(counting.reports), counting.shown.qsize()) == (2, 0)
    counting.tracker.close()


async def test_crowd_of_editors_is_bounded() -> None:
    """LIVE-08: the open editors of a socket, a process's reports and the viewers' frames are bounded."""
    counting = CountingTracker()
    crowd = [viewer_of(number) for number in range(100)]
    for number, subscriber in enumerate(crowd):
        for count in range(20):
            counting.tracker.note(subscriber, f"m_{number}_{count}", is_open=True)
    shown = await counting.next()
    assert len(counting.reports[0]) == editing.MAX_REPORTED
    assert len(shown) == editing.MAX_SHOWN
    assert len(str(editors_frame(shown))) < 5000
    for subscriber in crowd[1:]:
        subscriber.leave()
    assert counting.tracker.renew()
    assert counting.tracker.mine == tuple(sorted((f"m_0_{count}", 0) for count in range(10, 20)))
    counting.tracker.close()


async def test_changes_in_a_large_session_keep_its_pace() -> None:
    """LIVE-08: the second change is sent later, together with the third, and no change is lost."""
    counting = CountingTracker(pace=0.05)
    for number in range(3):
        counting.tracker.receive("other", [("m_1", each) for each in range(number + 1)])
        counting.tracker.show()
    assert [len(await counting.next()) for _ in range(2)] == [1, 3]
    counting.tracker.close()


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["m_1", "m_2", SYSTEM_PROMPT]), st.booleans(), st.booleans()),
        max_size=30,
    )
)
@settings(deadline=None)
async def test_processes_agree_after_the_last_report(steps: list[tuple[int, str, bool, bool]]) -> None:
    """LIVE-08: each report replaces the earlier ones, so lost reports do not matter: two processes show the same, which
    is the state of their sockets. Removing a message ends its editors in both."""
    here, there = CountingTracker(), CountingTracker()
    sockets = [viewer_of(number // 2) for number in range(6)]  # two sockets of each user
    for number, target, is_open, is_lost in steps:
        mine, other = (here, there) if number % 2 else (there, here)
        mine.tracker.note(sockets[number], target, is_open=is_open)
        if mine.tracker.renew() and not is_lost:
            other.tracker.receive("hub", mine.tracker.mine)
    left = {(number, target): is_open for number, target, is_open, _lost in steps}
    for removed in ("", "m_1"):
        for counting in (here, there):
            if removed:
                counting.tracker.close_removed(removed)
            counting.tracker.renew()
        there.tracker.receive("hub", here.tracker.mine)
        here.tracker.receive("hub", there.tracker.mine)
        edited = {(each, number // 2) for (number, each), is_open in left.items() if is_open and each != removed}
        for counting in (here, there):
            counting.tracker.show()
            assert {(each.target, each.user_id) for each in counting.tracker.shown} == edited
    for counting in (here, there):
        counting.tracker.close()


async def test_editor_without_a_known_name_is_not_shown() -> None:
    """LIVE-08: an editor whose process has not yet reported the user's name is not shown."""
    tracker = EditorTracker({1: "Ana"}.get, lambda: 0.0, lambda: None, lambda: None)
    tracker.receive("other", [("m_1", 1), ("m_1", 2)])
    tracker.show()
    assert tracker.shown == (OpenEditor("m_1", 1, "Ana"),)
    tracker.close()


async def test_names_of_editors_come_before_a_crowd_s(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-05, LIVE-08: a process reports the names of its first users, and among them all who are editing."""
    sent: asyncio.Queue[Json] = asyncio.Queue()
    monkeypatch.setattr(publisher.publisher, "put", lambda group, messages: sent.put_nowait(*messages))
    people = {number: f"Person {number}" for number in range(1000)}
    tracker = presence.PresenceTracker("s_1", "mine", lambda: people, lambda before: None, lambda: None)
    tracker.viewer_arrived()
    tracker.editors.note(viewer_of(999), "m_1", is_open=True)
    async with asyncio.timeout(20):
        while "editing" not in (message := await sent.get()) or not message["people"]:
            pass
    assert (message["editing"], message["people"][0]) == ([["m_1", 999]], [999, "Person 999"])
    assert len(message["people"]) == publisher.MAX_VIEWERS
    tracker.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_frames_have_sentences_in_the_page_s_language(language: str) -> None:
    """UI-13, LIVE-08: the sentences for one, two and more users have placeholders for names.

    A frame without editors has no sentence.
    """
    with translation.override(language):
        words = editors_frame([OpenEditor("m_1", 1, "Ana")])["words"]
        assert words == editing_words()
        for sentences in words.values():
            assert [("{name}" in each, "{other}" in each) for each in sentences] == [
                (True, False),
                (True, True),
                (False, False),
            ]
        assert editors_frame([]) == {"op": "editing", "editors": [], "words": {}}
