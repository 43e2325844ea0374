"""Push messages about sessions: their recipients and contents, and the cost of a failing push service (UI-22)."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import pytest_asyncio
from aiohttp.abc import ResolveResult
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from agents.errors import AgentError
from agents.events import Usage
from agents.messages import ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Reply
from agents.toolbox.public_addresses import Address
from agents.toolbox.web_client import Policy
from chat.models import (
    ChatMessage,
    Membership,
    PushSubscription,
    RunState,
    Session,
    SessionRun,
    User,
    UserSessionState,
)
from chat.runner import push_delivery, push_notices, push_notifier
from chat.runner.compactor import INSTRUCTIONS
from chat.runner.push_delivery import Result, deliver
from chat.runner.push_notices import EndedRun, Mentioned, example, pushes_about
from chat.runner.push_notifier import PushNotifier
from chat.services.people import members, sharing, workspace_rules
from chat.services.sessions import actions, lifecycle, user_state
from tests.running.test_waiting import ASK, CONFIG, answer, deploy_call, deploying, waiting
from tests.support.push_service import HOST, Browser, PushService, Resolver, browsers_of, subscribed
from tests.support.testing_node import TestNode, let_in, person

YES = {"approved": True, "scope": "once"}


def anywhere(_address: Address) -> bool:
    return True


@pytest_asyncio.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PushService]:
    """A push service that is called immediately, without the delays of the real notifier."""
    async with PushService() as service:
        monkeypatch.setattr(push_delivery, "POLICY", Policy(allows=anywhere, resolver=Resolver(service.port)))
        monkeypatch.setattr(push_delivery, "TLS", service.trusted)
        monkeypatch.setattr(push_delivery, "PAUSES", (0.0, 0.0))
        monkeypatch.setattr(push_notifier, "DELAY", 0.0)
        monkeypatch.setattr(push_notifier, "TOGETHER", 0.0)
        monkeypatch.setattr(push_notices, "LONG_TURN_SECONDS", 0.0)
        yield service


@asynccontextmanager
async def dripping(service: PushService) -> AsyncIterator[int]:
    """Run a second server with the service's certificate, which sends a header without end; yield its port."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 201 Created\r\nX: ")
            while True:
                writer.write(b"1")
                await writer.drain()
                await asyncio.sleep(0.05)  # the pace of the server, which the test measures

    async with await asyncio.start_server(drip, "127.0.0.1", ssl=service.context) as server:
        yield server.sockets[0].getsockname()[1]


async def ended(node: TestNode, session: Session) -> EndedRun:
    """Return the last run of a session at rest, with all turns of the session, as if one user had started them."""
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    rows = await node.rows(session)
    return EndedRun(session.pk, run.epoch, dict.fromkeys((row.turn_id for row in rows), run.started_by_id))


async def browsers_notified(node: TestNode, *sessions: Session) -> list[str]:
    """Return the browsers to which messages about these sessions would be sent now."""
    pushes = await node.do(pushes_about, [await ended(node, session) for session in sessions])
    return sorted(each.request.url.rsplit("/", 1)[1] for each in pushes)


async def test_approval_that_waits_reaches_who_may_give_it(
    node: TestNode, ana: User, bo: User, service: PushService
) -> None:
    """UI-22: the message is encrypted for each browser and signed.

    It has the title and the tool's name, without arguments.
    """
    node.script([[deploy_call("the secret server")], ["Done."]], CONFIG, [deploying([])])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    phone, desk = await node.do(subscribed, ana, "phone"), await node.do(subscribed, ana, "desk", language="zh-hans")
    await node.do(subscribed, bo, "viewer's")
    await node.send(session, ana, "Deploy")
    first, second = sorted(await service.takes(2), key=lambda taken: taken.path)
    assert (first.path, second.path) == ("desk", "phone")
    shown = {
        "title": "Talk",
        "body": "one wants to run deploy",
        "url": f"/sessions/{session.pk}/#waiting",
        "tag": session.pk,
    }
    assert second.read_by(phone) == shown
    assert "deploy" in first.read_by(desk)["body"]
    assert first.read_by(desk)["body"] != shown["body"]
    assert second.claims()["aud"] == f"https://{HOST}"
    assert (second.headers["TTL"], second.headers["Urgency"]) == ("86400", "high")
    assert first.headers["Topic"] == second.headers["Topic"]
    await node.until(lambda: not PushSubscription.objects.filter(user=ana, last_success_at=None).exists())
    assert await node.do(browsers_of, bo) == ["viewer's"]


async def test_approval_of_admins_reaches_admins_alone(
    node: TestNode, ana: User, bo: User, service: PushService
) -> None:
    """UI-22, UI-20: if a call needs an approval of admins, only admins and owners are notified, not other editors."""
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying([])])
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    for user, browser in ((ana, "ana's"), (bo, "bo's")):
        await node.do(subscribed, user, browser)
    await node.do(Membership.objects.filter(user=bo).update, role="admin")
    save = partial(workspace_rules.save, author=bo, workspace_id=session.workspace_id, verdict="ask")
    await node.do(partial(save, rule="deploy", approvers="admin"))
    await node.send(session, ana, "Deploy")
    await waiting(node, session)
    assert await browsers_notified(node, session) == ["bo's"]
    await node.do(Membership.objects.filter(user=ana).update, role="owner")
    assert await browsers_notified(node, session) == ["ana's", "bo's"]


async def test_questions_say_what_is_asked(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: a question has the same text as the page's own notification."""
    node.script([[ASK]], CONFIG)
    session = await node.session(ana)
    phone = await node.do(subscribed, ana, "phone")
    await node.send(session, ana, "Clean up")
    (taken,) = await service.takes(1)
    assert taken.read_by(phone)["body"] == "one asks: Delete the table?"


async def test_long_answers_reach_who_has_not_seen_them(
    node: TestNode, ana: User, bo: User, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-22: the owner and the user who asked are notified after long turns, unless they have read the answer.

    Others are not.
    """
    node.script([["Fine."], ["Fine."]], CONFIG)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    phone = await node.do(subscribed, ana, "ana's")
    await node.do(subscribed, bo, "bo's")
    await node.send(session, ana, "Think")
    (taken,) = await service.takes(1)
    shown = taken.read_by(phone)
    assert (shown["body"], shown["url"]) == ("The agent has finished.", f"/sessions/{session.pk}/")
    assert (taken.headers["TTL"], taken.headers["Urgency"]) == ("14400", "normal")
    await node.idle(session)
    await node.send(session, bo, "Think again")
    await service.takes(3)
    await node.idle(session)
    assert await browsers_notified(node, session) == ["ana's", "bo's"]
    now = await node.do(Session.objects.get, pk=session.pk)
    await node.do(user_state.mark_read, session=now, user=ana, revision=now.revision)
    assert await browsers_notified(node, session) == ["bo's"]
    monkeypatch.setattr(push_notices, "LONG_TURN_SECONDS", 20.0)
    assert await browsers_notified(node, session) == []


async def test_who_retries_a_turn_is_notified_of_its_end(
    node: TestNode, ana: User, bo: User, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-22, RUN-12: after a retry, the user who waits is the one who retried, and not the sender of the message."""
    taken: list[EndedRun | Mentioned] = []
    monkeypatch.setattr(PushNotifier, "_take", lambda _self, cause: taken.append(cause))
    node.script([[AgentError("It broke.")], ["Fine."]], CONFIG)
    session = await node.session(ana)
    cy = await node.do(person, "Cy", session.workspace)
    for user in (bo, cy):
        await node.do(let_in, session, user, "editor")
    for user, browser in ((ana, "owner's"), (bo, "sender's"), (cy, "retrying")):
        await node.do(subscribed, user, browser)
    message = await node.send(session, bo, "Think")
    await node.until(lambda: len(taken) == 1)
    await node.retry(session, cy, message.id)
    await node.until(lambda: len(taken) == 2)
    pushes = await node.do(pushes_about, taken[1:])
    assert sorted(each.request.url.rsplit("/", 1)[1] for each in pushes) == ["owner's", "retrying"]


async def test_a_summary_after_a_long_turn_does_not_hide_its_end(
    node: TestNode, ana: User, bo: User, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-22, CTX-07: users are notified of a long turn, once, also if the session compacts itself after it.

    These are the owner and the user who has started the long turn, not the summary.
    """

    def answer(request: Request) -> Reply:
        return ["Short."] if request.system == INSTRUCTIONS else ["Fine.", Usage(900, 3)]

    taken: list[EndedRun | Mentioned] = []
    monkeypatch.setattr(PushNotifier, "_take", lambda _self, cause: taken.append(cause))
    monkeypatch.setattr(push_notices, "LONG_TURN_SECONDS", 20.0)
    models = {"one": {"context_window": 1000}}
    config = {"providers": {"scripted": {"type": "demo", "models": models}}, "default_agent": "agent"}
    node.script(answer, {**config, "agents": {"agent": {"model": "scripted/one", "compact_at": 50}}})
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    await node.do(subscribed, ana, "phone")
    await node.do(subscribed, bo, "phone")
    message = await node.send(session, bo, "@agent Think")
    await node.until(lambda: bool(taken))
    assert await node.do(ChatMessage.objects.filter(session=session, summarises__isnull=False).exists)
    ends = ChatMessage.objects.filter(session=session, turn_id=message.turn_id, type="turn_done")
    assert await node.do(ends.update, duration_seconds=25.0) == 1
    assert len(await node.do(pushes_about, taken)) == 2


async def test_stopped_turns_are_not_told_and_failed_ones_say_so(
    node: TestNode, ana: User, service: PushService
) -> None:
    """UI-22: a stopped turn sends nothing, because the user who stopped it knows.
    A failed turn reports the failure.
    """
    node.script([[AgentError("It broke.")]], CONFIG)
    session = await node.session(ana)
    phone = await node.do(subscribed, ana, "phone")
    await node.send(session, ana, "Try")
    (taken,) = await service.takes(1)
    assert taken.read_by(phone)["body"] == "The agent couldn’t finish its answer."
    await node.idle(session)
    node.script([[deploy_call()]], CONFIG, [deploying([])])
    other = await node.session(ana)
    await node.send(other, ana, "Deploy")
    await waiting(node, other)
    await service.takes(2)
    await node.cancel(other, ana)
    await node.idle(other)
    assert await browsers_notified(node, other) == []


async def test_mentions_reach_who_has_not_read_them(node: TestNode, ana: User, bo: User, service: PushService) -> None:
    """LIVE-07, UI-22: mentioned users, including viewers, get the message's address without its text."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    await node.do(lifecycle.configure, session=session, author=ana, replies="mentions")
    phone = await node.do(subscribed, bo, "bo's")
    await node.do(subscribed, ana, "ana's")
    sent = await node.send(session, ana, "@Bo, the secret is out")
    (taken,) = await service.takes(1)
    assert taken.read_by(phone) == {
        "title": "Talk",
        "body": "Ana mentioned you.",
        "url": f"/sessions/{session.pk}/#{sent.id}",
        "tag": session.pk,
    }
    assert taken.headers["Urgency"] == "high"
    mention = Mentioned(session.pk, sent.id)
    assert len(await node.do(pushes_about, [mention])) == 1
    now = await node.do(Session.objects.get, pk=session.pk)
    await node.do(user_state.mark_read, session=now, user=bo, revision=now.revision)
    assert await node.do(pushes_about, [mention]) == []


async def test_mention_of_who_has_left_is_not_told(node: TestNode, ana: User, bo: User, service: PushService) -> None:
    """LIVE-07, LIVE-06: access is checked when the push message is sent."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    sent = await node.send(session, ana, "@Bo, look")
    await node.idle(session)
    await node.do(subscribed, bo, "bo's")
    mention = Mentioned(session.pk, sent.id)
    assert len(await node.do(pushes_about, [mention])) == 1
    await node.do(members.remove, author=bo, workspace_id=session.workspace_id, user_id=bo.pk)
    assert await node.do(pushes_about, [mention]) == []


async def test_mentions_of_one_moment_reach_each_of_their_people(
    node: TestNode, ana: User, bo: User, service: PushService
) -> None:
    """LIVE-07: two users who are mentioned in several messages of a session are each notified once."""
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    await node.do(lifecycle.configure, session=session, author=ana, replies="mentions")
    sent = [await node.send(session, ana, "@Bo, look"), await node.send(session, bo, "@Ana, where?")]
    sent.append(await node.send(session, ana, "@Bo, there"))
    await node.do(subscribed, ana, "ana's")
    await node.do(subscribed, bo, "bo's")
    pushes = await node.do(pushes_about, [Mentioned(session.pk, each.id) for each in sent])
    assert sorted(each.request.url.rsplit("/", 1)[1] for each in pushes) == ["ana's", "bo's"]


async def test_what_has_gone_on_is_not_told(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: nothing is sent for a question that was answered, or for a session that was deleted."""
    node.script([[ASK], [ASK], ["Done."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Clean up")
    (row,) = await waiting(node, session)
    await node.do(subscribed, ana, "phone")
    first = await ended(node, session)
    assert len(await node.do(pushes_about, [first])) == 1
    await answer(node, session, ana, row, {"confirmed": True})
    again = SessionRun.objects.filter(pk=session.pk, epoch__gt=first.epoch, state=RunState.WAITING)
    await node.until(again.exists)
    assert await node.do(pushes_about, [first]) == []
    assert await browsers_notified(node, session) == ["phone"]
    await node.do(Session.objects.filter(pk=session.pk).update, status=Session.Status.DELETED)
    assert await browsers_notified(node, session) == []


async def test_members_who_have_left_are_not_told(node: TestNode, ana: User, bo: User, service: PushService) -> None:
    """UI-22, LIVE-06: access of members is checked when the message is sent."""
    node.script([[ASK]], CONFIG)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    await node.send(session, ana, "Clean up")
    await waiting(node, session)
    await node.do(subscribed, bo, "bo's")
    assert await browsers_notified(node, session) == ["bo's"]
    await node.do(members.remove, author=bo, workspace_id=session.workspace_id, user_id=bo.pk)
    assert await browsers_notified(node, session) == []


@pytest.mark.parametrize("lost", ["unshared", "left", "closed"])
async def test_nothing_is_sent_after_a_session_is_no_longer_shared(
    node: TestNode, ana: User, bo: User, service: PushService, lost: str
) -> None:
    """UI-22, LIVE-06: a user who has lost a session gets no push message about its end, a question or a mention in it.

    The owner removes the share, the user leaves, or the owner closes the session to the workspace.
    """
    node.script([["Fine."], [ASK]], CONFIG)
    done, asking = [await node.session(ana) for _ in range(2)]
    for session in (done, asking):
        if lost == "closed":
            await node.do(partial(sharing.open_to_workspace, session=session, author=ana, role="editor"))
            await node.do(partial(UserSessionState.objects.get_or_create, session=session, user=bo))
        else:
            await node.do(partial(sharing.share, session=session, author=ana, user=bo, role="editor"))
    await node.send(done, bo, "Think")
    await node.idle(done)
    asked = await node.send(asking, ana, "@agent, @Bo, clean up")
    await waiting(node, asking)
    await node.do(subscribed, bo, "bo's")
    mention = Mentioned(asking.pk, asked.id)
    assert await browsers_notified(node, done, asking) == ["bo's", "bo's"]
    assert len(await node.do(pushes_about, [mention])) == 1
    for session in (done, asking):
        take: dict[str, Callable[[], object]] = {
            "unshared": partial(sharing.unshare, session=session, author=ana, user=bo),
            "left": partial(actions.leave, user=bo, session_id=session.pk),
            "closed": partial(sharing.open_to_workspace, session=session, author=ana, role=""),
        }
        await node.do(take[lost])
    assert await browsers_notified(node, done, asking) == []
    assert await node.do(pushes_about, [mention]) == []


async def test_failed_message_is_not_repeated_after_access_has_ended(
    node: TestNode, ana: User, bo: User, service: PushService
) -> None:
    """UI-22, LIVE-06: before a message is repeated, because the push service has failed, access is checked again."""
    node.script([[ASK]], CONFIG)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    for user, browser in ((ana, "ana's"), (bo, "bo's")):
        await node.do(subscribed, user, browser)
        service.answers[browser] = [503, 201]

    async def unshare(path: str) -> None:
        if path == "bo's":
            await node.do(partial(sharing.unshare, session=session, author=ana, user=bo))

    service.before_answer = unshare
    await node.send(session, ana, "Clean up")
    await node.until(PushSubscription.objects.filter(user=ana, last_success_at__isnull=False).exists)
    assert sorted(taken.path for taken in service.taken) == ["ana's", "ana's", "bo's"]


async def test_sessions_are_looked_at_together(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: the number of queries does not grow with the number of sessions."""
    node.script(lambda _request: ["Fine."], CONFIG)
    await node.do(subscribed, ana, "phone")
    sessions = [await node.session(ana) for _ in range(6)]
    for session in sessions:
        await node.send(session, ana, "Think")
        await node.idle(session)
    runs = [await ended(node, session) for session in sessions]

    def counted(some: list[EndedRun]) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert len(pushes_about(some)) == len(some)
        return len(queries)

    assert await node.do(counted, runs[:1]) == await node.do(counted, runs)


async def test_expired_subscriptions_are_removed(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: a subscription is removed if the service answers 410 or 404, because the browser has unsubscribed.

    A message that the service rejects for now is sent again: with 5xx, 429, or Microsoft's 406.
    """
    node.script([[ASK]], CONFIG)
    for path, status in (("gone", 410), ("lost", 404), ("busy", 503), ("edge", 406), ("refused", 403)):
        await node.do(subscribed, ana, path)
        service.answers[path] = [status]
    service.answers |= {"busy": [503, 429, 201], "edge": [406, 201]}
    session = await node.session(ana)
    await node.send(session, ana, "Clean up")
    await node.until(lambda: browsers_of(ana) == ["busy", "edge", "refused"])
    rows = await node.do(lambda: list(PushSubscription.objects.all()))
    failures = {row.endpoint.rsplit("/", 1)[1]: row.failures for row in rows}
    assert failures == {"busy": 0, "edge": 0, "refused": 1}
    assert Counter(taken.path for taken in service.taken) == {"busy": 3, "edge": 2, "gone": 1, "lost": 1, "refused": 1}


@pytest.mark.parametrize("host", ["10.0.0.1", "127.0.0.1", "169.254.169.254"])
async def test_addresses_inside_are_not_connected_to(
    node: TestNode, ana: User, service: PushService, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """UI-22: a name that resolves to an internal address at the time of sending is refused, even if it was valid at
    registration."""

    class Inside(Resolver):
        async def resolve(
            self, name: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            (found,) = await super().resolve(name, port)
            return [{**found, "host": host}]

    monkeypatch.setattr(push_delivery, "POLICY", Policy(resolver=Inside(service.port)))
    await node.do(subscribed, ana, "phone")
    pushes = [await node.do(lambda: example(PushSubscription.objects.select_related("user").get()))]
    assert await deliver(pushes) == [Result.FAILED]
    assert service.taken == []


async def test_redirects_are_not_followed(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: redirects are not followed, because their targets are not checked."""
    await node.do(subscribed, ana, "phone")
    service.answers["phone"] = [307]
    pushes = [await node.do(lambda: example(PushSubscription.objects.select_related("user").get()))]
    assert await deliver(pushes) == [Result.FAILED]
    assert len(service.taken) == 1


async def test_service_that_never_ends_its_answer_keeps_no_place(
    node: TestNode, ana: User, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-22: a service that never completes its response is given up, so that other users' messages are not delayed."""
    monkeypatch.setattr(push_delivery, "SECONDS", 0.5)
    await node.do(subscribed, ana, "phone")
    pushes = [await node.do(lambda: example(PushSubscription.objects.select_related("user").get()))]
    async with asyncio.timeout(20), dripping(service) as port:
        monkeypatch.setattr(push_delivery, "POLICY", Policy(allows=anywhere, resolver=Resolver(port)))
        assert await deliver(pushes) == [Result.FAILED]


async def test_without_a_key_nothing_is_sent(
    node: TestNode, ana: User, service: PushService, settings: Settings
) -> None:
    """UI-22: an installation without VAPID_PRIVATE_KEY works, but sends no push messages."""
    settings.VAPID_PRIVATE_KEY = ""
    node.script([[ASK]], CONFIG)
    session = await node.session(ana)
    await node.do(subscribed, ana, "phone")
    await node.send(session, ana, "Clean up")
    await waiting(node, session)
    assert service.taken == []


async def test_long_titles_fit(node: TestNode, ana: User, service: PushService) -> None:
    """UI-22: titles are shortened to fit, whatever characters they contain."""
    ask = ToolCall("c1", "confirmation", {"question": "\x01😀" * 400})
    node.script([[ask]], CONFIG)
    session = await node.session(ana)
    await node.do(Session.objects.filter(pk=session.pk).update, title="\x01😀" * 60)
    phone: Browser = await node.do(subscribed, ana, "phone")
    await node.send(session, ana, "Clean up")
    (taken,) = await service.takes(1)
    assert re.fullmatch("(\x01😀)+.?…?", taken.read_by(phone)["title"])
