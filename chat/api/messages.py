"""Messages of a session: read in pages, sent, changed, removed and restored."""

from __future__ import annotations

from typing import Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field, model_validator

from chat.api.auth import ApiRequest, session_of
from chat.api.commands import commands_about, known, obey, obey_about
from chat.api.parsing import Body
from chat.api.responses import answer, nothing
from chat.api.schemas import MESSAGE_ID, TURN_ID, AttachmentOut, MessageOut, MessagePage
from chat.api.streams import require_room
from chat.api.waiting import LONGEST_WAIT, wait_for_turn
from chat.commands import MOST_KNOWN, Number
from chat.errors import NoSuchMessage
from chat.queries import messages as reading

router = Router(tags=["Messages"])
# A page of the API is of so many characters, unless a single message has more.
PAGE_CHARS = 200_000


class MessageQuery(Schema):
    before: Number | None = Field(None, description="Messages with a smaller `sequence`: go back from the newest")
    after: Number | None = Field(None, description="Messages with a greater `sequence`: go on from the oldest")
    turn: str | None = Field(None, max_length=32, pattern=r"^t_[0-9A-Za-z]+$", description="Messages of this turn only")
    limit: int = Field(50, ge=1, le=200)

    @model_validator(mode="after")
    def _one_direction(self) -> MessageQuery:
        if self.before is not None and self.after is not None:
            raise ValueError("Give `before` or `after`, not both.")
        return self


class SendQuery(Schema):
    wait: int = Field(0, ge=0, le=LONGEST_WAIT, description="Answer when the turn is at rest, or after these seconds")


class NewMessage(Body):
    """`key` makes a repeated request return the message of the first one."""

    text: str = Field(examples=["What is 17 times 23?"])
    key: str | None = Field(None, min_length=1, max_length=100)
    attachments: list[str] = Field([], max_length=MOST_KNOWN, description="Ids of uploaded files")


class SentMessage(Schema):
    """The message that was sent. With `wait`, also the outcome and the messages of its turn."""

    id: str = Field(examples=[MESSAGE_ID])
    turn_id: str | None = Field(examples=[TURN_ID], description="Null while queued")
    sequence: int | None = Field(description="Null while queued")
    queued: bool = Field(description="The agent is working, and takes the message up next")
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

    text: str | None = None
    include_in_context: bool | None = Field(None, description="Whether the model is sent the message")
    revision: Number | None = Field(
        None, description="The message's revision that you read: refused as `stale` if its text was edited since"
    )


class WithdrawnMessage(Schema):
    """The files of your own message; they are unsent again."""

    attachments: list[AttachmentOut]


@router.get(
    "/sessions/{session_id}/messages", response=MessagePage, operation_id="listMessages", summary="List messages"
)
def list_messages(request: ApiRequest, session_id: str, query: Query[MessageQuery]) -> HttpResponse:
    """The newest ones by default. A page has fewer than `limit` messages when they are long."""
    session = session_of(request, session_id)
    if query.after is not None:
        page = reading.page_after(session, query.after, query.limit, PAGE_CHARS, query.turn)
        more = page.has_newer
    else:
        page = reading.page_of(session, query.before, query.limit, PAGE_CHARS, query.turn)
        more = page.has_older
    messages, queued = ([each.to_json() for each in some] for some in (page.messages, page.queued))
    return answer(request, {"messages": messages, "queued": queued, "more": more})


@router.post(
    "/sessions/{session_id}/messages",
    response={201: SentMessage, 200: SentMessage},
    operation_id="sendMessage",
    summary="Send a message",
)
def send_message(request: ApiRequest, session_id: str, body: NewMessage, query: Query[SendQuery]) -> HttpResponseBase:
    """Begin a turn, or queue the message while the agent works. 200: a request with this key has sent it before.

    With `wait` the answer comes when the turn is at rest: completed, failed, interrupted, or waiting for a person,
    who has to answer the agent or to send a message that a stop has held. Such a request counts as an event stream:
    if you have too many open, it is refused as `too_many_streams` and sends nothing.
    """
    if query.wait:
        require_room(request.user.pk)  # before anything is written: a refused request can be repeated with its key
    sent = obey(request, session_id, "send", **body.model_dump())
    location = reverse("api:get_message", args=[session_id, sent["id"]])
    if query.wait:
        return wait_for_turn(request, session_id, sent, query.wait, location)
    return answer(request, sent, status=200 if sent["repeated"] else 201, location=location, tagged=False)


@router.get(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="getMessage",
    summary="Read a message",
)
def get_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """While it is being written, its text so far. Removed messages are not found."""
    return _current(request, session_id, message_id)


@router.patch(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageOut,
    operation_id="changeMessage",
    summary="Change a message",
)
def change_message(request: ApiRequest, session_id: str, message_id: str, body: MessageChanges) -> HttpResponse:
    """The model sees the change from its next response on."""
    asked = []
    if body.text is not None:
        asked.append(("edit", {"text": body.text, "revision": body.revision}))
    if body.include_in_context is not None:
        asked.append(("include" if body.include_in_context else "exclude", {}))
    commands_about(request, session_id, message_id, asked)
    return _current(request, session_id, message_id)


@router.delete(
    "/sessions/{session_id}/messages/{message_id}",
    response={204: None},
    operation_id="removeMessage",
    summary="Remove a message",
)
def remove_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """From the session and from the context; `restore` puts it back."""
    obey_about(request, session_id, message_id, "remove")
    return nothing()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/restore",
    response=MessageOut,
    operation_id="restoreMessage",
    summary="Restore a removed message",
)
def restore_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Put it back in its place. A message that was not removed stays as it is."""
    obey_about(request, session_id, message_id, "restore")
    return _current(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/withdraw",
    response=WithdrawnMessage,
    operation_id="withdrawMessage",
    summary="Withdraw a queued message",
)
def withdraw_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Its sender and the session's owner may, before the agent takes it up. Files come back to the sender only."""
    returned = obey_about(request, session_id, message_id, "withdraw")["attachments"]
    shown = [{name: file[name] for name in AttachmentOut.model_fields} for file in returned]
    return answer(request, {"attachments": shown}, tagged=False)


def _current(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    session = session_of(request, session_id)
    message = reading.message_snapshot(known(message_id))
    if message is None or message.session_id != session.pk:
        raise NoSuchMessage
    return answer(request, message.to_json(), revision=message.revision)
