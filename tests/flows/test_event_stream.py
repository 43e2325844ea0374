"""The events of a session as server-sent events, over connections that break."""

from __future__ import annotations

from random import Random

import pytest

from agents.messages import Json
from agents.providers.scripted import Gate
from chat.live import hub as hubs
from chat.live import socket_queue
from chat.live.hub import Hub
from chat.models import ApiToken, Session, Share, User
from chat.runner import runtime
from chat.services.people import api_tokens
from chat.services.runs import attempts
from chat.services.runs.attempts import restore_attempt
from chat.services.runs.control import retry
from chat.services.sessions import lifecycle
from tests.live.conversation import converse
from tests.live.states import assert_shows, is_at, rows_state
from tests.support.step_viewer import EventViewer, bearer
from tests.support.testing_node import TestNode, let_in


async def assert_follows(node: TestNode, session: Session, *viewers: EventViewer) -> None:
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client.events, truth))  # noqa: B023  # waits within the round
        assert_shows(viewer.client.events, truth)
        assert viewer.client.last_event_id == str(truth.revision)


@pytest.mark.parametrize("seed", range(2))
async def test_fold_is_the_rows_after_any_cuts(node: TestNode, ana: User, bo: User, seed: int) -> None:
    """LIVE-01, LIVE-02: wherever connections break, the client's state equals the rows without a request of the
    client."""
    chance = Random(seed)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    steady = await EventViewer(session, asked=await bearer(node, ana)).open()
    asked = await bearer(node, bo)
    viewers = [await EventViewer(session, asked=asked).open() for _ in range(2)]

    async def now_and_then() -> None:
        if chance.random() < 0.5:
            viewer = chance.choice(viewers)
            await viewer.cut(chance)
            await viewer.open()

    await converse(node, session, [ana, bo], chance, now_and_then)
    await assert_follows(node, session, steady, *viewers)
    for viewer in (steady, *viewers):
        await viewer.cut()


@pytest.mark.parametrize("seed", range(2))
async def test_lossy_layer_loses_nothing(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """LIVE-02: the stream finds gaps for its client, which only applies the events."""
    chance, hear = Random(seed), Hub._handle_message

    def sometimes(hub: Hub, message: Json) -> None:
        if message["type"] != "session.events" or chance.random() < 0.7:
            hear(hub, message)

    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)
    monkeypatch.setattr(Hub, "_handle_message", sometimes)
    await node.restart()
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    await converse(node, session, [ana], Random(seed))
    truth = await node.snapshot(session)
    await viewer.until(lambda: viewer.client.events.revision == truth.revision)
    assert viewer.client.events.rows == rows_state(truth)["messages"]
    await viewer.cut()


async def test_large_attempt_is_synced(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-12, LIVE-02: an attempt with too many messages for events is read from the rows."""
    monkeypatch.setattr(attempts, "MAX_EVENTS", 1)
    node.script([["One."], ["Two."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    answer = (await node.rows(session))[2]
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    done = await node.do(retry, session=session, author=ana, message_id=answer.pk, at_most=0)
    await node.idle(session)
    await node.do(restore_attempt, session=session, author=ana, attempt=done.attempt)
    assert (await node.rows(session))[2] == answer
    await assert_follows(node, session, viewer)
    await viewer.cut()


async def test_client_that_comes_again_in_mid_text_has_all_of_it(node: TestNode, ana: User) -> None:
    """LIVE-02: a client that reconnects in mid-text gets all text, although deltas have no revisions."""
    begun, missed, more = Gate(), Gate(), Gate()
    node.script([["Once ", begun, "upon ", missed, "a ", more, "time"]])
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    await node.send(session, ana, "Tell")
    await viewer.until(lambda: viewer.client.events.texts[-1:] == ["Once "])
    await viewer.cut()
    begun.open()
    await missed.reached()
    before = len(viewer.client.types)
    await viewer.open()
    await viewer.until(lambda: viewer.client.events.texts[-1:] == ["Once upon "])
    assert viewer.client.types[before] == "changes"
    for gate in (missed, more):
        gate.open()
    await node.idle(session)
    await assert_follows(node, session, viewer)
    await viewer.cut()


async def test_slow_client_catches_up_from_the_rows(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: events that a slow client does not take are dropped, and it gets the rows when it reads again."""
    monkeypatch.setattr(socket_queue, "MAX_FRAMES", 20)
    node.script([["word "] * 300])
    session = await node.session(ana)
    slow = await EventViewer(session, asked=await bearer(node, ana)).open(room=1)
    late = await EventViewer(session, asked=await bearer(node, ana)).open(room=2)
    late.go_on()
    await late.until(lambda: late.client.last_event_id)
    await late.pause()
    await node.send(session, ana, "Speak")
    await node.idle(session)
    for viewer in (slow, late):
        viewer.go_on()
    await assert_follows(node, session, late)
    await late.cut()
    await assert_follows(node, session, slow)
    assert "resync" not in slow.client.types
    await slow.cut()


async def test_lost_event_is_made_good_by_the_beacon(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: the beacon finds events that the layer has lost, without a request of the client."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)
    await node.restart()
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    await assert_follows(node, session, viewer)
    await node.do(Session.objects.filter(pk=session.pk).update, title="Unheard", revision=session.revision + 1)
    await viewer.until(lambda: viewer.client.events.session.get("title") == "Unheard")
    assert "head" not in viewer.client.types
    await viewer.cut()


async def test_stream_has_queued_messages_and_ends_of_turns(node: TestNode, ana: User) -> None:
    """RUN-02, RUN-06: a program with a token gets the events of queued messages and of the ends of turns."""
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    await node.send(session, ana, "First")
    await gate.reached()
    await node.send(session, ana, "Second")
    await viewer.until(lambda: any(row["status"] == "queued" for row in viewer.client.events.rows))
    gate.open()
    await viewer.until(lambda: viewer.client.types.count("turn_done") == 2)
    assert {"turn_start", "user_message", "response_done", "agent_status"} <= set(viewer.client.types)
    await viewer.cut()


@pytest.mark.parametrize("how", ["share", "token", "server"])
async def test_lost_access_ends_the_stream_at_once(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """LIVE-06: the stream ends immediately without waiting for the beacon, and sends nothing more."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 3600.0)
    await node.restart()
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    viewer = await EventViewer(session, asked=await bearer(node, bo)).open()
    await viewer.until(lambda: viewer.client.last_event_id)
    match how:
        case "share":
            await node.do(lambda: Share.objects.get(session=session, user=bo).delete())
        case "token":
            token = await node.do(lambda: ApiToken.objects.get(user=bo).pk)
            await node.do(api_tokens.revoke, user=bo, token_id=token)
        case "server":
            runtime.end_streams()
    await viewer.until(lambda: viewer.over)
    await node.do(lifecycle.rename, session=session, author=ana, title="Secret")
    assert "Secret" not in viewer.text


async def test_another_history_begins_again(node: TestNode, ana: User) -> None:
    """LIVE-02: after an older backup was restored, the client gets a new state without the lost messages."""
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana), since=999).open()
    await viewer.until(lambda: "changes" in viewer.client.types)
    assert '"anew":true' in viewer.text
    await assert_follows(node, session, viewer)
    await viewer.cut()


async def test_follower_has_the_name_of_the_session(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-05: if two names look the same, a user who follows the stream is shown with the user name, too."""

    def rename() -> None:
        bo.display_name = ana.sender
        bo.save()

    await node.do(rename)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    viewer = await EventViewer(session, asked=await bearer(node, bo)).open()
    await viewer.until(lambda: viewer.client.events.people)
    assert list(viewer.client.events.people) == ["Ana (bo)"]
    await viewer.cut()
