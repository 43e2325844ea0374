"""The tools that Parley offers to MCP clients. They use the services and the access gate of the REST API."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any, Literal, TypeVar

from django.db.models import Q
from pydantic import BaseModel, ConfigDict, Field

from agents.messages import Json
from chat.access import session_for, workspace_for
from chat.api.commands import checked_id, make_command
from chat.api.schemas import cursor_of, parse_cursor, summary_out
from chat.api.streams import require_stream_slot
from chat.commands import Key, Number
from chat.dispatch import execute
from chat.errors import NoSuchMessage
from chat.live.sign_ins import role_and_name
from chat.mcp.caller import Caller
from chat.mcp.markdown import page_in_markdown
from chat.models import TURN_MARKERS, ChatMessage, MessageRole, Session
from chat.projections.steps import sequence_of
from chat.queries import search as searching
from chat.queries.messages import session_snapshot
from chat.queries.offers import agents_for
from chat.queries.session_list import ListFilter, listed_before
from chat.queries.steps import MAX_STEPS, page_of_steps
from chat.services.idempotency import create_once
from chat.services.messages.senders import sender_in
from chat.services.sessions.lifecycle import begin_session

# Seconds. MCP clients abandon a request after 60 seconds unless they have another limit.
DEFAULT_WAIT = 45
MAX_WAIT = 600
_MARK = re.compile(r"</?mark>")


class Arguments(BaseModel):
    """The arguments of a tool. Unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Pending:
    """A message whose turn the caller waits for, for up to `seconds`. `sent` is the result of sending it.

    `name` is the caller's name in the session. It is read before the message is sent, because a refusal after it would
    hide that it was sent.
    """

    session_id: str
    sent: Json
    seconds: int
    name: str


Given = TypeVar("Given", bound=Arguments)
Result = Json | str | Pending
Made = TypeVar("Made", bound=Result)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool. `run` is called in a thread. `writes`: it is only for tokens that may write."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Caller, Any], Result]
    writes: bool


TOOLS: dict[str, McpTool] = {}


def tool(
    title: str, arguments: type[Given], *, writes: bool = False
) -> Callable[[Callable[[Caller, Given], Made]], Callable[[Caller, Given], Made]]:
    """Register a function as a tool under its name. Its docstring is the description that models read."""

    def register(function: Callable[[Caller, Given], Made]) -> Callable[[Caller, Given], Made]:
        name, description = function.__name__, " ".join((function.__doc__ or "").split())
        TOOLS[name] = McpTool(name, title, description, arguments, function, writes)
        return function

    return register


SessionId = Field(description="The id of the session, as list_sessions returns it.", max_length=64)
OnceKey = Field(
    None,
    description="A text that identifies the call. A call that is repeated with the same key is carried out only once.",
)
Wait = Field(
    DEFAULT_WAIT,
    ge=0,
    le=MAX_WAIT,
    description="The maximum number of seconds to wait for the answer. If it takes longer, call read_answer.",
)


class ListSessions(Arguments):
    query: str = Field(
        "",
        max_length=1000,
        description="Words that must all occur in the title, in the owner's name, or in one message. Only the first 8 "
        "words count.",
    )
    workspace: Number | None = Field(
        None, description="The id of a workspace. If it is left out, sessions of all workspaces are listed."
    )
    archived: bool = Field(False, description="List archived sessions instead of active ones.")
    limit: int = Field(20, ge=1, le=100, description="The maximum number of sessions.")
    cursor: str | None = Field(
        None, max_length=60, description="The `next` of the previous call. Leave it out for the first page."
    )


@tool("List sessions", ListSessions)
def list_sessions(caller: Caller, given: ListSessions) -> Json:
    """List the chat sessions that you can read in Parley, with their ids, titles and agents, last active first."""
    workspace = None if given.workspace is None else workspace_for(caller.user, given.workspace)
    only = ListFilter(archived=given.archived, words=given.query, within=Q(workspace=workspace) if workspace else None)
    after = parse_cursor(given.cursor) if given.cursor else None
    page = listed_before(caller.user, after, count=given.limit, only=only)
    sessions = [{**summary_out(row), "page": caller.page_of(row.session.pk)} for row in page.rows]
    return {"sessions": sessions, "next": cursor_of(page.rows[-1].listed) if page.more else None}


class ReadSession(Arguments):
    session: str = SessionId
    after: Number = Field(0, description="The `next` of the previous call. 0 begins with the first message.")
    last: int | None = Field(None, ge=1, le=MAX_STEPS, description="Read only about this number of the last messages.")
    limit: int = Field(50, ge=1, le=MAX_STEPS, description="The maximum number of messages to return.")
    format: Literal["markdown", "steps"] = Field(
        "markdown",
        description="`markdown` returns text. `steps` returns JSON with one object for each message, tool call and "
        "result, with ids.",
    )


@tool("Read a session", ReadSession)
def read_session(caller: Caller, given: ReadSession) -> Json | str:
    """Read the conversation of a session in pages: messages of users and agents, and tool calls with results."""
    session, role = session_for(caller.user, given.session)
    after = given.after
    if given.last is not None:
        said = ChatMessage.objects.in_conversation(session.pk).exclude(type__in=TURN_MARKERS).order_by("-sequence")
        first = list(said.values_list("sequence", flat=True)[: given.last])[-1:]
        after = max((after, *(sequence_of(ChatMessage(sequence=place)) - 1 for place in first)))
    page = page_of_steps(session, after, given.limit)
    if given.format == "steps":
        return {"session": session.pk, "steps": [step.to_json() for step in page.steps], "next": page.next}
    text, cut_at = page_in_markdown(page.steps)
    following = cut_at if cut_at is not None else page.next
    head = f"# {session.title or 'Untitled session'}\n\nid {session.pk}, agent {session.agent}, your role: {role.value}"
    status = f"status: {session_snapshot(session).agent_status}, page: {caller.page_of(session.pk)}"
    end_of_page = "[The end.]" if following is None else f"[There is more: call read_session with after={following}.]"
    return "\n\n".join(filter(None, (f"{head}, {status}", text, end_of_page)))


class Search(Arguments):
    query: str = Field(max_length=1000, description="Words that must all occur. Only the first 8 count.")
    limit: int = Field(
        20, ge=1, le=50, description="The maximum number of sessions, and the maximum number of messages."
    )


@tool("Search", Search)
def search(caller: Caller, given: Search) -> Json:
    """Search the titles and messages of all sessions that you can read, including archived sessions."""
    found = searching.search(caller.user, given.query, given.limit)
    sessions = [
        {"session": hit.id, "title": _plain(hit.title), "updated_at": hit.updated_at.isoformat()}
        for hit in found.sessions
    ]
    messages = [
        {
            "session": hit.session_id,
            "session_title": hit.session_title,
            "message": hit.id,
            "sender": hit.sender,
            "text": _plain(hit.snippet),
            "timestamp": hit.timestamp.isoformat(),
        }
        for hit in found.messages
    ]
    return {"sessions": sessions, "messages": messages}


@tool("List agents", Arguments)
def list_agents(caller: Caller, given: Arguments) -> Json:
    """List the agents with which you can create a session, beginning with the default agent."""
    shown = [{"name": each.name, "title": each.title, "model": each.model} for each in agents_for(caller.user)]
    return {"agents": shown}


class CreateSession(Arguments):
    text: str = Field("", description="The first message, which the agent answers. If it is empty, no message is sent.")
    title: str = Field(
        "", max_length=200, description="The title. If it is empty, a title is generated from the first message."
    )
    agent: str = Field(
        "",
        max_length=100,
        description="The name of an agent, as list_agents returns it. If it is empty, the default agent is used.",
    )
    workspace: Number | None = Field(
        None, description="The id of a workspace. If it is left out, the session is created in your current workspace."
    )
    key: Key | None = OnceKey
    wait: int = Wait


@tool("Create a session", CreateSession, writes=True)
def create_session(caller: Caller, given: CreateSession) -> Json | Pending:
    """Create a session in Parley, which you own.

    If you pass a text, the agent answers it and the answer is returned.
    """
    waits = bool(given.wait and given.text.strip())
    if waits:
        require_stream_slot(caller.user.pk)

    def make(session_id: str, key_digest: str | None) -> Session:
        return begin_session(
            owner=caller.user,
            workspace=None if given.workspace is None else workspace_for(caller.user, given.workspace),
            session_id=session_id,
            key_digest=key_digest,
            text=given.text,
            agent=given.agent,
            title=given.title,
        )

    fields = given.model_dump(exclude={"key", "wait"})
    session, repeated = create_once(user=caller.user, purpose="mcp", key=given.key, request=fields, make=make)
    begun = {"session": session.pk, "page": caller.page_of(session.pk), "repeated": repeated}
    said = ChatMessage.objects.filter(session=session, role=MessageRole.USER).order_by("timestamp", "pk").first()
    if said is None:
        return begun
    sent = {**begun, "id": said.pk}
    return Pending(session.pk, sent, given.wait, sender_in(session, caller.user)) if waits else _as_message(sent)


class SendMessage(Arguments):
    session: str = SessionId
    text: str = Field(description="The text of the message, in Markdown.")
    key: Key | None = OnceKey
    wait: int = Wait


@tool("Send a message", SendMessage, writes=True)
def send_message(caller: Caller, given: SendMessage) -> Json | Pending:
    """Send a message to a session in the name of the token's user, and wait for the agent's answer."""
    name = ""
    if given.wait:  # before the write, so that a refused call can be repeated with its key
        require_stream_slot(caller.user.pk)
        _role, name = role_and_name(caller.user, given.session)
    command = make_command("send", text=given.text, key=given.key)
    result = execute(caller.user, given.session, command)
    sent = {"session": given.session, "id": result["id"], "repeated": result["repeated"]}
    return Pending(given.session, sent, given.wait, name) if given.wait else _as_message(sent)


class ReadAnswer(Arguments):
    session: str = SessionId
    message: str = Field(
        max_length=64,
        description="The id of the message that is answered, as send_message or create_session returned it.",
    )
    wait: int = Wait


@tool("Read an answer", ReadAnswer)
def read_answer(caller: Caller, given: ReadAnswer) -> Pending:
    """Read the agent's answer to a message. If the agent is still working, wait for the answer."""
    session, _role = session_for(caller.user, given.session)
    message_id = checked_id(given.message)
    if not ChatMessage.objects.filter(session=session, pk=message_id).exists():
        raise NoSuchMessage
    if given.wait:
        require_stream_slot(caller.user.pk)
    sent = {"session": given.session, "id": message_id}
    return Pending(given.session, sent, given.wait, sender_in(session, caller.user))


class Stop(Arguments):
    session: str = SessionId


@tool("Stop the agent", Stop, writes=True)
def stop(caller: Caller, given: Stop) -> Json:
    """Stop the running turn of a session. The text that the agent has written so far is kept."""
    return execute(caller.user, given.session, make_command("cancel"))


def turn_result(caller: Caller, pending: Pending, turn: Json) -> Json:
    """Return the result of a turn for a client: its outcome, the agent's text, and open questions."""
    messages = [each for each in turn["messages"] if (each["sequence"] or 0) > (turn["sequence"] or 0)]
    said = [each["text"] for each in messages if each["type"] in ("text", "error") and each["role"] != MessageRole.USER]
    questions = [question for each in messages if (question := _question(caller, each))]
    result: Json = {
        **_as_message(pending.sent),
        "outcome": turn["outcome"],
        "answer": "\n\n".join(filter(None, said)),
        "page": caller.page_of(pending.session_id),
    }
    if questions:
        result["people_are_asked"] = questions
    if turn["more"]:
        result["more"] = f"The turn is longer: call read_session with after={2 * (turn['sequence'] or 0)}."
    elif turn["outcome"] in ("running", "queued"):
        result["more"] = "The agent is still working: call read_answer."
    elif turn["outcome"] == "completed" and not turn["turn_id"]:
        result["more"] = "No agent answers, because the message mentions none. Mention one, as in @agent."
    return result


def _question(caller: Caller, message: Json) -> Json | None:
    """Return what a call asks people, or None. For a task of another agent, it is what that agent waits for."""
    tool = message["tool"]
    if message["status"] != "waiting" or not tool:
        return None
    if not (subsession := tool["subsession"]):
        return {"kind": tool["question"], "tool": tool["name"], "arguments": _question_content(tool)}
    if not subsession["waits"]:
        return None
    page = caller.page_of(subsession["id"])
    return {"kind": subsession["waits"], "tool": tool["name"], "arguments": tool["arguments"], "page": page}


def _question_content(tool: Json) -> Json:
    """Return the content of a question: the arguments of the call, or the question of its MCP server."""
    arguments: Json = tool["asked"][-1]["question"] if tool["question"] == "elicitation" else tool["arguments"]
    return arguments


def _as_message(sent: Json) -> Json:
    return {"message" if name == "id" else name: value for name, value in sent.items()}


def _plain(html: str) -> str:
    return unescape(_MARK.sub("", html))
