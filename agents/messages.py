"""The messages between an agent and a model, as plain values without identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A page that a tool or the model's vendor found. `number` is unique in the conversation; 0 if not numbered yet."""

    number: int
    title: str
    url: str

    def to_json(self) -> Json:
        return {"number": self.number, "title": self.title, "url": self.url}


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that a tool has returned. `path` is its path in the workspace, and `size` is in bytes."""

    path: str
    media_type: str
    size: int

    def to_json(self) -> Json:
        return {"path": self.path, "media_type": self.media_type, "size": self.size}


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the message's author. If `foreign`, it comes from a file that the author attached, from another agent
    that has read text from elsewhere, or from a summary. `origin` names the place of that text; "" for a file. A
    model's own text is not `foreign`; its `origin` names the host of a page that the vendor has read for it.

    `sources` are the pages on which the text is based, according to the vendor. They are not sent to a model again.

    `data` is opaque and is sent only to the provider and model that wrote the text (MSG-08). With OpenAI's Responses
    API it has `item_id`, `phase` and `after`, each if it is known. `after` is the id of the output item directly before
    this one; it is never sent.
    """

    text: str
    data: Mapping[str, str] = field(default_factory=dict)
    foreign: bool = False
    sources: tuple[Source, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file for a model that accepts its kind. `data` is its bytes as base64, `about` its size ("800×600")."""

    kind: Literal["image", "pdf"]
    name: str
    media_type: str
    data: str = field(repr=False)
    about: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. `data` is opaque and is sent only to the `provider` and `model` that made it (MSG-08).

    If `model` is empty, the reasoning counts as that of the current model. The keys of `data`, by API:
    Anthropic: `signature`, or `redacted` with an empty text for hidden reasoning. OpenAI's Responses API: `item`, which
    is the output item as JSON text, and `after` as in Text. Chat Completions: `field`, the name of the field in which
    the text is sent back unchanged.
    """

    text: str
    provider: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    model: str = ""

    def is_of(self, provider: str, model: str) -> bool:
        """Return whether this model of this provider made the reasoning."""
        return self.provider == provider and self.model in ("", model)


# If a model's arguments are not a JSON object, they are stored as the text that it wrote, under this key.
UNREADABLE = "_raw"


def unreadable_text(arguments: object) -> str | None:
    """Return the text that a model wrote instead of a JSON object, or None if it wrote an object."""
    text = arguments.get(UNREADABLE) if isinstance(arguments, dict) and len(arguments) == 1 else None
    return text if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. `raw` is the JSON text of the arguments as the model wrote it, or "" if unknown.

    A provider whose API takes text sends `raw` as long as it is equivalent to `arguments` (see `arguments_text`).
    `arguments` is always an object: other text is stored as `{UNREADABLE: text}`, and the tool refuses it.
    `data` is as in Text; with OpenAI's Responses API it has `item_id` and `after`. With Chat Completions it can have
    `extra_content`, a field of the call, and `reasoning_details`, a field of its message, both as JSON text. `maker` is
    then the provider and model that get them back. `approved`: users have approved it.
    """

    id: str
    name: str
    arguments: Json
    raw: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    approved: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. `content` is text; a structured result is JSON text.

    `origin` names the place from which foreign text in it comes, such as a host; "" for Parley's own text. `sources`
    are the pages in it, with the numbers by which the model can cite them. `files` are shown to users only.
    """

    call_id: str
    content: str
    is_error: bool = False
    origin: str = ""
    sources: tuple[Source, ...] = ()
    files: tuple[ToolFile, ...] = ()


Part = Text | File | Thinking | ToolCall | ToolResult
Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `user` holds Text, File and ToolResult parts, `assistant` holds Text, Thinking and ToolCall parts in the order in
    which the model made them, `system` (a note in mid-conversation) holds Text.
    """

    role: Role
    parts: tuple[Part, ...]

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))
