"""Webhooks over the API: managed, tested and renewed with a token of an owner or admin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from chat.models import Membership, User, Webhook, Workspace
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, code
from tests.support.webhook_receiver import Receiver, receiving

pytestmark = pytest.mark.django_db


@pytest.fixture
def where(ana: User, workspace: Workspace) -> str:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.ADMIN)
    return f"/api/workspaces/{workspace.pk}/webhooks"


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_INTERNAL_HOSTS = ("127.0.0.1",)
    with receiving() as receiver:
        yield receiver


def test_a_program_manages_a_webhook(asker: Asker, where: str, receiver: Receiver) -> None:
    """HOOK-01: only the answers that create a secret contain it."""
    made = asker.post(where, {"url": receiver.url, "events": ["turn.failed"]})
    assert made.status_code == 201
    webhook, one = made.json(), f"/api/webhooks/{made.json()['id']}"
    first = webhook.pop("secret")
    assert asker.get(where).json() == {"webhooks": [webhook]}

    changed = asker.patch(one, {"events": ["session.created"], "is_enabled": False}).json()
    assert (changed["events"], changed["is_enabled"], changed["url"]) == (["session.created"], False, receiver.url)
    tested = asker.post(f"{one}/test").json()
    assert (tested["status"], tested["answered"], tested["session"]) == ("delivered", 204, None)
    renewed = asker.post(f"{one}/secret").json()["secret"]
    asker.post(f"{one}/test")
    before, after = receiver.take(), receiver.take()
    assert [before.is_signed_with(first), before.is_signed_with(renewed)] == [True, False]
    assert [after.is_signed_with(first), after.is_signed_with(renewed)] == [True, True]

    assert asker.delete(one).status_code == 204
    assert asker.get(where).json() == {"webhooks": []}
    assert code(asker.patch(one, {"is_enabled": True})) == (404, "no_such_webhook")
    assert asker.post(f"{one}/restore").json() == changed


def test_change_leaves_other_fields_as_they_are(
    asker: Asker, where: str, receiver: Receiver, settings: Settings
) -> None:
    """HOOK-01: a webhook can be turned off even if its address is no longer allowed, and keeps its author."""
    made = asker.post(where, {"url": receiver.url, "events": ["turn.failed"]}).json()
    Webhook.objects.update(author=None)
    settings.WEBHOOK_INTERNAL_HOSTS = ()
    changed = asker.patch(f"/api/webhooks/{made['id']}", {"is_enabled": False}).json()
    assert (changed["is_enabled"], changed["author"], changed["url"]) == (False, None, receiver.url)
    assert asker.patch(f"/api/webhooks/{made['id']}", {"events": ["turn.failed"]}).status_code == 422


def test_deliveries_are_listed_and_sent_again(
    asker: Asker, where: str, ana: User, workspace: Workspace, receiver: Receiver
) -> None:
    """HOOK-06: deliveries are listed with the result of the last attempt, and can be sent again."""
    made = asker.post(where, {"url": receiver.url, "events": ["session.created"]}).json()
    session = create_session(owner=ana, workspace=workspace)
    (listed,) = asker.get(f"/api/webhooks/{made['id']}/deliveries").json()["deliveries"]
    assert (listed["event"], listed["session"], listed["attempts"]) == ("session.created", session.pk, 0)
    receiver.statuses.append(500)
    again = asker.post(f"/api/deliveries/{listed['id']}/again").json()
    assert (again["id"], again["status"], again["problem"]) == (listed["id"], "pending", "status")
    assert (again["answered"], again["attempts"]) == (500, 1)
    assert code(asker.post("/api/deliveries/d_unknown/again")) == (404, "no_such_delivery")


@pytest.mark.parametrize(
    "body",
    [
        {"url": "https://10.0.0.1/", "events": ["turn.failed"]},
        {"url": "https://example.com/\0", "events": ["turn.failed"]},
        {"url": "https://example.com/", "events": []},
        {"url": "https://example.com/", "events": ["nothing"]},
        {"url": "https://example.com/", "events": "turn.failed"},
        {"url": "https://example.com/" + "x" * 5000, "events": ["turn.failed"]},
        {"url": 1, "events": ["turn.failed"]},
        {"url": "https://example.com/", "events": ["turn.failed"], "secret": "mine"},
    ],
)
def test_what_cannot_be_is_refused(asker: Asker, where: str, body: dict[str, object]) -> None:
    assert asker.post(where, body).status_code == 422
    assert not Webhook.objects.exists()


def test_members_manage_none(asker: Asker, where: str, ana: User, receiver: Receiver) -> None:
    made = asker.post(where, {"url": receiver.url, "events": ["turn.failed"]}).json()
    Membership.objects.filter(user=ana).update(role=Membership.Role.MEMBER)
    assert code(asker.get(where)) == (403, "forbidden")
    assert code(asker.delete(f"/api/webhooks/{made['id']}")) == (404, "no_such_webhook")
