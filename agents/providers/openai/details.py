"""Collect the reasoning details of OpenRouter, which some models behind it require in later requests.

Gemini's signatures are among them, and models of Anthropic and OpenAI continue their reasoning with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from agents.messages import Json
from agents.providers.http.decoding import repair

DETAILS = "reasoning_details"
# The fields of which a piece has the next part. Of other fields, it has the whole value.
GROWING = frozenset({"text", "summary", "data"})


@dataclass
class Detail:
    """A detail that may not be complete. `growing` has the parts of its growing fields."""

    fields: Json = field(default_factory=dict)
    growing: dict[str, list[str]] = field(default_factory=dict)

    def add(self, piece: Json) -> None:
        for name, value in piece.items():
            if name in GROWING and isinstance(value, str):
                self.growing.setdefault(name, []).append(value)
            elif value is not None:
                self.fields[name] = value

    def to_json(self) -> Json:
        return self.fields | {name: "".join(parts) for name, parts in self.growing.items()}

    def continues(self, piece: Json) -> bool:
        """Return whether a piece belongs to this detail."""
        if any(self.fields.get(name) != piece.get(name) for name in ("type", "index")):
            return False
        return None in (self.fields.get("id"), piece.get("id")) or self.fields["id"] == piece["id"]


class DetailCollector:
    """A collector of the details' pieces. Pieces of one detail have its type and index, and its id or none."""

    def __init__(self) -> None:
        self._details: list[Detail] = []

    def add(self, pieces: object) -> None:
        """Add the pieces of a chunk. Ignore what is not a list of objects."""
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._find(piece).add(piece)

    @property
    def text(self) -> str:
        """The details as JSON text, or "" if there are none."""
        details = [detail.to_json() for detail in self._details]
        return repair(json.dumps(details, ensure_ascii=False)) if details else ""

    def _find(self, piece: Json) -> Detail:
        for detail in reversed(self._details):
            if detail.continues(piece):
                return detail
        self._details.append(Detail())
        return self._details[-1]
