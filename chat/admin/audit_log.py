"""Entries in Django's admin log: what staff changed in sessions, and which sessions of other users they read."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat.access import role_in
from chat.models import ApiToken, ChatMessage, Session, User
from chat.services.people.security_log import Kind, record

# An action flag besides Django's own (1 to 3).
READ = 4
# Further requests within this time belong to the same reading of a session, or to the same search.
SAME_VISIT = timedelta(minutes=30)
# Log entries store the English message, which the log page translates.
STOPPED = _("Stopped the agent.")
ARCHIVED = _("Archived the session.")
UNARCHIVED = _("Restored the session from the archive.")
UNDELETED = _("Restored the deleted session.")
EXPORTED_JSON = _("Exported the session as JSON.")
EXPORTED_MARKDOWN = _("Exported the session as Markdown.")
ERASED = _("Erased the session permanently.")
FORKED = _("Forked the session.")
HANDED_OVER = _("Requested a handover to another worker.")
CLOSED = _("Closed the turn.")
DRAINED = _("Drained the worker.")
UNDRAINED = _("Let the worker take sessions again.")
PAUSED = _("Paused the schedule.")
RESUMED = _("Resumed the schedule.")
WAS_READ = _("Read the session.")
SIGN_IN_LINK = _("Created a sign-in link.")
SIGNED_OUT = _("Signed out everywhere.")
FACTOR_RESET = _("Reset two-step verification.")
ERASURE_REQUESTED = _("Requested erasure of the account.")


def log_change(user: User, session: Session, message: str | list[dict[str, Any]], flag: int = CHANGE) -> None:
    """Log a change of a session within the caller's transaction.

    The entry contains the session's id instead of its title, because the title can repeat text of messages.
    """
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(Session),
        object_id=session.pk,
        object_repr=session.pk,
        action_flag=flag,
        change_message=message if isinstance(message, str) else json.dumps(message),
    )


def log_row(user: User, row: Model, message: str | list[dict[str, Any]]) -> None:
    """Log a change of a row that is not a session within the caller's transaction."""
    LogEntry.objects.log_actions(user.pk, [row], CHANGE, change_message=message, single_object=True)


def log_revocation(user: User, token: ApiToken) -> None:
    """Log the revocation of a token in the log of its owner, in the form of Django's own entries."""
    details = {"name": _("API token"), "object": token.name, "fields": [_("revoked")]}
    log_row(user, token.user, [{"changed": details}])


def log_fields(user: User, session: Session, fields: list[str]) -> None:
    """Log which fields of a session changed, by their English names."""
    log_change(user, session, [{"changed": {"fields": fields}}])


def log_message(user: User, row: ChatMessage, verb: str, fields: list[str] | None = None) -> None:
    """Log a change of a message. `verb` is "added", "changed" or "deleted", as in Django's own entries.

    The entry does not contain the message's text. Staff who may read messages find it in the message's history.
    """
    name = f"{row.pk} ({row.tool_name or row.role or row.type})"
    details = {"name": _("message"), "object": name, **({"fields": fields} if fields else {})}
    log_change(user, row.session, [{verb: details}])


def log_reading(user: User, session: Session, *, is_new: bool) -> None:
    """Log that a user reads a session that is not shared with them.

    `is_new` is true if the user opens the session, and false if they go from one of its pages to another. In the second
    case nothing is logged if the last entry is not older than SAME_VISIT.
    """
    if role_in(user, session) is not None:
        return
    content_type = ContentType.objects.get_for_model(Session)
    entries = LogEntry.objects.filter(user=user, content_type=content_type, object_id=session.pk, action_flag=READ)
    if is_new or not entries.filter(action_time__gte=timezone.now() - SAME_VISIT).exists():
        log_change(user, session, WAS_READ, READ)
        record(Kind.ADMIN_READ, actor=user, person=session.owner_id, target=session)
