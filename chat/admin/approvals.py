"""The rules of workspaces for tool calls in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin.base import BoundedSearch, PlainRelations, time_column
from chat.admin.revised import DigestedForm
from chat.errors import Invalid
from chat.models import ApprovalRule, User
from chat.services.people import workspace_rules
from chat.services.people.workspace_rules import rule_columns

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[ApprovalRule]
else:
    Admin = admin.ModelAdmin

CREATED = time_column(ApprovalRule, "created_at")


class RuleForm(DigestedForm):
    """The form of a rule. It has the same checks as the settings page of a workspace."""

    class Meta:
        model = ApprovalRule
        fields = ("workspace", "agent", "rule", "verdict", "approvals", "approvers")
        help_texts: ClassVar = {
            "agent": _("The name of one agent. Empty: all agents."),
            "rule": _("A tool’s name, or one with a pattern, such as bash(ls *)."),
            "approvals": _("How many different people must approve a call that needs approval."),
        }

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        try:
            return {
                **values,
                **rule_columns(values["rule"], values["verdict"], values["approvals"], values["approvers"]),
            }
        except Invalid as error:
            raise forms.ValidationError(error.message) from error


@admin.register(ApprovalRule)
class ApprovalRuleAdmin(PlainRelations, BoundedSearch, Admin):
    """The rules of all workspaces. Rules for one agent were created by users who answered a tool call."""

    when_empty = _(
        "No tool rules yet. A rule allows or forbids a tool in a workspace, or requires approvals. Add the first one."
    )
    form = RuleForm
    list_display = ("rule", "verdict", "agent", "workspace", "user", CREATED)
    list_filter = ("verdict", "workspace")
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("workspace", "user")
    search_fields = ("rule", "agent")
    autocomplete_fields = ("workspace",)
    ordering = ("-created_at",)
    list_per_page = 50

    def save_model(self, request: HttpRequest, obj: ApprovalRule, form: Any, change: bool) -> None:
        """Save the rule with its author, and log it like a change in the workspace's settings."""
        if isinstance(request.user, User):
            workspace_rules.save_for_staff(author=request.user, row=obj)

    def delete_model(self, request: HttpRequest, obj: ApprovalRule) -> None:
        if isinstance(request.user, User):
            workspace_rules.delete_for_staff(author=request.user, row=obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApprovalRule]) -> None:
        for row in queryset:
            self.delete_model(request, row)
