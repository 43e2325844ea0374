"""The schemas of a session's events, for the API's description: made from the types in which the events are sent."""

from __future__ import annotations

from typing import Any

from pydantic import Field, TypeAdapter

from agents.messages import Json
from chat.api.schemas import MessageOut, SessionState, TokenUsage
from chat.live.event_types import DESCRIBED_BY, Event

SCHEMAS = "#/components/schemas/"
EVENT = "Event"


class EventRow(MessageOut):
    """The message that an event is about. `text` is left out where the event itself has it, or its length."""

    text: str = ""


class SyncedMessage(MessageOut):
    """A message in `changes`. Keep what you have of its text up to `offset`, and append `text`."""

    offset: int = Field(
        description="Greater than 0 only on sockets, for a `streaming` message of which you have a part"
    )


def event_schemas() -> Json:
    """Return the schemas of all events by their names, `Event`, which is any of them, and the objects in them."""
    described = TypeAdapter[Any](Event).json_schema(ref_template=SCHEMAS + "{model}")
    schemas: Json = described.pop("$defs")
    for model in (MessageOut, EventRow, SyncedMessage, SessionState, TokenUsage):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    del schemas["EventRow"]["properties"]["text"]["default"]
    schemas[EVENT] = {"description": "An event of a session; `type` says which.", **described}
    _refer(schemas)
    return schemas


def _refer(value: Any) -> None:
    """Replace the names of schemas by references."""
    if isinstance(value, dict):
        if (name := value.pop(DESCRIBED_BY, None)) is not None:
            value.clear()
            value["$ref"] = SCHEMAS + name
        for each in value.values():
            _refer(each)
    elif isinstance(value, list):
        for each in value:
            _refer(each)
