"""Messages of other programs as turns of Parley's: markers around them, responses, calls with their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from agents.safe_text import clean
from chat import ids
from chat.imports.found import Found, Left, Source, as_text, as_time

Json = dict[str, Any]
LONGEST_NAME = 200


def collected(
    source: Source,
    conversation: Json,
    *,
    title: str,
    began: str,
    changed: str,
    path: Callable[[Json, Counter[Left]], list[Json]],
    read: Callable[[Json, Turns, Counter[Left]], None],
) -> Found:
    """Make one conversation of the messages that `path` finds in it and `read` takes in; the texts name its fields."""
    left: Counter[Left] = Counter()
    start = as_time(conversation.get(began))
    turns = Turns(start)
    for message in path(conversation, left):
        read(message, turns, left)
    turns.end()
    session = {"title": as_text(conversation.get(title))[:200], "created_at": start}
    session["updated_at"] = as_time(conversation.get(changed)) or start
    return Found(source, {"session": session, "messages": turns.messages}, left)


class Turns:
    """Collects messages in order. `time` is that of the last one; a message without one has it, too."""

    def __init__(self, began: str | None) -> None:
        self.messages: list[Json] = []
        self._time = began
        self._turn = ""
        self._response = ""
        self._open: dict[str, Json] = {}
        self._is_asking = False

    def say(self, text: str, time: str | None, attachments: list[Json] | None = None) -> None:
        """A person says something; several such messages in a row begin one turn."""
        if not self._is_asking:
            self.end()
            self._turn = ids.turn_id()
            self._add({"type": "turn_start"}, time)
        self._is_asking = True
        self._add({"role": "user", "text": text, "attachments": attachments or []}, time)

    def instruct(self, text: str, time: str | None) -> None:
        """The system says something."""
        self._add({"role": "system", "text": text}, time)

    def answer(self, text: str, time: str | None, model: str = "") -> None:
        self._respond({"text": text}, time, model)

    def think(self, text: str, time: str | None, model: str = "") -> None:
        self._respond({"type": "reasoning", "text": text}, time, model)

    def call(self, call_id: str, name: str, arguments: Json, time: str | None, model: str = "") -> Json:
        """A tool is called; `call_id` is what its result will name, or its result only names the tool."""
        row = {
            "type": "tool_group",
            "tool_name": clean(name)[:LONGEST_NAME],
            "arguments": arguments,
            "status": "interrupted",
        }
        self._open[call_id] = self._respond(row, time, model)
        return self._open[call_id]

    def give_result(self, call_id: str, name: str, text: str, time: str | None, *, is_error: bool = False) -> None:
        """A tool has answered; one that was not asked for is shown with what it says."""
        row = self._open.get(call_id) or self._waiting(name) or self.call(call_id, name, {}, time)
        said = row.get("result", "")
        row |= {"status": "complete", "result": f"{said}\n\n{text}" if said else text}
        row["is_error"] = is_error or row.get("is_error", False)
        self._response = ""

    def end(self) -> None:
        """Close the turn that is open."""
        if self._turn:
            self._add({"type": "turn_done"}, None)
        self._turn = self._response = ""
        self._open.clear()
        self._is_asking = False

    def _waiting(self, name: str) -> Json | None:
        calls = [row for row in self._open.values() if "result" not in row and row["tool_name"] == name]
        return calls[0] if calls else None

    def _respond(self, row: Json, time: str | None, model: str) -> Json:
        self._is_asking = False
        self._response = self._response or ids.response_id()
        whose = {"role": "assistant", "model": clean(model)[:LONGEST_NAME], "response_id": self._response}
        return self._add({**row, **whose}, time)

    def _add(self, row: Json, time: str | None) -> Json:
        self._time = time or self._time
        made = {**row, "run_id": self._turn, "timestamp": self._time, "created_at": self._time}
        self.messages.append(made)
        return made
