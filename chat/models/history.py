"""Rows from which earlier settings of a session, and requests to models, can be reconstructed."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.session import Session


class SessionRevision(models.Model):
    """A change of a session's settings: who made it, when, and the values before.

    `revision` is the session's revision after the change.
    """

    class Kind(models.TextChoices):
        SYSTEM_PROMPT = "system_prompt"
        TITLE = "title"
        MODEL = "model"
        AGENT = "agent"
        REASONING = "reasoning"
        APPROVAL = "approval"

    session = models.ForeignKey(Session, models.CASCADE, related_name="revisions", db_index=False)
    kind = models.CharField(max_length=13, choices=Kind.choices)
    revision = models.PositiveBigIntegerField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # The values of the changed columns before the change, by column.
    before = models.JSONField()

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["session", "kind", "revision"], name="session_revision_by_kind"),)

    def __str__(self) -> str:
        return f"{self.kind} of {self.session_id}"


class ModelRequest(models.Model):
    """The request that produced one response of a model, as references to rows without their text.

    `rows` is a list of [message id, revision of the message at that time], in order. A request usually begins with the
    same rows as the session's previous request. `shared` is their number, and `rows` has only the others. Together with
    MessageRevision and SessionRevision this reconstructs the whole request.
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
