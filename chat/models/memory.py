"""Notes that users have accepted, and that agents get in later sessions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models.session import Session
from chat.models.workspace import Workspace


class MemoryNote(models.Model):
    """A note of one user, or of a workspace: exactly one of `user` and `workspace` is set.

    A note of a workspace that is not `accepted` is a proposal, and agents do not get it. `session` is the session in
    which the note was made. Removed notes can be restored for a while.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="notes")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="notes")
    text = models.TextField(_("text"))
    accepted = models.BooleanField(default=True, db_default=True)
    session = models.ForeignKey(Session, models.SET_NULL, null=True, blank=True, related_name="+")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        ordering = ("pk",)
        constraints = (
            models.CheckConstraint(
                condition=Q(user__isnull=False, workspace__isnull=True) | Q(user__isnull=True, workspace__isnull=False),
                name="memory_note_of_one",
            ),
        )

    def __str__(self) -> str:
        return f"note {self.pk}"
