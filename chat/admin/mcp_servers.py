"""MCP servers of workspaces in the admin. Their secrets are entered here, too, and never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin.base import BoundedSearch, time_column
from chat.admin.presets import LinesField
from chat.errors import ServiceError
from chat.models import McpServer, User, Workspace
from chat.services.people import mcp_servers as service
from chat.services.people.security_log import Kind

if TYPE_CHECKING:
    Form = forms.ModelForm[McpServer]
    Admin = admin.ModelAdmin[McpServer]
else:
    Form = forms.ModelForm
    Admin = admin.ModelAdmin


class McpServerForm(Form):
    """The form of one server. The service checks it, as on the page of the workspace."""

    headers = LinesField(
        label=_("Secret headers"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 3, "autocomplete": "off"}),
        help_text=_(
            "One per line, as “Name: value”. Stored encrypted and never shown again. Empty: keep the stored ones."
        ),
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

    def clean_tools(self) -> list[str] | None:
        return self.cleaned_data["tools"] or None

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        workspace: Workspace = values.get("workspace") or self.instance.workspace
        checked = McpServer(pk=self.instance.pk, workspace=workspace, url=self.instance.url or values["url"])
        given = {name: values[name] for name in self.Meta.fields if name not in ("workspace", "headers")}
        try:
            headers = service.headers_from(values["headers"])
            service.apply(checked, service.Settings(**given, headers=headers or None))
        except ServiceError as error:
            raise forms.ValidationError(error.message) from error
        self.given = service.Settings(**given, headers=headers or None)
        return values

    def _post_clean(self) -> None:
        """Leave the instance as it is: `save_model` has the service change it."""
        if not self.errors and not self.instance.pk:
            self.instance.workspace = self.cleaned_data["workspace"]


@admin.register(McpServer)
class McpServerAdmin(BoundedSearch, Admin):
    form = McpServerForm
    list_display = ("name", "workspace", "url", "is_enabled", "for_all_agents", time_column(McpServer, "updated_at"))
    list_filter = ("is_enabled",)
    list_select_related = ("workspace",)
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("name", "url", "workspace__name")
    autocomplete_fields = ()
    ordering = ("workspace", "name")
    list_per_page = 50

    def get_readonly_fields(self, request: HttpRequest, obj: McpServer | None = None) -> tuple[str, ...]:
        return ("workspace",) if obj else ()

    def save_model(self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool) -> None:
        service.apply(obj, form.given)
        obj.save()
        service.log(Kind.MCP_SERVER_CHANGED if change else Kind.MCP_SERVER_ADDED, cast("User", request.user), obj)

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        service.log(Kind.MCP_SERVER_REMOVED, cast("User", request.user), obj)
        super().delete_model(request, obj)
