"""A session as readable Markdown, with tool calls folded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

from django.template.defaultfilters import filesizeformat
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.messages import Source, unreadable_text
from agents.sources import CITATION, NOT_CITING, cited, is_web_address, read_sources, replaced_citation
from chat.models import TURN_MARKERS, Attachment, ChatMessage, MessageRole, MessageStatus, MessageType, Session
from chat.projections.fences import contained, escaped, fenced

_CITATION = re.compile(rf"{NOT_CITING}|{CITATION}(?![(:])")


def head(session: Session, zone: tzinfo, now: datetime) -> str:
    """Return the head of the document: title, time, model, and the folded system prompt."""
    model = "/".join(filter(None, (session.provider, session.model)))
    facts = [_("Exported from Parley on %(time)s") % {"time": _time(now, zone)}, escaped(model)]
    parts = [f"# {escaped(session.title) or _('Untitled session')}", f"*{' · '.join(filter(None, facts))}*"]
    if session.system_prompt:
        parts.append(_folded(_("System prompt"), fenced(session.system_prompt, "text")))
    return "\n\n".join(parts) + "\n"


def message(row: ChatMessage, text: str, files: Sequence[Attachment], zone: tzinfo) -> str:
    """Return one message, starting with an empty line, or "" for a marker of a turn."""
    if row.type in TURN_MARKERS:
        return ""
    parts = [f"### {' · '.join(_heading(row, zone))}", *_body(row, text), *_list(files)]
    return "\n" + "\n\n".join(parts) + "\n"


def _heading(row: ChatMessage, zone: tzinfo) -> list[str]:
    marks = {
        _("queued"): row.status == MessageStatus.QUEUED,
        _("interrupted"): row.status == MessageStatus.INTERRUPTED,
        _edit_note(row): row.edited_at is not None,
        _("excluded from context"): not row.include_in_context,
    }
    return [escaped(_speaker(row)), _time(row.timestamp, zone), *(mark for mark, holds in marks.items() if holds)]


def _edit_note(row: ChatMessage) -> str:
    name, suggester = escaped(row.edited_by_name), escaped(row.suggested_by_name)
    if name and suggester:
        return _("edited by %(name)s, suggested by %(suggester)s") % {"name": name, "suggester": suggester}
    if suggester:
        return _("edited, suggested by %(name)s") % {"name": suggester}
    return _("edited by %(name)s") % {"name": name} if name else _("edited")


def _speaker(row: ChatMessage) -> str:
    if row.type == MessageType.ERROR:
        return _("Error")
    if row.role == MessageRole.USER:
        return row.sender or _("Someone")
    if row.summarises is not None:
        words = ngettext("Summary of %(count)d message", "Summary of %(count)d messages", row.summarises)
        return words % {"count": row.summarises}
    if row.role == MessageRole.SYSTEM:
        return _("System")
    return row.sender or row.model or _("Assistant")


def _body(row: ChatMessage, text: str) -> list[str]:
    if row.type == MessageType.TOOL_GROUP:
        return [_folded(_tool_title(row), *_tool(row))]
    if row.type == MessageType.REASONING:
        return [_folded(_("Thoughts"), fenced(text, "text"))]
    sources = cited_sources(row, text)
    notes = [f"[^{_note(row, source)}]: {_reference(source)}" for source in sources]
    parts = [contained(_with_notes(row, text, sources))] if text else []
    return [*parts, *(["\n".join(notes)] if notes else [])]


def cited_sources(row: ChatMessage, text: str) -> tuple[Source, ...]:
    """Return the sources of a text. If the text was cut off, return only the sources that it cites."""
    sources = read_sources(row.sources)
    return sources if row.status == MessageStatus.COMPLETE else cited(text, sources)


def _with_notes(row: ChatMessage, text: str, sources: Sequence[Source]) -> str:
    """Replace citations outside code and formulas with references to footnotes."""
    notes = {source.number: f"[^{_note(row, source)}]" for source in sources}
    return _CITATION.sub(lambda found: replaced_citation(found[1] or "", notes) or found[0], text)


def _reference(source: Source) -> str:
    """Return a source as a link. A passage of a workspace's file is only named, because it has no address."""
    title = escaped(source.title)
    return f"[{title}](<{source.url}>)" if is_web_address(source.url) else title


def _note(row: ChatMessage, source: Source) -> str:
    """Return the label of a footnote, unique in the document."""
    return f"{row.sequence or 0}-{source.number}"


def _tool_title(row: ChatMessage) -> str:
    name = row.tool_name or "unknown"
    return _("Tool: %(name)s (failed)") % {"name": name} if row.is_error else _("Tool: %(name)s") % {"name": name}


def _tool(row: ChatMessage) -> list[str]:
    language, arguments = "text", unreadable_text(row.arguments)
    if arguments is None:
        language, arguments = "json", json.dumps(row.arguments, ensure_ascii=False, indent=2, default=str)
    parts = ((arguments if row.arguments else "", language), (row.result, "text"))
    return [fenced(text, name) for text, name in parts if text]


def _list(files: Sequence[Attachment]) -> list[str]:
    lines = [f"- {_('File:')} {escaped(file.name)} ({filesizeformat(file.size)})" for file in files]
    return ["\n".join(lines)] if lines else []


def _folded(title: str, *parts: str) -> str:
    return "\n\n".join([f"<details><summary>{escape(' '.join(title.split()))}</summary>", *parts, "</details>"])


def _time(time: datetime, zone: tzinfo) -> str:
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M %Z}".strip()
