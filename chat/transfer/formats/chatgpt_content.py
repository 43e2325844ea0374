"""The content of one ChatGPT message: its text in Markdown and its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.messages import Json
from chat.transfer.formats.citations import titled_link, with_sources
from chat.transfer.formats.parsed import Loss, Losses, as_dict, as_list, as_text
from chat.transfer.formats.turns import MAX_FILES, with_places
from chat.transfer.parsing.archive import Entries

# Keys of a content that describe its form.
_ABOUT = {"content_type", "language", "response_format_name", "model_set_context", "source_analysis_msg_id"}
# Keys that may contain the text. The first one that has text is used.
_TEXTS = ("text", "result", "summary", "content", "output_str", "snippet")
_PICTURES = ("image_asset_pointer",)
_AUDIO = "audio_asset_pointer"
_AUDIO_NAMES = (".aac", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav")


@dataclass(slots=True)
class Content:
    """A message's text and files. Each file has a `name` and the `entry` of the archive that contains it."""

    text: str = ""
    files: list[Json] = field(default_factory=list)


def has_content(message: Json) -> bool:
    """Return whether a message has any content."""
    content = as_dict(message.get("content"))
    members = [value for key, value in content.items() if key not in _ABOUT]
    return any(any(value) if isinstance(value, list) else bool(value) for value in members) or bool(
        as_list(as_dict(message.get("metadata")).get("attachments"))
    )


def read_content(message: Json, entries: Entries, left: Losses) -> Content:
    """Read a message. A file that is missing in the archive is replaced by its name."""
    reader = _Reader(message, entries, left)
    text = reader.text()
    return Content(reader.with_attached(text), reader.files)


class _Reader:
    """Reads one message and collects its files."""

    def __init__(self, message: Json, entries: Entries, left: Losses) -> None:
        self.files: list[Json] = []
        self._content = as_dict(message.get("content"))
        self._metadata = as_dict(message.get("metadata"))
        self._is_answer = as_dict(message.get("author")).get("role") == "assistant"
        self._attached = [as_dict(each) for each in as_list(self._metadata.get("attachments"))]
        self._names = {as_text(each.get("id")): as_text(each.get("name")) for each in self._attached}
        self._entries = entries
        self._left = left
        self._seen: set[str] = set()
        self._recordings: set[str] = set()

    def text(self) -> str:
        """Return the content's text."""
        kind = self._content.get("content_type")
        match kind:
            case "thoughts":
                thoughts = [as_dict(each) for each in as_list(self._content.get("thoughts"))]
                return "\n\n".join(filter(None, map(_thought_text, thoughts)))
            case "tether_quote" | "sonic_webpage":
                return _page(self._content)
            case "system_error":
                return ": ".join(filter(None, (as_text(self._content.get(name)) for name in ("name", "text"))))
            case "execution_output":
                return "\n\n".join(filter(None, [as_text(self._content.get("text")), *self._plots()]))
            case "computer_output":
                state, screen = as_dict(self._content.get("state")), as_dict(self._content.get("screenshot"))
                return "\n\n".join(filter(None, [_page(state), self._file(screen)]))
        parts = "\n\n".join(filter(None, map(self._part, as_list(self._content.get("parts")))))
        if not parts and self._recordings:
            return "[Recording: left out]"
        text = parts or next(filter(None, (as_text(self._content.get(name)) for name in _TEXTS)), "")
        if not text and not self.files and not self._attached:
            self._left.add_unknown(kind)
        return text

    def with_attached(self, text: str) -> str:
        """Add the files that have no place in the text."""
        missing, left_out = list[str](), list[str]()
        for each in self._attached:
            file_id, name = as_text(each.get("id")), as_text(each.get("name"))
            if not name or (file_id and file_id in self._seen | self._recordings):
                continue
            entry = self._entries.find(file_id, name)
            media_type = as_text(each.get("mime_type")) or as_text(each.get("mimeType"))
            if media_type.startswith("audio/") or _is_audio(entry or name):
                self._left[Loss.RECORDINGS] += 1
                left_out.append(name)
            elif entry and len(self.files) < MAX_FILES:
                self.files.append({"name": name[:255], "entry": entry})
            elif entry:
                self._left[Loss.SURPLUS] += 1
                left_out.append(name)
            elif not (media_type.startswith("image/") and self._seen):  # older exports also list images here
                missing.append(name)
        self._left[Loss.FILES] += len(missing)
        return with_places(with_places(text, missing, "not in the export"), left_out, "left out")

    def _part(self, part: object) -> str:
        if isinstance(part, str):
            text = as_text(part)
            return with_sources(text, self._metadata, self._left) if self._is_answer else text
        data = as_dict(part)
        kind = as_text(data.get("content_type"))
        if not data:
            return ""
        if kind == _AUDIO or data.get(_AUDIO):  # in voice conversations, the transcript is a part of its own
            return self._recording(as_dict(data.get(_AUDIO)) or data)
        if data.get("asset_pointer"):
            return self._file(data)
        if text := as_text(data.get("text")):
            return text
        self._left.add_unknown(kind or "part")
        return ""

    def _recording(self, data: Json) -> str:
        """Count a recording. It is not read, because attachments cannot be audio."""
        self._recordings.add(_file_id(data))
        self._left[Loss.RECORDINGS] += 1
        return ""

    def _plots(self) -> Iterator[str]:
        """Yield the images that executed code has drawn."""
        run = as_dict(self._metadata.get("aggregate_result"))
        for each in map(as_dict, as_list(run.get("messages"))):
            if pointer := as_text(each.get("image_url")):
                yield self._file({**each, "content_type": _PICTURES[0], "asset_pointer": pointer})

    def _file(self, data: Json) -> str:
        """Add a file by its pointer. Return "", or a text that marks its place if it is missing."""
        file_id = _file_id(data)
        if not file_id:
            return ""
        name = self._names.get(file_id, "")
        entry = self._entries.find(file_id, name)
        if _is_audio(entry):
            return self._recording(data)
        self._seen.add(file_id)
        if entry and len(self.files) < MAX_FILES:
            self.files.append({"name": (name or self._entries.name_of(entry))[:255], "entry": entry})
            return ""
        self._left[Loss.SURPLUS if entry else Loss.FILES] += 1
        return f"[{' '.join(_description(data, name))}: {'left out' if entry else 'not in the export'}]"


def _file_id(data: Json) -> str:
    return as_text(data.get("asset_pointer")).rpartition("://")[2].partition("?")[0].partition("#")[0]


def _is_audio(name: str) -> bool:
    return name.lower().endswith(_AUDIO_NAMES)


def _description(data: Json, name: str) -> Iterator[str]:
    kind = as_text(data.get("content_type")).removesuffix("_asset_pointer").replace("_", " ").capitalize()
    yield kind or "File"
    width, height = data.get("width"), data.get("height")
    if isinstance(width, int) and isinstance(height, int):
        yield f"{width}×{height}"
    if name:
        yield name


def _thought_text(thought: Json) -> str:
    summary, words = as_text(thought.get("summary")), as_text(thought.get("content"))
    return "\n\n".join(filter(None, (f"**{summary}**" if summary else "", words)))


def _page(page: Json) -> str:
    """Return a web page that was read: its title with its address, and its text."""
    title, address = as_text(page.get("title")), as_text(page.get("url"))
    head = titled_link(title or address, address) if title or address else ""
    return "\n".join(filter(None, (head, as_text(page.get("text")) or as_text(page.get("snippet")))))
