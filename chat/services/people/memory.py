"""Add, change, remove and restore the notes for agents, of a user or of a workspace."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.questions import MAX_NOTE_LENGTH
from chat.access import may
from chat.errors import Forbidden, Invalid, ServiceError
from chat.models import MemoryNote, Session, User, Workspace
from chat.permissions import Permission
from chat.services.messages.validation import validate_characters

# The most notes of a user, and of a workspace. There is a limit because all notes are in each request.
MAX_NOTES = 50
# The most proposals of one member that wait in a workspace. They do not count towards its notes.
MAX_PROPOSALS = 10
# The most removed notes that can be restored, and the most removed proposals.
MAX_REMOVED = 20


@transaction.atomic
def keep_mine(*, user: User, text: str, session: Session | None = None) -> MemoryNote:
    """Add a note of a user. Raise Invalid for an empty or long text, or too many notes."""
    User.objects.select_for_update().get(pk=user.pk)
    _require_room(user=user)
    return MemoryNote.objects.create(user=user, text=_validate(text), session=session, made_by=user)


@transaction.atomic
def keep_ours(*, author: User, workspace_id: int, text: str, session: Session | None = None) -> MemoryNote:
    """Add a note of a workspace. From members who do not manage its notes, it is a proposal.

    Raise Forbidden for other users, and Invalid as `keep_mine` does.
    """
    if not may(author, Permission.SEE_MEMBERS, workspace_id):
        raise Forbidden(_("Only members of the workspace can add notes for all of it."))
    Workspace.objects.select_for_update().get(pk=workspace_id)
    accepted = may(author, Permission.MANAGE_NOTES, workspace_id)
    if accepted:
        _require_room(workspace=workspace_id)
    else:
        _require_room_for_proposal(author, workspace_id)
    return MemoryNote.objects.create(
        workspace_id=workspace_id, text=_validate(text), session=session, made_by=author, accepted=accepted
    )


@transaction.atomic
def change_mine(*, user: User, note_id: int, act: str, text: str = "", seen: str | None = None) -> MemoryNote:
    """Edit, remove or restore a user's own note. `act` is "edit", "remove" or "restore".

    Raise ServiceError, "stale" with the `current` text if an edit is based on the text `seen` and that has changed.
    """
    note = MemoryNote.objects.select_for_update().filter(pk=note_id, user=user).first()
    return _apply(note, act, text, seen, user=user)


@transaction.atomic
def change_ours(
    *, author: User, workspace_id: int, note_id: int, act: str, text: str = "", seen: str | None = None
) -> MemoryNote:
    """Accept, edit, remove or restore a note of a workspace. Members may remove their own proposals.

    `act` is "accept", "edit", "remove" or "restore". Raise Forbidden for other users, and ServiceError, such as Invalid
    if there are too many notes to accept or restore one, or "stale" as `change_mine` does.
    """
    Workspace.objects.select_for_update().filter(pk=workspace_id).first()
    note = MemoryNote.objects.select_for_update().filter(pk=note_id, workspace=workspace_id).first()
    is_own_proposal = note is not None and not note.accepted and note.made_by_id == author.pk
    is_in = may(author, Permission.SEE_MEMBERS, workspace_id)
    may_withdraw = is_in and is_own_proposal and act == "remove"
    if not may(author, Permission.MANAGE_NOTES, workspace_id) and not may_withdraw:
        raise Forbidden(_("Only owners and admins of the workspace can do that."))
    return _apply(note, act, text, seen, workspace=workspace_id)


def _apply(note: MemoryNote | None, act: str, text: str, seen: str | None, **whose: Any) -> MemoryNote:
    if note is None:
        raise ServiceError("no_such_note", _("This note no longer exists."))
    if act in ("edit", "accept") and note.removed_at is not None:
        raise ServiceError("no_such_note", _("This note was removed in the meantime. Restore it first."))
    if act in ("edit", "accept") and seen not in (None, note.text):
        words = _("This note has changed since you opened the page. Save again to replace the saved version.")
        raise ServiceError("stale", words, current=note.text)
    match act:
        case "edit":
            note.text = _validate(text)
        case "accept":
            if not note.accepted and note.removed_at is None:
                _require_room(**whose)
            note.text, note.accepted = _validate(text) if text else note.text, True
        case "remove":
            note.removed_at = note.removed_at or timezone.now()
        case "restore":
            if note.removed_at is not None and note.accepted:
                _require_room(**whose)
            note.removed_at = None
        case _:
            raise Invalid(_("Choose what to do with the note."))
    note.save()
    if act == "remove":
        removed = MemoryNote.objects.filter(removed_at__isnull=False, accepted=note.accepted, **whose)
        removed = removed.order_by("-removed_at")
        MemoryNote.objects.filter(pk__in=list(removed.values_list("pk", flat=True)[MAX_REMOVED:])).delete()
    return note


def _validate(text: str) -> str:
    text = validate_characters(" ".join(text.split()))
    if not text:
        raise Invalid(_("Write the note."))
    if len(text) > MAX_NOTE_LENGTH:
        raise Invalid(_("A note can have up to %(count)d characters.") % {"count": MAX_NOTE_LENGTH})
    return text


def _require_room(**whose: Any) -> None:
    if MemoryNote.objects.filter(removed_at__isnull=True, accepted=True, **whose).count() >= MAX_NOTES:
        raise Invalid(_("There are %(count)d notes already. Remove one first.") % {"count": MAX_NOTES})


def _require_room_for_proposal(author: User, workspace_id: int) -> None:
    waiting = MemoryNote.objects.filter(removed_at__isnull=True, accepted=False, workspace=workspace_id)
    if waiting.filter(made_by=author).count() >= MAX_PROPOSALS:
        words = _("%(count)d notes that you have proposed wait for an owner or admin. Withdraw one first.")
        raise Invalid(words % {"count": MAX_PROPOSALS})
