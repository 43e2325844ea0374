"""Read the notes that agents get."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, Q

from chat.access import sharing_workspace
from chat.models import MemoryNote, Session, Share

# The key of `Session.config` that is False if the session gets no notes.
SWITCH = "memory"
HEADING = (
    "What people have asked to remember from earlier conversations. Use it where it helps; newer words of the "
    "conversation are more important."
)
HEADINGS = {True: "About the person you talk to:", False: "About the team:"}


def uses_notes(session: Session) -> bool:
    """Return whether the session's agent gets notes. It does unless users have turned them off."""
    return session.config_values.get(SWITCH) is not False


def notes_in(session: Session) -> list[MemoryNote]:
    """Return the notes that the session's agent gets, in a stable order: those of the owner before the workspace's.

    A user's notes are for sessions that no one else can read, because the agent's answers and the page with the context
    would show them to others. A workspace's notes are for sessions of its members.
    """
    if not uses_notes(session):
        return []
    whose = Q(workspace__in=sharing_workspace(session), accepted=True)
    if not session.workspace_role:
        whose |= Q(~Exists(Share.objects.filter(session=session.pk)), user=session.owner_id)
    found = MemoryNote.objects.filter(whose, removed_at__isnull=True).order_by("pk")
    return sorted(found, key=lambda note: note.user_id is None)


def with_notes(prompt: str, notes: Sequence[MemoryNote]) -> str:
    """Return a system prompt followed by notes, so that the text before the notes stays the same for caches."""
    if not notes:
        return prompt
    parts = [prompt, HEADING] if prompt else [HEADING]
    for is_personal, heading in HEADINGS.items():
        lines = [f"- {' '.join(note.text.split())}" for note in notes if (note.user_id is not None) == is_personal]
        parts += ["\n".join([heading, *lines])] if lines else []
    return "\n\n".join(parts)


def kept_and_removed(**whose: object) -> tuple[list[MemoryNote], list[MemoryNote]]:
    """Return the notes of a user or a workspace, and the removed ones that can be restored, the last removed first."""
    notes = list(MemoryNote.objects.filter(**whose).select_related("made_by", "session"))
    removed = [note for note in notes if note.removed_at is not None]
    kept = [note for note in notes if note.removed_at is None]
    return kept, sorted(removed, key=lambda note: (note.removed_at, note.pk), reverse=True)
