"""Who is in one session, as the hubs of all processes tell each other, and who is typing there (LIVE-05)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chat.bus import publisher

# Arrivals are sent together. A user who reloads the page has not left.
ARRIVING = 0.2
LEAVING = 2.0
# A hub repeats what it said, for those who missed it; one that has fallen silent has gone, and its people with it.
REPEAT = 10.0
SILENT = 25.0
TYPING = 6.0


@dataclass(frozen=True, slots=True)
class Present:
    """A user who is online in the session."""

    user_id: int
    name: str
    typing: bool


@dataclass(frozen=True, slots=True)
class RemotePresence:
    """What another hub said, and when."""

    people: dict[int, str]
    at: float


class PresenceTracker:
    """`here` gives the viewers of this process; `changed` is called when `shown` is not what it was."""

    def __init__(
        self, session_id: str, hub: str, here: Callable[[], dict[int, str]], changed: Callable[[], None]
    ) -> None:
        self.shown: list[Present] = []
        self._session_id = session_id
        self._hub = hub
        self._here = here
        self._changed = changed
        self._mine: dict[int, str] = {}
        self._said_at: float | None = None
        self._others: dict[str, RemotePresence] = {}
        self._typing: dict[int, asyncio.TimerHandle] = {}
        self._look_at: asyncio.TimerHandle | None = None

    def arrived(self) -> None:
        """Handle a user who may be new in this process."""
        self._look_in(ARRIVING)

    def left(self) -> None:
        """Handle a user who may have left this process. They may come back, as on a reload."""
        self._look_in(LEAVING)

    def hear(self, hub: str, people: dict[int, str], *, asks: bool) -> None:
        """Take the word of a hub; one that `asks` has just come."""
        if hub == self._hub:
            return
        if people:
            self._others[hub] = RemotePresence(people, _now())
        else:
            self._others.pop(hub, None)
        if asks and self._mine:
            self._say()
        self._show()

    def types(self, user_id: int) -> None:
        """Note that a user is typing, until they stop or are silent for a while."""
        self._forget_typing(user_id)
        self._typing[user_id] = asyncio.get_running_loop().call_later(TYPING, self.stops, user_id)
        self._show()

    def stops(self, user_id: int | None) -> None:
        """Their message is there, or nothing has come of it."""
        if user_id in self._typing:
            self._forget_typing(user_id)
            self._show()

    def beat(self) -> None:
        """Repeat what was said, and forget who has fallen silent."""
        if self._mine and self._said_at is not None and _now() - self._said_at >= REPEAT:
            self._say()
        silent = [hub for hub, said in self._others.items() if _now() - said.at > SILENT]
        for hub in silent:
            del self._others[hub]
        self._show()

    def close(self) -> None:
        for user_id in list(self._typing):
            self._forget_typing(user_id)
        if self._look_at is not None:
            self._look_at.cancel()

    def _look_in(self, seconds: float) -> None:
        if self._look_at is not None:
            if self._look_at.when() <= _now() + seconds:
                return
            self._look_at.cancel()
        self._look_at = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._look_at = None
        here = self._here()
        if here != self._mine or self._said_at is None:
            self._mine = here
            self._say()
        self._show()

    def _say(self) -> None:
        asks = self._said_at is None
        self._said_at = _now()
        publisher.people(self._session_id, self._hub, self._mine, asks=asks)

    def _show(self) -> None:
        present = self._present()
        if present != self.shown:
            self.shown = present
            self._changed()

    def _present(self) -> list[Present]:
        names: dict[int, str] = {}
        for said in self._others.values():
            names.update(said.people)
        names.update(self._mine)
        people = [Present(user_id, name, user_id in self._typing) for user_id, name in names.items()]
        return sorted(people, key=lambda person: (person.name.casefold(), person.user_id))

    def _forget_typing(self, user_id: int) -> None:
        if (timer := self._typing.pop(user_id, None)) is not None:
            timer.cancel()


def _now() -> float:
    return asyncio.get_running_loop().time()
