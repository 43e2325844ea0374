"""The workspace of a session: the files that its agent's tools work on."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest, session_of, still_allowed
from chat.api.files import BINARY
from chat.api.responses import json_response
from chat.downloads import file_name, of_file, passed_on, while_permitted, zipped
from chat.queries import workspace

router = Router(tags=["Workspace files"])
PATH = "Path in the workspace, such as `src/main.py`; empty for the workspace itself"


class FolderQuery(Schema):
    path: str = Field("", description=PATH)


class FileQuery(Schema):
    path: str = Field(description=PATH)


class WorkspaceEntry(Schema):
    name: str
    path: str = Field(description=PATH)
    kind: Literal["folder", "file", "link", "other"] = Field(
        description="Links are not followed; `other` is what cannot be read, such as a pipe"
    )
    size: int = Field(description="In bytes")
    changed_at: datetime


class FolderOut(Schema):
    """Folders first, then files, by name. `left_out` counts the entries beyond the first 1,000."""

    path: str
    entries: list[WorkspaceEntry]
    left_out: int


def _content(description: str, *media_types: str) -> dict[str, Any]:
    content = dict.fromkeys(("application/octet-stream", *media_types), BINARY)
    return {"responses": {200: {"description": description, "content": content}}}


@router.get(
    "/sessions/{session_id}/workspace",
    response=FolderOut,
    operation_id="listWorkspace",
    summary="List a folder of the workspace",
)
def list_workspace(request: ApiRequest, session_id: str, query: Query[FolderQuery]) -> HttpResponse:
    """Files that people have attached are in `attachments/`, once the agent has tools that work on files."""
    listing = workspace.listing_of(session_of(request, session_id), query.path)
    entries = [
        {
            "name": entry.name,
            "path": entry.path,
            "kind": entry.kind,
            "size": entry.size,
            "changed_at": workspace.moment(entry.changed).isoformat(),
        }
        for entry in listing.entries
    ]
    return json_response(request, {"path": listing.path, "entries": entries, "left_out": listing.left_out})


@router.get(
    "/sessions/{session_id}/workspace/file",
    operation_id="getWorkspaceFile",
    summary="Read a file of the workspace",
    openapi_extra=_content("The file's bytes"),
)
def get_workspace_file(request: ApiRequest, session_id: str, query: Query[FileQuery]) -> HttpResponseBase:
    """The file as it is now. What is written behind its end while it is read is left out."""
    return of_file(request, workspace.open_file(session_of(request, session_id), query.path))


@router.get(
    "/sessions/{session_id}/workspace/archive",
    operation_id="getWorkspaceArchive",
    summary="Read all files of a folder",
    openapi_extra=_content("A ZIP archive", "application/zip"),
)
def get_workspace_archive(request: ApiRequest, session_id: str, query: Query[FolderQuery]) -> HttpResponseBase:
    """A ZIP archive, made while it is sent. Links and what is no regular file are left out."""
    session = session_of(request, session_id)
    entries = workspace.files_below(session, query.path)
    name = file_name(query.path.strip("/").rpartition("/")[2] or session.title, "files", "zip")
    pieces = while_permitted(zipped(entries, timezone.now()), lambda: still_allowed(request, session))
    return passed_on(request, pieces, name=name, media_type="application/zip")
