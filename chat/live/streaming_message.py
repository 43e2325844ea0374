"""A streaming message in one web process: its text is received once and drawn once for all pages."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from agents.messages import Json
from chat.bus.events import TextAppended
from chat.db import Threads
from chat.queries import messages
from chat.rendering.budget import ON_LOOP
from chat.rendering.markdown import render
from chat.rendering.markdown.blocks import is_plain
from chat.rendering.markdown.live_text import LiveText
from chat.rendering.messages.written_arguments import LiveArguments
from chat.snapshots import MessageSnapshot

logger = logging.getLogger(__name__)

# The share of a core that drawing one message may take. The interval between frames is at least 20 times the CPU time
# of a frame.
DRAWING_SHARE = 1 / 20
# In characters and seconds. If the text is longer when the first page opens, a thread draws it, within this CPU time.
MAX_BEGINNING_LENGTH = 4_000
BEGINNING_SECONDS = 0.5
# Seconds between two reads of the row while text is missing.
FILL_INTERVAL = 0.1
# Seconds for which a new viewer waits for missing text.
FILL_TIMEOUT = 2.0
# Seconds after which the row has the text that was streamed before this process subscribed.
FLUSHED_AFTER = 0.5


def _ignore(*_: object) -> None:
    """Ignore the arguments: the default of the callbacks."""


class StreamingMessage:
    """The text of one message while it grows. Events and rows each add the text that is still missing.

    Events behind a gap wait until the row fills the gap. A new message has a gap until `update` gives it the beginning
    of its text. `send` is called with each frame for pages and its short form, `filled` with text that was read from
    the row, and `ended` with the id if the row is found complete or removed. With `is_call`, the text is the arguments
    of a call.
    """

    def __init__(
        self,
        message_id: str,
        threads: Threads,
        *,
        send: Callable[[Json, Sequence[object] | None], None] = _ignore,
        filled: Callable[[TextAppended], None] = _ignore,
        ended: Callable[[str], None] = _ignore,
        is_call: bool = False,
    ) -> None:
        self.id = message_id
        self._is_call = is_call
        self.length = 0
        self._threads = threads
        self._send = send
        self._filled = filled
        self._ended = ended
        self._parts: list[str] = []
        self._has_gap = True
        self._behind_gap: list[TextAppended] = []
        self._filling: asyncio.Task[None] | None = None
        self._check: asyncio.TimerHandle | None = None
        self._length_at_check = -1
        self._was_idle = False
        self._live: LiveText | None = None
        # Revisions start at the current time, so that pages never confuse them with those of another process or start.
        self._first_revision = time.time_ns() // 1000
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._completing: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Stop all work for this message."""
        self._has_gap = False
        for waiting in (self._filling, self._check, self._timer, self._completing):
            if waiting is not None:
                waiting.cancel()
        self._timer = None

    # -- the text ---------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        self._parts = ["".join(self._parts)]
        return self._parts[0]

    def text_from(self, known: int) -> str:
        """Return the text after the first `known` characters, in time linear in the length of the result."""
        found, lacking = list[str](), self.length - known
        for part in reversed(self._parts):
            if lacking <= 0:
                break
            found.append(part[-lacking:])
            lacking -= len(part)
        return "".join(reversed(found))

    def receive(self, event: TextAppended) -> None:
        """Add a piece of the live stream."""
        if self._has_gap or event.offset > self.length:
            self._has_gap = True
            self._behind_gap.append(event)
            self._fill()
        else:
            self._add(event.offset, event.text)

    def update(self, text: str) -> None:
        """Add the text of the row. It fills the gap if it reaches the events behind the gap."""
        self._add(0, text)
        if self._behind_gap and self._behind_gap[0].offset > self.length:
            return
        events, self._behind_gap, self._has_gap = self._behind_gap, [], False
        for event in events:
            self.receive(event)

    def _add(self, offset: int, text: str) -> None:
        """Add and draw the part of a text that is still missing. The text must start within the known text."""
        new = text[self.length - offset :]
        if not new:
            return
        self._parts.append(new)
        self.length += len(new)
        if (live := self._live) is None:
            return
        live.append(new)
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._not_before:
            self._draw(live)
        else:
            self._timer = loop.call_at(self._not_before, self._draw, live)

    # -- the gap ----------------------------------------------------------------------------------------------------

    def check_later(self) -> None:
        """Read the row again soon, because text from before this process subscribed may not be in the row yet."""
        self._check = asyncio.get_running_loop().call_later(FLUSHED_AFTER, self._read_row)

    def check_if_idle(self) -> None:
        """Read the row if the text has not grown since the last call, because its end may be lost.

        Do so once per pause.
        """
        is_idle, self._length_at_check = self.length == self._length_at_check, self.length
        if is_idle and not self._was_idle:
            self._read_row()
        self._was_idle = is_idle

    async def wait_for_gap(self) -> None:
        """Wait for missing text, for up to FILL_TIMEOUT seconds. After that, a new viewer sees the same gap."""
        if self._filling is not None:
            await asyncio.wait([self._filling], timeout=FILL_TIMEOUT)

    def _read_row(self) -> None:
        self._has_gap = True
        self._fill()

    def _fill(self) -> None:
        if self._filling is None:
            self._filling = asyncio.get_running_loop().create_task(self._fill_from_row())
            self._filling.add_done_callback(self._after_filling)

    async def _fill_from_row(self) -> None:
        """Read missing text from the row, which is at most the writer's interval behind the stream."""
        while self._has_gap:
            row = await self._threads.run(messages.message_snapshot, self.id)
            if row is None or row.status != "streaming":
                self._has_gap, self._filling = False, None
                self._ended(self.id)
                return
            known = self.length
            self.update(row.text)
            kind = row.type == "reasoning", row.type == "tool_group"
            self._filled(TextAppended(self.id, known, self.text_from(known), *kind))
            if self._has_gap:
                await asyncio.sleep(FILL_INTERVAL)

    def _after_filling(self, task: asyncio.Task[None]) -> None:
        self._filling = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:  # the next piece of text tries again
            logger.warning("Could not read the text of streaming message %s: %r", self.id, error)
        elif self._has_gap:  # a new gap since the task last read the row
            self._fill()

    # -- the drawing ------------------------------------------------------------------------------------------------

    @property
    def is_drawn(self) -> bool:
        return self._live is not None

    @property
    def has_long_beginning(self) -> bool:
        """Whether `draw_beginning` must be called before a snapshot, because too much text is not drawn yet."""
        return self._live is None and self.length > MAX_BEGINNING_LENGTH

    async def draw_beginning(self) -> None:
        """Draw the text so far in a thread, if it is too long for the event loop."""
        if not self.has_long_beginning:
            return
        live, text = self._new_live(), self.text
        await self._threads.run(live.begin, text, BEGINNING_SECONDS)
        if self._live is None:
            live.append(self.text_from(len(text)))
            self._live = live

    def _new_live(self) -> LiveText:
        return LiveArguments(self.id) if self._is_call else LiveText(self.id, ON_LOOP)

    def snapshot(self, known: Json) -> Json:
        """Return the frame that updates a page. `known` has the number of `blocks` that the page has, and its `rev`."""
        if self._live is None:
            self._live = self._new_live()
            self._live.append(self.text)
            self._next_frame(self._live)
        else:
            self._draw(self._live)  # later frames continue from the state of the snapshot
        snap = self._live.snapshot(known.get("blocks", 0), known.get("rev", 0) - self._first_revision)
        return {**snap, "rev": snap["rev"] + self._first_revision}

    def finish(self, text: str) -> bool:
        """Send the end of the complete text.

        Return False if it must be drawn elsewhere; then call `settle` to end it.
        """
        if self._live is not None:
            new = text[self.length :]
            self._parts.append(new)
            self.length += len(new)
            self._live.append(new)
            self._draw(self._live, end=True)
            if not self._live.ended:
                return False
        self.close()
        return True

    def settle(self, blocks: Sequence[str]) -> None:
        """Send the end of the text, which was drawn elsewhere as `blocks`."""
        if self._live is not None:
            self._send(self._live.settle(blocks), None)
        self.close()

    def _draw(self, live: LiveText, *, end: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        frame = self._next_frame(live, end=end)
        if frame is not None:
            self._send(frame, live.short)

    def _next_frame(self, live: LiveText, *, end: bool = False) -> Json | None:
        frame = live.frame(end=end)
        loop = asyncio.get_running_loop()
        self._not_before = loop.time() + live.last_cost / DRAWING_SHARE
        if live.provisional and self._completing is None:
            self._completing = loop.create_task(self._complete(live))
        return frame

    async def _complete(self, live: LiveText) -> None:
        """Draw blocks that exceeded the budget elsewhere. A block that fails is shown as source until the text ends."""
        tried = set[int]()
        while left := [(index, source) for index, source in live.provisional.items() if index not in tried]:
            index, source = left[0]
            tried.add(index)
            drawn = await render.draw(source)
            if index in live.provisional and len(drawn) == 1 and not is_plain(drawn[0]):
                self._send(live.complete(index, drawn[0]), live.short)
        self._completing = None


class StreamingMessages(dict[str, StreamingMessage]):
    """The streaming messages of one session, by id. `send` and `filled` are as in StreamingMessage."""

    def __init__(
        self,
        threads: Threads,
        *,
        send: Callable[[Json, Sequence[object] | None], None],
        filled: Callable[[TextAppended], None],
    ) -> None:
        super().__init__()
        self._threads = threads
        self._send = send
        self._filled = filled

    def get_or_add(self, message_id: str, *, is_call: bool) -> StreamingMessage:
        """Return a message. Add a new one if it is not known yet."""
        if message_id not in self:
            self[message_id] = StreamingMessage(
                message_id, self._threads, send=self._send, filled=self._filled, ended=self.forget, is_call=is_call
            )
        return self[message_id]

    def finish(self, message: MessageSnapshot | None) -> None:
        """Send the end of a message if it is complete. Keep it if its text must be drawn elsewhere first."""
        if message is None or message.status == "streaming":
            return
        streaming = self.get(message.id)
        if streaming is not None and streaming.finish(message.text):
            del self[message.id]

    def forget(self, message_id: str) -> None:
        if streaming := self.pop(message_id, None):
            streaming.close()

    def close(self) -> None:
        """Forget all messages."""
        for message_id in list(self):
            self.forget(message_id)
