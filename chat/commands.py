"""What clients ask for: commands as values, and the one place that reads them from the wire."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

Id = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_]*$")]
# Longer than any text that may be sent, so that a text is refused for its length by name.
LONGEST_FRAME = 16 * 1024 * 1024
# Every viewer gets it with every look at the session.
LONGEST_PROMPT = 200_000
MOST_KNOWN = 200
# What went wrong is told in so many characters; it may repeat what was sent.
LONGEST_EXPLANATION = 300


class Malformed(ValueError):  # noqa: N818  # named for what the frame is
    """The frame is not a command; the text says why. `ref` is the frame's own, where it had one."""

    def __init__(self, message: str, ref: str | None = None) -> None:
        super().__init__(message)
        self.ref = ref


class Command(BaseModel):
    """Any command. `ref` comes back with the answer."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    ref: Annotated[str, Field(max_length=200)] | None = None


class Known(BaseModel):
    """How much of a streaming message a client has: characters (events), or frozen blocks at `rev` (page)."""

    length: Annotated[int, Field(ge=0)] = 0
    blocks: Annotated[int, Field(ge=0)] = 0
    rev: Annotated[int, Field(ge=0)] = 0


class Sync(Command):
    type: Literal["sync"]
    since: Annotated[int, Field(ge=0, lt=2**62)] = 0
    have: Annotated[dict[Id, Known | int], Field(max_length=MOST_KNOWN)] = {}


class Ping(Command):
    type: Literal["ping"]


class SendMessage(Command):
    type: Literal["send"]
    text: str
    key: Annotated[str, Field(max_length=100, pattern=r"^[^\x00]+$")] | None = None


class EditQueued(Command):
    type: Literal["edit_queued"]
    id: Id
    text: str


class Withdraw(Command):
    type: Literal["withdraw"]
    id: Id


class CancelRun(Command):
    type: Literal["cancel"]


class Retry(Command):
    type: Literal["retry"]
    id: Id


class SetModel(Command):
    type: Literal["set_model"]
    provider: Annotated[str, Field(max_length=80)]
    model: Annotated[str, Field(max_length=200)]


class Rename(Command):
    type: Literal["rename"]
    title: str


class SetSystemPrompt(Command):
    type: Literal["set_system_prompt"]
    system_prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]


# What is asked of the session; the other commands are about the socket itself.
Request = SendMessage | EditQueued | Withdraw | CancelRun | Retry | SetModel | Rename | SetSystemPrompt
AnyCommand = Sync | Ping | Request
_adapter: TypeAdapter[AnyCommand] = TypeAdapter(Annotated[AnyCommand, Field(discriminator="type")])


def parse(frame: str) -> AnyCommand:
    """Read a frame. Raises Malformed: no JSON, no object, an unknown type, missing or wrong fields."""
    try:
        data = json.loads(frame)
    except (ValueError, RecursionError):
        raise Malformed("The frame is not JSON.") from None
    if not isinstance(data, dict):
        raise Malformed("The frame is not a JSON object.")
    ref = _ref(data)
    try:
        return _adapter.validate_python(data)
    except ValidationError as error:
        raise Malformed(_explain(error), ref) from None


def _ref(data: dict[str, Any]) -> str | None:
    ref = data.get("ref")
    return ref if isinstance(ref, str) and len(ref) <= 200 else None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in _TYPES) or "type"
    return f"{place}: {first['msg']}"[:LONGEST_EXPLANATION]


_TYPES = {
    "sync",
    "ping",
    "send",
    "edit_queued",
    "withdraw",
    "cancel",
    "retry",
    "set_model",
    "rename",
    "set_system_prompt",
}
