"""The answer of an agent that was given a task, from the rows of its subsession."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.messages import Json
from agents.sources import CITING, read_sources, replaced_citation
from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType, attached_to
from chat.projections.context import foreign_origin

NO_ANSWER = "[The agent ended without an answer.]"
STOPPED = "[Stopped by {name} before the task was done.]"
INTERRUPTED = "[Interrupted before the task was done.]"
FAILED = "[The agent failed: {reason}]"
GONE = "[The session in which the agent worked was deleted before the task was done.]"
MAX_ORIGINS = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. `origin` names the places of the foreign text that the agent has read, or is ""."""

    text: str
    is_error: bool = False
    origin: str = ""


def answer_of(rows: Sequence[ChatMessage]) -> Answer:
    """Return the text of the last response in the last turn of these rows, or the reason why there is none.

    Turns of summaries do not count, because they answer nothing. The origin comes from all rows and their attached
    files, which the caller has loaded.
    """
    summaries = {row.turn_id for row in rows if row.summarises is not None}
    ends = (row for row in reversed(rows) if row.type == MessageType.TURN_DONE and row.turn_id not in summaries)
    end = next(ends, None)
    turn = [row for row in rows if end is not None and row.turn_id == end.turn_id]
    texts = [row for row in turn if row.type == MessageType.TEXT and row.role == MessageRole.ASSISTANT and row.text]
    text = "\n\n".join(_with_addresses(row) for row in texts if row.response_id == texts[-1].response_id)
    places = (place for row in rows for place in (foreign_origin(row), *(file.name for file in attached_to(row))))
    origin = ", ".join(list(dict.fromkeys(filter(None, places)))[:MAX_ORIGINS])
    problem = _problem(end, turn, text)
    return Answer("\n\n".join(filter(None, (problem, text))), bool(problem), origin)


def shown_call(calls: Sequence[ChatMessage]) -> ChatMessage | None:
    """Return the call that the status names: the last one whose subsession waits for users, else the last one."""
    asking = [call for call in calls if call.subsession and call.subsession.get("waits")]
    return next(reversed(asking or calls), None)


def shown_subsession(call: ChatMessage, calls: Sequence[ChatMessage]) -> Json | None:
    """Return the subsession that the status shows for a call. Its title names all agents that work at the same time."""
    if call.subsession is None or call.subsession.get("waits"):
        return call.subsession
    titles = (str(each.subsession.get("title", "")) for each in calls if each.subsession)
    return {**call.subsession, "title": ", ".join(dict.fromkeys(titles))}


def _problem(end: ChatMessage | None, turn: Sequence[ChatMessage], text: str) -> str:
    if end is None or end.status == MessageStatus.INTERRUPTED:
        return STOPPED.format(name=end.stopped_by_name) if end and end.stopped_by_name else INTERRUPTED
    if end.status == MessageStatus.FAILED:
        errors = [row.text for row in turn if row.type == MessageType.ERROR]
        return FAILED.format(reason=errors[-1] if errors else "unknown")
    return "" if text else NO_ANSWER


def _with_addresses(row: ChatMessage) -> str:
    """Return the text with addresses in place of citation numbers, which mean other pages in the caller's session."""
    known = {source.number: f"({source.url})" for source in read_sources(row.sources)}
    return CITING.sub(lambda found: replaced_citation(found[1] or "", known) or found[0], row.text)
