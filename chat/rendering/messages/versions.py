"""Histories as people read them: which version came when, by whom, what differs; and what was removed, by act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from chat.models import MessageRevision, User
from chat.queries.history import Change, History, Removed, Words
from chat.rendering.text.text_diff import Piece, shown

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

Kind = MessageRevision.Kind
# The icon and the words of what was done; a system prompt is edited.
_DONE: dict[str, tuple[str, StrPromise]] = {
    Kind.ADD: ("plus", _("Added")),
    Kind.EDIT: ("pencil", _("Edited")),
    Kind.EXCLUDE: ("eye-off", _("Excluded from context")),
    Kind.INCLUDE: ("eye", _("Included in context")),
    Kind.REMOVE: ("trash-2", _("Removed")),
    Kind.RESTORE: ("archive-restore", _("Restored")),
    Kind.RETRY: ("rotate-ccw", _("Replaced by a retry")),
    Kind.WITHDRAW: ("x", _("Removed from the queue")),
}
_PARTS = {"arguments": _("Arguments"), "result": _("Result")}


@dataclass(frozen=True, slots=True)
class Part:
    """How a part of a message changed, or what it was; `name` is "" where it is the only one."""

    name: StrPromise | str
    pieces: list[Piece]

    @property
    def is_cut(self) -> bool:
        return any(piece.left_out for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Version:
    """A change as it is listed. `parts` are those that it changed; `number` names the version that it made."""

    icon: str
    done: StrPromise | str
    user: User | None
    at: datetime | None
    parts: list[Part]
    number: int
    is_now: bool
    suggested_by: str = ""

    @property
    def is_cut(self) -> bool:
        return any(part.is_cut for part in self.parts)


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody removed, or replaced by a retry, at once; `attempt` restores all of it."""

    user: User | None
    at: datetime
    comes_back: bool
    rows: list[Removed]
    attempt: str = ""


def told(history: History) -> list[Version]:
    """List a history's changes, the newest first."""
    return [_version(change, history.now) for change in history.changes]


def first(history: History) -> Version:
    """What there was before all changes: nobody's doing."""
    parts = [Part(_PARTS.get(name, ""), shown(text, text)) for name, text in history.first.items()]
    return Version("", "", None, None, parts, history.first_version, history.first == history.now)


def in_full(words: Words) -> str:
    """All that a version says, as one text."""
    return "\n\n".join(words.values())


def last_writer(history: History) -> tuple[User | None, datetime | None]:
    """Who wrote what is there now, and when; nobody where it has never been changed."""
    last = next((change for change in history.changes if change.before != change.after), None)
    return (last.user, last.at) if last else (None, None)


def acts(rows: Sequence[Removed]) -> list[Act]:
    """Put together what went at once, in the order in which it stood."""
    found = []
    for _when, group in groupby(rows, lambda row: (row.message.removed_at, row.comes_back)):
        together = list(group)
        last = together[0]
        found.append(Act(last.user, last.at, last.comes_back, together[::-1], last.message.attempt))
    return found


def _version(change: Change, now: Words) -> Version:
    icon, done = _DONE.get(change.kind, ("pencil", _("Edited")))
    changed = [name for name in change.after if change.before.get(name, "") != change.after[name]]
    parts = [Part(_PARTS.get(name, ""), shown(change.before.get(name, ""), change.after[name])) for name in changed]
    is_now = change.after == now
    return Version(icon, done, change.user, change.at, parts, change.made, is_now, change.suggested_by)
