"""Workspaces and their members."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Workspace(models.Model):
    """A team, whose members can share sessions with each other."""

    name = models.CharField(_("name"), max_length=120)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="workspaces")

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """The membership of a user in a workspace.

    A guest sees only the sessions that are shared with them and the users of these sessions, and cannot start sessions.
    The membership of a guest ends with their last share.
    """

    class Role(models.TextChoices):
        OWNER = "owner", pgettext_lazy("workspace role", "Owner")
        ADMIN = "admin", pgettext_lazy("workspace role", "Admin")
        MEMBER = "member", pgettext_lazy("workspace role", "Member")
        GUEST = "guest", pgettext_lazy("workspace role", "Guest")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships", verbose_name=_("workspace"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", verbose_name=_("person")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = (models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} · {self.workspace}"


class WorkspaceInvitation(models.Model):
    """A link that makes up to `max_uses` users members of a workspace. Only a hash of the link's token is stored.

    `Invitation` is the link to one session, for guests.
    """

    # No constraints, because an older release without this table deletes users and workspaces, too.
    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        related_name="invitations",
        verbose_name=_("workspace"),
        db_index=False,
        db_constraint=False,
    )
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="+",
        verbose_name=_("created by"),
        db_index=False,
        db_constraint=False,
    )
    max_uses = models.PositiveIntegerField(_("maximum uses"))
    uses = models.PositiveIntegerField(_("times used"), default=0, db_default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))

    class Meta:
        verbose_name = _("workspace invitation")
        verbose_name_plural = _("workspace invitations")
        indexes = (models.Index(fields=["workspace", "expires_at"], name="workspace_invitation"),)

    def __str__(self) -> str:
        return f"invitation to {self.workspace}"

    @property
    def uses_left(self) -> int:
        """The number of users who can still join with the link."""
        return max(0, self.max_uses - self.uses)


class ApprovalRule(models.Model):
    """A rule of a workspace for tool calls in its sessions, as in `agents.approval`; for one agent, or for all ("").

    An owner or admin has made it, either by answering a call with "always allow", for one agent, or in the workspace's
    settings, for all agents. `approvals` and `approvers` are the number and the role of users who must approve a call
    with the verdict "ask".
    """

    class Verdict(models.TextChoices):
        ALLOW = "allow", _("Always allow")
        ASK = "ask", _("Ask")
        DENY = "deny", _("Never allow")

    class Approvers(models.TextChoices):
        ANYONE = "", _("Everyone who can answer")
        ADMIN = "admin", _("Owners and admins")
        OWNER = "owner", _("Owners")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="approval_rules", verbose_name=_("workspace"))
    agent = models.CharField(_("agent"), max_length=80, blank=True)
    verdict = models.CharField(
        _("decision"), max_length=5, choices=Verdict.choices, default=Verdict.ALLOW, db_default=Verdict.ALLOW
    )
    approvals = models.PositiveSmallIntegerField(_("approvals"), default=1, db_default=1)
    approvers = models.CharField(
        _("who can approve"), max_length=5, choices=Approvers.choices, blank=True, default="", db_default=""
    )
    rule = models.CharField(_("rule"), max_length=1200)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("added by"),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("tool rule")
        verbose_name_plural = _("tool rules")
        constraints = (models.UniqueConstraint(fields=["workspace", "agent", "rule"], name="approval_rule_once"),)

    def __str__(self) -> str:
        return f"{self.agent or '*'}: {self.rule}"
