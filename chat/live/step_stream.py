"""A session's steps as server-sent events, both past and future ones (LIVE-03, docs/protocol.md)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from django.db import DatabaseError, InterfaceError

from agents.messages import Json
from chat.errors import NoSuchSession
from chat.live.credentials import Credential
from chat.live.event_json import dump
from chat.live.subscriber import Reader
from chat.models import SessionRole, User
from chat.projections.steps import Step, WrittenCall
from chat.queries.steps import StepChanges

logger = logging.getLogger(__name__)

HEARTBEAT = 15.0
# Milliseconds after which a client whose stream has ended may reconnect.
RETRY = 1000
OPENING = f"retry: {RETRY}\n\n"
BEAT = ": still here\n\n"
BYE = ": that is all\n\n"
# In characters. Steps are joined up to this size.
MAX_PIECE_SIZE = 64_000
# The most steps, and the most characters of them, that are written before other coroutines get their turn.
AT_ONCE = 50
CHARS_AT_ONCE = 500_000


class Source(Protocol):
    """The part of a session's feed that a stream needs."""

    async def wait_until_subscribed(self) -> None: ...
    async def steps_since(self, user: User, since: int) -> StepChanges: ...
    def text_from(self, message_id: str, known: int) -> str: ...


class StepStream(Reader):
    """One client of the steps. It is notified of changes, and reads what it lacks whenever the client can take more.

    So nothing is queued for a slow client: it gets more at a time, less often. `since` is the revision that the client
    has; 0 means none. An `id:` line is the revision that a client reaches when it has applied everything up to that
    event. `name` is the user's name in the session (`sender_in`), which other users see.
    """

    def __init__(
        self,
        user: User,
        since: int,
        role: SessionRole | None = None,
        credential: Credential | None = None,
        *,
        name: str,
    ) -> None:
        super().__init__("steps", user_id=user.pk, credential=credential, name=name, role=role)
        self._user = user
        self._since = since
        self._read_to, self._reached = -1, 0
        self._news = asyncio.Event()
        # A hash of each step that the client has. For streaming steps, the message and the length of its text.
        self._sent: dict[str, int] = {}
        self._growing: dict[str, tuple[str, int]] = {}
        # Calls whose arguments are being written, by message, with the length of the arguments that the client has.
        self._written: dict[str, tuple[WrittenCall, int]] = {}
        self._knows_all = not since

    def notify(self, revision: int | None = None) -> None:
        """Wake the stream: a revision has been reached, or a text has grown (None)."""
        if revision is not None:
            self._reached = max(self._reached, revision)
        self._news.set()

    def close(self, code: int) -> None:
        self.leave()
        self._news.set()

    async def follow(self, source: Source) -> AsyncIterator[str]:
        """Yield the changes since the client's revision, then new changes, until the stream is closed."""
        yield OPENING
        await source.wait_until_subscribed()
        while not self.closed:
            self._news.clear()
            for piece in [*await self._catch_up(source), *self._growth(source)]:
                if self.closed:
                    break
                yield piece
            if not await self._wait_for_changes():
                yield BEAT
        yield BYE

    async def _wait_for_changes(self) -> bool:
        """Wait for changes; return False if there were none for HEARTBEAT seconds."""
        try:
            async with asyncio.timeout(HEARTBEAT):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _catch_up(self, source: Source) -> list[str]:
        if self._reached <= self._read_to:
            return []
        try:
            changes = await source.steps_since(self._user, self._since)
        except NoSuchSession:
            self.leave()
            return []
        except (DatabaseError, InterfaceError) as error:  # the client reconnects
            logger.warning("Closing a step stream, because the database is not available: %s", error)
            self.leave()
            return []
        updates: list[str] = []
        steps = chars = 0
        for update in self._changed_steps(changes, source):
            updates.append(update)
            steps, chars = steps + 1, chars + len(update)
            if steps >= AT_ONCE or chars >= CHARS_AT_ONCE:
                steps = chars = 0
                await asyncio.sleep(0)  # a long history does not hold up other connections
        return list(_pieces(updates, changes.revision))

    def _changed_steps(self, changes: StepChanges, source: Source) -> Iterator[str]:
        """Yield the steps that differ from those that the client has."""
        for step_id in changes.gone:
            if self._sent.pop(step_id, None) is not None or not self._knows_all:
                yield _update(step_id, snapshot={"id": step_id, "removed": True})
        self._growing = {id: known for id, known in self._growing.items() if id not in changes.gone}
        for step in changes.steps:
            yield from self._snapshot(step, changes, source)
        calls = {call.message_id: call for call in changes.written}
        self._written = {id: known for id, known in self._written.items() if id in calls}
        for call in calls.values():
            if call.message_id not in self._written:
                self._written[call.message_id] = call, len(call.text)
                function = {"name": call.name, "arguments": call.text}
                yield _update(call.step_id, delta=_call_delta(call, {"type": "function", "function": function}))
        self._since = self._read_to = changes.revision

    def _snapshot(self, step: Step, changes: StepChanges, source: Source) -> Iterator[str]:
        """Yield a step unless the client has it. `_growth` sends text that was only appended."""
        content = step.content or ""
        message_id, text = changes.growing.get(step.id, ("", ""))
        known = replace(step, content=content.removesuffix(text)) if message_id else step
        mark = hash((message_id, dump(known.to_json())))
        if self._sent.get(step.id) == mark:
            return
        self._sent[step.id] = mark
        self._growing.pop(step.id, None)
        if message_id:
            more = source.text_from(message_id, len(text))
            step = replace(step, content=content + more)
            self._growing[step.id] = message_id, len(text) + len(more)
        yield _update(step.id, snapshot=step.to_json())

    def _growth(self, source: Source) -> list[str]:
        """Return events with the text that was appended to steps and calls."""
        pieces = []
        for step_id, (message_id, known) in self._growing.items():
            if more := source.text_from(message_id, known):
                self._growing[step_id] = message_id, known + len(more)
                pieces.append(_event(_update(step_id, delta={"content": more})))
        for message_id, (call, known) in self._written.items():
            if more := source.text_from(message_id, known):
                self._written[message_id] = call, known + len(more)
                delta = _call_delta(call, {"function": {"arguments": more}})
                pieces.append(_event(_update(call.step_id, delta=delta)))
        return pieces


def _update(step_id: str, **what: Json) -> str:
    return dump({"type": "step_update", "id": step_id, **what})


def _call_delta(call: WrittenCall, more: Json) -> Json:
    """Return more of a call in the form of OpenAI's deltas, which name a call by its index in the step."""
    return {"tool_calls": [{"index": call.index, **more}]}


def _event(data: str) -> str:
    return f"data: {data}\n\n"


def _pieces(data: Iterable[str], revision: int) -> Iterator[str]:
    """Join events into pieces. The last event has the revision; without events, the revision is sent alone."""
    events = list(map(_event, data)) or ["\n"]
    events[-1] = f"id: {revision}\n{events[-1]}"
    piece = ""
    for event in events:
        if piece and len(piece) + len(event) > MAX_PIECE_SIZE:
            yield piece
            piece = ""
        piece += event
    yield piece
