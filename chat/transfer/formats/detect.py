"""Detect the format of a value from a file, and read the conversation in it."""

from __future__ import annotations

from typing import Any

from chat.transfer.exporting.as_json import FORMAT
from chat.transfer.formats import chatgpt, claude, librechat, open_webui
from chat.transfer.formats.parsed import ParsedConversation, Source
from chat.transfer.parsing.archive import NO_ENTRIES, Entries

OWN_KEYS = ("format", "version", "session", "changes", "requests", "messages")
# The keys of a conversation that any format reads. Other values are not parsed.
KEYS = frozenset([*OWN_KEYS, *chatgpt.KEYS, *claude.KEYS, *open_webui.KEYS, *librechat.KEYS])


def parse_conversation(value: Any, entries: Entries = NO_ENTRIES) -> ParsedConversation | None:
    """Read a value as a conversation, or return None if no format matches. `entries` are the files in its archive."""
    match value:
        case {"format": str() as name} if name == FORMAT:
            return ParsedConversation(Source.PARLEY, value)
        case {"mapping": dict()}:
            return chatgpt.read(value, entries)
        case {"chat_messages": list()}:
            return claude.read(value, entries)
        case {"chat": {"history": dict()}} | {"chat": {"messages": list()}}:
            return open_webui.read(value)
        case {"conversationId": str(), "messagesTree": list()} | {"conversationId": str(), "messages": list()}:
            return librechat.read(value)
        case {"messages": [{"sender": str()}, *_]}:
            return claude.read({**value, "chat_messages": value["messages"]}, entries)
    return None
