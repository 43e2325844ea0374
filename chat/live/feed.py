"""What one web process tells of one watched session: made once, handed as the same string to every viewer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from django.utils.safestring import SafeString

from chat.bus.events import (
    AccessChanged,
    ChatEvent,
    ContextChanged,
    Durable,
    MessageChanged,
    MessageRemoved,
    MessagesShifted,
    RunCancelled,
    SessionChanged,
    StatusChanged,
    TextAppended,
    UsageChanged,
)
from chat.db import Threads
from chat.languages import speaking
from chat.live import sync as catchup
from chat.live.event_json import dump, event_frame, rest_frame
from chat.live.growing import Growing
from chat.live.presence import presence_event, presence_frame
from chat.live.presence_tracker import PresenceTracker
from chat.live.socket_queue import SocketQueue
from chat.live.subscriber import Protocol, Subscriber
from chat.live.subscribers import Audience
from chat.live.sync import Answer
from chat.live.texts import Texts
from chat.models import User
from chat.queries import messages
from chat.queries.steps import StepChanges
from chat.rendering.markdown import render
from chat.rendering.messages.frames import (
    body_of,
    context_frame,
    is_markdown,
    is_quick,
    message_frame,
    session_frame,
    status_frame,
    usage_frame,
)
from chat.snapshots import MessageSnapshot, SessionSnapshot

logger = logging.getLogger(__name__)
Json = dict[str, Any]

SUBSCRIBE_PATIENCE = 2.0


class Feed:
    """One session's viewers in this process, and the text that grows in it.

    `revision` is the last that every viewer was told of, -1 before the first; `subscribed` is set once the layer's
    events come in, or cannot: then the beacon alone keeps the viewers up to date. `hub` names its hub to the others.
    """

    def __init__(self, session_id: str, threads: Threads, hub: str = "") -> None:
        self.session_id = session_id
        self.revision = -1
        self.subscribed = asyncio.Event()
        self._audience = Audience()
        self.people = PresenceTracker(session_id, hub, self._audience.people, self._tell_presence)
        self._threads = threads
        self._texts = Texts(threads, self._audience.tell_pages, self._text_healed)
        self._heard = 0
        self._inbox: deque[ChatEvent] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._drawing: set[asyncio.Task[None]] = set()

    @property
    def listeners(self) -> list[Subscriber]:
        return list(self._audience)

    def join(self, listener: Subscriber) -> None:
        self._audience.join(listener)

    def leave(self, listener: Subscriber) -> None:
        self._audience.leave(listener)
        self.people.left()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        for task in self._drawing:
            task.cancel()
        self._texts.close()
        self.people.close()

    # -- what comes in ----------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[ChatEvent], head: int | None = None) -> None:
        """Take the events of a commit, or a part of them, in the order in which they were published.

        Those that need a row wait for it, the rest behind them; other sessions do not. Of a commit that was overtaken
        by a later one (`head` tells) the hints are stale.
        """
        stale = head is not None and head < self._heard
        self._heard = max(self._heard, head or 0)
        self._inbox.extend(event for event in events if not (stale and isinstance(event, StatusChanged | UsageChanged)))
        if self._reading is None:
            self._handle_known()

    def _handle_known(self) -> None:
        while self._inbox:
            event = self._inbox.popleft()
            if isinstance(event, SessionChanged) or (isinstance(event, MessageChanged) and not self._is_ready(event)):
                self._reading = asyncio.get_running_loop().create_task(self._handle_read(event))
                self._reading.add_done_callback(self._read)
                return
            try:
                self._handle(event)
            except Exception:
                self._failed(event)

    def _is_ready(self, event: MessageChanged) -> bool:
        """Tell whether an event can be told at once: it has its message, which takes little to draw."""
        message = event.message
        if message is None:
            return False
        if message.status == "streaming":
            return True
        return self._texts.finish(event.id, message.text) and (not self._audience.pages or is_quick(message))

    async def _handle_read(self, event: SessionChanged | MessageChanged) -> None:
        try:
            if isinstance(event, MessageChanged):
                message = event.message or await self._threads.run(messages.message_snapshot, event.id)
                self._message_changed(event, message, await self._drawn(message))
            else:
                self._session_changed(event, await self._threads.run(messages.session_by_id, self.session_id))
        except Exception:
            self._failed(event)

    async def _drawn(self, message: MessageSnapshot | None) -> dict[str, Json]:
        """Draw a message away from the event loop, for each language that pages have."""
        frames: dict[str, Json] = {}
        if message is None or message.status == "streaming":
            return frames
        body = None
        is_whole = self._texts.finish(message.id, message.text)
        if is_markdown(message) and (self._audience.pages or not is_whole):
            blocks = await render.draw(message.text)
            self._texts.settle(message.id, blocks)
            body = body_of(blocks)
        while languages := [language for language in self._audience.pages if language not in frames]:
            frames |= await self._threads.run(_frames, message, body, languages)
        return frames

    def _read(self, task: asyncio.Task[None]) -> None:
        self._reading = None
        if not task.cancelled():
            self._handle_known()

    def _failed(self, event: ChatEvent) -> None:
        """One event that cannot be told must not cost the others: viewers are sent to the rows."""
        logger.exception("A %s of session %s could not be told", type(event).__name__, self.session_id)
        if isinstance(event, Durable):
            self.tell_head(event.revision)

    def _handle(self, event: ChatEvent) -> None:
        match event:
            case TextAppended():
                self._texts.hear(event)
                self._tell_events(event)
                self._audience.stir_readers()
            case MessageChanged():
                self._message_changed(event, event.message)
            case MessageRemoved():
                self._removed(event)
            case MessagesShifted():
                self._shifted(event)
            case ContextChanged():
                self._context_changed(event)
            case SessionChanged():
                raise AssertionError("needs its row")
            case _:
                self._hint(event)

    def _hint(self, event: StatusChanged | UsageChanged | RunCancelled | AccessChanged) -> None:
        self._tell_events(event)
        match event:
            case StatusChanged(status, tool_name):
                self._audience.show(lambda: status_frame(status, tool_name))
            case UsageChanged():
                self._audience.show(lambda: usage_frame(event))
            case RunCancelled():
                self._audience.tell_pages({"op": "cancelled"})
            case AccessChanged():
                pass  # the hub looks again who may listen

    def _message_changed(
        self, event: MessageChanged, message: MessageSnapshot | None, drawn: dict[str, Json] | None = None
    ) -> None:
        if message is None:  # gone again before its row was read
            self._removed(MessageRemoved(event.revision, event.id))
            return
        if message.status != "streaming":
            self._texts.finish(event.id, message.text)
        elif event.revision > self.revision or event.id in self._texts:  # else it may be over by now
            self._texts.begin(event.id, message.text)
        if message.role == "user":
            self.people.stops(message.user_id)
        self._tell_events(event, message)
        frames = {language: {**frame, "revision": event.revision} for language, frame in (drawn or {}).items()}
        self._audience.show(
            lambda: {**message_frame(message), "revision": event.revision}, event.revision, drawn=frames
        )
        self._tell_snap(event.id, event.revision)
        self._reached(event.revision)

    def _removed(self, event: MessageRemoved) -> None:
        self._texts.forget(event.id)
        self._tell_events(event)
        self._audience.tell_pages({"op": "remove", "revision": event.revision, "id": event.id}, event.revision)
        self._reached(event.revision)

    def _shifted(self, event: MessagesShifted) -> None:
        self._tell_events(event)
        frame = {"op": "shift", "revision": event.revision, "from": event.start, "by": event.by}
        self._audience.tell_pages(frame, event.revision)
        self._reached(event.revision)

    def _context_changed(self, event: ContextChanged) -> None:
        self._tell_events(event)
        self._audience.show(lambda: context_frame(event.revision, event.included, event.places), event.revision)
        self._reached(event.revision)

    def _text_healed(self, text: TextAppended) -> None:
        """Pages are told of text that is being drawn for them as it grows; they may not have its beginning yet."""
        growing = self._texts.get(text.id)
        if growing is not None and not growing.is_drawn:
            self._tell_snap(text.id)
        if text.text:
            self._tell_events(text)
            self._audience.stir_readers()

    def _session_changed(self, event: SessionChanged, session: SessionSnapshot | None) -> None:
        self._tell_events(event, session=session)
        if session is not None:
            self._audience.show(lambda: session_frame(session, event.revision), event.revision)
        self._reached(event.revision)

    def _reached(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        self._audience.stir_readers(revision)

    # -- what goes out ----------------------------------------------------------------------------------------------

    def _tell_snap(self, message_id: str, revision: int | None = None) -> None:
        """Let pages begin a growing text."""
        growing = self._texts.get(message_id)
        if growing is None or not self._audience.pages:
            return
        if growing.has_long_beginning:
            task = asyncio.get_running_loop().create_task(self._tell_beginning(growing))
            self._drawing.add(task)
            task.add_done_callback(self._drawing.discard)
        else:
            self._audience.tell_pages(growing.snapshot({}), revision)

    async def _tell_beginning(self, growing: Growing) -> None:
        await growing.draw_beginning(self._threads)
        if self._texts.get(growing.id) is growing:  # else it has ended meanwhile, and its message was told whole
            self._audience.tell_pages(growing.snapshot({}))

    def _tell_events(
        self, event: ChatEvent, message: MessageSnapshot | None = None, session: SessionSnapshot | None = None
    ) -> None:
        if self._audience.events and (frame := event_frame(event, message, session)) is not None:
            self._audience.tell_events(frame, event.revision if isinstance(event, Durable) else None)

    def _tell_presence(self) -> None:
        people = self.people.shown
        self._audience.tell_events(presence_event(people))
        self._audience.show(lambda: presence_frame(people))

    def beat(self, revision: int) -> None:
        """Make good what may be lost: the last event (LIVE-02), the last words of a text that has paused."""
        self.tell_head(revision)
        self._texts.look_at_quiet_ones()

    def tell_head(self, revision: int) -> None:
        """Say what the rows' revision is when it is past what was told: the last event may be lost (LIVE-02)."""
        if revision > self.revision:
            self.revision = revision
            self._audience.tell_head({"type": "head", "revision": revision}, revision)
            self._audience.tell_pages({"op": "head", "revision": revision}, revision)
            self._audience.stir_readers(revision)

    # -- catching up ------------------------------------------------------------------------------------------------

    async def sync(self, outbox: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None:
        """Bring one viewer up to date: what the rows say since its revision, then the live stream (LIVE-02).

        `have` says how much of streaming messages the viewer has; None: that is not known. Raises NoSuchSession when
        the user has lost access.
        """
        await outbox.answered()
        if outbox.closed:
            return
        outbox.hold()
        frames: list[str] = []
        reached = 0
        try:
            await self.arrived()
            viewer = outbox.face, outbox.language, user
            answer = await self._threads.run(catchup.read, *viewer, self.session_id, since, have)
            await self._learn(answer.revision, {message.id: message.text for message in answer.streaming})
            frames = [*answer.frames, *[dump(frame) async for frame in self._grown(outbox.face, answer, have or {})]]
            reached = answer.revision
        finally:
            outbox.release(frames, reached)
        if people := self.people.shown:
            make = presence_event if outbox.face == "events" else presence_frame
            outbox.put(dump(speaking(outbox.language, make, people)))

    async def arrived(self) -> None:
        """Wait, not for ever, until what is read from now on cannot be passed by what happens."""
        await self._subscribed_soon()
        self.people.arrived()

    async def steps_since(self, user: User, since: int) -> StepChanges:
        """Read which steps may have changed (LIVE-03). Raises NoSuchSession when it is none of theirs any more."""
        changes = await self._threads.run(catchup.read_steps, user, self.session_id, since)
        await self._learn(changes.revision, dict(changes.growing.values()))
        return changes

    def text_from(self, message_id: str, known: int) -> str:
        """What is known here of a text that grows, beyond its first `known` characters; "" if nothing is."""
        growing = self._texts.get(message_id)
        return growing.text_from(known) if growing else ""

    async def _subscribed_soon(self) -> None:
        try:
            async with asyncio.timeout(SUBSCRIBE_PATIENCE):
                await self.subscribed.wait()
        except TimeoutError:  # the layer hangs; the beacon tells what the layer does not
            logger.warning("Session %s is shown without its live stream for now", self.session_id)

    async def _learn(self, revision: int, texts: Mapping[str, str]) -> None:
        """Take growing texts from rows that were read at a revision; one that is not known here may have ended since.

        Text that has passed this process by is waited for, not for long.
        """
        await self._texts.healed_soon()
        if self.revision < 0:  # the first viewer: none was told of anything yet
            self.revision = revision
        for message_id, text in texts.items():
            if message_id in self._texts or self.revision <= revision:
                self._texts.learn(message_id, text)

    async def _grown(
        self, face: Protocol, answer: Answer, have: dict[str, Json]
    ) -> AsyncIterator[Mapping[str, object]]:
        """The live text of the streaming messages: rows are up to a writer's interval behind it."""
        for message in answer.streaming:
            growing = self._texts.get(message.id)
            if face == "page":
                known = growing or Growing(message.id, message.text, _to_nobody)
                await known.draw_beginning(self._threads)
                yield known.snapshot(have.get(message.id, {}))
            elif growing is not None and growing.length > len(message.text):
                yield rest_frame(message, growing.text)
        if face == "page" and not answer.reload:
            yield {"op": "synced", "revision": answer.revision, "streaming": [each.id for each in answer.streaming]}


def _frames(message: MessageSnapshot, body: SafeString | None, languages: list[str]) -> dict[str, Json]:
    return {language: speaking(language, message_frame, message, body) for language in languages}


def _to_nobody(frame: Json) -> None:
    """Where the frames of a text go that only one viewer is shown."""
