"""The webhooks of a workspace and their deliveries. Owners and admins of the workspace manage them."""

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
from chat.services.webhooks.managing import WebhookSettings

router = Router(tags=["Webhooks"])
PATH = "/workspaces/{workspace_id}/webhooks"
ONE = "/webhooks/{webhook_id}"
# The maximum number of deliveries in a list.
MAX_LISTED = 100
Event = Literal["turn.finished", "turn.failed", "agent.waiting", "session.created", "message.sent"]
Problem = Literal["", "status", "redirect", "timeout", "refused", "connection", "secret", "off"]
PROBLEM = (
    "The reason why the last attempt failed. `status`: the server returned an error status. `redirect`: it returned a "
    "redirect. `timeout`: it did not answer within 10 seconds. `refused`: the address is not on the public internet. "
    "`connection`: the connection could not be established. `secret`: the signing secret cannot be decrypted. `off`: "
    "the webhook was turned off. Empty if the last attempt has not failed."
)

URL = (
    "The address that receives the requests. It begins with `https://` and is on the public internet, unless the "
    "operator allows other hosts."
)
EVENTS = "The types of events that are sent to the address."
INCLUDE_TEXT = (
    "Whether the requests contain titles and texts. They do so only for sessions that the `author` of the webhook "
    "can see, and while this user may manage webhooks of the workspace."
)
IS_ENABLED = "Whether events are sent to the address."


class WebhookOut(Schema):
    """An address that receives a signed request for each of its events in a workspace."""

    id: int = Field(description="The id of the webhook.")
    workspace: int = Field(description="The id of the workspace.")
    url: str = Field(description="The address that receives the requests.")
    events: list[Event] = Field(description="The types of events that are sent to the address.")
    include_text: bool = Field(description=INCLUDE_TEXT)
    is_enabled: bool = Field(description="Whether events are sent to the address.")
    off_reason: Literal["", "gone", "failing"] = Field(
        description="The reason why Parley has turned the webhook off. `gone`: the address answered 410. `failing`: "
        "all deliveries failed for five days. Empty otherwise."
    )
    failing_since: datetime | None = Field(
        description="The time since which all deliveries have failed. Null if the last delivery succeeded."
    )
    author: int | None = Field(
        description="The id of the user who added the webhook or last changed it. Null if the account was deleted."
    )
    created_at: datetime = Field(description="The time at which the webhook was added.")


class WebhookMade(WebhookOut):
    """A webhook with its signing secret."""

    secret: str = Field(description="The signing secret. It is not returned again.")


class Webhooks(Schema):
    """The webhooks of a workspace."""

    webhooks: list[WebhookOut] = Field(description="The webhooks, oldest first.")


class NewWebhook(Body):
    """A webhook to add."""

    url: str = Field(max_length=2000, examples=["https://hooks.example.com/parley"], description=URL)
    events: list[Event] = Field(min_length=1, max_length=20, description=EVENTS)
    include_text: bool = Field(False, description=INCLUDE_TEXT)
    is_enabled: bool = Field(True, description=IS_ENABLED)


class WebhookChange(Body):
    """Changes of a webhook. Fields that are left out or null keep their values."""

    url: str | None = Field(None, max_length=2000, description=URL)
    events: list[Event] | None = Field(None, min_length=1, max_length=20, description=EVENTS)
    include_text: bool | None = Field(None, description=INCLUDE_TEXT)
    is_enabled: bool | None = Field(None, description=IS_ENABLED)


class DeliveryOut(Schema):
    """One event for one webhook."""

    id: str = Field(description="The id of the delivery, which the request has in its header `webhook-id`.")
    event: str = Field(description="The type of the event. `webhook.test` for a test.")
    session: str | None = Field(description="The id of the session in which the event happened. Null for a test.")
    happened_at: datetime = Field(description="The time of the event.")
    status: Literal["pending", "delivered", "failed"] = Field(
        description="`pending` while further attempts are due, `delivered`, or `failed` if there are no further "
        "attempts."
    )
    attempts: int = Field(description="The number of attempts so far.")
    next_at: datetime | None = Field(description="The time of the next attempt. Null if there is none.")
    answered: int | None = Field(
        description="The HTTP status that the address returned last. Null if it has not answered."
    )
    duration_ms: int | None = Field(
        description="The duration of the last request in milliseconds. Null if there was none."
    )
    problem: Problem = Field(description=PROBLEM)


class Deliveries(Schema):
    """The newest deliveries of a webhook."""

    deliveries: list[DeliveryOut] = Field(description="The deliveries, newest first. At most 100.")


@router.get(PATH, response=Webhooks, operation_id="listWebhooks", summary="List the webhooks of a workspace")
def list_webhooks(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """List the webhooks of a workspace, without their secrets.

    Only owners and admins of the workspace may use this operation and the other operations on webhooks.
    """
    rows = managing.webhooks_of(request.user, workspace_id)
    return json_response(request, {"webhooks": [_out(row) for row in rows]})


@router.post(PATH, response={201: WebhookMade}, operation_id="addWebhook", summary="Add a webhook")
def add_webhook(request: ApiRequest, workspace_id: int, body: NewWebhook) -> HttpResponse:
    """Add a webhook. The response contains its signing secret. A workspace can have at most 20 webhooks."""
    given = WebhookSettings(body.url, body.events, body.include_text, body.is_enabled)
    row, secret = managing.add(author=request.user, workspace_id=workspace_id, given=given)
    return json_response(request, _out(row) | {"secret": secret}, status=201, tagged=False)


@router.patch(ONE, response=WebhookOut, operation_id="changeWebhook", summary="Change a webhook")
def change_webhook(request: ApiRequest, webhook_id: int, body: WebhookChange) -> HttpResponse:
    """Change a webhook. It keeps its secret.

    Unless you change only `is_enabled`, you become its `author`, so that it sends only texts that you can see.
    """
    values = body.model_dump(exclude_none=True)
    if not values:
        raise Invalid(_("Choose what to change."))
    return json_response(request, _out(managing.amend(author=request.user, webhook_id=webhook_id, **values)))


@router.delete(ONE, response={204: None}, operation_id="removeWebhook", summary="Remove a webhook")
def remove_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """Remove a webhook. For 30 days, `restoreWebhook` restores it with its secret and its pending deliveries."""
    managing.remove(author=request.user, webhook_id=webhook_id)
    return no_content()


@router.post(f"{ONE}/restore", response=WebhookOut, operation_id="restoreWebhook", summary="Restore a removed webhook")
def restore_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """Restore a removed webhook. Deliveries that were pending when it was removed are sent."""
    return json_response(request, _out(managing.restore(author=request.user, webhook_id=webhook_id)))


@router.post(
    f"{ONE}/secret", response=WebhookMade, operation_id="renewWebhookSecret", summary="Replace the signing secret"
)
def renew_secret(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """Replace the signing secret. For 24 hours, requests are signed with both the new and the old secret."""
    row, secret = managing.renew_secret(author=request.user, webhook_id=webhook_id)
    return json_response(request, _out(row) | {"secret": secret}, tagged=False)


@router.post(f"{ONE}/test", response=DeliveryOut, operation_id="testWebhook", summary="Send a test request")
def test_webhook(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """Send a test request immediately, even if the webhook is off.

    The response contains the delivery with its result.
    """
    row = managing.managed_webhook(request.user, webhook_id)
    spend("webhook_requests", request.user.pk)
    return _send(request, delivering.take_test(row, timezone.now()))


@router.get(
    f"{ONE}/deliveries", response=Deliveries, operation_id="listDeliveries", summary="List the deliveries of a webhook"
)
def list_deliveries(request: ApiRequest, webhook_id: int) -> HttpResponse:
    """List the newest deliveries of a webhook. Deliveries are stored for 30 days."""
    row = managing.managed_webhook(request.user, webhook_id)
    return json_response(request, {"deliveries": [_delivery(each) for each in deliveries_of(row, MAX_LISTED)]})


@router.post(
    "/deliveries/{delivery_id}/again",
    response=DeliveryOut,
    operation_id="deliverAgain",
    summary="Send a delivery again",
)
def deliver_again(request: ApiRequest, delivery_id: str) -> HttpResponse:
    """Send a delivery again immediately, whatever its status. It keeps its id. The response contains its result."""
    found = managing.managed_delivery(request.user, delivery_id)
    spend("webhook_requests", request.user.pk)
    return _send(request, delivering.take_again(found, timezone.now()))


def _send(request: ApiRequest, taken: Taken) -> HttpResponse:
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
