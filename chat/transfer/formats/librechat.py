"""Conversations as LibreChat exports them: a flat list of messages, or a tree of them with `children`.

Known from its source, https://github.com/danny-avila/LibreChat (useExportConversation.ts in client/src/hooks,
packages/data-provider/src/types), and the samples of its import.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from agents.messages import Json
from chat.transfer.document.schema import MAX_PROMPT_CHARS
from chat.transfer.formats.citations import titled_link
from chat.transfer.formats.parsed import Loss, Losses, ParsedConversation, Source, as_dict, as_list, as_text, as_time
from chat.transfer.formats.turns import MAX_FILES, Turns, collected, data_file, path_to, with_places

# The members of a conversation that are read.
KEYS = ("conversationId", "title", "createdAt", "updatedAt", "messages", "messagesTree", "options")
NO_PICTURE = "[Image: not in the export]"
# Where a search's results are cited: between private characters, or with their names.
_CITED = re.compile(r"\s?(?:\ue202|\\ue202)turn(\d{1,4})([a-z]{1,20})(\d{1,4})")
_MARKS = re.compile(r"[\ue200-\ue206]|\\ue20[0-6]")
_RESULTS = {"search": "organic", "news": "topStories", "ref": "references"}


def read(conversation: Json) -> ParsedConversation:
    """Read the branch of one conversation that has its latest message."""
    options = as_dict(conversation.get("options"))
    found = collected(
        Source.LIBRECHAT,
        {**conversation, "title": conversation.get("title") or options.get("title")},
        title="title",
        began="createdAt",
        changed="updatedAt",
        path=_path,
        read=partial(_read_message, model=as_text(options.get("model"))),
    )
    session = found.document["session"]
    session["system_prompt"] = as_text(options.get("promptPrefix"))[:MAX_PROMPT_CHARS]
    times = [each["timestamp"] for each in found.document["messages"] if each["timestamp"]]
    session["created_at"] = session["created_at"] or next(iter(times), None)
    session["updated_at"] = session["updated_at"] or next(reversed(times), None)
    return found


def _path(conversation: Json, left: Losses) -> list[Json]:
    messages = _flat(as_list(conversation.get("messagesTree")) or as_list(conversation.get("messages")))
    by_id = {as_text(each.get("messageId")): each for each in messages}
    if len(by_id) < len(messages) or not any(as_text(each.get("parentMessageId")) in by_id for each in messages):
        return messages
    # Of several with the same time, or with none, the one that comes last.
    last = max(reversed(messages), key=lambda each: as_time(each.get("createdAt")) or "")
    return path_to(by_id, as_text(last.get("messageId")), "parentMessageId", left)


def _flat(tree: Any) -> list[Json]:
    """Return all messages of a tree, parents first."""
    found, waiting = list[Json](), [as_dict(each) for each in reversed(tree)]
    while waiting:
        message = waiting.pop()
        found.append(message)
        waiting += [
            {"parentMessageId": message.get("messageId"), **as_dict(each)}
            for each in reversed(as_list(message.get("children")))
        ]
    return [each for each in found if each]


def _read_message(message: Json, turns: Turns, left: Losses, *, model: str) -> None:
    time, text = as_time(message.get("createdAt")), as_text(message.get("text"))
    names = [_name(each) for each in as_list(message.get("files"))]
    left[Loss.FILES] += len(names)
    parts = [as_dict(each) for each in as_list(message.get("content"))]
    if message.get("isCreatedByUser") is True or as_text(message.get("sender")).lower() == "user":
        said, files = _said(parts, left, text)
        if (said := with_places(said, names, "not in the export")) or files:
            turns.say(said, time, files)
        return
    model = as_text(message.get("model")) or model
    if message.get("error") is True:
        turns.fail(text or "\n\n".join(filter(None, (as_text(each.get("error")) for each in parts))), time)
        return
    found = _results(message)
    for part in parts:
        _read_part(part, turns, left, time, model, found)
    if not parts and text:
        turns.answer(_with_sources(text, found, left), time, model)
    names += _made(message, left)
    if names:
        turns.answer(with_places("", names, "not in the export"), time, model)


def _read_part(
    part: Json, turns: Turns, left: Losses, time: str | None, model: str, found: dict[tuple[str, str, str], str]
) -> None:
    match part.get("type"):
        case "text":
            if text := _text_of(part):
                turns.answer(_with_sources(text, found, left), time, model)
        case "think":
            if text := as_text(part.get("think")) or as_text(as_dict(part.get("think")).get("value")):
                turns.think(text, time, model)
        case "tool_call":
            call = as_dict(part.get("tool_call"))
            function = as_dict(call.get("function"))
            name = as_text(call.get("name")) or as_text(function.get("name")) or as_text(call.get("type")) or "tool"
            call_id = as_text(call.get("id")) or name
            turns.call(call_id, name, call.get("args") or function.get("arguments"), time, model)
            if (output := call.get("output") or function.get("output")) is not None:
                turns.give_result(call_id, name, as_text(output), time)
        case "error":
            turns.fail(as_text(part.get("error")) or _text_of(part), time)
        case "image_file" | "image_url":
            files = [each] if (each := _picture(part)) else []
            left[Loss.FILES] += not files
            turns.answer("" if files else NO_PICTURE, time, model, files)
        case "agent_update":
            pass
        case kind:
            left.add_unknown(kind)


def _said(parts: list[Json], left: Losses, text: str) -> tuple[str, list[Json]]:
    """What a user has said, in the message's own text or in parts, with the pictures whose bytes are in the parts."""
    lines, files = [text], list[Json]()
    for part in parts:
        match part.get("type"):
            case "text":
                lines.append("" if text else _text_of(part))
            case "image_file" | "image_url":
                found = _picture(part) if len(files) < MAX_FILES else None
                files += [found] if found else []
                left[Loss.FILES] += not found
                lines.append("" if found else NO_PICTURE)
            case kind:
                left.add_unknown(kind)
    return "\n\n".join(filter(None, lines)), files


def _picture(part: Json) -> Json | None:
    """Return a picture whose bytes are in its part."""
    address = part.get("image_url")
    return data_file("image", as_text(address) or as_text(as_dict(address).get("url")))


def _text_of(part: Json) -> str:
    return as_text(part.get("text")) or as_text(as_dict(part.get("text")).get("value"))


def _name(file: object) -> str:
    return as_text(as_dict(file).get("filename")) or "file"


def _made(message: Json, left: Losses) -> list[str]:
    """Return the names of files that tools created."""
    names = []
    for each in map(as_dict, as_list(message.get("attachments"))):
        if each.get("filename"):
            names.append(_name(each))
        elif each.get("type") != "web_search":
            left.add_unknown(each.get("type") or "attachment")
    left[Loss.FILES] += len(names)
    return names


def _results(message: Json) -> dict[tuple[str, str, str], str]:
    """Links to what searches have found, by the turn, the kind and the number that citations name."""
    found = {}
    for each in map(as_dict, as_list(message.get("attachments"))):
        search = as_dict(each.get("web_search"))
        for kind, member in _RESULTS.items():
            for number, result in enumerate(map(as_dict, as_list(search.get(member)))):
                link = titled_link(as_text(result.get("title")) or "link", as_text(result.get("link")))
                found[str(search.get("turn", 0)), kind, str(number)] = link
    return found


def _with_sources(text: str, found: dict[tuple[str, str, str], str], left: Losses) -> str:
    """Return a text with links in place of its citations."""

    def replace(cited: re.Match[str]) -> str:
        link = found.get((cited[1], cited[2], cited[3]), "")
        left[Loss.CITATIONS] += not link
        return f" ({link})" if link else ""

    return _MARKS.sub("", _CITED.sub(replace, text))
