"""Cards for the questions of running calls, and the answers as lines of the call's card."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents.elicitation import Elicitation
from chat.rendering.messages.questions import Answer, Decision, QuestionCard, filled_in
from chat.runs.elicitations import Asked, asked_of
from chat.snapshots import MessageSnapshot

# In characters. A longer message is not used as a heading.
MAX_TITLE_LENGTH = 160


@dataclass(frozen=True)
class ElicitationCard(QuestionCard):
    """The card of an MCP server's question. `number` is its position among the questions of the call, from 1."""

    question: Elicitation
    number: int = 1

    @property
    def icon(self) -> str:
        return "external-link" if self.question.url else "list-checks"

    @property
    def title(self) -> str:
        text = self.question.message
        return text if len(text) <= MAX_TITLE_LENGTH and "\n" not in text else ""

    @property
    def announcement(self) -> str:
        words = {"name": self.question.server, "question": self.question.message[:MAX_TITLE_LENGTH]}
        return _("%(name)s asks: %(question)s") % words


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one question of a call: a sentence, and the values that were filled in."""

    decision: Decision
    question: str
    answers: list[Answer]


def card_of(message: MessageSnapshot) -> QuestionCard | None:
    """Return the card of a question, or None if the message asks nothing or its question cannot be read."""
    tool = message.tool
    if tool is None or tool.question != "elicitation":
        return QuestionCard.of(message)
    asked = asked_of(tool.asked)
    if not asked or not asked[-1].is_open:
        return None
    return ElicitationCard(asked[-1].question, tool, message.model, True, len(tool.asked))


def replies_of(message: MessageSnapshot) -> list[Reply]:
    """Return the outcomes of all questions of a call."""
    asked = asked_of(message.tool.asked) if message.tool and message.tool.asked else []
    return [_reply(each, message) for each in asked]


def _reply(asked: Asked, message: MessageSnapshot) -> Reply:
    words = {"name": asked.answered_by or _("Someone"), "server": asked.question.server, "host": asked.question.host}
    action = asked.answer["action"] if asked.answer else ""
    answers: list[Answer] = []
    if action == "accept" and asked.question.url:
        icon, text = "external-link", _("%(name)s opened %(host)s for %(server)s") % words
    elif action == "accept":
        icon, text = "check", _("%(name)s answered a question from %(server)s") % words
        answers = _form_answers(asked)
    elif action == "decline":
        icon, text = "ban", _("%(name)s declined a question from %(server)s") % words
    elif action == "cancel":
        icon, text = "ban", _("%(name)s dismissed a question from %(server)s") % words
    elif asked.withdrawn == "expired":
        icon, text = "ban", _("No one answered a question from %(server)s in time") % words
    else:
        icon, text = "ban", _("A question from %(server)s was not answered") % words
    return Reply(Decision(icon, text, asked.answered_at).beside(message), asked.question.message, answers)


def _form_answers(asked: Asked) -> list[Answer]:
    content = asked.answer.get("content") if asked.answer else None
    if not isinstance(content, dict):  # the data of the user were erased
        return []
    return [Answer(field.label, filled_in(field, content.get(field.id))) for field in asked.question.fields]
