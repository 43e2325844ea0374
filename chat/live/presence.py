"""Presence: the users who are online in a session, on all processes, those who are typing, and the frames (LIVE-05)."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from django.template.loader import get_template
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.messages import Json
from chat.bus import publisher
from chat.languages import in_language
from chat.live.editors import Edited, EditorTracker, editors_event, editors_frame
from chat.live.event_json import dump
from chat.live.event_types import PresenceEvent, PresentPerson
from chat.live.socket_queue import SocketQueue

# Seconds. Arrivals are sent together. A user who reloads the page within LEAVING seconds has not left.
ARRIVING = 0.2
LEAVING = 2.0
# Seconds. A hub repeats its message, because others may have missed it. The users of a hub that is silent for SILENT
# seconds have left.
REPEAT = 10.0
SILENT = 25.0
TYPING = 6.0
# The most avatars in the header, and the most users in the list. Further users are only counted.
MAX_FACES = 4
MAX_ON_PHONES = 2
MAX_LISTED = 20
# Pages name one or two users who are typing; for more they say that several are.
MAX_TYPING = 4
# With more users than are listed, a session waits this many seconds per user between two frames about who is online.
# Otherwise the data that its viewers receive would grow with the square of their number.
SECONDS_PER_USER = 0.01
MAX_PACE = 5.0


@dataclass(frozen=True, slots=True, order=True)
class Present:
    """A user who is online in the session."""

    user_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Presence:
    """The first users by their ids, the first users who are typing, and the number of all users."""

    listed: tuple[Present, ...] = ()
    typing: tuple[Present, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class RemotePresence:
    """The last message of another hub, and its time."""

    people: dict[int, str]
    at: float


class PresenceTracker:
    """Tracks the users of a session. `here` returns the names of the users in this process, by id.

    `changed` is called with the previous presence when `shown` changes. `edited` is called when the shown editors
    change.
    """

    def __init__(
        self,
        session_id: str,
        hub: str,
        here: Callable[[], dict[int, str]],
        changed: Callable[[Presence], None],
        edited: Callable[[], None],
    ) -> None:
        self.shown = Presence()
        self._session_id = session_id
        self._hub = hub
        self._here = here
        self._changed = changed
        self._mine: dict[int, str] = {}
        self._sent_at: float | None = None
        self._others: dict[str, RemotePresence] = {}
        self._typing: dict[int, asyncio.TimerHandle] = {}
        self._update_timer: asyncio.TimerHandle | None = None
        self._listed_at = -math.inf
        self._show_timer: asyncio.TimerHandle | None = None
        self.editors = EditorTracker(self._name_of, lambda: _pace(self.shown.count), self._send, edited)

    def viewer_arrived(self) -> None:
        """Handle a user who may be new in this process."""
        self._update_in(ARRIVING)

    def viewer_left(self, *, for_good: bool = False) -> None:
        """Handle a user who may have left this process. They may return, as after a reload, unless they lost access."""
        self._update_in(ARRIVING if for_good else LEAVING)

    def receive(self, hub: str, people: dict[int, str], *, asks: bool, editing: Iterable[Edited] = ()) -> None:
        """Handle a message of a hub.

        With `asks`, it has just started and needs an answer. `editing` are its open editors.
        """
        if hub == self._hub:
            return
        if people:
            self._others[hub] = RemotePresence(people, _now())
        else:
            self._others.pop(hub, None)
        self.editors.receive(hub, ((target, user_id) for target, user_id in editing))
        if asks and self._mine:
            self._send()
        self._show()

    def start_typing(self, user_id: int) -> None:
        """Show a user as typing until `stop_typing`, or for TYPING seconds after the last call."""
        self._forget_typing(user_id)
        self._typing[user_id] = asyncio.get_running_loop().call_later(TYPING, self.stop_typing, user_id)
        self._show()

    def stop_typing(self, user_id: int | None) -> None:
        """Show a user as typing no more, because the message was sent or the time is over."""
        if user_id in self._typing:
            self._forget_typing(user_id)
            self._show()

    def beat(self) -> None:
        """Send the message of this process again if it has changed or is due, and forget hubs that are silent."""
        is_due = self._mine and self._sent_at is not None and _now() - self._sent_at >= REPEAT
        if self.editors.renew() or is_due:
            self._send()
        silent = [hub for hub, remote in self._others.items() if _now() - remote.at > SILENT]
        for hub in silent:
            del self._others[hub]
            self.editors.receive(hub, ())
        self._show()

    def send_state(self, socket_queue: SocketQueue) -> None:
        """Send a viewer who has just caught up the users who are online, and those who are editing."""
        is_page = socket_queue.protocol == "page"
        if self.shown.count:
            make = presence_frame if is_page else presence_event
            socket_queue.put(dump(in_language(socket_queue.language, make, self.shown)))
        if self.editors.were_shown:
            show = editors_frame if is_page else editors_event
            socket_queue.put(dump(in_language(socket_queue.language, show, self.editors.shown)))

    def close(self) -> None:
        for user_id in list(self._typing):
            self._forget_typing(user_id)
        for timer in (self._update_timer, self._show_timer):
            if timer is not None:
                timer.cancel()
        self.editors.close()

    def _update_in(self, seconds: float) -> None:
        if self._update_timer is not None:
            if self._update_timer.when() <= _now() + seconds:
                return
            self._update_timer.cancel()
        self._update_timer = asyncio.get_running_loop().call_later(seconds, self._update)

    def _update(self) -> None:
        self._update_timer = None
        here, has_edits = self._here(), self.editors.renew()
        if here != self._mine or has_edits or self._sent_at is None:
            self._mine = here
            self._send()
        self._show()

    def _send(self) -> None:
        asks = self._sent_at is None
        self._sent_at = _now()
        edited = self.editors.mine
        # Users with editors come first, because only the first of many users are sent with their names.
        people = {user_id: self._mine[user_id] for _target, user_id in edited if user_id in self._mine} | self._mine
        publisher.notify_viewers(self._session_id, self._hub, people, asks=asks, editing=edited)

    def _show(self) -> None:
        """Show who is online now. In a large session, show only who is typing until the next list is due."""
        if self._show_timer is not None:
            self._show_timer.cancel()
            self._show_timer = None
        before, now = self.shown, self._present()
        if (now.listed, now.count) != (before.listed, before.count):
            if (due := self._listed_at + _pace(now.count)) > _now():
                self._show_timer = asyncio.get_running_loop().call_at(due, self._show)
                now = Presence(before.listed, now.typing, before.count)
            else:
                self._listed_at = _now()
        if now != before:
            self.shown = now
            self._changed(before)
        self.editors.show()

    def _present(self) -> Presence:
        names: dict[int, str] = {}
        for remote in self._others.values():
            names.update(remote.people)
        names.update(self._mine)
        first = heapq.nsmallest(MAX_LISTED, (Present(user_id, name) for user_id, name in names.items()))
        typing = (Present(user_id, names[user_id]) for user_id in self._typing if user_id in names)
        return Presence(tuple(sorted(first, key=_by_name)), tuple(islice(typing, MAX_TYPING)), len(names))

    def _name_of(self, user_id: int) -> str | None:
        if user_id in self._mine:
            return self._mine[user_id]
        return next((remote.people[user_id] for remote in self._others.values() if user_id in remote.people), None)

    def _forget_typing(self, user_id: int) -> None:
        if (timer := self._typing.pop(user_id, None)) is not None:
            timer.cancel()


def _pace(count: int) -> float:
    """Return the seconds between two frames about the users of a session, for their number."""
    return min(MAX_PACE, count * SECONDS_PER_USER) if count > MAX_LISTED else 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()


def _by_name(person: Present) -> tuple[str, int]:
    return person.name.casefold(), person.user_id


def presence_event(presence: Presence) -> PresenceEvent:
    """Return the event for clients of the JSON protocol."""
    typing = set(presence.typing)
    people = [
        PresentPerson(user_id=each.user_id, name=each.name, typing=each in typing)
        for each in sorted({*presence.listed, *typing}, key=_by_name)
    ]
    return PresenceEvent(type="presence", people=people, count=presence.count)


def presence_frame(presence: Presence) -> Json:
    """Return the frame for pages. Each page leaves out its own user's typing."""
    values = {
        "people": presence.listed,
        "faces": presence.listed[:MAX_FACES],
        "more": max(0, presence.count - MAX_FACES),
        "more_on_phones": max(0, presence.count - MAX_ON_PHONES),
        "unlisted": presence.count - len(presence.listed),
        "words": presence_text(presence),
    }
    html = get_template("chat/parts/presence.html").render(values)
    return {**typing_frame(presence), "op": "presence", "html": html}


def typing_frame(presence: Presence) -> Json:
    """Return the frame for pages if only the typing users have changed."""
    return {"op": "typing", "typing": [{"id": person.user_id, "name": person.name} for person in presence.typing]}


def presence_text(presence: Presence) -> str:
    """Return one sentence that names the users who are online."""
    names = dict(zip(("first", "second", "third"), (person.name for person in presence.listed), strict=False))
    match presence.count:
        case 0:
            return _("No one is here")
        case 1:
            return _("Online: %(first)s") % names
        case 2:
            return _("Online: %(first)s and %(second)s") % names
        case 3:
            return _("Online: %(first)s, %(second)s and %(third)s") % names
    rest = presence.count - 2
    words = ngettext(
        "Online: %(first)s, %(second)s and %(count)d other",
        "Online: %(first)s, %(second)s and %(count)d others",
        rest,
    )
    return words % {**names, "count": rest}
