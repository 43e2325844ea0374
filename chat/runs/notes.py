"""Notes that tell the model how to go on, with what people read in their place."""

from __future__ import annotations

from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.messages import Json
from chat.runs.sanitize import sanitize_json

CONTINUE_NOTE = _("Your last message was cut off. Continue exactly where it ended, without repeating anything.")


def continue_note(name: str) -> Json:
    """Return the columns of a note that lets the model continue its answer, as a user with this name asked."""
    return note(CONTINUE_NOTE, _("{name} let the agent continue.", name=name))


def note(text: str, shown: TranslatableText | None = None) -> Json:
    """Return the columns of a note to the model. People read `shown` in its place if there is one."""
    more = translatable(text)
    if more and shown is not None:
        more["provider_data"]["words"]["shown"] = sanitize_json(shown.to_json())
    return {"type": "text", "role": "system", "text": str(text), **more}


def translatable(text: str) -> Json:
    """Store a text's translatable parts, so that users get it in their own language (UI-13)."""
    return {"provider_data": {"words": sanitize_json(text.to_json())}} if isinstance(text, TranslatableText) else {}
