"""A session as readable Markdown, with tool calls folded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, tzinfo

from django.template.defaultfilters import filesizeformat
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import TURN_MARKERS, Attachment, ChatMessage, MessageRole, MessageStatus, MessageType, Session
from chat.projections.fences import contained, escaped, fenced


def head(session: Session, zone: tzinfo, now: datetime) -> str:
    """Return the document's head: title, time, model, and the folded system prompt."""
    facts = [_("Exported from Parley on %(time)s") % {"time": _time(now, zone)}, escaped(_model(session))]
    parts = [f"# {escaped(session.title) or _('Untitled session')}", f"*{' · '.join(filter(None, facts))}*"]
    if session.system_prompt:
        parts.append(_folded(_("System prompt"), fenced(session.system_prompt, "text")))
    return "\n\n".join(parts) + "\n"


def message(row: ChatMessage, text: str, files: Sequence[Attachment], zone: tzinfo) -> str:
    """Return one message, starting with an empty line; "" for turn markers."""
    if row.type in TURN_MARKERS:
        return ""
    parts = [f"### {' · '.join(_heading(row, zone))}", *_body(row, text), *_list(files)]
    return "\n" + "\n\n".join(parts) + "\n"


def _heading(row: ChatMessage, zone: tzinfo) -> list[str]:
    marks = {
        _("queued"): row.status == MessageStatus.QUEUED,
        _("interrupted"): row.status == MessageStatus.INTERRUPTED,
        _edited(row): row.edited_at is not None,
        _("excluded from context"): not row.include_in_context,
    }
    return [escaped(_speaker(row)), _time(row.timestamp, zone), *(mark for mark, holds in marks.items() if holds)]


def _edited(row: ChatMessage) -> str:
    words = _("edited by %(name)s") if row.edited_by_name else _("edited")
    parts = [words % {"name": escaped(row.edited_by_name)}]
    if row.suggested_by_name:
        parts.append(_("suggested by %(name)s") % {"name": escaped(row.suggested_by_name)})
    return ", ".join(parts)


def _speaker(row: ChatMessage) -> str:
    if row.type == MessageType.ERROR:
        return _("Error")
    if row.role == MessageRole.USER:
        return row.sender or "User"
    if row.summarises is not None:
        words = ngettext("Summary of %(count)d message", "Summary of %(count)d messages", row.summarises)
        return words % {"count": row.summarises}
    if row.role == MessageRole.SYSTEM:
        return _("System")
    return row.model or _("Assistant")


def _body(row: ChatMessage, text: str) -> list[str]:
    if row.type == MessageType.TOOL_GROUP:
        return [_folded(_tool_title(row), *_tool(row))]
    if row.type == MessageType.REASONING:
        return [_folded(_("Thoughts"), fenced(text, "text"))]
    return [contained(text)] if text else []


def _tool_title(row: ChatMessage) -> str:
    name = row.tool_name or "unknown"
    return _("Tool: %(name)s (failed)") % {"name": name} if row.is_error else _("Tool: %(name)s") % {"name": name}


def _tool(row: ChatMessage) -> list[str]:
    arguments = json.dumps(row.arguments, ensure_ascii=False, indent=2, default=str) if row.arguments else ""
    return [fenced(part, language) for part, language in ((arguments, "json"), (row.result, "text")) if part]


def _list(files: Sequence[Attachment]) -> list[str]:
    lines = [f"- {_('File:')} {escaped(file.name)} ({filesizeformat(file.size)})" for file in files]
    return ["\n".join(lines)] if lines else []


def _folded(title: str, *parts: str) -> str:
    return "\n\n".join([f"<details><summary>{escape(' '.join(title.split()))}</summary>", *parts, "</details>"])


def _model(session: Session) -> str:
    return "/".join(filter(None, (session.provider, session.model)))


def _time(time: datetime, zone: tzinfo) -> str:
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M %Z}".strip()
