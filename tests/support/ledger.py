"""A session's rows in memory, for tests without a database. The reducer's changes are applied strictly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from chat.models import ChatMessage
from chat.runs.changes import (
    AppendText,
    Change,
    CloseTurn,
    EndWait,
    InsertMessage,
    RecordUsage,
    ReportCancelled,
    ReportStatus,
    UpdateMessage,
    WaitForAnswers,
)
from chat.runs.reducer import reduce
from chat.runs.turn_state import Now, TurnEvent, TurnState

OPEN_CALLS = ("pending", "waiting")
UNFINISHED = ("streaming", "running", "pending", "waiting")
BEGAN = datetime(2026, 3, 1, 14, 30, tzinfo=UTC)


class Clock:
    """A clock that advances one second per event and numbers the ids."""

    def __init__(self) -> None:
        self.seconds = 0
        self._ids = count(1)

    def tick(self) -> Now:
        self.seconds += 1
        return Now(BEGAN + timedelta(seconds=self.seconds), 100.0 + self.seconds, self._next("m"), self._next("r"))

    def _next(self, letter: str) -> Any:
        return lambda: f"{letter}_{next(self._ids)}"


@dataclass
class Ledger:
    """The rows of one turn by id, in order, and the other changes. Fails on changes that a database would reject."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: list[tuple[str, str]] = field(default_factory=list)
    reports: list[Change] = field(default_factory=list)
    usage: list[RecordUsage] = field(default_factory=list)
    closed: int = 0
    waiting: int = 0

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        assert not self.closed + self.waiting, f"{change} came after the turn was closed"
        match change:
            case InsertMessage(message_id, name, fields, _):
                assert message_id not in self.rows
                self.rows[message_id] = {"status": "complete", "text": "", **fields}
                self.names.append((message_id, name))
            case UpdateMessage(message_id, name, fields, _, compact):
                row = self.rows[message_id]
                assert compact == (row["status"] == "streaming"), "only growing text is folded, and always"
                assert row["status"] in UNFINISHED or fields.get("status") in (None, row["status"]), (
                    f"it is over: {row}"
                )
                row.update(fields)
                self.names.append((message_id, name))
            case EndWait(message_id, fields):
                row = self.rows[message_id]
                assert row["status"] == "waiting"
                row.update(fields)
                self.names.append((message_id, "tool_exec_end"))
            case AppendText(message_id, text, reasoning):
                row = self.rows[message_id]
                assert (row["status"], row["type"]) == ("streaming", "reasoning" if reasoning else "text")
                row["text"] += text
            case RecordUsage():
                self.usage.append(change)
            case ReportStatus() | ReportCancelled():
                self.reports.append(change)
            case CloseTurn():
                self.closed += 1
            case WaitForAnswers():
                assert self.of(status="waiting"), "a turn that waits for nothing"
                assert not [row for row in self.rows.values() if row["status"] in ("streaming", "running", "pending")]
                self.waiting += 1

    def of(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows with these values, in order."""
        return [row for row in self.rows.values() if all(row.get(name) == value for name, value in wanted.items())]

    def messages(self, said: str = "hello") -> list[ChatMessage]:
        """Return the messages of the turn as the database would: the marker, the user's text, and these rows."""
        opening = [
            ChatMessage(id="m_start", type="turn_start", sequence=1),
            ChatMessage(id="m_user", type="text", role="user", text=said, user_id=1, sender="Ana", sequence=2),
        ]
        rows = [ChatMessage(id=id, sequence=at, **row) for at, (id, row) in enumerate(self.rows.items(), start=3)]
        return [*opening, *rows]


class Turn:
    """A turn driven by events: its state, rows and clock."""

    def __init__(self, **state: Any) -> None:
        self.clock = Clock()
        self.ledger = Ledger()
        self.state = TurnState(turn_id="t_1", began=100.0, model="one", provider="scripted", **state)

    def apply(self, *events: TurnEvent) -> Turn:
        for event in events:
            if self.ledger.waiting:  # the session was claimed again
                self.state, self.ledger.waiting = replace(self.state, closed=False), 0
            self.state, changes = reduce(self.state, event, self.clock.tick())
            self.ledger.apply(changes)
        return self
