"""Turns: stop the agent, retry, restore earlier attempts, fork, mark as read."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.urls import reverse
from ninja import Body as BodyParam
from ninja import Query, Router, Schema
from pydantic import Field

from chat.access import session_for
from chat.api.auth import ApiRequest
from chat.api.commands import checked_id, run_command, run_fork, run_message_command
from chat.api.message_schemas import SESSION_ID
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.api.schemas import SessionAgent
from chat.commands import Number
from chat.models import SessionRole
from chat.queries import cast, presets
from chat.services.runs.attempts import NoSuchAttempt, attempts_of

router = Router(tags=["Turns"])


class Cancellation(Schema):
    stopping: bool = Field(description="Whether a turn was running, which stops now")


class Compacting(Schema):
    compacting: bool = Field(description="Whether the model writes a summary now")


class AgentsOfSession(Schema):
    agents: list[SessionAgent]


class Continued(Schema):
    turn_id: str = Field(description="The turn that goes on")


class HeldMessage(Body):
    """Which held message is sent; all of them without an `id`."""

    id: str | None = Field(None, description="Of a message that is on hold")


class SentNow(Schema):
    """How many messages were sent."""

    sent: int


class Limits(Schema):
    """What the client accepts to be withdrawn."""

    at_most: Number | None = Field(
        None, description="Refused as confirm if more messages than this would be withdrawn; the last answer may be"
    )
    preview: bool = Field(False, description="Only return what would be withdrawn")


class RetryLimits(Limits):
    edited: bool = Field(
        False,
        description="The message was edited for this retry: its earlier text comes back with what is withdrawn now",
    )


class Withdrawn(Schema):
    """How many messages of how many users were withdrawn. `others` does not count you."""

    messages: int
    people: int
    others: int
    last_answer: bool = Field(description="Whether nothing but the last answer was withdrawn")
    attempt: str = Field(description="The attempt that restores them; empty if no message was withdrawn")
    after: str = Field(description="The message that they followed, if it can be answered: fork there to keep both")


class AttemptOut(Schema):
    """An earlier attempt; `after` is the id of the message that it followed."""

    id: str
    after: str
    number: int | None = Field(
        description="Its number among the attempts that follow that message; null if it has nothing but errors"
    )
    messages: int
    people: int
    withdrawn_by: str
    withdrawn_at: datetime


class AttemptList(Schema):
    attempts: list[AttemptOut]


class NewFork(Body):
    """`key` makes a repeated request return the session of the first one."""

    text: str | None = Field(None, description="Replaces the last user text that is copied, and ends the copy")
    run: bool = Field(True, description="Whether the agent continues from the end of the copy")
    key: str | None = Field(None, min_length=1, max_length=100, description="Any text that names this request")


class Fork(Schema):
    session: str = Field(examples=[SESSION_ID], description="The new session")
    url: str = Field(description="The address of its page")
    repeated: bool = Field(description="A request with this key has made the fork before")
    notice: str = Field(description="A sentence for people about the files of the workspace; empty if there were none")


class ReadPosition(Body):
    revision: Number = Field(description="The session's revision up to which you have read it")


@router.post(
    "/sessions/{session_id}/cancel", response=Cancellation, operation_id="cancelTurn", summary="Stop the running turn"
)
def cancel_turn(request: ApiRequest, session_id: str) -> HttpResponse:
    """What the agent has written so far is kept. Repeating the request does no harm."""
    return json_response(request, run_command(request, session_id, "cancel"), tagged=False)


@router.post(
    "/sessions/{session_id}/compact",
    response={202: Compacting},
    operation_id="compactSession",
    summary="Summarize earlier messages",
)
def compact(request: ApiRequest, session_id: str) -> HttpResponse:
    """Let the session's model summarize the older turns. The summary is a message with `summarises`, which stands for
    all that is before it; remove it to send the messages themselves again. `compaction_ended` says when it is done."""
    run_command(request, session_id, "compact")
    return json_response(request, {"compacting": True}, status=202, tagged=False)


@router.post(
    "/sessions/{session_id}/send_now", response=SentNow, operation_id="sendHeldMessages", summary="Send held messages"
)
def send_now(request: ApiRequest, session_id: str, body: HeldMessage) -> HttpResponse:
    """Send a queued message that a stop has held, or all of them without an `id`: they begin a turn of their own."""
    return json_response(request, run_command(request, session_id, "send_now", **body.model_dump()))


@router.get(
    "/sessions/{session_id}/agents",
    response=AgentsOfSession,
    operation_id="listSessionAgents",
    summary="List a session's agents",
)
def list_session_agents(request: ApiRequest, session_id: str) -> HttpResponse:
    """The session's own agent first, then those that answer when a message mentions them."""
    session, _role = session_for(request.user, session_id)
    own = presets.own(session)
    alone = [cast.Member(session.agent, own.title, session.provider, session.model, own.icon)]
    return json_response(request, {"agents": [each.to_json() for each in cast.members(session) or alone]})


@router.put(
    "/sessions/{session_id}/agents/{name}",
    response={204: None},
    operation_id="addSessionAgent",
    summary="Add an agent to a session",
)
def add_session_agent(request: ApiRequest, session_id: str, name: str) -> HttpResponse:
    """It gets a copy of the agent's model, prompt and tools, and answers messages that mention it."""
    run_command(request, session_id, "add_agent", agent=name)
    return no_content()


@router.delete(
    "/sessions/{session_id}/agents/{name}",
    response={204: None},
    operation_id="removeSessionAgent",
    summary="Remove an agent from a session",
)
def remove_session_agent(request: ApiRequest, session_id: str, name: str) -> HttpResponse:
    """Its messages stay. The session's own agent cannot be removed, only changed."""
    run_command(request, session_id, "remove_agent", agent=name)
    return no_content()


@router.post(
    "/sessions/{session_id}/continue",
    response=Continued,
    operation_id="continueAnswer",
    summary="Continue a cut answer",
)
def continue_answer(request: ApiRequest, session_id: str) -> HttpResponse:
    """Let the agent go on where a stop, an error, a restart or the output limit has cut off its last answer."""
    return json_response(request, run_command(request, session_id, "continue"))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/retry",
    response=Withdrawn,
    operation_id="retryMessage",
    summary="Answer again",
)
def retry_message(request: ApiRequest, session_id: str, message_id: str, query: Query[RetryLimits]) -> HttpResponse:
    """User messages stay and are answered again. Of the agent's messages, the whole response is withdrawn."""
    return json_response(request, run_message_command(request, session_id, message_id, "retry", **query.model_dump()))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/run_tools",
    response=Withdrawn,
    operation_id="runToolsAgain",
    summary="Run tools again",
)
def run_tools(request: ApiRequest, session_id: str, message_id: str, query: Query[Limits]) -> HttpResponse:
    """Withdraw the tool results of the message's response and what follows, and run its tools again."""
    return json_response(
        request, run_message_command(request, session_id, message_id, "run_tools", **query.model_dump())
    )


@router.get(
    "/sessions/{session_id}/attempts",
    response=AttemptList,
    operation_id="listAttempts",
    summary="List earlier attempts",
)
def list_attempts(request: ApiRequest, session_id: str) -> HttpResponse:
    """What retries have replaced and `restore` brings back, newest first. Only editors may list them."""
    session, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    attempts = [
        {
            "id": each.id,
            "after": each.after,
            "number": each.number,
            "messages": each.messages,
            "people": each.people,
            "withdrawn_by": each.user.sender if each.user else "",
            "withdrawn_at": each.at.isoformat(),
        }
        for each in attempts_of(session)
    ]
    return json_response(request, {"attempts": attempts})


@router.post(
    "/sessions/{session_id}/attempts/{attempt}/restore",
    response=Withdrawn,
    operation_id="restoreAttempt",
    summary="Restore an earlier attempt",
)
def restore_an_attempt(request: ApiRequest, session_id: str, attempt: str, query: Query[Limits]) -> HttpResponse:
    """Restore it in its place. What it replaces becomes an attempt, which the response names."""
    fields = {"attempt": checked_id(attempt, NoSuchAttempt), **query.model_dump()}
    return json_response(request, run_command(request, session_id, "restore_attempt", **fields))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/attempts/{number}",
    response=Withdrawn,
    operation_id="switchAttempt",
    summary="Switch to another attempt",
)
def switch_attempt(
    request: ApiRequest, session_id: str, message_id: str, number: Number, query: Query[Limits]
) -> HttpResponse:
    """Let the attempt with this number follow the message. What it replaces stays an attempt and keeps its number."""
    fields = {"number": number, **query.model_dump()}
    return json_response(request, run_message_command(request, session_id, message_id, "switch_attempt", **fields))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/fork",
    response={201: Fork, 200: Fork},
    operation_id="forkSession",
    summary="Fork a session",
)
def fork_session(
    request: ApiRequest,
    session_id: str,
    message_id: str,
    body: BodyParam[NewFork | None] = None,
) -> HttpResponse:
    """Copy the session up to and including the message into a new one of yours. 200: this key has made the fork.

    The files of the workspace are copied as they are now, all or none (`forked_files` of the new session).
    """
    forked = run_fork(request, session_id, message_id, **(body or NewFork.model_validate({})).model_dump())
    location = reverse("api:get_session", args=[forked["session"]])
    status = 200 if forked["repeated"] else 201
    return json_response(request, forked, status=status, location=location, tagged=False)


@router.post(
    "/sessions/{session_id}/read", response={204: None}, operation_id="markRead", summary="Mark a session as read"
)
def mark_read(request: ApiRequest, session_id: str, body: ReadPosition) -> HttpResponse:
    """Mark it up to a revision. It stays `unread` if something came after that revision."""
    run_command(request, session_id, "read", revision=body.revision)
    return no_content()
