"""Browsers that get push messages."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class PushSubscription(models.Model):
    """A browser in which a user has turned on notifications.

    `endpoint` is the address of the browser's push service for it, and `p256dh` and `auth` are the browser's keys.
    `digest` identifies the endpoint. The browser's login has it, too (`LoginSession.push`), and messages are sent only
    while there is such a login. `key` identifies the VAPID key with which the browser has subscribed. `language` is
    that of the page, for users who follow their browser. `failures` counts messages since the last one that the service
    accepted.
    """

    # No index: `push_subscription_once` begins with this column.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="push_subscriptions", db_index=False
    )
    digest = models.CharField(max_length=64)
    endpoint = models.CharField(max_length=2048)
    p256dh = models.CharField(max_length=100)
    auth = models.CharField(max_length=32)
    key = models.CharField(max_length=16)
    name = models.CharField(max_length=80)
    language = models.CharField(max_length=10, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    refreshed_at = models.DateTimeField(auto_now_add=True)
    last_success_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ("pk",)
        constraints = (models.UniqueConstraint(fields=["user", "digest"], name="push_subscription_once"),)

    def __str__(self) -> str:
        return f"push subscription {self.pk}"
