"""Convert messages of other products to Parley's turns: markers, responses, and tool calls with their results."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable

from agents.messages import Json
from agents.safe_text import clean
from chat import ids
from chat.transfer.formats.parsed import Loss, Losses, ParsedConversation, Source, as_text, as_time, require_json
from chat.transfer.parsing.archive import NO_ENTRIES, Entries

MAX_NAME_CHARS = 200
MAX_TITLE_LENGTH = 60
MAX_FILES = 10
_DATA = re.compile(r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,")
# An image in Markdown that contains its bytes, as some models write it. Shorter data is an example in a text. It takes
# linear time, because no part matches the beginning of another match.
_IMAGE = re.compile(r"!\[([^\[\]]*+)\]\((data:image/(\w++)[\w.+-]*+;base64,[A-Za-z0-9+/=]{64,}+)\)")


def convert(
    source: Source,
    conversation: Json,
    *,
    title: str,
    began: str,
    changed: str,
    path: Callable[[Json, Losses], list[Json]],
    read: Callable[[Json, Turns, Losses], None],
    archived: bool = False,
    pinned: bool = False,
    entries: Entries = NO_ENTRIES,
) -> ParsedConversation:
    """Convert one conversation. `path` returns its messages, and `read` adds them; the strings are field names."""
    left = Losses()
    start = as_time(conversation.get(began))
    turns = Turns(start, left)
    for message in path(conversation, left):
        read(message, turns, left)
    turns.end()
    session: Json = {"title": as_text(conversation.get(title)).strip()[:200] or turns.first_words()}
    session["created_at"] = start
    session["updated_at"] = as_time(conversation.get(changed)) or start
    if archived:
        session |= {"status": "archived", "archived_at": session["updated_at"]}
    return ParsedConversation(source, {"session": session, "messages": turns.messages}, left, pinned, entries)


def first_words(text: str) -> str:
    """Return the first words of a text, short enough for a title."""
    words = textwrap.shorten(text[: 4 * MAX_TITLE_LENGTH], MAX_TITLE_LENGTH, placeholder="…")
    return words if words != "…" else " ".join(text.split())[: MAX_TITLE_LENGTH - 1] + "…"


def arguments_of(value: object) -> Json:
    """Return an object of arguments unchanged. Return anything else, or an object that is too deep, as `input`."""
    try:
        given = require_json(json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        return given
    try:
        return {"input": as_text(value) if isinstance(value, str) else json.dumps(value)} if value else {}
    except RecursionError:
        return {}


def path_to(by_id: dict[str, Json], leaf: str, parent: str, left: Losses) -> list[Json]:
    """Return the messages up to a leaf.

    Each follows the one that its member `parent` names. Count the others as lost.
    """
    path = []
    while leaf in by_id:
        path.append(by_id.pop(leaf))
        leaf = as_text(path[-1].get(parent))
    left[Loss.BRANCHES] += len(by_id)
    return path[::-1]


def text_file(name: str, text: str) -> Json:
    """Return an attachment of a document with a text as its content."""
    return {"name": name[:255], "data": base64.b64encode(text.encode()).decode()}


def data_file(name: str, url: str) -> Json | None:
    """Return an attachment of a document with the bytes of a `data:` URL, or None for another URL."""
    match = _DATA.match(url)
    return {"name": name[:255], "data": url[match.end() :]} if match else None


def with_places(text: str, names: list[str], words: str) -> str:
    """Return a text with lines for files that are missing. `words` is the reason."""
    return "\n\n".join(filter(None, [text, *(f"[File {name}: {words}]" for name in names)]))


class Turns:
    """Collects messages in order. A message without a time gets the time of the message before it."""

    def __init__(self, began: str | None, left: Losses) -> None:
        self.messages: list[Json] = []
        self._left = left
        self._time = began
        self._turn = ""
        self._response = ""
        # The calls of the open turn by their ids: those without a result, those of them that another result has
        # completed, and the last one with a result.
        self._waiting = defaultdict[str, list[Json]](list)
        self._completed = defaultdict[str, list[Json]](list)
        self._answered: dict[str, Json] = {}
        self._is_asking = False

    def say(self, text: str, time: str | None, attachments: list[Json] | None = None) -> None:
        """Add a user's message. Several in a row start one turn."""
        if not self._is_asking:
            self.end()
            self._turn = ids.turn_id()
            self._add({"type": "turn_start"}, time)
        self._is_asking = True
        self._add({"role": "user", **self._content(text, attachments or [])}, time)

    def instruct(self, text: str, time: str | None) -> None:
        """Add a system message."""
        self._add({"role": "system", "text": text}, time)

    def answer(self, text: str, time: str | None, model: str = "", attachments: list[Json] | None = None) -> None:
        """Add an assistant's message, with the files that the assistant or a tool created."""
        self._respond(self._content(text, attachments or []), time, model)

    def think(self, text: str, time: str | None, model: str = "") -> None:
        self._respond({"type": "reasoning", "text": text}, time, model)

    def call(
        self,
        call_id: str,
        name: str,
        arguments: object,
        time: str | None,
        model: str = "",
        *,
        is_parallel: bool = False,
    ) -> Json:
        """Add a tool call. Its result refers to it by `call_id`, or only by the tool's name.

        With `is_parallel`, results of earlier calls with the same id can still follow, in the order of the calls.
        """
        row = {
            "type": "tool_group",
            "tool_name": clean(name)[:MAX_NAME_CHARS],
            "arguments": arguments_of(arguments),
            "status": "interrupted",
        }
        made = self._respond(row, time, model)
        if not is_parallel:
            self._waiting[call_id].clear()
        self._waiting[call_id].append(made)
        self._completed.pop(call_id, None)  # the next result belongs to this call
        return made

    def give_result(self, call_id: str, name: str, text: str, time: str | None, *, is_error: bool = False) -> None:
        """Add a tool's result. If there is no call for it, add one."""
        row = self._take_call(call_id, name)
        if row is None:
            row = self.call(call_id, name, {}, time)
            self._waiting[call_id].pop()
        self._answered[call_id] = row
        before = row.get("result", "")
        row |= {"status": "complete", "result": f"{before}\n\n{text}" if before else text}
        row["is_error"] = is_error or row.get("is_error", False)
        self._response = ""

    def complete(self, call_id: str) -> None:
        """Mark the calls with this id that have no result as complete."""
        rows = self._waiting.pop(call_id, [])
        for row in rows:
            row["status"] = "complete"
        self._completed[call_id] += rows

    def has_waiting(self, call_id: str) -> bool:
        """Return whether a call with this id has no result yet."""
        return bool(self._waiting.get(call_id) or self._completed.get(call_id))

    def _take_call(self, call_id: str, name: str) -> Json | None:
        """Return the call to which a result belongs. It no longer waits.

        Calls with its id come before others of the same tool, and calls without a result before those with one.
        """
        if rows := self._waiting.get(call_id) or self._completed.get(call_id):
            return rows.pop(next((place for place, row in enumerate(rows) if row["tool_name"] == name), 0))
        if call_id in self._answered:
            return self._answered[call_id]
        for rows in self._waiting.values():
            for place, row in enumerate(rows):
                if row["tool_name"] == name:
                    return rows.pop(place)
        return None

    def fail(self, text: str, time: str | None) -> None:
        """Add an error message."""
        self._is_asking = False
        self._response = ""
        self._add({"type": "error", "text": text}, time)

    def end(self) -> None:
        """Close the open turn, if there is one."""
        if self._turn:
            self._add({"type": "turn_done"}, None)
        self._turn = self._response = ""
        for calls in (self._waiting, self._completed, self._answered):
            calls.clear()
        self._is_asking = False

    def _content(self, text: str, attachments: list[Json]) -> Json:
        """Return the text and the attachments of a message. Images whose bytes are in the text become attachments."""
        if ";base64," not in text:
            return {"text": text, "attachments": attachments}
        files = [*attachments]

        def take(match: re.Match[str]) -> str:
            name = f"{' '.join(match[1].split())[:MAX_NAME_CHARS] or 'image'}.{match[3]}"
            if len(files) < MAX_FILES and (file := data_file(name, match[2])):
                files.append(file)
                return ""
            self._left[Loss.SURPLUS] += 1
            return with_places("", [name], "left out")

        return {"text": _IMAGE.sub(take, text).strip(), "attachments": files}

    def _respond(self, row: Json, time: str | None, model: str) -> Json:
        self._is_asking = False
        self._response = self._response or ids.response_id()
        whose = {"role": "assistant", "model": clean(model)[:MAX_NAME_CHARS], "response_id": self._response}
        return self._add({**row, **whose}, time)

    def first_words(self) -> str:
        """Return the first words of the first user message."""
        texts = (each.get("text", "") for each in self.messages if each.get("role") == "user")
        lines = [line for text in texts for line in text.splitlines() if line.strip()]
        # Lines in brackets are placeholders for files.
        return first_words(next((line for line in lines if not line.startswith("[")), next(iter(lines), "")))

    def _add(self, row: Json, time: str | None) -> Json:
        # In some exports, times are those at which a part ended. So no message may be earlier than the one before it.
        self._time = max(time, self._time or "") if time else self._time
        made = {**row, "run_id": self._turn, "timestamp": self._time, "created_at": self._time}
        self.messages.append(made)
        return made
