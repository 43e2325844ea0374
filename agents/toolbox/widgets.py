"""The tools by which an agent asks users. The arguments are the question, and the users' answer is the result."""

from __future__ import annotations

import inspect

from agents.i18n import gettext as _
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
        parameters=schema_of(question),
        function=answered_by_people,
        arguments=question,
        question=question,
        about=ABOUT[question.kind],
    )


def answered_by_people() -> None:
    """Raise AssertionError. This is the function of tools that users answer, so it is never called."""
    raise AssertionError("people answer this tool")


WIDGET_TOOLS = tuple(map(widget, WIDGETS))
# Only for agents whose configuration lists it. Notes that users accept are kept across sessions.
remember = widget(Memory, "remember")
