"""The texts that grow in one session, as one web process knows them, and how it gets what has passed it by."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from chat.bus.events import TextAppended
from chat.db import Threads
from chat.live.growing import Growing
from chat.queries import messages
from chat.snapshots import MessageSnapshot

logger = logging.getLogger(__name__)
Json = dict[str, Any]

HEAL_AFTER = 0.1
HEAL_PATIENCE = 2.0
# By then the rows have what had been streamed before this process began to listen.
FLUSHED_AFTER = 0.5


class Texts:
    """`tell` is given frames for pages; `healed` what was read of a text from the rows instead of being heard."""

    def __init__(self, threads: Threads, tell: Callable[[Json], None], healed: Callable[[TextAppended], None]) -> None:
        self._threads = threads
        self._tell = tell
        self._healed_text = healed
        self._growing: dict[str, Growing] = {}
        self._healing: asyncio.Task[None] | None = None

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._growing

    def get(self, message_id: str) -> Growing | None:
        return self._growing.get(message_id)

    def close(self) -> None:
        if self._healing is not None:
            self._healing.cancel()
        for growing in self._growing.values():
            growing.forget()
        self._growing.clear()

    def begin(self, message_id: str, text: str) -> None:
        """Take the first words, as the event has them that tells of the message."""
        self._grow(message_id).mend(text)

    def learn(self, message_id: str, text: str) -> None:
        """Take a text as its row has it. If that is news, some that came before may still be on its way to the row."""
        if message_id not in self._growing:
            asyncio.get_running_loop().call_later(FLUSHED_AFTER, self._look, message_id)
        self._grow(message_id).mend(text)

    def look_at_quiet_ones(self) -> None:
        """Look once at the row of each text that did not grow since this was last asked: its last words may be lost."""
        for growing in self._growing.values():
            if growing.is_quiet():
                self._look(growing.id)

    def hear(self, event: TextAppended) -> None:
        """Take a piece of the live stream."""
        known = event.id in self._growing
        growing = self._grow(event.id)
        growing.missing |= not known  # its beginning has passed us by, or even its end
        growing.hear(event)
        if growing.missing:
            self._heal()

    def finish(self, message_id: str, text: str) -> bool:
        """Take the complete text; its last words may have passed us by. False: it must be drawn elsewhere, first."""
        growing = self._growing.get(message_id)
        if growing is not None and not growing.finish(text):
            return False
        self._growing.pop(message_id, None)
        return True

    def settle(self, message_id: str, blocks: Sequence[str]) -> None:
        """Take the blocks of a complete text that were drawn elsewhere."""
        growing = self._growing.pop(message_id, None)
        if growing is not None:
            growing.settle(blocks)

    def forget(self, message_id: str) -> None:
        growing = self._growing.pop(message_id, None)
        if growing is not None:
            growing.forget()

    async def healed_soon(self) -> None:
        """Wait for text that passed us by: without it a viewer would see the same gap again."""
        if self._healing is not None:
            await asyncio.wait([self._healing], timeout=HEAL_PATIENCE)

    def _grow(self, message_id: str) -> Growing:
        if message_id not in self._growing:
            self._growing[message_id] = Growing(message_id, "", self._tell)
        return self._growing[message_id]

    def _look(self, message_id: str) -> None:
        growing = self._growing.get(message_id)
        if growing is not None:
            growing.missing = True
            self._heal()

    def _missing(self) -> list[str]:
        return [growing.id for growing in self._growing.values() if growing.missing]

    def _heal(self) -> None:
        if self._healing is None:
            self._healing = asyncio.get_running_loop().create_task(self._heal_all())
            self._healing.add_done_callback(self._healed)

    def _healed(self, task: asyncio.Task[None]) -> None:
        self._healing = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:  # the next piece of text tries again
            logger.warning("Live text could not be completed: %r", error)
        elif self._missing():  # more passed us by since the task looked for the last time
            self._heal()

    async def _heal_all(self) -> None:
        """Read what has passed us by: the rows are at most a writer's interval behind the stream."""
        while missing := self._missing():
            for message_id in missing:
                self._mend(message_id, await self._threads.run(messages.message_snapshot, message_id))
            if self._missing():
                await asyncio.sleep(HEAL_AFTER)

    def _mend(self, message_id: str, message: MessageSnapshot | None) -> None:
        growing = self._growing.get(message_id)
        if growing is None:
            return
        if message is None or message.status != "streaming":
            self.forget(message_id)  # its end has been told, or is about to be
            return
        before = growing.length
        growing.mend(message.text)
        self._healed_text(TextAppended(message_id, before, growing.text_from(before), message.type == "reasoning"))
