"""Whose format a value from a file has, and the conversation in it."""

from __future__ import annotations

from typing import Any

from chat.imports import chatgpt, claude
from chat.imports.found import Found, Source
from chat.projections.export_json import FORMAT

OWN_KEYS = ("format", "version", "session", "changes", "requests", "messages")
# The members of a conversation that any format reads; no others are built.
KEYS = frozenset([*OWN_KEYS, *chatgpt.KEYS, *claude.KEYS])


def recognised(value: Any) -> Found | None:
    """Read a value as a conversation; None: it is none that is known here."""
    match value:
        case {"format": str() as name} if name == FORMAT:
            return Found(Source.PARLEY, value)
        case {"mapping": dict()}:
            return chatgpt.read(value)
        case {"chat_messages": list()}:
            return claude.read(value)
    return None
