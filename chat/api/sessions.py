"""Sessions: listed, begun, looked at, changed, deleted and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.reasoning import LARGEST_BUDGET
from chat.api.answers import answer, nothing, seen_by
from chat.api.auth import ApiRequest, workspace_named
from chat.api.bodies import Body
from chat.api.doing import command
from chat.api.shapes import SessionOut, SessionPage, cursor_of, place_of, row_out, session_out
from chat.commands import LONGEST_PROMPT, Malformed, Request
from chat.models import Session
from chat.services.access import session_for
from chat.services.amending import amend
from chat.services.listing import listed_before
from chat.services.once import once
from chat.services.organising import Deed, organise
from chat.services.sessions import begin_session

router = Router(tags=["sessions"])
STATUS = {"archived": Deed.ARCHIVE, "active": Deed.RESTORE}
PINNED = {True: Deed.PIN, False: Deed.UNPIN}


class SessionQuery(Schema):
    """Which part of the list."""

    workspace: int | None = Field(None, description="Those of this one; of all that are yours without it")
    archived: bool = False
    limit: int = Field(50, ge=1, le=100)
    cursor: str | None = Field(None, max_length=60, description="`next` of the page before")


class NewSession(Body):
    """What a session begins with. `text` is its first message; `key` makes one session of repeated requests."""

    title: str = Field("", max_length=200)
    text: str = Field("", examples=["Plan a project with me, step by step"])
    agent: str = Field("", max_length=80, description="The name of an agent; empty: the default one")
    provider: str = Field("", max_length=80)
    model: str = Field("", max_length=200, description="Empty: the agent's own")
    reasoning_effort: str | None = Field(None, max_length=10, description="Null: the agent's own; empty: the model's")
    thinking_budget: int | None = Field(
        None, ge=0, le=LARGEST_BUDGET, description="In tokens. Null: the agent's own; 0: the model's"
    )
    system_prompt: str | None = Field(None, max_length=LONGEST_PROMPT, description="Null: the agent's own")
    workspace: int | None = Field(None, description="Where it is to be; null: in the one that you are in")
    key: str | None = Field(None, min_length=1, max_length=100)


class SessionChanges(Body):
    """What is to be changed; the rest stays. All of it is changed or nothing."""

    title: str | None = Field(None, examples=["Release plan"])
    agent: str | None = Field(None, max_length=80)
    provider: str | None = Field(None, max_length=80)
    model: str | None = Field(None, max_length=200)
    reasoning_effort: str | None = Field(
        None, max_length=10, examples=["high"], description="One of the model's levels (GET /models); empty: its own"
    )
    thinking_budget: int | None = Field(None, ge=0, le=LARGEST_BUDGET, description="In tokens; 0: the model's own")
    system_prompt: str | None = Field(None, max_length=LONGEST_PROMPT)
    seen_system_prompt: str | None = Field(
        None,
        max_length=LONGEST_PROMPT,
        description="What it was when you saw it: refused as stale if it is not any more",
    )
    status: Literal["active", "archived"] | None = Field(None, description="For the owner")
    pinned: bool | None = Field(None, description="In your own list")


@router.get("/sessions", response=SessionPage, operation_id="listSessions", summary="List your sessions")
def list_sessions(request: ApiRequest, query: Query[SessionQuery]) -> HttpResponse:
    """Your own and those that are shared with you, the last active first."""
    place = place_of(query.cursor) if query.cursor else None
    workspace = workspace_named(request, query.workspace)
    within = Q(workspace=workspace) if workspace else None
    found = listed_before(request.user, place, count=query.limit, archived=query.archived, within=within)
    following = cursor_of(found.rows[-1]) if found.more else None
    return answer(request, {"sessions": [row_out(row) for row in found.rows], "next": following})


@router.post(
    "/sessions", response={201: SessionOut, 200: SessionOut}, operation_id="createSession", summary="Begin a session"
)
def create_session(request: ApiRequest, body: NewSession) -> HttpResponse:
    """With its first message already sent, if there is one. 200: the key has made this session before."""
    chosen = body.model_dump(exclude={"key", "workspace"})

    def make(session_id: str) -> Session:
        workspace = workspace_named(request, body.workspace)
        return begin_session(owner=request.user, workspace=workspace, session_id=session_id, **chosen)

    made, repeated = once(user=request.user, purpose="session", key=body.key, make=make)
    return _told(request, made.pk, status=200 if repeated else 201, location=reverse("api:get_session", args=[made.pk]))


@router.get("/sessions/{session_id}", response=SessionOut, operation_id="getSession", summary="Look at a session")
def get_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Its state and what its agent does now."""
    return _told(request, session_id)


@router.patch("/sessions/{session_id}", response=SessionOut, operation_id="changeSession", summary="Change a session")
def change_session(request: ApiRequest, session_id: str, body: SessionChanges) -> HttpResponse:
    """Title, agent, model and system prompt are for editors and hold from its next response on. `If-Match` counts."""
    amend(
        user=request.user,
        session_id=session_id,
        commands=list(_commands(body)),
        deeds=list(_deeds(body)),
        seen=seen_by(request),
    )
    return _told(request, session_id)


@router.delete("/sessions/{session_id}", response={204: None}, operation_id="deleteSession", summary="Delete a session")
def delete_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Take your own session from everybody. Its turn is stopped; `undelete` brings all of it back."""
    amend(user=request.user, session_id=session_id, deeds=[Deed.DELETE], seen=seen_by(request))
    return nothing()


@router.post(
    "/sessions/{session_id}/undelete", response=SessionOut, operation_id="undeleteSession", summary="Undo a deletion"
)
def undelete_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Bring back a session of your own that was deleted, for everybody who was in it."""
    organise(user=request.user, deed=Deed.UNDELETE, session_ids=[session_id])
    return _told(request, session_id)


@router.post(
    "/sessions/{session_id}/leave", response={204: None}, operation_id="leaveSession", summary="Leave a session"
)
def leave_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Give up your share of somebody else's session."""
    organise(user=request.user, deed=Deed.LEAVE, session_ids=[session_id])
    return nothing()


def _told(request: ApiRequest, session_id: str, *, status: int = 200, location: str = "") -> HttpResponse:
    session, role = session_for(request.user, session_id)
    return answer(request, session_out(session, role), revision=session.revision, status=status, location=location)


def _commands(body: SessionChanges) -> Iterator[Request]:
    """The agent first: it brings a model and a system prompt of its own; then the model, which decides on levels."""
    if body.agent is not None:
        yield command("set_agent", agent=body.agent)
    if (body.provider is None) != (body.model is None):
        raise Malformed("model: A model is named together with its provider.")
    if body.provider is not None:
        yield command("set_model", provider=body.provider, model=body.model)
    if body.reasoning_effort is not None or body.thinking_budget is not None:
        yield command("set_reasoning", effort=body.reasoning_effort, budget=body.thinking_budget)
    if body.system_prompt is not None:
        yield command("set_system_prompt", system_prompt=body.system_prompt, seen=body.seen_system_prompt)
    if body.title is not None:
        yield command("rename", title=body.title)


def _deeds(body: SessionChanges) -> Iterator[Deed]:
    if body.status is not None:
        yield STATUS[body.status]
    if body.pinned is not None:
        yield PINNED[body.pinned]
