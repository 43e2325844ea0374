"""The forms for messages, one fit for each type, and what saving them asks of the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from chat.admin.fields import ArgumentsField, BigField, lines, pretty
from chat.models import ChatMessage, MessageRole, MessageType, User
from chat.services.messages import editing
from chat.services.messages.editing import WORDS

ROLES = [
    (MessageRole.USER.value, _("User")),
    (MessageRole.ASSISTANT.value, _("Assistant")),
    (MessageRole.SYSTEM.value, _("System")),
]


class MessageForm(forms.Form):
    """It carries the message's revision that its writer has before them."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    # As the log names the fields.
    logged = {  # noqa: RUF012  # of the class, as Django's own
        "text": gettext_noop("Text"),
        "arguments": gettext_noop("Arguments"),
        "result": gettext_noop("Result"),
        "is_error": gettext_noop("Failed"),
    }

    def save(self, row: ChatMessage, author: User) -> None:
        """Save through the services. Raises ServiceError: as "stale", with what stands there as `current`."""
        raise NotImplementedError

    def present(self, current: Any) -> dict[str, str]:
        """What stands there, as the boxes show it, by their names."""
        raise NotImplementedError


class TextForm(MessageForm):
    text = BigField(rows=16, label=_("Text"))

    def save(self, row: ChatMessage, author: User) -> None:
        editing.edit(
            session=row.session,
            author=author,
            message_id=row.pk,
            text=self.cleaned_data["text"],
            seen=self.cleaned_data["revision"],
            as_staff=True,
        )

    def present(self, current: Any) -> dict[str, str]:
        return {"text": lines(str(current))}


class ToolForm(MessageForm):
    arguments = ArgumentsField(label=_("Arguments"), help_text=_("A JSON object."))
    result = BigField(label=_("Result"), help_text=_("The result that the model gets."))
    is_error = forms.BooleanField(label=_("The call failed"), required=False)

    def save(self, row: ChatMessage, author: User) -> None:
        wanted = {name: self.cleaned_data[name] for name in ("arguments", "result", "is_error")}
        seen = self.cleaned_data["revision"]
        editing.edit_tool_call(session=row.session, author=author, message_id=row.pk, seen=seen, **wanted)

    def present(self, current: Any) -> dict[str, str]:
        return {"arguments": pretty(current["arguments"]), "result": lines(current["result"])}


class AddForm(forms.Form):
    """A message of one's own after another one."""

    role = forms.ChoiceField(
        choices=ROLES,
        label=_("Author"),
        help_text=_(
            "A user message is sent in your name. A system message before all others replaces the system prompt."
        ),
    )
    text = BigField(rows=12, label=_("Text"))


def form_of(row: ChatMessage) -> type[MessageForm] | None:
    """The form that fits a message; None for what cannot be edited."""
    if row.type == MessageType.TOOL_GROUP:
        return ToolForm
    return TextForm if row.type in WORDS else None


def values_of(row: ChatMessage) -> dict[str, Any]:
    """A message as its form shows it."""
    return {
        "revision": row.revision,
        "text": lines(row.text),
        "arguments": pretty(row.arguments),
        "result": lines(row.result),
        "is_error": row.is_error,
    }
