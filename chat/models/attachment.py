"""Files that users upload to a session."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

from chat import ids
from chat.models.message import ChatMessage, MessageRole, MessageStatus, MessageType
from chat.models.session import Session
from chat.models.workspace_id import WorkspaceIdField


def place_of(attachment: Attachment, filename: str) -> str:
    """Return the path of a file in the storage. The user's name for the file is only in the row, never in the path.

    Two processes can store the same upload at the same time, with the same id, so each uses a different path.
    """
    return f"attachments/{attachment.session_id}/{attachment.pk}-{secrets.token_hex(4)}"


def attached_to(message: ChatMessage) -> list[Attachment]:
    """Return the files of a message, in order; none if the message is not saved yet."""
    if not may_have_files(message) or message._state.adding:
        return []
    return list(message.attachments.all())


def without_files(message: ChatMessage) -> ChatMessage:
    """Return a new message that has no files, so that no query looks for them."""
    cache_files(message, [])
    return message


def cache_files(message: ChatMessage, files: list[Attachment]) -> None:
    """Let `attached_to` return these files without a query."""
    message._prefetched_objects_cache = {"attachments": files}  # type: ignore[attr-defined]  # left out of the stubs


def has_cached_files(message: ChatMessage) -> bool:
    """Return whether `attached_to` needs no query."""
    return "attachments" in getattr(message, "_prefetched_objects_cache", {})


def may_have_files(message: ChatMessage) -> bool:
    """Return whether a message can have files, without a query: a user's message, or an imported answer.

    Answers that were generated here have a provider and no files. Streaming must not query for them.
    """
    if message.role == MessageRole.USER:
        return True
    is_answer = message.role == MessageRole.ASSISTANT and message.type == MessageType.TEXT
    return is_answer and not message.provider and message.status == MessageStatus.COMPLETE


class Attachment(models.Model):
    """A file in a session: uploaded, then sent with one message. `message` is null until it is sent.

    `kind` and `media_type` are detected from the content, not from the name. `text` is the extracted text, for models
    that do not accept such files. `size` is in bytes; `width` and `height` of images are in pixels. Forks share `file`.
    """

    class Kind(models.TextChoices):
        IMAGE = "image"
        TEXT = "text"
        PDF = "pdf"

    id = models.CharField(primary_key=True, max_length=32, default=ids.attachment_id, editable=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="attachments")
    workspace_id = WorkspaceIdField()
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
