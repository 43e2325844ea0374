"""The state of a session for one user: pin, read position and draft."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.session import Session


class UserSessionState(models.Model):
    """The private state of a session for one user.

    `read_revision` is the session's revision up to which the user has seen its messages. Messages with a later revision
    are unread. `mentioned_revision` is that of the last message that mentioned them (LIVE-07). `draft` is the text of
    their composer, on all of their devices.
    """

    session = models.ForeignKey(Session, models.CASCADE, related_name="participations")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="participations")
    pinned_at = models.DateTimeField(null=True, blank=True)
    read_revision = models.PositiveBigIntegerField(default=0)
    mentioned_revision = models.PositiveBigIntegerField(default=0, db_default=0)
    draft = models.TextField(blank=True)
    draft_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "chat_participation"
        constraints = (models.UniqueConstraint(fields=["user", "session"], name="participation_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.session_id}"
