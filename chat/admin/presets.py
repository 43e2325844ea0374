"""Agent presets in the admin: what new sessions may begin with, beside what the configuration file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from chat.admin import names
from chat.admin.preset_form import PresetForm, RowForm, copied, from_file
from chat.admin.searching import BoundedSearch
from chat.models import AgentPreset

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[AgentPreset]
else:
    Admin = admin.ModelAdmin

names.call(AgentPreset, _("agent"), _("agents"))
names.call_fields(
    AgentPreset,
    name=_("name"),
    title=_("title"),
    model=_("model"),
    thinking_budget=_("thinking budget"),
    max_rounds=_("tool rounds"),
    is_offered=_("offered"),
    position=_("place"),
    updated_at=_("last changed"),
)


@admin.register(AgentPreset)
class PresetAdmin(BoundedSearch, Admin):
    form = PresetForm
    list_display = ("shown_name", "name", "model", "is_offered", "position", "updated_at")
    list_display_links = ("shown_name", "name")
    list_editable = ("is_offered", "position")
    search_fields = ("name", "title", "model")
    ordering = ("position", "name")
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "description": _(
                    "New sessions use what is saved here. Existing sessions keep their own copy, so "
                    "changing or deleting an agent doesn’t affect them."
                ),
                "fields": (
                    "name",
                    "title",
                    "model",
                    "reasoning_effort",
                    "thinking_budget",
                    "system_prompt",
                    "tools",
                    "allowed_hosts",
                    "max_rounds",
                    "prompts",
                ),
            },
        ),
        (_("In the list"), {"fields": ("is_offered", "position")}),
    )

    @admin.display(description=_("title"), ordering="title")
    def shown_name(self, preset: AgentPreset) -> str:
        return str(preset)

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> type[RowForm]:
        return RowForm

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return copied(request.GET.get("like", ""))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        known = from_file(AgentPreset.objects.values_list("name", flat=True))
        return super().changelist_view(request, {"from_file": known, **(extra_context or {})})
