"""MCP servers of workspaces in the admin. Staff can enter their secrets, which are never shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.admin.base import BoundedSearch, PlainRelations, time_column
from chat.admin.presets import LinesField
from chat.admin.revised import RevisedForm
from chat.errors import ServiceError
from chat.models import McpServer, SecurityEvent, User, Workspace
from chat.rendering.text.formatting import moment
from chat.services.people import mcp_servers as service
from chat.services.people import mcp_sign_in as sign_in_service
from chat.services.people.security_log import Kind

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[McpServer]
else:
    Admin = admin.ModelAdmin

# Shown in place of a stored secret.
MASK = "••••••••"
# The fields that are passed to the service unchanged.
SETTINGS = ("name", "url", "tools", "approval", "time_limit", "for_all_agents", "is_enabled")


class McpServerForm(RevisedForm):
    """The form of one server. The service validates it, as it does for the workspace's own page."""

    headers = LinesField(
        label=_("Secret headers"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 3, "autocomplete": "off", "data-secret": True}),
        help_text=_(
            "One per line, as “Name: value”. Stored encrypted and never shown again. Empty: keep the stored ones. "
            "What you enter replaces all of them. A change of the host deletes them."
        ),
    )
    client_id = forms.CharField(
        label=_("OAuth client ID"),
        required=False,
        max_length=service.MAX_CLIENT_LENGTH,
        widget=forms.TextInput({"class": "vTextField", "autocomplete": "off"}),
        help_text=_("Only if the server asks for a sign-in and doesn’t let Parley register itself."),
    )
    client_secret = forms.CharField(
        label=_("OAuth client secret"),
        required=False,
        max_length=service.MAX_CLIENT_LENGTH,
        widget=forms.PasswordInput({"class": "vTextField", "autocomplete": "new-password"}),
        help_text=_("Stored encrypted and never shown again. Empty: keep the stored one."),
    )
    tools = LinesField(
        label=_("Tools"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 3}),
        help_text=_("The tools that agents may use, one per line. Empty: all."),
    )

    class Meta:
        model = McpServer
        fields = (
            "workspace",
            "name",
            "url",
            "headers",
            "tools",
            "approval",
            "time_limit",
            "for_all_agents",
            "is_enabled",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = sign_in_service.client_of(self.instance) if self.instance.pk else None
        if self._client is not None:
            self.initial["client_id"] = self._client.id
            if self._client.secret:
                self.fields["client_secret"].widget.attrs["placeholder"] = MASK

    def clean_tools(self) -> list[str] | None:
        return self.cleaned_data["tools"] or None

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        workspace: Workspace = values.get("workspace") or self.instance.workspace
        checked = McpServer(pk=self.instance.pk, workspace=workspace, url=self.instance.url or values["url"])
        given = {name: values[name] for name in SETTINGS}
        try:
            headers = service.headers_from(values["headers"])
            self.given = service.Settings(**given, headers=headers or None, oauth_client=self._changed_client(values))
            service.apply(checked, self.given)
        except ServiceError as error:
            raise forms.ValidationError(error.message) from error
        return values

    def _changed_client(self, values: dict[str, Any]) -> tuple[str, str] | None:
        """Return the OAuth client to store as (id, secret), or None to keep the stored one. An empty id removes it."""
        client_id, secret = values["client_id"].strip(), values["client_secret"]
        stored_id = self._client.id if self._client else ""
        return None if client_id == stored_id and not secret else (client_id, secret)

    def _post_clean(self) -> None:
        """Leave the instance unchanged, except for the workspace of a new one. `save_model` uses the service."""
        if not self.errors and not self.instance.pk:
            self.instance.workspace = self.cleaned_data["workspace"]


@admin.register(McpServer)
class McpServerAdmin(PlainRelations, BoundedSearch, Admin):
    when_empty = _(
        "No MCP servers yet. An MCP server gives the agents of a workspace the tools of another service. Add one, "
        "then test the connection in the workspace settings."
    )
    form = McpServerForm
    list_display = ("name", "workspace", "url", "is_enabled", "for_all_agents", time_column(McpServer, "updated_at"))
    list_filter = ("is_enabled",)
    list_select_related = ("workspace",)
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("name", "url", "workspace__name")
    autocomplete_fields = ()
    ordering = ("workspace", "name")
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[McpServer]:
        return super().get_queryset(request).filter(removed_at=None)

    def get_readonly_fields(self, request: HttpRequest, obj: McpServer | None = None) -> list[Any]:
        return self.plain(request, ("workspace", "sign_in_state", "token_expires")) if obj else []

    @admin.display(description=_("Sign-in"))
    def sign_in_state(self, server: McpServer) -> SafeString:
        """Return the state of the sign-in, the user who signed in, and the time if the security log still has it."""
        parts = [str(server.get_sign_in_status_display())]
        if server.signed_in_by is not None:
            parts.append(server.signed_in_by.sender)
        events = SecurityEvent.objects.filter(kind=Kind.MCP_SERVER_CONNECTED.value, object_id=str(server.pk))
        if server.sign_in_status and (event := events.order_by("-at").first()) is not None:
            parts.append(moment(event.at))
        return format_html_join(" · ", "{}", ((part,) for part in parts))

    @admin.display(description=_("Token valid until"))
    def token_expires(self, server: McpServer) -> str:
        grant = sign_in_service.grant_of(server.pk)
        if grant is None or grant.expires_at is None:
            return "—"
        return moment(datetime.fromtimestamp(grant.expires_at, UTC))

    def save_model(self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool) -> None:
        service.apply(obj, form.given)
        service.save(obj)
        service.log(Kind.MCP_SERVER_CHANGED if change else Kind.MCP_SERVER_ADDED, cast("User", request.user), obj)

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        service.log(Kind.MCP_SERVER_REMOVED, cast("User", request.user), obj)
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        for row in queryset.select_related("workspace"):
            self.delete_model(request, row)
