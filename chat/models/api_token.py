"""Tokens with which a user's programs call the REST API."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ApiToken(models.Model):
    """A named API token of a user, who can revoke it at any time.

    Only a digest of the secret is stored, so the secret can be shown only once, when the token is created.
    """

    class Scope(models.TextChoices):
        READ = "read"
        WRITE = "write"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens", verbose_name=_("person")
    )
    name = models.CharField(_("name"), max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(_("access"), max_length=5, choices=Scope.choices, default=Scope.READ)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ("-created_at",)
        indexes = (models.Index(fields=["user", "-created_at"], name="api_token_by_user"),)

    def __str__(self) -> str:
        return self.name
