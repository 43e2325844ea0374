"""One watched session in one web process: each frame is made once and sent as the same string to every viewer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Container, Iterable, Mapping

from agents.messages import Json
from chat.bus.events import (
    AccessChanged,
    ChatEvent,
    CompactionEnded,
    ContextChanged,
    Durable,
    FilesChanged,
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
from chat.live import sync
from chat.live.editors import editors_event, editors_frame
from chat.live.event_json import dump, event_frame, rest_frame
from chat.live.presence import Presence, PresenceTracker, presence_event, presence_frame, typing_frame
from chat.live.socket_queue import SocketQueue
from chat.live.streaming_message import StreamingMessage, StreamingMessages
from chat.live.subscriber import TRY_LATER, Protocol, Subscriber
from chat.live.subscribers import Audience
from chat.live.sync import Answer
from chat.models import Session, User
from chat.queries import messages
from chat.queries.steps import StepChanges
from chat.rendering.markdown import render
from chat.rendering.messages.frames import (
    body_of,
    compacted_frame,
    context_frame,
    is_markdown,
    is_quick,
    message_frame,
    message_frames,
    session_frame,
    status_frame,
    usage_frame,
)
from chat.session_snapshot import SessionSnapshot
from chat.snapshots import MessageSnapshot

logger = logging.getLogger(__name__)
SUBSCRIBE_TIMEOUT = 2.0


class Feed:
    """The viewers of one session in this process, and its streaming messages.

    `revision` is the last one that was sent to every viewer, -1 before the first. `subscribed` is set once the channel
    layer delivers events, or has failed; then only the beacon updates the viewers. `hub` is the id of the hub.
    """

    def __init__(self, session_id: str, threads: Threads, hub: str = "") -> None:
        self.session_id = session_id
        self.revision = -1
        self.subscribed = asyncio.Event()
        self._audience = Audience()
        self.presence = PresenceTracker(
            session_id, hub, self._audience.names_by_user, self._send_presence, self._send_editors
        )
        self._threads = threads
        self._streaming = StreamingMessages(threads, send=self._audience.send_text, filled=self._send_filled_text)
        self._head = 0
        self._events: deque[ChatEvent] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._drawing: set[asyncio.Task[None]] = set()

    @property
    def subscribers(self) -> list[Subscriber]:
        return list(self._audience)

    def join(self, subscriber: Subscriber) -> None:
        self._audience.join(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        self._audience.leave(subscriber)
        self.presence.viewer_left(for_good=subscriber.lost_access)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        for task in self._drawing:
            task.cancel()
        self._streaming.close()
        self.presence.close()

    # -- events from the channel layer --------------------------------------------------------------------------------

    def receive(self, events: Iterable[ChatEvent], head: int | None = None) -> None:
        """Handle the events of a commit, or a part of them, in the order of publication.

        An event that needs its row, and all events behind it, wait for the row. Other sessions do not wait. `head` is
        the revision of the commit. If a later commit was received before, its status and usage are out of date.
        """
        stale = head is not None and head < self._head
        self._head = max(self._head, head or 0)
        self._events += [event for event in events if not (stale and isinstance(event, StatusChanged | UsageChanged))]
        if self._reading is None:
            self._handle_events()

    def _handle_events(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, MessageChanged):
                self._streaming.finish(event.message)
            if isinstance(event, SessionChanged) or (isinstance(event, MessageChanged) and not self._is_ready(event)):
                self._reading = asyncio.get_running_loop().create_task(self._handle_with_row(event))
                return
            try:
                self._handle(event)
            except Exception:
                self._log_failure(event)

    def _is_ready(self, event: MessageChanged) -> bool:
        """Return whether an event has its message, and the message is short enough to be drawn on the event loop."""
        message = event.message
        if message is None or (message.status != "streaming" and message.id in self._streaming):
            return False
        return not self._audience.pages or is_quick(message)

    async def _handle_with_row(self, event: SessionChanged | MessageChanged) -> None:
        """Handle an event that needs its row or more time, then the events behind it."""
        try:
            if isinstance(event, MessageChanged):
                message = event.message
                if message is None:
                    message = await self._threads.run(messages.message_snapshot, event.id)
                    self._streaming.finish(message)
                self._message_changed(event, message, await self._draw_frames(message))
            else:
                self._session_changed(event, await self._threads.run(messages.session_by_id, self.session_id))
        except Exception:
            self._log_failure(event)
        self._reading = None
        self._handle_events()

    async def _draw_frames(self, message: MessageSnapshot | None) -> dict[str, Json]:
        """Draw a message outside the event loop, in each language of the open pages. Return the frames by language."""
        if message is None or message.status == "streaming":
            return {}
        frames, body = dict[str, Json](), None
        if is_markdown(message) and (self._audience.pages or message.id in self._streaming):
            blocks = await render.draw(message.text)
            if streaming := self._streaming.pop(message.id, None):
                streaming.settle(blocks)
            body = body_of(blocks)
        while languages := [language for language in self._audience.pages if language not in frames]:
            frames |= await self._threads.run(message_frames, message, body, languages)
        return frames

    def _log_failure(self, event: ChatEvent) -> None:
        """Log an event that cannot be sent, and make viewers read the rows instead."""
        logger.exception("Could not send %s of session %s", type(event).__name__, self.session_id)
        if isinstance(event, Durable):
            self.send_head(event.revision)

    def _handle(self, event: ChatEvent) -> None:
        if not isinstance(event, MessageChanged | MessageRemoved):
            self._send_event(event)
        match event:
            case TextAppended():
                self._streaming.get_or_add(event.id, is_call=event.arguments).receive(event)
                self._audience.notify_readers()
            case StatusChanged():
                self._audience.show(lambda: status_frame(event))
                # A turn begins to wait for people without a new revision.
                self._audience.notify_readers(self.revision)
            case UsageChanged():
                self._audience.show(lambda: usage_frame(event))
            case RunCancelled():
                self._audience.send_to_pages({"op": "cancelled"})
            case FilesChanged():
                self._audience.send_to_pages({"op": "files"})
            case CompactionEnded():
                self._audience.show(lambda: compacted_frame(event))
            case MessageChanged():
                self._message_changed(event, event.message)
            case MessageRemoved():
                self._message_removed(event)
            case MessagesShifted():
                shift = {"op": "shift", "revision": event.revision, "from": event.start, "by": event.by}
                self._audience.send_to_pages(shift, event.revision)
                self._advance_to(event.revision)
            case ContextChanged():
                self._audience.show(lambda: context_frame(event.revision, event.included, event.places), event.revision)
                self._advance_to(event.revision)
            case SessionChanged() | AccessChanged():
                pass  # SessionChanged is handled with its row; after AccessChanged the hub checks all viewers

    def _message_changed(
        self, event: MessageChanged, message: MessageSnapshot | None, drawn: dict[str, Json] | None = None
    ) -> None:
        if message is None:  # removed before its row was read
            self._message_removed(MessageRemoved(event.revision, event.id))
            return
        if message.status != "streaming":
            self._streaming.finish(message)  # again: a sync that read older rows may have added it during the drawing
        elif event.revision > self.revision or event.id in self._streaming:  # otherwise it may already be complete
            self._streaming.get_or_add(event.id, is_call=message.type == "tool_group").update(message.text)
        if message.role == "user":
            self.presence.stop_typing(message.user_id)
        self._send_event(event, message)
        revision = {"revision": event.revision}
        frames = {language: {**frame, **revision} for language, frame in (drawn or {}).items()}
        self._audience.show(lambda: {**message_frame(message), **revision}, event.revision, drawn=frames)
        self._send_snapshot(event.id, event.revision)
        self._advance_to(event.revision)

    def _message_removed(self, event: MessageRemoved) -> None:
        self._streaming.forget(event.id)
        self.presence.editors.close_removed(event.id)
        self._send_event(event)
        self._audience.send_to_pages({"op": "remove", "revision": event.revision, "id": event.id}, event.revision)
        self._advance_to(event.revision)

    def _session_changed(self, event: SessionChanged, session: SessionSnapshot | None) -> None:
        self._send_event(event, session=session)
        if session is not None:
            self._audience.show(lambda: session_frame(session, event.revision), event.revision)
            if session.status == Session.Status.ARCHIVED:
                self.presence.editors.end_all()
        self._advance_to(event.revision)

    def _advance_to(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        self._audience.notify_readers(revision)

    # -- streaming messages -------------------------------------------------------------------------------------------

    def _send_filled_text(self, text: TextAppended) -> None:
        """Send text that was read from the row. Pages get it in frames, or a snapshot if they lack the beginning."""
        streaming = self._streaming.get(text.id)
        if streaming is not None and not streaming.is_drawn:
            self._send_snapshot(text.id)
        if text.text:
            self._send_event(text)
            self._audience.notify_readers()

    def _send_snapshot(self, message_id: str, revision: int | None = None) -> None:
        """Send pages the current text of a streaming message."""
        streaming = self._streaming.get(message_id)
        if streaming is None or not self._audience.pages:
            return
        if streaming.has_long_beginning:
            task = asyncio.get_running_loop().create_task(self._send_beginning(streaming))
            self._drawing.add(task)
            task.add_done_callback(self._drawing.discard)
        else:
            self._audience.send_to_pages(streaming.snapshot({}), revision)

    async def _send_beginning(self, streaming: StreamingMessage) -> None:
        await streaming.draw_beginning()
        if self._streaming.get(streaming.id) is streaming:  # otherwise it has ended, and pages have the whole message
            self._audience.send_to_pages(streaming.snapshot({}))

    # -- frames to viewers --------------------------------------------------------------------------------------------

    def _send_event(
        self, event: ChatEvent, message: MessageSnapshot | None = None, session: SessionSnapshot | None = None
    ) -> None:
        if self._audience.events and (frame := event_frame(event, message, session)) is not None:
            self._audience.send_to_clients(frame, event.revision if isinstance(event, Durable) else None)

    def _send_presence(self, before: Presence) -> None:
        now = self.presence.shown
        self._audience.send_to_clients(presence_event(now))
        if (now.listed, now.count) == (before.listed, before.count):
            self._audience.send_to_pages(typing_frame(now))
        else:
            self._audience.show(lambda: presence_frame(now))

    def _send_editors(self) -> None:
        editors = self.presence.editors.shown
        self._audience.send_to_clients(editors_event(editors))
        self._audience.show(lambda: editors_frame(editors))

    def send_access_changed(self) -> None:
        self._audience.send_to_pages({"op": "people"})  # pages read again who has access

    def beat(self, revision: int) -> None:
        """Recover what may be lost: the last event (LIVE-02), or the end of a text that has paused."""
        self.send_head(revision)
        for streaming in list(self._streaming.values()):
            streaming.check_if_idle()

    def start_again(self, revision: int) -> None:
        """Close all viewers, so that they connect and read the rows again, after a failover has lost changes."""
        logger.warning(
            "Session %s lost its last changes in a database failover; its viewers reconnect", self.session_id
        )
        self.revision, self._head = revision, 0
        self._events.clear()
        self._streaming.close()
        for each in self.subscribers:
            each.close(TRY_LATER)

    def send_head(self, revision: int) -> None:
        """Send the rows' revision if it is newer than what was sent, because the last event may be lost (LIVE-02)."""
        if revision > self.revision:
            self.revision = revision
            self._audience.send_head({"type": "head", "revision": revision}, revision)
            self._audience.send_to_pages({"op": "head", "revision": revision}, revision)
            self._audience.notify_readers(revision)

    # -- viewers that catch up ----------------------------------------------------------------------------------------

    async def sync(self, socket_queue: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None:
        """Send one viewer the changes of the rows since its revision, then continue its live stream (LIVE-02).

        `have` is what the viewer has of each streaming message; None if this is not known. Raise NoSuchSession if the
        user has lost access.
        """
        await socket_queue.answered()
        if socket_queue.closed:
            return
        socket_queue.pause()
        frames, reached = list[str](), 0
        try:
            await self.wait_until_subscribed()
            protocol, language = socket_queue.protocol, socket_queue.language
            answer = await self._threads.run(sync.read, protocol, language, user, self.session_id, since, have)
            texts = {message.id: message.text for message in answer.streaming}
            calls = {message.id for message in answer.streaming if message.type == "tool_group"}
            await self._update_texts(answer.revision, texts, calls)
            live = [dump(frame) async for frame in self._live_texts(protocol, answer, have or {})]
            frames = [*answer.frames, *live]
            reached = answer.revision
        finally:
            socket_queue.release(frames, reached)
        self.presence.send_state(socket_queue)

    async def wait_until_subscribed(self) -> None:
        """Wait for up to SUBSCRIBE_TIMEOUT seconds until events arrive, so that none after the next read is missed.

        Then show the viewer as online.
        """
        try:
            async with asyncio.timeout(SUBSCRIBE_TIMEOUT):
                await self.subscribed.wait()
        except TimeoutError:  # the layer hangs; the beacon recovers events that the layer does not deliver
            logger.warning("Session %s has no live updates for now", self.session_id)
        self.presence.viewer_arrived()

    async def steps_since(self, user: User, since: int) -> StepChanges:
        """Read which steps may have changed (LIVE-03). Raise NoSuchSession if the user has lost access."""
        changes = await self._threads.run(sync.read_steps, user, self.session_id, since)
        written = {call.message_id: call.text for call in changes.written}
        await self._update_texts(changes.revision, dict(changes.growing.values()) | written, written.keys())
        return changes

    def text_from(self, message_id: str, known: int) -> str:
        """Return the text of a streaming message after its first `known` characters; "" if it is not streaming."""
        streaming = self._streaming.get(message_id)
        return streaming.text_from(known) if streaming else ""

    async def _update_texts(self, revision: int, texts: Mapping[str, str], calls: Container[str]) -> None:
        """Take the texts of streaming rows that were read at a revision. Those of `calls` are arguments of tool calls.

        Ignore a message that is unknown here if the revision is not current, because it may have ended.
        """
        await asyncio.gather(*[streaming.wait_for_gap() for streaming in self._streaming.values()])
        if self.revision < 0:  # the first viewer: nothing was sent yet
            self.revision = revision
        for message_id, text in texts.items():
            is_known = message_id in self._streaming
            if is_known or self.revision <= revision:
                self._streaming.get_or_add(message_id, is_call=message_id in calls).update(text)
            if not is_known and message_id in self._streaming:
                self._streaming[message_id].check_later()

    async def _live_texts(
        self, protocol: Protocol, answer: Answer, have: dict[str, Json]
    ) -> AsyncIterator[Mapping[str, object]]:
        """Yield the current text of the streaming messages, because the rows are up to a writer's interval behind."""
        for message in answer.streaming:
            streaming = self._streaming.get(message.id)
            if protocol == "page":
                if streaming is None:
                    streaming = StreamingMessage(message.id, self._threads, is_call=message.type == "tool_group")
                    streaming.update(message.text)
                await streaming.draw_beginning()
                yield streaming.snapshot(have.get(message.id, {}))
            elif streaming is not None and streaming.length > len(message.text):
                yield rest_frame(message, streaming.text)
        if protocol == "page" and not answer.reload:
            yield {"op": "synced", "revision": answer.revision, "streaming": [each.id for each in answer.streaming]}
