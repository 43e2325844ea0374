"""Read webhooks and their deliveries, and build the body of a request."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse

from chat import access
from chat.models import ChatMessage, Session, Webhook, WebhookDelivery
from chat.permissions import Permission

# An SQL condition: the workspace of a row of chat_session, called {session}, has webhooks that are on.
HAS_WEBHOOKS = (
    "EXISTS (SELECT 1 FROM chat_webhook WHERE workspace_id = {session}.workspace_id"
    " AND is_enabled AND removed_at IS NULL)"
)
# The most characters of a text in a request.
MAX_TEXT_LENGTH = 20_000
# The values of a request's `data` that not every event has.
_UNKNOWN = {"turn_id": None, "message_id": None, "status": None, "agent": None, "model": None}


def webhooks_in(workspace_id: int) -> QuerySet[Webhook]:
    """Return the webhooks of a workspace without removed ones."""
    return Webhook.objects.filter(workspace=workspace_id, removed_at=None).order_by("pk")


def live_webhooks() -> QuerySet[Webhook]:
    """Return the webhooks that get deliveries: those that are on, and not removed. HAS_WEBHOOKS is the same in SQL."""
    return Webhook.objects.filter(is_enabled=True, removed_at=None)


def deliveries_of(webhook: Webhook, most: int) -> list[WebhookDelivery]:
    """Return the last deliveries of a webhook, the newest first."""
    return list(webhook.deliveries.order_by("-pk")[:most])


def body_of(delivery: WebhookDelivery) -> bytes:
    """Return the body of the request for a delivery, with the present texts if the webhook includes texts.

    Texts are included only if the webhook's author may read them, so that no one gets more of a session than they may
    see.
    """
    webhook, session = delivery.webhook, delivery.session
    data: dict[str, Any] = {"workspace_id": webhook.workspace_id, "session_id": None, **_UNKNOWN, **delivery.facts}
    data["url"] = None
    if session is not None:
        data |= {"session_id": session.pk, "url": f"{settings.PUBLIC_URL}{reverse('session', args=[session.pk])}"}
        if webhook.include_text and _is_read_by_author(webhook, session):
            data |= {"session_title": session.title, "text": _text(session, data["message_id"])}
    at = delivery.happened_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"type": delivery.event, "timestamp": at, "data": data}, ensure_ascii=False).encode()


def _is_read_by_author(webhook: Webhook, session: Session) -> bool:
    """Return whether the author still manages the workspace's webhooks, and may see the session."""
    author = webhook.author
    if author is None or not access.may(author, Permission.MANAGE_WEBHOOKS, webhook.workspace_id):
        return False
    pair = (author.pk, session.pk)
    return pair in access.roles([pair])


def _text(session: Session, message_id: str | None) -> str | None:
    row = ChatMessage.objects.filter(session=session, pk=message_id, removed_at=None).first() if message_id else None
    return row.text[:MAX_TEXT_LENGTH] if row is not None else None
