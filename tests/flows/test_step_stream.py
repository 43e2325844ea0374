"""The stream of steps, read by a client that handles only one kind of update, over connections that break."""

from __future__ import annotations

import asyncio
import threading
from random import Random

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.fixtures import Settings

from agents.events import ReasoningDelta, Usage
from agents.messages import Json, ToolCall
from agents.providers.scripted import Gate
from chat.live import hub as hubs
from chat.live import step_stream
from chat.models import ApiToken, ChatMessage, Session, Share, User
from chat.queries.steps import steps_since
from chat.runner import runtime
from chat.services.messages import editing
from chat.services.people import api_tokens
from chat.services.runs import control
from chat.services.sessions import lifecycle
from tests.live.conversation import converse
from tests.support.step_viewer import StepViewer, bearer
from tests.support.testing_node import TestNode, let_in


async def follow(node: TestNode, session: Session, user: User) -> StepViewer:
    return await StepViewer(session, asked=await bearer(node, user)).open()


async def truth(node: TestNode, session: Session) -> tuple[str, dict[str, Json]]:
    changes = await node.do(steps_since, session.pk, 0)
    assert changes is not None
    return str(changes.revision), {step.id: step.to_json() for step in changes.steps}


async def assert_follows(node: TestNode, session: Session, *viewers: StepViewer) -> None:
    revision, steps = await truth(node, session)
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.last_event_id == revision)  # noqa: B023  # waits within the round
        assert viewer.client.steps == steps


@pytest.mark.parametrize("seed", range(3))
async def test_fold_is_the_rows_after_any_cuts(node: TestNode, ana: User, bo: User, seed: int) -> None:
    """LIVE-03, CTX-04: after any actions of users and agents, and breaks at any point, the client's steps equal those
    of the rows."""
    chance = Random(seed)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    steady = await follow(node, session, ana)
    viewers = [await follow(node, session, bo) for _ in range(2)]

    async def now_and_then() -> None:
        if chance.random() < 0.5:
            viewer = chance.choice(viewers)
            await viewer.cut(chance)
            await viewer.open()

    await converse(node, session, [ana, bo], chance, now_and_then)
    await assert_follows(node, session, steady, *viewers)
    for viewer in (steady, *viewers):
        await viewer.cut()


async def test_answer_streams_as_deltas(node: TestNode, ana: User) -> None:
    """LIVE-03: a step begins with a snapshot, grows by deltas, and ends with its final state.

    Reasoning is not included.
    """
    more, yet, end = Gate(), Gate(), Gate()
    call = ToolCall("c1", "calculator", {"expression": "1+1"}, '{"expression":"1+1"}')
    node.script([[ReasoningDelta("hm"), "Let ", more, "me ", yet, "see.", end, call], ["Two.", Usage(10, 2)]])
    session = await node.session(ana)
    viewer = await follow(node, session, ana)
    await node.send(session, ana, "Sum!")
    await viewer.until(lambda: any(step["role"] == "assistant" for step in viewer.client.steps.values()))
    snapshots = viewer.text.count('"role":"assistant"')
    for gate, words in ((more, "me "), (yet, "see.")):
        gate.open()
        await viewer.until(lambda: words in viewer.text)  # noqa: B023  # waits within the round
        assert f'"delta":{{"content":"{words}"}}' in viewer.text
    assert viewer.text.count('"role":"assistant"') == snapshots
    assert [step["content"] for step in viewer.client.steps.values()] == ["Sum!", "Let me see."]
    end.open()
    await node.idle(session)
    await assert_follows(node, session, viewer)
    said = [(step["role"], step["content"]) for step in viewer.client.steps.values()]
    assert said == [("user", "Sum!"), ("assistant", "Let me see."), ("tool", "2"), ("assistant", "Two.")]
    assert "hm" not in viewer.text
    await viewer.cut()


async def test_resume_brings_what_changed_alone(node: TestNode, ana: User) -> None:
    """LIVE-03: the history comes in the same stream, and a client that reconnects gets only what changed."""
    node.script([["First."], ["Second."]])
    session = await node.session(ana)
    await node.send(session, ana, "One")
    await node.idle(session)
    viewer = await follow(node, session, ana)
    await assert_follows(node, session, viewer)
    await viewer.cut()
    first = next(step for step in viewer.client.steps if viewer.client.steps[step]["content"] == "One")
    await node.send(session, ana, "Two")
    await node.idle(session)
    before = len(viewer.text)
    await viewer.open()
    await assert_follows(node, session, viewer)
    assert first not in viewer.text[before:]
    assert viewer.text[before:].count("data: ") == viewer.text[before:].count('"snapshot"')
    await viewer.cut()


async def test_excluded_and_withdrawn_steps_are_removed_from_the_stream(node: TestNode, ana: User) -> None:
    """LIVE-03, MSG-09, RUN-12: excluded, removed and withdrawn steps are removed, and steps that are included again are
    added."""
    node.script([["First."], ["Second."]])
    session = await node.session(ana)
    await node.send(session, ana, "One")
    await node.idle(session)
    viewer = await follow(node, session, ana)
    rows = await node.rows(session)
    for included in (False, True):
        await node.do(editing.set_included, session=session, author=ana, message_id=rows[2].pk, included=included)
        await assert_follows(node, session, viewer)
        assert (rows[2].pk in viewer.client.steps) is included
    await node.do(control.retry, session=session, author=ana, message_id=rows[2].pk)
    await node.idle(session)
    await assert_follows(node, session, viewer)
    assert [step["content"] for step in viewer.client.steps.values()] == ["One", "Second."]
    assert f'"snapshot":{{"id":"{rows[2].pk}","removed":true}}' in viewer.text
    await viewer.cut()


async def test_late_joiner_gets_what_is_being_said(node: TestNode, ana: User) -> None:
    """LIVE-02, LIVE-03: a new client gets a snapshot with the text so far, and the rest as deltas."""
    joined = Gate()
    node.script([["Hel", "lo ", joined, "there"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    viewer = await follow(node, session, ana)
    await viewer.until(lambda: any((step["content"] or "") == "Hello " for step in viewer.client.steps.values()))
    joined.open()
    await node.idle(session)
    await assert_follows(node, session, viewer)
    await viewer.cut()


async def test_slow_client_gets_more_at_a_time(node: TestNode, ana: User) -> None:
    """LIVE-03: a slow client gets larger updates without a growing backlog or loss, and nothing after losing access."""
    node.script([["word "] * 300])
    session = await node.session(ana)
    asked = await bearer(node, ana)
    slow, cut_off = [await StepViewer(session, asked=asked).open(room=1) for _ in range(2)]
    await slow.blocks()
    await cut_off.blocks()  # with the state before the message
    await node.send(session, ana, "Speak")
    await node.idle(session)
    slow.go_on()
    await assert_follows(node, session, slow)
    assert slow.text.count("data: ") < 20
    await node.do(_end_token, session, ana)
    await slow.until(lambda: slow.over)
    cut_off.go_on()
    await cut_off.until(lambda: cut_off.over)
    assert "word" not in cut_off.text


@pytest.mark.parametrize("how", ["share", "token", "person"])
async def test_lost_access_ends_it_at_once(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """LIVE-06: any loss of access ends the stream without waiting for the beacon, and reconnecting is refused."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 3600.0)
    await node.restart()
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    viewer = await follow(node, session, bo)
    await viewer.until(lambda: viewer.client.last_event_id)
    await node.do(TAKEN_AWAY[how], session, bo)
    await viewer.until(lambda: viewer.over)
    await node.do(lifecycle.rename, session=session, author=ana, title="Secret")
    await viewer.open()
    assert viewer.status == (404 if how == "share" else 401)
    await viewer.until(lambda: viewer.over)


def _end_share(session: Session, user: User) -> None:
    Share.objects.get(session=session, user=user).delete()


def _end_token(session: Session, user: User) -> None:
    api_tokens.revoke(user=user, token_id=ApiToken.objects.get(user=user).pk)


def _end_person(session: Session, user: User) -> None:
    user.is_active = False
    user.save()


TAKEN_AWAY = {"share": _end_share, "token": _end_token, "person": _end_person}


async def test_signing_out_ends_the_stream_of_a_page(node: TestNode, ana: User) -> None:
    """LIVE-06: a stream authenticated by a cookie ends when the user signs out."""
    browser = Client()
    await node.do(browser.force_login, ana)
    session = await node.session(ana)
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME]
    viewer = await StepViewer(session, asked={"Cookie": f"{cookie.key}={cookie.value}"}).open()
    await viewer.until(lambda: viewer.client.last_event_id)
    await node.do(browser.logout)
    await viewer.until(lambda: viewer.over)
    await viewer.open()
    assert viewer.status == 401
    await viewer.until(lambda: viewer.over)


async def test_server_that_stops_waits_for_no_stream(node: TestNode, ana: User) -> None:
    """LIVE-03: a stopping server ends its streams, including those that connect in the meantime."""
    viewer = await follow(node, await node.session(ana), ana)
    await viewer.until(lambda: viewer.client.last_event_id)
    runtime.end_streams()
    await viewer.until(lambda: viewer.over)
    await viewer.open()
    await viewer.until(lambda: viewer.over)
    assert viewer.text.endswith(step_stream.BYE)


@pytest.mark.parametrize(
    ("header", "status"), [("999", 409), ("-1", 422), ("m_1", 422), ("9" * 40, 422), ("", 422), ("0", 200)]
)
async def test_odd_places_are_refused(node: TestNode, ana: User, header: str, status: int) -> None:
    """MSG-12, LIVE-03: revisions that the session does not have, and invalid ones, are refused."""
    session = await node.session(ana)
    viewer = await StepViewer(session, asked={**await bearer(node, ana), "Last-Event-ID": header}).open()
    assert viewer.status == status
    if status == 200:
        await viewer.cut()
    else:
        await viewer.until(lambda: viewer.over)


async def test_stream_holds_no_thread_and_leaves_nothing(node: TestNode, ana: User, settings: Settings) -> None:
    """LIVE-03: many streams share the process's resources, and an ended one leaves nothing."""
    settings.STREAMS_PER_USER = 0
    session = await node.session(ana)
    asked = await bearer(node, ana)
    first = await StepViewer(session, asked=asked).open()
    await first.until(lambda: first.client.last_event_id)
    threads = threading.active_count()
    viewers = [await StepViewer(session, asked=asked).open() for _ in range(10)]
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.last_event_id)  # noqa: B023  # waits within the round
    await asyncio.to_thread(lambda: None)
    assert threading.active_count() - threads < len(viewers)
    feed = runtime.hub().watch(session.pk, (probe := step_stream.StepStream(ana, 0, name=ana.sender)))
    assert len(feed.subscribers) == 12
    for viewer in (first, *viewers):
        await viewer.cut()
    assert feed.subscribers == [probe]
