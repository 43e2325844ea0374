"""Who belongs to which workspace: rows within the pages of people and of workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.admin.permissions import StaffRequest
from chat.models import Membership, User, Workspace
from chat.services.people.security_log import Kind, record

if TYPE_CHECKING:
    OfPerson = admin.StackedInline[Membership, User]
    OfWorkspace = admin.StackedInline[Membership, Workspace]
else:
    OfPerson = OfWorkspace = admin.StackedInline

names.call(Membership, _("membership"), _("memberships"))
names.call_fields(Membership, workspace=_("workspace"), user=_("person"), role=_("role"))


class _Rows:
    """Who is in stays as it is, or goes: a field that could be changed would ask the database once for each row."""

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request)  # type: ignore[misc]  # an inline's
        return rows.select_related("user", "workspace")


class RecordingAdmin(ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    """Record new and removed members of workspaces in the security log."""

    def save_formset(self, request: StaffRequest, form: Any, formset: Any, change: bool) -> None:  # type: ignore[override]  # only staff get here
        super().save_formset(request, form, formset, change)
        for kind, rows in (
            (Kind.MEMBER_ADDED, formset.new_objects),
            (Kind.MEMBER_REMOVED, formset.deleted_objects),
        ):
            for row in rows:
                record(kind, actor=request.user, person=row.user_id, target=row.workspace)


class WorkspacesOfPerson(_Rows, OfPerson):
    """The workspaces that somebody is in."""

    model = Membership
    fields = ("workspace", "role")
    autocomplete_fields = ("workspace",)
    extra = 0
    verbose_name, verbose_name_plural = _("workspace"), _("workspaces")


class PeopleOfWorkspace(_Rows, OfWorkspace):
    """The people in a workspace. Who leaves it loses all sessions that were shared with them in it, at once."""

    model = Membership
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 0
    verbose_name, verbose_name_plural = _("member"), _("members")
