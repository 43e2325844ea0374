"""Shares and invitations in the admin: to be looked at and ended; they are made where the session is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.models import Invitation, Share
from chat.services import sharing

if TYPE_CHECKING:
    Shares = admin.ModelAdmin[Share]
    Invitations = admin.ModelAdmin[Invitation]
else:
    Shares = Invitations = admin.ModelAdmin

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
)


class LookedAt:
    """Pages on which nothing is written."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Share)
class ShareAdmin(LookedAt, Shares):
    fields = list_display = ("session", "user", "role", "created_at")
    list_filter = ("role",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "user")
    search_fields = ("session__title", "user__username", "user__display_name")
    ordering = ("-created_at",)
    list_per_page = 50


@admin.register(Invitation)
class InvitationAdmin(LookedAt, Invitations):
    fields = list_display = ("session", "role", "created_by", "created_at", "expires_at", "works")
    list_filter = ("role",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "created_by")
    search_fields = ("session__title", "created_by__username", "created_by__display_name")
    ordering = ("-created_at",)
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        valid = sharing.valid_invitations().filter(pk=OuterRef("pk"))
        return super().get_queryset(request).annotate(is_valid=Exists(valid))

    @admin.display(description=_("still works"), boolean=True)
    def works(self, invitation: Invitation) -> bool:
        return bool(getattr(invitation, "is_valid", False))
