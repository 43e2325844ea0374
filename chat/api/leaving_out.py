"""Many messages left out of what the model is sent at once, and taken in again."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Router, Schema

from chat.api.answers import answer
from chat.api.auth import ApiRequest
from chat.api.bodies import Body
from chat.api.doing import obey_about
from chat.commands import Number

router = Router(tags=["messages"])


class LeftOut(Schema):
    """How many messages were changed; `since` is what undoing it is asked with."""

    count: int
    since: int


class Since(Body):
    """`since`: only what the `exclude_before` that answered it left out, as far as nobody has decided on it since."""

    since: Number | None = None


@router.post(
    "/sessions/{session_id}/messages/{message_id}/exclude_before",
    response=LeftOut,
    operation_id="excludeBefore",
    summary="Leave out all that stands before a message",
)
def exclude_before(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """It is shown as ever, and the model is not sent it any more."""
    return answer(request, obey_about(request, session_id, message_id, "exclude_before"))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/include_before",
    response=LeftOut,
    operation_id="includeBefore",
    summary="Take in again what stands before a message",
)
def include_before(request: ApiRequest, session_id: str, message_id: str, body: Since) -> HttpResponse:
    """All of it, or what was left out at once before."""
    return answer(request, obey_about(request, session_id, message_id, "include_before", since=body.since))
