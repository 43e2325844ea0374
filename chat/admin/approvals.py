"""Approvals for good in the admin: staff see which tools agents may always use, and can take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from chat.admin.base import ReadOnly, time_column
from chat.models import ApprovalRule

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[ApprovalRule]
else:
    Admin = admin.ModelAdmin

CREATED = time_column(ApprovalRule, "created_at")


@admin.register(ApprovalRule)
class ApprovalRuleAdmin(ReadOnly, Admin):
    """Rules are made where a call waits for approval. Without its rule, the agent asks again."""

    fields = ("rule", "agent", "workspace", "user", CREATED)
    list_display = ("rule", "agent", "workspace", "user", CREATED)
    list_filter = ("workspace",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("workspace", "user")
    search_fields = ("rule", "agent")
    ordering = ("-created_at",)
    list_per_page = 50
