"""Access to a session besides its owner's: roles, shares and invitation links; and one-time sign-in links."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.session import Session


class SessionRole(models.TextChoices):
    """What a user may do in a session. Each role includes the permissions of the roles before it."""

    VIEWER = "viewer", _("Viewer")
    EDITOR = "editor", _("Editor")
    OWNER = "owner", _("Owner")

    @property
    def rank(self) -> int:
        return list(SessionRole).index(self)

    def covers(self, needed: SessionRole) -> bool:
        return self.rank >= needed.rank


SHARED_ROLES = [(role.value, role.label) for role in (SessionRole.VIEWER, SessionRole.EDITOR)]


class Share(models.Model):
    """Access to a session for one member or guest of its workspace, besides the owner."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="shares", verbose_name=_("session"))
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="shares", verbose_name=_("person"))
    role = models.CharField(_("role"), max_length=6, choices=SHARED_ROLES)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("share")
        verbose_name_plural = _("shares")
        constraints = (
            models.UniqueConstraint(fields=["session", "user"], name="share_once"),
            models.CheckConstraint(condition=models.Q(role__in=["viewer", "editor"]), name="share_role"),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.session_id} ({self.role})"


class Invitation(models.Model):
    """A link that lets up to `max_uses` users into one session, as guests of its workspace.

    Only a hash of the link's token is stored. `max_uses` is null for links that were made before uses were counted;
    such links have no limit.
    """

    session = models.ForeignKey(Session, models.CASCADE, related_name="invitations", verbose_name=_("session"))
    role = models.CharField(_("role"), max_length=6, choices=SHARED_ROLES)
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("created by")
    )
    max_uses = models.PositiveIntegerField(_("maximum uses"), null=True, blank=True)
    uses = models.PositiveIntegerField(_("times used"), default=0, db_default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return f"invitation to {self.session_id} ({self.role})"

    @property
    def uses_left(self) -> int | None:
        """The number of users who can still join with the link, or None if there is no limit."""
        return None if self.max_uses is None else max(0, self.max_uses - self.uses)


class SignInLink(models.Model):
    """A link that signs one user in, once. Only a hash of its token is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("sign-in link")
        verbose_name_plural = _("sign-in links")

    def __str__(self) -> str:
        return f"sign-in link of {self.user}"
