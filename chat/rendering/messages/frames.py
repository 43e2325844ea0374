"""The HTML of messages and session parts, and the frames that carry the HTML to pages.

Pure, without the database. The browser adds what differs between users, such as their own messages and time zones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.messages import Json
from chat.bus.events import CompactionEnded, StatusChanged
from chat.languages import in_language
from chat.models import Session
from chat.recurrence import from_cron
from chat.rendering.markdown import render
from chat.rendering.messages.elicitations import card_of, replies_of
from chat.rendering.messages.questions import decision_of
from chat.rendering.messages.tool_card import ToolCard
from chat.rendering.text import formatting
from chat.rendering.text.schedule_words import rhythm_words
from chat.rendering.text.translation import translate
from chat.rendering.text.user_text import user_text_html
from chat.session_snapshot import SessionSnapshot
from chat.snapshots import MessageSnapshot

logger = logging.getLogger(__name__)

SHORT_TURN_SECONDS = 60
# The percentage of the context window at which the page starts to offer a summary of earlier messages.
CROWDED = 80
LONG_TEXT_CHARS = 3000
LONG_TEXT_LINES = 40
EMPTY = SafeString("")


class Usage(Protocol):
    """Token counts, of a session snapshot or of an event."""

    @property
    def context_used(self) -> int | None: ...
    @property
    def context_window(self) -> int | None: ...
    @property
    def context_percent(self) -> float | None: ...
    @property
    def session_total_tokens(self) -> int: ...


def message_frame(message: MessageSnapshot, body: SafeString | None = None) -> Json:
    """Return the frame of one message. A streaming message gets an empty body, because its text has separate frames.

    `body` is the HTML of its Markdown if that has already been rendered.
    """
    html = message_html(message, EMPTY if message.status == "streaming" else body)
    return {"op": "message", "revision": message.revision, "id": message.id, "sequence": message.sequence, "html": html}


def message_frames(message: MessageSnapshot, body: SafeString | None, languages: Iterable[str]) -> dict[str, Json]:
    """Return the frame of one message in several languages."""
    return {language: in_language(language, message_frame, message, body) for language in languages}


def context_frame(revision: int, included: bool, places: Sequence[Sequence[int]]) -> Json:
    """Return the frame that marks messages as excluded or included. `places` are ranges of sequence numbers."""
    mark = EMPTY if included else _render("messages/excluded_mark", {})
    return {"op": "context", "revision": revision, "included": included, "places": places, "mark": mark}


def is_markdown(message: MessageSnapshot) -> bool:
    """Return whether a message shows its text as Markdown. Answers and reasoning do."""
    is_written = message.role not in ("user", "system") or message.summarises is not None
    return message.type == "reasoning" or (message.type == "text" and is_written)


def is_quick(message: MessageSnapshot) -> bool:
    """Return whether a message is rendered quickly enough for the event loop.

    Its Markdown is rendered here, as far as that is quick, so that `message_html` finds it in the cache.
    """
    if message.status in ("streaming", "queued"):
        return True
    if is_markdown(message):
        return render.draw_soon(message.text) is not None
    card = card_of(message)
    return card is None or not card.markdown or render.draw_soon(card.markdown) is not None


def body_of(blocks: tuple[str, ...]) -> SafeString:
    """Return the body of a message, from rendered blocks of Markdown."""
    return mark_safe(render.in_blocks(blocks))  # noqa: S308  # the renderer's output is sanitized HTML


def message_html(message: MessageSnapshot, body: SafeString | None = None) -> SafeString:
    """Render one message, or an error card if that fails (MSG-10).

    Without `body`, this blocks the thread while another process renders the Markdown.
    """
    try:
        return _message_html(message, body)
    except Exception:  # a faulty row must not break the rest of the page
        logger.exception("Could not render message %s", message.id)
        tool_name = (message.tool.name if message.tool else "unknown") if message.type == "tool_group" else ""
        return _render("messages/fallback", {"message": message, "speaker": "", "tool_name": tool_name})


def session_frame(session: SessionSnapshot, revision: int | None) -> Json:
    """Return the frame that updates the session parts of a page."""
    archived = session.status == Session.Status.ARCHIVED
    parts = session_parts(session)
    return {
        "op": "session",
        "revision": revision,
        "status": session.agent_status,
        "archived": archived,
        "archiver": session.archived_by_id,
        "replies": session.replies,
        "automatic": session.replies_auto,
        "mode": session.mode,
        "agents": list(session.agents),
        "icons": session.icons,
        "parts": parts,
    }


def session_parts(session: SessionSnapshot) -> dict[str, SafeString]:
    """Render the session parts of a page, by name."""
    status = StatusChanged(session.agent_status, session.tool_name, session.activity, asked=session.asked)
    return {
        "title": _render("parts/title", {"session": session}),
        "agent": agent_html(session.agent_title),
        "model": _render("parts/model", {"session": session}),
        "status": status_html(status),
        "usage": usage_html(session),
        "context_bar": context_bar_html(session),
        "archived": _render("parts/archived", {"name": session.archived_by}),
    }


def agent_html(title: str) -> SafeString:
    """Render the title of the agent, or nothing if it is "" because there is only one agent."""
    return _render("parts/agent", {"title": title}) if title else EMPTY


def status_frame(event: StatusChanged) -> Json:
    return {"op": "status", "status": event.status, "tool_name": event.tool_name, "html": status_html(event)}


def status_html(event: StatusChanged) -> SafeString:
    """Render the status line of the agent, or nothing while it is idle (UI-07)."""
    return _render("parts/status", asdict(event)) if event.status != "idle" else EMPTY


def compacted_frame(event: CompactionEnded) -> Json:
    """Return the frame that reports how a compaction ended."""
    count = event.messages
    done = ngettext("%(count)d message summarized.", "%(count)d messages summarized.", count) % {"count": count}
    words = {
        "done": done,
        "failed": translate(event.error, event.words),
        "changed": _("Messages were changed while they were summarized. Try again."),
        "nothing": _("There are no earlier messages to summarize yet."),
    }
    return {"op": "compacted", "outcome": event.outcome, "text": words.get(event.outcome, "")}


def usage_frame(usage: Usage) -> Json:
    return {"op": "usage", "html": usage_html(usage), "bar": context_bar_html(usage)}


def context_bar_html(usage: Usage) -> SafeString:
    """Render the offer to summarize earlier messages, or nothing while the context has room."""
    percent = usage.context_percent
    if percent is None or percent < CROWDED:
        return EMPTY
    return _render("parts/context_bar", {"percent": f"{percent:.0f}"})


def usage_html(usage: Usage) -> SafeString:
    """Render the token counts (UI-08)."""
    percent = usage.context_percent
    return _render(
        "parts/usage",
        {
            "context_percent": percent,
            "percent": f"{percent or 0:.1f}",
            "level": "low" if not percent or percent < 50 else "middle" if percent <= 80 else "high",
            "context_used": usage.context_used,
            "context_window": usage.context_window,
            "total": usage.session_total_tokens,
        },
    )


def _message_html(message: MessageSnapshot, body: SafeString | None) -> SafeString:
    if message.status == "queued":
        values = {"message": message, "name": message.sender, "schedule": schedule_words(message)}
        return _render("messages/queued", values)
    match message.type, message.role:
        case "turn_start", _:
            return EMPTY
        case "turn_done", _:
            words = turn_words(message)
            return _render("messages/turn_done", {"message": message, "words": words}) if words else EMPTY
        case "text", _ if message.summarises is not None:
            more = {"speaker": "summary", "name": _("Summary"), "count": message.summarises}
            return _row("summary", message, body=_body(message, body), **more)
        case "text", "system":
            return _render("messages/system", {"message": message, "text": translate(message.text, message.words)})
        case "text", "user":
            speaker = f"user:{message.user_id or message.sender}"
            is_long = len(message.text) > LONG_TEXT_CHARS or message.text.count("\n") > LONG_TEXT_LINES
            body = user_text_html(message.text, message.mentions, message.agent_mentions)
            more = {"body": body, "long": is_long, "schedule": schedule_words(message)}
            return _row("user", message, name=message.sender, speaker=speaker, person=True, **more)
        case "text", _:
            return _row("assistant", message, body=_body(message, body))
        case "reasoning", _:
            streaming = message.status == "streaming"
            return _row("reasoning", message, body=_body(message, body), streaming=streaming)
        case "tool_group", _ if card := card_of(message):
            return _row("question", message, card=card, classes="tool_group asking")
        case "tool_group", _:
            tool = ToolCard.of(message)
            if tool.state == "writing" and body is None:
                body = tool.written_html
            marks = {"decision": decision_of(message), "replies": replies_of(message)}
            return _row("tool_group", message, card=tool, body=body, **marks)
        case _:
            return _row("error", message, text=translate(message.text, message.words))


def _row(kind: str, message: MessageSnapshot, **more: Any) -> SafeString:
    """Render a message with its sender, who is a user or the model of the row (UI-06)."""
    # In a session with several agents, messages show the name of their agent.
    name, sender = message.sender or message.model, f"{message.sender}:" if message.sender else ""
    values = {"name": name, "speaker": f"model:{sender}{message.provider}/{message.model}", "person": False, **more}
    values.update(kind=kind, message=message, clock=message.timestamp[11:16])
    return _render(f"messages/{kind}", values)


def _body(message: MessageSnapshot, body: SafeString | None) -> SafeString:
    return body_of(render.blocks(message.text)) if body is None else body


def schedule_words(message: MessageSnapshot) -> str:
    """Return the schedule that sent a message, in words, or "" if a user sent it."""
    if message.schedule is None:
        return ""
    rhythm = from_cron(message.schedule.cron)
    # Most readers do not understand a cron expression.
    return _("Scheduled") if rhythm.kind == "cron" else f"{_('Scheduled')} · {rhythm_words(rhythm)}"


def turn_words(message: MessageSnapshot) -> str:
    """Return how a turn ended, or "" for a short turn that completed (UI-04)."""
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
    # The loader caches compiled templates unless DEBUG is set.
    return SafeString(get_template(f"chat/{name}.html").render(values))
