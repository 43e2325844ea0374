"""The questions that an agent may ask users: the payload of each kind, and the answers that it accepts.

A question is a tool call that a user answers. Its payload is the arguments of the call; an approval has no payload.
Both the model's payload and the user's answer are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agents.i18n import gettext as _
from agents.messages import Json

Kind = Literal[
    "approval",
    "form",
    "selection",
    "confirmation",
    "plan_review",
    "feedback",
    "action_selection",
    "memory",
    "elicitation",
]

MAX_ITEMS = 50
MAX_ANSWER_LENGTH = 20_000
MAX_NOTE_LENGTH = 500
NOTE = f"One or two sentences, at most {MAX_NOTE_LENGTH} characters"
_WHOLE = re.compile(r"[+-]?[0-9]+")

# Models do not get the limits, so the descriptions state those that a model may exceed (agents.schemas).
ID = "1 to 64 letters, digits, _, . and -"
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description=ID)]
Label = Annotated[str, Field(min_length=1, max_length=200, description="At most 200 characters")]
Help = Annotated[str, Field(max_length=2_000)]
Plan = Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_LENGTH)]


class InvalidAnswer(ValueError):
    """The answer does not fit the question. The message explains it to the user who answers."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(_Strict):
    """One thing to choose."""

    id: Annotated[Id, Field(description=f"{ID}; unique among the choices; the result contains it")]
    label: Annotated[Label, Field(description="The label that users see, at most 200 characters")]
    description: Annotated[Help, Field(description="A line of explanation, if it helps to decide")] = ""


Choices = Annotated[list[Choice], Field(min_length=1, max_length=MAX_ITEMS, description=f"1 to {MAX_ITEMS} entries")]


class Question(_Strict):
    """The payload of a question. `check` turns an answer into the value that the model gets."""

    kind: ClassVar[Kind]

    def check(self, value: object) -> Any:
        """Return the answer as the model gets it. Raise InvalidAnswer."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _has_unique_ids(self) -> Self:
        for items in (getattr(self, name) for name in type(self).model_fields):
            ids = [each.id for each in items if isinstance(each, Choice | FormField)] if isinstance(items, list) else []
            if len(set(ids)) < len(ids):
                raise ValueError("each id may occur only once")
        return self


class Selection(Question):
    """Let users choose from a list. Returns the ids that they chose."""

    kind = "selection"
    question: Label
    choices: Choices
    multiple: Annotated[bool, Field(description="Whether several may be chosen")] = False
    optional: Annotated[bool, Field(description="Whether choosing nothing is an answer")] = False

    def check(self, value: object) -> list[str]:
        chosen = _strings(value)
        known = [choice.id for choice in self.choices]
        if any(one not in known for one in chosen) or len(set(chosen)) < len(chosen):
            raise InvalidAnswer(_("Choose from the list."))
        if not chosen and not self.optional:
            raise InvalidAnswer(_("Choose at least one."))
        if len(chosen) > 1 and not self.multiple:
            raise InvalidAnswer(_("Choose only one."))
        return [one for one in known if one in chosen]


class Confirmation(Question):
    """Ask users to confirm something important. Returns {"confirmed": true or false}."""

    kind = "confirmation"
    question: Label
    details: Annotated[str, Field(max_length=MAX_ANSWER_LENGTH, description="What will happen, as Markdown")] = ""
    confirm: Annotated[
        str, Field(max_length=40, description="The label of the button for yes, at most 40 characters")
    ] = ""
    decline: Annotated[
        str, Field(max_length=40, description="The label of the button for no, at most 40 characters")
    ] = ""
    danger: Annotated[bool, Field(description="Whether yes is destructive, such as deleting data")] = False

    def check(self, value: object) -> Json:
        match value:
            case {"confirmed": bool(confirmed), **rest} if not rest:
                return {"confirmed": confirmed}
        raise InvalidAnswer(_("Answer with yes or no."))


class PlanReview(Question):
    """Show users a plan before you carry it out. Returns their decision, and the plan as they changed it.

    The answer is {"decision": "approve"}, {"decision": "edit", "plan": the new plan} or {"decision": "reject"}, with
    "comment" if they wrote one.
    """

    kind = "plan_review"
    title: Label
    plan: Annotated[Plan, Field(description="The plan, as Markdown")]

    def check(self, value: object) -> Json:
        try:
            answer = _PlanAnswer.model_validate(value, strict=True)
        except ValidationError:
            raise InvalidAnswer(_("Approve the plan, edit it, or reject it.")) from None
        if answer.decision == "edit" and not answer.plan.strip():
            raise InvalidAnswer(_("Write the plan."))
        plan = {"plan": answer.plan} if answer.decision == "edit" else {}
        return {"decision": answer.decision, **plan, **({"comment": answer.comment} if answer.comment else {})}


class _PlanAnswer(_Strict):
    decision: Literal["approve", "edit", "reject"]
    plan: Annotated[str, Field(max_length=MAX_ANSWER_LENGTH)] = ""
    comment: Annotated[str, Field(max_length=MAX_ANSWER_LENGTH)] = ""


class Feedback(Question):
    """Ask users for feedback on several items. Returns {id: text} for the items that they commented on."""

    kind = "feedback"
    question: Label
    items: Choices

    def check(self, value: object) -> Json:
        texts = _texts(value)
        if any(name not in {item.id for item in self.items} for name in texts):
            raise InvalidAnswer(_("Give feedback only on the listed items."))
        written = {item.id: texts[item.id].strip() for item in self.items if texts.get(item.id, "").strip()}
        if not written:
            raise InvalidAnswer(_("Give feedback on at least one item."))
        return written


class ActionSelection(Question):
    """Offer users the next steps as buttons. Returns the id of the button that they pressed."""

    kind = "action_selection"
    question: Label
    actions: Annotated[list[Choice], Field(min_length=1, max_length=8, description="1 to 8 entries")]

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in {action.id for action in self.actions}:
            raise InvalidAnswer(_("Choose from the list."))
        return value


class Memory(Question):
    """Propose a short note to remember in later conversations: a lasting preference, fact or decision.

    A user accepts, edits or rejects it. Never propose secrets, or what only this conversation needs. Returns
    {"decision": "save", "note": what is kept} or {"decision": "reject"}.
    """

    kind = "memory"
    note: Annotated[str, Field(min_length=1, max_length=MAX_NOTE_LENGTH, description=NOTE)]
    scope: Annotated[
        Literal["me", "workspace"],
        Field(description="me: about the user you talk to. workspace: useful to the whole team"),
    ] = "me"

    def check(self, value: object) -> Json:
        try:
            answer = _MemoryAnswer.model_validate(value, strict=True)
        except ValidationError:
            raise InvalidAnswer(_("Keep the note, or reject it.")) from None
        if answer.decision == "reject":
            return {"decision": "reject"}
        note = " ".join((self.note if answer.note is None else answer.note).split())
        if not note:
            raise InvalidAnswer(_("Write the note."))
        return {"decision": "save", "note": note, "scope": answer.scope or self.scope}


class _MemoryAnswer(_Strict):
    decision: Literal["save", "reject"]
    note: Annotated[str, Field(max_length=MAX_NOTE_LENGTH)] | None = None
    scope: Literal["me", "workspace"] | None = None


class FormField(_Strict):
    """One field of a form."""

    id: Id
    label: Label
    type: Annotated[
        Literal["text", "long_text", "number", "date", "yes_no", "choice", "choices"],
        Field(description="date: YYYY-MM-DD. choice: one of `options`; choices: any number of them"),
    ] = "text"
    help: Help = ""
    required: bool = False
    options: Annotated[list[Label], Field(max_length=MAX_ITEMS, description=f"At most {MAX_ITEMS} entries")] = []
    default: Annotated[str, Field(max_length=2_000, description="The initial value")] = ""

    @field_validator("options")
    @classmethod
    def _are_unique(cls, options: list[str]) -> list[str]:
        if len(set(options)) < len(options):
            raise ValueError("each option may occur only once")
        return options

    @model_validator(mode="after")
    def _has_options(self) -> Self:
        if (self.type in ("choice", "choices")) != bool(self.options):
            raise ValueError("options belong to the types choice and choices, and only to them")
        return self

    def check(self, value: object) -> Any:
        """Return the field's value, None if it is empty. Raise InvalidAnswer."""
        read = {"number": self._number, "date": self._date, "yes_no": self._yes_no, "choices": self._several}
        checked = None if value in (None, "", []) else read.get(self.type, self._text)(value)
        if self.required and checked is None:
            raise InvalidAnswer(_("“{field}” is required.", field=self.label))
        return checked

    def _text(self, value: object) -> str:
        if self.options and value not in self.options:
            raise InvalidAnswer(_("Choose an option for “{field}”.", field=self.label))
        if not isinstance(value, str):
            raise InvalidAnswer(_("“{field}” must be text.", field=self.label))
        if len(value) > MAX_ANSWER_LENGTH:
            raise InvalidAnswer(_("“{field}” is too long.", field=self.label))
        return value

    def _number(self, value: object) -> float | int:
        try:
            text = str(value).strip()
            if isinstance(value, bool) or len(text) > 40:
                raise ValueError
            if _WHOLE.fullmatch(text):  # read exactly, because a float would round a long id
                return int(text)
            number = float(text)
            if number - number != 0:  # infinite, or not a number
                raise ValueError
        except ValueError:
            raise InvalidAnswer(_("“{field}” must be a number.", field=self.label)) from None
        return int(number) if number.is_integer() and abs(number) < 2**53 else number

    def _date(self, value: object) -> str:
        try:
            return date.fromisoformat(str(value)).isoformat()
        except ValueError:
            raise InvalidAnswer(_("“{field}” must be a date.", field=self.label)) from None

    def _yes_no(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise InvalidAnswer(_("Answer “{field}” with yes or no.", field=self.label))
        return value

    def _several(self, value: object) -> list[str]:
        chosen = _strings(value)
        if any(one not in self.options for one in chosen):
            raise InvalidAnswer(_("Choose an option for “{field}”.", field=self.label))
        return [option for option in self.options if option in chosen]


class Form(Question):
    """Ask users to fill in a form. Returns {id: value} for the fields that they filled in."""

    kind = "form"
    title: Label
    description: Help = ""
    fields: Annotated[
        list[FormField], Field(min_length=1, max_length=MAX_ITEMS, description=f"1 to {MAX_ITEMS} entries")
    ]
    submit: Annotated[str, Field(max_length=40, description="The label of the button, at most 40 characters")] = ""

    def check(self, value: object) -> Json:
        if not isinstance(value, Mapping) or not {field.id for field in self.fields} >= set(value):
            raise InvalidAnswer(_("Fill in the form’s fields."))
        read = {field.id: field.check(value.get(field.id)) for field in self.fields}
        return {name: one for name, one in read.items() if one is not None}


class Approval(Question):
    """The question of whether a tool may run. Models do not get it as a tool: Parley asks it before a call."""

    kind = "approval"

    def check(self, value: object) -> Json:
        try:
            answer = ApprovalAnswer.model_validate(value, strict=True)
        except ValidationError:
            raise InvalidAnswer(_("Approve the call, or refuse it.")) from None
        if answer.arguments is not None and not answer.approved:
            raise InvalidAnswer(_("Approve the call to change its arguments."))
        return answer.model_dump(exclude_none=True)


class ApprovalAnswer(_Strict):
    """A user's decision about a tool call. If the call is refused, the model gets `comment`."""

    approved: bool
    scope: Literal["once", "session", "agent"] = "once"
    arguments: Json | None = None
    comment: Annotated[str, Field(max_length=MAX_ANSWER_LENGTH)] = ""


# The questions that models get as tools. An approval is not one of them.
WIDGETS: tuple[type[Question], ...] = (Form, Selection, Confirmation, PlanReview, Feedback, ActionSelection)
_QUESTIONS: tuple[type[Question], ...] = (*WIDGETS, Memory, Approval)
_KINDS: Mapping[str, type[Question]] = {question.kind: question for question in _QUESTIONS}


def read_question(kind: str, payload: object) -> Question | None:
    """Return the question with this payload, or None if the kind is unknown or the payload does not fit it."""
    try:
        return _KINDS[kind].model_validate(payload)
    except (KeyError, ValidationError):
        return None


def _strings(value: object) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise InvalidAnswer(_("Choose from the list."))
    return list(value)


def _texts(value: object) -> dict[str, str]:
    match value:
        case dict() if all(isinstance(text, str) and len(text) <= MAX_ANSWER_LENGTH for text in value.values()):
            return {str(name): text for name, text in value.items()}
    raise InvalidAnswer(_("Feedback must be one text per listed item."))
