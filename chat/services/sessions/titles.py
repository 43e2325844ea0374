"""Titles of sessions that no user has named: the first words of the session, then a title from a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models.functions import Left

from agents.errors import AgentError
from agents.loop import Agent
from chat.agents_setup import registry
from chat.limits import quotas
from chat.models import ChatMessage, MessageRole, MessageType, Session, SessionRevision
from chat.queries import presets
from chat.services.runs import dialects
from chat.services.sessions.fields import change
from chat.services.transaction import SessionTransaction

TITLE_WORDS = 60
# What a model calls a title; a longer line is an answer, or an excuse.
LONGEST_TITLE = 100
# How much a model is shown of each of the first messages, and of how many.
EXCERPT = 2000
FIRST = 4
# The title that Parley gave, in `Session.config`, until a better one is found or a user sets one.
MARK = "automatic_title"

_LABEL = re.compile(r"(?i)\A(?:session |chat |conversation )?(?:title|标题|標題|题目|題目)\s*[:：]\s*")
_DRESS = " *`\"'“”‘’«»„「」『』《》【】"
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Untitled:
    """A session whose title may be replaced by a model's; `opening` is how it begins, (role, text) each."""

    agent: Agent
    opening: tuple[tuple[str, str], ...]


def name_after(tx: SessionTransaction, row: ChatMessage) -> list[str]:
    """Name a session that has no title after its first message; returns the columns that are to be saved."""
    said = ChatMessage.objects.filter(session_id=row.session_id, role=MessageRole.USER)
    if tx.session.title or said.exclude(pk=row.pk).exists():
        return []
    tx.session.title = opening_words(row.text or _files(row))
    tx.session.config = {**tx.session.config_values, MARK: tx.session.title}
    tx.session_changed()
    return ["title", "config"]


def opening_words(text: str) -> str:
    """The words with which a text begins, not cut within a word where it has any."""
    line = " ".join(text[: 4 * TITLE_WORDS].split())
    if len(line) <= TITLE_WORDS:
        return line
    cut = line[: TITLE_WORDS - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip() + "…"


def untitled(session_id: str) -> Untitled | None:
    """Say with what a model is asked for a better title; None where nobody wants one, or there is no model to ask.

    One query where the title is not Parley's own (any more), two where it is.
    """
    session = Session.objects.filter(pk=session_id).exclude(status=Session.Status.DELETED).first()
    if session is None or not _is_marked(session) or registry().is_demo(session.provider):
        return None
    opening = _opening(session)
    if MessageRole.ASSISTANT not in dict(opening):  # it has failed, or has been stopped before the first word
        return None
    try:
        agent = registry().build_agent(presets.own(session))
    except AgentError:
        return None
    dialects.recall(agent.provider)
    return Untitled(agent, opening)


@transaction.atomic
def retitle(*, session_id: str, title: str, tokens: int | None) -> None:
    """Replace Parley's own title by a model's, unless somebody has given one meanwhile, and count the model's tokens.

    With an empty one the present title is settled: nobody is asked again. Raises NoSuchSession.
    """
    tx = SessionTransaction.lock(session_id)
    session = tx.session
    if tokens is not None:
        quotas.record_tokens(user_id=session.owner_id, tokens=tokens)
    if not _is_marked(session):
        return
    if title and title != session.title:
        change(tx, None, title=title, config=unmarked(session))
    else:
        Session.objects.filter(pk=session_id).update(config=unmarked(session))


def unmarked(session: Session) -> dict[str, Any]:
    """The session's `config` when its title is not Parley's own any more."""
    return {name: value for name, value in session.config_values.items() if name != MARK}


def is_made_of(session: Session, row: ChatMessage) -> bool:
    """Return whether Parley made a session's title of a message: it, or a model for it, and no user since."""
    last = SessionRevision.objects.filter(session=session, kind=SessionRevision.Kind.TITLE).order_by("-pk").first()
    if last is not None:
        return last.user_id is None
    words = opening_words(row.text or _files(row)).rstrip("…")
    return _is_marked(session) or (bool(words) and words in session.title)


def title_in(reply: str) -> str:
    """Take the title out of what a model has said: one line without its dress; "" where there is none."""
    line = next(iter(reply.strip().splitlines()), "")
    plain = "".join(each if each.isprintable() or each in _JOINERS else " " for each in line)
    title = _LABEL.sub("", " ".join(plain.split()).lstrip(_DRESS + "#")).lstrip(_DRESS).rstrip(_DRESS + ".。")
    return title if len(title) <= LONGEST_TITLE else ""


def _is_marked(session: Session) -> bool:
    return bool(session.title) and session.config_values.get(MARK) == session.title


def _opening(session: Session) -> tuple[tuple[str, str], ...]:
    said = ChatMessage.objects.live(session.pk).filter(
        type=MessageType.TEXT, role__in=(MessageRole.USER, MessageRole.ASSISTANT), include_in_context=True
    )
    first = said.order_by("sequence").values_list("role", Left("text", EXCERPT))[:FIRST]
    return tuple((role, text) for role, text in first if text)


def _files(row: ChatMessage) -> str:
    return ", ".join(row.attachments.order_by("position").values_list("name", flat=True))
