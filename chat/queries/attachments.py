"""Read attached files and their bytes, for users who may see them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, ClassVar

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.access import session_for
from chat.errors import NoSuchSession, ServiceError
from chat.models import Attachment, ChatMessage, MessageStatus, User, cache_files, has_cached_files, may_have_files

# Databases limit the number of values in a query.
BATCH = 5_000
# Suffixes of the smaller stored forms of a picture.
THUMB = ".thumb"
MODEL_IMAGE = ".model"


class NoSuchAttachment(ServiceError):
    CODE: ClassVar[str] = "no_such_attachment"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("File not found."))


def fetch(user: User, attachment_id: str) -> Attachment:
    """Return a file if the user may see it. Raise NoSuchAttachment otherwise, also if the file does not exist.

    Only its uploader sees an unsent file, and a file of a message that another user removed from the queue. No one sees
    a file of another removed message.
    """
    attachment = Attachment.objects.filter(pk=attachment_id).select_related("message").first()
    if attachment is None or not _is_visible(attachment, user):
        raise NoSuchAttachment
    try:
        session_for(user, attachment.session_id)
    except NoSuchSession:
        raise NoSuchAttachment from None
    return attachment


def unsent(session_id: str, user: User) -> list[dict[str, Any]]:
    """Return the unsent files in the user's composer of this session, for the page's scripts, the oldest first."""
    files = Attachment.objects.filter(session=session_id, user=user, message=None).defer("text")
    return [describe(file) for file in files.order_by("created_at", "pk")]


def fetch_attachments(messages: Iterable[ChatMessage], *, with_text: bool = False) -> None:
    """Fetch the files of many messages in few queries, for `attached_to`. `with_text` reads their text, too.

    `prefetch_related_objects` would put each message into a reference cycle with a query set. Only the garbage
    collector frees such messages, and it runs rarely, so that messages of long sessions would fill the memory.
    """
    with_files = (message for message in messages if may_have_files(message) and not has_cached_files(message))
    while batch := list(islice(with_files, BATCH)):
        files = Attachment.objects.filter(message__in=[message.pk for message in batch])
        by_message: dict[str | None, list[Attachment]] = {}
        for file in files if with_text else files.defer("text"):
            by_message.setdefault(file.message_id, []).append(file)
        for message in batch:
            cache_files(message, by_message.get(message.pk, []))


def describe(attachment: Attachment) -> dict[str, Any]:
    """Return the description of a file for the page's scripts."""
    is_image = attachment.kind == Attachment.Kind.IMAGE
    return {
        "id": attachment.pk,
        "name": attachment.name,
        "kind": attachment.kind,
        "media_type": attachment.media_type,
        "size": attachment.size,
        "width": attachment.width,
        "height": attachment.height,
        "pages": attachment.pages,
        "url": reverse("attachment", args=[attachment.pk]),
        "thumb": reverse("attachment-thumb", args=[attachment.pk]) if is_image else None,
    }


def open_file(attachment: Attachment, form: str = "") -> File[bytes]:
    """Open the file, or a smaller form of it (`THUMB`, `MODEL_IMAGE`). Raise NoSuchAttachment if it is missing."""
    try:
        return default_storage.open(stored_name(attachment) + form)
    except FileNotFoundError:
        raise NoSuchAttachment from None


def data_of(attachment: Attachment, form: str = "") -> bytes:
    """Return the bytes of a file, or of a smaller form of it. Raise NoSuchAttachment if it is missing."""
    with open_file(attachment, form) as stored:
        data: bytes = stored.read()
        return data


def size_of(attachment: Attachment, form: str = "") -> int:
    """Return the size of a file, or of a smaller form of it, in bytes. Raise NoSuchAttachment if it is missing."""
    try:
        return int(default_storage.size(stored_name(attachment) + form))
    except FileNotFoundError:
        raise NoSuchAttachment from None


def copy_mark(attachment: Attachment) -> tuple[int, int]:
    """Return the size of an attachment's copy in the session's folder, and its time of change in seconds since 1970.

    A copy is found by them, because its name depends on the other files.
    """
    return attachment.size, int(attachment.created_at.timestamp())


def stored_name(attachment: Attachment) -> str:
    """Return the name of an attachment's file in the storage. Several rows may have the same file."""
    return attachment.file.name or ""


def _is_visible(attachment: Attachment, user: User) -> bool:
    message = attachment.message
    if message is None or (message.removed_at is not None and message.status == MessageStatus.QUEUED):
        return attachment.user_id == user.pk
    return message.removed_at is None
