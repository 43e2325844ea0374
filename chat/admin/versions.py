"""A message's history in the admin: who changed what, when, and what stood there before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from chat.admin.fields import pretty
from chat.models import ChatMessage, MessageRevision

MOST = 50
# Of each text, in characters.
LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Version:
    """One change. `before` is what stood there, where the change was one of words."""

    kind: str
    who: str
    when: datetime
    before: str


def versions_of(row: ChatMessage) -> list[Version]:
    """The latest changes of a message, the newest first; one query."""
    records = MessageRevision.objects.filter(message=row).select_related("user").order_by("-id")
    return [_version(record) for record in records[:MOST]]


def _version(record: MessageRevision) -> Version:
    before: dict[str, Any] = record.before if isinstance(record.before, dict) else {}
    return Version(
        kind=_names()[record.kind],
        # Of what was imported, the record itself says who it was.
        who=record.user.sender if record.user else str(before.get("by") or "—"),
        when=record.created_at,
        before=_said(before)[:LONGEST] if record.kind == MessageRevision.Kind.EDIT else "",
    )


def _said(before: dict[str, Any]) -> str:
    tool = before.get("tool")
    if isinstance(tool, dict):
        return f"{pretty(tool.get('arguments'))}\n\n{tool.get('result', '')}"
    return str(before.get("text", ""))


def _names() -> dict[str, str]:
    kinds = MessageRevision.Kind
    return {
        kinds.ADD: _("Added"),
        kinds.EDIT: _("Edited"),
        kinds.WITHDRAW: _("Removed from queue"),
        kinds.REMOVE: _("Removed"),
        kinds.RETRY: _("Replaced by a retry"),
        kinds.RESTORE: _("Restored"),
        kinds.EXCLUDE: _("Excluded from context"),
        kinds.INCLUDE: _("Included in context"),
    }
