"""Add, change and remove the webhooks of a workspace, as its owner or admin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.access import workspace_where, workspaces_where
from chat.errors import Invalid, ServiceError
from chat.models import User, Webhook, WebhookDelivery, WebhookEvent, Workspace
from chat.permissions import Permission
from chat.queries.webhooks import webhooks_in
from chat.security.encryption import encrypt
from chat.security.webhook_signature import new_secret
from chat.services.people.outside_addresses import checked_address, host_of
from chat.services.people.security_log import Kind, record
from chat.services.webhooks import outbox
from chat.services.webhooks.delivering import cancel_pending

MAX_WEBHOOKS = 20
# How long the previous secret also signs, so that receivers can be changed without losing a request.
PREVIOUS_SIGNS = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The settings of a webhook from a form or a request."""

    url: str
    events: Sequence[str]
    include_text: bool = False
    is_enabled: bool = True


def webhooks_of(user: User, workspace_id: int) -> QuerySet[Webhook]:
    """Return the webhooks of a workspace that the user manages. Raise NoSuchWorkspace, Forbidden."""
    return webhooks_in(workspace_where(user, Permission.MANAGE_WEBHOOKS, workspace_id).pk)


def managed_webhook(user: User, webhook_id: int, *, removed: bool = False) -> Webhook:
    """Fetch a webhook of a workspace whose webhooks the user manages. Raise ServiceError."""
    managed = workspaces_where(user, Permission.MANAGE_WEBHOOKS)
    rows = Webhook.objects.filter(pk=webhook_id, workspace__in=managed, removed_at__isnull=not removed)
    if (webhook := rows.first()) is None:
        raise ServiceError("no_such_webhook", _("This webhook no longer exists."))
    return webhook


def managed_delivery(user: User, delivery_id: str) -> WebhookDelivery:
    """Fetch a delivery of a webhook that the user manages. Raise ServiceError."""
    managed = workspaces_where(user, Permission.MANAGE_WEBHOOKS)
    rows = WebhookDelivery.objects.filter(webhook__workspace__in=managed, webhook__removed_at=None)
    found = rows.select_related("webhook").filter(pk=delivery_id).first() if ids.may_be_one(delivery_id) else None
    if found is None:
        raise ServiceError("no_such_delivery", _("This delivery no longer exists."))
    return found


@transaction.atomic
def add(*, author: User, workspace_id: int, given: WebhookSettings) -> tuple[Webhook, str]:
    """Add a webhook; return it with its signing secret, which is never shown again. Raise ServiceError."""
    workspace = workspace_where(author, Permission.MANAGE_WEBHOOKS, workspace_id)
    _require_room(workspace.pk)
    secret = new_secret()
    webhook = Webhook(workspace=workspace, secret=encrypt(secret))
    _apply(webhook, author, given)
    webhook.save()
    _log(Kind.WEBHOOK_ADDED, author, webhook)
    return webhook, secret


@transaction.atomic
def change(*, author: User, webhook_id: int, given: WebhookSettings, seen: str = "") -> Webhook:
    """Change a webhook, which keeps its secret.

    `seen` is the `version_of` the webhook that the user has changed. Raise ServiceError, "stale" if the
    webhook has another version now.
    """
    webhook = _lock(author, webhook_id)
    if seen not in ("", version_of(webhook)):
        words = _("The saved settings have changed since you opened this form.")
        raise ServiceError("stale", words, version=version_of(webhook))
    return amend(author=author, webhook_id=webhook_id, **asdict(given))


def version_of(webhook: Webhook) -> str:
    """Return a text that differs for different settings."""
    return sha256(json.dumps(asdict(settings_of(webhook))).encode()).hexdigest()[:16]


def settings_of(webhook: Webhook) -> WebhookSettings:
    return WebhookSettings(webhook.url, webhook.events, webhook.include_text, webhook.is_enabled)


@transaction.atomic
def amend(*, author: User, webhook_id: int, **values: Any) -> Webhook:
    """Change some fields of `WebhookSettings`, and keep the others. Raise ServiceError."""
    if values.keys() == {"is_enabled"}:
        return switch(author=author, webhook_id=webhook_id, is_enabled=values["is_enabled"])
    webhook = _lock(author, webhook_id)
    _apply(webhook, author, replace(settings_of(webhook), **values))
    _save(webhook)
    _log(Kind.WEBHOOK_CHANGED, author, webhook)
    return webhook


@transaction.atomic
def switch(*, author: User, webhook_id: int, is_enabled: bool) -> Webhook:
    """Turn a webhook on or off. Turning it off cancels its pending deliveries."""
    webhook = _lock(author, webhook_id)
    _switch(webhook, is_enabled=is_enabled)
    _save(webhook)
    _log(Kind.WEBHOOK_CHANGED, author, webhook)
    return webhook


@transaction.atomic
def renew_secret(*, author: User, webhook_id: int) -> tuple[Webhook, str]:
    """Replace the signing secret. Return the new one, which is never shown again. The old one also signs for a day."""
    webhook = _lock(author, webhook_id)
    secret = new_secret()
    webhook.previous_secret, webhook.previous_until = webhook.secret, timezone.now() + PREVIOUS_SIGNS
    webhook.secret = encrypt(secret)
    webhook.save(update_fields=["secret", "previous_secret", "previous_until"])
    record(Kind.WEBHOOK_CHANGED, actor=author, target=webhook, host=host_of(webhook.url), renewed=1)
    return webhook, secret


@transaction.atomic
def remove(*, author: User, webhook_id: int) -> Webhook:
    """Remove a webhook, so that nothing is recorded for it or sent to it. It can be restored. Raise ServiceError."""
    webhook = _lock(author, webhook_id)
    webhook.removed_at = timezone.now()
    webhook.save(update_fields=["removed_at"])
    _log(Kind.WEBHOOK_REMOVED, author, webhook)
    return webhook


@transaction.atomic
def restore(*, author: User, webhook_id: int) -> Webhook:
    """Restore a removed webhook with its secret and its pending deliveries. Raise ServiceError."""
    webhook = _lock(author, webhook_id, removed=True)
    _require_room(webhook.workspace_id)
    webhook.removed_at = None
    webhook.save(update_fields=["removed_at"])
    _log(Kind.WEBHOOK_ADDED, author, webhook)
    outbox.wake_on_commit()
    return webhook


def _lock(author: User, webhook_id: int, *, removed: bool = False) -> Webhook:
    found = managed_webhook(author, webhook_id, removed=removed)
    return Webhook.objects.select_for_update().get(pk=found.pk)


def _require_room(workspace_id: int) -> None:
    # The lock makes two simultaneous requests count one after the other.
    Workspace.objects.select_for_update().get(pk=workspace_id)
    if webhooks_in(workspace_id).count() >= MAX_WEBHOOKS:
        raise Invalid(_("A workspace can have up to %(count)d webhooks.") % {"count": MAX_WEBHOOKS})


def _apply(webhook: Webhook, author: User, given: WebhookSettings) -> None:
    """Validate settings and set them on a webhook, without saving it. Raise Invalid."""
    internal = settings.WEBHOOK_INTERNAL_HOSTS
    url = checked_address(given.url, internal_hosts=internal, setting="WEBHOOK_INTERNAL_HOSTS")
    if url != webhook.url:
        webhook.url, webhook.failing_since = url, None
    if not set(given.events) <= set(WebhookEvent.values):
        raise Invalid(_("That’s not one of the options."))
    if not given.events:
        raise Invalid(_("Choose at least one event."))
    webhook.events = [event for event in WebhookEvent.values if event in given.events]
    webhook.include_text, webhook.author = given.include_text, author
    _switch(webhook, is_enabled=given.is_enabled)


def _switch(webhook: Webhook, *, is_enabled: bool) -> None:
    if is_enabled and not webhook.is_enabled:
        webhook.off_reason, webhook.failing_since = "", None
    if webhook.is_enabled and not is_enabled and webhook.pk:
        cancel_pending(webhook.pk)
    webhook.is_enabled = is_enabled


def _save(webhook: Webhook) -> None:
    webhook.save(update_fields=["url", "events", "include_text", "author", "is_enabled", "off_reason", "failing_since"])


def _log(kind: Kind, author: User, webhook: Webhook) -> None:
    record(
        kind,
        actor=author,
        target=webhook,
        host=host_of(webhook.url),
        enabled=int(webhook.is_enabled),
        texts=int(webhook.include_text),
    )
