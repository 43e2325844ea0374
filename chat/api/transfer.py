"""Export and import of sessions as files."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import File, Form, Query, Router, Schema
from ninja.files import UploadedFile
from pydantic import Field

from chat.access import session_for
from chat.api.auth import ApiRequest, still_allowed, workspace_of
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.disconnects import disconnect_of
from chat.downloads import file_name, stream_download, while_permitted
from chat.limits.rates import spend
from chat.services import import_uploads
from chat.services.import_uploads import Upload
from chat.transfer import public as transfer
from chat.transfer.public import FileContents, ImportedSession, ImportResult, Source

router = Router(tags=["Transfer"])
# The maximum number of conversations that one request imports from an uploaded file.
MAX_PER_REQUEST = 500
CONVERSATIONS = "The `index` of each conversation to import."
IDS = (
    "`same` keeps the ids of the file, unless one of them is in use on this server. `new` creates new ids for all "
    "objects."
)
WORKSPACE = "The id of the workspace in which to create the sessions. If null, it is your current workspace."
TEXT = {"schema": {"type": "string"}}
EXPORT_RESPONSES: dict[int, dict[str, Any]] = {
    200: {
        "description": "The session as a file.",
        "content": {"text/markdown": TEXT, "application/json": {"schema": {"type": "object"}}},
    }
}


class ExportQuery(Schema):
    format: Literal["json", "markdown"] = Field(
        "json", description="The format of the file. `json` can be imported again. `markdown` is for reading."
    )


class ImportedOut(Schema):
    """A session that was created from a conversation."""

    id: str = Field(description="The id of the session.")
    title: str = Field(description="The title of the session.")
    messages: int = Field(description="The number of messages.")
    kept_ids: bool = Field(description="Whether the session and its messages have the ids of the file.")
    notes: list[str] = Field(
        description="Sentences for users about content that was left out or differs from the file."
    )


class ImportOut(Schema):
    """The result of an import."""

    sessions: list[ImportedOut] = Field(description="The sessions that were created.")
    problems: list[str] = Field(description="Sentences for users about conversations that could not be imported.")


class OutlineOut(Schema):
    """A conversation of an uploaded file."""

    index: int = Field(description="The number that identifies the conversation in the file, from 0.")
    source: Source
    title: str = Field(description="The title of the conversation.")
    began: str = Field(description="The ISO 8601 time at which the conversation began. Empty if unknown.")
    messages: int = Field(description="The number of messages.")
    size: int = Field(description="The size in bytes.")


class UploadOut(Schema):
    """An uploaded file with conversations."""

    id: str = Field(description="The id of the uploaded file.")
    expires_at: datetime = Field(description="The time at which the file is deleted.")
    conversations: list[OutlineOut] = Field(description="The conversations of the file.")
    problems: list[str] = Field(
        description="Sentences for users about parts of the file that cannot be read as a conversation."
    )


class ImportIn(Body):
    """The conversations of an uploaded file to import."""

    conversations: list[int] = Field(min_length=1, max_length=MAX_PER_REQUEST, description=CONVERSATIONS)
    ids: Literal["same", "new"] = Field("same", description=IDS)
    workspace: int | None = Field(None, description=WORKSPACE)


class ImportForm(Schema):
    """The conversations to import from the file in the same form."""

    conversations: list[int] = Field(
        [], max_length=transfer.MAX_LISTED, description=f"{CONVERSATIONS} If it is left out, all are imported."
    )
    ids: Literal["same", "new"] = Field("same", description=IDS)
    workspace: int | None = Field(None, description=WORKSPACE)


@router.get(
    "/sessions/{session_id}/export",
    operation_id="exportSession",
    summary="Export a session",
    openapi_extra={"responses": EXPORT_RESPONSES},
)
def export_session(request: ApiRequest, session_id: str, query: Query[ExportQuery]) -> HttpResponseBase:
    """Return a session as a file. JSON is complete and can be imported again. Markdown is for reading.

    For viewers, the JSON contains only what they can see.
    """
    session, role = session_for(request.user, session_id)
    form = transfer.ExportFormat(query.format)
    name = file_name(session.title, session.pk, transfer.EXTENSIONS[form])
    pieces = transfer.export_session(session, request.user, role, form)
    pieces = while_permitted(pieces, lambda: still_allowed(request, session, role))
    return stream_download(request, pieces, name=name, media_type=transfer.MEDIA_TYPES[form])


@router.post(
    "/sessions/import",
    response={201: ImportOut},
    operation_id="importSessions",
    summary="Import sessions from a file",
)
def import_sessions(request: ApiRequest, file: File[UploadedFile], form: Form[ImportForm]) -> HttpResponse:
    """Import conversations from a file: Parley's own JSON, or an export of ChatGPT, Claude, Open WebUI or LibreChat.

    An export is a JSON file, or a ZIP file that contains it. Each conversation becomes a session that only you can
    access. It is imported completely or not at all. For files with many conversations, use `createImport`, which lists
    them first.
    """
    _require_size(file)
    outcome = transfer.import_file(
        owner=request.user,
        workspace=workspace_of(request, form.workspace),
        file=file,
        chosen=form.conversations or None,
        keep_ids=form.ids == "same",
        client=disconnect_of(request),
    )
    return json_response(request, _outcome(outcome), status=201)


@router.post(
    "/imports",
    response={201: UploadOut},
    operation_id="createImport",
    summary="Upload a file of conversations and list them",
)
def create_import(request: ApiRequest, file: File[UploadedFile]) -> HttpResponse:
    """Upload a file of conversations and list them. The file is stored for an hour.

    `importConversations` imports them, in one or several requests.
    """
    _require_size(file)
    spend("imports", request.user.pk)
    contents = transfer.list_conversations(file, disconnect_of(request))
    upload = import_uploads.keep(owner=request.user, file=file)
    return json_response(request, _upload(upload, contents), status=201, location=f"/api/imports/{upload.id}")


@router.get(
    "/imports/{import_id}",
    response=UploadOut,
    operation_id="getImport",
    summary="List the conversations of an uploaded file",
)
def get_import(request: ApiRequest, import_id: str) -> HttpResponse:
    """List the conversations of an uploaded file. Only the user who uploaded the file may list them."""
    spend("import_requests", request.user.pk)
    with import_uploads.open_upload(owner=request.user, upload_id=import_id) as (upload, file):
        return json_response(request, _upload(upload, transfer.list_conversations(file, disconnect_of(request))))


@router.post(
    "/imports/{import_id}/sessions",
    response={201: ImportOut},
    operation_id="importConversations",
    summary="Import conversations of an uploaded file",
)
def import_conversations(request: ApiRequest, import_id: str, body: ImportIn) -> HttpResponse:
    """Import conversations of an uploaded file, as `importSessions` does. A request can import up to 500 of them."""
    workspace = workspace_of(request, body.workspace)
    with import_uploads.open_upload(owner=request.user, upload_id=import_id) as (_upload, file):
        outcome = transfer.import_file(
            owner=request.user,
            workspace=workspace,
            file=file,
            chosen=body.conversations,
            keep_ids=body.ids == "same",
            client=disconnect_of(request),
            is_stored=True,
        )
    return json_response(request, _outcome(outcome), status=201)


@router.delete(
    "/imports/{import_id}",
    response={204: None},
    operation_id="deleteImport",
    summary="Delete an uploaded file",
)
def delete_import(request: ApiRequest, import_id: str) -> HttpResponse:
    """Delete an uploaded file. Sessions that were imported from it are kept."""
    import_uploads.discard(owner=request.user, upload_id=import_id)
    return no_content()


def _require_size(file: UploadedFile) -> None:
    if (file.size or 0) > transfer.limit_bytes():
        raise transfer.TooLarge


def _upload(upload: Upload, contents: FileContents) -> dict[str, Any]:
    conversations = [
        {
            "index": each.index,
            "source": each.source,
            "title": each.title,
            "began": each.began,
            "messages": each.count,
            "size": each.size,
        }
        for each in contents.conversations
    ]
    known = {"id": upload.id, "expires_at": upload.expires_at.isoformat()}
    return {**known, "conversations": conversations, "problems": contents.problems}


def _outcome(outcome: ImportResult) -> dict[str, Any]:
    return {"sessions": [_imported_session(each) for each in outcome.imported], "problems": outcome.problems}


def _imported_session(imported: ImportedSession) -> dict[str, Any]:
    return {
        "id": imported.session.pk,
        "title": imported.session.title,
        "messages": imported.messages,
        "kept_ids": imported.kept_ids,
        "notes": imported.notes,
    }
