"""Messages of a session: read, send, change, remove, restore, and exclude them from the context."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Body as BodyParam
from ninja import Query, Router, Schema
from pydantic import Field, model_validator

from chat.api import message_fields
from chat.api.auth import ApiRequest, session_of
from chat.api.commands import message_response, run_command, run_message_command, run_message_commands
from chat.api.message_schemas import EXAMPLE_MESSAGE_ID, EXAMPLE_TURN_ID, AttachmentOut, MessageOut, MessagePage
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.api.streams import require_stream_slot
from chat.api.waiting import MAX_WAIT, wait_for_turn
from chat.commands import MAX_ATTACHMENTS, Number
from chat.live.sign_ins import role_and_name
from chat.queries import messages as message_queries
from chat.queries.messages import MAX_PAGE_MESSAGES, PAGE_MESSAGES

router = Router(tags=["Messages"])
# The maximum size of a page in characters. A longer message is the only one of its page.
API_PAGE_CHARS = 200_000


class MessageQuery(Schema):
    before: Number | None = Field(
        None, description="A `sequence`. Return the last messages before it. Not together with `after`."
    )
    after: Number | None = Field(
        None, description="A `sequence`. Return the first messages after it. Not together with `before`."
    )
    turn: str | None = Field(
        None,
        max_length=32,
        pattern=r"^t_[0-9A-Za-z]+$",
        description="The id of a turn. Return only messages of this turn.",
    )
    limit: int = Field(
        PAGE_MESSAGES, ge=1, le=MAX_PAGE_MESSAGES, description="The maximum number of messages on a page."
    )

    @model_validator(mode="after")
    def _one_direction(self) -> MessageQuery:
        if self.before is not None and self.after is not None:
            raise ValueError("Give `before` or `after`, not both.")
        return self


class SendQuery(Schema):
    wait: int = Field(
        0,
        ge=0,
        le=MAX_WAIT,
        description="The maximum number of seconds to wait for the end of the turn. With 0, the response is sent "
        "immediately.",
    )


class NewMessage(Body):
    """A message to send."""

    text: str = Field(
        examples=["What is 17 times 23?"],
        description="The text in Markdown. It can be empty if the message has attachments.",
    )
    key: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="A text that identifies the request, unique in the session, such as a random UUID. If you repeat "
        "the request with the same key, the message is sent only once.",
    )
    attachments: list[str] = Field(
        [], max_length=MAX_ATTACHMENTS, description="The ids of files that you have uploaded with `uploadAttachment`."
    )


class SentMessage(Schema):
    """The message that was sent. With `wait`, the response also contains the outcome and the messages of its turn."""

    id: str = Field(examples=[EXAMPLE_MESSAGE_ID], description="The id of the message.")
    turn_id: str | None = Field(
        examples=[EXAMPLE_TURN_ID],
        description="The id of the turn. Null while the message is queued, and if it is for no agent. With `wait`, if "
        "the turn has failed and its agent has answered again in a later turn, this is the later turn.",
    )
    sequence: message_fields.Sequence
    queued: bool = Field(
        description="Whether the message was queued because the agent is working. The agent gets it after the current "
        "turn."
    )
    repeated: bool = Field(description="Whether a request with the same `key` has sent the message before.")
    outcome: (
        Literal["queued", "running", "held", "waiting", "completed", "interrupted", "failed", "withdrawn", "unknown"]
        | None
    ) = Field(
        None,
        description="The outcome of the turn. `queued`, `running`: the time is up. `held`: a stop has put the message "
        "on hold until a user sends it with `sendHeldMessages`. `waiting`: the agent, or another agent that works for "
        "it, waits for a user. `completed`, `interrupted`, `failed`: the turn has ended. `completed` with a null "
        "`turn_id`: no agent answers the message, because it mentions none. `withdrawn`: the message was withdrawn. "
        "`unknown`: the server stopped, or your access ended. Null without `wait`.",
    )
    messages: list[MessageOut] | None = Field(None, description="The messages of the turn. Null without `wait`.")
    more: bool | None = Field(
        None,
        description="Whether the turn has more messages, which `listMessages` returns with `turn`. Null without "
        "`wait`.",
    )


class MessageChanges(Body):
    """Changes of a message. Fields that are left out or null keep their values."""

    text: str | None = Field(None, description="The new text.")
    include_in_context: bool | None = Field(None, description="Whether the message is sent to the model.")
    revision: Number | None = Field(
        None,
        description="The `revision` of the message that you have read. If its text was edited since, the request is "
        "refused as `stale`.",
    )


class NewAnswer(Body):
    """An answer to the question of a tool call."""

    value: Any = Field(
        description="The answer. Its form depends on the `question` of the tool call. `approval`: `{approved, scope, "
        "arguments, comment}`. `confirmation`: `{confirmed}`. `selection`: a list of ids. `action_selection`: an id. "
        "`form`: an object with the values by their ids. `feedback`: an object with the texts by their ids. `memory`: "
        "`{decision, note, scope}`. `plan_review`: `{decision, plan, comment}`. `elicitation`: `{action, content, "
        "number}`. docs/protocol.md describes each form."
    )


class WithdrawnMessage(Schema):
    """The result of withdrawing a queued message."""

    attachments: list[AttachmentOut] = Field(
        description="The files of the message, which are unsent again. Empty if you are not its sender."
    )


class ContextChange(Schema):
    """The result of excluding or including messages."""

    count: int = Field(description="The number of messages that have changed.")
    since: int = Field(description="The revision to send to `includeBefore` to undo exactly this change.")


class IncludeBefore(Body):
    """The messages to include again."""

    since: Number | None = Field(
        None,
        description="The `since` that `excludeBefore` returned. Only messages that it excluded and that no user has "
        "changed since are included. If null, all messages before the message are included.",
    )


@router.get(
    "/sessions/{session_id}/messages", response=MessagePage, operation_id="listMessages", summary="List messages"
)
def list_messages(request: ApiRequest, session_id: str, query: Query[MessageQuery]) -> HttpResponse:
    """List the messages of a session, by default the newest ones. A page has fewer than `limit` messages if they are
    long.
    """
    session = session_of(request, session_id)
    if query.after is not None:
        page = message_queries.page_after(session, query.after, query.limit, API_PAGE_CHARS, query.turn)
        more = page.has_newer
    else:
        page = message_queries.page_before(session, query.before, query.limit, API_PAGE_CHARS, query.turn)
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
    """Send a message, which starts a turn. While the agent is working, the message is queued.

    The status is 200 if a request with the same `key` has sent the message before.

    With `wait`, the response is sent when the turn has completed, failed or was interrupted, when it waits for a user,
    or when the time is up. Until then, the server sends spaces before the JSON. A request with `wait` counts as an
    event stream. If you have too many event streams open, it is refused as `too_many_streams` and sends no message.
    """
    name = ""
    if query.wait:  # before the write: a refused request can be repeated with its key
        require_stream_slot(request.user.pk)
        _role, name = role_and_name(request.user, session_id)
    sent = run_command(request, session_id, "send", **body.model_dump())
    location = reverse("api:get_message", args=[session_id, sent["id"]])
    if query.wait:
        return wait_for_turn(request, session_id, sent, query.wait, location, name=name)
    return json_response(request, sent, status=200 if sent["repeated"] else 201, location=location, tagged=False)


@router.get(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="getMessage",
    summary="Retrieve a message",
)
def get_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Return a message. While it is being written, its `text` is the text so far.

    A removed message is not found (404).
    """
    return message_response(request, session_id, message_id)


@router.patch(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="changeMessage",
    summary="Change a message",
)
def change_message(request: ApiRequest, session_id: str, message_id: str, body: MessageChanges) -> HttpResponse:
    """Change the text of a message, or whether it is sent to the model. Changes take effect with the next response.

    Only its author and the session's owner may change a message of a user. All editors may change messages of the
    agent, and `include_in_context` of any message.
    """
    changes: list[tuple[str, dict[str, object]]] = []
    if body.text is not None:
        changes.append(("edit", {"text": body.text, "revision": body.revision}))
    if body.include_in_context is not None:
        seen: dict[str, object] = {"revision": body.revision} if body.text is None else {}  # `edit` has checked it
        changes.append(("include" if body.include_in_context else "exclude", seen))
    run_message_commands(request, session_id, message_id, changes)
    return message_response(request, session_id, message_id)


@router.delete(
    "/sessions/{session_id}/messages/{message_id}",
    response={204: None},
    operation_id="removeMessage",
    summary="Remove a message",
)
def remove_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Remove a message from the session and from the context. `restoreMessage` restores it."""
    run_message_command(request, session_id, message_id, "remove")
    return no_content()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/answer",
    response=MessageOut,
    operation_id="answerMessage",
    summary="Answer a question of the agent",
)
def answer_message(request: ApiRequest, session_id: str, message_id: str, body: NewAnswer) -> HttpResponse:
    """Answer a tool call that waits for a user, so that the turn continues. `question` determines the form of the
    answer.

    The request is refused as `already_answered` if a user has already answered, and as `invalid` if the value does not
    fit the question.
    """
    run_message_command(request, session_id, message_id, "answer", value=body.value)
    return message_response(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/restore",
    response=MessageOut,
    operation_id="restoreMessage",
    summary="Restore a removed message",
)
def restore_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Restore a removed message at its place. A message that was not removed stays unchanged."""
    run_message_command(request, session_id, message_id, "restore")
    return message_response(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/withdraw",
    response=WithdrawnMessage,
    operation_id="withdrawMessage",
    summary="Withdraw a queued message",
)
def withdraw_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Withdraw a queued message that the agent has not received yet.

    Only its sender and the session's owner may withdraw it. Only the sender gets the files of the message back.
    """
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
    """Exclude all messages before this message from the context. They stay visible, but are no longer sent to the
    model.
    """
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
    """Include all messages before this message in the context again.

    With `since`, only those are included that an `excludeBefore` request excluded.
    """
    since = body.since if body else None
    result = run_message_command(request, session_id, message_id, "include_before", since=since)
    return json_response(request, result, tagged=False)
