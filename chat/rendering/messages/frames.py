"""Snapshots as the page shows them: the HTML of messages and session parts, and the frames that carry it.

Pure: no database. What differs between viewers (mine or theirs, time zone) is decided in the browser.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agents.messages import Json
from chat.models import Session
from chat.rendering.markdown import render
from chat.rendering.messages.tool_card import ToolCard
from chat.rendering.text import formatting
from chat.rendering.text.translation import translate
from chat.rendering.text.user_text import user_text_html
from chat.snapshots import MessageSnapshot, SessionSnapshot

logger = logging.getLogger(__name__)

SHORT_TURN_SECONDS = 60
LONG_TEXT_CHARS = 3000
LONG_TEXT_LINES = 40
EMPTY = SafeString("")


class Usage(Protocol):
    """Whatever knows the token figures: a session's snapshot, or the event that tells of them."""

    @property
    def context_used(self) -> int | None: ...
    @property
    def context_window(self) -> int | None: ...
    @property
    def context_percent(self) -> float | None: ...
    @property
    def session_total_tokens(self) -> int: ...


def message_frame(message: MessageSnapshot, body: SafeString | None = None) -> Json:
    """Make the frame that puts a message into a page. A streaming one comes empty: its text follows by itself.

    `body` is the HTML of its Markdown, where that has been drawn already.
    """
    html = message_html(message, EMPTY if message.status == "streaming" else body)
    return {"op": "message", "revision": message.revision, "id": message.id, "sequence": message.sequence, "html": html}


def context_frame(revision: int, included: bool, places: Sequence[Sequence[int]]) -> Json:
    """Make the frame that marks what is said in these places as left out of the context, or as it was."""
    mark = EMPTY if included else _render("messages/left_out", {})
    return {"op": "context", "revision": revision, "included": included, "places": places, "mark": mark}


def is_markdown(message: MessageSnapshot) -> bool:
    """Tell whether a message shows its text as Markdown: what an agent says or thinks."""
    return message.type == "reasoning" or (message.type == "text" and message.role not in ("user", "system"))


def is_quick(message: MessageSnapshot) -> bool:
    """Tell whether a message that came whole in an event is drawn quickly enough for the event loop."""
    if message.status in ("streaming", "queued") or not is_markdown(message):
        return True
    return render.draw_soon(message.text) is not None


def body_of(blocks: tuple[str, ...]) -> SafeString:
    """Return blocks of Markdown as the body of a message."""
    return mark_safe(render.in_blocks(blocks))  # noqa: S308  # the renderer's output is sanitised HTML


def message_html(message: MessageSnapshot, body: SafeString | None = None) -> SafeString:
    """Render one message; a card that says so where that fails, so that the rest of the page stands (MSG-10).

    It may wait for another process to draw the body, unless that is given.
    """
    try:
        return _message_html(message, body)
    except Exception:  # rows may be hand-made or older than this code: whatever is wrong with one is its own matter
        logger.exception("Message %s cannot be rendered", message.id)
        tool_name = (message.tool.name if message.tool else "unknown") if message.type == "tool_group" else ""
        return _render("messages/fallback", {"message": message, "speaker": "", "tool_name": tool_name})


def session_frame(session: SessionSnapshot, revision: int | None) -> Json:
    """Make the frame that brings a page's session parts up to date."""
    archived = session.status == Session.Status.ARCHIVED
    parts = session_parts(session)
    return {"op": "session", "revision": revision, "status": session.agent_status, "archived": archived, "parts": parts}


def session_parts(session: SessionSnapshot) -> dict[str, SafeString]:
    """Render what a page shows of its session, by the name of the place."""
    return {
        "title": _render("parts/title", {"session": session}),
        "agent": agent_html(session.agent_title),
        "model": _render("parts/model", {"session": session}),
        "status": status_html(session.agent_status, session.tool_name),
        "usage": usage_html(session),
    }


def agent_html(title: str) -> SafeString:
    """Render which agent answers; nothing where there is but one."""
    return _render("parts/agent", {"title": title}) if title else EMPTY


def status_frame(status: str, tool_name: str) -> Json:
    return {"op": "status", "status": status, "tool_name": tool_name, "html": status_html(status, tool_name)}


def status_html(status: str, tool_name: str) -> SafeString:
    """Render the line that says what the agent does; nothing while it is idle (UI-07)."""
    return _render("parts/status", {"status": status, "tool_name": tool_name}) if status != "idle" else EMPTY


def usage_frame(usage: Usage) -> Json:
    return {"op": "usage", "html": usage_html(usage)}


def usage_html(usage: Usage) -> SafeString:
    """Render the token figures (UI-08)."""
    percent = usage.context_percent
    return _render(
        "parts/usage",
        {
            "context_percent": percent,
            "percent": f"{percent or 0:.1f}",
            "level": _level(percent or 0),
            "context_used": usage.context_used,
            "context_window": usage.context_window,
            "total": usage.session_total_tokens,
        },
    )


def _level(percent: float) -> str:
    return "low" if percent < 50 else "middle" if percent <= 80 else "high"


def _message_html(message: MessageSnapshot, body: SafeString | None) -> SafeString:
    if message.status == "queued":
        return _render("messages/queued", {"message": message, "name": message.sender})
    match message.type, message.role:
        case "turn_start", _:
            return EMPTY
        case "turn_done", _:
            words = turn_words(message)
            return _render("messages/turn_done", {"message": message, "words": words}) if words else EMPTY
        case "text", "system":
            return _render("messages/system", {"message": message, "text": translate(message.text, message.words)})
        case "text", "user":
            return _row("user", message, **_person(message))
        case "text", _:
            return _row("assistant", message, body=_body(message, body))
        case "reasoning", _:
            streaming = message.status == "streaming"
            return _row("reasoning", message, body=_body(message, body), streaming=streaming)
        case "tool_group", _:
            return _row("tool_group", message, card=ToolCard.of(message))
        case _:
            return _row("error", message, text=translate(message.text, message.words))


def _row(kind: str, message: MessageSnapshot, **more: Any) -> SafeString:
    """Render a message that has a sender: a person, or else the model that the row names (UI-06)."""
    values = {"name": message.model, "speaker": f"model:{message.provider}/{message.model}", "person": False, **more}
    values.update(kind=kind, message=message, clock=message.timestamp[11:16])
    return _render(f"messages/{kind}", values)


def _person(message: MessageSnapshot) -> Json:
    speaker = f"user:{message.user_id or message.sender}"
    words = {"body": user_text_html(message.text), "long": _is_long(message.text)}
    return {"name": message.sender, "speaker": speaker, "person": True, **words}


def _body(message: MessageSnapshot, body: SafeString | None) -> SafeString:
    return body_of(render.blocks(message.text)) if body is None else body


def _is_long(text: str) -> bool:
    return len(text) > LONG_TEXT_CHARS or text.count("\n") > LONG_TEXT_LINES


def turn_words(message: MessageSnapshot) -> str:
    """Say how a turn ended; nothing for a short one that went well (UI-04)."""
    seconds = message.duration_seconds or 0
    is_long = seconds >= SHORT_TURN_SECONDS
    if message.status != "interrupted":
        words = _("Worked for %(time)s") if is_long else ""
    elif message.stopped_by:
        words = _("Stopped by %(name)s after %(time)s") if is_long else _("Stopped by %(name)s")
    elif message.end_reason == "restarted":
        words = _("Interrupted by a restart after %(time)s") if is_long else _("Interrupted by a restart")
    else:
        words = _("Interrupted after %(time)s") if is_long else _("Interrupted")
    return words % {"time": formatting.spelled_duration(seconds), "name": message.stopped_by}


def _render(name: str, values: Json) -> SafeString:
    # The loader keeps compiled templates, except while somebody works on them (DEBUG).
    return SafeString(get_template(f"chat/{name}.html").render(values))
