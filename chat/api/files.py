"""Files of messages: uploaded before they are sent, and read again."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header
from ninja import File, Router, Schema
from ninja.files import UploadedFile
from pydantic import Field

from chat import ids
from chat.api.answers import answer, nothing
from chat.api.auth import ApiRequest, session_of
from chat.models import Attachment, Role
from chat.services import attachments
from chat.services.attachments import NoSuchAttachment

router = Router(tags=["files"])
WHOLE: dict[int, dict[str, Any]] = {
    200: {"description": "The file", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
}


class AttachmentOut(Schema):
    """An uploaded file: its `id` goes with a message. `kind` and `media_type` are what its bytes say that it is."""

    id: str = Field(examples=["a_0123456789abcdef01234567"])
    name: str
    kind: str = Field(examples=["image"], description="image, text or pdf")
    media_type: str
    size: int = Field(description="In bytes")
    width: int | None
    height: int | None
    pages: int | None
    url: str


@router.post(
    "/sessions/{session_id}/attachments",
    response={201: AttachmentOut},
    operation_id="uploadAttachment",
    summary="Upload a file",
)
def upload_attachment(request: ApiRequest, session_id: str, file: File[UploadedFile]) -> HttpResponse:
    """To be sent with your next message in this session, within a day."""
    session = session_of(request, session_id, Role.EDITOR)
    name, size = file.name or "", file.size or 0
    taken = attachments.upload(session=session, author=request.user, name=name, size=size, file=file)
    address = reverse("api:get_attachment", args=[taken.pk])
    told = {**attachments.described(taken), "url": address}
    del told["thumb"]
    return answer(request, told, status=201, location=address)


@router.get(
    "/attachments/{attachment_id}",
    operation_id="getAttachment",
    summary="Read a file",
    openapi_extra={"responses": WHOLE},
)
def get_attachment(request: ApiRequest, attachment_id: str) -> HttpResponse:
    """An image without what it tells of its maker. One that is not sent is its uploader's alone."""
    file = _found(request, attachment_id)
    kept_as = content_disposition_header(True, file.name) or "attachment"
    data = attachments.data_of(file)
    return HttpResponse(data, content_type=file.media_type, headers={"Content-Disposition": kept_as})


@router.delete(
    "/attachments/{attachment_id}",
    response={204: None},
    operation_id="removeAttachment",
    summary="Take an unsent file away",
)
def remove_attachment(request: ApiRequest, attachment_id: str) -> HttpResponse:
    """Your own, before it is sent."""
    attachments.remove(user=request.user, attachment_id=_found(request, attachment_id).pk)
    return nothing()


def _found(request: ApiRequest, attachment_id: str) -> Attachment:
    if not ids.may_be_one(attachment_id):
        raise NoSuchAttachment
    return attachments.fetch(request.user, attachment_id)
