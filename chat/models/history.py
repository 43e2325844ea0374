"""What a session was before somebody changed it, and what the model was sent: enough to build both again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.session import Session


class SessionRevision(models.Model):
    """What a session was before somebody changed it: who, when, what. `revision` is the one that the change made."""

    class Kind(models.TextChoices):
        SYSTEM_PROMPT = "system_prompt"
        TITLE = "title"
        MODEL = "model"
        AGENT = "agent"
        REASONING = "reasoning"

    session = models.ForeignKey(Session, models.CASCADE, related_name="revisions", db_index=False)
    kind = models.CharField(max_length=13, choices=Kind.choices)
    revision = models.PositiveBigIntegerField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # The columns that were changed, with what stood in them.
    before = models.JSONField()

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["session", "kind", "revision"], name="session_revision_by_kind"),)

    def __str__(self) -> str:
        return f"{self.kind} of {self.session_id}"


class ModelRequest(models.Model):
    """What one response was asked with: names of rows, never their text.

    `rows` are [message id, the row's revision then], in order; those that the session's request before this one
    begins with, too, are only counted (`shared`). With the revisions of messages and session that is all of it.
    """

    response_id = models.CharField(primary_key=True, max_length=32)
    session = models.ForeignKey(Session, models.CASCADE, related_name="requests", db_index=False)
    revision = models.PositiveBigIntegerField()
    agent = models.CharField(max_length=80, blank=True)
    provider = models.CharField(max_length=80, blank=True)
    model = models.CharField(max_length=200, blank=True)
    tools = models.JSONField(default=list)
    shared = models.PositiveIntegerField(default=0)
    rows = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created_at", "pk")
        indexes = (models.Index(fields=["session", "created_at"], name="request_by_session"),)

    def __str__(self) -> str:
        return self.response_id
