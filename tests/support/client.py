"""A reference client of the JSON events protocol that applies frames by the protocol's three rules alone."""

from __future__ import annotations

from agents.messages import Json

STREAMING = "streaming"


def editors_in(frame: Json) -> dict[str, list[str]]:
    """Return the names of users who are editing, by message id, from a frame of either protocol."""
    names: dict[str, list[str]] = {}
    for editor in frame["editors"]:
        names.setdefault(editor["id"], []).append(editor["name"])
    return names


class EventsClient:
    """The state of a client of `/ws/sessions/<id>/`, without input or output.

    Pass each frame to `receive`. While `wants_sync` is true and `asking` is false, send `sync()`.

    The three rules are:

    1. Apply a durable event if its `revision` is the known one + 1. Ignore it if it is lower, sync if it is higher.
       Responses to commands are no events.
    2. Append a delta if its `offset` is the known length. If it is lower, ignore the known part. If it is higher, sync.
    3. Sync after every reconnect.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.messages: dict[str, Json] = {}
        self.session: Json = {}
        self.wants_sync = True
        self.asking = False  # a sync has been sent and not answered yet
        self.caught_up = 0  # the number of answers to `sync` that were received completely
        self.people: dict[str, bool] = {}  # who is present: name to whether they are typing
        self.editors: dict[str, list[str]] = {}  # who is editing: id of a message to names
        self.others: list[Json] = []  # ack, refused, pong, agent_cancelled
        self._short: set[str] = set()  # messages that are finished, but known to lack text
        self._part: tuple[int, int, int] | None = None

    def reconnected(self) -> None:
        self.editors = {}
        self.wants_sync, self.asking = True, False

    def sync(self) -> Json:
        """Return the sync command to send now."""
        self.wants_sync, self.asking = False, True
        have = {id: len(row["text"]) for id, row in self.messages.items() if row["status"] == STREAMING}
        have.update({id: len(self.messages[id]["text"]) for id in self._short if id in self.messages})
        return {"type": "sync", "since": self.revision, "have": have}

    def receive(self, frame: Json) -> None:
        """Apply one frame."""
        kind = frame["type"]
        if kind == "changes":
            self._changes(frame)
        elif kind == "head":
            self.wants_sync |= frame["revision"] > self.revision
        elif kind == "resync":
            self.wants_sync = True
        elif kind in ("ack", "refused"):  # responses to commands; their `revision` is that of a message or a conflict
            self.others.append(frame)
        elif "revision" in frame:
            self._durable(frame)
        else:
            self._hint(frame)

    # -- answers to sync --------------------------------------------------------------------------------------------

    def _changes(self, frame: Json) -> None:
        answer, part = (frame["since"], frame["revision"]), frame["part"]
        if frame["anew"] and part == 0:
            self.messages.clear()
            self.revision = 0
        if frame["revision"] < self.revision or (part and self._part != (*answer, part - 1)):
            self._abandon()  # the answer is outdated, or one of its parts was lost
            return
        self._part = (*answer, part)
        for row in frame["messages"]:
            offset = row["offset"]
            if offset > len(self._text(row["id"])):
                self._abandon()  # the answer assumes text that this client no longer has
                return
            kept = {name: value for name, value in row.items() if name != "offset"}
            self._keep(kept, self._text(row["id"])[:offset] + row["text"])
        if not frame["more"]:
            self._synced(frame)

    def _abandon(self) -> None:
        self.wants_sync, self.asking = True, False
        self._part = None

    def _synced(self, frame: Json) -> None:
        self.asking = False
        for message_id in frame["removed"]:
            self.messages.pop(message_id, None)
        self.session = frame["session"]
        self.revision = frame["revision"]
        self.caught_up += 1
        self._part = None

    # -- events -----------------------------------------------------------------------------------------------------

    def _durable(self, frame: Json) -> None:
        if frame["revision"] <= self.revision:
            return
        if frame["revision"] > self.revision + 1:
            self.wants_sync = True
            return
        self.revision = frame["revision"]
        match frame["type"]:
            case "message_removed":
                self.messages.pop(frame["id"], None)
            case "message_updated":
                self._keep(frame["message"], frame["message"]["text"])
            case "messages_shifted":
                self._shift(frame)
            case "context_changed":
                self._include(frame)
            case "session_updated":
                self.session = frame["session"]
            case "response_done":
                self._keep(frame["row"], self._text(frame["id"]))
                self._check_length(frame)
            case _:
                self._keep(frame["row"], frame["text"] if "text" in frame else frame["row"]["text"])

    def _shift(self, frame: Json) -> None:
        for row in self.messages.values():
            if row["revision"] < frame["revision"] and (row["sequence"] or 0) >= frame["from"]:
                row.update(sequence=row["sequence"] + frame["by"], revision=frame["revision"])

    def _include(self, frame: Json) -> None:
        for row in self.messages.values():
            said = row["type"] in ("text", "reasoning", "tool_group") and row["include_in_context"] != frame["included"]
            there = any(first <= (row["sequence"] or 0) <= last for first, last in frame["places"])
            if said and there and row["revision"] < frame["revision"]:
                row.update(include_in_context=frame["included"], revision=frame["revision"])

    def _check_length(self, frame: Json) -> None:
        if len(self._text(frame["id"])) != frame["length"]:
            self._short.add(frame["id"])
            self.wants_sync = True

    def _hint(self, frame: Json) -> None:
        match frame["type"]:
            case "text_delta" | "reasoning_delta":
                self._append(frame)
            case "agent_status":
                self.session["agent_status"] = frame["status"]
                self.session["tool_name"] = frame.get("tool_name", "")
                self.session["activity"] = frame.get("activity", "")
            case "token_usage":
                known = ("context_used", "context_window", "context_percent", "session_total_tokens")
                self.session.update({name: frame[name] for name in known})
            case "presence":
                self.people = {person["name"]: person["typing"] for person in frame["people"]}
            case "editing":
                self.editors = editors_in(frame)
            case _:
                self.others.append(frame)

    def _append(self, frame: Json) -> None:
        row = self.messages.get(frame["id"])
        if row is None or frame["offset"] > len(row["text"]):
            self.wants_sync = True
        elif row["status"] == STREAMING:
            row["text"] += frame["text"][len(row["text"]) - frame["offset"] :]

    # -- state ------------------------------------------------------------------------------------------------------

    def _text(self, message_id: str) -> str:
        text: str = self.messages.get(message_id, {"text": ""})["text"]
        return text

    def _keep(self, row: Json, text: str) -> None:
        self._short.discard(row["id"])
        self.messages[row["id"]] = {**row, "text": text}

    @property
    def rows(self) -> list[Json]:
        """All messages in order, with the queued ones last."""
        return sorted(
            self.messages.values(), key=lambda row: (row["sequence"] is None, row["sequence"] or 0, row["id"])
        )

    @property
    def texts(self) -> list[str]:
        return [row["text"] for row in self.rows if row["type"] == "text"]

    def state(self) -> Json:
        """Return everything that a viewer sees as one value, for comparisons."""
        return {"messages": self.rows, "session": {**self.session, "revision": self.revision}}
