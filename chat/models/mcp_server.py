"""MCP servers that the owners and admins of a workspace have added for its agents."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.mcp.config import DEFAULT_TIME_LIMIT
from chat.models.user import User
from chat.models.workspace import Workspace


class McpServer(models.Model):
    """An MCP server at a web address. The names of its tools begin with its name.

    `sign_in` has the tokens of a sign-in with OAuth (agents.mcp.sign_in.Grant), and `oauth_client` the client that an
    admin has registered, both as encrypted JSON. One process at a time renews the token, until `renewing_until`.
    `secret_headers` is an encrypted JSON object of headers that are sent with each request. `tools` are the server's
    names of the tools that agents may use; null means all. `revision` changes with all values on which a connection
    depends. A server with `removed_at` is used by no agent, and can be restored until it is deleted.
    """

    class Approval(models.TextChoices):
        UNLESS_READ_ONLY = "unless_read_only", _("unless the server calls the tool read-only")
        ALWAYS = "always", _("always")
        NEVER = "never", _("never")

    class SignIn(models.TextChoices):
        NONE = "", _("not connected")
        CONNECTED = "connected", _("connected")
        EXPIRED = "expired", _("expired")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="mcp_servers", verbose_name=_("workspace"))
    name = models.CharField(_("name"), max_length=24)
    url = models.CharField(_("address"), max_length=2000)
    secret_headers = models.TextField(blank=True, default="", db_default="")
    oauth_client = models.TextField(blank=True, default="", db_default="")
    sign_in = models.TextField(blank=True, default="", db_default="")
    sign_in_status = models.CharField(max_length=9, choices=SignIn.choices, blank=True, default="", db_default="")
    signed_in_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False)
    renewing_until = models.DateTimeField(null=True, blank=True)
    tools = models.JSONField(_("tools"), null=True, blank=True)
    time_limit = models.FloatField(
        _("time limit"), default=DEFAULT_TIME_LIMIT, db_default=DEFAULT_TIME_LIMIT, help_text=_("Seconds for one call.")
    )
    approval = models.CharField(
        _("approval"), max_length=20, choices=Approval.choices, default=Approval.UNLESS_READ_ONLY
    )
    for_all_agents = models.BooleanField(_("for all agents"), default=True, db_default=True)
    is_enabled = models.BooleanField(_("available"), default=True, db_default=True)
    revision = models.PositiveIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last changed"), auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ("workspace", "name")
        constraints = (models.UniqueConstraint(fields=["workspace", "name"], name="mcp_server_once"),)

    def __str__(self) -> str:
        return self.name
