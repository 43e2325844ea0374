"""The page of a workspace's webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.models import Membership, User, Webhook, WebhookDelivery, Workspace
from chat.security.encryption import decrypt
from chat.services.sessions.lifecycle import create_session
from chat.services.webhooks.managing import version_of
from tests.support.webhook_receiver import Receiver, receiving

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(ana: User, workspace: Workspace) -> Client:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.ADMIN)
    client = Client()
    client.force_login(ana)
    return client


@pytest.fixture
def where(workspace: Workspace) -> str:
    return reverse("webhooks", args=[workspace.pk])


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_INTERNAL_HOSTS = ("127.0.0.1",)
    with receiving() as receiver:
        yield receiver


def form(url: str, **more: str | list[str]) -> dict[str, str | list[str]]:
    return {"part": "add", "url": url, "events": ["turn.finished", "session.created"], "is_enabled": "yes", **more}


def test_a_page_without_webhooks_says_what_one_is_and_leads_to_the_form(page: Client, where: str) -> None:
    """HOOK-01: the button goes to the first field of the form. Neither is shown once there is a webhook."""
    empty = page.get(where).content.decode()
    assert ("A webhook tells another service" in empty, 'href="#new-url"' in empty) == (True, True)
    assert 'id="new-url"' in empty
    page.post(where, form("https://example.com/hook"))
    assert "No webhooks yet" not in page.get(where).content.decode()


def test_a_webhook_is_added_tested_changed_and_removed(
    page: Client, where: str, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-01: only one answer has the secret, and it is not cached."""
    assert where in page.get(reverse("workspace-settings", args=[workspace.pk])).content.decode()
    made = page.post(where, form(receiver.url))
    webhook = Webhook.objects.get()
    secret = decrypt(webhook.secret)
    assert (made.status_code, secret in made.content.decode()) == (200, True)
    assert "no-store" in made.headers["Cache-Control"]
    assert secret not in page.get(where).content.decode()
    tested = page.post(where, {"part": "test", "webhook": webhook.pk}).content.decode()
    assert "the address answered 204" in tested
    request = receiver.take()
    assert (request.type, request.data()["session_id"]) == ("webhook.test", None)
    assert request.is_signed_with(secret)

    changed = form(receiver.url, part="change", webhook=str(webhook.pk), events=["turn.failed"], include_text="yes")
    del changed["is_enabled"]
    assert page.post(where, changed).status_code == 302
    webhook.refresh_from_db()
    assert (webhook.events, webhook.include_text, webhook.is_enabled) == (["turn.failed"], True, False)
    page.post(where, {"part": "on", "webhook": webhook.pk})
    webhook.refresh_from_db()
    assert webhook.is_enabled
    renewed = page.post(where, {"part": "secret", "webhook": webhook.pk}).content.decode()
    webhook.refresh_from_db()
    new = decrypt(webhook.secret)
    assert (new != secret, new in renewed, new in page.get(where).content.decode()) == (True, True, False)
    page.post(where, {"part": "remove", "webhook": webhook.pk})
    shown = page.get(where).content.decode()
    assert (receiver.url in shown, "Undo" in shown) == (False, True)
    page.post(where, {"part": "restore", "undo": webhook.pk})
    assert receiver.url in page.get(where).content.decode()


def test_failed_deliveries_are_shown_and_sent_again(
    page: Client, where: str, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-06: deliveries are shown with status, time and attempts, and a repeated one has the same id."""
    page.post(where, form(receiver.url))
    create_session(owner=ana, workspace=workspace)
    delivery = WebhookDelivery.objects.get()
    receiver.statuses.append(500)
    shown = page.post(where, {"part": "again", "delivery": delivery.pk}).content.decode()
    assert ("answered 500" in shown, "Pending" in shown, "1 attempt" in shown) == (True, True, True)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("pending", 1)
    shown = page.post(where, {"part": "again", "delivery": delivery.pk}).content.decode()
    assert ("answered 204" in shown, "2 attempts" in shown) == (True, True)
    shown = page.post(where, {"part": "again", "delivery": delivery.pk}).content.decode()
    assert "3 attempts" in shown
    assert {receiver.take().id for _ in range(3)} == {delivery.pk}


def test_a_test_that_fails_says_why_and_is_not_repeated(
    page: Client, where: str, receiver: Receiver, settings: Settings
) -> None:
    """HOOK-06: an internal address, and one without a server, give the reason immediately and are not retried."""
    page.post(where, form(receiver.url))
    webhook = Webhook.objects.get()
    Webhook.objects.update(url="http://127.0.0.1:9/")
    tested = page.post(where, {"part": "test", "webhook": webhook.pk}).content.decode()
    assert "Not delivered: Couldn’t connect." in tested
    settings.WEBHOOK_INTERNAL_HOSTS = ()
    tested = page.post(where, {"part": "test", "webhook": webhook.pk}).content.decode()
    assert "The address isn’t on the public internet." in tested
    assert set(WebhookDelivery.objects.values_list("status", "next_at")) == {("failed", None)}
    assert receiver.is_empty


@pytest.mark.parametrize(
    "values",
    [
        {"part": "add"},
        form("https://10.0.0.1/"),
        form("https://example.com/\0"),
        form("https://example.com/", events=["nothing"]),
        form("https://example.com/", events=[]),
        {"part": "change", "webhook": "0", "url": "https://example.com/", "events": "turn.failed"},
        {"part": "change", "webhook": "x" * 5000},
        {"part": "remove", "webhook": "9" * 40},
        {"part": "on"},
        {"part": "off", "webhook": "-1"},
        {"part": "restore", "undo": "1 2"},
        {"part": "secret", "webhook": "0"},
        {"part": "test", "webhook": ""},
        {"part": "again", "delivery": "\0"},
        {"part": "again", "delivery": "d_unknown"},
        {"part": "again", "delivery": "d" * 5000},
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    page: Client, where: str, values: dict[str, str | list[str]]
) -> None:
    refused = page.post(where, values)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.content.decode()


def test_a_refused_form_keeps_what_was_entered(page: Client, where: str, receiver: Receiver) -> None:
    page.post(where, form(receiver.url))
    webhook = Webhook.objects.get()
    refused = page.post(where, form("http://wrong.example/", part="change", webhook=str(webhook.pk))).content.decode()
    assert 'value="http://wrong.example/"' in refused
    webhook.refresh_from_db()
    assert webhook.url == receiver.url


def test_change_of_older_settings_is_refused_until_the_user_decides(
    page: Client, where: str, receiver: Receiver
) -> None:
    """The form of a second tab neither overwrites a newer change nor loses what was entered. A webhook that was turned
    off in the meantime is not turned on again unseen."""
    page.post(where, form(receiver.url))
    webhook = Webhook.objects.get()
    change = {"part": "change", "webhook": str(webhook.pk), "version": version_of(webhook)}
    page.post(where, {"part": "off", "webhook": str(webhook.pk)})
    refused = page.post(where, form(f"{receiver.url}/typed", **change)).content.decode()
    assert "The saved settings have changed since you opened this form." in refused
    assert f'value="{receiver.url}/typed"' in refused
    webhook.refresh_from_db()
    assert (webhook.url, webhook.is_enabled) == (receiver.url, False)
    assert f'name="replace" value="{version_of(webhook)}"' in refused
    page.post(where, form(f"{receiver.url}/typed", **change, replace=version_of(webhook)))
    webhook.refresh_from_db()
    assert (webhook.url, webhook.is_enabled) == (f"{receiver.url}/typed", True)


def test_entries_for_a_removed_webhook_move_to_the_form_of_a_new_one(
    page: Client, where: str, receiver: Receiver
) -> None:
    page.post(where, form(receiver.url))
    webhook = Webhook.objects.get()
    page.post(where, {"part": "remove", "webhook": str(webhook.pk)})
    refused = page.post(where, form("https://typed.example/", part="change", webhook=str(webhook.pk))).content.decode()
    assert "This webhook was removed in the meantime." in refused
    assert 'value="https://typed.example/"' in refused[refused.index('id="add"') :]
