"""What a session is, and what its agent does, in words."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.models import RunState, Session

STATUSES = [
    (Session.Status.ACTIVE.value, _("Active")),
    (Session.Status.ARCHIVED.value, _("Archived")),
    (Session.Status.DELETED.value, _("Deleted")),
]
RUN_STATES = [
    (RunState.IDLE.value, _("Idle")),
    (RunState.RUNNING.value, _("Working")),
    (RunState.CANCELLING.value, _("Stopping")),
    (RunState.WAITING.value, _("Waiting for a person")),
]


def state_of(session: Session) -> SafeString:
    """A session's status, or what its run does if there is more to tell of it."""
    if session.run.state != RunState.IDLE and session.status != Session.Status.DELETED:
        return _badge("working", RUN_STATES, session.run.state)
    return _badge(session.status, STATUSES, session.status)


def run_of(session: Session) -> SafeString:
    """What the agent does now."""
    return _badge("idle" if session.run.state == RunState.IDLE else "working", RUN_STATES, session.run.state)


def _badge(kind: str, names: list[tuple[str, Any]], value: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', kind, dict(names)[value])
