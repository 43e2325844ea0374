"""The rows that a turn inserts, as columns; what the reducers of responses and of tools share."""

from __future__ import annotations

from agents.errors import AgentError
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.messages import Json, Source
from agents.safe_text import clean
from agents.sources import MOST_SOURCES, is_source_address
from chat.runs.changes import Change, InsertMessage
from chat.runs.sanitize import sanitize_json
from chat.runs.turn_state import Now, TurnState

Reduced = tuple[TurnState, list[Change]]

CONTINUE_NOTE = _("Your last message was cut off. Continue exactly where it ended, without repeating anything.")


def milliseconds(since: float, now: Now) -> int:
    """Return the time since a monotonic instant, at least 0."""
    return max(0, round((now.mono - since) * 1000))


def agent_columns(state: TurnState, now: Now, **fields: object) -> Json:
    """Return the columns that all rows of the turn's agent have, and `fields`."""
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
    """Insert a note for the model. People see `shown` in its place if there is one."""
    fields = {"turn_id": state.turn_id, "mode": state.mode, "timestamp": now.wall, **note(text, shown)}
    return InsertMessage(now.message_id(), "message_updated", fields)


def continue_note(name: str) -> Json:
    """Return the columns of a note that lets the model continue its answer, as a user with this name asked."""
    return note(CONTINUE_NOTE, _("{name} let the agent continue.", name=name))


def note(text: str, shown: TranslatableText | None = None) -> Json:
    """Return the columns of a note to the model. People read `shown` in its place if there is one."""
    more = _translatable(text)
    if more and shown is not None:
        more["provider_data"]["words"]["shown"] = sanitize_json(shown.to_json())
    return {"type": "text", "role": "system", "text": str(text), **more}


def _translatable(text: str) -> Json:
    """Store a text's translatable parts, so that users get it in their own language (UI-13)."""
    return {"provider_data": {"words": sanitize_json(text.to_json())}} if isinstance(text, TranslatableText) else {}


def insert_error(state: TurnState, error: AgentError, now: Now, **more: object) -> InsertMessage:
    """Insert an error row with the error's code and remedy (RUN-10)."""
    text = error.words
    data = {**_translatable(text).get("provider_data", {}), "error": {"code": error.code, "remedy": error.remedy}}
    fields = agent_columns(state, now, type="error", status="failed", text=clean(text), provider_data=data, **more)
    return InsertMessage(now.message_id(), "error", fields)


def bounded_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the last sources that a turn keeps, without those that have no address."""
    return tuple(source for source in sources if is_source_address(source.url))[-MOST_SOURCES:]
