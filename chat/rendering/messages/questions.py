"""A question as a card, its answer as text, and the decision about a tool call that needed an approval."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.approval import COMMANDS, main_argument
from agents.questions import (
    ActionSelection,
    Approval,
    Confirmation,
    Feedback,
    Form,
    FormField,
    Memory,
    PlanReview,
    Question,
    Selection,
    read_question,
)
from chat.languages import listed
from chat.models import QuestionKind
from chat.rendering.markdown import render
from chat.rendering.messages.tool_card import Output, output
from chat.runs.approvals import Standing, standing_of
from chat.snapshots import MessageSnapshot, ToolSnapshot

ICONS = {
    "approval": "shield",
    "form": "list-checks",
    "selection": "list-checks",
    "confirmation": "circle-help",
    "plan_review": "file-text",
    "feedback": "message-square",
    "action_selection": "circle-help",
    "memory": "lightbulb",
}
# In characters. A longer argument, or one with several lines, is shown in a box.
SHORT_ARGUMENT = 160


@dataclass(frozen=True, slots=True)
class Answer:
    """A line of an answer: the choice or the text.

    `label` names the item that it answers, or is "" if that is clear.
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call. If `long` is set, it is shown in a box instead of as the short `text`."""

    name: str
    text: str
    long: Output | None


# The length of the part of an ISO 8601 time that ends with the minute.
MINUTE = len("2026-01-01T00:00")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a tool call, as an icon and a sentence. `at` is an ISO 8601 time, or None to show no time."""

    icon: str
    text: str
    at: str | None

    def beside(self, message: MessageSnapshot) -> Decision:
        """Return the decision without its time if the message, whose time is shown, is from the same minute."""
        is_same = self.at is not None and self.at[:MINUTE] == message.timestamp[:MINUTE]
        return replace(self, at=None) if is_same else self


@dataclass(frozen=True)
class QuestionCard:
    """The values of the card's template. Expensive values are computed when the template reads them."""

    question: Question
    tool: ToolSnapshot
    name: str
    is_open: bool

    @classmethod
    def of(cls, message: MessageSnapshot) -> QuestionCard | None:
        """Return the card of a message, or None if it asks nothing or its question cannot be read.

        A decided approval is shown on the tool's card instead.
        """
        tool, is_open = message.tool, message.status == "waiting"
        if tool is None or not tool.question or tool.subsession:
            return None
        is_approval = tool.question == QuestionKind.APPROVAL
        if is_approval and not is_open:
            return None
        question = read_question(tool.question, {} if is_approval else tool.arguments)
        name = message.sender or message.model or _("The agent")
        return cls(question, tool, name, is_open) if question else None

    @property
    def kind(self) -> str:
        return self.question.kind

    @property
    def template(self) -> str:
        return f"chat/messages/questions/{self.kind}.html"

    @property
    def icon(self) -> str:
        return ICONS[self.kind]

    @property
    def title(self) -> str:
        """The question in one line. For an approval it is "", because the heading contains it."""
        match self.question:
            case Form(title=title) | PlanReview(title=title):
                return title
            case Selection(question=title) | Confirmation(question=title):
                return title
            case Feedback(question=title) | ActionSelection(question=title):
                return title
            case Memory():
                return _("Remember this in later sessions?")
        return ""

    @cached_property
    def standing(self) -> Standing | None:
        """The approvals that the call needs and has, or None if one user's approval is enough."""
        return standing_of(self.tool.approval)

    @property
    def needed(self) -> str:
        """A sentence with the number of missing approvals, and the roles that can give them."""
        if self.standing is None:
            return ""
        missing, approvers = self.standing.missing, self.standing.needs.approvers
        words = _more_needed(missing) if self.standing.decisions else _first_needed(missing)
        return words[approvers] % {"count": missing}

    @property
    def announcement(self) -> str:
        """The sentence for screen readers and notifications about an open question."""
        if isinstance(self.question, Approval):
            return _("%(name)s wants to run %(tool)s") % {"name": self.name, "tool": self.tool.name}
        return _("%(name)s asks: %(question)s") % {"name": self.name, "question": self.title}

    @property
    def markdown(self) -> str:
        """The Markdown of the question, or of a plan after users have changed it; "" if there is none."""
        match self.question, self.tool.answer:
            case PlanReview(), {"plan": str(changed)}:
                return changed
            case ((PlanReview(plan=text) | Confirmation(details=text)), _):
                return text
        return ""

    @cached_property
    def prose(self) -> SafeString:
        """The question's Markdown as HTML. This blocks the thread if another process renders it."""
        return mark_safe(render.in_blocks(render.blocks(self.markdown)))  # noqa: S308  # sanitized HTML

    @property
    def is_answered(self) -> bool:
        return self.tool.answered_at is not None

    @property
    def answerer(self) -> str:
        return self.tool.answered_by or _("Someone")

    @cached_property
    def answers(self) -> list[Answer]:
        """The answer in words. If the question does not accept the answer, this is its JSON."""
        try:
            answers = list(_answers(self.question, self.tool.answer))
            return [*answers, Answer("", _("Waiting for an owner or admin"))] if self._is_proposal else answers
        except (AttributeError, KeyError, TypeError):  # the row was edited or imported
            return [Answer("", _json(self.tool.answer))]

    @property
    def _is_proposal(self) -> bool:
        """Whether an accepted note is a proposal, judged by the result that the model reads."""
        return isinstance(self.question, Memory) and '"waits_for"' in self.tool.result

    @property
    def command(self) -> str:
        """The command that a call would run, or "" if it runs none."""
        name, value = self._main
        return str(value) if name in COMMANDS and isinstance(value, str) else ""

    @property
    def call_arguments(self) -> list[Argument]:
        """The arguments of a call, without an argument that is already shown as the command."""
        arguments = self.tool.arguments
        if not isinstance(arguments, dict):
            return []
        shown_above = self._main[0] if self.command else None
        return [_argument(name, value) for name, value in arguments.items() if name != shown_above]

    @property
    def texts(self) -> list[Argument]:
        """The arguments as texts to edit. Empty if an argument is not a text, or if a form's field would change it."""
        arguments = self.tool.arguments
        if not isinstance(arguments, dict) or not all(isinstance(each, str) for each in arguments.values()):
            return []
        if any("\r" in each for each in arguments.values()):
            return []
        return [Argument(name, text, None) for name, text in arguments.items()]

    @property
    def source(self) -> str:
        """The arguments as JSON to edit."""
        return _json(self.tool.arguments, indent=2)

    @property
    def _main(self) -> tuple[str, object]:
        return main_argument(self.tool.arguments) if isinstance(self.tool.arguments, dict) else ("", None)


def _first_needed(count: int) -> dict[str, str]:
    """Return the text for a call without decisions, by the role whose approval it needs."""
    return {
        "": ngettext("%(count)d approval needed", "%(count)d approvals needed", count),
        "admin": ngettext(
            "Approval of an owner or admin needed", "%(count)d approvals of owners or admins needed", count
        ),
        "owner": ngettext("Approval of an owner needed", "%(count)d approvals of owners needed", count),
    }


def _more_needed(count: int) -> dict[str, str]:
    return {
        "": ngettext("%(count)d more approval needed", "%(count)d more approvals needed", count),
        "admin": ngettext(
            "%(count)d more approval of an owner or admin needed",
            "%(count)d more approvals of owners or admins needed",
            count,
        ),
        "owner": ngettext(
            "%(count)d more approval of an owner needed", "%(count)d more approvals of owners needed", count
        ),
    }


def decision_of(message: MessageSnapshot) -> Decision | None:
    """Return the decision about a tool call, or None if it waits for one or needed none."""
    decision = _decision_of(message)
    return decision and decision.beside(message)


def _decision_of(message: MessageSnapshot) -> Decision | None:
    tool = message.tool
    if tool is None or tool.question != QuestionKind.APPROVAL:
        return None
    if message.status == "waiting" and not tool.subsession:
        return None
    if tool.answered_at is None:
        if message.status == "interrupted":
            return Decision("ban", _("Not answered"), None)
        return Decision("shield", _("Allowed by an earlier approval"), None)
    answer = tool.answer if isinstance(tool.answer, dict) else {}
    name = {"name": tool.answered_by or _("Someone")}
    if not answer.get("approved"):
        comment = str(answer.get("comment", "")).strip()
        words = _("%(name)s refused: %(comment)s") if comment else _("%(name)s refused")
        return Decision("ban", words % {**name, "comment": comment}, tool.answered_at)
    if (standing := standing_of(tool.approval)) and standing.approvals:
        names = listed(each.name for each in standing.approvals)
        return Decision("shield", _("Approved by %(names)s") % {"names": names}, tool.answered_at)
    words = {
        "session": _("%(name)s allowed this for the session"),
        "agent": _("%(name)s always allows this for this agent"),
    }.get(str(answer.get("scope")), _("%(name)s allowed this once"))
    return Decision("shield", words % name, tool.answered_at)


def _answers(question: Question, answer: object) -> Iterable[Answer]:
    match question, answer:
        case Selection(choices=choices), list(chosen):
            labels = [choice.label for choice in choices if choice.id in chosen]
            return [Answer("", label) for label in labels or [_("Nothing chosen")]]
        case ActionSelection(actions=actions), str(chosen):
            return [Answer("", next((each.label for each in actions if each.id == chosen), chosen))]
        case Confirmation(confirm=confirm, decline=decline), {"confirmed": bool(confirmed)}:
            return [Answer("", (confirm or _("Yes")) if confirmed else (decline or _("No")))]
        case Feedback(items=items), dict(texts):
            return [Answer(item.label, str(texts[item.id])) for item in items if item.id in texts]
        case Form(fields=fields), dict(values):
            return [Answer(field.label, filled_in(field, values.get(field.id))) for field in fields]
        case Memory(), {"decision": "save", "note": str(note), **rest}:
            whose = _("For everyone in the workspace") if rest.get("scope") == "workspace" else _("For one person")
            return [Answer(whose, note)]
        case Memory(note=note), {"decision": "reject"}:
            return [Answer(_("Not remembered"), note)]
        case PlanReview(), {"decision": str(decision), **rest}:
            words = {"approve": _("Approved"), "edit": _("Approved with changes"), "reject": _("Rejected")}
            comment = str(rest.get("comment", ""))
            return [Answer("", words[decision]), *([Answer(_("Comment"), comment)] if comment else [])]
    raise TypeError(f"{type(question).__name__} with {type(answer).__name__}")


def filled_in(field: FormField, value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    return listed(map(str, value)) if isinstance(value, list) else str(value)


def _argument(name: str, value: object) -> Argument:
    text = value if isinstance(value, str) else _json(value)
    is_short = len(text) <= SHORT_ARGUMENT and "\n" not in text
    return Argument(name, text, None if is_short else output(text, in_color=False))


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
