"""Messages for users about an import: failures with their reasons, and differences from the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ServiceError
from chat.languages import listed
from chat.transfer.formats.parsed import Loss
from chat.transfer.reading.conversations import Problem


def no_conversations() -> ServiceError:
    words = _("No conversations found. Parley reads exports from Parley, ChatGPT, Claude, Open WebUI and LibreChat.")
    return ServiceError("nothing_known", words)


def manifest_only() -> ServiceError:
    """Return the error for the list of archives that comes with a large export from Claude."""
    words = _("This file only lists your export. Open the link to conversations-000.zip in it, and import that file.")
    return ServiceError("nothing_known", words)


def problem_message(problem: Problem) -> str:
    """Return a message with the name of a conversation that was not imported, and the reason."""
    name = problem.title or _("Conversation %(number)d") % {"number": problem.index + 1}
    words = _("“%(title)s” was not imported: %(reason)s")
    return words % {"title": name, "reason": _reason(problem)}


def _reason(problem: Problem) -> str:
    match problem.reason:
        case "doubled":
            return _("two items have the same id.")
        case "deep":
            return _("it is nested too deeply.")
        case "unknown":
            return _("it has no messages in a known format.")
        case "unreadable":
            return _("the file is damaged, or not JSON.")
        case "long":
            words = _("%(place)s is longer than %(limit)d characters.")
            return words % {"place": problem.place, "limit": settings.MAX_MESSAGE_CHARS}
        case _:
            return f"{problem.place}: {_rule(problem.kind)}"


def _rule(kind: str) -> str:
    """Return the rule that a value breaks, in words. `kind` is the type of the validation error."""
    match kind:
        case "missing":
            return _("it is missing.")
        case "unstorable":
            return _("it contains NUL characters or invalid Unicode.")
        case "too_deep" | "recursion_loop":
            return _("it is nested too deeply.")
        case "time":
            return _("it isn’t a time with an offset, from 1970 on.")
        case "too_long" | "string_too_long":
            return _("it is too long.")
        case "choice" | "literal_error":
            return _("its value is unknown.")
        case "greater_than_equal" | "less_than_equal" | "finite_number" | "not_a_number" | "too_short":
            return _("its value is out of range.")
        case _ if kind.endswith(("_type", "_parsing")):
            return _("its value is of the wrong type.")
    return _("its value is invalid.")


def loss_notes(left: Mapping[Loss, int], kinds: Sequence[str]) -> list[str]:
    """Return messages about lost content of another product's conversation. `kinds` are the names of unknown parts."""
    words = _file_notes(left) | {
        Loss.BRANCHES: ngettext(
            "%(count)s message of another branch was left out.",
            "%(count)s messages of other branches were left out.",
            left.get(Loss.BRANCHES, 0),
        ),
        Loss.CITATIONS: ngettext(
            "%(count)s citation was left out, because its source is not in the export.",
            "%(count)s citations were left out, because their sources are not in the export.",
            left.get(Loss.CITATIONS, 0),
        ),
        Loss.UNKNOWN: _unknown(left.get(Loss.UNKNOWN, 0), bool(kinds)),
        Loss.HIDDEN: ngettext(
            "%(count)s hidden message was left out.",
            "%(count)s hidden messages were left out.",
            left.get(Loss.HIDDEN, 0),
        ),
    }
    return [words[kind] % {"count": count, "kinds": listed(kinds)} for kind, count in left.items() if count]


def _file_notes(left: Mapping[Loss, int]) -> dict[Loss, str]:
    """Return the messages about files."""
    return {
        Loss.FILES: ngettext(
            "%(count)s file or image is not in the export. Its place is marked.",
            "%(count)s files or images are not in the export. Their places are marked.",
            left.get(Loss.FILES, 0),
        ),
        Loss.SURPLUS: ngettext(
            "%(count)s file was left out, because a message can have up to ten. Its place is marked.",
            "%(count)s files were left out, because a message can have up to ten. Their places are marked.",
            left.get(Loss.SURPLUS, 0),
        ),
        Loss.RECORDINGS: ngettext(
            "%(count)s recording was left out, because sessions cannot contain audio. Transcripts are kept.",
            "%(count)s recordings were left out, because sessions cannot contain audio. Transcripts are kept.",
            left.get(Loss.RECORDINGS, 0),
        ),
    }


def _unknown(count: int, is_named: bool) -> str:
    if not is_named:
        return ngettext(
            "%(count)s part of an unknown kind was left out.",
            "%(count)s parts of unknown kinds were left out.",
            count,
        )
    return ngettext(
        "%(count)s part of an unknown kind was left out: %(kinds)s.",
        "%(count)s parts of unknown kinds were left out: %(kinds)s.",
        count,
    )
