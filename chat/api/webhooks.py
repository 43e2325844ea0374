"""The webhooks of a workspace, and what came of their deliveries. Its owners and admins manage them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from ninja import Router, Schema
from pydantic import Field

from agents.messages import Json
from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import iso, json_response, no_content
from chat.errors import Invalid
from chat.limits.rates import spend
from chat.models import Webhook, WebhookDelivery
from chat.queries.webhooks import deliveries_of
from chat.runner.webhook_sending import send_now
from chat.services.webhooks import delivering, managing
from chat.services.webhooks.delivering import Taken
from chat.services.webhooks.managing import Given

router = Router(tags=["Webhooks"])
PATH = "/workspaces/{workspace_id}/webhooks"
ONE = "/webhooks/{webhook_id}"
# Deliveries that a list has at most.
MOST_LISTED = 100
Event = Literal["turn.finished", "turn.failed", "agent.waiting", "session.created", "message.sent"]
Problem = Literal["", "status", "redirect", "timeout", "refused", "connection", "secret", "off"]
PROBLEM = (
    "Why the last attempt failed. `status`: the address answered with an error; `redirect`: it redirects; `timeout`: "
    "no answer within 10 seconds; `refused`: it is not on the public internet; `connection`: no connection; `secret`: "
    "the signing secret cannot be decrypted; `off`: the webhook was turned off. Empty: it has not failed"
)

URL = "An address on the public internet with https://; other hosts are the operator's to allow"
EVENTS = "Which events are sent"
INCLUDE_TEXT = "Whether requests have titles and texts of sessions that `author` can see"
IS_ENABLED = "Whether events are sent"


class WebhookOut(Schema):
    """An address that gets a signed request for each of its events in a workspace."""

    id: int
    workspace: int
    url: str
    events: list[Event]
    include_text: bool = Field(description=INCLUDE_TEXT)
    is_enabled: bool
    off_reason: Literal["", "gone", "failing"] = Field(
        description="Why Parley has turned it off: the address answered 410, or all deliveries failed for five days"
    )
    failing_since: datetime | None = Field(description="All deliveries since have failed; null: the last one did not")
    author: int | None = Field(description="The id of the user who last changed it; null: they were deleted")
    created_at: datetime


class WebhookMade(WebhookOut):
    secret: str = Field(description="The signing secret, which is never shown again")


class Webhooks(Schema):
    """The oldest first."""

    webhooks: list[WebhookOut]


class NewWebhook(Body):
    url: str = Field(max_length=2000, examples=["https://hooks.example.com/parley"], description=URL)
    events: list[Event] = Field(min_length=1, max_length=20, description=EVENTS)
    include_text: bool = Field(False, description=INCLUDE_TEXT)
    is_enabled: bool = Field(True, description=IS_ENABLED)


class WebhookChange(Body):
    """Fields that are left out or null keep their values."""

    url: str | None = Field(None, max_length=2000, description=URL)
    events: list[Event] | None = Field(None, min_length=1, max_length=20, description=EVENTS)
    include_text: bool | None = Field(None, description=INCLUDE_TEXT)
    is_enabled: bool | None = Field(None, description=IS_ENABLED)


class DeliveryOut(Schema):
    """One event for one webhook; its id is the `webhook-id` of the request."""

    id: str
    event: str
    session: str | None
    happened_at: datetime
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    next_at: datetime | None = Field(description="When the next attempt is due; null: there is none")
    answered: int | None = Field(description="The status of the last answer; null without one")
    duration_ms: int | None = Field(description="How long the last request took")
    problem: Problem = Field(description=PROBLEM)


class Deliveries(Schema):
    """The newest first, at most 100."""

    deliveries: list[DeliveryOut]


@router.get(PATH, response=Webhooks, operation_id="listWebhooks", summary="List the webhooks of a workspace")
def list_webhooks(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Without their secrets. As all operations here, for owners and admins of the workspace only."""
    rows = managing.webhooks_of(request.user, workspace_id)
    return json_response(request, {"webhooks": [_out(row) for row in rows]})


@router.post(PATH, response={201: WebhookMade}, operation_id="addWebhook", summary="Add a webhook")
def add_webhook(request: ApiRequest, workspace_id: int, body: NewWebhook) -> HttpResponse:
    """The response has its signing secret. A workspace has at most 20 webhooks."""
    given = Given(body.url, body.events, body.include_text, body.is_enabled)
    row, secret = managing.add(author=request.user, workspace_id=workspace_id, given=given)
    return json_response(request, _out(row) | {"secret": secret}, status=201, tagged=False)


@router.patch(ONE, response=WebhookOut, operation_id="changeWebhook", summary="Change a webhook")
def change_webhook(request: ApiRequest, webhook_id: int, body: WebhookChange) -> HttpResponse:
    """It keeps its secret. Texts that it sends are those that you see from now on, unless only `is_enabled` changes."""
    values = body.model_dump(exclude_none=True)
    if not values:
        raise Invalid(_("Choose what to change."))
    return json_response(request, _out(managing.amend(author=request.user, webhook_id=webhook_id, **values)))


@router.delete(ONE, response={204: None}, operation_id="removeWebhook", summary="Remove a webhook")
def remove_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """`restore` brings it back, with its secret and what waited, for 30 days."""
    managing.remove(author=request.user, webhook_id=webhook_id)
    return no_content()


@router.post(f"{ONE}/restore", response=WebhookOut, operation_id="restoreWebhook", summary="Restore a removed webhook")
def restore_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """What waited when it was removed is delivered."""
    return json_response(request, _out(managing.restore(author=request.user, webhook_id=webhook_id)))


@router.post(f"{ONE}/secret", response=WebhookMade, operation_id="renewWebhookSecret", summary="Make a new secret")
def renew_secret(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """For 24 hours requests have two signatures, one with the old secret."""
    row, secret = managing.renew_secret(author=request.user, webhook_id=webhook_id)
    return json_response(request, _out(row) | {"secret": secret}, tagged=False)


@router.post(f"{ONE}/test", response=DeliveryOut, operation_id="testWebhook", summary="Send a test")
def test_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """Send a request now, also while the webhook is off, and return what came of it."""
    row = managing.managed_webhook(request.user, webhook_id)
    spend("webhook_requests", request.user.pk)
    return _sent(request, delivering.take_test(row, timezone.now()))


@router.get(
    f"{ONE}/deliveries", response=Deliveries, operation_id="listDeliveries", summary="List the deliveries of a webhook"
)
def list_deliveries(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """They are kept for 30 days."""
    row = managing.managed_webhook(request.user, webhook_id)
    return json_response(request, {"deliveries": [_delivery(each) for each in deliveries_of(row, MOST_LISTED)]})


@router.post(
    "/deliveries/{delivery_id}/again", response=DeliveryOut, operation_id="deliverAgain", summary="Deliver again"
)
def deliver_again(request: ApiRequest, delivery_id: str) -> HttpResponse:
    """Send a delivery now, whatever came of it before, and return what comes of it. It keeps its id."""
    found = managing.managed_delivery(request.user, delivery_id)
    spend("webhook_requests", request.user.pk)
    return _sent(request, delivering.take_again(found, timezone.now()))


def _sent(request: ApiRequest, taken: Taken) -> HttpResponse:
    send_now(taken)
    return json_response(request, _delivery(WebhookDelivery.objects.get(pk=taken.id)), tagged=False)


def _out(row: Webhook) -> Json:
    return {
        "id": row.pk,
        "workspace": row.workspace_id,
        "url": row.url,
        "events": row.events,
        "include_text": row.include_text,
        "is_enabled": row.is_enabled,
        "off_reason": row.off_reason,
        "failing_since": iso(row.failing_since),
        "author": row.author_id,
        "created_at": iso(row.created_at),
    }


def _delivery(row: WebhookDelivery) -> Json:
    found: dict[str, Any] = {name: getattr(row, name) for name in DeliveryOut.model_fields if name != "session"}
    times = {"happened_at": iso(row.happened_at), "next_at": iso(row.next_at)}
    return {**found, **times, "session": row.session_id}
