"""Open editors: the users, in all processes, who are editing a message of a session, and the frames (LIVE-08)."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents.messages import Json
from chat.live.event_types import Editor, EditorsEvent
from chat.live.subscriber import Subscriber
from chat.models import SessionRole

# Seconds. An editor that is not renewed for this long counts as closed. Browsers let hidden pages renew once a minute.
EDITING = 90.0
# Seconds. Editors that open and close within this time are sent together.
TOGETHER = 0.2
# The most editors that count: of one socket, in the report of one process, and in a frame for viewers.
MAX_OF_SOCKET = 10
MAX_REPORTED = 50
MAX_SHOWN = 40
# The most editors of one message in a frame. Pages name one or two other users, and say that several are editing.
MAX_OF_MESSAGE = 4

# The id of a message or "system_prompt", and the user who is editing it.
Edited = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class OpenEditor:
    """A user who has the editor of a message open. `target` is the message's id, or "system_prompt"."""

    target: str
    user_id: int
    name: str


class EditorTracker:
    """Tracks the open editors of a session: `mine` are those of this process, `shown` are those that viewers were sent.

    `name_of` returns the name of a user who is online, `pace` the seconds between two changes for viewers. `report` is
    called when `mine` changes, and `changed` when `shown` changes.
    """

    def __init__(
        self,
        name_of: Callable[[int], str | None],
        pace: Callable[[], float],
        report: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.mine: tuple[Edited, ...] = ()
        self.shown: tuple[OpenEditor, ...] = ()
        # Whether viewers have ever seen an editor. If so, they have to learn that none is open any more.
        self.were_shown = False
        self._name_of = name_of
        self._pace = pace
        self._report = report
        self._changed = changed
        # The times at which the editors of each socket end unless they are renewed.
        self._ends: dict[Subscriber, dict[str, float]] = {}
        self._others: dict[str, tuple[Edited, ...]] = {}
        self._shown_at = -math.inf
        self._report_timer: asyncio.TimerHandle | None = None
        self._show_timer: asyncio.TimerHandle | None = None

    def note(self, subscriber: Subscriber, target: str, *, is_open: bool) -> None:
        """Note that a socket has opened or closed an editor. If a socket has too many open, drop the oldest one."""
        ends = self._ends.setdefault(subscriber, {})
        ends.pop(target, None)
        if is_open:
            ends[target] = _now() + EDITING
        if len(ends) > MAX_OF_SOCKET:
            del ends[next(iter(ends))]
        self._report_soon()

    def close_removed(self, target: str) -> None:
        """Close all editors of a message that was removed."""
        if any(each.target == target for each in self.shown) or any(target in ends for ends in self._ends.values()):
            for ends in self._ends.values():
                ends.pop(target, None)
            self._others = {hub: _without(target, edited) for hub, edited in self._others.items()}
            self._report_soon()
            self.show()

    def end_all(self) -> None:
        """Close all editors, because no user may edit the session any more."""
        self._ends.clear()
        self._others.clear()
        self._report_soon()

    def receive(self, hub: str, edited: Iterable[Edited]) -> None:
        """Take the editors that another hub reports. An empty list means that the hub has none, or that it has left."""
        self._others.pop(hub, None)
        if reported := tuple(edited):
            self._others[hub] = reported

    def renew(self) -> bool:
        """Update the open editors of this process, and return whether they have changed.

        Drop the editors of closed sockets, and those of users who have become viewers.
        """
        now = _now()
        for subscriber, ends in list(self._ends.items()):
            if subscriber.closed or subscriber.role == SessionRole.VIEWER:
                ends.clear()
            for target in [target for target, end in ends.items() if end <= now]:
                del ends[target]
            if not ends:
                del self._ends[subscriber]
        edited = {(target, subscriber.user_id) for subscriber, ends in self._ends.items() for target in ends}
        before, self.mine = self.mine, tuple(sorted(edited)[:MAX_REPORTED])
        return self.mine != before

    def show(self) -> None:
        """Show the open editors to viewers. If the last change was shown a moment ago, do so later."""
        if self._show_timer is not None:
            self._show_timer.cancel()
            self._show_timer = None
        now = self._open_editors()
        if now == self.shown:
            return
        if (due := self._shown_at + self._pace()) > _now():
            self._show_timer = asyncio.get_running_loop().call_at(due, self.show)
            return
        self._shown_at = _now()
        self.shown, self.were_shown = now, True
        self._changed()

    def close(self) -> None:
        for timer in (self._report_timer, self._show_timer):
            if timer is not None:
                timer.cancel()

    def _report_soon(self) -> None:
        if self._report_timer is None:
            self._report_timer = asyncio.get_running_loop().call_later(TOGETHER, self._report_now)

    def _report_now(self) -> None:
        self._report_timer = None
        if self.renew():
            self._report()
        self.show()

    def _open_editors(self) -> tuple[OpenEditor, ...]:
        edited = sorted({*self.mine, *(each for reported in self._others.values() for each in reported)})
        named = ((target, user_id, self._name_of(user_id)) for target, user_id in edited)
        shown, count = list[OpenEditor](), Counter[str]()
        for target, user_id, name in named:
            if name is not None and count[target] < MAX_OF_MESSAGE:
                count[target] += 1
                shown.append(OpenEditor(target, user_id, name))
        return tuple(shown[:MAX_SHOWN])


def _without(target: str, edited: tuple[Edited, ...]) -> tuple[Edited, ...]:
    return tuple(each for each in edited if each[0] != target)


def _now() -> float:
    return asyncio.get_running_loop().time()


def editors_event(editors: Sequence[OpenEditor]) -> EditorsEvent:
    """Return the event for clients of the JSON protocol."""
    listed = [Editor(id=each.target, user_id=each.user_id, name=each.name) for each in editors]
    return EditorsEvent(type="editing", editors=listed)


def editors_frame(editors: Sequence[OpenEditor]) -> Json:
    """Return the frame for pages. Each page leaves out its own user.

    The frame includes the sentences, so that a page does not load them until a user edits something.
    """
    words = editing_words() if editors else {}
    return {"op": "editing", "editors": editors_event(editors)["editors"], "words": words}


def editing_words() -> dict[str, list[str]]:
    """Return sentences about one, two and more users: `seen` beside the message, `shared` in another user's editor."""
    return {
        "seen": [
            _("{name} is editing…"),
            _("{name} and {other} are editing…"),
            _("Several people are editing…"),
        ],
        "shared": [
            _("{name} is editing this too. If they save first, you can compare both versions before you save."),
            _(
                "{name} and {other} are editing this too. "
                "If one of them saves first, you can compare both versions before you save."
            ),
            _(
                "Several people are editing this too. "
                "If one of them saves first, you can compare both versions before you save."
            ),
        ],
    }
