"""Assembly of tool calls from the fragments of a stream, for all the ways in which servers cut and label them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.events import ToolCallDelta
from agents.messages import Json, ToolCall
from agents.providers.arguments import read_arguments
from agents.providers.http.decoding import repair
from agents.providers.openai.details import DETAILS

# The field of a call in which Gemini's compatible endpoint sends the signature of its reasoning. Its models refuse a
# request in which a call of the current turn lacks the signature (see `Dialect.signed_calls`).
EXTRA = "extra_content"


@dataclass
class OpenCall:
    """A call that is not complete yet. The first `sent` of its pieces were already returned as deltas."""

    index: int | None
    place: int
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    sent: int = 0
    has_delta: bool = False
    extra: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class CallCollector:
    """A collector of fragments, in the order of their calls.

    OpenAI labels each fragment with an index, and the first one also with id and name. Other servers send the id or
    name late or again, another id with each fragment, no index, the index 0 for every call, no id, the arguments as an
    object, or the whole arguments again at the end.
    """

    def __init__(self) -> None:
        self._calls: list[OpenCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, fragment: Mapping[str, Any], names: Mapping[str, str]) -> ToolCallDelta | None:
        """Add a fragment. Return a delta with the new text of its call, or None if there is none or no name yet.

        `names` is as in `take`.
        """
        function, call_id = fragment.get("function") or {}, fragment.get("id") or ""
        name = function.get("name") or ""
        text = _text_of(function.get("arguments"))
        call = self._find(fragment.get("index"), call_id, name, text)
        call.id = call.id or call_id
        call.name = call.name or name
        if extra := fragment.get(EXTRA):
            call.extra = repair(json.dumps(extra, ensure_ascii=False))
        if not (_begins_again(call, text) and text.strip() == call.text.strip()):
            call.pieces.append(text)
        new, is_first = "".join(call.pieces[call.sent :]), not call.has_delta
        if not call.name or not (new or is_first):
            return None
        call.sent, call.has_delta = len(call.pieces), True
        return ToolCallDelta(str(call.place), names.get(call.name, call.name), new)

    def take(self, names: Mapping[str, str], maker: str, details: str) -> list[ToolCall]:
        """Return the complete calls. `names` maps the names that were sent to the server to those of the tools.

        `maker` names the provider and the model, which get back the calls' extra content, and `details` of the
        reasoning, which become data of the first call.
        """
        seen: set[str] = set()
        found: list[ToolCall] = []
        for call in self._calls:
            if not call.id or call.id in seen:
                call.id = f"call_{secrets.token_hex(12)}"
            seen.add(call.id)
            text = repair(call.text)
            name = names.get(call.name, call.name) or "unknown"
            own = {EXTRA: call.extra, DETAILS: "" if found else details, "maker": maker}
            data = {key: value for key, value in own.items() if value} if own[EXTRA] or own[DETAILS] else {}
            found.append(ToolCall(call.id, name, read_arguments(text), text, data))
        return found

    def _find(self, index: int | None, call_id: str, name: str, text: str) -> OpenCall:
        with_index = [call for call in self._calls if call.index == index]
        with_id = [call for call in with_index if call_id and call.id == call_id]
        latest = (with_id or with_index)[-1:]
        if latest and not _is_another(latest[0], call_id, name, text):
            return latest[0]
        self._calls.append(OpenCall(index, len(self._calls)))
        return self._calls[-1]


def maker_of(provider: str, model: str) -> str:
    """Return the maker of a call in its data."""
    return f"{provider}/{model}"


def own_field(name: str, call: ToolCall, maker: str) -> Json:
    """Return the field of this name that the maker sent with a call, or {} if there is none."""
    if call.data.get("maker") != maker:
        return {}
    try:
        return {name: json.loads(call.data.get(name, ""))}
    except (ValueError, RecursionError):
        return {}


def _text_of(arguments: object) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _is_another(call: OpenCall, call_id: str, name: str, text: str) -> bool:
    """Return whether a fragment begins a new call, although its index is that of an older one."""
    again = _begins_again(call, text)
    if call_id and call.id:
        return again and text.strip() != call.text.strip() if call_id == call.id else bool(name) or again
    if name and call.name:
        return again or (call.index is None and (name != call.name or _is_whole(call)))
    return False


def _begins_again(call: OpenCall, text: str) -> bool:
    """Return whether a text begins an object although the call's arguments are already whole."""
    return text.lstrip()[:1] == "{" and _is_whole(call)


def _is_whole(call: OpenCall) -> bool:
    last = next((piece for piece in reversed(call.pieces) if piece.strip()), "")
    if not last.rstrip().endswith("}"):
        return False
    try:
        json.loads(call.text)
    except (ValueError, RecursionError):
        return False
    return True
