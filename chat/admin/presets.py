"""Agent presets in the admin: the list, and the form of one preset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from agents.config import PromptIcon
from agents.registry import Prompt
from agents.toolbox import TOOLBOX
from chat.admin.base import BoundedSearch, time_column
from chat.agents_setup import registry
from chat.commands import LONGEST_PROMPT
from chat.errors import Invalid
from chat.models import AgentPreset
from chat.queries import presets
from chat.rendering.text.formatting import EFFORT_LEVELS

if TYPE_CHECKING:
    Form = forms.ModelForm[AgentPreset]
    Admin = admin.ModelAdmin[AgentPreset]
else:
    Form = forms.ModelForm
    Admin = admin.ModelAdmin

MAX_PROMPT_LENGTH = 500
MAX_PROMPTS = 12
ICONS: tuple[PromptIcon, ...] = get_args(PromptIcon)
HELP_TEXTS = {
    "name": _("Letters, digits, dots, - and _. Overrides the agent of the same name in the configuration file."),
    "title": _("The name that people see. If empty, the name above."),
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
    """A list of texts, one per line. Empty lines are ignored."""

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
    """Opening prompts, one per line: the text, or `icon | heading | text`."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return super().prepare_value([_line(each) for each in presets.prompts_of(list(value))])

    def clean(self, value: Any) -> list[Prompt]:
        return [_prompt(line) for line in super().clean(value)]


def _line(prompt: Prompt) -> str:
    return str(prompt) if isinstance(prompt.to_json(), str) else f"{prompt.icon} | {prompt.heading} | {prompt}"


def _prompt(line: str) -> Prompt:
    """Read a line. Raises ValidationError for an unknown icon."""
    *shown, text = (part.strip() for part in line.split(" | ", 2))
    if len(shown) < 2:
        return Prompt(line)
    icon, heading = shown
    if icon not in ICONS:
        message = _("“%(name)s” is not an icon. Write “icon | heading | text”, with one of the icons below.")
        raise forms.ValidationError(message % {"name": icon})
    return Prompt(text, heading, icon)


class ToolsField(forms.MultipleChoiceField):
    """A choice of tools. It accepts unknown names, for which `clean_tools` has the better error."""

    widget = forms.CheckboxSelectMultiple

    def valid_value(self, value: Any) -> bool:
        return True


class PresetForm(Form):
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
        max_length=LONGEST_PROMPT,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 14}),
    )
    tools = ToolsField(
        label=_("Tools"),
        required=False,
        choices=lambda: [
            (name, f"{name}: {_first_paragraph(TOOLBOX[name].description)}" if name in TOOLBOX else name)
            for name in presets.tool_names()
        ],
    )
    prompts = PromptsField(
        label=_("Opening prompts"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 5}),
        help_text=format_lazy(
            "{} {}: {}",
            _(
                "One per line. An empty session offers them; home shows the first four. "
                "For a heading and an icon, write “icon | heading | text”."
            ),
            _("Icons"),
            ", ".join(ICONS),
        ),
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

    class Meta:
        model = AgentPreset
        fields = (
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
            "is_offered",
            "position",
        )
        help_texts = HELP_TEXTS

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        with _as_form_error():
            presets.check_model(model)
        return model

    def clean_tools(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["tools"]
        with _as_form_error():
            presets.check_tools(chosen)
        return chosen

    def clean_prompts(self) -> list[Any]:
        prompts: list[Prompt] = self.cleaned_data["prompts"]
        if len(prompts) > MAX_PROMPTS or any(len(each) + len(each.heading) > MAX_PROMPT_LENGTH for each in prompts):
            message = _("At most %(count)s prompts of at most %(length)s characters each.")
            raise forms.ValidationError(message % {"count": MAX_PROMPTS, "length": MAX_PROMPT_LENGTH})
        return presets.stored_prompts(prompts)

    def clean_allowed_hosts(self) -> list[str]:
        with _as_form_error():
            return presets.checked_hosts(self.cleaned_data["allowed_hosts"])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            with _as_form_error():
                presets.check_reasoning(values["model"], values["reasoning_effort"], values["thinking_budget"])
        return values


class ListForm(Form):
    """The form of one row of the list. The labels of its fields name the preset."""

    class Meta:
        model = AgentPreset
        fields = ("is_offered", "position")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = f"{self.instance} · {field.label}"


def initial_values(name: str) -> dict[str, Any]:
    """Return the initial values for a new preset: a copy of the preset with this name, or of the default preset."""
    source, default = presets.preset(name), registry().choice("")
    model = (source.provider, source.model)
    values = {
        "model": "" if model == (default.provider, default.model) else "/".join(model),
        "system_prompt": source.system_prompt,
        "reasoning_effort": source.reasoning.effort,
        "thinking_budget": source.reasoning.budget,
        "tools": list(source.tools),
        "allowed_hosts": list(source.allowed_hosts),
        "max_rounds": source.max_rounds,
    }
    return {**values, **({"name": source.name, "title": source.title, "prompts": list(source.prompts)} if name else {})}


@contextmanager
def _as_form_error() -> Iterator[None]:
    try:
        yield
    except Invalid as error:
        raise forms.ValidationError(error.message) from error


def _first_paragraph(description: str) -> str:
    return " ".join(description.strip().split("\n\n")[0].split())


@admin.register(AgentPreset)
class PresetAdmin(BoundedSearch, Admin):
    form = PresetForm
    list_display = ("shown_name", "name", "model", "is_offered", "position", time_column(AgentPreset, "updated_at"))
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

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> type[ListForm]:
        return ListForm

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return initial_values(request.GET.get("like", ""))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the presets of the configuration file too: name, title, and whether a row overrides the preset."""
        names = set(AgentPreset.objects.values_list("name", flat=True))
        from_file = [(preset.name, preset.title, preset.name in names) for preset in registry().presets()]
        return super().changelist_view(request, {"from_file": from_file, **(extra_context or {})})
