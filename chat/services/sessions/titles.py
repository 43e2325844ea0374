"""Automatic titles of sessions: the first words of the session, then a title from a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models.functions import Left

from agents.errors import AgentError
from agents.loop import Agent
from agents.thinking_tags import without_thinking
from chat.agents_setup import registry
from chat.limits import quotas
from chat.models import ChatMessage, MessageRole, MessageType, Session, SessionRevision
from chat.queries import presets
from chat.services.runs import dialects
from chat.services.sessions.fields import change
from chat.services.transaction import SessionTransaction

TITLE_WORDS = 60
# The longest title from a model, in characters. A longer line is not a title.
MAX_TITLE_LENGTH = 100
# The most characters of a message, and the most first messages, from which a model makes a title.
EXCERPT = 2000
FIRST = 4
# The key in `Session.config` of an automatic title that a model or a user has not replaced yet.
MARK = "automatic_title"

_LABEL = re.compile(r"(?i)\A(?:session |chat |conversation )?(?:title|标题|標題|题目|題目)\s*[:：]\s*")
_DECORATION = " *`\"'“”‘’«»„「」『』《》【】"
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Untitled:
    """A session whose title a model may replace. `opening` has the first messages as (role, text)."""

    agent: Agent
    opening: tuple[tuple[str, str], ...]


def set_first_title(tx: SessionTransaction, row: ChatMessage) -> list[str]:
    """Set the title of a session without one from its first message. Return the columns to save."""
    messages = ChatMessage.objects.filter(session_id=row.session_id, role=MessageRole.USER)
    if tx.session.title or messages.exclude(pk=row.pk).exists():
        return []
    tx.session.title = opening_words(row.text or _files(row))
    tx.session.config = {**tx.session.config_values, MARK: tx.session.title}
    tx.session_changed()
    return ["title", "config"]


def opening_words(text: str) -> str:
    """Return the first words of a text, cut between words if possible."""
    line = " ".join(text[: 4 * TITLE_WORDS].split())
    if len(line) <= TITLE_WORDS:
        return line
    cut = line[: TITLE_WORDS - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip() + "…"


def title_input(session_id: str) -> Untitled | None:
    """Return the input for a title from a model, or None if the title is not automatic or there is no model.

    Takes one query if the title is not automatic, otherwise two or more.
    """
    session = Session.objects.filter(pk=session_id).exclude(status=Session.Status.DELETED).first()
    if session is None or not _is_marked(session) or registry().is_demo(session.provider):
        return None
    opening = _opening(session)
    if MessageRole.ASSISTANT not in dict(opening):  # the turn failed, or was stopped before the first word
        return None
    try:
        agent = registry().build_agent(presets.own(session))
    except AgentError:
        return None
    dialects.recall(agent.provider)
    return Untitled(agent, opening)


@transaction.atomic
def retitle(*, session_id: str, title: str, tokens: int | None) -> None:
    """Replace an automatic title with a model's title, unless a user has set one since. Count the model's tokens.

    An empty title keeps the current one, and no model is asked again. Raise NoSuchSession.
    """
    tx = SessionTransaction.lock(session_id)
    session = tx.session
    if tokens is not None:
        quotas.record_tokens([(session.owner_id, tokens)])
    if not _is_marked(session):
        return
    if title and title != session.title:
        change(tx, None, title=title, config=unmarked(session))
    else:
        Session.objects.filter(pk=session_id).update(config=unmarked(session))


def unmarked(session: Session) -> dict[str, Any]:
    """Return the session's `config` without the mark of an automatic title."""
    return {name: value for name, value in session.config_values.items() if name != MARK}


def is_title_from(session: Session, row: ChatMessage) -> bool:
    """Return whether a session's title was made from a message, automatically or by a model, and no user changed it."""
    last = SessionRevision.objects.filter(session=session, kind=SessionRevision.Kind.TITLE).order_by("-pk").first()
    if last is not None:
        return last.user_id is None
    words = opening_words(row.text or _files(row)).rstrip("…")
    return _is_marked(session) or (bool(words) and words in session.title)


def title_in(reply: str) -> str:
    """Return the title in a model's reply, as one line without decoration, or "" if there is none."""
    line = next(iter(without_thinking(reply).strip().splitlines()), "")
    plain = "".join(each if each.isprintable() or each in _JOINERS else " " for each in line)
    title = (
        _LABEL.sub("", " ".join(plain.split()).lstrip(_DECORATION + "#"))
        .lstrip(_DECORATION)
        .rstrip(_DECORATION + ".。")
    )
    return title if len(title) <= MAX_TITLE_LENGTH else ""


def _is_marked(session: Session) -> bool:
    return bool(session.title) and session.config_values.get(MARK) == session.title


def _opening(session: Session) -> tuple[tuple[str, str], ...]:
    messages = ChatMessage.objects.in_conversation(session.pk).filter(
        type=MessageType.TEXT, role__in=(MessageRole.USER, MessageRole.ASSISTANT), include_in_context=True
    )
    first = messages.order_by("sequence").values_list("role", Left("text", EXCERPT))[:FIRST]
    return tuple((role, text) for role, text in first if text)


def _files(row: ChatMessage) -> str:
    return ", ".join(row.attachments.order_by("position").values_list("name", flat=True))
