"""Conversations as claude.ai exports them: a list of messages, each made of blocks."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

from chat.imports.found import Found, Left, Source, as_dict, as_list, as_text, as_time
from chat.imports.turns import Turns, collected

Json = dict[str, Any]
# What of a conversation is read.
KEYS = ("name", "created_at", "updated_at", "chat_messages", "current_leaf_message_uuid")
MOST_FILES = 10


def read(conversation: Json) -> Found:
    """Read one conversation; of its branches the last one."""
    names = {"title": "name", "began": "created_at", "changed": "updated_at"}
    return collected(Source.CLAUDE, conversation, **names, path=_path, read=_read_message)


def _path(conversation: Json, left: Counter[Left]) -> list[Json]:
    """The messages up to the last one, where each says which it follows; else all."""
    messages = [each for each in as_list(conversation.get("chat_messages")) if isinstance(each, dict)]
    by_id = {as_text(each.get("uuid")): each for each in messages}
    if len(by_id) < len(messages) or not any(as_text(each.get("parent_message_uuid")) in by_id for each in messages):
        return messages
    leaf = as_text(conversation.get("current_leaf_message_uuid"))
    at, path = leaf if leaf in by_id else as_text(messages[-1].get("uuid")), list[Json]()
    while at in by_id:
        path.append(by_id.pop(at))
        at = as_text(path[-1].get("parent_message_uuid"))
    left[Left.BRANCHES] += len(by_id)
    return path[::-1]


def _read_message(message: Json, turns: Turns, left: Counter[Left]) -> None:
    time = as_time(message.get("created_at"))
    if message.get("sender") == "human":
        _read_human(message, turns, left, time)
        return
    blocks = as_list(message.get("content"))
    for block in blocks:
        _read_block(as_dict(block), turns, left, time)
    if not blocks and (text := as_text(message.get("text"))):
        turns.answer(text, time)


def _read_human(message: Json, turns: Turns, left: Counter[Left], time: str | None) -> None:
    blocks = [as_dict(block) for block in as_list(message.get("content"))]
    texts = [as_text(block.get("text")) for block in blocks if block.get("type") == "text"]
    left[Left.UNKNOWN] += sum(block.get("type") != "text" for block in blocks)
    text = "\n\n".join(filter(None, texts)) or as_text(message.get("text"))
    attachments, names = _files(message)
    left[Left.FILES] += len(names)
    lines = [text, *(f"[File {name}: not in the export]" for name in names)]
    if said := "\n\n".join(filter(None, lines)):
        turns.say(said, time, attachments)
    elif attachments:
        turns.say("", time, attachments)


def _files(message: Json) -> tuple[list[Json], list[str]]:
    """What people attached: with the text that was found in it, and the names of what is not in the export."""
    kept: list[Json] = []
    named = []
    for each in [*as_list(message.get("attachments")), *as_list(message.get("files"))]:
        name = as_text(as_dict(each).get("file_name")) or "file"
        text = as_text(as_dict(each).get("extracted_content"))
        if text.strip() and len(kept) < MOST_FILES:
            kept.append({"name": name[:255], "data": base64.b64encode(text.encode()).decode()})
        elif name not in named and name not in [file["name"] for file in kept]:
            named.append(name)
    return kept, named


def _read_block(block: Json, turns: Turns, left: Counter[Left], time: str | None) -> None:
    time = as_time(block.get("start_timestamp")) or time
    match block.get("type"):
        case "text" if text := as_text(block.get("text")):
            turns.answer(text, time)
        case "thinking" if text := as_text(block.get("thinking")):
            turns.think(text, time)
        case "tool_use":
            turns.call(*_call(block), as_dict(block.get("input")), time)
        case "tool_result":
            name, text = _call(block)[1], _result(block.get("content"), left)
            turns.give_result(_call(block)[0], name, text, time, is_error=block.get("is_error") is True)
        case "text" | "thinking" | "token_budget" | "flag":
            pass
        case _:
            left[Left.UNKNOWN] += 1


def _call(block: Json) -> tuple[str, str]:
    """By what a call and its result know each other: an id, where the export has one, or the tool's name."""
    name = as_text(block.get("name")) or "unknown"
    return as_text(block.get("tool_use_id")) or as_text(block.get("id")) or name, name


def _result(content: object, left: Counter[Left]) -> str:
    if isinstance(content, str):
        return as_text(content)
    parts = [as_dict(part) for part in as_list(content)]
    texts = [as_text(part.get("text")) or as_text(part.get("title")) for part in parts]
    left[Left.FILES] += sum(part.get("type") == "image" for part in parts)
    return "\n\n".join(filter(None, texts))
