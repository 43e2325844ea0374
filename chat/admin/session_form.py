"""What staff may change of a session itself: its title, agent, model, configuration and system prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from agents.reasoning import LARGEST_BUDGET, Reasoning
from chat.admin import audit_log
from chat.admin.fields import BigField, Clash, WrittenField, lines
from chat.agents_setup import registry
from chat.errors import ServiceError
from chat.models import Session, User
from chat.queries import presets
from chat.rendering.text.formatting import EFFORT_LEVELS
from chat.services.sessions import lifecycle
from chat.services.transaction import SessionTransaction

# What the log calls the fields; it is translated where it is shown.
LOGGED = {
    "title": gettext_noop("Title"),
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
    """It carries what stood in each field when it was opened: only what was changed in it is saved."""

    title = WrittenField(max_length=200, label=gettext_lazy("Title"), show_hidden_initial=True)
    agent = forms.ChoiceField(required=False, label=gettext_lazy("Agent"), show_hidden_initial=True)
    model = forms.ChoiceField(required=False, label=gettext_lazy("Model"), show_hidden_initial=True)
    mode = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Mode"),
        help_text=gettext_lazy("chat: no tools; agent: with tools; run: started by a program."),
        choices=[(mode.value, mode.value) for mode in Session.Mode],
        show_hidden_initial=True,
    )
    tools = WrittenField(
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("Names, separated by commas. Choosing another agent replaces them with its tools."),
        show_hidden_initial=True,
    )
    max_rounds = WrittenField(max_length=4, label=gettext_lazy("Tool rounds in one turn"), show_hidden_initial=True)
    reasoning_effort = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Reasoning effort"),
        choices=[("", gettext_lazy("The model’s default")), *EFFORT_LEVELS.items()],
        show_hidden_initial=True,
    )
    thinking_budget = WrittenField(
        max_length=len(str(LARGEST_BUDGET)),
        label=gettext_lazy("Thinking budget"),
        help_text=gettext_lazy("In tokens, for models that support it. Empty: the model’s default."),
        show_hidden_initial=True,
    )
    system_prompt = BigField(
        label=gettext_lazy("System prompt"),
        help_text=gettext_lazy("Instructions that the model gets before every answer."),
        show_hidden_initial=True,
    )

    def __init__(
        self,
        session: Session,
        data: Mapping[str, Any] | None = None,
        *,
        is_open: bool = True,
        with_text: bool = True,
    ) -> None:
        """`with_text` is off for staff who may not read what people write, such as titles and system prompts."""
        super().__init__(data, initial=values_of(session))
        self.session = session
        self._offer("agent", [(each.name, each.title) for each in presets.presets()])
        known = [f"{choice.provider}/{choice.model}" for choice in registry().known_models() if choice.model]
        self._offer("model", [(name, name) for name in known])
        for name in ("title", "tools"):
            self.fields[name].widget.attrs.update({"class": "vTextField", "dir": "auto"})
        for name in ("max_rounds", "thinking_budget"):
            self.fields[name].widget.attrs.update({"class": "vIntegerField", "inputmode": "numeric"})
        if not with_text:
            del self.fields["title"], self.fields["system_prompt"]
        for field in self.fields.values():
            field.disabled = not is_open

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        """Offer what is on offer, and what the session has."""
        present = self.initial[name]
        missing = [] if present in dict(choices) else [(present, present or "—")]
        self.fields[name].choices = [*missing, *choices]  # type: ignore[attr-defined]  # it is a field of choices


def values_of(session: Session) -> dict[str, str]:
    """A session's fields as the form has them."""
    config, reasoning = presets.kept(session), Reasoning.of(session.config_values)
    return {
        "title": session.title,
        "agent": session.agent,
        "model": f"{session.provider}/{session.model}" if session.model else "",
        "mode": session.mode,
        "tools": ", ".join(config.tools),
        "max_rounds": str(config.max_rounds),
        "reasoning_effort": reasoning.effort,
        "thinking_budget": str(reasoning.budget or ""),
        "system_prompt": lines(session.system_prompt),
    }


def save(form: SessionForm, author: User) -> list[Clash]:
    """Save what was changed in a valid form, all of it or nothing.

    Returns the fields in which somebody else was quicker: then nothing is saved. What a service refuses becomes an
    error of the form.
    """
    changed = list(form.changed_data)
    try:
        with transaction.atomic():
            present = values_of(SessionTransaction.lock(form.session.pk).session)
            if clashes := _clashes(form, changed, present):
                return clashes
            for name in changed:
                _change(form, name, author)
            if changed:
                audit_log.note_fields(author, form.session, [LOGGED[name] for name in changed])
    except ServiceError as refusal:
        form.add_error(None, refusal.message)
    return []


def knowing(form: SessionForm, clashes: list[Clash]) -> SessionForm:
    """The same form with what was typed in it, for somebody who knows now what stands there."""
    data = form.data.copy()  # type: ignore[attr-defined]  # a form that was sent has a QueryDict
    for clash in clashes:
        data[f"initial-{clash.name}"] = clash.present
    again = SessionForm(form.session, data, with_text="title" in form.fields)
    for clash in clashes:
        again.add_error(
            clash.name, _("Someone else changed this while you were editing. Save again to replace their version.")
        )
    return again


def _clashes(form: SessionForm, changed: list[str], present: dict[str, str]) -> list[Clash]:
    found = []
    for name in changed:
        seen = form.data.get(f"initial-{name}")
        if seen is not None and present[name] not in (lines(seen), form.cleaned_data[name]):
            found.append(Clash(name, str(form.fields[name].label), present[name]))
    return found


def _change(form: SessionForm, name: str, author: User) -> None:
    wanted = form.cleaned_data[name]
    about: dict[str, Any] = {"session": form.session, "author": author}
    match name:
        case "title":
            lifecycle.rename(**about, title=wanted)
        case "agent":
            lifecycle.set_agent(**about, agent=wanted)
        case "model":
            provider, _slash, model = wanted.partition("/")
            lifecycle.set_model(**about, provider=provider, model=model)
        case "mode":
            lifecycle.configure(**about, mode=wanted)
        case "tools":
            names = (name.strip() for name in wanted.split(","))
            lifecycle.configure(**about, tools=[name for name in names if name])
        case "max_rounds":
            lifecycle.configure(**about, max_rounds=_number(wanted) or 0)
        case "reasoning_effort":
            lifecycle.configure(**about, reasoning_effort=wanted)
        case "thinking_budget":
            # The service refuses -1, as it does any number that is no budget; 0 is the model's default.
            budget = _number(wanted) if wanted.strip() else 0
            lifecycle.configure(**about, thinking_budget=-1 if budget is None else budget)
        case "system_prompt":
            lifecycle.set_system_prompt(**about, system_prompt=wanted)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
