"""Webhooks of workspaces: addresses that get the events of sessions, and the deliveries to them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.session import Session
from chat.models.user import User
from chat.models.workspace import Workspace


class WebhookEvent(models.TextChoices):
    """The events of webhooks. The values never change, because receivers rely on them (docs/webhooks.md)."""

    TURN_FINISHED = "turn.finished", _("An agent finished a turn")
    TURN_FAILED = "turn.failed", _("A turn failed")
    AGENT_WAITING = "agent.waiting", _("An agent is waiting for an answer")
    SESSION_CREATED = "session.created", _("A session was created")
    MESSAGE_SENT = "message.sent", _("A person sent a message")


# The event of "Send a test". No webhook chooses it.
TEST_EVENT = "webhook.test"


class Webhook(models.Model):
    """An address that gets a signed request for each of its `events` in a workspace.

    `secret` and `previous_secret` are encrypted; the previous one also signs until `previous_until`. `author` is the
    user who added the webhook or last changed it. With `include_text`, texts are sent only for sessions that this user
    may see. `off_reason` is the reason why Parley has turned it off. All deliveries since `failing_since` have failed.
    One process at a time delivers: `holder`, until `busy_until`. A removed webhook can be restored until it is purged.
    """

    class OffReason(models.TextChoices):
        NONE = "", ""
        GONE = "gone", _("The address answered 410 Gone.")
        FAILING = "failing", _("All deliveries failed for five days.")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="webhooks", verbose_name=_("workspace"))
    url = models.CharField(_("address"), max_length=2000)
    secret = models.TextField()
    previous_secret = models.TextField(blank=True, default="", db_default="")
    previous_until = models.DateTimeField(null=True, blank=True)
    events = models.JSONField(_("events"), default=list)
    include_text = models.BooleanField(_("include texts"), default=False)
    is_enabled = models.BooleanField(_("on"), default=True)
    off_reason = models.CharField(max_length=8, choices=OffReason.choices, blank=True, default="")
    failing_since = models.DateTimeField(null=True, blank=True)
    # No constraint here and on a delivery's session, because an older release without these tables erases users and
    # sessions, too.
    author = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    holder = models.CharField(max_length=32, blank=True, default="")
    busy_until = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class WebhookDelivery(models.Model):
    """One event for one webhook. Its id is the `webhook-id` by which receivers recognize a repeated request.

    `facts` are the values of the request besides the ids of workspace and session, without texts of users or models. It
    is due at `next_at`, which is null once it has been delivered or has failed permanently.
    """

    class Status(models.TextChoices):
        PENDING = "pending", _("Pending")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    class Problem(models.TextChoices):
        """The reason why the last attempt failed."""

        NONE = "", ""
        STATUS = "status", _("The address answered with an error.")
        REDIRECT = "redirect", _("The address redirects. Redirects aren’t followed.")
        TIMEOUT = "timeout", _("No answer within 10 seconds.")
        REFUSED = "refused", _("The address isn’t on the public internet.")
        CONNECTION = "connection", _("Couldn’t connect.")
        SECRET = "secret", _("The signing secret can’t be decrypted. Make a new one.")
        OFF = "off", _("The webhook was turned off.")

    id = models.CharField(primary_key=True, max_length=32, default=ids.delivery_id, editable=False)
    # No index: `delivery_by_webhook` begins with this column.
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=20)
    session = models.ForeignKey(Session, models.CASCADE, null=True, related_name="+", db_constraint=False)
    facts = models.JSONField(default=dict)
    happened_at = models.DateTimeField(default=timezone.now)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    answered = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    problem = models.CharField(max_length=10, choices=Problem.choices, blank=True, default="")

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        ordering = ("-pk",)
        indexes = (
            models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
            models.Index(fields=["next_at"], name="delivery_due", condition=Q(next_at__isnull=False)),
            models.Index(fields=["happened_at"], name="delivery_by_age"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(status="pending", next_at__isnull=False)
                | Q(status__in=["delivered", "failed"], next_at__isnull=True),
                name="delivery_due_iff_pending",
            ),
        )

    def __str__(self) -> str:
        return self.pk
