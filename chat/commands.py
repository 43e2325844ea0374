"""The commands of clients. `chat.command_frames` parses them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agents.reasoning import MAX_BUDGET
from chat.models import SessionRole

Id = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_]*$")]
# Chosen by the client. A repeated request has the same key.
Key = Annotated[str, Field(max_length=100, pattern=r"^[^\x00]+$")]
# A revision or a position, in the range of its column.
Number = Annotated[int, Field(ge=0, lt=2**62)]
# In characters. Every page of the session contains the prompt.
MAX_SYSTEM_PROMPT_LENGTH = 200_000
# The most streaming messages that a client can name in a sync.
MAX_KNOWN = 200
MAX_ATTACHMENTS = 200
# The id for an editor that is open on the system prompt instead of a message.
SYSTEM_PROMPT = "system_prompt"
MAX_TOOLS = 200
MAX_ROUNDS = 1000
# The most files of a workspace, all of which a session can name. There is a limit because each may be listed to a
# model.
MAX_FILES = 500
ToolName = Annotated[str, Field(max_length=200)]
FileId = Annotated[str, Field(max_length=200)]
EffortName = Annotated[str, Field(max_length=10)]


class Command(BaseModel):
    """A request of a client. The answer repeats its `ref`."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    type: str
    ref: Annotated[str, Field(max_length=200)] | None = None


class SessionCommand(Command):
    """A command on the session. `chat.dispatch` has its handler."""

    # The lowest role in the session that may give the command.
    needs: ClassVar[SessionRole] = SessionRole.EDITOR
    # The rate limit by which the dispatcher counts the command. None if it has no limit, or its service counts it.
    limit: ClassVar[Literal["changes", "turns"] | None] = "changes"
    # True if guests of the session's workspace may give the command.
    for_guests: ClassVar[bool] = True


COMMANDS: list[type[Command]] = []
Kind = TypeVar("Kind", bound=Command)


def command(kind: type[Kind]) -> type[Kind]:
    """Register a command, so that frames of its type are parsed as it."""
    COMMANDS.append(kind)
    return kind


class Known(BaseModel):
    """How much of a streaming message a client has: characters (events), or frozen blocks at `rev` (page)."""

    length: Annotated[int, Field(ge=0)] = 0
    blocks: Annotated[int, Field(ge=0)] = 0
    rev: Annotated[int, Field(ge=0)] = 0


@command
class Sync(Command):
    type: Literal["sync"]
    since: Number = 0
    have: Annotated[dict[Id, Known | int], Field(max_length=MAX_KNOWN)] = {}


@command
class Ping(Command):
    type: Literal["ping"]


@command
class SendMessage(SessionCommand):
    limit = None

    type: Literal["send"]
    text: str
    key: Key | None = None
    attachments: Annotated[list[Id], Field(max_length=MAX_ATTACHMENTS)] = []


@command
class Answer(SessionCommand):
    """Answer a question of the agent, or decide about a tool call that waits for approval."""

    type: Literal["answer"]
    id: Id
    value: Any


@command
class EditQueued(SessionCommand):
    type: Literal["edit_queued"]
    id: Id
    text: str
    revision: Number | None = None


@command
class Withdraw(SessionCommand):
    type: Literal["withdraw"]
    id: Id


@command
class SendNow(SessionCommand):
    """Send a held message, or all of them without an `id`."""

    limit = "turns"

    type: Literal["send_now"]
    id: Id | None = None


@command
class Typing(SessionCommand):
    limit = None

    type: Literal["typing"]


@command
class Editing(SessionCommand):
    """Report that an editor is `open` on a message or on the system prompt, or that it was closed."""

    limit = None

    type: Literal["editing"]
    id: Id
    open: bool = True


@command
class Compact(SessionCommand):
    """Summarize earlier messages, so that the summary replaces them in the context."""

    limit = "turns"

    type: Literal["compact"]


@command
class CancelRun(SessionCommand):
    limit = None

    type: Literal["cancel"]


class WithdrawingCommand(SessionCommand):
    """A command that may withdraw messages. It is refused if it would withdraw more than `at_most`.

    The last answer can always be withdrawn. With `preview`, nothing is changed, and the client gets what the command
    would withdraw.
    """

    at_most: Number | None = None
    preview: bool = False


@command
class Retry(WithdrawingCommand):
    """Retry at a message. `edited` is true if its text was changed for the retry, so that it answers the new text."""

    limit = "turns"

    type: Literal["retry"]
    id: Id
    edited: bool = False


@command
class ContinueAnswer(SessionCommand):
    limit = "turns"

    type: Literal["continue"]


@command
class RunTools(WithdrawingCommand):
    limit = "turns"

    type: Literal["run_tools"]
    id: Id


@command
class RestoreAttempt(WithdrawingCommand):
    limit = "turns"

    type: Literal["restore_attempt"]
    attempt: Id


@command
class SwitchAttempt(WithdrawingCommand):
    """Switch to another of the attempts that follow the message `id`. They are numbered from 1."""

    limit = "turns"

    type: Literal["switch_attempt"]
    id: Id
    number: Number


@command
class Edit(SessionCommand):
    type: Literal["edit"]
    id: Id
    text: str
    revision: Number | None = None


@command
class SuggestEdit(SessionCommand):
    type: Literal["suggest_edit"]
    id: Id
    text: str
    revision: Number | None = None


@command
class AcceptSuggestion(SessionCommand):
    """Accept a suggestion. `revision` is the revision of the message that the user compared it with."""

    type: Literal["accept_suggestion"]
    id: Id
    revision: Number | None = None


@command
class DismissSuggestion(SessionCommand):
    type: Literal["dismiss_suggestion"]
    id: Id


@command
class Exclude(SessionCommand):
    type: Literal["exclude"]
    id: Id
    revision: Number | None = None


@command
class Include(SessionCommand):
    type: Literal["include"]
    id: Id
    revision: Number | None = None


@command
class ExcludeBefore(SessionCommand):
    """Exclude all messages before the message from the context."""

    type: Literal["exclude_before"]
    id: Id


@command
class IncludeBefore(SessionCommand):
    """Include all messages before the message; with `since`, only those that were excluded after that revision."""

    type: Literal["include_before"]
    id: Id
    since: Number | None = None


@command
class Remove(SessionCommand):
    type: Literal["remove"]
    id: Id


@command
class Restore(SessionCommand):
    type: Literal["restore"]
    id: Id


@command
class Fork(SessionCommand):
    """Fork at a message. Without `run`, the agent answers if the text was changed. One `key` makes one fork."""

    needs = SessionRole.VIEWER
    limit = None
    for_guests = False

    type: Literal["fork"]
    id: Id
    text: str | None = None
    run: bool | None = None
    key: Key | None = None


@command
class SetModel(SessionCommand):
    for_guests = False

    type: Literal["set_model"]
    provider: Annotated[str, Field(max_length=80)]
    model: Annotated[str, Field(max_length=200)]


class AgentCommand(SessionCommand):
    for_guests = False

    agent: Annotated[str, Field(max_length=80)]


@command
class SetAgent(AgentCommand):
    type: Literal["set_agent"]


@command
class AddAgent(AgentCommand):
    """Add another agent, which answers messages that mention it. `again` undoes its removal, with its stored copy."""

    type: Literal["add_agent"]
    again: bool = False


@command
class RemoveAgent(AgentCommand):
    type: Literal["remove_agent"]


@command
class Configure(SessionCommand):
    """Change settings. Fields that are left out keep their values; "" and 0 for reasoning leave it to the model."""

    for_guests = False

    type: Literal["configure"]
    tools: Annotated[list[ToolName], Field(max_length=MAX_TOOLS)] | None = None
    max_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] | None = None
    mode: Literal["chat", "agent", "run"] | None = None
    replies: Literal["all", "mentions", "auto"] | None = None
    reasoning_effort: EffortName | None = None
    thinking_budget: Annotated[int, Field(ge=0, le=MAX_BUDGET)] | None = None
    compact_at: Annotated[int, Field(ge=0, le=100)] | None = None
    memory: bool | None = None
    knowledge: Annotated[list[FileId], Field(max_length=MAX_FILES)] | None = None


@command
class Rename(SessionCommand):
    type: Literal["rename"]
    title: str


@command
class SetSystemPrompt(SessionCommand):
    type: Literal["set_system_prompt"]
    system_prompt: Annotated[str, Field(max_length=MAX_SYSTEM_PROMPT_LENGTH)]
    seen: Annotated[str, Field(max_length=MAX_SYSTEM_PROMPT_LENGTH)] | None = None


@command
class MarkRead(SessionCommand):
    needs = SessionRole.VIEWER
    limit = None

    type: Literal["read"]
    revision: Number


@command
class SaveDraft(SessionCommand):
    limit = None

    type: Literal["draft"]
    text: str
