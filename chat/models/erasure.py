"""Requests to erase a session or a user, which are also the record of what was erased."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Erasure(models.Model):
    """A request to erase a session or a user permanently.

    The work is done in batches, and resumed after a crash until `finished_at` is set. The row stays as a record:
    `target` is an id, `counts` has the number of deleted rows by kind, and nothing of the erased content is kept.
    """

    class Kind(models.TextChoices):
        SESSION = "session"
        USER = "user"

    kind = models.CharField(_("type"), max_length=7, choices=Kind.choices)
    target = models.CharField(_("id"), max_length=32)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("requested by")
    )
    requested_at = models.DateTimeField(_("requested"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    counts = models.JSONField(_("erased"), default=dict)

    class Meta:
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        ordering = ("-requested_at", "-pk")
        indexes = (
            models.Index(fields=["requested_at"], name="erasure_open", condition=models.Q(finished_at__isnull=True)),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"
