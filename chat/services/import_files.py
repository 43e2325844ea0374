"""Files of conversations that people bring: what is in them, and the sessions that are made of what they choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore
from typing import IO, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pydantic import ValidationError

from chat.imports.document import Document
from chat.imports.found import Found, Left, Source
from chat.imports.recognising import recognised
from chat.imports.renaming import DoubledId
from chat.imports.values import TooMuch, Unreadable, values_in
from chat.models import Session, User, Workspace
from chat.services.errors import Refused
from chat.services.importing import import_document
from chat.services.limits import limited

# What one file may bring at a time.
MOST_AT_ONCE = 100
# What of a file is listed to be chosen from.
MOST_LISTED = 5_000
# A large file takes hundreds of megabytes to read: one at a time, the others wait.
_reading = BoundedSemaphore(1)


class TooLarge(Refused):
    CODE: ClassVar[str] = "too_large"

    def __init__(self) -> None:
        words = _("The file is too large; the limit is %(limit)d MB.")
        super().__init__(self.CODE, words % {"limit": settings.MAX_IMPORT_MB})


@dataclass(frozen=True, slots=True)
class Outline:
    """One conversation in a file. `began` is ISO 8601 or ""; `count` its messages."""

    index: int
    source: Source
    title: str
    began: str
    count: int


@dataclass(frozen=True, slots=True)
class Brought:
    """A session that has come in; `notes` say in words what of it did not, or is not as it was."""

    session: Session
    messages: int
    kept_ids: bool
    notes: list[str]


@dataclass(slots=True)
class Outcome:
    """What became of a file: the sessions, and in words what could not be brought in."""

    brought: list[Brought] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def limit_bytes() -> int:
    """The size of the largest file that is taken, unpacked."""
    megabytes: int = settings.MAX_IMPORT_MB
    return megabytes * 1024 * 1024


def contents(file: IO[bytes]) -> list[Outline]:
    """List the conversations in a file. Raises Refused: it is too large, or nothing that can be read."""
    with _reading:
        found = [Outline(index, each.source, each.title, each.began, each.count) for index, each in _found(file)]
    if not found:
        raise _nothing_known()
    return found[:MOST_LISTED]


@limited("imports", by="owner")
def import_file(
    *,
    owner: User,
    file: IO[bytes],
    workspace: Workspace | None = None,
    chosen: Sequence[int] | None = None,
    keep_ids: bool = True,
) -> Outcome:
    """Bring in conversations of a file: those `chosen` by their indexes, or all. Each comes in whole or not at all.

    `workspace` has been fetched for the owner; without one it is that which they are in. Raises Refused: nothing can be
    read, nothing was chosen, or too much at once.
    """
    outcome = Outcome()
    bring = partial(_bring, owner, workspace, keep_ids=keep_ids)
    try:
        with _reading:
            for index, each in _chosen(file, chosen):
                if len(outcome.brought) + len(outcome.problems) == MOST_AT_ONCE:
                    outcome.problems.append(_too_many())
                    break
                bring(index, each, outcome)
    except Refused as refused:  # a file that breaks off: what has come in is told all the same
        if not outcome.brought:
            raise
        outcome.problems.append(refused.message)
    if not outcome.brought:
        raise Refused("nothing_imported", "\n".join(outcome.problems)) if outcome.problems else _nothing_known()
    return outcome


def _chosen(file: IO[bytes], chosen: Sequence[int] | None) -> Iterator[tuple[int, Found]]:
    wanted = None if chosen is None else set(chosen)
    if wanted is not None and len(wanted) > MOST_AT_ONCE:
        raise Refused("too_many", _too_many())
    return ((index, each) for index, each in _found(file) if wanted is None or index in wanted)


def _found(file: IO[bytes]) -> Iterator[tuple[int, Found]]:
    try:
        for index, value in enumerate(values_in(file, limit_bytes())):
            if (found := recognised(value)) is not None:
                yield index, found
    except TooMuch:
        raise TooLarge from None
    except Unreadable:
        words = _("This is no file of conversations: neither JSON nor a ZIP archive with JSON in it.")
        raise Refused("unreadable", words) from None


def _bring(
    owner: User, workspace: Workspace | None, index: int, found: Found, outcome: Outcome, *, keep_ids: bool
) -> None:
    name = found.title or _("Conversation %(number)d") % {"number": index + 1}
    try:
        document = Document.model_validate(found.document)
        is_own = found.source != Source.PARLEY
        made = import_document(owner=owner, workspace=workspace, document=document, is_own=is_own, keep_ids=keep_ids)
    except (ValidationError, DoubledId, RecursionError) as error:
        words = _("“%(title)s” was not imported: %(reason)s")
        outcome.problems.append(words % {"title": name, "reason": _reason(error)})
        return
    outcome.brought.append(Brought(made.session, made.messages, made.kept_ids, [*made.notes, *_left(found)]))


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}"[:300]
    if isinstance(error, DoubledId):
        return _("two things in it have the same id.")
    return _("it is nested too deeply.")


def _left(found: Found) -> list[str]:
    """What other programs' conversations have that sessions here do not."""
    words = {
        Left.BRANCHES: ngettext(
            "%(count)s message of another branch was left out.",
            "%(count)s messages of other branches were left out.",
            found.left[Left.BRANCHES],
        ),
        Left.FILES: ngettext(
            "%(count)s file or picture is not in the export. Its place is marked.",
            "%(count)s files or pictures are not in the export. Their places are marked.",
            found.left[Left.FILES],
        ),
        Left.UNKNOWN: ngettext(
            "%(count)s part is of a kind that is not known here, and was left out.",
            "%(count)s parts are of kinds that are not known here, and were left out.",
            found.left[Left.UNKNOWN],
        ),
        Left.HIDDEN: ngettext(
            "%(count)s hidden message was left out.",
            "%(count)s hidden messages were left out.",
            found.left[Left.HIDDEN],
        ),
    }
    return [words[kind] % {"count": count} for kind, count in found.left.items() if count]


def _nothing_known() -> Refused:
    words = _("There is no conversation in this file that Parley knows: it reads its own, ChatGPT's and Claude's.")
    return Refused("nothing_known", words)


def _too_many() -> str:
    words = ngettext(
        "%(count)s conversation is imported at a time. Choose the others next.",
        "%(count)s conversations are imported at a time. Choose the others next.",
        MOST_AT_ONCE,
    )
    return words % {"count": MOST_AT_ONCE}
