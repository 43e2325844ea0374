"""Files of messages: upload, read and delete them."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from ninja import File, Router
from ninja.files import UploadedFile
from pydantic import Field

from chat import ids
from chat.api.auth import ApiRequest, session_of
from chat.api.errors import problem
from chat.api.message_schemas import AttachmentOut
from chat.api.responses import client_has, json_response, no_content
from chat.downloads import of_stored, requested_range
from chat.files import names
from chat.files.plain import MAX_BYTES, charset_of
from chat.models import Attachment, SessionRole
from chat.queries import attachments as attachment_queries
from chat.queries.attachments import NoSuchAttachment
from chat.services.messages import attachments

router = Router(tags=["Files"])
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
MEDIA_TYPES = ("application/octet-stream", "image/*", "application/pdf", "text/plain")
CONTENT = dict.fromkeys(MEDIA_TYPES, BINARY)
PROBLEM = {"$ref": "#/components/responses/Problem"}
FILE: dict[int, dict[str, Any]] = {
    200: {"description": "The content of the file, with its media type.", "content": CONTENT},
    206: {"description": "The part of the file that `Range` names.", "content": CONTENT},
    304: {"description": "The file has not changed: it still has the entity tag of `If-None-Match`."},
    416: PROBLEM,
}
RANGE: list[dict[str, Any]] = [
    {
        "in": "header",
        "name": "Range",
        "required": False,
        "description": "One range of bytes to return, such as `bytes=0-1023`.",
        "schema": {"type": "string"},
    }
]


class UploadedAttachment(AttachmentOut):
    """An uploaded file. To send it, pass its `id` in the `attachments` of a message."""

    url: str = Field(description="The path of the content of the file.")


@router.post(
    "/sessions/{session_id}/attachments",
    response={201: UploadedAttachment},
    operation_id="uploadAttachment",
    summary="Upload a file",
)
def upload_attachment(request: ApiRequest, session_id: str, file: File[UploadedFile]) -> HttpResponse:
    """Upload a file to send with a message in this session. A file that is not sent is deleted after 24 hours."""
    session = session_of(request, session_id, SessionRole.EDITOR)
    name, size = names.of_upload(file.name), file.size or 0
    row = attachments.upload(session=session, author=request.user, name=name, size=size, file=file)
    url = reverse("api:get_attachment", args=[row.pk])
    fields = {**attachment_queries.describe(row), "url": url}
    shown = {name: fields[name] for name in UploadedAttachment.model_fields}
    return json_response(request, shown, status=201, location=url, tagged=False)


@router.get(
    "/attachments/{attachment_id}",
    operation_id="getAttachment",
    summary="Download a file",
    openapi_extra={"responses": FILE, "parameters": RANGE},
)
def get_attachment(request: ApiRequest, attachment_id: str) -> HttpResponseBase:
    """Return the content of a file. Images are returned without metadata about their author.

    Before a file is sent, only the user who uploaded it can read it.
    """
    file = _attachment(request, attachment_id)
    headers = {
        "ETag": f'"{file.pk}"',
        "Accept-Ranges": "bytes",
        "Content-Disposition": content_disposition_header(True, file.name) or "attachment",
    }
    if client_has(request, headers["ETag"]):
        return HttpResponseNotModified(headers={"ETag": headers["ETag"]})
    data = attachment_queries.open_file(file)
    part = requested_range(request, headers["ETag"], data.size)
    if part is not None and not part:
        data.close()
        response = problem("range_not_satisfiable", _("The requested range is outside the file."), 416)
        response["Content-Range"] = f"bytes */{data.size}"
        return response
    media_type = file.media_type
    if file.kind == Attachment.Kind.TEXT and (charset := charset_of(data.read(MAX_BYTES + 1))):
        media_type = f"{media_type}; charset={charset}"
    return of_stored(request, data, part, media_type=media_type, headers=headers)


@router.delete(
    "/attachments/{attachment_id}",
    response={204: None},
    operation_id="removeAttachment",
    summary="Delete an unsent file",
)
def remove_attachment(request: ApiRequest, attachment_id: str) -> HttpResponse:
    """Delete a file that was not sent. Only the user who uploaded the file may delete it."""
    attachments.remove(user=request.user, attachment_id=_attachment(request, attachment_id).pk)
    return no_content()


def _attachment(request: ApiRequest, attachment_id: str) -> Attachment:
    if not ids.may_be_one(attachment_id):
        raise NoSuchAttachment
    return attachment_queries.fetch(request.user, attachment_id)
