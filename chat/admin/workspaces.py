"""Workspaces in the admin: who is in them, and how much stands there."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.admin.deletion import KeepingAdmin
from chat.admin.memberships import PeopleOfWorkspace, RecordingAdmin
from chat.models import Membership, Session, Workspace
from chat.services.people import staff

names.call(Workspace, _("workspace"), _("workspaces"))
names.call_fields(Workspace, name=_("name"), created_at=_("made"))


@admin.register(Workspace)
class WorkspaceAdmin(RecordingAdmin, KeepingAdmin):
    inlines = (PeopleOfWorkspace,)
    list_display = ("name", "people", "sessions", "created_at")
    search_fields = ("name", "members__display_name", "members__username")
    ordering = ("name", "pk")
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        rows: QuerySet[Workspace] = super().get_queryset(request)
        return rows.annotate(people=_count_of(Membership), session_count=_count_of(Session))

    def what_holds(self, rows: QuerySet[Workspace]) -> list[str]:
        return staff.what_holds_workspaces(rows)

    @admin.display(description=_("people"), ordering="people")
    def people(self, workspace: Any) -> int:
        count: int = workspace.people
        return count

    @admin.display(description=_("sessions"), ordering="session_count")
    def sessions(self, workspace: Any) -> int:
        count: int = workspace.session_count
        return count


def _count_of(model: type[Membership] | type[Session]) -> Coalesce:
    """How many rows of a kind each workspace has; joins would multiply them."""
    rows = model._default_manager.filter(workspace=OuterRef("pk")).order_by().values("workspace")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count"), output_field=IntegerField()), 0)
