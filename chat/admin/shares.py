"""Shares and invitations in the admin: to be looked at and ended; they are made where the session is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.admin.permissions import StaffRequest, may_read_messages
from chat.admin.searching import BoundedSearch
from chat.models import Invitation, Share
from chat.services.people import guests, sharing
from chat.services.people.security_log import Kind, record

names.call(Share, _("share"), _("shares"))
names.call(Invitation, _("invitation"), _("invitations"))
names.call_fields(Share, session=_("session"), user=_("person"), role=_("role"), created_at=_("made"))
names.call_fields(
    Invitation,
    session=_("session"),
    role=_("role"),
    created_by=_("made by"),
    created_at=_("made"),
    expires_at=_("ends"),
    uses=_("used"),
    max_uses=_("for how many people"),
)


class LookedAt(BoundedSearch):
    """Pages on which nothing is written."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class OfSession:
    """Rows that name a session: by its title for staff who may read its messages, else by its id."""

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._named(request, super().get_list_display(request))  # type: ignore[misc]  # an admin's

    def get_fields(self, request: HttpRequest, obj: object = None) -> Any:
        return self._named(request, super().get_fields(request, obj))  # type: ignore[misc]  # an admin's

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        fields: list[str] = super().get_search_fields(request)  # type: ignore[misc]  # an admin's
        return [name for name in fields if name != "session__title" or may_read_messages(request.user)]

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        return [*super().get_readonly_fields(request, obj), "titled", "numbered"]  # type: ignore[misc]  # an admin's

    def _named(self, request: HttpRequest, names: Sequence[str]) -> list[str]:
        shown = "titled" if may_read_messages(request.user) else "numbered"
        return [shown if name == "session" else name for name in names]

    @admin.display(description=_("session"), ordering="session__title")
    def titled(self, row: Share | Invitation) -> str:
        return row.session.title or str(_("Untitled session"))

    @admin.display(description=_("session"), ordering="session")
    def numbered(self, row: Share | Invitation) -> str:
        return row.session_id


class EntranceAdmin(OfSession, LookedAt, admin.ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    """Record deletions in the security log."""

    ending: Kind

    def delete_model(self, request: StaffRequest, obj: Any) -> None:  # type: ignore[override]  # only staff get here
        self._record(request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[Any]) -> None:  # type: ignore[override]  # likewise
        for row in queryset.select_related("session"):
            self._record(request, row)
        super().delete_queryset(request, queryset)

    def _record(self, request: StaffRequest, row: Share | Invitation) -> None:
        person = row.user_id if isinstance(row, Share) else row.session.owner_id
        record(self.ending, actor=request.user, person=person, target=row.session)


@admin.register(Share)
class ShareAdmin(EntranceAdmin):
    ending = Kind.UNSHARED
    fields = list_display = ("session", "user", "role", "created_at")
    list_filter = ("role",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "user")
    search_fields = ("session__title", "user__username", "user__display_name")
    ordering = ("-created_at",)
    list_per_page = 50

    def delete_model(self, request: StaffRequest, obj: Share) -> None:  # type: ignore[override]  # only staff get here
        self.delete_queryset(request, Share.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[Share]) -> None:  # type: ignore[override]  # likewise
        """Guests leave the workspace with their last share."""
        users = list(queryset.values_list("session__workspace", "user"))
        with transaction.atomic():
            super().delete_queryset(request, queryset)
            for workspace_id, user_id in users:
                guests.end_memberships(workspace_id=workspace_id, user_ids=[user_id])


@admin.register(Invitation)
class InvitationAdmin(EntranceAdmin):
    ending = Kind.INVITATION_ENDED
    fields = list_display = ("session", "role", "created_by", "created_at", "expires_at", "uses", "max_uses", "works")
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

    @admin.display(description=_("still works"), boolean=True)
    def works(self, invitation: Invitation) -> bool:
        return bool(getattr(invitation, "is_valid", False))
