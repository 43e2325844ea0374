"""Sessions. Each is one conversation."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.workspace import Workspace

# The key of `Session.config` for the time of an import from a file, or true. The content of imported sessions is not
# trusted.
IMPORTED = "imported"
# The key for the state of a fork's files (chat/queries/forked_files.py).
FORKED_FILES = "forked_files"
# The key for the rules by which users have approved tool calls in this session.
APPROVED = "approved"
# The prefix of a rule in that list for calls that can send out text from elsewhere.
SENDING = "sends:"


# The same as `SHARED_ROLES` in chat/models/access.py, which imports this module.
WORKSPACE_ROLES = [("viewer", _("Viewer")), ("editor", _("Editor"))]


class Session(models.Model):
    """One conversation with an agent. The state of its run is in SessionRun, so that claims never write this row.

    `revision` counts the durable changes of the session and its messages (LIVE-02). Only services increase it.
    `purged_revision` is the highest revision of a purged message. A client with a lower revision cannot get the
    difference and loads everything again. `building_until` is set while a session is written or erased in several
    transactions. It is the time by which the next one must follow. Until the last, `status` is DELETED so that no one
    can open the session.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        ARCHIVED = "archived"
        DELETED = "deleted"

    class Mode(models.TextChoices):
        CHAT = "chat"
        AGENT = "agent"
        RUN = "run"

    class Replies(models.TextChoices):
        """The messages that the agent answers: all, or those that mention it."""

        ALL = "all"
        MENTIONS = "mentions"

    id = models.CharField(primary_key=True, max_length=32, default=ids.session_id, editable=False)
    workspace = models.ForeignKey(
        Workspace, models.PROTECT, related_name="sessions", db_index=False, verbose_name=_("workspace")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="sessions", db_index=False, verbose_name=_("owner")
    )
    title = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    mode = models.CharField(max_length=8, choices=Mode.choices, default=Mode.AGENT)
    replies = models.CharField(max_length=8, choices=Replies.choices, default=Replies.ALL, db_default=Replies.ALL)

    # The role of all members of the workspace in the session: none, viewer or editor (UI-23).
    workspace_role = models.CharField(
        _("workspace role"), max_length=6, choices=WORKSPACE_ROLES, blank=True, default="", db_default=""
    )

    # True if the number of people who can write determines `replies`, until a user chooses.
    replies_auto = models.BooleanField(default=False, db_default=False)

    agent = models.CharField(max_length=80, blank=True)
    provider = models.CharField(max_length=80, blank=True)
    model = models.CharField(_("model"), max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    config = models.JSONField(default=dict, blank=True)

    total_tokens = models.PositiveBigIntegerField(default=0)
    context_used = models.PositiveBigIntegerField(null=True, blank=True)
    context_window = models.PositiveBigIntegerField(null=True, blank=True)

    revision = models.PositiveBigIntegerField(default=0)
    parent_session = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="forks")
    parent_message_id = models.CharField(max_length=32, blank=True)
    # On a session in which an agent works for another one: the calling session, and the message with the call.
    caller_session = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="subsessions", db_index=False
    )
    caller_message_id = models.CharField(max_length=32, blank=True, default="", db_default="")
    # A digest of the request that created the session with an idempotency key (services/idempotency.py).
    key_digest = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001  # null: no key, or from before
    archived_at = models.DateTimeField(null=True, blank=True)
    # No constraint, because an older release without this column deletes users, too.
    archived_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    deleted_at = models.DateTimeField(null=True, blank=True)
    purged_revision = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    building_until = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        indexes = (
            models.Index(fields=["owner", "-updated_at"], name="session_by_owner"),
            models.Index(fields=["workspace", "-updated_at"], name="session_by_workspace"),
            models.Index(fields=["workspace", "workspace_role"], name="session_by_workspace_role"),
            models.Index(
                fields=["deleted_at"], name="session_by_deletion", condition=models.Q(deleted_at__isnull=False)
            ),
            models.Index(
                fields=["caller_session"], name="session_by_caller", condition=models.Q(caller_session__isnull=False)
            ),
            models.Index(
                fields=["building_until"], name="session_building", condition=models.Q(building_until__isnull=False)
            ),
        )
        permissions = (("erase_session", "Can erase sessions permanently"),)

    def __str__(self) -> str:
        """Return the id, because logs use this, and titles can repeat what users write."""
        return self.id

    @property
    def config_values(self) -> dict[str, Any]:
        """The `config`, or an empty dict if an edit of the row has made it something other than an object."""
        return self.config if isinstance(self.config, dict) else {}
