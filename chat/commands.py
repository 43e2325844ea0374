"""What clients ask for: commands as values, and the one place that reads them from the wire."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agents.reasoning import LARGEST_BUDGET
from chat import long_json
from chat.models import SessionRole

Id = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_]*$")]
# A client's own, by which a request that is repeated is known.
Key = Annotated[str, Field(max_length=100, pattern=r"^[^\x00]+$")]
# A revision or a place, as a column can hold it.
Number = Annotated[int, Field(ge=0, lt=2**62)]
# Every viewer gets it with every look at the session.
LONGEST_PROMPT = 200_000
MOST_KNOWN = 200
# JSON in UTF-8 takes up to six bytes for a character, for example \u0001.
BYTES_PER_CHARACTER = 6
# The other fields of a command.
FRAME_OVERHEAD = 256 * 1024
MOST_TOOLS = 200
MOST_ROUNDS = 1000
ToolName = Annotated[str, Field(max_length=200)]
EffortName = Annotated[str, Field(max_length=10)]
# The longest error message, in characters. It can repeat what was sent.
LONGEST_EXPLANATION = 300


def longest_frame() -> int:
    """Return the size in bytes of the longest frame that a client may send: the longest message fits."""
    longest_text: int = max(settings.MAX_MESSAGE_CHARS, LONGEST_PROMPT)
    return BYTES_PER_CHARACTER * longest_text + FRAME_OVERHEAD


class Malformed(ValueError):  # named for what the frame is
    """The frame is not a command; the text says why. `ref` is the frame's own, where it had one."""

    def __init__(self, message: str, ref: str | None = None) -> None:
        super().__init__(message)
        self.ref = ref


class Command(BaseModel):
    """Any command. `ref` comes back with the answer; `needs` is the role in the session that it takes."""

    needs: ClassVar[SessionRole] = SessionRole.EDITOR

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    ref: Annotated[str, Field(max_length=200)] | None = None


class Known(BaseModel):
    """How much of a streaming message a client has: characters (events), or frozen blocks at `rev` (page)."""

    length: Annotated[int, Field(ge=0)] = 0
    blocks: Annotated[int, Field(ge=0)] = 0
    rev: Annotated[int, Field(ge=0)] = 0


class Sync(Command):
    type: Literal["sync"]
    since: Number = 0
    have: Annotated[dict[Id, Known | int], Field(max_length=MOST_KNOWN)] = {}


class Ping(Command):
    type: Literal["ping"]


class SendMessage(Command):
    type: Literal["send"]
    text: str
    key: Key | None = None
    attachments: Annotated[list[Id], Field(max_length=MOST_KNOWN)] = []


class EditQueued(Command):
    type: Literal["edit_queued"]
    id: Id
    text: str
    revision: Number | None = None


class Withdraw(Command):
    type: Literal["withdraw"]
    id: Id


class SendNow(Command):
    """A held message; all of them without an `id`."""

    type: Literal["send_now"]
    id: Id | None = None


class Typing(Command):
    type: Literal["typing"]


class CancelRun(Command):
    type: Literal["cancel"]


class Withdrawing(Command):
    """A command that may withdraw messages: refused where there are more than `at_most`, beside the last answer.

    `preview` only asks what it would withdraw.
    """

    at_most: Number | None = None
    preview: bool = False


class Retry(Withdrawing):
    type: Literal["retry"]
    id: Id


class RunTools(Withdrawing):
    type: Literal["run_tools"]
    id: Id


class RestoreAttempt(Withdrawing):
    type: Literal["restore_attempt"]
    attempt: Id


class Edit(Command):
    type: Literal["edit"]
    id: Id
    text: str
    revision: Number | None = None


class SuggestEdit(Command):
    type: Literal["suggest_edit"]
    id: Id
    text: str
    revision: Number | None = None


class AcceptSuggestion(Command):
    """`revision` is the message's that the suggestion was compared with."""

    type: Literal["accept_suggestion"]
    id: Id
    revision: Number | None = None


class DismissSuggestion(Command):
    type: Literal["dismiss_suggestion"]
    id: Id


class Exclude(Command):
    type: Literal["exclude"]
    id: Id


class Include(Command):
    type: Literal["include"]
    id: Id


class ExcludeBefore(Command):
    """Exclude everything before the message from context."""

    type: Literal["exclude_before"]
    id: Id


class IncludeBefore(Command):
    """Include everything before the message; with `since`, only what was excluded after that revision."""

    type: Literal["include_before"]
    id: Id
    since: Number | None = None


class Remove(Command):
    type: Literal["remove"]
    id: Id


class Restore(Command):
    type: Literal["restore"]
    id: Id


class Fork(Command):
    """`run` is what is sensible unless it is said: a changed text wants an answer. One `key` makes one fork."""

    needs: ClassVar[SessionRole] = SessionRole.VIEWER

    type: Literal["fork"]
    id: Id
    text: str | None = None
    run: bool | None = None
    key: Key | None = None


class SetModel(Command):
    type: Literal["set_model"]
    provider: Annotated[str, Field(max_length=80)]
    model: Annotated[str, Field(max_length=200)]


class SetAgent(Command):
    type: Literal["set_agent"]
    agent: Annotated[str, Field(max_length=80)]


class Configure(Command):
    """Fields that are left out keep their values; an empty effort and a budget of 0 leave it to the model."""

    type: Literal["configure"]
    tools: Annotated[list[ToolName], Field(max_length=MOST_TOOLS)] | None = None
    max_rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] | None = None
    mode: Literal["chat", "agent", "run"] | None = None
    reasoning_effort: EffortName | None = None
    thinking_budget: Annotated[int, Field(ge=0, le=LARGEST_BUDGET)] | None = None


class Rename(Command):
    type: Literal["rename"]
    title: str


class SetSystemPrompt(Command):
    type: Literal["set_system_prompt"]
    system_prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    seen: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = None


class MarkRead(Command):
    needs: ClassVar[SessionRole] = SessionRole.VIEWER

    type: Literal["read"]
    revision: Number


class SaveDraft(Command):
    type: Literal["draft"]
    text: str


# What is asked of the session; the other commands are about the socket itself.
Request = (
    SendMessage
    | EditQueued
    | Withdraw
    | SendNow
    | Typing
    | CancelRun
    | Retry
    | RunTools
    | RestoreAttempt
    | Edit
    | SuggestEdit
    | AcceptSuggestion
    | DismissSuggestion
    | Exclude
    | Include
    | ExcludeBefore
    | IncludeBefore
    | Remove
    | Restore
    | Fork
    | SetModel
    | SetAgent
    | Configure
    | Rename
    | SetSystemPrompt
    | MarkRead
    | SaveDraft
)
AnyCommand = Sync | Ping | Request
# Their names, which pydantic puts into the place of an error.
_TYPES = {name for command in get_args(AnyCommand) for name in get_args(command.model_fields["type"].annotation)}
_adapter: TypeAdapter[AnyCommand] = TypeAdapter(Annotated[AnyCommand, Field(discriminator="type")])


def parse(frame: str) -> AnyCommand:
    """Read a frame. Raises Malformed: no JSON, no object, an unknown type, missing or wrong fields."""
    try:
        data = long_json.loads(frame)
    except (ValueError, RecursionError):
        raise Malformed("The frame is not JSON.") from None
    if not isinstance(data, dict):
        raise Malformed("The frame is not a JSON object.")
    return checked(data)


def checked(data: dict[str, Any]) -> AnyCommand:
    """Take JSON's values as a command. Raises Malformed: an unknown type, missing or wrong fields."""
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
