"""The audit log: what staff have done with sessions, and which ones of others they have read."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat.access import role_in
from chat.models import ChatMessage, Session, User
from chat.services.people.security_log import Kind, record

# Beside Django's own kinds (1 to 3).
READ = 4
# Going from page to page of a session is one reading of it, for so long.
OPENING = timedelta(minutes=30)
# The words are translated where they are shown.
STOPPED = _("Stopped the agent.")
ARCHIVED = _("Archived the session.")
RESTORED = _("Restored the session from the archive.")
UNDELETED = _("Restored the deleted session.")
EXPORTED_JSON = _("Exported the session as JSON.")
EXPORTED_MARKDOWN = _("Exported the session as Markdown.")
ERASED = _("Erased the session for good.")
FORKED = _("Forked the session.")
WAS_READ = _("Read the session.")


def note(user: User, session: Session, message: str | list[dict[str, Any]], flag: int = CHANGE) -> None:
    """Log an act in its transaction. The session is named by its id: its title may be made of what was said in it."""
    kind = ContentType.objects.get_for_model(Session)
    said = message if isinstance(message, str) else json.dumps(message)
    LogEntry.objects.create(
        user=user,
        content_type=kind,
        object_id=session.pk,
        object_repr=session.pk,
        action_flag=flag,
        change_message=said,
    )


def note_fields(user: User, session: Session, fields: list[str]) -> None:
    """Write down which fields of a session were changed, by their English names."""
    note(user, session, [{"changed": {"fields": fields}}])


def note_message(user: User, row: ChatMessage, deed: str, fields: list[str] | None = None) -> None:
    """Write down what became of a message: "added", "changed" or "deleted", as Django tells of it."""
    said = {"name": _("message"), "object": name_of(row), **({"fields": fields} if fields else {})}
    note(user, row.session, [{deed: said}])


def note_reading(user: User, session: Session, *, opens: bool) -> None:
    """Write down that somebody reads a session in which they have no share, once per opening.

    `opens`: they come to it anew, rather than go from one page of it to the next.
    """
    if role_in(user, session) is not None:
        return
    kind = ContentType.objects.get_for_model(Session)
    read = LogEntry.objects.filter(user=user, content_type=kind, object_id=session.pk, action_flag=READ)
    if opens or not read.filter(action_time__gte=timezone.now() - OPENING).exists():
        note(user, session, WAS_READ, READ)
        record(Kind.ADMIN_READ, actor=user, person=session.owner_id, target=session)


def name_of(row: ChatMessage) -> str:
    """A message as the log names it. What it says stands in its own history, for those who may read it."""
    return f"{row.pk} ({row.tool_name or row.role or row.type})"
