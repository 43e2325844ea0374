"""Agent presets in the admin: the list, and the form of one preset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from agents.registry import Prompt
from chat.admin.base import BoundedSearch, time_column
from chat.admin.revised import RevisedForm
from chat.agents_setup import registry
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.errors import Invalid
from chat.models import AgentPreset, User
from chat.queries import preset_rules, presets
from chat.queries.agent_icons import ICON_NAMES, ICONS
from chat.queries.preset_prompts import check_prompts, line_of, prompts_from
from chat.rendering.text.formatting import EFFORT_LEVELS
from chat.rendering.text.tool_texts import entry_text
from chat.services.people import members_agents

if TYPE_CHECKING:
    Form = forms.ModelForm[AgentPreset]
    Admin = admin.ModelAdmin[AgentPreset]
else:
    Form = forms.ModelForm
    Admin = admin.ModelAdmin

# The fields of an agent, and the fields for its place in the list.
CONFIGURED = (
    "name",
    "title",
    "icon",
    "model",
    "reasoning_effort",
    "thinking_budget",
    "system_prompt",
    "tools",
    "allowed_hosts",
    "knowledge",
    "max_rounds",
    "prompts",
)
IN_LIST = ("is_offered", "position")
HELP_TEXTS = {
    "name": _("Letters, digits, dots, - and _. Overrides the agent of the same name in the configuration file."),
    "title": _("The name that people see. Empty: the name above."),
    "thinking_budget": _("In tokens, for models that support it. Empty: the model’s default."),
    "max_rounds": _("How often a turn can use tools before the model sums up."),
    "is_offered": _("Whether new sessions can use it."),
    "position": _("Lower numbers come first. Agents from the configuration file count as 0 and keep their order."),
}


class ModelInput(forms.TextInput):
    """A text input that suggests the known models."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        known = ((f"{choice.provider}/{choice.model}",) for choice in registry().known_models() if choice.model)
        options = format_html_join("", '<option value="{}"></option>', known)
        field = super().render(name, value, {**(attrs or {}), "list": f"{name}-known"}, renderer)
        return format_html('{}<datalist id="{}-known">{}</datalist>', field, name, options)


class LinesField(forms.CharField):
    """A field for a list of texts, one per line. Empty lines are ignored."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(self.prepare_value(initial)) != self.to_python(data))

    def run_validators(self, value: Any) -> None:
        super().run_validators("\n".join(value))


class PromptsField(LinesField):
    """A field for opening prompts, one per line, as `text` or `icon | heading | text`."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return super().prepare_value([line_of(each) for each in presets.prompts_of(list(value))])

    def clean(self, value: Any) -> list[Prompt]:
        super().clean(value)
        with _as_form_error():
            return prompts_from(str(value or ""))


class RulesField(LinesField):
    """A field for tool rules, one per line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=forms.Textarea({"class": "vLargeTextField", "rows": 3}), **kwargs)


class ToolsField(forms.MultipleChoiceField):
    """A choice of tools. It accepts unknown names, because `clean_tools` reports a better error for them."""

    widget = forms.CheckboxSelectMultiple

    def valid_value(self, value: Any) -> bool:
        return True


def _tool_choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names of tools with their labels."""
    labels = ((name, entry_text(name, registry().tool(name))) for name in names)
    return [(name, f"{name}: {about}" if about else name) for name, about in labels]


class PresetForm(RevisedForm):
    """The form of one preset."""

    model = forms.CharField(
        label=_("Model"),
        required=False,
        max_length=281,
        widget=ModelInput({"class": "vTextField"}),
        help_text=_("As provider/model. Empty: the default model."),
    )
    system_prompt = forms.CharField(
        label=_("System prompt"),
        required=False,
        strip=False,
        max_length=MAX_SYSTEM_PROMPT_LENGTH,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 14}),
    )
    tools = ToolsField(
        label=_("Tools"),
        required=False,
        choices=lambda: _tool_choices(presets.tool_names()),
    )
    prompts = PromptsField(
        label=_("Opening prompts"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 5}),
        help_text=format_lazy(
            "{} {}: {}",
            _(
                "One per line. An empty session offers them; home shows the first four. "
                "For a heading and an icon, write “icon | heading | text”. "
                "A text with “…”, or with a colon at its end, is not sent but put into the composer to be completed."
            ),
            _("Icons"),
            format_lazy(", ".join(["{}"] * len(ICONS)), *ICON_NAMES.values()),
        ),
    )

    icon = forms.ChoiceField(
        label=_("Icon"), required=False, choices=[("", _("The first letters of its name")), *ICON_NAMES.items()]
    )
    reasoning_effort = forms.ChoiceField(
        label=_("Reasoning effort"), required=False, choices=[("", _("The model’s default")), *EFFORT_LEVELS.items()]
    )
    allowed_hosts = LinesField(
        label=_("Allowed hosts"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 3}),
        help_text=_(
            "One per line, such as example.com or *.example.com. The agent can fetch web pages from these hosts only. "
            "If the list is empty, it can fetch from all public hosts."
        ),
    )

    knowledge = LinesField(
        label=_("Knowledge"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 3}),
        help_text=_(
            "Files of a session’s workspace that the agent uses: names or patterns, one per line, such as "
            "Handbook.pdf or prices-*. * means all files."
        ),
    )
    deny = RulesField(label=_("Never allow"), help_text=_("Rules for tools, one per line, such as bash(sudo *)."))
    ask = RulesField(
        label=_("Ask first"),
        help_text=_(
            "One per line. For several approvals, or those of a role, write “rule | approvals | admin” or "
            "“rule | approvals | owner”."
        ),
    )
    allow = RulesField(label=_("Always allow"), help_text=_("One per line, such as bash(ls *)."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, lines in preset_rules.lines_of(presets.rules_of(self.instance.approval)).items():
            self.initial.setdefault(name, lines)
        # An agent can also have a single tool of a server, or tools that are not available now.
        field, chosen = cast("ToolsField", self.fields["tools"]), self["tools"].value()
        offered: dict[str, str] = dict(cast("Iterable[tuple[str, str]]", field.choices))
        missing = [name for name in chosen if name not in offered] if isinstance(chosen, list) else []
        field.choices = [*offered.items(), *_tool_choices(missing)]

    def clean_deny(self) -> list[str]:
        return self._validated_rules("deny")

    def clean_ask(self) -> list[str]:
        return self._validated_rules("ask")

    def clean_allow(self) -> list[str]:
        return self._validated_rules("allow")

    def _validated_rules(self, name: str) -> list[str]:
        lines: list[str] = self.cleaned_data[name]
        with _as_form_error():
            preset_rules.rules_from(**{name: lines})
        return lines

    def save(self, commit: bool = True) -> AgentPreset:
        lines = {name: self.cleaned_data[name] for name in preset_rules.KINDS}
        self.instance.approval = presets.stored_rules(preset_rules.rules_from(**lines))
        saved: AgentPreset = super().save(commit)
        return saved

    class Meta:
        model = AgentPreset
        fields = (*CONFIGURED, *IN_LIST)
        help_texts = HELP_TEXTS

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        with _as_form_error():
            presets.check_model(model)
        return model

    def clean_tools(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["tools"]
        with _as_form_error():
            presets.check_tools(name for name in chosen if name not in self.instance.tools)
        return chosen

    def clean_prompts(self) -> list[Any]:
        prompts: list[Prompt] = self.cleaned_data["prompts"]
        with _as_form_error():
            check_prompts(prompts)
        return presets.stored_prompts(prompts)

    def clean_allowed_hosts(self) -> list[str]:
        with _as_form_error():
            return presets.checked_hosts(self.cleaned_data["allowed_hosts"])

    def clean_knowledge(self) -> list[str]:
        with _as_form_error():
            return presets.checked_knowledge(self.cleaned_data["knowledge"])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            with _as_form_error():
                presets.check_reasoning(values["model"], values["reasoning_effort"], values["thinking_budget"])
        return values


class ListForm(Form):
    """The form of one row of the list. Its fields have accessible labels that contain the preset's name.

    It also submits the initial values, so that only what the user has changed is saved.
    """

    class Meta:
        model = AgentPreset
        fields = ("is_offered", "position")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = f"{self.instance} · {field.label}"
            field.show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        unchanged = [name for name in IN_LIST if name not in self.changed_data]
        return {**values, **{name: self.initial[name] for name in unchanged}}


def initial_values(name: str) -> dict[str, Any]:
    """Return the initial values for a new preset: a copy of the preset with this name, or of the default preset."""
    source, default = presets.preset(name), registry().choice("")
    model = (source.provider, source.model)
    values = {
        "model": "" if model == (default.provider, default.model) else "/".join(model),
        "system_prompt": source.system_prompt,
        "icon": source.icon,
        "reasoning_effort": source.reasoning.effort,
        "thinking_budget": source.reasoning.budget,
        "tools": list(source.tools),
        "allowed_hosts": list(source.allowed_hosts),
        "knowledge": list(source.knowledge),
        "max_rounds": source.max_rounds,
        **preset_rules.lines_of(source.rules),
    }
    return {**values, **({"name": source.name, "title": source.title, "prompts": list(source.prompts)} if name else {})}


@contextmanager
def _as_form_error() -> Iterator[None]:
    try:
        yield
    except Invalid as error:
        raise forms.ValidationError(error.message) from error


@admin.register(AgentPreset)
class PresetAdmin(BoundedSearch, Admin):
    when_empty = _(
        "No agents yet, except those in the configuration file. An agent has its own system prompt, model and "
        "tools. Add one to offer it for new sessions."
    )
    form = PresetForm
    list_display = (
        "shown_name",
        "name",
        "workspace",
        "model",
        "is_offered",
        "position",
        time_column(AgentPreset, "updated_at"),
    )
    list_display_links = ("shown_name", "name")
    list_editable = ("is_offered", "position")
    search_fields = ("name", "title", "model")
    ordering = ("position", "name")
    list_per_page = 50
    list_select_related = ("workspace",)
    fieldsets = (
        (
            None,
            {
                "description": _(
                    "New sessions use what is saved here. Existing sessions keep their own copy, so "
                    "changing or deleting an agent doesn’t affect them."
                ),
                "fields": CONFIGURED,
            },
        ),
        (_("Approvals"), {"fields": ("deny", "ask", "allow")}),
        (_("In the list"), {"fields": IN_LIST}),
    )

    @admin.display(description=_("title"), ordering="title")
    def shown_name(self, preset: AgentPreset) -> str:
        return str(preset)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentPreset]:
        """Return the agents made by staff and those that members share with a workspace, but no private ones."""
        return super().get_queryset(request).filter(Q(workspace=None) | Q(is_shared=True))

    def save_model(self, request: HttpRequest, obj: AgentPreset, form: Any, change: bool) -> None:
        """Save a preset with a new revision. For a workspace's agent, also log the change."""
        if obj.workspace_id and isinstance(request.user, User):
            members_agents.save_for_staff(author=request.user, row=obj)
        else:
            obj.revision += 1
            super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: AgentPreset) -> None:
        if obj.workspace_id and isinstance(request.user, User):
            members_agents.delete_for_staff(author=request.user, row=obj)
        else:
            super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AgentPreset]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> type[ListForm]:
        return ListForm

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return initial_values(request.GET.get("like", ""))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, and the presets of the configuration file as (name, title, is overridden by a row)."""
        names = set(AgentPreset.objects.filter(workspace=None).values_list("name", flat=True))
        from_file = [(preset.name, preset.title, preset.name in names) for preset in registry().presets()]
        return super().changelist_view(request, {"from_file": from_file, **(extra_context or {})})
