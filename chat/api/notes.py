"""Notes that agents remember across sessions: your own, and those of a workspace."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.messages import Json
from agents.questions import LONGEST_NOTE
from chat.access import workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.errors import Invalid
from chat.models import MemoryNote
from chat.permissions import Permission
from chat.queries.memory import kept_and_removed
from chat.services.people import memory

router = Router(tags=["Notes"])


TEXT = "The note"


class NoteOut(Schema):
    """A note. Agents get those that are `accepted`."""

    id: int
    text: str
    accepted: bool = Field(description="False for a proposal of a workspace's member")
    session: str | None = Field(description="The session that it comes from")
    made_by: str = Field(description="The name of the user; empty if the account is deleted")
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None = Field(description="When it was removed; the last twenty can be restored")


class Notes(Schema):
    """In the order in which agents get them; removed notes with the last removed one first."""

    notes: list[NoteOut]


class NotesQuery(Schema):
    removed: bool = Field(False, description="Removed notes instead")


class NewNote(Body):
    text: str = Field(min_length=1, max_length=LONGEST_NOTE, examples=["We use metric units."], description=TEXT)


class NoteChange(Body):
    """`accepted` accepts a proposal. Fields that are left out keep their values."""

    text: str | None = Field(None, min_length=1, max_length=LONGEST_NOTE, description=TEXT)
    accepted: bool | None = Field(None, description="Only true: remove a proposal to reject it")


class MyNoteChange(Body):
    text: str = Field(min_length=1, max_length=LONGEST_NOTE, description=TEXT)


@router.get("/me/notes", response=Notes, operation_id="listMyNotes", summary="List your notes")
def list_my_notes(request: ApiRequest, query: Query[NotesQuery]) -> HttpResponse:
    """What agents remember about you. They get these notes in sessions that only you can read."""
    return _listed(request, query, user=request.user)


@router.post("/me/notes", response={201: NoteOut}, operation_id="addMyNote", summary="Add a note of your own")
def add_my_note(request: ApiRequest, body: NewNote) -> HttpResponse:
    """At most 50."""
    return json_response(request, _note(memory.keep_mine(user=request.user, text=body.text)), status=201, tagged=False)


@router.patch("/me/notes/{note_id}", response=NoteOut, operation_id="changeMyNote", summary="Change one of your notes")
def change_my_note(request: ApiRequest, note_id: int, body: MyNoteChange) -> HttpResponse:
    """From the next response on."""
    return _mine(request, note_id, "edit", body.text)


@router.delete(
    "/me/notes/{note_id}", response={204: None}, operation_id="removeMyNote", summary="Remove one of your notes"
)
def remove_my_note(request: ApiRequest, note_id: int) -> HttpResponse:
    """`restore` brings it back."""
    memory.change_mine(user=request.user, note_id=note_id, act="remove")
    return no_content()


@router.post(
    "/me/notes/{note_id}/restore",
    response=NoteOut,
    operation_id="restoreMyNote",
    summary="Restore one of your removed notes",
)
def restore_my_note(request: ApiRequest, note_id: int) -> HttpResponse:
    """The last twenty can be restored."""
    return _mine(request, note_id, "restore")


@router.get(
    "/workspaces/{workspace_id}/notes",
    response=Notes,
    operation_id="listWorkspaceNotes",
    summary="List the notes of a workspace",
)
def list_workspace_notes(request: ApiRequest, workspace_id: int, query: Query[NotesQuery]) -> HttpResponse:
    """What agents remember in all sessions of the workspace, with proposals. Its members may read them."""
    needs = Permission.MANAGE_NOTES if query.removed else Permission.SEE_MEMBERS
    return _listed(request, query, workspace=workspace_where(request.user, needs, workspace_id))


@router.post(
    "/workspaces/{workspace_id}/notes",
    response={201: NoteOut},
    operation_id="addWorkspaceNote",
    summary="Add a note of a workspace",
)
def add_workspace_note(request: ApiRequest, workspace_id: int, body: NewNote) -> HttpResponse:
    """A note of a member is a proposal until an owner or admin accepts it."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    note = memory.keep_ours(author=request.user, workspace_id=workspace.pk, text=body.text)
    return json_response(request, _note(note), status=201, tagged=False)


@router.patch(
    "/workspaces/{workspace_id}/notes/{note_id}",
    response=NoteOut,
    operation_id="changeWorkspaceNote",
    summary="Change or accept a note of a workspace",
)
def change_workspace_note(request: ApiRequest, workspace_id: int, note_id: int, body: NoteChange) -> HttpResponse:
    """Only owners and admins may."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    if body.text is None and not body.accepted:
        raise Invalid(_("Choose what to do with the note."))
    if body.text is not None:
        note = memory.change_ours(
            author=request.user, workspace_id=workspace.pk, note_id=note_id, act="edit", text=body.text
        )
    if body.accepted:
        note = memory.change_ours(author=request.user, workspace_id=workspace.pk, note_id=note_id, act="accept")
    return json_response(request, _note(note))


@router.delete(
    "/workspaces/{workspace_id}/notes/{note_id}",
    response={204: None},
    operation_id="removeWorkspaceNote",
    summary="Remove a note of a workspace",
)
def remove_workspace_note(request: ApiRequest, workspace_id: int, note_id: int) -> HttpResponse:
    """Owners and admins may, and members their own proposals. `restore` brings it back."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    memory.change_ours(author=request.user, workspace_id=workspace.pk, note_id=note_id, act="remove")
    return no_content()


@router.post(
    "/workspaces/{workspace_id}/notes/{note_id}/restore",
    response=NoteOut,
    operation_id="restoreWorkspaceNote",
    summary="Restore a removed note of a workspace",
)
def restore_workspace_note(request: ApiRequest, workspace_id: int, note_id: int) -> HttpResponse:
    """The last twenty can be restored, by owners and admins."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    note = memory.change_ours(author=request.user, workspace_id=workspace.pk, note_id=note_id, act="restore")
    return json_response(request, _note(note))


def _listed(request: ApiRequest, query: NotesQuery, **whose: object) -> HttpResponse:
    kept, removed = kept_and_removed(**whose)
    return json_response(request, {"notes": [_note(each) for each in (removed if query.removed else kept)]})


def _mine(request: ApiRequest, note_id: int, act: str, text: str = "") -> HttpResponse:
    note = memory.change_mine(user=request.user, note_id=note_id, act=act, text=text)
    return json_response(request, _note(note))


def _note(note: MemoryNote) -> Json:
    return {
        "id": note.pk,
        "text": note.text,
        "accepted": note.accepted,
        "session": note.session_id,
        "made_by": note.made_by.sender if note.made_by else "",
        "created_at": note.created_at.isoformat(),
        "updated_at": note.updated_at.isoformat(),
        "removed_at": note.removed_at.isoformat() if note.removed_at else None,
    }
