"""Conversations as ChatGPT exports them: a tree of messages, of which one path was on the screen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from chat.imports.found import Found, Left, Source, as_dict, as_list, as_text, as_time
from chat.imports.turns import Turns, collected
from chat.projections.fences import fenced

Json = dict[str, Any]
# What of a conversation is read.
KEYS = ("title", "create_time", "update_time", "mapping", "current_node")
# What the program tells itself: nobody sees it there either.
_UNSEEN = ("user_editable_context", "model_editable_context", "reasoning_recap")


def read(conversation: Json) -> Found:
    """Read one conversation along the path that was shown last."""
    names = {"title": "title", "began": "create_time", "changed": "update_time"}
    return collected(Source.CHATGPT, conversation, **names, path=_path, read=_read_message)


def _path(conversation: Json, left: Counter[Left]) -> list[Json]:
    nodes = {name: as_dict(node) for name, node in as_dict(conversation.get("mapping")).items()}
    at = as_text(conversation.get("current_node"))
    if at not in nodes:
        at = next((name for name in reversed(nodes) if not as_list(nodes[name].get("children"))), "")
    path = []
    while at in nodes:
        path.append(nodes.pop(at))
        at = as_text(path[-1].get("parent"))
    left[Left.BRANCHES] += sum(_is_said(as_dict(node.get("message"))) for node in nodes.values())
    return [as_dict(node.get("message")) for node in reversed(path)]


def _is_said(message: Json) -> bool:
    """Whether somebody would see the message: most that the tree holds besides are empty or hidden."""
    content = as_dict(message.get("content"))
    hidden = as_dict(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
    return bool(message) and not hidden and content.get("content_type") not in _UNSEEN and bool(_text(content))


def _read_message(message: Json, turns: Turns, left: Counter[Left]) -> None:
    content, author = as_dict(message.get("content")), as_dict(message.get("author"))
    if not _is_said(message):
        left[Left.HIDDEN] += content.get("content_type") not in _UNSEEN and bool(_text(content))
        return
    time, text = as_time(message.get("create_time")), _text(content)
    left[Left.FILES] += sum(isinstance(part, dict) for part in as_list(content.get("parts")))
    match author.get("role"):
        case "user":
            turns.say(_with_files(text, message, left), time)
        case "system":
            turns.instruct(text, time)
        case "tool":
            name = as_text(author.get("name")) or "tool"
            turns.give_result(name, name, text, time, is_error=content.get("content_type") == "system_error")
        case "assistant":
            _read_answer(message, text, turns, time)
        case _:
            left[Left.UNKNOWN] += 1


def _read_answer(message: Json, text: str, turns: Turns, time: str | None) -> None:
    content, recipient = as_dict(message.get("content")), as_text(message.get("recipient")) or "all"
    model = as_text(as_dict(message.get("metadata")).get("model_slug"))
    if content.get("content_type") == "thoughts":
        turns.think(text, time, model)
    elif recipient == "all":
        turns.answer(_code(text, content) if content.get("content_type") == "code" else text, time, model)
    else:
        turns.call(recipient, recipient, _arguments(text), time, model)


def _code(text: str, content: Json) -> str:
    language = as_text(content.get("language"))
    return fenced(text, "" if language == "unknown" else language)


def _arguments(text: str) -> Json:
    """What a tool was given: an object as it is, anything else (code above all) by the name `input`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"input": text}


def _text(content: Json) -> str:
    """All that a message's content says; files are named in the places where they were."""
    match content.get("content_type"):
        case "thoughts":
            thoughts = [as_dict(each) for each in as_list(content.get("thoughts"))]
            return "\n\n".join(filter(None, (_thought(each) for each in thoughts)))
        case "tether_quote":
            return "\n".join(filter(None, (as_text(content.get(name)) for name in ("title", "url", "text"))))
        case "tether_browsing_display":
            return as_text(content.get("result")) or as_text(content.get("summary"))
    parts = "\n\n".join(filter(None, map(_part, as_list(content.get("parts")))))
    return parts or as_text(content.get("text")) or as_text(content.get("result")) or as_text(content.get("content"))


def _thought(thought: Json) -> str:
    summary, words = as_text(thought.get("summary")), as_text(thought.get("content"))
    return "\n\n".join(filter(None, (f"**{summary}**" if summary else "", words)))


def _part(part: object) -> str:
    if isinstance(part, str):
        return as_text(part)
    data = as_dict(part)
    kind = as_text(data.get("content_type"))
    if kind == "audio_transcription":
        return as_text(data.get("text"))
    if kind == "image_asset_pointer":
        return f"[{' '.join(_picture(data))}: not in the export]"
    return f"[{kind.removesuffix('_asset_pointer').replace('_', ' ').capitalize()}: not in the export]" if kind else ""


def _picture(data: Json) -> Iterator[str]:
    yield "Image"
    width, height = data.get("width"), data.get("height")
    if isinstance(width, int) and isinstance(height, int):
        yield f"{width}×{height}"


def _with_files(text: str, message: Json, left: Counter[Left]) -> str:
    """The text with the names of files that went with it; pictures stand in it already."""
    attached = [as_dict(each) for each in as_list(as_dict(message.get("metadata")).get("attachments"))]
    names = [as_text(each.get("name")) for each in attached if not as_text(each.get("mime_type")).startswith("image/")]
    lines = [f"[File {name}: not in the export]" for name in names if name]
    left[Left.FILES] += len(lines)
    return "\n\n".join([text, *lines])
