"""Workspaces and their members in the admin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db import transaction
from django.db.models import CASCADE, Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import BaseInlineFormSet
from django.forms.formsets import DELETION_FIELD_NAME
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat import names
from chat.access import may_open_in_admin
from chat.admin.base import DeletionPlan, GuardedDeletion, PlainRelations, time_column
from chat.admin.permissions import StaffRequest
from chat.admin.revised import RevisedForm
from chat.errors import ServiceError
from chat.models import Membership, Session, User, Workspace
from chat.services.people import knowledge, members, staff, workspace_invitations, workspaces
from chat.services.people.security_log import Kind, record
from chat.services.sessions.replies import follow_people_in_workspace_later
from chat.services.transaction import notify_access_changed

if TYPE_CHECKING:
    UserInline = admin.StackedInline[Membership, User]
    WorkspaceInline = admin.StackedInline[Membership, Workspace]
else:
    UserInline = WorkspaceInline = admin.StackedInline


# A form has several fields for each member, and Django refuses forms with 1,000 fields.
MAX_MEMBERS = 100
MANY_MEMBERS = format_lazy(
    _("This form lists only new members, because there are more than {count}. To remove members, open them below."),
    count=MAX_MEMBERS,
)
# The condition of the list of people for the members of a workspace.
OF_WORKSPACE = "memberships__workspace"


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
                follow_people_in_workspace_later(row.workspace_id, row.user_id)
        for row in formset.new_objects:  # a signal notifies the pages of deleted rows
            notify_access_changed(row.user_id, row.workspace_id)
        for row in formset.deleted_objects:
            workspace_invitations.end_known_links(author=request.user, workspace=row.workspace, user_id=row.user_id)


class MembershipFormSet(BaseInlineFormSet):  # type: ignore[type-arg]  # only its stub takes arguments
    """Memberships of a user or a workspace. It refuses to remove the last owner, as the workspace's settings do.

    It also refuses memberships that exist already, because the form may not list them.
    """

    def clean(self) -> None:
        super().clean()
        # Not `deleted_forms`, which needs the result of this check.
        leaving = [form.instance.pk for form in self.initial_forms if form.cleaned_data.get(DELETION_FIELD_NAME)]
        joining = [form.instance for form in self.extra_forms if form.has_changed() and form.is_valid()]
        try:
            members.require_owners(leaving, joining)
        except ServiceError as error:
            raise forms.ValidationError(error.message) from error
        self._require_new(joining, leaving)

    def _require_new(self, rows: Sequence[Membership], leaving: Sequence[int]) -> None:
        of = {"workspace__in": {row.workspace_id for row in rows}, "user__in": {row.user_id for row in rows}}
        existing = Membership.objects.filter(**of).exclude(pk__in=leaving).values_list("workspace", "user")
        for row in rows:
            if (row.workspace_id, row.user_id) in existing:
                params = {"name": row.user.sender, "workspace": row.workspace.name}
                raise forms.ValidationError(_("%(name)s is already a member of “%(workspace)s”.") % params)


class MembersFormSet(MembershipFormSet):
    """The members of a workspace, unless there are too many for a form: then only those that are added."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("data") is None and _has_many_members(kwargs.get("instance")):
            kwargs["queryset"] = Membership.objects.none()
        super().__init__(*args, **kwargs)


class WorkspacesInline(PlainRelations, MembershipRows, UserInline):
    """The workspaces of a user."""

    model = Membership
    formset = MembershipFormSet
    fields = ("workspace", "role")
    autocomplete_fields = ("workspace",)
    extra = 0
    verbose_name, verbose_name_plural = _("workspace"), _("workspaces")


class MembersInline(PlainRelations, MembershipRows, WorkspaceInline):
    """The members of a workspace. A removed member loses access to all sessions that were shared with them in it."""

    model = Membership
    formset = MembersFormSet
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 0
    verbose_name, verbose_name_plural = _("member"), _("members")


class WorkspaceForm(RevisedForm):
    """The form of one workspace. Its name serves as its revision, because owners and admins can rename it, too."""

    revision_column = "name"
    revision = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)

    def clean_name(self) -> str:
        name = names.clean(self.cleaned_data["name"])
        if not 0 < len(name) <= workspaces.MAX_NAME_LENGTH:
            message = _("Enter a name of up to %(count)d characters.")
            raise forms.ValidationError(message % {"count": workspaces.MAX_NAME_LENGTH})
        return name


@admin.register(Workspace)
class WorkspaceAdmin(MembershipLogging, GuardedDeletion):
    form = WorkspaceForm
    readonly_fields = ("people", "linked_people")
    inlines = (MembersInline,)
    list_display = ("name", "people", "sessions", time_column(Workspace, "created_at"))
    search_fields = ("name", "members__display_name", "members__username")
    ordering = ("name", "pk")
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        rows: QuerySet[Workspace] = super().get_queryset(request)
        return rows.annotate(people=_count_of(Membership), session_count=_count_of(Session))

    def get_fieldsets(self, request: HttpRequest, obj: Workspace | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ("name",)})]
        people = "linked_people" if may_open_in_admin(request.user, User) else "people"
        return [(None, {"fields": ("name", people), "description": MANY_MEMBERS if _has_many_members(obj) else ""})]

    def save_model(self, request: StaffRequest, obj: Workspace, form: Any, change: bool) -> None:  # type: ignore[override]  # only staff get here
        super().save_model(request, obj, form, change)
        if change and obj.name != form.initial["name"]:
            record(Kind.WORKSPACE_RENAMED, actor=request.user, target=obj)

    def delete_model(self, request: HttpRequest, obj: Workspace) -> None:
        self.delete_queryset(request, Workspace.objects.filter(pk=obj.pk))

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        knowledge.forget(queryset.values_list("pk", flat=True))
        super().delete_queryset(request, queryset)

    def deletion_obstacles(self, rows: QuerySet[Workspace]) -> list[str]:
        return staff.reasons_to_keep_workspaces(rows)

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> DeletionPlan:
        """Count the rows that are deleted with workspaces.

        Django would list them: each passage of their files, and the titles of agents that are private to their makers.
        """
        rows = Workspace.objects.filter(pk__in=[each.pk for each in objs])
        if obstacles := self.deletion_obstacles(rows):
            return [], {}, set(), obstacles
        counts, missing_permissions = {self.opts.verbose_name_plural: len(objs)}, set()
        for relation in Workspace._meta.related_objects:
            if relation.on_delete is not CASCADE:
                continue
            model: Any = relation.related_model
            count = model._default_manager.filter(**{f"{relation.field.name}__in": rows}).count()
            if count:
                counts[model._meta.verbose_name_plural] = count
                page = self.admin_site._registry.get(model)
                if page is not None and not page.has_delete_permission(request):
                    missing_permissions.add(model._meta.verbose_name)
        return [str(each) for each in objs], counts, missing_permissions, []

    @admin.display(description=_("people"))
    def linked_people(self, workspace: Any) -> SafeString:
        address = f"{reverse('admin:chat_user_changelist')}?{OF_WORKSPACE}={workspace.pk}"
        text = ngettext("%(count)d person", "%(count)d people", workspace.people) % {"count": workspace.people}
        return format_html('<a href="{}">{}</a>', address, text)

    @admin.display(description=_("people"), ordering="people")
    def people(self, workspace: Any) -> int:
        count: int = workspace.people
        return count

    @admin.display(description=_("sessions"), ordering="session_count")
    def sessions(self, workspace: Any) -> int:
        count: int = workspace.session_count
        return count


def _has_many_members(workspace: Any) -> bool:
    """Return whether a workspace, as `WorkspaceAdmin.get_queryset` reads it, has too many members for a form."""
    return getattr(workspace, "people", 0) > MAX_MEMBERS


def _count_of(model: type[Membership] | type[Session]) -> Coalesce:
    """Return a subquery that counts a model's rows per workspace. Joins with several tables would multiply counts."""
    rows = model._default_manager.filter(workspace=OuterRef("pk")).order_by().values("workspace")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count"), output_field=IntegerField()), 0)
