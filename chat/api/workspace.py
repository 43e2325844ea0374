"""The files of a session, on which the tools of its agent work."""

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
from chat.downloads import file_name, of_file, passed_on, while_permitted, zip_archive
from chat.limits.rates import spend
from chat.queries import workspace

router = Router(tags=["Session files"])
PATH = "The path in the session's folder, such as `src/main.py`. Empty for the folder itself."


class FolderQuery(Schema):
    path: str = Field("", description=PATH)


class FileQuery(Schema):
    path: str = Field(description="The path of the file in the session's folder, such as `src/main.py`.")


class WorkspaceEntry(Schema):
    """An entry of a folder."""

    name: str = Field(description="The name of the entry.")
    path: str = Field(description=PATH)
    kind: Literal["folder", "file", "link", "other"] = Field(
        description="The kind of the entry. Links are not followed. `other` is an entry that cannot be read, such as "
        "a pipe."
    )
    size: int = Field(description="The size in bytes.")
    changed_at: datetime = Field(description="The time of the last change of the content.")


class FolderOut(Schema):
    """The content of a folder."""

    path: str = Field(
        description="The path of the folder in the session's folder. Empty for the session's folder itself."
    )
    entries: list[WorkspaceEntry] = Field(
        description="The entries, folders before files, ordered by name. At most 1,000."
    )
    left_out: int = Field(description="The number of further entries, which are not returned.")


def _content(description: str, *media_types: str) -> dict[str, Any]:
    content = dict.fromkeys(("application/octet-stream", *media_types), BINARY)
    return {"responses": {200: {"description": description, "content": content}}}


@router.get(
    "/sessions/{session_id}/workspace",
    response=FolderOut,
    operation_id="listWorkspace",
    summary="List a folder of a session",
)
def list_workspace(request: ApiRequest, session_id: str, query: Query[FolderQuery]) -> HttpResponse:
    """List the entries of a folder.

    If the agent has tools that work on files, `attachments/` contains the attachments.
    """
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
    summary="Download a file of a session",
    openapi_extra=_content("The content of the file."),
)
def get_workspace_file(request: ApiRequest, session_id: str, query: Query[FileQuery]) -> HttpResponseBase:
    """Return the current content of a file. Data that is appended to it during the request is not returned."""
    return of_file(request, workspace.open_file(session_of(request, session_id), query.path))


@router.get(
    "/sessions/{session_id}/workspace/archive",
    operation_id="getWorkspaceArchive",
    summary="Download all files of a folder",
    openapi_extra=_content("The ZIP archive.", "application/zip"),
)
def get_workspace_archive(request: ApiRequest, session_id: str, query: Query[FolderQuery]) -> HttpResponseBase:
    """Return the files of a folder as a ZIP archive. It contains only regular files, and no links."""
    session = session_of(request, session_id)
    spend("exports", request.user.pk)
    entries = workspace.files_below(session, query.path)
    name = file_name(query.path.strip("/").rpartition("/")[2] or session.title, "files", "zip")
    pieces = while_permitted(zip_archive(entries, timezone.now()), lambda: still_allowed(request, session))
    return passed_on(request, pieces, name=name, media_type="application/zip")
