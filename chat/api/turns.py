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
from chat.api.message_schemas import EXAMPLE_SESSION_ID
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.api.schemas import SessionAgent
from chat.commands import Number
from chat.models import SessionRole
from chat.queries import cast, presets
from chat.services.runs.attempts import NoSuchAttempt, attempts_of

router = Router(tags=["Turns"])


class Cancellation(Schema):
    """The result of a request to stop."""

    stopping: bool = Field(description="Whether a turn was running. It stops now.")


class Compacting(Schema):
    """The compaction that has started."""

    compacting: bool = Field(description="Always true: the model now writes a summary.")


class AgentsOfSession(Schema):
    """The agents of a session."""

    agents: list[SessionAgent] = Field(description="The session's own agent, followed by the others.")


class Continued(Schema):
    """The answer that is continued."""

    turn_id: str = Field(description="The id of the turn in which the agent continues.")


class HeldMessage(Body):
    """The held messages to send."""

    id: str | None = Field(None, description="The id of a held message. If null, all held messages are sent.")


class SentNow(Schema):
    """The result of sending held messages."""

    sent: int = Field(description="The number of messages that were sent.")


class Limits(Schema):
    """A limit on the messages that a request may withdraw."""

    at_most: Number | None = Field(
        None,
        description="The maximum number of messages to withdraw. A request that would withdraw more is refused as "
        "`confirm`, unless it withdraws only the last answer. Without a value, there is no limit.",
    )
    preview: bool = Field(False, description="Change nothing, and only return what the request would withdraw.")


class RetryLimits(Limits):
    edited: bool = Field(
        False,
        description="You have just edited the message for this retry. `restoreAttempt` then restores its earlier text "
        "together with the messages that are withdrawn now.",
    )


class Withdrawn(Schema):
    """The messages that a request has withdrawn, or would withdraw."""

    messages: int = Field(description="The number of messages, without markers of turns.")
    people: int = Field(description="The number of users who wrote some of them.")
    others: int = Field(description="The number of users other than you who wrote some of them.")
    last_answer: bool = Field(description="Whether nothing but the last answer is withdrawn.")
    attempt: str = Field(
        description="The id of the attempt with which `restoreAttempt` restores the messages. Empty if none were "
        "withdrawn."
    )
    after: str = Field(
        description="The id of the message before them. To keep both versions, fork the session there. Empty if the "
        "fork is not possible."
    )


class AttemptOut(Schema):
    """Messages that a retry has replaced."""

    id: str = Field(description="The id of the attempt.")
    after: str = Field(description="The id of the message that the attempt followed.")
    number: int | None = Field(
        description="The number of the attempt among those that follow this message, from 1. Null if the attempt "
        "contains only errors."
    )
    messages: int = Field(description="The number of messages of the attempt.")
    people: int = Field(description="The number of users who wrote some of them.")
    withdrawn_by: str = Field(description="The name of the user who made the retry. Empty if unknown.")
    withdrawn_at: datetime = Field(description="The time of the retry.")


class AttemptList(Schema):
    """The earlier attempts of a session."""

    attempts: list[AttemptOut] = Field(description="The attempts, newest first.")


class NewFork(Body):
    """A fork to create."""

    text: str | None = Field(
        None,
        description="A new text for the last message of a user that is copied. The copy ends with this message. If "
        "null, the text stays as it is.",
    )
    run: bool = Field(
        True,
        description="Whether the agent continues from the end of the copy, if the last message waits for an answer.",
    )
    key: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="A text that identifies the request, such as a random UUID. If you repeat the request with the "
        "same key, it is carried out only once.",
    )


class Fork(Schema):
    """The session that a fork has created."""

    session: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the new session.")
    url: str = Field(description="The path of the page of the new session.")
    repeated: bool = Field(description="Whether a request with the same `key` has created the fork before.")
    notice: str = Field(description="A sentence for users about the copied files. Empty if the session has no files.")


class ReadPosition(Body):
    """The position up to which you have read a session."""

    revision: Number = Field(description="The `revision` of the session up to which you have read it.")


@router.post(
    "/sessions/{session_id}/cancel", response=Cancellation, operation_id="cancelTurn", summary="Stop the running turn"
)
def cancel_turn(request: ApiRequest, session_id: str) -> HttpResponse:
    """Stop the running turn. The text that the agent has written so far is kept, and queued messages are put on hold.

    The request can be repeated safely.
    """
    return json_response(request, run_command(request, session_id, "cancel"), tagged=False)


@router.post(
    "/sessions/{session_id}/compact",
    response={202: Compacting},
    operation_id="compactSession",
    summary="Summarize earlier messages",
)
def compact(request: ApiRequest, session_id: str) -> HttpResponse:
    """Let the session's model summarize the earlier messages. The event `compaction_ended` reports the result.

    The summary is a message with the field `summarises`. In the context, it replaces all messages before it. If you
    remove the summary, those messages are sent to the model again.
    """
    run_command(request, session_id, "compact")
    return json_response(request, {"compacting": True}, status=202, tagged=False)


@router.post(
    "/sessions/{session_id}/send_now", response=SentNow, operation_id="sendHeldMessages", summary="Send held messages"
)
def send_now(request: ApiRequest, session_id: str, body: HeldMessage) -> HttpResponse:
    """Send queued messages that a stop has put on hold.

    They start a turn, or join the queue while the agent is working.
    """
    return json_response(request, run_command(request, session_id, "send_now", **body.model_dump()))


@router.get(
    "/sessions/{session_id}/agents",
    response=AgentsOfSession,
    operation_id="listSessionAgents",
    summary="List the agents of a session",
)
def list_session_agents(request: ApiRequest, session_id: str) -> HttpResponse:
    """List the session's own agent, followed by the agents that answer when a message mentions them."""
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
    """Add an agent, which answers messages that mention it. The session copies its model, system prompt and tools.

    A session can have eight agents besides its own.
    """
    run_command(request, session_id, "add_agent", agent=name)
    return no_content()


@router.delete(
    "/sessions/{session_id}/agents/{name}",
    response={204: None},
    operation_id="removeSessionAgent",
    summary="Remove an agent from a session",
)
def remove_session_agent(request: ApiRequest, session_id: str, name: str) -> HttpResponse:
    """Remove an agent that was added. Its messages stay. The session's own agent cannot be removed."""
    run_command(request, session_id, "remove_agent", agent=name)
    return no_content()


@router.post(
    "/sessions/{session_id}/continue",
    response=Continued,
    operation_id="continueAnswer",
    summary="Continue an answer that was cut off",
)
def continue_answer(request: ApiRequest, session_id: str) -> HttpResponse:
    """Let the agent continue its last answer, which was cut off by a stop, an error, a restart or the output limit."""
    return json_response(request, run_command(request, session_id, "continue"))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/retry",
    response=Withdrawn,
    operation_id="retryMessage",
    summary="Retry from a message",
)
def retry_message(request: ApiRequest, session_id: str, message_id: str, query: Query[RetryLimits]) -> HttpResponse:
    """Answer again from a message on. All later messages are withdrawn and become an attempt, which can be restored.

    A message of a user is kept and answered again. A message of the agent is withdrawn together with the whole response
    to which it belongs.
    """
    return json_response(request, run_message_command(request, session_id, message_id, "retry", **query.model_dump()))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/run_tools",
    response=Withdrawn,
    operation_id="runToolsAgain",
    summary="Run the tools of a response again",
)
def run_tools(request: ApiRequest, session_id: str, message_id: str, query: Query[Limits]) -> HttpResponse:
    """Withdraw the tool results of the message's response and all later messages, and run the tools again."""
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
    """List the messages that retries have replaced, by attempt. `restoreAttempt` restores an attempt.

    Only editors of the session may list attempts.
    """
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
    """Restore an attempt at its place. The messages that it replaces become an attempt, whose id is returned."""
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
    """Show another of the attempts that follow the message. The attempt that it replaces keeps its number."""
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
    """Copy the messages up to and including this message into a new session, which you own.

    The files in the session's folder are copied in their current state: all of them, or none. The field `forked_files`
    of the new session reports the result. The status is 200 if a request with the same `key` has created the fork
    before.
    """
    forked = run_fork(request, session_id, message_id, **(body or NewFork.model_validate({})).model_dump())
    location = reverse("api:get_session", args=[forked["session"]])
    status = 200 if forked["repeated"] else 201
    return json_response(request, forked, status=status, location=location, tagged=False)


@router.post(
    "/sessions/{session_id}/read", response={204: None}, operation_id="markRead", summary="Mark a session as read"
)
def mark_read(request: ApiRequest, session_id: str, body: ReadPosition) -> HttpResponse:
    """Mark a session as read up to a revision. It stays `unread` if it has newer messages from others."""
    run_command(request, session_id, "read", revision=body.revision)
    return no_content()
