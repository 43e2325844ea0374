"""Webhooks over HTTP: what receivers get about turns, and the cost of slow, moved or internal addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from threading import Event

import pytest
import pytest_asyncio
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.errors import AgentError
from agents.providers.scripted import Gate
from chat.db import Threads
from chat.models import Membership, User, Webhook, WebhookDelivery, WebhookEvent, Workspace
from chat.runner import webhook_deliverer, webhook_sending
from chat.runner.webhook_deliverer import WebhookDeliverer
from chat.services.sessions.lifecycle import create_session
from chat.services.webhooks import delivering, managing
from chat.services.webhooks.managing import WebhookSettings
from tests.running.test_agents import CONFIG as SEVERAL
from tests.running.test_agents import several
from tests.running.test_asking import CALL, FOUR, answer, asked, booking
from tests.running.test_waiting import ASK, CONFIG, waiting
from tests.support.testing_node import TestNode
from tests.support.webhook_receiver import Receiver, receiving

YES = {"confirmed": True}


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_INTERNAL_HOSTS = ("127.0.0.1",)
    with receiving() as receiver:
        yield receiver


def added(owner: User, workspace: Workspace, url: str, *events: str) -> tuple[Webhook, str]:
    Membership.objects.filter(user=owner, workspace=workspace).update(role=Membership.Role.OWNER)
    given = WebhookSettings(url=url, events=events or WebhookEvent.values)
    return managing.add(author=owner, workspace_id=workspace.pk, given=given)


class Deliverers:
    """The deliverers of a test, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = timezone.now() + timedelta(minutes=1)  # after the deliveries that the test makes due
        self.threads = Threads(2, "test")
        self._all: list[WebhookDeliverer] = []

    def start(self) -> WebhookDeliverer:
        self._all.append(WebhookDeliverer(lambda: self.now))
        return self._all[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not await self.threads.run(condition):  # noqa: ASYNC110  # rows have no event
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        for each in self._all:
            await each.stop()
        await self.threads.close()


@pytest_asyncio.fixture
async def deliverers(transactional_db: None) -> AsyncIterator[Deliverers]:
    deliverers = Deliverers()
    yield deliverers
    await deliverers.close()


def sessions(owner: User, workspace: Workspace, count: int = 1) -> None:
    for _ in range(count):
        create_session(owner=owner, workspace=workspace)


def results() -> list[tuple[str, int | None, str]]:
    return list(WebhookDelivery.objects.order_by("pk").values_list("status", "answered", "problem"))


async def test_turns_reach_the_receiver(node: TestNode, ana: User, workspace: Workspace, receiver: Receiver) -> None:
    """HOOK-02, HOOK-03: a signed request with the last message of the turn is sent as soon as the turn ends."""
    node.script([["Fine."], [AgentError("It broke.")]])
    _webhook, secret = await node.do(added, ana, workspace, f"{receiver.url}/hook")
    session = await node.session(ana)
    sent = await node.send(session, ana, "Hi")
    created, message, finished = await receiver.takes(3)
    assert [each.type for each in (created, message, finished)] == [
        "session.created",
        "message.sent",
        "turn.finished",
    ]
    assert all(each.is_signed_with(secret) for each in (created, message, finished))
    assert (finished.path, finished.headers["content-type"]) == ("/hook", "application/json")
    await node.idle(session)
    answer_row = next(row for row in await node.rows(session) if row.role == "assistant")
    assert finished.data() == {
        "workspace_id": workspace.pk,
        "session_id": session.pk,
        "turn_id": sent.turn_id,
        "message_id": answer_row.pk,
        "status": "complete",
        "agent": "agent",
        "model": "one",
        "url": f"/sessions/{session.pk}/",
    }
    await node.send(session, ana, "Again")
    _message, failed = await receiver.takes(2)
    assert (failed.type, failed.data()["status"]) == ("turn.failed", "failed")
    await node.idle(session)
    error = next(row for row in await node.rows(session) if row.type == "error")
    assert failed.data()["message_id"] == error.pk
    await node.until(lambda: set(results()) == {("delivered", 204, "")})
    assert len({each.id for each in (created, message, finished, failed)}) == 4


async def test_a_stopped_turn_says_so(node: TestNode, ana: User, workspace: Workspace, receiver: Receiver) -> None:
    """HOOK-02: a stopped turn is reported as stopped, not as failed."""
    gate = Gate()
    node.script([["Once ", gate, "upon a time"]])
    await node.do(added, ana, workspace, receiver.url, "turn.finished", "turn.failed")
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await gate.reached()
    await node.cancel(session, ana)
    (finished,) = await receiver.takes()
    assert (finished.type, finished.data()["status"]) == ("turn.finished", "stopped")


async def test_a_turn_without_a_text_names_its_agent(
    node: TestNode, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-02: if another agent's turn is stopped before its first word, the event has this agent and its model."""
    gate = Gate()
    node.script([[gate, "Found."]], SEVERAL)
    await node.do(added, ana, workspace, receiver.url, "turn.finished")
    session = await several(node, ana)
    await node.send(session, ana, "@Researcher, look it up")
    await gate.reached()
    await node.cancel(session, ana)
    (finished,) = await receiver.takes()
    data = finished.data()
    assert [data[name] for name in ("status", "message_id", "agent", "model")] == ["stopped", None, "researcher", "two"]


async def test_event_is_sent_for_a_turn_that_waits_and_for_a_call_that_asks(
    node: TestNode, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-02: an event is sent for a turn that waits, and for a call that asks while it runs."""
    node.script([[ASK], ["Done."]], CONFIG)
    await node.do(added, ana, workspace, receiver.url, "agent.waiting")
    session = await node.session(ana)
    await node.send(session, ana, "Clean up")
    call = (await waiting(node, session))[0]
    (delivery,) = await receiver.takes()
    assert (delivery.type, delivery.data()["message_id"], delivery.data()["status"]) == (
        "agent.waiting",
        call.pk,
        "waiting",
    )
    other = await node.session(ana)
    node.script([[CALL], ["Done."]], tools=[booking()])
    await node.send(other, ana, "Book a table")
    asking = await asked(node, other)
    (delivery,) = await receiver.takes()
    assert (delivery.data()["session_id"], delivery.data()["message_id"]) == (other.pk, asking.pk)
    await answer(node, other, ana, asking, FOUR)
    await node.idle(other)
    assert receiver.is_empty


async def test_failures_are_repeated_by_the_clock(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-05: a repeated request has the same id and a new time and signature. Nothing is sent before its time."""
    _webhook, secret = await deliverers.threads.run(added, ana, workspace, receiver.url, "session.created")
    receiver.statuses.extend([500, 503])
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    (first,) = await receiver.takes()
    await deliverers.until(lambda: results() == [("pending", 500, "status")])
    deliverers.now += timedelta(seconds=6.1)
    await deliverers.threads.run(sessions, ana, workspace)  # the commit lets the deliverer check
    second, _other = sorted(await receiver.takes(2), key=lambda each: each.id)
    assert second.id == first.id
    assert int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
    assert second.is_signed_with(secret)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver, status: int
) -> None:
    """HOOK-04: a redirect is not followed, so requests go only to the address that an admin entered."""
    await deliverers.threads.run(added, ana, workspace, f"{receiver.url}/old", "session.created")
    receiver.statuses.append(status)
    receiver.headers = {"Location": f"{receiver.url}/new"}
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    await receiver.takes()
    await deliverers.until(lambda: results() == [("pending", status, "redirect")])
    assert receiver.is_empty


async def test_internal_addresses_are_not_connected_to(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver, settings: Settings
) -> None:
    """HOOK-04: an internal address is refused at the time of sending, even if it was allowed when the webhook was
    added, or is given as a name."""
    url = receiver.url.replace("http://", "https://")
    await deliverers.threads.run(added, ana, workspace, url, "session.created")
    settings.WEBHOOK_INTERNAL_HOSTS = ()
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    await deliverers.until(lambda: results() == [("pending", None, "refused")])
    named = url.replace("127.0.0.1", "localhost")
    await deliverers.threads.run(lambda: Webhook.objects.update(url=named))
    deliverers.now += timedelta(seconds=6.1)
    await deliverers.threads.run(sessions, ana, workspace)
    await deliverers.until(lambda: results() == [("pending", None, "refused")] * 2)
    assert receiver.is_empty


async def test_public_addresses_need_https_when_a_request_is_sent(
    deliverers: Deliverers, ana: User, workspace: Workspace, settings: Settings
) -> None:
    """HOOK-04: the operator may have allowed the host, and so plain HTTP, when the webhook was added."""
    settings.WEBHOOK_INTERNAL_HOSTS = ("8.8.8.8",)
    await deliverers.threads.run(added, ana, workspace, "http://8.8.8.8/hook", "session.created")
    settings.WEBHOOK_INTERNAL_HOSTS = ()
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    await deliverers.until(lambda: results() == [("pending", None, "refused")])


async def test_nothing_of_an_answer_is_read(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-04: the body of a response is not read, however large it is; its status counts."""
    await deliverers.threads.run(added, ana, workspace, receiver.url, "session.created")
    receiver.statuses.append(200)
    receiver.body = b"x" * 50_000_000
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    await receiver.takes()
    await deliverers.until(lambda: results() == [("delivered", 200, "")])


@pytest.fixture
def slow_paths(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of more receivers than there are places, which do not answer before the test says so."""
    monkeypatch.setattr(webhook_sending, "SECONDS", 60.0)
    monkeypatch.setattr(webhook_deliverer, "QUICK_SECONDS", 0.1)
    paths = [f"/slow{number}" for number in range(webhook_deliverer.AT_ONCE + 1)]
    receiver.held |= {path: Event() for path in paths}
    return paths


async def test_slow_receivers_delay_no_other(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver, slow_paths: list[str]
) -> None:
    """HOOK-05: while the requests to more slow receivers than there are places hang, others get theirs."""
    for path in (*slow_paths, "/quick"):
        await deliverers.threads.run(added, ana, workspace, f"{receiver.url}{path}", "session.created")
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace, 2)
    quick = WebhookDelivery.objects.filter(webhook__url__endswith="/quick", status="delivered")
    await deliverers.until(lambda: quick.count() == 2)
    await deliverers.until(lambda: all(receiver.open[path] for path in slow_paths))


async def test_new_receivers_do_not_delay_those_that_have_answered(
    deliverers: Deliverers,
    ana: User,
    workspace: Workspace,
    receiver: Receiver,
    slow_paths: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HOOK-05: requests to receivers that may be slow do not take the places of those that have answered quickly."""
    monkeypatch.setattr(webhook_deliverer, "QUICK_SECONDS", 3600.0)
    await deliverers.threads.run(added, ana, workspace, f"{receiver.url}/quick", "session.created")
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    quick = WebhookDelivery.objects.filter(webhook__url__endswith="/quick", status="delivered")
    await deliverers.until(lambda: quick.count() == 1)
    for path in slow_paths:
        await deliverers.threads.run(added, ana, workspace, f"{receiver.url}{path}", "session.created")
    await deliverers.threads.run(sessions, ana, workspace)
    await deliverers.until(lambda: sum(receiver.open.values()) >= webhook_deliverer.AT_ONCE)
    await deliverers.threads.run(sessions, ana, workspace)
    await deliverers.until(lambda: quick.count() == 3)
    assert sum(receiver.open.values()) == webhook_deliverer.AT_ONCE  # none of them has answered


async def test_slow_receivers_wait_for_each_other(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver, slow_paths: list[str]
) -> None:
    """HOOK-05: as many receivers as there are places for slow ones get their next requests, and the others follow."""
    for path in slow_paths:
        await deliverers.threads.run(added, ana, workspace, f"{receiver.url}{path}", "session.created")
    deliverer = deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace)
    await receiver.takes(len(slow_paths))
    await deliverers.until(lambda: len(deliverer._slow) == len(slow_paths))
    first, second = receiver.held, {path: Event() for path in slow_paths}
    receiver.held = second
    for event in first.values():
        event.set()
    await deliverers.until(lambda: results() == [("delivered", 204, "")] * len(slow_paths))
    await deliverers.threads.run(sessions, ana, workspace)
    await receiver.takes(webhook_deliverer.AT_ONCE)
    taken = WebhookDelivery.objects.filter(status="pending", attempts=1)
    assert await deliverers.threads.run(taken.count) == webhook_deliverer.AT_ONCE
    for event in second.values():
        event.set()
    await deliverers.until(lambda: results() == [("delivered", 204, "")] * 2 * len(slow_paths))


async def test_two_processes_send_each_delivery_once(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-05: two processes send each delivery once, with one request at a time for each webhook, in the order of the
    events."""
    await deliverers.threads.run(added, ana, workspace, f"{receiver.url}/one", "session.created")
    await deliverers.threads.run(added, ana, workspace, f"{receiver.url}/two", "session.created")
    deliverers.start()
    deliverers.start()
    await deliverers.threads.run(sessions, ana, workspace, 20)
    requests = await receiver.takes(40)
    await deliverers.until(lambda: results() == [("delivered", 204, "")] * 40)
    assert receiver.is_empty
    for path in ("/one", "/two"):
        ids = [each.id for each in requests if each.path == path]
        assert ids == sorted(set(ids))
        assert len(ids) == 20
    assert receiver.most_open == {"/one": 1, "/two": 1}


async def test_what_a_dead_process_has_left_is_found(
    deliverers: Deliverers, ana: User, workspace: Workspace, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOOK-02: the rows are the only queue, so another process's deliveries are found without a wake-up."""
    monkeypatch.setattr(webhook_deliverer, "LOOK_INTERVAL", 0.05)
    webhook, _secret = await deliverers.threads.run(added, ana, workspace, receiver.url, "session.created")
    await deliverers.threads.run(sessions, ana, workspace)

    def left() -> datetime:
        """Take the delivery like a process that ends before it sends anything."""
        assert delivering.take(webhook.pk, deliverers.now)
        Webhook.objects.update(busy_until=None)
        return WebhookDelivery.objects.get().next_at or deliverers.now

    deliverers.now = await deliverers.threads.run(left)
    deliverers.start()
    await receiver.takes()
    await deliverers.until(lambda: results() == [("delivered", 204, "")])
