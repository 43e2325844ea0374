"""The security log."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class SecurityEvent(models.Model):
    """An entry of the security log: who did what, when and from where. It has no message content and no secrets.

    `kind` is a `chat.services.people.security_log.Kind`, `face` a `chat.origin.Interface`. `actor` is null for users
    who are not signed in, for commands and for agents. `person` is the user concerned, such as a session's owner. Both
    keep their ids after the account is deleted.
    """

    at = models.DateTimeField(_("time"), default=timezone.now)
    kind = models.CharField(max_length=40)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("actor"),
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("person"),
    )
    object_type = models.CharField(_("object type"), max_length=40, blank=True)
    object_id = models.CharField(_("object"), max_length=64, blank=True)
    face = models.CharField(max_length=10)
    address = models.CharField(_("IP address"), max_length=64, blank=True)
    token_id = models.BigIntegerField(_("API token"), null=True)
    details = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("security event")
        verbose_name_plural = _("security events")
        indexes = (
            models.Index(fields=["-at"], name="security_by_time"),
            models.Index(fields=["kind", "-at"], name="security_by_kind"),
            models.Index(fields=["actor", "-at"], name="security_by_actor"),
            models.Index(fields=["person", "-at"], name="security_by_person"),
            models.Index(fields=["address", "-at"], name="security_by_address"),
        )
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.kind}"
