"""Read chats from Open WebUI exports: trees of messages, with typed items, or with HTML blocks in older chats.

For the format, see its source, https://github.com/open-webui/open-webui (backend/open_webui/utils/middleware.py,
src/lib/utils/index.ts), and the sample in https://github.com/danny-avila/LibreChat.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from agents.messages import Json
from chat.transfer.document.schema import MAX_PROMPT_CHARS
from chat.transfer.formats.citations import with_list
from chat.transfer.formats.parsed import Loss, Losses, ParsedConversation, Source, as_dict, as_list, as_text, as_time
from chat.transfer.formats.turns import (
    MAX_FILES,
    Turns,
    convert,
    data_file,
    path_to,
    text_file,
    with_places,
)

# The keys of a chat that are read.
KEYS = ("title", "chat", "created_at", "updated_at", "archived", "pinned")

_BLOCK = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"([^<>]*)>')
_BLOCK_END = "</details>"
_ATTRIBUTE = re.compile(r'(?<![a-z_])([a-z_]++)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>\s*")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\[\]]*+\]\([^()\s]*+\)")


def read(conversation: Json) -> ParsedConversation:
    """Read one chat along its current path."""
    chat = as_dict(conversation.get("chat"))
    whole = {
        "title": conversation.get("title") or chat.get("title"),
        "began": conversation.get("created_at") or chat.get("timestamp"),
        "changed": conversation.get("updated_at"),
        "chat": chat,
    }
    parsed = convert(
        Source.OPEN_WEBUI,
        whole,
        title="title",
        began="began",
        changed="changed",
        path=_path,
        read=_read_message,
        archived=conversation.get("archived") is True,
        pinned=conversation.get("pinned") is True,
    )
    prompt = as_text(chat.get("system")) or as_text(as_dict(chat.get("params")).get("system"))
    parsed.document["session"]["system_prompt"] = prompt[:MAX_PROMPT_CHARS]
    return parsed


def _path(conversation: Json, left: Losses) -> list[Json]:
    chat = as_dict(conversation.get("chat"))
    history = as_dict(chat.get("history"))
    by_id = {name: as_dict(message) for name, message in as_dict(history.get("messages")).items()}
    if not by_id:
        return [as_dict(each) for each in as_list(chat.get("messages"))]
    leaf = as_text(history.get("currentId"))
    if leaf not in by_id:
        leaf = next((name for name in reversed(by_id) if not as_list(by_id[name].get("childrenIds"))), "")
    return path_to(by_id, leaf, "parentId", left)


def _read_message(message: Json, turns: Turns, left: Losses) -> None:
    time, text = as_time(message.get("timestamp")), as_text(message.get("content"))
    files, places = _files(message, left)
    match message.get("role"):
        case "user":
            full_text = "\n\n".join(filter(None, [text, places]))
            if full_text or files:
                turns.say(full_text, time, files)
        case "system":
            turns.instruct(text, time)
        case "assistant":
            _read_answer(message, text, turns, left)
            if files or places:
                turns.answer(places, time, attachments=files)
        case role:
            left.add_unknown(role)


def _read_answer(message: Json, text: str, turns: Turns, left: Losses) -> None:
    time, model = as_time(message.get("timestamp")), as_text(message.get("model"))
    items = [as_dict(each) for each in as_list(message.get("output"))]
    is_edited = _is_edited(text, items)
    if is_edited:
        items = [] if _BLOCK.search(text) else [item for item in items if item.get("type") != "message"]
    for item in items:
        _read_item(item, turns, left, time, model)
    if is_edited or not items:
        _read_blocks(text, turns, time, model)
    cited = list(_sources(message))
    if cited and turns.messages and turns.messages[-1].get("role") == "assistant" and "text" in turns.messages[-1]:
        turns.messages[-1]["text"] = with_list(turns.messages[-1]["text"], cited)
    error = message.get("error")
    if error_text := as_text(error) or as_text(as_dict(error).get("content")) or as_text(as_dict(error).get("message")):
        turns.fail(error_text, time)


def _is_edited(text: str, items: list[Json]) -> bool:
    """Return whether a message's text is not that of its items.

    Editing an answer, and filters of the operator, have changed only the text in some versions of Open WebUI. In a text
    with unknown blocks, nothing can be compared. Images are not compared, because only one of the two may link to them.
    """
    shown = "\n".join(body for kind, _attributes, body in _blocks(text) if not kind)
    if not shown or "<details" in shown:
        return False
    said = "\n".join(_text_of(item.get("content")) for item in items if item.get("type") == "message")
    return _IMAGE.sub("", shown).split() != _IMAGE.sub("", said).split()


def _read_item(item: Json, turns: Turns, left: Losses, time: str | None, model: str) -> None:
    """Read an item in the form of OpenAI's Responses API."""
    call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
    match item.get("type"):
        case "message":
            if text := _text_of(item.get("content")):
                turns.answer(text, time, model)
        case "reasoning":
            if text := _text_of(item.get("content")) or _text_of(item.get("summary")):
                turns.think(text, time, model)
        case "function_call":
            turns.call(call_id, as_text(item.get("name")) or "tool", item.get("arguments"), time, model)
        case "function_call_output":
            _read_result(item, call_id, turns, left, time)
        case "open_webui:code_interpreter":
            turns.call(call_id, "code_interpreter", {"code": as_text(item.get("code"))}, time, model)
            turns.give_result(call_id, "code_interpreter", _output(item.get("output")), time)
        case kind:
            left.add_unknown(kind)


def _read_result(item: Json, call_id: str, turns: Turns, left: Losses, time: str | None) -> None:
    """Read a tool's result. Its images and files become a message, because a result has none."""
    text = _text_of(item.get("output"))
    turns.give_result(call_id, "tool", text, time, is_error=item.get("status") == "failed")
    found = (as_dict(part).get("image_url") for part in as_list(item.get("output")))
    addresses = [as_text(as_dict(each).get("url") or each) for each in found if each]
    images = [{"type": "image", "url": address} for address in addresses]
    known = {*addresses} - {""}
    others = [each for each in as_list(item.get("files")) if as_text(as_dict(each).get("url")) not in known]
    files, places = _files({"files": [*images, *others]}, left)
    if files or places:
        turns.answer(places, time, attachments=files)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return as_text(content)
    return "\n\n".join(filter(None, (as_text(as_dict(part).get("text")) for part in as_list(content))))


def _output(value: object) -> str:
    """Return what code has printed, its result and its errors."""
    if not isinstance(value, dict):
        return _plain(value)
    return "\n\n".join(filter(None, (_plain(value.get(name)) for name in ("stdout", "result", "stderr"))))


def _plain(value: object) -> str:
    """Return a text unchanged, and any other value except null as JSON."""
    if isinstance(value, str):
        return as_text(value)
    try:
        return "" if value is None else as_text(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return ""


def _read_blocks(text: str, turns: Turns, time: str | None, model: str) -> None:
    """Read a text in which reasoning and tool calls are HTML blocks."""
    for number, (kind, attributes, body) in enumerate(_blocks(text)):
        name = attributes.get("id") or f"block {number}"
        match kind:
            case "":
                turns.answer(body, time, model)
            case "reasoning":
                turns.think(_QUOTED.sub("", html.unescape(body)), time, model)
            case "tool_calls":
                tool = attributes.get("name") or "tool"
                turns.call(name, tool, _unpack(attributes.get("arguments", "")), time, model)
                result = _unpack(attributes.get("result", "")) or html.unescape(body)
                turns.give_result(name, tool, result, time)
            case "code_interpreter":
                turns.call(name, kind, {"code": html.unescape(body)}, time, model)
                turns.give_result(name, kind, _output(_loaded(attributes.get("output", ""))), time)


def _blocks(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the parts of a text: kind, attributes and body of each block. Text outside blocks has the kind ""."""
    at = 0
    while match := _BLOCK.search(text, at):
        end = text.find(_BLOCK_END, match.end())
        if end < 0:
            break
        if before := text[at : match.start()].strip():
            yield "", {}, before
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(match[2])}
        yield match[1], attributes, _SUMMARY.sub("", text[match.end() : end]).strip()
        at = end + len(_BLOCK_END)
    if rest := text[at:].strip():
        yield "", {}, rest


def _unpack(text: str) -> str:
    """Return the text in an attribute's JSON. Other JSON stays as it is."""
    value = _loaded(text)
    return as_text(value) if isinstance(value, str) else text


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _sources(message: Json) -> Iterator[Json]:
    for each in [*as_list(message.get("sources")), *as_list(message.get("citations"))]:
        source = as_dict(as_dict(each).get("source"))
        yield {"title": source.get("name"), "url": source.get("url")}
        for page in map(as_dict, as_list(as_dict(each).get("metadata"))):
            yield {"title": page.get("title") or page.get("name"), "url": page.get("url") or page.get("source")}


def _files(message: Json, left: Losses) -> tuple[list[Json], str]:
    """Return a message's files whose data or text it contains, and lines for the other files."""
    kept: list[Json] = []
    missing, surplus = list[str](), list[str]()
    for each in map(as_dict, as_list(message.get("files"))):
        file = as_dict(each.get("file"))
        name = as_text(each.get("name")) or as_text(file.get("filename")) or as_text(each.get("type")) or "file"
        text = as_text(as_dict(file.get("data")).get("content"))
        packed = data_file(name, as_text(each.get("url")))
        if packed is None and not text.strip():
            missing.append(name)
        elif len(kept) == MAX_FILES:
            surplus.append(name)
        else:
            kept.append(packed or text_file(name, text))
    left[Loss.FILES] += len(missing)
    left[Loss.SURPLUS] += len(surplus)
    return kept, with_places(with_places("", missing, "not in the export"), surplus, "left out")
