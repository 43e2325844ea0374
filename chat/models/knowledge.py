"""The knowledge of a workspace: files that agents can search and read in sessions that use them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.workspace import Workspace


def knowledge_place(file: KnowledgeFile, filename: str) -> str:
    """Return the path of a file in the storage. The user's name for the file is only in the row."""
    return f"knowledge/{file.pk}"


class KnowledgeFile(models.Model):
    """A file of a workspace. Its text is in `passages`; `is_cut` is True if the text was longer than what is kept.

    `size` is in bytes, and `characters` is the length of the text. Removed files can be restored until they are purged.
    """

    class Kind(models.TextChoices):
        PDF = "pdf"
        HTML = "html"
        TEXT = "text"

    id = models.CharField(primary_key=True, max_length=32, default=ids.knowledge_id, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="knowledge")
    name = models.CharField(_("name"), max_length=255)
    kind = models.CharField(max_length=5, choices=Kind.choices)
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    pages = models.PositiveIntegerField(null=True, blank=True)
    characters = models.PositiveIntegerField()
    passage_count = models.PositiveIntegerField()
    is_cut = models.BooleanField(default=False, db_default=False)
    file = models.FileField(upload_to=knowledge_place, max_length=255)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("knowledge file")
        verbose_name_plural = _("knowledge files")
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(condition=models.Q(kind__in=["pdf", "html", "text"]), name="knowledge_kind"),
            models.UniqueConstraint(
                fields=["workspace", "name"], condition=models.Q(removed_at__isnull=True), name="knowledge_name_once"
            ),
        )

    def __str__(self) -> str:
        return self.name


class KnowledgePassage(models.Model):
    """A piece of a file's text. `number` counts from 1; `page` is the page of a PDF file.

    `words` is the text as the database indexes it (migrations/0032_knowledge.py). Passages never change.
    """

    file = models.ForeignKey(KnowledgeFile, models.CASCADE, related_name="passages", db_index=False)
    number = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    words = models.TextField()

    class Meta:
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        ordering = ("file", "number")
        constraints = (models.UniqueConstraint(fields=["file", "number"], name="knowledge_passage_once"),)

    def __str__(self) -> str:
        return f"{self.file_id} {self.number}"
