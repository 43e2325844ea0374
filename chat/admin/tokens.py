"""API tokens in the admin. Staff see their owners and scopes, and can revoke them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log
from chat.admin.base import NamedChoicesFilter, ReadOnly, time_column
from chat.admin.permissions import StaffRequest, may_touch
from chat.errors import ServiceError
from chat.models import ApiToken, User
from chat.services.people import api_tokens

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[ApiToken]
else:
    Admin = admin.ModelAdmin

CREATED = time_column(ApiToken, "created_at")
LAST_USED = time_column(ApiToken, "last_used_at")
EXPIRES = time_column(ApiToken, "expires_at")


class ScopeFilter(NamedChoicesFilter):
    title, parameter_name, column, named_choices = _("access"), "scope__exact", "scope", api_tokens.SCOPES


@admin.register(ApiToken)
class TokenAdmin(ReadOnly, Admin):
    when_empty = _("No API tokens yet. People create them in their settings, for their own programs.")
    fields = ("name", "user", "access", CREATED, LAST_USED, EXPIRES, time_column(ApiToken, "revoked_at"))
    list_display = ("name", "user", "access", LAST_USED, EXPIRES, "works")
    list_filter = (ScopeFilter,)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("user",)
    search_fields = ("name", "user__username", "user__display_name")
    ordering = ("-created_at",)
    list_per_page = 50
    actions = ("revoke",)

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Return False: tokens are revoked instead, and stay visible."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the action `revoke`. Staff cannot change anything else of a token."""
        return request.user.has_perm("chat.change_apitoken")

    @admin.display(description=_("access"), ordering="scope")
    def access(self, token: ApiToken) -> str:
        return str(api_tokens.SCOPES[ApiToken.Scope(token.scope)])

    @admin.display(description=pgettext_lazy("link", "active"), boolean=True)
    def works(self, token: ApiToken) -> bool:
        has_ended = token.revoked_at is not None or (
            token.expires_at is not None and token.expires_at <= timezone.now()
        )
        return token.user.is_active and not has_ended

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: StaffRequest, tokens: QuerySet[ApiToken]) -> None:
        for token in tokens.select_related("user"):
            if not may_touch(request, token.user):
                messages.warning(request, gettext("Items that you can’t change were skipped."))
                continue
            values = {"name": token.name, "person": token.user.sender}
            try:
                api_tokens.revoke(user=token.user, token_id=token.pk, author=request.user)
            except ServiceError as error:
                messages.error(request, error.message)
                continue
            audit_log.log_revocation(request.user, token)
            messages.success(request, gettext("“%(name)s” of %(person)s is revoked.") % values)


def link_to_tokens_of(user: User) -> SafeString:
    """Return a link to the tokens of a user, with their number."""
    count = api_tokens.tokens_of(user).count()
    text = ngettext("%(count)d API token", "%(count)d API tokens", count) % {"count": count}
    return format_html(
        '<a href="{}?user__id__exact={}">{}</a>', reverse("admin:chat_apitoken_changelist"), user.pk, text
    )
