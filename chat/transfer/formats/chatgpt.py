"""Read conversations from ChatGPT exports: trees of messages, of which one path was shown.

The format is not documented. Sources about it: https://github.com/danny-avila/LibreChat (its import and samples),
https://github.com/mohamed-chs/convoviz, https://github.com/mitkury/chatgpt-export-parser.
"""

from __future__ import annotations

from functools import partial

from agents.messages import Json
from chat.projections.fences import fenced
from chat.transfer.formats.chatgpt_content import Content, has_content, read_content
from chat.transfer.formats.chatgpt_reports import with_reports
from chat.transfer.formats.citations import found_sources, with_list
from chat.transfer.formats.parsed import Loss, Losses, ParsedConversation, Source, as_dict, as_list, as_text, as_time
from chat.transfer.formats.turns import Turns, convert
from chat.transfer.parsing.archive import NO_ENTRIES, Entries

# The keys of a conversation that are read.
KEYS = (
    *("title", "create_time", "update_time", "mapping", "current_node"),
    *("is_archived", "is_starred", "pinned_time", "default_model_slug"),
)
# Internal messages, which ChatGPT does not show, either.
_UNSEEN = ("user_editable_context", "model_editable_context", "reasoning_recap")


def read(conversation: Json, entries: Entries = NO_ENTRIES) -> ParsedConversation:
    """Read one conversation along its current path, with the files from its archive."""
    return convert(
        Source.CHATGPT,
        conversation,
        title="title",
        began="create_time",
        changed="update_time",
        path=_path,
        read=partial(_read_message, entries=entries, model=as_text(conversation.get("default_model_slug"))),
        archived=conversation.get("is_archived") is True,
        pinned=conversation.get("is_starred") is True or bool(conversation.get("pinned_time")),
        entries=entries,
    )


def _path(conversation: Json, left: Losses) -> list[Json]:
    nodes = {name: as_dict(node) for name, node in as_dict(conversation.get("mapping")).items()}
    at = as_text(conversation.get("current_node"))
    if at not in nodes:
        at = next((name for name in reversed(nodes) if not as_list(nodes[name].get("children"))), "")
    path = []
    while at in nodes:
        path.append(nodes.pop(at))
        at = as_text(path[-1].get("parent"))
    left[Loss.BRANCHES] += sum(_is_said(as_dict(node.get("message"))) for node in nodes.values())
    return with_reports([as_dict(node.get("message")) for node in reversed(path)])


def _is_said(message: Json) -> bool:
    """Return whether ChatGPT shows the message. Most others in the tree are empty or hidden."""
    content = as_dict(message.get("content"))
    return not _is_hidden(message) and content.get("content_type") not in _UNSEEN and has_content(message)


def _is_hidden(message: Json) -> bool:
    return as_dict(message.get("metadata")).get("is_visually_hidden_from_conversation") is True


def _read_message(message: Json, turns: Turns, left: Losses, *, entries: Entries, model: str) -> None:
    content, role = as_dict(message.get("content")), as_dict(message.get("author")).get("role")
    time, body = as_time(message.get("create_time")), Content()
    if _is_said(message):
        body = read_content(message, entries, left)
    else:
        left[Loss.HIDDEN] += content.get("content_type") not in _UNSEEN and has_content(message)
    if role == "tool":
        _read_result(message, body, turns, time)
    if role == "tool" or (not body.text and not body.files):
        return
    match role:
        case "user":
            turns.say(body.text, time, body.files)
        case "system":
            turns.instruct(body.text, time)
        case "assistant":
            _read_answer(message, body, turns, time, model)
        case _:
            left.add_unknown(role)


def _read_result(message: Json, body: Content, turns: Turns, time: str | None) -> None:
    """Add a tool's result with the pages that it found. Even an empty or hidden result ends the tool's calls."""
    author = as_dict(message.get("author"))
    name = as_text(author.get("name")) or "tool"
    call_id = _call_id(name)
    text = with_list(body.text, found_sources(as_dict(message.get("metadata"))))
    is_new = bool(text or body.files) and not _is_hidden(message)
    if is_new or turns.has_waiting(call_id):
        is_error = as_dict(message.get("content")).get("content_type") == "system_error"
        turns.give_result(call_id, name, text, time, is_error=is_error)
        turns.complete(call_id)
    if body.files:
        turns.answer(", ".join(each["name"] for each in body.files), time, attachments=body.files)


def _call_id(name: str) -> str:
    """Return what links a call and its result: the tool without its function, which only one of them may name."""
    return name.partition(".")[0]


def _read_answer(message: Json, body: Content, turns: Turns, time: str | None, model: str) -> None:
    content, recipient = as_dict(message.get("content")), as_text(message.get("recipient")) or "all"
    model = as_text(as_dict(message.get("metadata")).get("model_slug")) or model
    if content.get("content_type") == "thoughts":
        turns.think(body.text, time, model)
    elif recipient == "all":
        text = body.text
        if content.get("content_type") == "code":
            language = as_text(content.get("language"))
            text = fenced(text, "" if language == "unknown" else language)
        turns.answer(text, time, model, body.files)
    else:
        turns.call(_call_id(recipient), recipient, body.text, time, model, is_parallel=True)
