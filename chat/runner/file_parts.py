"""The bytes of the files that a model takes as they are, read for one request."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agents.capabilities import Capabilities
from agents.messages import Part
from chat.files.images import serves_as_it_is
from chat.models import Attachment, ChatMessage, MessageRole, attached_to
from chat.projections.attached import LOST, TOO_MUCH, as_file, as_text
from chat.queries import attachments
from chat.queries.attachments import MODEL_IMAGE, NoSuchAttachment

# The SDKs write a request's JSON at one go, some 5 ms for each megabyte in which no other stream moves; and vendors
# refuse more than 32 MB.
MOST_BYTES = 8 * 1024 * 1024
MOST_PAGES = 100
Shown = Mapping[str, tuple[Part, ...]]
# Gives a file, or a smaller form of it, as base64, and its size in bytes. Raises NoSuchAttachment.
Reader = Callable[[Attachment, str], tuple[str, int]]


def read(attachment: Attachment, form: str) -> tuple[str, int]:
    """Read a file for a model."""
    data = attachments.data_of(attachment, form)
    return b64encode(data).decode(), len(data)


def file_sizes(attachment: Attachment, form: str) -> tuple[str, int]:
    """Look how large a file is, for those who only want to know what a model would get of it."""
    return "", attachments.size_of(attachment, form)


def load_file_parts(rows: Sequence[ChatMessage], takes: Capabilities, reader: Reader = read) -> Shown:
    """Read the files of these messages that the model takes, by their ids: the newest ones where they are many."""
    parts: dict[str, tuple[Part, ...]] = {}
    room = MOST_BYTES
    for attachment in _newest_first(rows, takes):
        media_type, form = _form(attachment)
        # A smaller form is smaller than this by far; how large it is shows when it is read.
        if not form and attachment.size > room:
            parts[attachment.pk] = as_text(attachment, TOO_MUCH)
            continue
        try:
            data, size = reader(attachment, form)
        except NoSuchAttachment:
            parts[attachment.pk] = as_text(attachment, LOST)
            continue
        room -= size
        parts[attachment.pk] = as_file(attachment, media_type, data) if room >= 0 else as_text(attachment, TOO_MUCH)
    return parts


def _newest_first(rows: Iterable[ChatMessage], takes: Capabilities) -> Iterator[Attachment]:
    for row in sorted(rows, key=lambda row: row.sequence or 0, reverse=True):
        if row.include_in_context and row.role == MessageRole.USER:
            yield from (attachment for attachment in attached_to(row) if _takes(takes, attachment))


def _takes(takes: Capabilities, attachment: Attachment) -> bool:
    if attachment.kind == Attachment.Kind.IMAGE:
        return takes.images
    return takes.pdf and attachment.kind == Attachment.Kind.PDF and (attachment.pages or 1) <= MOST_PAGES


def _form(attachment: Attachment) -> tuple[str, str]:
    """In which media type, and under which addition to its name, the file goes to a model."""
    is_image = attachment.kind == Attachment.Kind.IMAGE
    size = (attachment.width or 0, attachment.height or 0)
    if is_image and not serves_as_it_is(attachment.media_type, size, attachment.size):
        return "image/jpeg", MODEL_IMAGE
    return attachment.media_type, ""
