"""Notes that agents remember across sessions: your own, and those of a workspace."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.messages import Json
from agents.questions import MAX_NOTE_LENGTH
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


TEXT = "The text of the note."


class NoteOut(Schema):
    """A text that agents remember. They get only accepted notes."""

    id: int = Field(description="The id of the note.")
    text: str = Field(description="The text of the note.")
    accepted: bool = Field(
        description="Whether agents get the note. False if a member of the workspace has proposed it and no owner or "
        "admin has accepted it yet."
    )
    session: str | None = Field(
        description="The id of the session in which the note was saved. Null if it was not saved in a session."
    )
    made_by: str = Field(description="The name of the user who added the note. Empty if the account was deleted.")
    created_at: datetime = Field(description="The time at which the note was added.")
    updated_at: datetime = Field(description="The time of the last change.")
    removed_at: datetime | None = Field(
        description="The time at which the note was removed. Null if it is not removed."
    )


class Notes(Schema):
    """Notes about a user or for a workspace."""

    notes: list[NoteOut] = Field(
        description="The notes in the order in which agents get them. Removed notes are ordered by the time of "
        "removal, newest first."
    )


class NotesQuery(Schema):
    removed: bool = Field(False, description="Return the removed notes instead of the others.")


class NewNote(Body):
    """A note to add."""

    text: str = Field(min_length=1, max_length=MAX_NOTE_LENGTH, examples=["We use metric units."], description=TEXT)


SEEN = (
    "The text that you have read. If it has changed since, the request is refused as `stale`, with the `current` text."
)


class NoteChange(Body):
    """Changes of a note. Fields that are left out or null keep their values."""

    text: str | None = Field(None, min_length=1, max_length=MAX_NOTE_LENGTH, description=TEXT)
    accepted: bool | None = Field(
        None, description="`true` accepts a proposal. To reject a proposal, remove it instead."
    )
    seen_text: str | None = Field(None, max_length=MAX_NOTE_LENGTH, description=SEEN)


class MyNoteChange(Body):
    """A change of one of your notes."""

    text: str = Field(min_length=1, max_length=MAX_NOTE_LENGTH, description=TEXT)
    seen_text: str | None = Field(None, max_length=MAX_NOTE_LENGTH, description=SEEN)


@router.get("/me/notes", response=Notes, operation_id="listMyNotes", summary="List the notes about you")
def list_my_notes(request: ApiRequest, query: Query[NotesQuery]) -> HttpResponse:
    """List the notes that agents remember about you. Agents get them only in sessions that no other user can read."""
    return _list_response(request, query, user=request.user)


@router.post("/me/notes", response={201: NoteOut}, operation_id="addMyNote", summary="Add a note about you")
def add_my_note(request: ApiRequest, body: NewNote) -> HttpResponse:
    """Add a note about you. You can have at most 50 notes."""
    return json_response(request, _note(memory.keep_mine(user=request.user, text=body.text)), status=201, tagged=False)


@router.patch("/me/notes/{note_id}", response=NoteOut, operation_id="changeMyNote", summary="Change a note about you")
def change_my_note(request: ApiRequest, note_id: int, body: MyNoteChange) -> HttpResponse:
    """Change the text of a note. Agents get the new text with their next response."""
    return _mine(request, note_id, "edit", body.text, body.seen_text)


@router.delete(
    "/me/notes/{note_id}", response={204: None}, operation_id="removeMyNote", summary="Remove a note about you"
)
def remove_my_note(request: ApiRequest, note_id: int) -> HttpResponse:
    """Remove a note. `restoreMyNote` restores it."""
    memory.change_mine(user=request.user, note_id=note_id, act="remove")
    return no_content()


@router.post(
    "/me/notes/{note_id}/restore",
    response=NoteOut,
    operation_id="restoreMyNote",
    summary="Restore a removed note about you",
)
def restore_my_note(request: ApiRequest, note_id: int) -> HttpResponse:
    """Restore a removed note. Only the last 20 removed notes can be restored."""
    return _mine(request, note_id, "restore")


@router.get(
    "/workspaces/{workspace_id}/notes",
    response=Notes,
    operation_id="listWorkspaceNotes",
    summary="List the notes of a workspace",
)
def list_workspace_notes(request: ApiRequest, workspace_id: int, query: Query[NotesQuery]) -> HttpResponse:
    """List the notes that agents get in all sessions of a workspace, and the proposals of members.

    All members of the workspace may list them. Only owners and admins may list removed notes.
    """
    needs = Permission.MANAGE_NOTES if query.removed else Permission.SEE_MEMBERS
    return _list_response(request, query, workspace=workspace_where(request.user, needs, workspace_id))


@router.post(
    "/workspaces/{workspace_id}/notes",
    response={201: NoteOut},
    operation_id="addWorkspaceNote",
    summary="Add a note for a workspace",
)
def add_workspace_note(request: ApiRequest, workspace_id: int, body: NewNote) -> HttpResponse:
    """Add a note for a workspace, which can have at most 50 notes, and at most 10 proposals of each member.

    All members may add notes. A note of an owner or admin is accepted. A note of another member is a proposal until an
    owner or admin accepts it.
    """
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
    """Change the text of a note, or accept a proposal.

    Only owners and admins of the workspace may do this.
    """
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    if body.text is None and not body.accepted:
        raise Invalid(_("Choose what to do with the note."))
    act, text = ("accept" if body.accepted else "edit"), body.text or ""
    note = memory.change_ours(
        author=request.user, workspace_id=workspace.pk, note_id=note_id, act=act, text=text, seen=body.seen_text
    )
    return json_response(request, _note(note))


@router.delete(
    "/workspaces/{workspace_id}/notes/{note_id}",
    response={204: None},
    operation_id="removeWorkspaceNote",
    summary="Remove a note of a workspace",
)
def remove_workspace_note(request: ApiRequest, workspace_id: int, note_id: int) -> HttpResponse:
    """Remove a note. `restoreWorkspaceNote` restores it.

    Only owners and admins of the workspace may remove notes. Members may remove their own proposals.
    """
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
    """Restore a removed note. Only the last 20 removed notes can be restored.

    Only owners and admins of the workspace may restore notes.
    """
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    note = memory.change_ours(author=request.user, workspace_id=workspace.pk, note_id=note_id, act="restore")
    return json_response(request, _note(note))


def _list_response(request: ApiRequest, query: NotesQuery, **whose: object) -> HttpResponse:
    kept, removed = kept_and_removed(**whose)
    return json_response(request, {"notes": [_note(each) for each in (removed if query.removed else kept)]})


def _mine(request: ApiRequest, note_id: int, act: str, text: str = "", seen: str | None = None) -> HttpResponse:
    note = memory.change_mine(user=request.user, note_id=note_id, act=act, text=text, seen=seen)
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
