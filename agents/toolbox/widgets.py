"""The tools by which an agent asks people: their arguments are the question, and what people answer is the result."""

from __future__ import annotations

import inspect
from typing import Any

from agents.i18n import gettext as _
from agents.messages import Json
from agents.questions import WIDGETS, Memory, Question
from agents.tools import Tool, schema_of

# What people read of these tools. The docstrings of the questions describe them to the model.
ABOUT = {
    "selection": _("Asks people to choose from a list"),
    "confirmation": _("Asks people yes or no before something important"),
    "plan_review": _("Shows people a plan, which they approve, change or reject"),
    "feedback": _("Asks people what they think of several things"),
    "action_selection": _("Offers people the next steps as buttons"),
    "form": _("Asks people for several things in a form"),
    "memory": _("Proposes notes for later conversations, which people keep or reject"),
}


def widget(question: type[Question], name: str = "") -> Tool:
    """Make a tool of a kind of question, whose name it has. Its docstring describes it to the model."""
    return Tool(
        name=name or question.kind,
        description=inspect.getdoc(question) or "",
        parameters=without_references(schema_of(question)),
        function=answered_by_people,
        arguments=question,
        question=question,
        about=ABOUT[question.kind],
    )


def answered_by_people() -> None:
    """Be the function of a tool that people answer: it is never called."""
    raise AssertionError("people answer this tool")


def without_references(schema: Json) -> Json:
    """Put the definitions of a schema into the places that refer to them: not every model server follows references."""
    definitions = schema.get("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(item) for item in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix("#/$defs/")
        rest = {key: resolved(item) for key, item in value.items() if key not in ("$ref", "$defs")}
        return resolved(definitions[name]) | rest if name else rest

    inlined: Json = resolved(schema)
    return inlined


WIDGET_TOOLS = tuple(map(widget, WIDGETS))
# For agents whose configuration names it: what people accept is kept across sessions.
remember = widget(Memory, "remember")
