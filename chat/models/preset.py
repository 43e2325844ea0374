"""Agents that staff edit and that members of workspaces make, besides those of the configuration file."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.reasoning import MAX_BUDGET, MIN_BUDGET


class AgentPreset(models.Model):
    """The settings of a new session. A row of staff overrides the preset of the same name in the configuration file.

    A row with a `workspace` is an agent that a member, `user`, has made. Other members see it while it `is_shared`, and
    no one may begin sessions with it while it is archived. `revision` counts its changes.

    `model` is "provider/model", or empty for the default model. `tools` are names of tools in the toolbox. `prompts`
    are suggestions that an empty session shows. An empty `reasoning_effort` and a null `thinking_budget` use the
    model's defaults. If `allowed_hosts` is empty, tools may fetch from all public hosts. `knowledge` has names or
    patterns of the files of a session's workspace that the agent uses. `approval` has the rules for approval by their
    kind: allow, ask, deny, guarded. A session keeps a copy of its preset, so later changes of a row do not affect it.
    """

    name = models.CharField(
        _("name"), max_length=80, unique=True, validators=[RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,79}\Z")]
    )
    title = models.CharField(_("title"), max_length=80, blank=True)
    model = models.CharField(_("model"), max_length=281, blank=True)
    system_prompt = models.TextField(blank=True)
    tools = models.JSONField(default=list, blank=True)
    max_rounds = models.PositiveIntegerField(
        _("tool rounds"), default=25, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    prompts = models.JSONField(default=list, blank=True)
    reasoning_effort = models.CharField(max_length=10, blank=True, default="", db_default="")
    thinking_budget = models.PositiveIntegerField(
        _("thinking budget"),
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_BUDGET), MaxValueValidator(MAX_BUDGET)],
    )
    allowed_hosts = models.JSONField(default=list, blank=True, db_default=[])
    knowledge = models.JSONField(default=list, blank=True, db_default=[])
    approval = models.JSONField(default=dict, blank=True, db_default={})
    workspace = models.ForeignKey(
        "Workspace",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="agents",
        verbose_name=_("workspace"),
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
        verbose_name=_("created by"),
    )
    is_shared = models.BooleanField(_("shared"), default=False, db_default=False)
    archived_at = models.DateTimeField(_("archived"), null=True, blank=True)
    icon = models.CharField(max_length=30, blank=True, default="", db_default="")
    revision = models.PositiveIntegerField(default=0, db_default=0)
    is_offered = models.BooleanField(_("available"), default=True)
    position = models.PositiveIntegerField(_("position"), default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(_("last changed"), auto_now=True)

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ("position", "name")

    def __str__(self) -> str:
        return self.title or self.name
