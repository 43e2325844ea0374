"""Workspaces and their members in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin.base import GuardedDeletion, PlainRelations, time_column
from chat.admin.permissions import StaffRequest
from chat.admin.revised import RevisedForm
from chat.models import Membership, Session, User, Workspace
from chat.services.people import staff, workspace_invitations
from chat.services.people.security_log import Kind, record

if TYPE_CHECKING:
    UserInline = admin.StackedInline[Membership, User]
    WorkspaceInline = admin.StackedInline[Membership, Workspace]
else:
    UserInline = WorkspaceInline = admin.StackedInline


class MembershipRows:
    """Memberships that staff can add and delete but not change, because editable fields would run a query per row."""

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request)  # type: ignore[misc]  # StackedInline has it
        return rows.select_related("user", "workspace")


class MembershipLogging(ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    """Log added and removed members in the security log, and end the invitation links that removed members know."""

    def save_formset(self, request: StaffRequest, form: Any, formset: Any, change: bool) -> None:  # type: ignore[override]  # only staff get here
        super().save_formset(request, form, formset, change)
        for kind, rows in (
            (Kind.MEMBER_ADDED, formset.new_objects),
            (Kind.MEMBER_REMOVED, formset.deleted_objects),
        ):
            for row in rows:
                record(kind, actor=request.user, person=row.user_id, target=row.workspace)
        for row in formset.deleted_objects:
            workspace_invitations.end_known_links(author=request.user, workspace=row.workspace, user_id=row.user_id)


class WorkspacesInline(PlainRelations, MembershipRows, UserInline):
    """The workspaces of a user."""

    model = Membership
    fields = ("workspace", "role")
    autocomplete_fields = ("workspace",)
    extra = 0
    verbose_name, verbose_name_plural = _("workspace"), _("workspaces")


class MembersInline(PlainRelations, MembershipRows, WorkspaceInline):
    """The members of a workspace. A removed member loses access to all sessions that were shared with them in it."""

    model = Membership
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 0
    verbose_name, verbose_name_plural = _("member"), _("members")


class WorkspaceForm(RevisedForm):
    """The form of one workspace. Its name serves as its revision, because owners and admins can rename it, too."""

    revision_column = "name"
    revision = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)


@admin.register(Workspace)
class WorkspaceAdmin(MembershipLogging, GuardedDeletion):
    form = WorkspaceForm
    fields = ("name",)
    inlines = (MembersInline,)
    list_display = ("name", "people", "sessions", time_column(Workspace, "created_at"))
    search_fields = ("name", "members__display_name", "members__username")
    ordering = ("name", "pk")
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        rows: QuerySet[Workspace] = super().get_queryset(request)
        return rows.annotate(people=_count_of(Membership), session_count=_count_of(Session))

    def deletion_obstacles(self, rows: QuerySet[Workspace]) -> list[str]:
        return staff.reasons_to_keep_workspaces(rows)

    @admin.display(description=_("people"), ordering="people")
    def people(self, workspace: Any) -> int:
        count: int = workspace.people
        return count

    @admin.display(description=_("sessions"), ordering="session_count")
    def sessions(self, workspace: Any) -> int:
        count: int = workspace.session_count
        return count


def _count_of(model: type[Membership] | type[Session]) -> Coalesce:
    """Return a subquery that counts a model's rows per workspace. Joins with several tables would multiply counts."""
    rows = model._default_manager.filter(workspace=OuterRef("pk")).order_by().values("workspace")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count"), output_field=IntegerField()), 0)
