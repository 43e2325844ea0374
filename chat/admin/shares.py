"""Shares and invitations in the admin. Staff can read and delete them. Users create them on the session's page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from chat.admin.base import ReadOnly, time_column
from chat.admin.permissions import StaffRequest, may_read_messages
from chat.errors import NoSuchSession
from chat.models import Invitation, Share, WorkspaceInvitation
from chat.services.people import sharing, workspace_invitations
from chat.services.people.security_log import Kind, record


class SessionColumn:
    """A mixin that shows the title of a row's session, or its id to staff who may not read messages."""

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._replace_session(request, super().get_list_display(request))  # type: ignore[misc]  # ModelAdmin has it

    def get_fields(self, request: HttpRequest, obj: object = None) -> Any:
        return self._replace_session(request, super().get_fields(request, obj))  # type: ignore[misc]  # ModelAdmin has it

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        fields: list[str] = super().get_search_fields(request)  # type: ignore[misc]  # ModelAdmin has it
        return [name for name in fields if name != "session__title" or may_read_messages(request.user)]

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        return [*super().get_readonly_fields(request, obj), "titled", "numbered"]  # type: ignore[misc]  # ModelAdmin has it

    def _replace_session(self, request: HttpRequest, names: Sequence[str]) -> list[str]:
        shown = "titled" if may_read_messages(request.user) else "numbered"
        return [shown if name == "session" else name for name in names]

    @admin.display(description=_("session"), ordering="session__title")
    def titled(self, row: Share | Invitation) -> str:
        return row.session.title or str(_("Untitled session"))

    @admin.display(description=_("session"), ordering="session")
    def numbered(self, row: Share | Invitation) -> str:
        return row.session_id


@admin.register(Share)
class ShareAdmin(SessionColumn, ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    when_empty = _("No session is shared yet. Owners share a session with the button Share at its top.")
    fields = list_display = ("session", "user", "role", time_column(Share, "created_at"))
    list_filter = ("role",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "user")
    search_fields = ("session__title", "user__username", "user__display_name")
    ordering = ("-created_at",)
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Share]:
        """Leave out shares of subsessions, because they follow the shares of the session above."""
        shares: QuerySet[Share] = super().get_queryset(request).filter(session__caller_session=None)
        return shares

    def delete_model(self, request: StaffRequest, obj: Share) -> None:  # type: ignore[override]  # only staff get here
        self.delete_queryset(request, Share.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[Share]) -> None:  # type: ignore[override]  # likewise
        """End the access through the service, as the session's share dialog does."""
        for row in queryset.select_related("session", "user").order_by("session", "pk"):
            with suppress(NoSuchSession):  # deleted in the meantime, with its shares
                sharing.unshare(session=row.session, author=request.user, user=row.user)


@admin.register(Invitation)
class InvitationAdmin(SessionColumn, ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    when_empty = _("No invitation links to sessions yet. Owners of sessions create them under Share.")
    fields = list_display = (
        *("session", "role", "created_by", time_column(Invitation, "created_at")),
        *(time_column(Invitation, "expires_at"), "uses", "max_uses", "works"),
    )
    list_filter = ("role",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "created_by")
    search_fields = ("session__title", "created_by__username", "created_by__display_name")
    ordering = ("-created_at",)
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        valid = sharing.valid_invitations().filter(pk=OuterRef("pk"))
        invitations: QuerySet[Invitation] = super().get_queryset(request).annotate(is_valid=Exists(valid))
        return invitations

    def delete_model(self, request: StaffRequest, obj: Invitation) -> None:  # type: ignore[override]  # only staff get here
        self._record(request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[Invitation]) -> None:  # type: ignore[override]  # likewise
        for row in queryset.select_related("session"):
            self._record(request, row)
        super().delete_queryset(request, queryset)

    def _record(self, request: StaffRequest, row: Invitation) -> None:
        record(Kind.INVITATION_ENDED, actor=request.user, person=row.session.owner_id, target=row.session)

    @admin.display(description=pgettext_lazy("link", "active"), boolean=True)
    def works(self, invitation: Invitation) -> bool:
        return bool(getattr(invitation, "is_valid", False))


@admin.register(WorkspaceInvitation)
class WorkspaceInvitationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    when_empty = _("No invitation links to workspaces yet. Owners and admins create them in the workspace settings.")
    fields = list_display = (
        *("workspace", "created_by", time_column(WorkspaceInvitation, "created_at")),
        *(time_column(WorkspaceInvitation, "expires_at"), "uses", "max_uses", "works"),
    )
    list_filter = (("workspace", admin.RelatedOnlyFieldListFilter),)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("workspace", "created_by")
    search_fields = ("workspace__name", "created_by__username", "created_by__display_name")
    ordering = ("-created_at",)
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkspaceInvitation]:
        valid = workspace_invitations.valid_invitations().filter(pk=OuterRef("pk"))
        found: QuerySet[WorkspaceInvitation] = super().get_queryset(request).annotate(is_valid=Exists(valid))
        return found

    def delete_model(self, request: StaffRequest, obj: WorkspaceInvitation) -> None:  # type: ignore[override]  # only staff get here
        self._record(request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[WorkspaceInvitation]) -> None:  # type: ignore[override]  # likewise
        for row in queryset.select_related("workspace"):
            self._record(request, row)
        super().delete_queryset(request, queryset)

    def _record(self, request: StaffRequest, row: WorkspaceInvitation) -> None:
        record(Kind.INVITATION_ENDED, actor=request.user, target=row.workspace, invitation=row.pk)

    @admin.display(description=pgettext_lazy("link", "active"), boolean=True)
    def works(self, invitation: WorkspaceInvitation) -> bool:
        return bool(getattr(invitation, "is_valid", False))
