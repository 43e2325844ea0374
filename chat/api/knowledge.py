"""The knowledge of a workspace: files that agents search and read."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import content_disposition_header
from ninja import File as FileParam
from ninja import Query, Router, Schema
from ninja.files import UploadedFile
from pydantic import Field

from agents.messages import Json
from chat.api.auth import ApiRequest
from chat.api.files import BINARY
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.downloads import of_stored
from chat.files import names
from chat.models import KnowledgeFile
from chat.queries import knowledge as queries
from chat.services.people import knowledge

router = Router(tags=["Knowledge"])
MEDIA_TYPES = ("application/octet-stream", "application/pdf", "text/html", "text/plain")
CONTENT = {
    "responses": {200: {"description": "The content of the file.", "content": dict.fromkeys(MEDIA_TYPES, BINARY)}}
}


class KnowledgeOut(Schema):
    """A file of a workspace that agents search and read. They get its text in pieces, which are called passages."""

    id: str = Field(description="The id of the file.")
    workspace: int = Field(description="The id of the workspace.")
    name: str = Field(description="The name of the file, unique in the workspace.")
    kind: Literal["pdf", "html", "text"] = Field(
        description="The kind of the file, which Parley determines from its content."
    )
    size: int = Field(description="The size of the file in bytes.")
    pages: int | None = Field(description="The number of pages of a PDF file. Null for other files.")
    characters: int = Field(description="The number of characters of the extracted text.")
    passages: int = Field(description="The number of passages.")
    is_cut: bool = Field(description="Whether the file has more text than Parley stores (1,000,000 characters).")
    added_by: str = Field(description="The name of the user who added the file. Empty if the account was deleted.")
    added_by_id: int | None = Field(
        description="The id of the user who added the file. Null if the account was deleted."
    )
    added_at: datetime = Field(description="The time at which the file was added.")
    removed_at: datetime | None = Field(
        description="The time at which the file was removed. It can be restored until it is purged. Null if it is not "
        "removed."
    )


class KnowledgeList(Schema):
    """The files of a workspace."""

    files: list[KnowledgeOut] = Field(
        description="The files, ordered by name. Removed files are ordered by the time of removal, newest first."
    )


class KnowledgeQuery(Schema):
    removed: bool = Field(False, description="Return the removed files instead of the others.")


class PassageOut(Schema):
    """A piece of the text of a file."""

    file: str = Field(description="The id of the file.")
    name: str = Field(description="The name of the file.")
    number: int = Field(description="The number of the passage in the file, from 1.")
    page: int | None = Field(description="The page of a PDF file, from 1. Null for other files.")
    text: str = Field(description="The text of the passage.")


class PassagesQuery(Schema):
    start: int = Field(1, ge=1, description="The number of the first passage to return.")
    limit: int = Field(50, ge=1, le=200, description="The maximum number of passages on a page.")


class Passages(Schema):
    """A page of passages of a file."""

    passages: list[PassageOut] = Field(description="The passages in order.")
    next: int | None = Field(description="The `start` of the next page. Null on the last page.")


class KnowledgeSearchQuery(Schema):
    q: str = Field(
        max_length=400,
        examples=["opening hours"],
        description="The words to search for. A passage is found if it contains any of them.",
    )
    limit: int = Field(8, ge=1, le=50, description="The maximum number of passages.")


class FoundPassages(Schema):
    """The passages that a search has found."""

    passages: list[PassageOut] = Field(description="The passages, best match first.")


class KnowledgeChange(Body):
    """A change of a file."""

    name: str = Field(min_length=1, max_length=255, description="The new name of the file.")


@router.get(
    "/workspaces/{workspace_id}/knowledge",
    response=KnowledgeList,
    operation_id="listKnowledge",
    summary="List the files of a workspace",
)
def list_knowledge(request: ApiRequest, workspace_id: int, query: Query[KnowledgeQuery]) -> HttpResponse:
    """List the files of a workspace. All members of the workspace may list them.

    The field `config.knowledge` of a session selects the files that its agent uses.
    """
    files = queries.files_of(request.user, workspace_id, removed=query.removed)
    return json_response(request, {"files": [_file(each) for each in files]})


@router.post(
    "/workspaces/{workspace_id}/knowledge",
    response={201: KnowledgeOut},
    operation_id="addKnowledge",
    summary="Add a file to a workspace",
)
def add_knowledge(request: ApiRequest, workspace_id: int, file: FileParam[UploadedFile]) -> HttpResponse:
    """Add a PDF file, or a file with HTML, Markdown, code or other text.

    The response is sent after the text has been extracted.
    """
    name, size = names.of_upload(file.name), file.size or 0
    added = knowledge.add(author=request.user, workspace_id=workspace_id, name=name, size=size, file=file)
    location = reverse("api:get_knowledge", args=[added.pk])
    return json_response(request, _file(added), status=201, location=location)


@router.get(
    "/workspaces/{workspace_id}/knowledge/search",
    response=FoundPassages,
    operation_id="searchKnowledge",
    summary="Search the files of a workspace",
)
def search_knowledge(request: ApiRequest, workspace_id: int, query: Query[KnowledgeSearchQuery]) -> HttpResponse:
    """Search all files of a workspace, as the tool `search_knowledge` of agents does."""
    found = queries.search(request.user, workspace_id, query.q, query.limit)
    passages = [
        {"file": each.file.id, "name": each.file.name, "number": each.number, "page": each.page, "text": each.text}
        for each in found
    ]
    return json_response(request, {"passages": passages})


@router.get(
    "/knowledge/{file_id}", response=KnowledgeOut, operation_id="getKnowledge", summary="Retrieve a file of a workspace"
)
def get_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """Return the details of a file. `getKnowledgeContent` returns its content."""
    return json_response(request, _file(queries.fetch(request.user, file_id)))


@router.get(
    "/knowledge/{file_id}/content",
    operation_id="getKnowledgeContent",
    summary="Download a file of a workspace",
    openapi_extra=CONTENT,
)
def get_knowledge_content(request: ApiRequest, file_id: str) -> HttpResponseBase:
    """Return the content of a file as it was uploaded."""
    file = queries.fetch(request.user, file_id)
    headers = {"Content-Disposition": content_disposition_header(True, file.name) or "attachment"}
    return of_stored(request, queries.open_original(file), media_type=file.media_type, headers=headers)


@router.get(
    "/knowledge/{file_id}/passages",
    response=Passages,
    operation_id="listPassages",
    summary="List the passages of a file",
)
def list_passages(request: ApiRequest, file_id: str, query: Query[PassagesQuery]) -> HttpResponse:
    """List the passages of a file, which are the pieces of its text that agents get."""
    file = queries.fetch(request.user, file_id)
    rows = queries.passages_of(file, query.start, query.limit)
    last = rows[-1].number if rows else file.passage_count
    passages = [
        {"file": file.pk, "name": file.name, "number": row.number, "page": row.page, "text": row.text} for row in rows
    ]
    return json_response(request, {"passages": passages, "next": last + 1 if last < file.passage_count else None})


@router.patch(
    "/knowledge/{file_id}",
    response=KnowledgeOut,
    operation_id="changeKnowledge",
    summary="Rename a file of a workspace",
)
def change_knowledge(request: ApiRequest, file_id: str, body: KnowledgeChange) -> HttpResponse:
    """Rename a file. Only the user who added the file, and owners and admins of the workspace may rename it."""
    return json_response(request, _file(knowledge.rename(author=request.user, file_id=file_id, name=body.name)))


@router.delete(
    "/knowledge/{file_id}",
    response={204: None},
    operation_id="removeKnowledge",
    summary="Remove a file from a workspace",
)
def remove_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """Remove a file from a workspace, so that agents can no longer use it. `restoreKnowledge` restores it.

    Only the user who added the file, and owners and admins of the workspace may remove it.
    """
    knowledge.remove(author=request.user, file_id=file_id)
    return no_content()


@router.post(
    "/knowledge/{file_id}/restore",
    response=KnowledgeOut,
    operation_id="restoreKnowledge",
    summary="Restore a removed file of a workspace",
)
def restore_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """Restore a removed file. The agents of sessions that had selected it use it again."""
    return json_response(request, _file(knowledge.restore(author=request.user, file_id=file_id)))


def _file(row: KnowledgeFile) -> Json:
    return {
        "id": row.pk,
        "workspace": row.workspace_id,
        "name": row.name,
        "kind": row.kind,
        "size": row.size,
        "pages": row.pages,
        "characters": row.characters,
        "passages": row.passage_count,
        "is_cut": row.is_cut,
        "added_by": row.added_by.sender if row.added_by else "",
        "added_by_id": row.added_by_id,
        "added_at": row.created_at.isoformat(),
        "removed_at": row.removed_at.isoformat() if row.removed_at else None,
    }
