"""A client of the stream of steps, as anybody may write it: it knows `step_update` and nothing else."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


class StepClient:
    """Folds what it reads, in pieces cut anywhere. `last_event_id` is what it comes again with."""

    def __init__(self) -> None:
        self.steps: dict[str, Json] = {}
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
                self.update(json.loads(fields["data"]))

    def update(self, update: Json) -> None:
        if "delta" in update:
            self.steps[update["id"]]["content"] += update["delta"]["content"]
        elif update["snapshot"].get("removed"):
            self.steps.pop(update["id"], None)
        else:
            self.steps[update["id"]] = update["snapshot"]
