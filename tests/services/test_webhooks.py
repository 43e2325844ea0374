"""Webhooks of workspaces: who manages them, which events are recorded, and how deliveries end."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings as DjangoSettings

from chat import ids
from chat.errors import Forbidden, NoSuchWorkspace, ServiceError
from chat.models import (
    Membership,
    SecurityEvent,
    Session,
    Share,
    User,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    Workspace,
)
from chat.queries.webhooks import body_of
from chat.security.encryption import decrypt
from chat.security.webhook_signature import headers_for, new_secret
from chat.services.batches import Deadline
from chat.services.maintenance import jobs
from chat.services.messages.sending import send_message
from chat.services.messages.starting import begin_turn
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from chat.services.webhooks import delivering, managing
from chat.services.webhooks.delivering import Answer, Taken
from chat.services.webhooks.managing import WebhookSettings
from tests.support.testing_node import let_in, person
from tests.support.webhook_receiver import Request

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/parley"
ALL = tuple(WebhookEvent.values)
OK, BROKEN, GONE = Answer(204, "", 12), Answer(500, "status", 12), Answer(410, "status", 12)


@pytest.fixture
def owner(ana: User, workspace: Workspace) -> User:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.OWNER)
    return ana


def add(owner: User, workspace: Workspace, **given: Any) -> Webhook:
    values = WebhookSettings(**{"url": URL, "events": ALL, **given})
    return managing.add(author=owner, workspace_id=workspace.pk, given=values)[0]


def words(owner: User, workspace: Workspace, **given: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        add(owner, workspace, **given)
    return refused.value.message


def recorded() -> list[str]:
    return list(WebhookDelivery.objects.order_by("pk").values_list("event", flat=True))


def taken(webhook: Webhook, now: datetime) -> Taken:
    found = delivering.take(webhook.pk, now)
    assert found is not None
    return found


def data_of(found: Taken) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(found.body)["data"]
    return data


@pytest.mark.parametrize("role", [Membership.Role.OWNER, Membership.Role.ADMIN])
def test_owners_and_admins_manage_webhooks(ana: User, workspace: Workspace, role: str) -> None:
    """HOOK-01: the security log has the user and the host, but neither the address nor the secret."""
    Membership.objects.filter(user=ana, workspace=workspace).update(role=role)
    given = WebhookSettings(url=URL, events=[WebhookEvent.TURN_FAILED])
    webhook, secret = managing.add(author=ana, workspace_id=workspace.pk, given=given)
    assert (webhook.events, webhook.is_enabled, webhook.include_text) == (["turn.failed"], True, False)
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert (decrypt(webhook.secret), secret in webhook.secret) == (secret, False)
    managing.change(author=ana, webhook_id=webhook.pk, given=WebhookSettings(url=URL, events=ALL, include_text=True))
    webhook.refresh_from_db()
    assert (webhook.events, webhook.include_text, decrypt(webhook.secret)) == (list(ALL), True, secret)
    managing.remove(author=ana, webhook_id=webhook.pk)
    assert not managing.webhooks_of(ana, workspace.pk).exists()
    managing.restore(author=ana, webhook_id=webhook.pk)
    assert decrypt(managing.webhooks_of(ana, workspace.pk).get().secret) == secret
    events = SecurityEvent.objects.filter(object_type="webhook").order_by("pk")
    kinds = ["webhook_added", "webhook_changed", "webhook_removed", "webhook_added"]
    assert [each.kind for each in events] == kinds
    assert events[1].details == {"host": "hooks.example.com:443", "enabled": 1, "texts": 1}


def test_others_manage_no_webhooks(owner: User, bo: User, workspace: Workspace) -> None:
    """HOOK-01: members get "forbidden", and other users "not found"."""
    webhook = add(owner, workspace)
    delivery = WebhookDelivery.objects.create(webhook=webhook, event="webhook.test", next_at=timezone.now())
    stranger = person("Stranger")
    with pytest.raises(Forbidden):
        add(bo, workspace)
    with pytest.raises(NoSuchWorkspace):
        add(stranger, workspace)
    given = WebhookSettings(url=URL, events=ALL)
    for user in (bo, stranger):
        for attempt in (
            lambda user=user: managing.change(author=user, webhook_id=webhook.pk, given=given),
            lambda user=user: managing.switch(author=user, webhook_id=webhook.pk, is_enabled=False),
            lambda user=user: managing.remove(author=user, webhook_id=webhook.pk),
            lambda user=user: managing.restore(author=user, webhook_id=webhook.pk),
            lambda user=user: managing.managed_delivery(user, delivery.pk),
        ):
            with pytest.raises(ServiceError):
                attempt()
    assert SecurityEvent.objects.filter(object_type="webhook").count() == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://hooks.example.com/",
        "ftp://hooks.example.com/",
        "https://ana:secret@hooks.example.com/",
        "https://",
        "https://hooks.example.com:99999/",
        f"https://hooks.example.com/{'a' * 2000}",
        "https://hooks.example.com/\0",
        "https://hooks.example.com/\ud800",
        "https://127.0.0.1/",
        "https://127.0.0.1./",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7F000001/",
        "https://0177.0.0.1/",
        "https://010.0.0.1/",
        "https://192.168.08.1/",
        "https://010.8.8.8/",
        "https://08.8.8.8/",
        "https://256.1.1.1/",
        "https://[::ffff:010.0.0.1]/",
        "https://127.1/",
        "https://169.254.43518/latest",
        "https://[::1]/",
        "https://169.254.169.254/latest",
        "https://localhost/",
        "https://api.localhost/",
        "http://10.0.0.1/",
    ],
)
def test_addresses_that_no_request_may_go_to_are_refused(owner: User, workspace: Workspace, url: str) -> None:
    """HOOK-04: addresses that must not get requests are refused with a reason when they are entered."""
    assert words(owner, workspace, url=url)
    assert not Webhook.objects.exists()


def test_operator_allows_internal_hosts(owner: User, workspace: Workspace, settings: DjangoSettings) -> None:
    """HOOK-04: the operator can allow internal hosts, also without HTTPS. The refusal names the setting."""
    assert "WEBHOOK_INTERNAL_HOSTS" in words(owner, workspace, url="https://10.1.2.3/")
    settings.WEBHOOK_INTERNAL_HOSTS = ("10.1.2.3", "*.lan")
    assert add(owner, workspace, url="http://10.1.2.3:5678/hook").url == "http://10.1.2.3:5678/hook"
    assert add(owner, workspace, url="http://n8n.lan/hook")


def test_events_have_to_be_known_and_some(owner: User, workspace: Workspace) -> None:
    assert "at least one" in words(owner, workspace, events=[])
    assert "options" in words(owner, workspace, events=["turn.finished", "webhook.test"])


def test_a_workspace_has_a_limited_number_of_webhooks(
    owner: User, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managing, "MAX_WEBHOOKS", 2)
    first = add(owner, workspace)
    add(owner, workspace)
    assert "up to 2" in words(owner, workspace)
    managing.remove(author=owner, webhook_id=first.pk)
    add(owner, workspace)
    with pytest.raises(ServiceError):
        managing.restore(author=owner, webhook_id=first.pk)


def test_messages_and_sessions_are_recorded(owner: User, bo: User, workspace: Workspace) -> None:
    """HOOK-02: only the chosen events are recorded, for messages that start a turn in either way or are queued."""
    webhook = add(owner, workspace)
    add(owner, workspace, events=["turn.failed"])
    add(owner, workspace, is_enabled=False)
    managing.remove(author=owner, webhook_id=add(owner, workspace).pk)
    elsewhere = person("Eve")
    create_session(owner=elsewhere)
    session = create_session(owner=owner, workspace=workspace, title="Talk")
    let_in(session, bo, "editor")
    sent = send_message(session=session, author=bo, text="Hi")
    queued = send_message(session=session, author=owner, text="And")
    assert recorded() == ["session.created", "message.sent", "message.sent"]
    found = list(WebhookDelivery.objects.order_by("pk"))
    assert {each.webhook_id for each in found} == {webhook.pk}
    facts = [(each.facts["status"], each.facts.get("message_id"), each.facts.get("turn_id")) for each in found]
    assert facts == [("active", None, None), ("sent", sent.id, sent.turn_id), ("queued", queued.id, "")]
    copy = fork(session=session, author=owner, message_id=sent.id)
    assert recorded()[3:] == ["session.created"]
    assert WebhookDelivery.objects.latest("pk").session == copy


@pytest.mark.django_db(transaction=True)
def test_plain_messages_are_recorded(owner: User, workspace: Workspace) -> None:
    """HOOK-02: messages that begin a turn in the transaction with few statements are recorded too."""
    add(owner, workspace, events=["message.sent"])
    session = create_session(owner=owner, workspace=workspace, title="Talk")
    begun = begin_turn(author=owner, session_id=session.pk, text="Hi", key=None)
    assert begun is not None
    (delivery,) = WebhookDelivery.objects.all()
    assert (delivery.event, delivery.facts["message_id"]) == ("message.sent", begun.id)


@pytest.mark.both_databases
def test_order_does_not_depend_on_the_clocks_of_processes(
    owner: User, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOOK-05: an event comes after those before it, even if its process's clock is behind."""
    add(owner, workspace)
    session = create_session(owner=owner, workspace=workspace)
    behind = timezone.now() - timedelta(seconds=40)
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: int(behind.timestamp() * 10**9)))
    monkeypatch.setattr(timezone, "now", lambda: behind)
    send_message(session=session, author=owner, text="Later")
    assert recorded() == ["session.created", "message.sent"]
    first, second = WebhookDelivery.objects.order_by("pk")
    assert first.happened_at <= second.happened_at


def test_what_is_rolled_back_is_not_recorded(owner: User, workspace: Workspace) -> None:
    """HOOK-02: a delivery is stored in the transaction of its event."""
    add(owner, workspace)
    session = create_session(owner=owner, workspace=workspace, title="Talk")
    with transaction.atomic():
        send_message(session=session, author=owner, text="Hi")
        transaction.set_rollback(True)
    assert recorded() == ["session.created"]


def test_without_webhooks_nothing_is_asked(owner: User, workspace: Workspace) -> None:
    """HOOK-02: the statement that locks the session reads whether there are webhooks, so no further query is needed."""
    session = create_session(owner=owner, workspace=workspace, title="Talk")
    with CaptureQueriesContext(
        connection,
    ) as before:
        send_message(session=session, author=owner, text="Hi")
    own = [
        each["sql"] for each in before if each["sql"].split()[0] in ("SELECT", "INSERT") and "webhook" in each["sql"]
    ]
    assert len(own) == 1
    assert 'FROM "chat_session"' in own[0] or "FROM chat_session" in own[0]


def test_requests_hold_ids_and_facts(owner: User, workspace: Workspace, settings: DjangoSettings) -> None:
    """HOOK-03: requests have ids and facts, without texts of users or models."""
    settings.PUBLIC_URL = "https://parley.example.com"
    webhook = add(owner, workspace, events=["message.sent"])
    session = create_session(owner=owner, workspace=workspace, title="Secret plan", agent="demo")
    sent = send_message(session=session, author=owner, text="No one may know")
    found = taken(webhook, timezone.now())
    body = json.loads(found.body)
    assert body == {
        "type": "message.sent",
        "timestamp": body["timestamp"],
        "data": {
            "workspace_id": workspace.pk,
            "session_id": session.pk,
            "turn_id": sent.turn_id,
            "message_id": sent.id,
            "status": "sent",
            "agent": session.agent,
            "model": session.model,
            "url": f"https://parley.example.com/sessions/{session.pk}/",
        },
    }
    at = WebhookDelivery.objects.get().happened_at.astimezone(UTC)
    assert body["timestamp"] == f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def test_texts_are_those_that_the_author_may_read(owner: User, bo: User, workspace: Workspace) -> None:
    """HOOK-03: a webhook gets no more than its author may read: nothing removed, and nothing after they have left."""
    webhook = add(owner, workspace, events=["message.sent"], include_text=True)
    mine = create_session(owner=owner, workspace=workspace, title="Mine")
    theirs = create_session(owner=bo, workspace=workspace, title="Theirs")
    send_message(session=mine, author=owner, text="my words")
    send_message(session=theirs, author=bo, text="their words")
    at = timezone.now()

    def texts() -> list[tuple[str, str | None]]:
        rows = WebhookDelivery.objects.order_by("pk")
        every = [json.loads(body_of(row))["data"] for row in rows]
        return [(each.get("session_title", "-"), each.get("text", "-")) for each in every]

    assert texts() == [("Mine", "my words"), ("-", "-")]
    let_in(theirs, owner, "viewer")
    assert texts() == [("Mine", "my words"), ("Theirs", "their words")]
    Share.objects.all().delete()
    Session.objects.filter(pk=theirs.pk).update(workspace_role="viewer")
    assert texts()[1] == ("Theirs", "their words")
    mine.chat_messages.update(removed_at=at, sequence=None)
    assert texts()[0] == ("Mine", None)
    Membership.objects.filter(user=owner, workspace=workspace).update(role=Membership.Role.MEMBER)
    assert texts() == [("-", "-"), ("-", "-")]
    managing_admin = person("Ada", workspace)
    Membership.objects.filter(user=managing_admin).update(role=Membership.Role.ADMIN)
    given = WebhookSettings(url="https://other.example.com/", events=ALL, include_text=True)
    managing.change(author=managing_admin, webhook_id=webhook.pk, given=given)
    assert texts() == [("-", "-"), ("Theirs", "their words")]


def test_signatures_are_those_of_the_specification() -> None:
    """HOOK-03: signatures match the example of Standard Webhooks and an independent implementation."""
    body = b'{"test": 2432232314}'
    headers = headers_for(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    secret = new_secret()
    request = Request("/", headers_for([secret], "d_1", 1700000000, body), body)
    assert request.is_signed_with(secret)
    assert not request.is_signed_with(new_secret())
    assert not Request("/", request.headers, body + b" ").is_signed_with(secret)


def pending(owner: User, workspace: Workspace, count: int = 1) -> Webhook:
    """Return a webhook with deliveries that are due."""
    webhook = add(owner, workspace, events=["session.created"])
    for _ in range(count):
        create_session(owner=owner, workspace=workspace)
    return webhook


def test_failed_deliveries_are_repeated_six_times(owner: User, workspace: Workspace) -> None:
    """HOOK-05: a failed delivery is repeated after 5 s, 1 min, 5 min, 30 min, 2 h and 8 h, or up to 20 % later, under
    one id."""
    webhook, now = pending(owner, workspace), timezone.now()
    ids = set()
    for attempt, seconds in enumerate((5, 60, 300, 1800, 7200, 28_800), 1):
        found = taken(webhook, now)
        ids.add(found.id)
        assert delivering.finish(found, BROKEN, now)
        row = WebhookDelivery.objects.get()
        assert (row.status, row.attempts, row.answered, row.problem) == ("pending", attempt, 500, "status")
        wait = (row.next_at - now).total_seconds() if row.next_at else 0
        assert seconds <= wait <= 1.2 * seconds
        assert delivering.take(webhook.pk, now + timedelta(seconds=seconds - 1)) is None
        now += timedelta(seconds=1.2 * seconds)
    found = taken(webhook, now)
    delivering.finish(found, BROKEN, now)
    row = WebhookDelivery.objects.get()
    assert (row.status, row.attempts, row.next_at) == ("failed", 7, None)
    assert {found.id} == ids


def test_success_ends_a_delivery(owner: User, workspace: Workspace) -> None:
    """HOOK-05: a success ends a delivery and resets the record of the address's failures."""
    webhook, now = pending(owner, workspace), timezone.now()
    delivering.finish(taken(webhook, now), BROKEN, now)
    webhook.refresh_from_db()
    assert webhook.failing_since == now
    later = now + timedelta(seconds=7)
    delivering.finish(taken(webhook, later), OK, later)
    row = WebhookDelivery.objects.get()
    assert (row.status, row.attempts, row.answered, row.duration_ms, row.problem) == ("delivered", 2, 204, 12, "")
    webhook.refresh_from_db()
    assert webhook.failing_since is None
    assert delivering.due() == {}


def test_gone_turns_the_webhook_off(owner: User, workspace: Workspace) -> None:
    """HOOK-05: a 410 turns the webhook off. Waiting deliveries end with the reason, and can be sent again when it is
    on."""
    webhook, now = pending(owner, workspace, 2), timezone.now()
    delivering.finish(taken(webhook, now), GONE, now)
    webhook.refresh_from_db()
    assert (webhook.is_enabled, webhook.off_reason) == (False, "gone")
    assert list(WebhookDelivery.objects.order_by("pk").values_list("status", "problem")) == [
        ("failed", "status"),
        ("failed", "off"),
    ]
    create_session(owner=owner, workspace=workspace)
    assert len(recorded()) == 2
    managing.switch(author=owner, webhook_id=webhook.pk, is_enabled=True)
    webhook.refresh_from_db()
    assert (webhook.is_enabled, webhook.off_reason, webhook.failing_since) == (True, "", None)
    again = delivering.take_again(WebhookDelivery.objects.order_by("pk")[1], now)
    delivering.finish(again, OK, now)
    assert WebhookDelivery.objects.get(pk=again.id).status == "delivered"


def test_five_days_of_failures_turn_the_webhook_off(owner: User, workspace: Workspace) -> None:
    """HOOK-05: Parley shows why it turned the webhook off, also in the security log."""
    webhook, now = pending(owner, workspace, 3), timezone.now()
    delivering.finish(taken(webhook, now), BROKEN, now)
    soon = now + timedelta(days=4, hours=23)
    delivering.finish(taken(webhook, soon), BROKEN, soon)
    webhook.refresh_from_db()
    assert webhook.is_enabled
    late = now + timedelta(days=5)
    delivering.finish(taken(webhook, late), BROKEN, late)
    webhook.refresh_from_db()
    assert webhook.is_enabled  # the delivery is repeated
    WebhookDelivery.objects.update(attempts=6, next_at=late)
    delivering.finish(taken(webhook, late), BROKEN, late)
    webhook.refresh_from_db()
    assert (webhook.is_enabled, webhook.off_reason, webhook.failing_since) == (False, "failing", now)
    assert not WebhookDelivery.objects.filter(status="pending").exists()
    event = SecurityEvent.objects.filter(kind="webhook_changed").get()
    assert (event.actor, event.details["enabled"], event.details["reason"]) == (None, 0, "failing")


def test_new_address_has_no_failures_yet(owner: User, workspace: Workspace) -> None:
    """HOOK-05: the failures of an earlier address do not count for a new one."""
    webhook, now = pending(owner, workspace), timezone.now()
    delivering.finish(taken(webhook, now), BROKEN, now)
    for url, expected in ((webhook.url, now), ("https://other.example/hook", None)):
        managing.amend(author=owner, webhook_id=webhook.pk, url=url)
        webhook.refresh_from_db()
        assert webhook.failing_since == expected


def test_failures_of_tests_do_not_count(owner: User, workspace: Workspace) -> None:
    """HOOK-05: failures of test requests do not turn a webhook off.

    A successful test shows that the address works again.
    """
    webhook, now = add(owner, workspace), timezone.now()
    delivering.finish(delivering.take_test(webhook, now), BROKEN, now)
    webhook.refresh_from_db()
    assert webhook.failing_since is None
    Webhook.objects.update(failing_since=now - timedelta(days=6))
    delivering.finish(delivering.take_test(webhook, now), BROKEN, now)
    webhook.refresh_from_db()
    assert webhook.is_enabled
    delivering.finish(delivering.take_test(webhook, now), OK, now)
    webhook.refresh_from_db()
    assert webhook.failing_since is None


def test_one_process_delivers_to_a_webhook_at_a_time(owner: User, workspace: Workspace) -> None:
    """HOOK-05: one process delivers to a webhook, in order.

    Another one takes over when the lease of a dead process ends.
    """
    webhook, now = pending(owner, workspace, 2), timezone.now()
    first = taken(webhook, now)
    assert delivering.take(webhook.pk, now) is None
    Webhook.objects.update(busy_until=Now() - timedelta(seconds=1))  # its process died
    second = taken(webhook, now)
    assert second.id > first.id
    assert delivering.finish(second, OK, now)
    repeated = taken(webhook, now + delivering.LEASE)
    assert (repeated.id, repeated.attempt) == (first.id, 2)
    assert not delivering.finish(first, BROKEN, now)  # its process was alive, but too late
    assert delivering.finish(repeated, OK, now)
    assert set(WebhookDelivery.objects.values_list("status", "attempts")) == {("delivered", 1), ("delivered", 2)}


def test_removed_webhooks_get_nothing_until_they_are_restored(owner: User, workspace: Workspace) -> None:
    """HOOK-01: Undo restores the waiting deliveries."""
    webhook, now = pending(owner, workspace), timezone.now()
    managing.remove(author=owner, webhook_id=webhook.pk)
    assert (delivering.due(), delivering.take(webhook.pk, now)) == ({}, None)
    managing.restore(author=owner, webhook_id=webhook.pk)
    assert list(delivering.due()) == [webhook.pk]


def test_secrets_of_another_key_send_nothing(owner: User, workspace: Workspace, settings: DjangoSettings) -> None:
    """HOOK-03: if the secret cannot be decrypted with the present key, nothing is sent, because it would be
    unsigned."""
    webhook = pending(owner, workspace)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", []
    assert taken(webhook, timezone.now()).secrets == ()


def test_a_new_secret_signs_beside_the_old_one_for_a_day(owner: User, workspace: Workspace) -> None:
    """HOOK-03: requests are signed with both secrets for a day, so that receivers can change theirs.

    The security log records it.
    """
    webhook = pending(owner, workspace, 2)
    old, now = decrypt(webhook.secret), timezone.now()
    _, new = managing.renew_secret(author=owner, webhook_id=webhook.pk)
    first = taken(webhook, now)
    request = Request("/", headers_for(first.secrets, first.id, 1700000000, first.body), first.body)
    assert (request.is_signed_with(new), request.is_signed_with(old)) == (True, True)
    delivering.finish(first, OK, now)
    assert taken(webhook, now + managing.PREVIOUS_SIGNS + timedelta(seconds=1)).secrets == (new,)
    assert SecurityEvent.objects.filter(kind="webhook_changed", details__renewed=1).exists()


def test_a_new_secret_ends_one_that_cannot_be_decrypted(
    owner: User, workspace: Workspace, settings: DjangoSettings
) -> None:
    webhook = pending(owner, workspace)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", []
    _, new = managing.renew_secret(author=owner, webhook_id=webhook.pk)
    assert taken(webhook, timezone.now()).secrets == (new,)


def test_an_older_release_can_erase_sessions_and_users(owner: User, workspace: Workspace) -> None:
    """HOOK-02: an older release that does not know deliveries can erase sessions and users.

    The remaining rows do not name a session.
    """
    webhook = add(owner, workspace, events=["session.created"], include_text=True)
    gone = create_session(owner=owner, workspace=workspace, title="Gone")
    former = person("Former", workspace)
    Webhook.objects.update(author=former)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM chat_sessionrun WHERE session_id = %s", [gone.pk])
        cursor.execute("DELETE FROM chat_session WHERE id = %s", [gone.pk])
        cursor.execute("DELETE FROM chat_membership WHERE user_id = %s", [former.pk])
        cursor.execute("DELETE FROM chat_user WHERE id = %s", [former.pk])
    connection.check_constraints()
    data = data_of(taken(webhook, timezone.now()))
    assert (data["session_id"], data["url"], "text" in data) == (None, None, False)
    managing.change(author=owner, webhook_id=webhook.pk, given=WebhookSettings(url=URL, events=ALL))


def test_old_deliveries_and_removed_webhooks_are_deleted(owner: User, workspace: Workspace) -> None:
    """HOOK-06: the daily maintenance deletes deliveries and removed webhooks after thirty days."""
    old = timezone.now() - timedelta(days=31)
    webhook, other = pending(owner, workspace, 2), add(owner, workspace)
    first = WebhookDelivery.objects.earliest("pk")
    WebhookDelivery.objects.filter(pk=first.pk).update(happened_at=old)
    Webhook.objects.filter(pk=other.pk).update(removed_at=old)
    jobs.delete_expired(Deadline())
    assert WebhookDelivery.objects.count() == 1
    assert list(Webhook.objects.all()) == [webhook]
