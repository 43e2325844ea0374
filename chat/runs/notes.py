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


def note(text: TranslatableText, shown: TranslatableText) -> Json:
    """Return the columns of a note to the model. People read `shown`."""
    words = sanitize_json({**text.to_json(), "shown": shown.to_json()})
    return {"type": "text", "role": "system", "text": str(text), "provider_data": {"words": words}}
