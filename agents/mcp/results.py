"""Results of MCP servers as text for the model, and as files for users: images, audio and other data."""

from __future__ import annotations

import binascii
import json
import logging
import mimetypes
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import mcp_types as types

from agents.foreign_text import ForeignText
from agents.messages import Source, ToolFile
from agents.safe_text import clean, cut
from agents.sandbox.keeping import keep_file
from agents.sources import SourceNumbers, is_web_address
from agents.threads import in_thread
from agents.tools import ToolContext

logger = logging.getLogger(__name__)

MAX_RESULT_LENGTH = 50_000
# The most files that are kept from one result.
MAX_FILES = 20
FOLDER = "tool-results"
MAX_TYPE_LENGTH = 100
# Types that `mimetypes` does not know on every machine.
ENDINGS = {"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "image/webp": ".webp"}


@dataclass
class _Kept:
    """The files and sources of a result. The names of the files begin with `stem`."""

    stem: str
    context: ToolContext
    files: list[ToolFile] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)


async def read_result(result: types.CallToolResult, origin: str, stem: str, context: ToolContext) -> ForeignText:
    """Return a result as text: its parts in order, and its structured content if it has no text.

    Images, audio and other data are stored as files in the workspace, with names that begin with `stem`. Files of an
    error are not stored, because its card shows no files. Links to web pages become sources that can be cited.
    """
    kept = _Kept(stem, replace(context, sandbox=None) if result.is_error else context)
    parts = [await _part(part, kept) for part in result.content]
    structured = result.structured_content
    if structured is not None and not any(isinstance(part, types.TextContent) for part in result.content):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return ForeignText(_joined(parts), origin, tuple(kept.sources), tuple(kept.files))


async def read_contents(
    contents: Iterable[types.TextResourceContents | types.BlobResourceContents],
    origin: str,
    stem: str,
    context: ToolContext,
) -> ForeignText:
    """Return the contents of a resource in the form of `read_result`."""
    kept = _Kept(stem, context)
    parts = [await _contents(each, kept) for each in contents]
    return ForeignText(_joined(parts), origin, files=tuple(kept.files))


async def _part(part: types.ContentBlock, kept: _Kept) -> str:
    match part:
        case types.TextContent():
            return part.text
        case types.ImageContent():
            return await _data("image", part.mime_type, part.data, kept)
        case types.AudioContent():
            return await _data("audio", part.mime_type, part.data, kept)
        case types.ResourceLink():
            return _link(part, kept)
        case types.EmbeddedResource():
            return await _contents(part.resource, kept)


async def _contents(resource: types.TextResourceContents | types.BlobResourceContents, kept: _Kept) -> str:
    kind = f", {resource.mime_type}" if resource.mime_type else ""
    if isinstance(resource, types.TextResourceContents):
        return f"[resource {resource.uri}{kind}]\n{resource.text}"
    return await _data(f"resource {resource.uri}", resource.mime_type or "", resource.blob, kept)


def _link(link: types.ResourceLink, kept: _Kept) -> str:
    """Return a link as a line of text. A link to a web page gets a number, so that the answer can cite it."""
    if not is_web_address(link.uri):
        return f"[link to a resource] {resource_line(link)}"
    source = (kept.context.sources or SourceNumbers()).number(link.title or link.name, link.uri)
    kept.sources.append(source)
    return f"[{source.number}] {resource_line(link)}"


def resource_line(resource: types.Resource) -> str:
    words = resource.description or resource.title or resource.name
    return f"{resource.uri}: {' '.join(words.split())[:200]}"


async def _data(kind: str, media_type: str, base64: str, kept: _Kept) -> str:
    media_type = clean(media_type)[:MAX_TYPE_LENGTH]
    about = ", ".join(filter(None, (kind, media_type)))
    try:
        data = b64decode(base64, validate=True)
    except (ValueError, binascii.Error):
        return f"[{about}: it is damaged]"
    about = f"{about}, {len(data):,} bytes"
    sandbox = kept.context.sandbox
    if sandbox is None or len(kept.files) >= MAX_FILES:
        return f"[{about}: it was not stored]"
    plain_type = media_type.partition(";")[0].strip().lower()
    ending = ENDINGS.get(plain_type) or mimetypes.guess_extension(plain_type) or ".bin"
    try:
        path = await in_thread(keep_file, sandbox, FOLDER, kept.stem, ending, data)
    except OSError as error:
        logger.warning("Could not store a file of a tool's result: %r", error)
        return f"[{about}: it could not be stored]"
    if path is None:
        return f"[{about}: it was not stored, because the session's folder is full]"
    kept.context.files_changed()
    kept.files.append(ToolFile(path, media_type, len(data)))
    return f"[{about}: users see it; it is in the session's folder as {path}]"


def _joined(parts: Iterable[str]) -> str:
    return cut("\n\n".join(part for part in parts if part), MAX_RESULT_LENGTH)
