"""Messages of a session: read, send, change, remove, restore, and exclude them from the context."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Body as BodyParam
from ninja import Query, Router, Schema
from pydantic import Field, model_validator

from chat.api.auth import ApiRequest, session_of
from chat.api.commands import checked_id, run_command, run_message_command, run_message_commands
from chat.api.message_schemas import MESSAGE_ID, TURN_ID, AttachmentOut, MessageOut, MessagePage
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.api.streams import require_stream_slot
from chat.api.waiting import LONGEST_WAIT, wait_for_turn
from chat.commands import MOST_KNOWN, Number
from chat.errors import NoSuchMessage
from chat.queries import messages as message_queries
from chat.queries.messages import MOST_PAGE_MESSAGES, PAGE_MESSAGES

router = Router(tags=["Messages"])
# The size of a page; a single longer message is a page of its own.
API_PAGE_CHARS = 200_000


class MessageQuery(Schema):
    before: Number | None = Field(
        None, description="Messages with a smaller `sequence`: page backwards from the newest"
    )
    after: Number | None = Field(None, description="Messages with a greater `sequence`: page forwards from the oldest")
    turn: str | None = Field(None, max_length=32, pattern=r"^t_[0-9A-Za-z]+$", description="Messages of this turn only")
    limit: int = Field(PAGE_MESSAGES, ge=1, le=MOST_PAGE_MESSAGES, description="The most that a page has")

    @model_validator(mode="after")
    def _one_direction(self) -> MessageQuery:
        if self.before is not None and self.after is not None:
            raise ValueError("Give `before` or `after`, not both.")
        return self


class SendQuery(Schema):
    wait: int = Field(0, ge=0, le=LONGEST_WAIT, description="Answer when the turn is at rest, or after these seconds")


class NewMessage(Body):
    """`key` makes a repeated request return the message of the first one."""

    text: str = Field(examples=["What is 17 times 23?"], description="Markdown; may be empty with attachments")
    key: str | None = Field(None, min_length=1, max_length=100, description="Any text that names this request")
    attachments: list[str] = Field([], max_length=MOST_KNOWN, description="Ids of uploaded files")


class SentMessage(Schema):
    """The message that was sent. With `wait`, also the outcome and the messages of its turn."""

    id: str = Field(examples=[MESSAGE_ID])
    turn_id: str | None = Field(examples=[TURN_ID], description="Null while queued")
    sequence: int | None = Field(description="Null while queued")
    queued: bool = Field(description="The agent is working, and reads the message next")
    repeated: bool = Field(description="A request with this key has sent the message before")
    outcome: (
        Literal["queued", "running", "held", "waiting", "completed", "interrupted", "failed", "withdrawn", "unknown"]
        | None
    ) = Field(
        None,
        description="With `wait`. `queued`, `running`: the time was up. `held`: a stop has put the message on hold; "
        "`send_now` sends it. `waiting`: the agent waits for a person. `unknown`: the server stopped or your access "
        "ended",
    )
    messages: list[MessageOut] | None = Field(None, description="With `wait`: the messages of the turn")
    more: bool | None = Field(None, description="With `wait`: the turn has more messages; read them with `?turn=`")


class MessageChanges(Body):
    """Fields that are left out keep their values."""

    text: str | None = Field(None, description="The new text")
    include_in_context: bool | None = Field(None, description="Whether the model is sent the message")
    revision: Number | None = Field(
        None, description="The message's revision that you read: refused as `stale` if its text was edited since"
    )


class NewAnswer(Body):
    value: Any = Field(
        description="`approval`: {approved, scope, arguments, comment}; `form`, `feedback`: an object by id; "
        "`selection`: a list of ids; `confirmation`: {confirmed}; `plan_review`: {decision, plan, comment}; "
        "`action_selection`: an id; `elicitation`: {action, content, number}"
    )


class WithdrawnMessage(Schema):
    """The files of your own message; they are unsent again."""

    attachments: list[AttachmentOut]


class ContextChange(Schema):
    count: int = Field(description="How many messages were changed")
    since: int = Field(description="What `include_before` takes to undo exactly this change")


class IncludeBefore(Body):
    since: Number | None = Field(
        None, description="The `since` of an `exclude_before`: include only what it excluded and no one changed since"
    )


@router.get(
    "/sessions/{session_id}/messages", response=MessagePage, operation_id="listMessages", summary="List messages"
)
def list_messages(request: ApiRequest, session_id: str, query: Query[MessageQuery]) -> HttpResponse:
    """The newest ones by default. A page has fewer than `limit` messages when they are long."""
    session = session_of(request, session_id)
    if query.after is not None:
        page = message_queries.page_after(session, query.after, query.limit, API_PAGE_CHARS, query.turn)
        more = page.has_newer
    else:
        page = message_queries.page_of(session, query.before, query.limit, API_PAGE_CHARS, query.turn)
        more = page.has_older
    messages, queued = ([each.to_json() for each in some] for some in (page.messages, page.queued))
    return json_response(request, {"messages": messages, "queued": queued, "more": more})


@router.post(
    "/sessions/{session_id}/messages",
    response={201: SentMessage, 200: SentMessage},
    operation_id="sendMessage",
    summary="Send a message",
)
def send_message(request: ApiRequest, session_id: str, body: NewMessage, query: Query[SendQuery]) -> HttpResponseBase:
    """Begin a turn, or queue the message while the agent works. 200: a request with this key sent it before.

    With `wait` the answer comes when the turn is at rest: completed, failed, interrupted, or waiting for a person,
    who has to answer the agent or to send a message that a stop has held. Such a request counts as an event stream:
    if you have too many open, it is refused as `too_many_streams` and sends nothing.
    """
    if query.wait:
        require_stream_slot(request.user.pk)  # before the write: a refused request can be repeated with its key
    sent = run_command(request, session_id, "send", **body.model_dump())
    location = reverse("api:get_message", args=[session_id, sent["id"]])
    if query.wait:
        return wait_for_turn(request, session_id, sent, query.wait, location)
    return json_response(request, sent, status=200 if sent["repeated"] else 201, location=location, tagged=False)


@router.get(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="getMessage",
    summary="Read a message",
)
def get_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """A message that is being written has its text so far. Removed messages are not found."""
    return _current(request, session_id, message_id)


@router.patch(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="changeMessage",
    summary="Change a message",
)
def change_message(request: ApiRequest, session_id: str, message_id: str, body: MessageChanges) -> HttpResponse:
    """The model sees the change from its next response on."""
    changes: list[tuple[str, dict[str, object]]] = []
    if body.text is not None:
        changes.append(("edit", {"text": body.text, "revision": body.revision}))
    if body.include_in_context is not None:
        changes.append(("include" if body.include_in_context else "exclude", {}))
    run_message_commands(request, session_id, message_id, changes)
    return _current(request, session_id, message_id)


@router.delete(
    "/sessions/{session_id}/messages/{message_id}",
    response={204: None},
    operation_id="removeMessage",
    summary="Remove a message",
)
def remove_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Remove the message from the session and from the context. `restore` puts it back."""
    run_message_command(request, session_id, message_id, "remove")
    return no_content()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/answer",
    response=MessageOut,
    operation_id="answerMessage",
    summary="Answer the agent",
)
def answer_message(request: ApiRequest, session_id: str, message_id: str, body: NewAnswer) -> HttpResponse:
    """Answer a tool call that waits for a person, by the kind of its `question`. The turn goes on.

    Refused as `already_answered` if someone was faster, and as `invalid` if the answer does not fit the question.
    """
    run_message_command(request, session_id, message_id, "answer", value=body.value)
    return _current(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/restore",
    response=MessageOut,
    operation_id="restoreMessage",
    summary="Restore a removed message",
)
def restore_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Put it back in its place. A message that was not removed stays as it is."""
    run_message_command(request, session_id, message_id, "restore")
    return _current(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/withdraw",
    response=WithdrawnMessage,
    operation_id="withdrawMessage",
    summary="Withdraw a queued message",
)
def withdraw_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Only its sender and the session's owner may, before the agent reads it. Only the sender gets the files back."""
    returned = run_message_command(request, session_id, message_id, "withdraw")["attachments"]
    shown = [{name: file[name] for name in AttachmentOut.model_fields} for file in returned]
    return json_response(request, {"attachments": shown}, tagged=False)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/exclude_before",
    response=ContextChange,
    operation_id="excludeBefore",
    summary="Exclude all messages before a message",
)
def exclude_before(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """They stay visible, but are no longer sent to the model."""
    return json_response(request, run_message_command(request, session_id, message_id, "exclude_before"), tagged=False)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/include_before",
    response=ContextChange,
    operation_id="includeBefore",
    summary="Include all messages before a message",
)
def include_before(
    request: ApiRequest,
    session_id: str,
    message_id: str,
    body: BodyParam[IncludeBefore | None] = None,
) -> HttpResponse:
    """Include all of them, or only those that one `exclude_before` excluded."""
    since = body.since if body else None
    result = run_message_command(request, session_id, message_id, "include_before", since=since)
    return json_response(request, result, tagged=False)


def _current(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    session = session_of(request, session_id)
    message = message_queries.message_snapshot(checked_id(message_id))
    if message is None or message.session_id != session.pk:
        raise NoSuchMessage
    return json_response(request, message.to_json(), revision=message.revision)
