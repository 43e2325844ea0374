"""The tools by which an agent asks users. The arguments are the question, and the users' answer is the result."""

from __future__ import annotations

import inspect
from typing import Any

from agents.i18n import gettext as _
from agents.messages import Json
from agents.questions import WIDGETS, Memory, Question
from agents.tools import Tool, schema_of

# The descriptions of these tools for users. The docstrings of the questions are the descriptions for models.
ABOUT = {
    "selection": _("Asks people to choose from a list"),
    "confirmation": _("Asks people to confirm something important"),
    "plan_review": _("Shows a plan for people to approve, change or reject"),
    "feedback": _("Asks people for feedback on several items"),
    "action_selection": _("Offers the next steps as buttons"),
    "form": _("Asks people to fill in a form"),
    "memory": _("Proposes notes for later sessions, which people keep or reject"),
}


def widget(question: type[Question], name: str = "") -> Tool:
    """Return a tool for a kind of question, with its name unless `name` is given.

    The docstring of the question's class is the description for models.
    """
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
    """Raise AssertionError. This is the function of tools that users answer, so it is never called."""
    raise AssertionError("people answer this tool")


def without_references(schema: Json) -> Json:
    """Return a schema with all references replaced by definitions, because some model servers ignore references."""
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
# Only for agents whose configuration lists it. Notes that users accept are kept across sessions.
remember = widget(Memory, "remember")
