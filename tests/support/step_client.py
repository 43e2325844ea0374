"""Minimal clients of server-sent events, like those of third parties."""

from __future__ import annotations

import json

from agents.messages import Json


class SseReader:
    """A parser of events from pieces that may be cut anywhere. Reconnect with `last_event_id`."""

    def __init__(self) -> None:
        self.last_event_id = ""
        self._buffer = ""

    def connected(self) -> None:
        self._buffer = ""

    def read(self, piece: str) -> None:
        *events, self._buffer = (self._buffer + piece).split("\n\n")
        for event in events:
            fields = dict(line.split(": ", 1) for line in event.splitlines() if not line.startswith(":"))
            self.last_event_id = fields.get("id", self.last_event_id)
            if "data" in fields:
                self.take(json.loads(fields["data"]))

    def take(self, data: Json) -> None:
        raise NotImplementedError


class StepClient(SseReader):
    """A client of the stream of steps, which handles only the event `step_update`."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, Json] = {}
        # Calls that are still being written, which a client may ignore.
        self.written: list[Json] = []

    def take(self, update: Json) -> None:
        if "tool_calls" in update.get("delta", {}):
            self.written.append(update)
        elif "delta" in update:
            self.steps[update["id"]]["content"] += update["delta"]["content"]
        elif update["snapshot"].get("removed"):
            self.steps.pop(update["id"], None)
        else:
            self.steps[update["id"]] = update["snapshot"]
