"""People in the admin: their accounts, what they may do, and the links that let them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.admin import erasing, names
from chat.admin.keeping import KeepingAdmin, Plan
from chat.admin.memberships import WorkspacesOfPerson
from chat.admin.tokens import link_to_tokens_of
from chat.models import ApiToken, User
from chat.services import accounts, staff

RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

names.call(User, _("person"), _("people"))
names.call_fields(User, display_name=_("display name"), can_own_workspace=_("may have a workspace of their own"))


class PersonForm(UserChangeForm):  # type: ignore[type-arg]  # only its stub takes arguments
    """An account, which must not be the last that could put things right."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        keeps = all(cleaned.get(name, True) for name in ("is_active", "is_staff", "is_superuser"))
        if not keeps and staff.is_last_administrator(User.objects.get(pk=self.instance.pk)):
            raise ValidationError(_("This is the last active administrator. Make another one first."))
        return cleaned


class NewPersonForm(AdminUserCreationForm):  # type: ignore[type-arg]  # only its stub takes arguments
    """An account with a password, or without one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["usable_password"].help_text = _(
            "Without a password somebody comes in by a one-time link: make it in the list of people."
        )


@admin.register(User)
class PersonAdmin(KeepingAdmin, UserAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    form = PersonForm
    add_form = NewPersonForm
    inlines = (WorkspacesOfPerson,)
    list_display = ("username", "shown_name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("username", "display_name", "first_name", "last_name", "email")
    readonly_fields = ("last_login", "date_joined", "tokens")
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER
    actions = ("sign_in_link", "sign_out", erasing.erase_people)  # type: ignore[assignment]  # the admin lets staff alone in
    fieldsets = (
        (None, {"fields": ("username", "password", "is_active", "can_own_workspace")}),
        (_("Personal info"), {"fields": ("display_name", "first_name", "last_name", "email")}),
        (_("Permissions"), {"classes": ("collapse",), "fields": RIGHTS}),
        (_("Important dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": ("username", "display_name", "usable_password", "password1", "password2"),
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """Rights are given by those who have all of them: nobody can take more than they were given."""
        fields = [str(name) for name in super().get_readonly_fields(request, obj)]
        return fields if _is_superuser(request) else [*fields, *RIGHTS]

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        shows_tokens = obj is not None and request.user.has_perm("chat.view_apitoken")
        return [*fieldsets, (_("For programs"), {"fields": ("tokens",)})] if shows_tokens else fieldsets

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody deletes their own account by a slip."""
        return super().has_delete_permission(request, obj) and _may_touch(request, obj) and obj != request.user

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """For the action that names it."""
        return request.user.has_perm("chat.erase_user")

    def what_holds(self, rows: QuerySet[User]) -> list[str]:
        return staff.what_holds_people(rows)

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> Plan:
        """Nobody deletes tokens, but they go with their person."""
        deleted, counts, wanting, held = super().get_deleted_objects(objs, request)
        return deleted, counts, wanting - {ApiToken._meta.verbose_name}, held

    @admin.display(description=_("API tokens"))
    def tokens(self, user: User) -> SafeString:
        return link_to_tokens_of(user)

    @admin.display(description=_("name"), ordering="display_name")
    def shown_name(self, user: User) -> str:
        return user.sender

    @admin.action(description=_("Make a one-time sign-in link"), permissions=["change"])
    def sign_in_link(self, request: HttpRequest, people: QuerySet[User]) -> None:
        for user in self._changeable(request, people.filter(is_active=True)):
            path = reverse("sign-in-link", args=[accounts.sign_in_link(user=user)])
            link = f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
            self.log_change(request, user, gettext("Made a sign-in link."))
            words = gettext("This link signs {name} in, once, within a day: {link}")
            messages.success(request, format_html(words, name=user.sender, link=link))

    @admin.action(description=_("Sign out everywhere"), permissions=["change"])
    def sign_out(self, request: HttpRequest, people: QuerySet[User]) -> None:
        for user in self._changeable(request, people):
            accounts.sign_out_elsewhere(user=user, keep=request.session.session_key)
            self.log_change(request, user, gettext("Signed out everywhere."))
            messages.success(request, gettext("%(name)s is signed out everywhere.") % {"name": user.sender})

    def _changeable(self, request: HttpRequest, people: QuerySet[User]) -> list[User]:
        found = [user for user in people if self.has_change_permission(request, user)]
        if len(found) < people.count():
            messages.warning(request, gettext("Those whom you may not change were left out."))
        return found


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Who could become somebody with more rights than their own would have those."""
    return user is None or _is_superuser(request) or not (user.is_staff or user.is_superuser)
