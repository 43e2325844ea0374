"""The columns of rows that a turn inserts, for all reducers."""

from __future__ import annotations

from agents.errors import AgentError
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.messages import Json, Source
from agents.safe_text import clean
from agents.sources import MAX_SOURCES, is_source_address
from chat.runs.changes import Change, InsertMessage
from chat.runs.sanitize import sanitize_json
from chat.runs.turn_state import Now, TurnState

Reduced = tuple[TurnState, list[Change]]

CONTINUE_NOTE = _("Your last message was cut off. Continue exactly where it ended, without repeating anything.")


def milliseconds(since: float, now: Now) -> int:
    """Return the milliseconds since a monotonic time in seconds, at least 0."""
    return max(0, round((now.mono - since) * 1000))


def agent_columns(state: TurnState, now: Now, **fields: object) -> Json:
    """Return the common columns of all rows of the turn's agent, together with `fields`."""
    return {
        "role": "assistant",
        "turn_id": state.turn_id,
        "response_id": state.response_id,
        "mode": state.mode,
        "agent_id": state.agent_id,
        **({"sender": state.sender} if state.sender else {}),
        "model": state.model,
        "provider": state.provider,
        "timestamp": now.wall,
        **fields,
    }


def insert_note(state: TurnState, text: str, now: Now, shown: TranslatableText | None = None) -> InsertMessage:
    """Return the insertion of a note to the model. If `shown` is given, users see it in place of the note."""
    fields = {"turn_id": state.turn_id, "mode": state.mode, "timestamp": now.wall, **note(text, shown)}
    return InsertMessage(now.message_id(), "message_updated", fields)


def continue_note(name: str) -> Json:
    """Return the columns of a note that makes the model continue its answer. `name` is the user who asked for it."""
    return note(CONTINUE_NOTE, _("{name} let the agent continue.", name=name))


def note(text: str, shown: TranslatableText | None = None) -> Json:
    """Return the columns of a note to the model. If `shown` is given, users see it in place of the note."""
    more = _translatable(text)
    if more and shown is not None:
        more["provider_data"]["words"]["shown"] = sanitize_json(shown.to_json())
    return {"type": "text", "role": "system", "text": str(text), **more}


def _translatable(text: str) -> Json:
    """Return the columns with a text's template and values, so that users get it in their language (UI-13)."""
    return {"provider_data": {"words": sanitize_json(text.to_json())}} if isinstance(text, TranslatableText) else {}


def insert_error(state: TurnState, error: AgentError, now: Now, **more: object) -> InsertMessage:
    """Return the insertion of an error row with the error's code and remedy (RUN-10)."""
    text = error.message
    data = {**_translatable(text).get("provider_data", {}), "error": {"code": error.code, "remedy": error.remedy}}
    fields = agent_columns(state, now, type="error", status="failed", text=clean(text), provider_data=data, **more)
    return InsertMessage(now.message_id(), "error", fields)


def bounded_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the last MAX_SOURCES sources, without those whose address is invalid."""
    return tuple(source for source in sources if is_source_address(source.url))[-MAX_SOURCES:]
