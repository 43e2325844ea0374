"""What an agent and a model say to each other, as plain values without identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A page that a tool or the model's vendor found. `number` is unique in the conversation; 0: it has none yet."""

    number: int
    title: str
    url: str

    def to_json(self) -> Json:
        return {"number": self.number, "title": self.title, "url": self.url}


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that a tool has returned, by its path in the workspace; `size` is in bytes."""

    path: str
    media_type: str
    size: int

    def to_json(self) -> Json:
        return {"path": self.path, "media_type": self.media_type, "size": self.size}


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the message's author; `foreign` ones come from a file that the author attached.

    `sources` are those that the vendor says it is based on. They do not go back.

    `data` is opaque and goes back only to the provider and model that wrote the text (MSG-08).
    OpenAI's Responses API: `item_id`, `phase` and `after`, each where it is known. `after` is the id of the output item
    directly before this one; it is never sent.
    """

    text: str
    data: Mapping[str, str] = field(default_factory=dict)
    foreign: bool = False
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """A file for a model that takes it as it is; `data` is its bytes as base64, `about` its measure ("800×600")."""

    kind: Literal["image", "pdf"]
    name: str
    media_type: str
    data: str = field(repr=False)
    about: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. `data` is opaque and goes back only to the `provider` and `model` that made it (MSG-08).

    An empty `model` is the one that is asked now. Anthropic: `{"signature": str}` or, for reasoning that it hides,
    `{"redacted": str}` with an empty text. OpenAI's Responses API: `{"item": str}`, the output item as JSON text,
    and `after` as in Text. Chat Completions: `{"field": str}`, where the text goes back as it is.
    """

    text: str
    provider: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    model: str = ""

    def is_of(self, provider: str, model: str) -> bool:
        """Tell whether this provider's model made it."""
        return self.provider == provider and self.model in ("", model)


# The key of arguments that a model did not write as a JSON object: its value is what it wrote.
UNREADABLE = "_raw"


def unreadable_text(arguments: object) -> str | None:
    """Return what a model wrote instead of a JSON object; None if it wrote one."""
    text = arguments.get(UNREADABLE) if isinstance(arguments, dict) and len(arguments) == 1 else None
    return text if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool. `raw` is the arguments' JSON text as the model wrote it, "" when unknown.

    A provider that takes text sends `raw` while it still says the same as `arguments` (see `arguments_text`).
    `arguments` is always an object; text that is not one is kept as `{UNREADABLE: text}` and the tool refuses it.
    `data` is as in Text; OpenAI's Responses API: `item_id` and `after`. `approved`: people have agreed to the call.
    """

    id: str
    name: str
    arguments: Json
    raw: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    approved: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered; `content` is text, structured results are JSON text.

    `origin` names where foreign text in it comes from, such as a host; "" for Parley's own words. `sources` are the
    pages in it, by the numbers by which the model can cite them. `files` are for people alone.
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
