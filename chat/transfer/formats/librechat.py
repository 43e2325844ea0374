"""Read conversations from LibreChat exports: flat lists of messages, or trees with `children`.

For the format, see its source, https://github.com/danny-avila/LibreChat (useExportConversation.ts in client/src/hooks,
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
from chat.transfer.formats.turns import MAX_FILES, Turns, convert, data_file, path_to, with_places

# The keys of a conversation that are read.
KEYS = ("conversationId", "title", "createdAt", "updatedAt", "messages", "messagesTree", "options")
NO_PICTURE = "[Image: not in the export]"
# Citations of search results: private-use characters, or their escaped names.
_CITED = re.compile(r"\s?(?:\ue202|\\ue202)turn(\d{1,4})([a-z]{1,20})(\d{1,4})")
_MARKS = re.compile(r"[\ue200-\ue206]|\\ue20[0-6]")
_RESULTS = {"search": "organic", "news": "topStories", "ref": "references"}


def read(conversation: Json) -> ParsedConversation:
    """Read the branch of one conversation that contains its latest message."""
    options = as_dict(conversation.get("options"))
    parsed = convert(
        Source.LIBRECHAT,
        {**conversation, "title": conversation.get("title") or options.get("title")},
        title="title",
        began="createdAt",
        changed="updatedAt",
        path=_path,
        read=partial(_read_message, model=as_text(options.get("model"))),
    )
    session = parsed.document["session"]
    session["system_prompt"] = as_text(options.get("promptPrefix"))[:MAX_PROMPT_CHARS]
    times = [each["timestamp"] for each in parsed.document["messages"] if each["timestamp"]]
    session["created_at"] = session["created_at"] or next(iter(times), None)
    session["updated_at"] = session["updated_at"] or next(reversed(times), None)
    return parsed


def _path(conversation: Json, left: Losses) -> list[Json]:
    messages = _flat(as_list(conversation.get("messagesTree")) or as_list(conversation.get("messages")))
    by_id = {as_text(each.get("messageId")): each for each in messages}
    if len(by_id) < len(messages) or not any(as_text(each.get("parentMessageId")) in by_id for each in messages):
        return messages
    # If several messages have the latest time, or none has a time, this is the last one in the list.
    last = max(reversed(messages), key=lambda each: as_time(each.get("createdAt")) or "")
    return path_to(by_id, as_text(last.get("messageId")), "parentMessageId", left)


def _flat(tree: Any) -> list[Json]:
    """Return all messages of a tree, parents first."""
    messages, waiting = list[Json](), [as_dict(each) for each in reversed(tree)]
    while waiting:
        message = waiting.pop()
        messages.append(message)
        waiting += [
            {"parentMessageId": message.get("messageId"), **as_dict(each)}
            for each in reversed(as_list(message.get("children")))
        ]
    return [each for each in messages if each]


def _read_message(message: Json, turns: Turns, left: Losses, *, model: str) -> None:
    time, text = as_time(message.get("createdAt")), as_text(message.get("text"))
    names = [_name(each) for each in as_list(message.get("files"))]
    left[Loss.FILES] += len(names)
    parts = [as_dict(each) for each in as_list(message.get("content"))]
    if message.get("isCreatedByUser") is True or as_text(message.get("sender")).lower() == "user":
        user_text, files = _user_text(parts, left, text)
        if (user_text := with_places(user_text, names, "not in the export")) or files:
            turns.say(user_text, time, files)
        return
    model = as_text(message.get("model")) or model
    if message.get("error") is True:
        turns.fail(text or "\n\n".join(filter(None, (as_text(each.get("error")) for each in parts))), time)
        return
    links = _results(message)
    for part in parts:
        _read_part(part, turns, left, time, model, links)
    if not parts and text:
        turns.answer(_with_sources(text, links, left), time, model)
    names += _tool_files(message, left)
    if names:
        turns.answer(with_places("", names, "not in the export"), time, model)


def _read_part(
    part: Json, turns: Turns, left: Losses, time: str | None, model: str, links: dict[tuple[str, str, str], str]
) -> None:
    match part.get("type"):
        case "text":
            if text := _text_of(part):
                turns.answer(_with_sources(text, links, left), time, model)
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


def _user_text(parts: list[Json], left: Losses, text: str) -> tuple[str, list[Json]]:
    """Return a user's text, from the message or its parts, and the images whose data is in the parts."""
    lines, files = [text], list[Json]()
    for part in parts:
        match part.get("type"):
            case "text":
                lines.append("" if text else _text_of(part))
            case "image_file" | "image_url":
                image = _picture(part) if len(files) < MAX_FILES else None
                files += [image] if image else []
                left[Loss.FILES] += not image
                lines.append("" if image else NO_PICTURE)
            case kind:
                left.add_unknown(kind)
    return "\n\n".join(filter(None, lines)), files


def _picture(part: Json) -> Json | None:
    """Return an image whose data is in its part, or None if the data is not there."""
    address = part.get("image_url")
    return data_file("image", as_text(address) or as_text(as_dict(address).get("url")))


def _text_of(part: Json) -> str:
    return as_text(part.get("text")) or as_text(as_dict(part.get("text")).get("value"))


def _name(file: object) -> str:
    return as_text(as_dict(file).get("filename")) or "file"


def _tool_files(message: Json, left: Losses) -> list[str]:
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
    """Return links to search results, by the turn, kind and number that citations use."""
    links = {}
    for each in map(as_dict, as_list(message.get("attachments"))):
        search = as_dict(each.get("web_search"))
        for kind, member in _RESULTS.items():
            for number, result in enumerate(map(as_dict, as_list(search.get(member)))):
                link = titled_link(as_text(result.get("title")) or "link", as_text(result.get("link")))
                links[str(search.get("turn", 0)), kind, str(number)] = link
    return links


def _with_sources(text: str, links: dict[tuple[str, str, str], str], left: Losses) -> str:
    """Return a text with links instead of its citations."""

    def replace(cited: re.Match[str]) -> str:
        link = links.get((cited[1], cited[2], cited[3]), "")
        left[Loss.CITATIONS] += not link
        return f" ({link})" if link else ""

    return _MARKS.sub("", _CITED.sub(replace, text))
