"""The files of messages: read for a request, as far as the model accepts them, and copied for the agent's tools."""

from __future__ import annotations

import logging
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from agents.loop import Agent
from agents.messages import Part
from agents.model_facts import Capabilities
from agents.sandbox.copies import ATTACHMENTS, Copy, update_copies
from chat.errors import FilesUnavailable
from chat.files.contents import serves_as_it_is
from chat.models import Attachment, ChatMessage, MessageRole, attached_to
from chat.projections.attached import LOST, TOO_MANY_MEDIA, TOO_MANY_PAGES, TOO_MUCH, as_file, as_text
from chat.queries import attachments
from chat.queries.attachments import MODEL_IMAGE, NoSuchAttachment

logger = logging.getLogger(__name__)

# In bytes. The SDKs encode a request's JSON in one step, which blocks the event loop for about 5 ms per megabyte.
# Vendors reject more than 32 MB.
MAX_BYTES = 8 * 1024 * 1024
# Of one PDF file.
MAX_PAGES = 100
# The most images and pages in one request: of models with a context window of up to LARGE_WINDOW tokens, and of others.
# Anthropic allows 100 and 600, OpenAI 500.
MAX_MEDIA = 100
MAX_MEDIA_OF_LARGE_WINDOW = 500
LARGE_WINDOW = 200_000
# In bytes, for the names of copies. File systems allow 255, and a number may be added to the name.
MAX_NAME_LENGTH = 200
MAX_ENDING_LENGTH = 40
FileParts = Mapping[str, tuple[Part, ...]]
# Returns a file, or a smaller form of it, as base64, and its size in bytes. Raises NoSuchAttachment.
Reader = Callable[[Attachment, str], tuple[str, int]]


def read(attachment: Attachment, form: str) -> tuple[str, int]:
    """Return a file, or a smaller form of it, as base64, and its size in bytes."""
    data = attachments.data_of(attachment, form)
    return b64encode(data).decode(), len(data)


def file_sizes(attachment: Attachment, form: str) -> tuple[str, int]:
    """Return "" and the size of a file in bytes, for previews of a request."""
    return "", attachments.size_of(attachment, form)


def load_file_parts(rows: Sequence[ChatMessage], agent: Agent, reader: Reader = read) -> FileParts:
    """Return the parts of the files that the agent's model accepts, by id.

    If they exceed the limits of one request, take the newest ones.
    """
    parts: dict[str, tuple[Part, ...]] = {}
    room, media = MAX_BYTES, most_media(agent)
    for attachment in _newest_first(rows, agent.capabilities):
        media_type, form = _form(attachment)
        # A smaller form is much smaller than the file, and its size is known only after it was read.
        excess = TOO_MUCH if not form and attachment.size > room else _excess(attachment, media, agent)
        if excess:
            parts[attachment.pk] = as_text(attachment, excess)
            continue
        try:
            data, size = reader(attachment, form)
        except NoSuchAttachment:
            parts[attachment.pk] = as_text(attachment, LOST)
            continue
        room -= size
        media -= _media(attachment)
        parts[attachment.pk] = as_file(attachment, media_type, data) if room >= 0 else as_text(attachment, TOO_MUCH)
    return parts


def most_media(agent: Agent) -> int:
    """Return the most images and pages in one request to an agent's model."""
    return MAX_MEDIA_OF_LARGE_WINDOW if (agent.context_window or 0) > LARGE_WINDOW else MAX_MEDIA


def _media(attachment: Attachment) -> int:
    """Return the number of images or pages of a file."""
    return attachment.pages or 1


def _excess(attachment: Attachment, media: int, agent: Agent) -> str:
    """Return the reason why a file has too many pages for a request with room for `media` images and pages, or ""."""
    if _media(attachment) > MAX_PAGES:
        return TOO_MANY_PAGES.format(most=MAX_PAGES)
    return TOO_MANY_MEDIA.format(most=most_media(agent)) if _media(attachment) > media else ""


def _newest_first(rows: Iterable[ChatMessage], capabilities: Capabilities) -> Iterator[Attachment]:
    for row in sorted(rows, key=lambda row: row.sequence or 0, reverse=True):
        if row.include_in_context and row.role == MessageRole.USER:
            yield from (attachment for attachment in attached_to(row) if _is_accepted(attachment, capabilities))


def _is_accepted(attachment: Attachment, capabilities: Capabilities) -> bool:
    if attachment.kind == Attachment.Kind.IMAGE:
        return capabilities.images
    return capabilities.pdf and attachment.kind == Attachment.Kind.PDF


def _form(attachment: Attachment) -> tuple[str, str]:
    """Return the media type in which a file is sent to a model, and the suffix of the stored form ("": the file)."""
    is_image = attachment.kind == Attachment.Kind.IMAGE
    size = (attachment.width or 0, attachment.height or 0)
    if is_image and not serves_as_it_is(attachment.media_type, size, attachment.size):
        return "image/jpeg", MODEL_IMAGE
    return attachment.media_type, ""


def copy_attachments(agent: Agent, rows: Iterable[ChatMessage]) -> None:
    """Copy the attachments of these rows to the agent's workspace, if the agent has tools for files.

    A file that cannot be copied is left out. Raise FilesUnavailable if the storage of the files cannot be reached.
    """
    if agent.sandbox is None:
        return
    files = [attachment for row in rows for attachment in attached_to(row)]
    if not files and not os.path.lexists(agent.sandbox.workspace / ATTACHMENTS):
        return
    try:
        copies = [
            Copy(name, *attachments.copy_mark(each), partial(_data_of, each))
            for name, each in zip(names_of([each.name for each in files]), files, strict=True)
        ]
        update_copies(agent.sandbox.workspace, ATTACHMENTS, copies)
    except FilesUnavailable:
        raise
    except OSError as error:
        logger.warning("Could not copy attachments to %s: %r", agent.sandbox.workspace, error)


def _data_of(attachment: Attachment) -> bytes | None:
    try:
        return attachments.data_of(attachment)
    except NoSuchAttachment:
        return None


def names_of(names: Iterable[str]) -> Iterator[str]:
    """Yield names for files in one folder. Each is short enough and differs from the names before it."""
    taken = set[str]()
    for name in names:
        stem, dot, ending = name.rpartition(".")
        if not stem or len(ending.encode()) > MAX_ENDING_LENGTH:
            stem, dot, ending = name, "", ""
        room = MAX_NAME_LENGTH - len(ending.encode())
        stem = stem.replace("/", "_").encode()[:room].decode(errors="ignore").strip(". ") or "file"
        number, made = 1, f"{stem}{dot}{ending}"
        while made.casefold() in taken:
            number += 1
            made = f"{stem} ({number}){dot}{ending}"
        taken.add(made.casefold())
        yield made
