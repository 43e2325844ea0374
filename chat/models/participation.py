"""What a session is to one person: their pin, how far they have read, what they were about to say."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.session import Session


class UserSessionState(models.Model):
    """One person's own view of one session; nobody else sees it.

    `read_revision` is the session's revision up to which they have seen its messages: a message with a later one is
    unread. `draft` is what stands in their composer, on every device.
    """

    session = models.ForeignKey(Session, models.CASCADE, related_name="participations")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="participations")
    pinned_at = models.DateTimeField(null=True, blank=True)
    read_revision = models.PositiveBigIntegerField(default=0)
    draft = models.TextField(blank=True)
    draft_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "chat_participation"
        constraints = (models.UniqueConstraint(fields=["user", "session"], name="participation_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.session_id}"
