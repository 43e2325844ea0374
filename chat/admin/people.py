"""Users in the admin: their accounts, permissions, sign-in links and two-step verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log, erasures
from chat.admin.base import BoundedSearch, DeletionPlan, GuardedDeletion, time_column
from chat.admin.permissions import StaffRequest, may_become, may_touch
from chat.admin.revised import DigestedForm
from chat.admin.security import link_to_events_of
from chat.admin.tokens import link_to_tokens_of
from chat.admin.workspaces import OF_WORKSPACE, MembershipLogging, WorkspacesInline
from chat.errors import ServiceError
from chat.models import ApiToken, Invitation, Schedule, Share, User, WorkspaceInvitation
from chat.services.deletion import users as deletion
from chat.services.people import accounts, second_factor, staff
from chat.services.people.security_log import Kind, record
from chat.services.sessions.replies import follow_people_of_later

# What a permission allows, by the beginning of its code name.
PERMITTED = {
    "add": _("Can add"),
    "change": _("Can change"),
    "delete": _("Can delete"),
    "view": _("Can view"),
    "erase": _("Can erase permanently"),
    "reset": _("Can reset two-step verification"),
}
# The people on a page of the list, and the most for one action, which reports each of them.
MAX_PEOPLE = 50
# Rows that are deleted with their user. No staff have the permission to delete tokens and schedules, and not all staff
# have the permission to delete the others.
GO_WITH_USERS = (ApiToken, Schedule, Share, Invitation, WorkspaceInvitation)
PERMISSION_FIELDS = ("is_staff", "is_superuser", "groups", "user_permissions")
LAST_LOGIN, DATE_JOINED = time_column(User, "last_login"), time_column(User, "date_joined")


class PersonForm(DigestedForm, UserChangeForm):  # type: ignore[type-arg]  # only its stub takes arguments
    """The form of an account. It refuses changes that would leave no active administrator."""

    not_digested = ("password",)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        stays_administrator = all(cleaned.get(name, True) for name in ("is_active", "is_staff", "is_superuser"))
        if not stays_administrator and staff.is_last_administrator(User.objects.get(pk=self.instance.pk)):
            raise ValidationError(
                _("You can’t remove the last administrator. Make someone else an administrator first.")
            )
        return cleaned


class NewPersonForm(AdminUserCreationForm):  # type: ignore[type-arg]  # only its stub takes arguments
    """The form of a new account. The password is optional."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["usable_password"].help_text = _(
            "Without a password, people sign in with a one-time link. Create it in the list of people."
        )


class PermissionsField(ModelMultipleChoiceField):  # type: ignore[type-arg]  # only its stub takes arguments
    """A choice of permissions, in the user's language. Their names in the database are in English."""

    def label_from_instance(self, obj: Any) -> str:
        permitted = PERMITTED.get(obj.codename.partition("_")[0])
        return f"{obj.content_type} | {permitted}" if permitted else str(obj)


class TranslatedPermissions:
    """A mixin for the form of users and that of groups."""

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **kwargs: Any) -> Any:
        if db_field.related_model is Permission:
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]  # ModelAdmin has it


class SecondFactorFilter(admin.SimpleListFilter):
    """A filter for users who have, or have not, set up two-step verification."""

    title = _("two-step verification")
    parameter_name = "two_step"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Set up")), ("no", _("Not set up"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> QuerySet[User]:
        has_factor = Exists(Authenticator.objects.filter(user=OuterRef("pk")))
        return {"yes": queryset.filter(has_factor), "no": queryset.exclude(has_factor)}.get(
            self.value() or "", queryset
        )


admin.site.unregister(Group)


@admin.register(Group)
class SuperusersGroupAdmin(TranslatedPermissions, BoundedSearch, GroupAdmin):
    """Groups. Only superusers can edit them, because other staff could give their own group every permission."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _is_superuser(request)


@admin.register(User)
class PersonAdmin(TranslatedPermissions, MembershipLogging, GuardedDeletion, UserAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    form = PersonForm
    add_form = NewPersonForm
    inlines = (WorkspacesInline,)
    list_display = ("username", "shown_name", "is_active", "is_staff", LAST_LOGIN)
    list_filter = ("is_active", "is_staff", "is_superuser", SecondFactorFilter, "groups")
    search_fields = ("username", "display_name", "first_name", "last_name", "email")
    readonly_fields = (LAST_LOGIN, DATE_JOINED, "tokens", "two_step", "events")
    list_per_page = MAX_PEOPLE
    show_facets = admin.ShowFacets.NEVER
    actions = ("sign_in_link", "sign_out", "reset_second_factor", erasures.erase_users)  # type: ignore[assignment]  # they take a StaffRequest: the admin site lets only staff in
    fieldsets = (
        (None, {"fields": ("username", "password", "two_step", "is_active", "can_own_workspace")}),
        (_("Personal info"), {"fields": ("display_name", "first_name", "last_name", "email")}),
        (_("Permissions"), {"classes": ("collapse",), "fields": PERMISSION_FIELDS}),
        (_("Important dates"), {"fields": (LAST_LOGIN, DATE_JOINED)}),
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

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[Any]:
        """Make permissions read-only unless the user is a superuser, so that staff cannot extend their own."""
        fields = list(super().get_readonly_fields(request, obj))
        return fields if _is_superuser(request) else [*fields, *PERMISSION_FIELDS]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow the condition of the link from the page of a workspace to its members."""
        if lookup == OF_WORKSPACE:
            return request.user.has_perm("chat.view_membership")
        return super().lookup_allowed(lookup, value, request)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets = list(super().get_fieldsets(request, obj))
        if obj is not None and request.user.has_perm("chat.view_apitoken"):
            fieldsets.append((_("For programs"), {"fields": ("tokens",)}))
        if obj is not None and request.user.has_perm("chat.view_securityevent"):
            fieldsets.append((_("Security log"), {"fields": ("events",)}))
        return fieldsets

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return whether the user may delete an account. Users may not delete their own."""
        return super().has_delete_permission(request, obj) and may_touch(request, obj) and obj != request.user

    def has_become_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run actions that let staff sign in as another user."""
        return request.user.has_perm("chat.change_user") and may_become(request, None)

    def has_reset_second_factor_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the action `reset_second_factor`."""
        return request.user.has_perm("chat.reset_second_factor")

    def save_model(self, request: StaffRequest, obj: User, form: Any, change: bool) -> None:  # type: ignore[override]  # only staff get here
        super().save_model(request, obj, form, change)
        if change and form.changed_data:
            record(Kind.ACCOUNT_CHANGED, actor=request.user, person=obj, fields=form.changed_data)
            if "is_active" in form.changed_data:
                follow_people_of_later(obj.pk)
        elif not change:
            record(Kind.ACCOUNT_MADE, actor=request.user, person=obj, by="admin")

    def delete_model(self, request: StaffRequest, obj: User) -> None:  # type: ignore[override]  # likewise
        record(Kind.ACCOUNT_DELETED, actor=request.user, person=obj)
        deletion.delete_row(obj)

    @transaction.atomic
    def delete_queryset(self, request: StaffRequest, queryset: QuerySet[User]) -> None:  # type: ignore[override]  # likewise
        for user in queryset:
            self.delete_model(request, user)

    def user_change_password(self, request: StaffRequest, id: str, form_url: str = "") -> HttpResponse:  # type: ignore[override]  # likewise
        user = self.get_object(request, unquote(id))
        if user is not None and not may_become(request, user):
            raise PermissionDenied
        with transaction.atomic():
            response = super().user_change_password(request, id, form_url)
            if user is not None and request.method == "POST" and response.status_code == HTTPStatus.FOUND:
                key = request.session.session_key
                accounts.password_was_changed(user=user, author=request.user, keep=key)
        return response

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the action that erases users."""
        return request.user.has_perm("chat.erase_user")

    def deletion_obstacles(self, rows: QuerySet[User]) -> list[str]:
        return staff.reasons_to_keep_users(rows)

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> DeletionPlan:
        """Allow staff to delete a user with the rows that go with the account, whatever their permissions for these."""
        deleted, counts, missing_permissions, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, missing_permissions - {model._meta.verbose_name for model in GO_WITH_USERS}, protected

    @admin.display(description=_("API tokens"))
    def tokens(self, user: User) -> SafeString:
        return link_to_tokens_of(user)

    @admin.display(description=_("name"), ordering="display_name")
    def shown_name(self, user: User) -> str:
        return user.sender

    @admin.display(description=_("two-step verification"))
    def two_step(self, user: User) -> str:
        factors = second_factor.factors_of(user)
        if not factors:
            return gettext("not set up")
        passkeys = len(factors.passkeys)
        shown = ngettext("%(count)d passkey", "%(count)d passkeys", passkeys) % {"count": passkeys}
        return ", ".join([*([gettext("authenticator app")] if factors.app else []), *([shown] if passkeys else [])])

    @admin.display(description=_("events"))
    def events(self, user: User) -> SafeString:
        return link_to_events_of(user)

    @admin.action(description=_("Create a one-time sign-in link"), permissions=["become"])
    def sign_in_link(self, request: StaffRequest, people: QuerySet[User]) -> None:
        def may_sign_in(request: HttpRequest, user: User) -> bool:
            return user.is_active and self.has_change_permission(request, user)

        for user in self._filter(request, people, may_sign_in):
            try:
                token = accounts.sign_in_link(user=user, author=request.user)
            except ServiceError as error:  # too many links; those above were created
                messages.error(request, error.message)
                return
            path = reverse("sign-in-link", args=[token])
            link = f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
            self.log_change(request, user, audit_log.SIGN_IN_LINK)
            text = gettext("This link signs {name} in, once, within a day: {link}")
            messages.success(request, format_html(text, name=user.sender, link=link))

    @admin.action(description=_("Sign out everywhere"), permissions=["change"])
    def sign_out(self, request: StaffRequest, people: QuerySet[User]) -> None:
        for user in self._filter(request, people, self.has_change_permission):
            accounts.sign_out_elsewhere(user=user, keep=request.session.session_key, author=request.user)
            self.log_change(request, user, audit_log.SIGNED_OUT)
            messages.success(request, gettext("%(name)s is signed out everywhere.") % {"name": user.sender})

    @admin.action(description=_("Reset two-step verification"), permissions=["reset_second_factor"])
    def reset_second_factor(self, request: StaffRequest, people: QuerySet[User]) -> None:
        for user in self._filter(request, people, may_touch):
            name = {"name": user.sender}
            if second_factor.reset(user=user, author=request.user):
                self.log_change(request, user, audit_log.FACTOR_RESET)
                messages.success(request, gettext("Two-step verification of %(name)s was reset.") % name)
            else:
                messages.info(request, gettext("%(name)s has no two-step verification.") % name)

    def _filter(
        self, request: HttpRequest, people: QuerySet[User], may: Callable[[HttpRequest, User], bool]
    ) -> list[User]:
        """Return the people on whom the user may act. Report those who are skipped, and refuse too many."""
        chosen = list(people[: MAX_PEOPLE + 1])
        if len(chosen) > MAX_PEOPLE:
            messages.error(request, gettext("Choose at most %(count)d at a time.") % {"count": MAX_PEOPLE})
            return []
        if not chosen:
            messages.warning(request, gettext("The selected rows are no longer in this list."))
        allowed = [user for user in chosen if may(request, user)]
        if len(allowed) < len(chosen):
            messages.warning(request, gettext("Items that you can’t change were skipped."))
        return allowed


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
