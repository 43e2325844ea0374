"""The history of a message or system prompt as the page lists it, and removed messages, grouped by removal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from chat.models import MessageRevision, User
from chat.queries.history import Change, History, Removed, Words
from chat.rendering.text.text_diff import Piece, pieces_for_display

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

Kind = MessageRevision.Kind
# The icon and label of each kind of change. A system prompt has only edits.
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
    """The difference of one part of a message. `name` is "" if the message has only one part."""

    name: StrPromise | str
    pieces: list[Piece]

    @property
    def is_cut(self) -> bool:
        return any(piece.left_out for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Version:
    """A change in the list. `parts` are the changed parts, and `number` is the version that the change made."""

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
class Removal:
    """Messages that one user removed, or replaced by a retry, in one step. Restoring `attempt` restores all of them.

    `was_queued`: the user removed another user's message from the queue.
    """

    user: User | None
    at: datetime
    comes_back: bool
    rows: list[Removed]
    attempt: str = ""

    @property
    def was_queued(self) -> bool:
        return self.rows[0].was_queued


def list_versions(history: History) -> list[Version]:
    """Return the changes of a history, newest first."""
    return [_version(change, history.now) for change in history.changes]


def first_version(history: History) -> Version:
    """Return the version before all changes."""
    parts = [Part(_PARTS.get(name, ""), pieces_for_display(text, text)) for name, text in history.first.items()]
    return Version("", "", None, None, parts, history.first_version, history.first == history.now)


def full_text(words: Words) -> str:
    """Join all parts of a version."""
    return "\n\n".join(words.values())


def last_writer(history: History) -> tuple[User | None, datetime | None]:
    """Return the author and time of the current version, or None for both if it was never changed."""
    last = next((change for change in history.changes if change.before != change.after), None)
    return (last.user, last.at) if last else (None, None)


def group_removals(rows: Sequence[Removed]) -> list[Removal]:
    """Group messages that were removed in one step, in the order of the conversation."""
    found = []
    for _when, group in groupby(rows, lambda row: (row.message.removed_at, row.comes_back)):
        together = list(group)
        last = together[0]
        found.append(Removal(last.user, last.at, last.comes_back, together[::-1], last.message.attempt))
    return found


def _version(change: Change, now: Words) -> Version:
    icon, done = _DONE.get(change.kind, ("pencil", _("Edited")))
    changed = [name for name in change.after if change.before.get(name, "") != change.after[name]]
    parts = [
        Part(_PARTS.get(name, ""), pieces_for_display(change.before.get(name, ""), change.after[name]))
        for name in changed
    ]
    is_now = change.after == now
    return Version(icon, done, change.user, change.at, parts, change.made, is_now, change.suggested_by)
