"""A streaming message as one web process knows it: its text so far, and that text drawn once for every page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from chat.bus.events import TextAppended
from chat.db import Threads
from chat.rendering.budget import ON_LOOP
from chat.rendering.markdown import render
from chat.rendering.markdown.blocks import is_plain
from chat.rendering.markdown.live_text import LiveText

Json = dict[str, Any]

# The share of its time that drawing one growing message may take: its frames become rarer as they become dearer.
DRAWING_SHARE = 1 / 20
# A text that is longer when somebody begins to watch it is drawn in a thread first, within so much CPU.
LONGEST_BEGINNING = 4_000
BEGINNING_SECONDS = 0.5


class Growing:
    """A text only ever grows: whatever tells of it, the stream or a row, adds what is not known yet.

    `missing`: text has passed this process by; what came after it waits until a row has closed the gap.
    `tell` is given the frames for pages.
    """

    def __init__(self, message_id: str, text: str, tell: Callable[[Json], None]) -> None:
        self.id = message_id
        self.length = len(text)
        self.missing = False
        self._parts = [text]
        self._ahead: list[TextAppended] = []
        self._length_seen = -1
        self._looked = False
        self._tell = tell
        self._live: LiveText | None = None
        # Counts of blocks by another process, or by an earlier beginning in this one, do not compare with ours.
        self._era = time.time_ns() // 1000
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._completing: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        self._parts = ["".join(self._parts)]
        return self._parts[0]

    def text_from(self, known: int) -> str:
        """What comes after the first `known` characters; costs as much as that is long, however long the text is."""
        found, lacking = list[str](), self.length - known
        for part in reversed(self._parts):
            if lacking <= 0:
                break
            found.append(part[-lacking:])
            lacking -= len(part)
        return "".join(reversed(found))

    @property
    def is_drawn(self) -> bool:
        return self._live is not None

    def is_quiet(self) -> bool:
        """Tell, once, that the text has not grown since this was last asked."""
        grows, self._length_seen = self.length != self._length_seen, self.length
        news = not grows and not self._looked
        self._looked = not grows
        return news

    def hear(self, event: TextAppended) -> None:
        """Take a piece of the live stream; it waits while text before it is missing."""
        if self.missing or event.offset > self.length:
            self.missing = True
            self._ahead.append(event)
        else:
            self.add(event.offset, event.text)

    def mend(self, text: str) -> None:
        """Take the text of the row; `missing` is over if that reaches what was heard after the gap."""
        self.add(0, text)
        if self._ahead and self._ahead[0].offset > self.length:
            return
        ahead, self._ahead, self.missing = self._ahead, [], False
        for event in ahead:
            self.hear(event)

    def add(self, offset: int, text: str) -> None:
        """Add what is not known yet of a text that begins within what is known."""
        new = text[self.length - offset :]
        if not new:
            return
        self._parts.append(new)
        self.length += len(new)
        if self._live is not None:
            self._live.append(new)
            self._draw_soon(self._live)

    @property
    def has_long_beginning(self) -> bool:
        """Whether so much is not drawn yet that `draw_beginning` must come before a snapshot."""
        return self._live is None and self.length > LONGEST_BEGINNING

    async def draw_beginning(self, threads: Threads) -> None:
        """Draw what is there in a thread, if it is too long for the event loop."""
        if not self.has_long_beginning:
            return
        live, text = LiveText(self.id, ON_LOOP), self.text
        await threads.run(live.begin, text, BEGINNING_SECONDS)
        if self._live is None:
            live.append(self.text_from(len(text)))
            self._live = live

    def snapshot(self, known: Json) -> Json:
        """Make the frame that brings a page up to date which has `known` blocks at a `rev`."""
        if self._live is None:
            self._live = LiveText(self.id, ON_LOOP)
            self._live.append(self.text)
            self._frame(self._live)
        else:
            self._draw(self._live)  # what is told from now on follows from this very state
        snap = self._live.snapshot(known.get("blocks", 0), known.get("rev", 0) - self._era)
        return {**snap, "rev": snap["rev"] + self._era}

    def finish(self, text: str) -> bool:
        """Tell the end of what is now the whole text; False if the text must be drawn elsewhere, and then `settle`d."""
        if self._live is not None:
            new = text[self.length :]
            self._parts.append(new)
            self.length += len(new)
            self._live.append(new)
            self._draw(self._live, end=True)
            if not self._live.ended:
                return False
        self.forget()
        return True

    def settle(self, blocks: Sequence[str]) -> None:
        """Tell the end of the text, which was drawn elsewhere."""
        if self._live is not None:
            self._tell(self._live.settle(blocks))
        self.forget()

    def forget(self) -> None:
        self._stop_waiting()
        if self._completing is not None:
            self._completing.cancel()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _draw_soon(self, live: LiveText) -> None:
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._not_before:
            self._draw(live)
        else:
            self._timer = loop.call_at(self._not_before, self._draw, live)

    def _draw(self, live: LiveText, *, end: bool = False) -> None:
        self._stop_waiting()
        frame = self._frame(live, end=end)
        if frame is not None:
            self._tell(frame)

    def _frame(self, live: LiveText, *, end: bool = False) -> Json | None:
        frame = live.frame(end=end)
        loop = asyncio.get_running_loop()
        self._not_before = loop.time() + live.last_cost / DRAWING_SHARE
        if live.provisional and self._completing is None:
            self._completing = loop.create_task(self._complete(live))
        return frame

    async def _complete(self, live: LiveText) -> None:
        """Draw elsewhere what took too much here; what cannot be drawn there stays as it is until the text ends."""
        tried = set[int]()
        while left := [(index, source) for index, source in live.provisional.items() if index not in tried]:
            index, source = left[0]
            tried.add(index)
            drawn = await render.draw(source)
            if index in live.provisional and len(drawn) == 1 and not is_plain(drawn[0]):
                self._tell(live.complete(index, drawn[0]))
        self._completing = None
