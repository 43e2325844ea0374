"""What one web process knows and tells of one watched session: renders once, hands the same string to every viewer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from chat.db import Threads
from chat.events import (
    AccessChanged,
    ChatEvent,
    MessageChanged,
    MessageRemoved,
    RunCancelled,
    SessionChanged,
    StatusChanged,
    TextAppended,
    UsageChanged,
)
from chat.live.outbox import Face, Outbox
from chat.live.wire import changes_frames, event_frame
from chat.rendering.frames import message_frame, session_frame, status_frame, usage_frame
from chat.rendering.live_text import LiveText
from chat.services import reading
from chat.services.reading import Changes
from chat.snapshots import MessageSnapshot, SessionSnapshot

logger = logging.getLogger(__name__)
Json = dict[str, Any]

HEAL_AFTER = 0.1
HEAL_PATIENCE = 2.0
# A page that has missed more messages than this is loaded anew.
MOST_CHANGES = 300
# The share of its time that rendering one growing message may take: its frames become rarer as they become dearer.
RENDER_SHARE = 1 / 20


@dataclass(slots=True)
class Growing:
    """A streaming message as this process knows it. `missing`: text has passed us by, a look at the rows is due."""

    parts: list[str]
    length: int
    live: LiveText | None = None
    missing: bool = False
    ahead: list[TextAppended] = field(default_factory=list)
    not_before: float = 0.0
    timer: asyncio.TimerHandle | None = None


class Feed:
    """One session's viewers in this process, and the text that grows in it."""

    def __init__(self, session_id: str, threads: Threads) -> None:
        self.session_id = session_id
        self.revision = 0
        self.outboxes: set[Outbox] = set()
        self.subscribed = asyncio.Event()
        self._threads = threads
        self._growing: dict[str, Growing] = {}
        self._inbox: deque[ChatEvent] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._healing: asyncio.Task[None] | None = None

    def close(self) -> None:
        for task in (self._healing, self._reading):
            if task is not None:
                task.cancel()
        for growing in self._growing.values():
            if growing.timer is not None:
                growing.timer.cancel()

    # -- what comes in ----------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[ChatEvent]) -> None:
        """Take events in the order in which they were published. Those that need a row wait for it, the rest behind
        them; other sessions do not."""
        self._inbox.extend(events)
        if self._reading is None:
            self._handle_known()

    def _handle_known(self) -> None:
        while self._inbox:
            event = self._inbox[0]
            if isinstance(event, SessionChanged) or (isinstance(event, MessageChanged) and event.message is None):
                self._reading = asyncio.get_running_loop().create_task(self._handle_read(event))
                self._reading.add_done_callback(self._read)
                return
            self._inbox.popleft()
            self._handle(event)

    async def _handle_read(self, event: SessionChanged | MessageChanged) -> None:
        if isinstance(event, MessageChanged):
            self._message_changed(event, await self._threads.run(reading.message_snapshot, event.id))
        else:
            self._session_changed(event, await self._threads.run(reading.session_by_id, self.session_id))

    def _read(self, task: asyncio.Task[None]) -> None:
        self._reading = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:  # its viewers see the gap, or the beacon tells them
            logger.error("A row of session %s could not be read", self.session_id, exc_info=error)
        self._inbox.popleft()
        self._handle_known()

    def _handle(self, event: ChatEvent) -> None:
        match event:
            case TextAppended():
                self._appended(event)
            case MessageChanged():
                self._message_changed(event, event.message)
            case MessageRemoved(revision, message_id):
                self._forget(message_id)
                self._tell_events(event)
                self._tell_page({"op": "remove", "revision": revision, "id": message_id})
                self._reached(revision)
            case SessionChanged():
                raise AssertionError("needs its row")
            case _:
                self._hint(event)

    def _hint(self, event: StatusChanged | UsageChanged | RunCancelled | AccessChanged) -> None:
        self._tell_events(event)
        match event:
            case StatusChanged(status, tool_name):
                self._tell_page(status_frame(status, tool_name))
            case UsageChanged():
                self._tell_page(usage_frame(event))
            case RunCancelled():
                self._tell_page({"op": "cancelled"})
            case AccessChanged():
                pass  # the hub looks again who may listen

    def _message_changed(self, event: MessageChanged, message: MessageSnapshot | None) -> None:
        if message is not None and message.status == "streaming":
            self._grow(event.id, message.text)
        else:
            self._finish(event.id)
        self._tell_events(event, message)
        if self._has("page") and message is not None:
            self._tell_page({**message_frame(message), "revision": event.revision})
            self._tell_snap(event.id)
        self._reached(event.revision)

    def _session_changed(self, event: SessionChanged, session: SessionSnapshot | None) -> None:
        self._tell_events(event, session=session)
        if session is not None:
            self._tell_page(session_frame(session, event.revision))
        self._reached(event.revision)

    def _reached(self, revision: int) -> None:
        self.revision = max(self.revision, revision)

    # -- growing text -----------------------------------------------------------------------------------------------

    def _grow(self, message_id: str, text: str) -> Growing:
        growing = self._growing[message_id] = Growing([text], len(text))
        return growing

    def _appended(self, event: TextAppended) -> None:
        growing = self._growing.get(event.id)
        if growing is None:
            growing = self._grow(event.id, "")
            growing.missing = event.offset > 0
        if growing.missing or event.offset > growing.length:
            growing.missing = True
            growing.ahead.append(event)
            self._heal()
        else:
            self._extend(event.id, growing, event)
        self._tell_events(event)

    def _extend(self, message_id: str, growing: Growing, event: TextAppended) -> None:
        text = event.text[growing.length - event.offset :]
        if not text:
            return
        growing.parts.append(text)
        growing.length += len(text)
        if growing.live is not None:
            growing.live.append(text)
            self._render_soon(message_id, growing)

    def _render_soon(self, message_id: str, growing: Growing) -> None:
        if growing.timer is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= growing.not_before:
            self._render(message_id, growing)
        else:
            growing.timer = loop.call_at(growing.not_before, self._render, message_id, growing)

    def _render(self, message_id: str, growing: Growing, *, end: bool = False) -> None:
        if growing.timer is not None:
            growing.timer.cancel()
            growing.timer = None
        if growing.live is None:
            return
        frame = growing.live.frame(end=end)
        growing.not_before = asyncio.get_running_loop().time() + growing.live.last_cost / RENDER_SHARE
        if frame is not None:
            self._tell_page(frame)

    def _finish(self, message_id: str) -> None:
        growing = self._growing.pop(message_id, None)
        if growing is not None:
            self._render(message_id, growing, end=True)

    def _forget(self, message_id: str) -> None:
        growing = self._growing.pop(message_id, None)
        if growing is not None and growing.timer is not None:
            growing.timer.cancel()

    def _heal(self) -> None:
        if self._healing is None:
            self._healing = asyncio.get_running_loop().create_task(self._heal_all())
            self._healing.add_done_callback(self._healed)

    def _healed(self, task: asyncio.Task[None]) -> None:
        self._healing = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Live text of session %s could not be completed", self.session_id, exc_info=error)

    async def _heal_all(self) -> None:
        """Read what has passed us by: the rows are at most a writer's interval behind the stream."""
        while missing := [message_id for message_id, growing in self._growing.items() if growing.missing]:
            for message_id in missing:
                message = await self._threads.run(reading.message_snapshot, message_id)
                self._mend(message_id, message)
            if any(growing.missing for growing in self._growing.values()):
                await asyncio.sleep(HEAL_AFTER)

    def _mend(self, message_id: str, message: MessageSnapshot | None) -> None:
        growing = self._growing.get(message_id)
        if growing is None or not growing.missing:
            return
        if message is None or message.status != "streaming":
            self._forget(message_id)  # its end has been told, or is about to be
            return
        if growing.ahead and growing.ahead[0].offset > len(message.text):
            return
        mended = self._grow(message_id, message.text)
        for event in growing.ahead:
            self._extend(message_id, mended, event)
        self._tell_snap(message_id)

    def _tell_snap(self, message_id: str) -> None:
        """Let pages begin a growing text, or begin it anew."""
        growing = self._growing.get(message_id)
        if growing is not None and self._has("page"):
            self._tell_page(self._snapshot(message_id, growing, {}))

    # -- what goes out ----------------------------------------------------------------------------------------------

    def _has(self, face: Face) -> bool:
        return any(outbox.face == face for outbox in self.outboxes)

    def _snapshot(self, message_id: str, growing: Growing, known: Json) -> Json:
        if growing.live is None:
            growing.live = LiveText(message_id)
            growing.live.append("".join(growing.parts))
        self._render(message_id, growing)  # what is told from now on follows from this very state
        return growing.live.snapshot(known.get("blocks", 0), known.get("rev", 0))

    def _tell_events(
        self, event: ChatEvent, message: MessageSnapshot | None = None, session: SessionSnapshot | None = None
    ) -> None:
        if self._has("events") and (frame := event_frame(event, message, session)) is not None:
            self._tell("events", frame)

    def _tell_page(self, frame: Json) -> None:
        if self._has("page"):
            self._tell("page", frame)

    def _tell(self, face: Face, frame: Json) -> None:
        text = dump(frame)
        for outbox in self.outboxes:
            if outbox.face == face:
                outbox.put(text)

    def tell_head(self, revision: int) -> None:
        """Say what the rows' revision is when it is past what was told: the last event may be lost (LIVE-02)."""
        if revision > self.revision:
            self.revision = revision
            self._tell("events", {"type": "head", "revision": revision})
            self._tell("page", {"op": "head", "revision": revision})

    # -- catching up ------------------------------------------------------------------------------------------------

    async def sync(self, outbox: Outbox, since: int, have: dict[str, Json]) -> bool:
        """Bring one viewer up to date: what the rows say since its revision, then the live stream (LIVE-02).

        False: the session is gone.
        """
        outbox.hold()
        frames: list[str] = []
        try:
            changes = await self._threads.run(reading.changes_since, self.session_id, since, list(have))
            if changes is None:
                return False
            await self._healed_soon()
            ahead = self.revision > changes.revision
            self._reached(changes.revision)
            if not ahead:
                self._learn(changes)
            make = self._page_sync if outbox.face == "page" else self._events_sync
            frames = [dump(frame) for frame in make(changes, since, have)]
            return True
        finally:
            outbox.release(frames)

    async def _healed_soon(self) -> None:
        """Wait for text that passed us by: without it a viewer would see the same gap again."""
        if self._healing is not None:
            await asyncio.wait([self._healing], timeout=HEAL_PATIENCE)

    def _learn(self, changes: Changes) -> None:
        """Take growing text from rows that nothing newer has been told of."""
        for message in changes.messages:
            if message.status == "streaming" and message.id not in self._growing:
                self._grow(message.id, message.text)

    def _events_sync(self, changes: Changes, since: int, have: dict[str, Json]) -> list[Json]:
        lengths = {message_id: int(known.get("length", 0)) for message_id, known in have.items()}
        messages = [self._newest(message) for message in changes.messages]
        return changes_frames(replace(changes, messages=messages), since, lengths)

    def _newest(self, message: MessageSnapshot) -> MessageSnapshot:
        """The rows are up to a writer's interval behind the stream: prefer what was heard."""
        growing = self._growing.get(message.id)
        if message.status != "streaming" or growing is None or growing.missing or growing.length <= len(message.text):
            return message
        return replace(message, text="".join(growing.parts))

    def _page_sync(self, changes: Changes, since: int, have: dict[str, Json]) -> list[Json]:
        if len(changes.messages) > MOST_CHANGES:
            return [{"op": "reload"}]
        frames: list[Json] = [{"op": "syncing"}]
        frames += [{"op": "remove", "revision": None, "id": message_id} for message_id in changes.removed]
        streaming = [message for message in changes.messages if message.status == "streaming"]
        for message in changes.messages:
            if message.status != "streaming" or message.revision > since:
                frames.append(message_frame(message))
        frames.append(session_frame(changes.session, None))
        frames += [self._snap(message, have.get(message.id, {})) for message in streaming]
        ids = [message.id for message in streaming]
        return [*frames, {"op": "synced", "revision": changes.revision, "streaming": ids}]

    def _snap(self, message: MessageSnapshot, known: Json) -> Json:
        """The text of a streaming message as it was heard here; the rows' where it ended while they were read."""
        growing = self._growing.get(message.id)
        if growing is None:
            growing = Growing([message.text], len(message.text))
        return self._snapshot(message.id, growing, known)


def dump(frame: Json) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
