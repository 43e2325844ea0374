"""The questions of a running call to users, in the column ChatMessage.asked: one record per question, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.elicitation import Elicitation, read_elicitation
from agents.messages import Json


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. `answer` is the users' answer, or None. `answered_at` is in ISO 8601.

    If the question cannot be answered any more, `withdrawn` is the reason.
    """

    question: Elicitation
    answer: Json | None = None
    answered_by: str = ""
    answered_by_id: int | None = None
    answered_at: str | None = None
    withdrawn: str = ""

    @property
    def is_open(self) -> bool:
        return self.answer is None and not self.withdrawn


def records_of(asked: object) -> list[Json]:
    """Return the records in the column, without values that are not objects."""
    return [each for each in asked if isinstance(each, dict)] if isinstance(asked, list) else []


def asked_of(asked: object) -> list[Asked]:
    """Return the valid questions in the column."""
    found = []
    for each in records_of(asked):
        question = read_elicitation(each.get("question"))
        answer = each.get("answer")
        if question is not None and (answer is None or (isinstance(answer, dict) and "action" in answer)):
            more: dict[str, Any] = {name: each[name] for name in Asked.__slots__[2:] if each.get(name) is not None}
            found.append(Asked(question, answer, **more))
    return found


def open_record(asked: object) -> Json | None:
    """Return the record of the question that waits for an answer, or None."""
    last = next(reversed(records_of(asked)), None)
    return last if last is not None and last.get("answer") is None and not last.get("withdrawn") else None


def with_last(asked: object, values: Json) -> list[Json]:
    """Return the column with these values in its last record."""
    *before, last = records_of(asked)
    return [*before, {**last, **values}]


def without_answerer(asked: object, user_id: int, name: str) -> object:
    """Return the column with `name` in place of a user, and without the content of this user's answers."""
    if not any(each.get("answered_by_id") == user_id for each in records_of(asked)):
        return asked
    return [_without(each, name) if each.get("answered_by_id") == user_id else each for each in records_of(asked)]


def _without(record: Json, name: str) -> Json:
    action = (record.get("answer") or {}).get("action", "accept")
    return {**record, "answer": {"action": action}, "answered_by": name, "answered_by_id": None}
