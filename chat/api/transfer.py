"""Sessions as files: out of Parley and in again."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import File, Form, Router, Schema
from ninja.files import UploadedFile
from pydantic import Field

from chat.api.auth import ApiRequest, workspace_named
from chat.api.responses import answer
from chat.disconnects import disconnect_of
from chat.downloads import file_name, streamed
from chat.services import exporting, import_files
from chat.services.access import session_for
from chat.services.import_files import Brought

router = Router(tags=["Transfer"])
TEXT = {"schema": {"type": "string"}}
WHOLE: dict[int, dict[str, Any]] = {
    200: {
        "description": "The session as Markdown or JSON",
        "content": {"text/markdown": TEXT, "application/json": {"schema": {"type": "object"}}},
    }
}


class ImportedOut(Schema):
    """A session that has come in. `notes` say in words what of it did not, or is not as it was in the file."""

    id: str
    title: str
    messages: int
    kept_ids: bool = Field(description="Whether its ids are those of the file")
    notes: list[str]


class ImportOut(Schema):
    """What became of a file. `problems` say in words which conversations could not be brought in, and why."""

    sessions: list[ImportedOut]
    problems: list[str]


class ImportForm(Schema):
    """`conversations`: which of the file's, by their indexes; left out, all of them, up to a hundred.

    `ids`: "same" keeps the file's ids if none of them is in use here. `workspace`: where they are to be; left out, the
    one that you are in.
    """

    conversations: list[int] = Field([], max_length=import_files.MOST_AT_ONCE)
    ids: Literal["same", "new"] = "same"
    workspace: int | None = None


@router.get(
    "/sessions/{session_id}/export",
    operation_id="exportSession",
    summary="Take a session away as a file",
    openapi_extra={"responses": WHOLE},
)
def export_session(
    request: ApiRequest, session_id: str, format: Literal["json", "markdown"] = "json"
) -> HttpResponseBase:
    """JSON holds everything and can be imported again; viewers' holds what they see. Markdown is to be read."""
    session, role = session_for(request.user, session_id)
    form = exporting.Form(format)
    name = file_name(session.title, session.pk, exporting.ENDINGS[form])
    pieces = exporting.exported(session, request.user, role, form)
    return streamed(request, pieces, name=name, media_type=exporting.MEDIA_TYPES[form])


@router.post(
    "/sessions/import",
    response={201: ImportOut},
    operation_id="importSessions",
    summary="Bring in sessions from a file",
)
def import_sessions(request: ApiRequest, file: File[UploadedFile], form: Form[ImportForm]) -> HttpResponse:
    """Take Parley's own JSON, or an export of ChatGPT or Claude (`conversations.json`, or the ZIP with it).

    Each conversation becomes a session that is yours alone; it comes in whole or not at all.
    """
    if (file.size or 0) > import_files.limit_bytes():
        raise import_files.TooLarge
    outcome = import_files.import_file(
        owner=request.user,
        workspace=workspace_named(request, form.workspace),
        file=file,
        chosen=form.conversations or None,
        keep_ids=form.ids == "same",
        client=disconnect_of(request),
    )
    sessions = [_brought(each) for each in outcome.brought]
    return answer(request, {"sessions": sessions, "problems": outcome.problems}, status=201)


def _brought(brought: Brought) -> dict[str, Any]:
    return {
        "id": brought.session.pk,
        "title": brought.session.title,
        "messages": brought.messages,
        "kept_ids": brought.kept_ids,
        "notes": brought.notes,
    }
