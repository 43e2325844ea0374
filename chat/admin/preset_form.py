"""The form of an agent preset: models and tools by choice, opening prompts one per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.toolbox import TOOLBOX
from chat.agents_setup import registry
from chat.commands import LONGEST_PROMPT
from chat.errors import Invalid
from chat.models import AgentPreset
from chat.queries import presets
from chat.rendering.text.formatting import EFFORT_LEVELS

if TYPE_CHECKING:
    Form = forms.ModelForm[AgentPreset]
else:
    Form = forms.ModelForm

LONGEST_OPENING = 500
MOST_OPENINGS = 12
HELP = {
    "name": _("Letters, digits, dots, - and _. Overrides the agent of the same name in the configuration file."),
    "title": _("The name that people see. If empty, the name above."),
    "thinking_budget": _("In tokens, for models that support it. Empty: the model’s default."),
    "max_rounds": _("How often a turn can use tools before the model sums up."),
    "is_offered": _("Whether new sessions can use it."),
    "position": _("Agents of the configuration file are at place 0, in their order."),
}


class Suggesting(forms.TextInput):
    """A field for any text, which suggests the models that are known now."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        known = ((f"{choice.provider}/{choice.model}",) for choice in registry().known_models() if choice.model)
        options = format_html_join("", '<option value="{}"></option>', known)
        field = super().render(name, value, {**(attrs or {}), "list": f"{name}-known"}, renderer)
        return format_html('{}<datalist id="{}-known">{}</datalist>', field, name, options)


class Lines(forms.CharField):
    """A list of texts, one per line; empty lines do not count."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(self.prepare_value(initial)) != self.to_python(data))

    def run_validators(self, value: Any) -> None:
        super().run_validators("\n".join(value))


class Tools(forms.MultipleChoiceField):
    """Some of the tools; the form says which ones there are when it is asked for another one."""

    widget = forms.CheckboxSelectMultiple

    def valid_value(self, value: Any) -> bool:
        return True


class PresetForm(Form):
    """What a new session starts with."""

    model = forms.CharField(
        label=_("Model"),
        required=False,
        max_length=281,
        widget=Suggesting({"class": "vTextField"}),
        help_text=_("As provider/model. Empty: the default model."),
    )
    system_prompt = forms.CharField(
        label=_("System prompt"),
        required=False,
        strip=False,
        max_length=LONGEST_PROMPT,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 14}),
    )
    tools = Tools(
        label=_("Tools"),
        required=False,
        choices=lambda: [(name, f"{name}: {_summary(tool.description)}") for name, tool in TOOLBOX.items()],
    )
    prompts = Lines(
        label=_("Opening prompts"),
        required=False,
        widget=forms.Textarea({"class": "vLargeTextField", "rows": 5}),
        help_text=_("One per line. They are offered in an empty session; home shows the first four."),
    )

    reasoning_effort = forms.ChoiceField(
        label=_("Reasoning effort"), required=False, choices=[("", _("The model’s default")), *EFFORT_LEVELS.items()]
    )
    allowed_hosts = Lines(
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
        help_texts = HELP

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        with _in_words():
            presets.check_model(model)
        return model

    def clean_tools(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["tools"]
        with _in_words():
            presets.check_tools(chosen)
        return chosen

    def clean_prompts(self) -> list[str]:
        prompts: list[str] = self.cleaned_data["prompts"]
        if len(prompts) > MOST_OPENINGS or any(len(line) > LONGEST_OPENING for line in prompts):
            words = _("At most %(count)s prompts of at most %(length)s characters each.")
            raise forms.ValidationError(words % {"count": MOST_OPENINGS, "length": LONGEST_OPENING})
        return prompts

    def clean_allowed_hosts(self) -> list[str]:
        with _in_words():
            return presets.checked_hosts(self.cleaned_data["allowed_hosts"])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            with _in_words():
                presets.check_reasoning(values["model"], values["reasoning_effort"], values["thinking_budget"])
        return values


class RowForm(Form):
    """What can be changed in the list; each field says of which agent it is."""

    class Meta:
        model = AgentPreset
        fields = ("is_offered", "position")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = f"{self.instance} · {field.label}"


def copied(name: str) -> dict[str, Any]:
    """What the form of a new preset begins with: all that the one of that name, or the default one, brings."""
    taken, default = presets.preset(name), registry().choice("")
    chosen = (taken.provider, taken.model)
    values = {
        "model": "" if chosen == (default.provider, default.model) else "/".join(chosen),
        "system_prompt": taken.system_prompt,
        "reasoning_effort": taken.reasoning.effort,
        "thinking_budget": taken.reasoning.budget,
        "tools": list(taken.tools),
        "allowed_hosts": list(taken.allowed_hosts),
        "max_rounds": taken.max_rounds,
    }
    return {**values, **({"name": taken.name, "title": taken.title, "prompts": list(taken.prompts)} if name else {})}


def from_file(names: Iterable[str]) -> list[tuple[str, str, bool]]:
    """The agents of the configuration file: name, title, and whether a row stands before it."""
    rows = set(names)
    return [(each.name, each.title, each.name in rows) for each in registry().presets()]


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except Invalid as refused:
        raise forms.ValidationError(refused.message) from refused


def _summary(description: str) -> str:
    return " ".join(description.strip().split("\n\n")[0].split())
