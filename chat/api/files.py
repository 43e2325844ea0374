"""Files of messages: upload, read and delete them."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from ninja import File, Router
from ninja.files import UploadedFile

from chat import ids
from chat.api.auth import ApiRequest, session_of
from chat.api.errors import problem
from chat.api.responses import client_has, json_response, no_content
from chat.api.schemas import AttachmentOut
from chat.files.plain import charset_of
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
    200: {"description": "The file with its own media type", "content": CONTENT},
    206: {"description": "The part of the file that `Range` asks for", "content": CONTENT},
    304: {"description": "The client has the file"},
    416: PROBLEM,
}
RANGE: list[dict[str, Any]] = [
    {
        "in": "header",
        "name": "Range",
        "required": False,
        "description": "One range of bytes, such as `bytes=0-1023`",
        "schema": {"type": "string"},
    }
]
SINGLE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class UploadedAttachment(AttachmentOut):
    """An uploaded file. Its `id` goes with a message."""

    url: str


@router.post(
    "/sessions/{session_id}/attachments",
    response={201: UploadedAttachment},
    operation_id="uploadAttachment",
    summary="Upload a file",
)
def upload_attachment(request: ApiRequest, session_id: str, file: File[UploadedFile]) -> HttpResponse:
    """Send it with your next message in this session, within a day."""
    session = session_of(request, session_id, SessionRole.EDITOR)
    name, size = file.name or "", file.size or 0
    row = attachments.upload(session=session, author=request.user, name=name, size=size, file=file)
    url = reverse("api:get_attachment", args=[row.pk])
    fields = {**attachment_queries.described(row), "url": url}
    shown = {name: fields[name] for name in UploadedAttachment.model_fields}
    return json_response(request, shown, status=201, location=url, tagged=False)


@router.get(
    "/attachments/{attachment_id}",
    operation_id="getAttachment",
    summary="Read a file",
    openapi_extra={"responses": FILE, "parameters": RANGE},
)
def get_attachment(request: ApiRequest, attachment_id: str) -> HttpResponse:
    """Images are returned without metadata about their author. Only its uploader can read an unsent file."""
    file = _attachment(request, attachment_id)
    headers = {
        "ETag": f'"{file.pk}"',
        "Accept-Ranges": "bytes",
        "Content-Disposition": content_disposition_header(True, file.name) or "attachment",
    }
    if client_has(request, headers["ETag"]):
        return HttpResponseNotModified(headers={"ETag": headers["ETag"]})
    data = attachment_queries.data_of(file)
    media_type = file.media_type
    if file.kind == Attachment.Kind.TEXT and (charset := charset_of(data)):
        media_type = f"{media_type}; charset={charset}"
    if (part := _requested_range(request, headers["ETag"], len(data))) is None:
        return HttpResponse(data, content_type=media_type, headers=headers)
    if not part:
        response = problem("range_not_satisfiable", _("The requested range is outside the file."), 416)
        response["Content-Range"] = f"bytes */{len(data)}"
        return response
    headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{len(data)}"
    return HttpResponse(data[part.start : part.stop], status=206, content_type=media_type, headers=headers)


@router.delete(
    "/attachments/{attachment_id}",
    response={204: None},
    operation_id="removeAttachment",
    summary="Delete an unsent file",
)
def remove_attachment(request: ApiRequest, attachment_id: str) -> HttpResponse:
    """Only its uploader may delete it, before it is sent."""
    attachments.remove(user=request.user, attachment_id=_attachment(request, attachment_id).pk)
    return no_content()


def _attachment(request: ApiRequest, attachment_id: str) -> Attachment:
    if not ids.may_be_one(attachment_id):
        raise NoSuchAttachment
    return attachment_queries.fetch(request.user, attachment_id)


def _requested_range(request: ApiRequest, tag: str, size: int) -> range | None:
    """Return the bytes that `Range` asks for; None for the whole file, an empty range for bytes that do not exist.

    Several ranges, other units and a stale `If-Range` get the whole file, as RFC 9110 allows.
    """
    match = SINGLE_RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if match is None or match[1] == match[2] == "" or request.headers.get("If-Range", tag) != tag:
        return None
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    first, last = int(match[1]), int(match[2] or size - 1)
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size)) if first < size else range(0)
