"""Files that people give to a session."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat import ids
from chat.models.message import ChatMessage, MessageRole, MessageStatus, MessageType
from chat.models.session import Session


def place_of(attachment: Attachment, filename: str) -> str:
    """Say where a file is kept. Its own name stays in the row: what people call files is no path."""
    return f"attachments/{attachment.session_id}/{attachment.pk}"


def attached_to(message: ChatMessage) -> list[Attachment]:
    """A message's files in their order, once it is stored."""
    if not may_have_files(message) or message._state.adding:
        return []
    return list(message.attachments.all())


def may_have_files(message: ChatMessage) -> bool:
    """Whether a message is one that files go with: a user's, or an answer that was imported from another program.

    Answers given here have a provider and no files: telling so without a query matters where they are streamed.
    """
    if message.role == MessageRole.USER:
        return True
    is_answer = message.role == MessageRole.ASSISTANT and message.type == MessageType.TEXT
    return is_answer and not message.provider and message.status == MessageStatus.COMPLETE


class Attachment(models.Model):
    """A file: uploaded to a session, then sent with one message. Without a message it is still in a composer.

    `kind` and `media_type` are what its bytes are, not what its name says. `text` is what was extracted for models
    that do not take such a file; `size` is in bytes, `width` and `height` are an image's in pixels.
    """

    class Kind(models.TextChoices):
        IMAGE = "image"
        TEXT = "text"
        PDF = "pdf"

    id = models.CharField(primary_key=True, max_length=32, default=ids.attachment_id, editable=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="attachments")
    message = models.ForeignKey(ChatMessage, models.CASCADE, null=True, blank=True, related_name="attachments")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=5, choices=Kind.choices)
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    pages = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField(blank=True)
    position = models.PositiveSmallIntegerField(default=0)
    file = models.FileField(upload_to=place_of, max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("message", "position", "created_at")
        indexes = (models.Index(fields=["file"], name="attachment_by_file"),)
        constraints = (
            models.CheckConstraint(condition=models.Q(kind__in=["image", "text", "pdf"]), name="attachment_kind"),
        )

    def __str__(self) -> str:
        return self.name
