"""Read-only lists of the security log and of Django's admin log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import quote
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.access import may_open_in_admin
from chat.admin.audit_log import READ
from chat.admin.base import NamedChoicesFilter, ReadOnly, time_column
from chat.models import SecurityEvent, Session, User
from chat.origin import Interface
from chat.rendering.text.formatting import moment
from chat.services.people.security_log import Kind

if TYPE_CHECKING:
    Events = admin.ModelAdmin[SecurityEvent]
    Entries = admin.ModelAdmin[LogEntry]
else:
    Events = Entries = admin.ModelAdmin

# allauth registers these. The pages of authenticators would show secrets, and email addresses are not used.
admin.site.unregister([Authenticator, EmailAddress])

# The model belongs to Django, so its names cannot be set in its Meta.
LogEntry._meta.verbose_name = _("admin log entry")
LogEntry._meta.verbose_name_plural = _("admin log entries")

KINDS: dict[str, Any] = {
    Kind.SIGN_IN: _("Signed in"),
    Kind.SIGN_IN_FAILED: _("Failed to sign in"),
    Kind.SIGN_OUT: _("Signed out"),
    Kind.SIGNED_OUT_ELSEWHERE: _("Signed out other browsers"),
    Kind.SIGN_IN_LINK_MADE: _("Created a sign-in link"),
    Kind.PASSWORD_CHANGED: _("Changed a password"),
    Kind.SECOND_FACTOR_FAILED: _("Failed the second step"),
    Kind.SECOND_FACTOR_ADDED: _("Added a second factor"),
    Kind.SECOND_FACTOR_REMOVED: _("Removed a second factor"),
    Kind.SECOND_FACTOR_RESET: _("Reset two-step verification"),
    Kind.RECOVERY_CODES_MADE: _("Created recovery codes"),
    Kind.ACCOUNT_MADE: _("Created an account"),
    Kind.ACCOUNT_CHANGED: _("Changed an account"),
    Kind.ACCOUNT_DELETED: _("Deleted an account"),
    Kind.TOKEN_MADE: _("Created an API token"),
    Kind.TOKEN_REVOKED: _("Revoked an API token"),
    Kind.SHARED: _("Shared a session"),
    Kind.UNSHARED: _("Stopped sharing a session"),
    Kind.INVITATION_MADE: _("Created an invitation"),
    Kind.INVITATION_USED: _("Used an invitation"),
    Kind.INVITATION_ENDED: _("Revoked an invitation"),
    Kind.MEMBER_ADDED: _("Added a member to a workspace"),
    Kind.MEMBER_REMOVED: _("Removed a member from a workspace"),
    Kind.MEMBER_CHANGED: _("Changed a member’s role"),
    Kind.GUEST_PROMOTED: _("Made a guest a member"),
    Kind.ALL_LOGINS_ENDED: _("Signed everyone out"),
    Kind.EXPORTED: _("Exported a session"),
    Kind.PERSON_EXPORTED: _("Exported all of a person’s data"),
    Kind.SESSION_DELETED: _("Deleted a session"),
    Kind.SESSION_RESTORED: _("Restored a session"),
    Kind.SESSION_HANDED_OVER: _("Transferred a session to an editor"),
    Kind.ERASURE_REQUESTED: _("Requested an erasure"),
    Kind.ERASED: _("Erased permanently"),
    Kind.PURGED: _("Purged deleted data"),
    Kind.ADMIN_READ: _("Read a session in the admin"),
    Kind.ADMIN_SEARCH: _("Searched all sessions in the admin"),
    Kind.TOOL_CALLED: _("Called a web host with a tool"),
    Kind.TOOL_DECIDED: _("Approved or refused a tool call"),
    Kind.TOOL_RULE_CHANGED: _("Changed a tool rule"),
    Kind.AGENT_CHANGED: _("Changed an agent of a workspace"),
    Kind.MCP_SERVER_ADDED: _("Added an MCP server"),
    Kind.MCP_SERVER_CHANGED: _("Changed an MCP server"),
    Kind.MCP_SERVER_REMOVED: _("Removed an MCP server"),
    Kind.MCP_SERVER_CONNECTED: _("Signed in to an MCP server"),
    Kind.MCP_SERVER_DISCONNECTED: _("Disconnected an MCP server"),
    Kind.WORKSPACE_RENAMED: _("Renamed a workspace"),
    Kind.SCHEDULE_PAUSED: _("Paused someone else’s schedule"),
    Kind.SCHEDULE_RESUMED: _("Resumed someone else’s schedule"),
    Kind.WEBHOOK_ADDED: _("Added a webhook"),
    Kind.WEBHOOK_CHANGED: _("Changed a webhook"),
    Kind.WEBHOOK_REMOVED: _("Removed a webhook"),
}
INTERFACES: dict[str, Any] = {
    Interface.PAGE: _("page"),
    Interface.API: _("API"),
    Interface.SOCKET: _("live connection"),
    Interface.ADMIN: _("admin"),
    Interface.COMMAND: _("command"),
    Interface.AGENT: _("agent"),
}
ACTION_TIME = time_column(LogEntry, "action_time")
OBJECTS: dict[str, Any] = {
    "apitoken": _("API token"),
    "workspace": _("workspace"),
    "mcpserver": _("MCP server"),
    "schedule": _("schedule"),
}
ACTIONS = {ADDITION: _("Added"), CHANGE: _("Changed"), DELETION: _("Deleted"), READ: _("Read")}


class KindFilter(NamedChoicesFilter):
    title, parameter_name, column, named_choices = _("event"), "kind", "kind", KINDS


class InterfaceFilter(NamedChoicesFilter):
    title, parameter_name, column, named_choices = _("channel"), "face", "face", INTERFACES


class ActionFilter(NamedChoicesFilter):
    title, parameter_name, column, named_choices = _("action"), "action_flag", "action_flag", ACTIONS


class AboutFilter(admin.SimpleListFilter):
    """A filter for events by and about one user. It offers only the user in the URL: a list of all is too long."""

    title, parameter_name = _("person"), "about"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = _parse_id(request.GET.get("about", ""))
        user = User.objects.filter(pk=chosen).first() if chosen else None
        return [(str(chosen), user.sender if user else f"#{chosen}")] if chosen else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = _parse_id(self.value() or "")
        return queryset.filter(Q(actor=chosen) | Q(person=chosen)) if chosen else queryset


class LogAdmin(ReadOnly):
    """A mixin for long lists of rows that staff can only read."""

    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    list_per_page = list_max_show_all = 100

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._link_objects(request, super().get_list_display(request))  # type: ignore[misc]  # ModelAdmin has it

    def get_fields(self, request: HttpRequest, obj: object = None) -> Any:
        return self._link_objects(request, super().get_fields(request, obj))

    def _link_objects(self, request: HttpRequest, names: Iterable[Any]) -> list[Any]:
        """Replace the column `object` by one that links the objects that the user may open."""

        @admin.display(description=_("object"))
        def column(row: Any) -> str:
            page = self.page_of(row)
            if page is None or not may_open_in_admin(request.user, page[0]):
                return self.object(row)
            return format_html('<a href="{}">{}</a>', page[1], self.object(row))

        column.__name__ = "object"
        return [column if name == "object" else name for name in names]

    def page_of(self, row: Any) -> tuple[type[Model], str] | None:
        """Return the model of a row's object and the address of its page, or None if it has no page."""
        raise NotImplementedError

    @admin.display(description=_("object"))
    def object(self, row: Any) -> str:
        """Return the object's name without a link."""
        raise NotImplementedError


@admin.register(SecurityEvent)
class SecurityEventAdmin(LogAdmin, Events):
    fields = ("time", "event", "actor", "person", "object", "channel", "address", "token_id", "details")
    readonly_fields = ("time", "event", "object", "channel")
    list_display = ("time", "event", "actor", "person", "object", "shown_details", "address", "channel")
    list_display_links = ("time", "event")
    list_filter = (KindFilter, InterfaceFilter, AboutFilter, "at")
    list_select_related = ("actor", "person")
    search_fields = (
        "actor__username",
        "actor__display_name",
        "person__username",
        "person__display_name",
        "=address",
        "=object_id",
    )
    ordering = ("-at", "-pk")

    @admin.display(description=_("time"), ordering="at")
    def time(self, event: SecurityEvent) -> str:
        return moment(event.at, "seconds")

    @admin.display(description=_("event"), ordering="kind")
    def event(self, event: SecurityEvent) -> str:
        return str(KINDS.get(event.kind, event.kind))

    @admin.display(description=_("channel"), ordering="face")
    def channel(self, event: SecurityEvent) -> str:
        return str(INTERFACES.get(event.face, event.face))

    def page_of(self, event: SecurityEvent) -> tuple[type[Model], str] | None:
        if event.object_type != "session":
            return None
        return Session, reverse("admin:chat_session_change", args=[quote(event.object_id)])

    @admin.display(description=_("object"))
    def object(self, event: SecurityEvent) -> str:
        if event.object_type == "session":
            return format_html('<span title="{}">…{}</span>', event.object_id, event.object_id[-8:])
        return f"{OBJECTS.get(event.object_type, event.object_type)} {event.object_id}".strip()

    @admin.display(description=_("details"))
    def shown_details(self, event: SecurityEvent) -> str:
        shown = {name: ", ".join(each) if isinstance(each, list) else each for name, each in event.details.items()}
        return " · ".join(f"{name}: {each}" for name, each in shown.items())


@admin.register(LogEntry)
class LogEntryAdmin(LogAdmin, Entries):
    fields = (ACTION_TIME, "user", "action", "content_type", "object", "message")
    readonly_fields = ("action", "object", "message")
    list_display = (ACTION_TIME, "user", "action", "content_type", "object", "message")
    list_filter = (ActionFilter, "content_type", "action_time", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user", "content_type")
    search_fields = ("user__username", "user__display_name", "object_repr", "=object_id")
    ordering = ("-action_time", "-pk")

    @admin.display(description=_("action"), ordering="action_flag")
    def action(self, entry: LogEntry) -> str:
        return str(ACTIONS.get(entry.action_flag, entry.action_flag))

    def page_of(self, entry: LogEntry) -> tuple[type[Model], str] | None:
        model = entry.content_type.model_class() if entry.content_type else None
        address = entry.get_admin_url()
        return (model, address) if model and address else None

    @admin.display(description=_("object"))
    def object(self, entry: LogEntry) -> str:
        return entry.object_repr

    @admin.display(description=_("message"))
    def message(self, entry: LogEntry) -> str:
        return gettext(entry.get_change_message()) if entry.change_message else ""


def link_to_events_of(user: User) -> SafeString:
    """Return a link to all events by and about a user."""
    address = reverse("admin:chat_securityevent_changelist")
    return format_html('<a href="{}?about={}">{}</a>', address, user.pk, gettext("All events by and about this person"))


def _parse_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
