"""Read conversations from claude.ai exports: lists of messages with blocks, or with one text in older exports.

The format is not documented. See https://github.com/osteele/claude-chat-viewer and
https://github.com/yetanotherchris/openwebui-importer.
"""

from __future__ import annotations

import re
from functools import partial
from typing import IO

from agents.messages import Json
from chat.transfer.formats.citations import cited_text, titled_link
from chat.transfer.formats.parsed import Loss, Losses, ParsedConversation, Source, as_dict, as_list, as_text, as_time
from chat.transfer.formats.turns import (
    MAX_FILES,
    Turns,
    convert,
    first_words,
    path_to,
    text_file,
    with_places,
)
from chat.transfer.parsing.archive import NO_ENTRIES, Entries

# The keys of a conversation that are read.
KEYS = (
    *("name", "summary", "created_at", "updated_at", "chat_messages", "current_leaf_message_uuid"),
    *("is_starred", "messages"),
)
# Blocks that describe a message and are not shown.
_ABOUT = ("token_budget", "flag", "injected_prompt_block", "summaries")
# Blocks that show a file, with the names of their kinds.
_FILE_KINDS = {"image": "Image", "document": "Document", "local_resource": "File"}
# The name of a part of a large export, at the end of a string or of the path of its URL.
_PART = re.compile(rb'conversations-\d{1,9}\.zip["?#]')
# In bytes. A manifest has a few links.
MAX_MANIFEST_LENGTH = 1_000_000


def read(conversation: Json, entries: Entries = NO_ENTRIES) -> ParsedConversation:
    """Read the last branch of one conversation."""
    parsed = convert(
        Source.CLAUDE,
        conversation,
        title="name",
        began="created_at",
        changed="updated_at",
        path=_path,
        read=partial(_read_message, entries=entries),
        pinned=conversation.get("is_starred") is True,
        entries=entries,
    )
    session = parsed.document["session"]
    session["title"] = session["title"] or first_words(as_text(conversation.get("summary")))
    return parsed


def is_manifest(file: IO[bytes]) -> bool:
    """Return whether a file is the list of a large export's archives, each of which is downloaded separately."""
    file.seek(0)
    beginning = file.read(MAX_MANIFEST_LENGTH).removeprefix(b"\xef\xbb\xbf").lstrip()
    return beginning.startswith(b"{") and _PART.search(beginning) is not None


def _path(conversation: Json, left: Losses) -> list[Json]:
    """Return the messages of the branch with the last one if messages refer to their parents, else all messages."""
    messages = [each for each in as_list(conversation.get("chat_messages")) if isinstance(each, dict)]
    by_id = {as_text(each.get("uuid")): each for each in messages}
    if len(by_id) < len(messages) or not any(as_text(each.get("parent_message_uuid")) in by_id for each in messages):
        return messages
    leaf = as_text(conversation.get("current_leaf_message_uuid"))
    leaf = leaf if leaf in by_id else as_text(messages[-1].get("uuid"))
    return path_to(by_id, leaf, "parent_message_uuid", left)


def _read_message(message: Json, turns: Turns, left: Losses, *, entries: Entries) -> None:
    time = as_time(message.get("created_at"))
    if message.get("sender") == "human":
        _read_human(message, turns, left, time, entries)
        return
    blocks = as_list(message.get("content"))
    for block in blocks:
        _read_block(as_dict(block), turns, left, time)
    if not blocks and (text := _plain_text(message)):
        turns.answer(text, time)
    attachments, places = _files(message, entries, left)
    if attachments or places:
        turns.answer(places, time, attachments=attachments)


def _plain_text(message: Json) -> str:
    return as_text(message.get("text")) or as_text(message.get("content"))


def _read_human(message: Json, turns: Turns, left: Losses, time: str | None, entries: Entries) -> None:
    blocks = [as_dict(block) for block in as_list(message.get("content"))]
    texts = [as_text(block.get("text")) for block in blocks if block.get("type") == "text"]
    named = {as_text(as_dict(each).get("file_uuid")) for each in as_list(message.get("files"))} - {""}
    missing = list[str]()
    for block in blocks:
        match block.get("type"):
            case "image" | "document":
                missing += [] if as_text(block.get("file_uuid")) in named else [_missing_file(block, left)]
            case kind if kind not in ("text", *_ABOUT):
                left.add_unknown(kind)
    text = "\n\n".join(filter(None, texts)) or _plain_text(message)
    attachments, places = _files(message, entries, left)
    full_text = "\n\n".join(filter(None, [text, places, *missing]))
    if full_text or attachments:
        turns.say(full_text, time, attachments)


def _missing_file(block: Json, left: Losses) -> str:
    """Count a file that a block shows and that is missing. Return a text for its place."""
    left[Loss.FILES] += 1
    name = as_text(block.get("name")) or as_text(block.get("file_name"))
    return f"[{' '.join(filter(None, (_FILE_KINDS[block['type']], name)))}: not in the export]"


def _files(message: Json, entries: Entries, left: Losses) -> tuple[list[Json], str]:
    """Return a message's files, with extracted text or data from the archive, and lines for files that are missing."""
    kept: list[Json] = []
    missing, surplus = list[str](), list[str]()
    for each in [*as_list(message.get("attachments")), *as_list(message.get("files"))]:
        file = as_dict(each)
        name = as_text(file.get("file_name")) or "file"
        text = as_text(file.get("extracted_content"))
        entry = entries.find(as_text(file.get("file_uuid")) or name, name)
        if not text.strip() and name in [*missing, *surplus, *(known["name"] for known in kept)]:
            continue
        if not entry and not text.strip():
            missing.append(name)
        elif len(kept) == MAX_FILES:
            surplus.append(name)
        else:
            kept.append({"name": name[:255], "entry": entry} if entry else text_file(name, text))
    left[Loss.FILES] += len(missing)
    left[Loss.SURPLUS] += len(surplus)
    return kept, with_places(with_places("", missing, "not in the export"), surplus, "left out")


def _read_block(block: Json, turns: Turns, left: Losses, time: str | None) -> None:
    time = as_time(block.get("start_timestamp")) or time
    match block.get("type"):
        case "text" if text := as_text(block.get("text")):
            turns.answer(cited_text(text, as_list(block.get("citations"))), time)
        case "thinking" if text := as_text(block.get("thinking")):
            turns.think(text, time)
        case "tool_use":
            turns.call(*_call(block), block.get("input"), time)
        case "tool_result":
            name, text = _call(block)[1], _result(block.get("content"), left)
            turns.give_result(_call(block)[0], name, text, time, is_error=block.get("is_error") is True)
        case "text" | "thinking":
            pass
        case kind if kind not in _ABOUT:
            left.add_unknown(kind)


def _call(block: Json) -> tuple[str, str]:
    """Return the key that links a call to its result, and the tool's name. Without an id, the key is the name."""
    name = as_text(block.get("name")) or "unknown"
    return as_text(block.get("tool_use_id")) or as_text(block.get("id")) or name, name


def _result(content: object, left: Losses) -> str:
    if isinstance(content, str):
        return as_text(content)
    return "\n\n".join(filter(None, (_result_part(as_dict(part), left) for part in as_list(content))))


def _result_part(part: Json, left: Losses) -> str:
    """Return the text for a part of a tool's result: a text, a page with its address, or a missing file."""
    title, address = as_text(part.get("title")), as_text(part.get("url"))
    head = titled_link(title or address, address) if title or address else ""
    if text := "\n".join(filter(None, (head, as_text(part.get("text"))))):
        return text
    if part.get("type") in ("image", "local_resource"):
        return _missing_file(part, left)
    if part and part.get("type") != "text":
        left.add_unknown(part.get("type"))
    return ""
