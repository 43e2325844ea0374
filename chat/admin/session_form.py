"""The form for a session's title, agent, model, configuration and system prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from agents.reasoning import MAX_BUDGET, Reasoning
from chat.admin import audit_log
from chat.admin.fields import Conflict, LongTextField, TextField, normalize_newlines
from chat.agents_setup import registry
from chat.errors import ServiceError
from chat.models import Session, User
from chat.queries import presets
from chat.rendering.text.formatting import EFFORT_LEVELS
from chat.services.people import sharing
from chat.services.sessions import lifecycle
from chat.services.transaction import SessionTransaction

# The names of the fields in the log. The log stores them in English and translates them for display.
LOGGED = {
    "title": gettext_noop("Title"),
    "workspace_role": gettext_noop("Workspace access"),
    "agent": gettext_noop("Agent"),
    "model": gettext_noop("Model"),
    "mode": gettext_noop("Mode"),
    "tools": gettext_noop("Tools"),
    "max_rounds": gettext_noop("Tool rounds"),
    "reasoning_effort": gettext_noop("Reasoning effort"),
    "thinking_budget": gettext_noop("Thinking budget"),
    "system_prompt": gettext_noop("System prompt"),
}


class SessionForm(forms.Form):
    """The form of a session. It also submits the initial value of each field, so that only changed fields are saved."""

    title = TextField(max_length=200, label=gettext_lazy("Title"), show_hidden_initial=True)
    workspace_role = forms.ChoiceField(required=False, label=gettext_lazy("Workspace access"), show_hidden_initial=True)
    agent = forms.ChoiceField(required=False, label=gettext_lazy("Agent"), show_hidden_initial=True)
    model = forms.ChoiceField(required=False, label=gettext_lazy("Model"), show_hidden_initial=True)
    mode = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Mode"),
        help_text=gettext_lazy("chat: no tools; agent: with tools; run: started by a program."),
        choices=[(mode.value, mode.value) for mode in Session.Mode],
        show_hidden_initial=True,
    )
    tools = TextField(
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("Names, separated by commas. Choosing another agent replaces them with its tools."),
        show_hidden_initial=True,
    )
    max_rounds = TextField(max_length=4, label=gettext_lazy("Tool rounds in one turn"), show_hidden_initial=True)
    reasoning_effort = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Reasoning effort"),
        choices=[("", gettext_lazy("The model’s default")), *EFFORT_LEVELS.items()],
        show_hidden_initial=True,
    )
    thinking_budget = TextField(
        max_length=len(str(MAX_BUDGET)),
        label=gettext_lazy("Thinking budget"),
        help_text=gettext_lazy("In tokens, for models that support it. Empty: the model’s default."),
        show_hidden_initial=True,
    )
    system_prompt = LongTextField(
        label=gettext_lazy("System prompt"),
        help_text=gettext_lazy("The model gets it before every answer."),
        show_hidden_initial=True,
    )

    def __init__(
        self,
        session: Session,
        data: Mapping[str, Any] | None = None,
        *,
        is_editable: bool = True,
        with_text: bool = True,
    ) -> None:
        """Set up the fields. Without `with_text`, leave out the title and the system prompt, which users write."""
        super().__init__(data, initial=values_of(session))
        self.session = session
        self._set_choices("workspace_role", _accesses(session))
        self._set_choices("agent", [(each.name, each.title) for each in presets.presets()])
        known = [f"{choice.provider}/{choice.model}" for choice in registry().known_models() if choice.model]
        self._set_choices("model", [(name, name) for name in known])
        for name in ("title", "tools"):
            self.fields[name].widget.attrs.update({"class": "vTextField", "dir": "auto"})
        for name in ("max_rounds", "thinking_budget"):
            self.fields[name].widget.attrs.update({"class": "vIntegerField", "inputmode": "numeric"})
        if not with_text:
            del self.fields["title"], self.fields["system_prompt"]
        for field in self.fields.values():
            field.disabled = not is_editable
        if not with_text or session.caller_session_id:
            # Staff who may not read messages could otherwise open a session to their own workspace and read it there.
            # The access to a subsession is that of the session above it.
            self.fields["workspace_role"].disabled = True

    def _set_choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        """Set the choices of a field, and add the session's present value if it is missing."""
        present = self.initial[name]
        missing = [] if present in dict(choices) else [(present, present or "—")]
        self.fields[name].choices = [*missing, *choices]  # type: ignore[attr-defined]  # all these fields are ChoiceFields


def _accesses(session: Session) -> list[tuple[str, str]]:
    named = {"workspace": session.workspace.name}
    return [
        ("", _("Only people it is shared with")),
        ("viewer", _("Anyone in %(workspace)s can view") % named),
        ("editor", _("Anyone in %(workspace)s can edit") % named),
    ]


def values_of(session: Session) -> dict[str, str]:
    """Return a session's fields as the form's initial values."""
    config, reasoning = presets.agent_copy(session), Reasoning.of(session.config_values)
    return {
        "title": session.title,
        "workspace_role": session.workspace_role,
        "agent": session.agent,
        "model": f"{session.provider}/{session.model}" if session.model else "",
        "mode": session.mode,
        "tools": ", ".join(config.tools),
        "max_rounds": str(config.max_rounds),
        "reasoning_effort": reasoning.effort,
        "thinking_budget": str(reasoning.budget or ""),
        "system_prompt": normalize_newlines(session.system_prompt),
    }


def save(form: SessionForm, author: User) -> list[Conflict]:
    """Save the changed fields of a valid form in one transaction, and return the conflicts.

    Conflicts are fields that another user has changed since the form was opened. If there are any, nothing is saved.
    A ServiceError becomes an error of the form.
    """
    changed = list(form.changed_data)
    try:
        with transaction.atomic():
            present = values_of(SessionTransaction.lock(form.session.pk).session)
            if conflicts := _find_conflicts(form, changed, present):
                return conflicts
            for name in changed:
                _save_field(form, name, author)
            if changed:
                audit_log.log_fields(author, form.session, [LOGGED[name] for name in changed])
    except ServiceError as error:
        form.add_error(None, error.message)
    return []


def with_conflicts(form: SessionForm, conflicts: list[Conflict]) -> SessionForm:
    """Return the form with its input, the conflicts as errors, and the present values as its new initial values.

    If the user saves this form, it overwrites the other user's changes.
    """
    data = form.data.copy()  # type: ignore[attr-defined]  # the data of a submitted form is a QueryDict
    for conflict in conflicts:
        data[f"initial-{conflict.name}"] = conflict.present
    again = SessionForm(form.session, data, with_text="title" in form.fields)
    for conflict in conflicts:
        again.add_error(
            conflict.name, _("This has changed since you opened the form. Save again to replace the saved version.")
        )
    return again


def _find_conflicts(form: SessionForm, changed: list[str], present: dict[str, str]) -> list[Conflict]:
    conflicts = []
    for name in changed:
        initial = form.data.get(f"initial-{name}")
        if initial is not None and present[name] not in (normalize_newlines(initial), form.cleaned_data[name]):
            conflicts.append(Conflict(name, str(form.fields[name].label), present[name]))
    return conflicts


def _save_field(form: SessionForm, name: str, author: User) -> None:
    value = form.cleaned_data[name]
    target: dict[str, Any] = {"session": form.session, "author": author}
    match name:
        case "title":
            lifecycle.rename(**target, title=value)
        case "workspace_role":
            sharing.open_to_workspace(**target, role=value)
        case "agent":
            lifecycle.set_agent(**target, agent=value)
        case "model":
            provider, _slash, model = value.partition("/")
            lifecycle.set_model(**target, provider=provider, model=model)
        case "mode":
            lifecycle.configure(**target, mode=value)
        case "tools":
            names = (name.strip() for name in value.split(","))
            lifecycle.configure(**target, tools=[name for name in names if name])
        case "max_rounds":
            lifecycle.configure(**target, max_rounds=_parse_number(value) or 0)
        case "reasoning_effort":
            lifecycle.configure(**target, reasoning_effort=value)
        case "thinking_budget":
            # The service rejects -1, as it does all numbers out of range. 0 selects the model's default.
            budget = _parse_number(value) if value.strip() else 0
            lifecycle.configure(**target, thinking_budget=-1 if budget is None else budget)
        case "system_prompt":
            lifecycle.set_system_prompt(**target, system_prompt=value)


def _parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
