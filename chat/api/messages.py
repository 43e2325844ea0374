"""Messages of a session: read in pages, sent, changed, taken away and put back."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from chat.api.answers import answer, nothing
from chat.api.auth import ApiRequest, session_of
from chat.api.bodies import Body
from chat.api.doing import commands_about, known, obey, obey_about
from chat.api.shapes import MESSAGE_ID, MessagePage
from chat.commands import MOST_KNOWN, Number
from chat.services import reading
from chat.services.errors import NoSuchMessage
from chat.snapshots import AttachmentSnapshot, MessageSnapshot

router = Router(tags=["messages"])
# A page of the API is of so many characters, unless a single message has more.
PAGE_CHARS = 200_000


class MessageQuery(Schema):
    """Which part of the conversation: the newest, or what stands before or after a sequence number."""

    before: Number | None = None
    after: Number | None = None
    limit: int = Field(50, ge=1, le=200)


class NewMessage(Body):
    """What is said. `key` makes one message of a request that is repeated; `attachments` are ids of uploaded files."""

    text: str = Field(examples=["What is 17 times 23?"])
    key: str | None = Field(None, min_length=1, max_length=100)
    attachments: list[str] = Field([], max_length=MOST_KNOWN)


class Sent(Schema):
    """What became of it. `queued`: the agent is at work and takes it up then. `repeated`: it was there already."""

    id: str = Field(examples=[MESSAGE_ID])
    queued: bool
    repeated: bool


class MessageChanges(Body):
    """Other words, or whether the model is sent the message. `revision` is the message's as you saw it."""

    text: str | None = None
    include_in_context: bool | None = None
    revision: Number | None = Field(None, description="Refused as stale if the words have been edited since")


class Returned(Schema):
    """The files of a message that was taken back: they are unsent again."""

    attachments: list[AttachmentSnapshot]


@router.get(
    "/sessions/{session_id}/messages", response=MessagePage, operation_id="listMessages", summary="Read messages"
)
def list_messages(request: ApiRequest, session_id: str, query: Query[MessageQuery]) -> HttpResponse:
    """Fewer than `limit` where they are long. `before` goes back from the newest, `after` on from the oldest."""
    session = session_of(request, session_id)
    if query.after is not None:
        page = reading.page_after(session, query.after, query.limit, PAGE_CHARS)
        more = page.has_newer
    else:
        page = reading.page_of(session, query.before, query.limit, PAGE_CHARS)
        more = page.has_older
    messages, queued = ([each.to_json() for each in some] for some in (page.messages, page.queued))
    return answer(request, {"messages": messages, "queued": queued, "more": more})


@router.post(
    "/sessions/{session_id}/messages",
    response={201: Sent, 200: Sent},
    operation_id="sendMessage",
    summary="Say something",
)
def send_message(request: ApiRequest, session_id: str, body: NewMessage) -> HttpResponse:
    """Begin a turn, or queue while the agent works. 200: the key has sent this message before."""
    sent = obey(request, session_id, "send", **body.model_dump())
    location = reverse("api:get_message", args=[session_id, sent["id"]])
    return answer(request, sent, status=200 if sent["repeated"] else 201, location=location)


@router.get(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageSnapshot,
    operation_id="getMessage",
    summary="Look at a message",
)
def get_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """One that is neither removed nor withdrawn; of one that is being written, what there is so far."""
    return _told(request, session_id, message_id)


@router.patch(
    "/sessions/{session_id}/messages/{message_id}",
    response=MessageSnapshot,
    operation_id="changeMessage",
    summary="Change a message",
)
def change_message(request: ApiRequest, session_id: str, message_id: str, body: MessageChanges) -> HttpResponse:
    """From the next response on, for the model too. `If-Match` is heeded, and means the message as a whole."""
    asked = []
    if body.text is not None:
        asked.append(("edit", {"text": body.text, "revision": body.revision}))
    if body.include_in_context is not None:
        asked.append(("include" if body.include_in_context else "exclude", {}))
    commands_about(request, session_id, message_id, asked)
    return _told(request, session_id, message_id)


@router.delete(
    "/sessions/{session_id}/messages/{message_id}",
    response={204: None},
    operation_id="removeMessage",
    summary="Take a message away",
)
def remove_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Out of view and context; `restore` puts it back. `If-Match` is heeded."""
    obey_about(request, session_id, message_id, "remove")
    return nothing()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/restore",
    response=MessageSnapshot,
    operation_id="restoreMessage",
    summary="Put a message back",
)
def restore_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """In the place that it was removed from; nothing happens to one that is there."""
    obey_about(request, session_id, message_id, "restore")
    return _told(request, session_id, message_id)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/withdraw",
    response=Returned,
    operation_id="withdrawMessage",
    summary="Take a queued message back",
)
def withdraw_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Your own, before the agent has taken it up."""
    return answer(request, obey_about(request, session_id, message_id, "withdraw"))


def _told(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    session = session_of(request, session_id)
    message = reading.message_snapshot(known(message_id))
    if message is None or message.session_id != session.pk:
        raise NoSuchMessage
    return answer(request, message.to_json(), revision=message.revision)
