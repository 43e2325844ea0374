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
from chat.models import KnowledgeFile
from chat.queries import knowledge as queries
from chat.services.people import knowledge

router = Router(tags=["Knowledge"])
MEDIA_TYPES = ("application/octet-stream", "application/pdf", "text/html", "text/plain")
CONTENT = {"responses": {200: {"description": "The file", "content": dict.fromkeys(MEDIA_TYPES, BINARY)}}}


class KnowledgeOut(Schema):
    """A file of a workspace. Agents see its text as passages."""

    id: str
    workspace: int
    name: str
    kind: Literal["pdf", "html", "text"]
    size: int = Field(description="In bytes")
    pages: int | None = Field(description="Of a PDF file")
    characters: int = Field(description="Of its text")
    passages: int
    is_cut: bool = Field(description="Whether the file has more text than is kept")
    added_by: str = Field(description="The name of the user; empty if the account is deleted")
    added_by_id: int | None
    added_at: datetime
    removed_at: datetime | None = Field(description="When it was removed; it can be restored until it is purged")


class KnowledgeList(Schema):
    """By name; removed files with the last removed one first."""

    files: list[KnowledgeOut]


class KnowledgeQuery(Schema):
    removed: bool = Field(False, description="Removed files instead")


class PassageOut(Schema):
    file: str = Field(description="The id of the file")
    name: str = Field(description="The name of the file")
    number: int = Field(description="Counts from 1 in a file")
    page: int | None = Field(description="Of a PDF file")
    text: str


class PassagesQuery(Schema):
    start: int = Field(1, ge=1, description="The number of the first passage")
    limit: int = Field(50, ge=1, le=200, description="The most that a page has")


class Passages(Schema):
    passages: list[PassageOut]
    next: int | None = Field(description="The `start` of the next page")


class KnowledgeSearchQuery(Schema):
    q: str = Field(max_length=400, examples=["opening hours"], description="Words, any of which a passage may have")
    limit: int = Field(8, ge=1, le=50, description="The most that a page has")


class FoundPassages(Schema):
    """The best first."""

    passages: list[PassageOut]


class KnowledgeChange(Body):
    name: str = Field(min_length=1, max_length=255, description="The new name")


@router.get(
    "/workspaces/{workspace_id}/knowledge",
    response=KnowledgeList,
    operation_id="listKnowledge",
    summary="List the files of a workspace",
)
def list_knowledge(request: ApiRequest, workspace_id: int, query: Query[KnowledgeQuery]) -> HttpResponse:
    """All members may. A session's `config.knowledge` says which of them its agent uses."""
    files = queries.files_of(request.user, workspace_id, removed=query.removed)
    return json_response(request, {"files": [_file(each) for each in files]})


@router.post(
    "/workspaces/{workspace_id}/knowledge",
    response={201: KnowledgeOut},
    operation_id="addKnowledge",
    summary="Add a file to a workspace",
)
def add_knowledge(request: ApiRequest, workspace_id: int, file: FileParam[UploadedFile]) -> HttpResponse:
    """A PDF file, HTML, Markdown, code or other text. Its text is read before the response."""
    added = knowledge.add(
        author=request.user, workspace_id=workspace_id, name=file.name or "", size=file.size or 0, file=file
    )
    location = reverse("api:get_knowledge", args=[added.pk])
    return json_response(request, _file(added), status=201, location=location)


@router.get(
    "/workspaces/{workspace_id}/knowledge/search",
    response=FoundPassages,
    operation_id="searchKnowledge",
    summary="Search the files of a workspace",
)
def search_knowledge(request: ApiRequest, workspace_id: int, query: Query[KnowledgeSearchQuery]) -> HttpResponse:
    """As the agent's tool `search_knowledge` does, in all files."""
    found = queries.search(request.user, workspace_id, query.q, query.limit)
    passages = [
        {"file": each.file.id, "name": each.file.name, "number": each.number, "page": each.page, "text": each.text}
        for each in found
    ]
    return json_response(request, {"passages": passages})


@router.get(
    "/knowledge/{file_id}", response=KnowledgeOut, operation_id="getKnowledge", summary="Read what is known of a file"
)
def get_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """The file itself is its `content`."""
    return json_response(request, _file(queries.fetch(request.user, file_id)))


@router.get(
    "/knowledge/{file_id}/content",
    operation_id="getKnowledgeContent",
    summary="Read a file of a workspace",
    openapi_extra=CONTENT,
)
def get_knowledge_content(request: ApiRequest, file_id: str) -> HttpResponseBase:
    """As it was added."""
    file = queries.fetch(request.user, file_id)
    headers = {"Content-Disposition": content_disposition_header(True, file.name) or "attachment"}
    return of_stored(request, queries.opened(file), media_type=file.media_type, headers=headers)


@router.get(
    "/knowledge/{file_id}/passages",
    response=Passages,
    operation_id="listPassages",
    summary="Read the text of a file, as agents get it",
)
def list_passages(request: ApiRequest, file_id: str, query: Query[PassagesQuery]) -> HttpResponse:
    """In order."""
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
    summary="Rename a file",
)
def change_knowledge(request: ApiRequest, file_id: str, body: KnowledgeChange) -> HttpResponse:
    """Only the user who added it, and owners and admins, may."""
    return json_response(request, _file(knowledge.rename(author=request.user, file_id=file_id, name=body.name)))


@router.delete(
    "/knowledge/{file_id}",
    response={204: None},
    operation_id="removeKnowledge",
    summary="Remove a file from a workspace",
)
def remove_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """Agents cannot use it any more. `restore` brings it back. Only who may rename it may remove it."""
    knowledge.remove(author=request.user, file_id=file_id)
    return no_content()


@router.post(
    "/knowledge/{file_id}/restore",
    response=KnowledgeOut,
    operation_id="restoreKnowledge",
    summary="Restore a removed file of a workspace",
)
def restore_knowledge(request: ApiRequest, file_id: str) -> HttpResponse:
    """Sessions that have chosen it use it again."""
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
