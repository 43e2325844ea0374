"""API tokens in the admin: whose they are and what they may do, to be looked at and ended; never what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.admin.permissions import StaffRequest, may_touch
from chat.admin.shares import LookedAt
from chat.errors import ServiceError
from chat.models import ApiToken, User
from chat.services.people import api_tokens

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[ApiToken]
else:
    Admin = admin.ModelAdmin

names.call(ApiToken, _("API token"), _("API tokens"))
names.call_fields(
    ApiToken,
    name=_("name"),
    user=_("person"),
    scope=_("may"),
    created_at=_("made"),
    last_used_at=_("last used"),
    expires_at=_("ends"),
    revoked_at=_("revoked"),
)


@admin.register(ApiToken)
class TokenAdmin(LookedAt, Admin):
    fields = ("name", "user", "scope", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_display = ("name", "user", "scope", "last_used_at", "expires_at", "works")
    list_filter = ("scope",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("user",)
    search_fields = ("name", "user__username", "user__display_name")
    ordering = ("-created_at",)
    list_per_page = 50
    actions = ("revoke",)

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """What has been revoked stays to be seen."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """For the action that names it: nothing else of a token can be changed."""
        return request.user.has_perm("chat.change_apitoken")

    @admin.display(description=_("still works"), boolean=True)
    def works(self, token: ApiToken) -> bool:
        is_over = token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= timezone.now())
        return token.user.is_active and not is_over

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: StaffRequest, tokens: QuerySet[ApiToken]) -> None:
        for token in tokens.select_related("user"):
            if not may_touch(request, token.user):
                messages.warning(request, gettext("Items that you can’t change were skipped."))
                continue
            words = {"name": token.name, "person": token.user.sender}
            try:
                api_tokens.revoke(user=token.user, token_id=token.pk, author=request.user)
            except ServiceError as refused:
                messages.error(request, refused.message)
                continue
            note(request, token.user, gettext("Revoked the API token “%(name)s”.") % words)
            messages.success(request, gettext("“%(name)s” of %(person)s is revoked.") % words)


def note(request: StaffRequest, user: User, words: str) -> None:
    """Write down in a person's log what became of a token of theirs."""
    LogEntry.objects.log_actions(request.user.pk, [user], CHANGE, change_message=words, single_object=True)


def link_to_tokens_of(user: User) -> SafeString:
    """Say how many tokens somebody has, with the way to them."""
    count = api_tokens.tokens_of(user).count()
    words = ngettext("%(count)d API token", "%(count)d API tokens", count) % {"count": count}
    return format_html(
        '<a href="{}?user__id__exact={}">{}</a>', reverse("admin:chat_apitoken_changelist"), user.pk, words
    )
