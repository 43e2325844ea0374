"""Other agents as tools: an agent that is given a task works on it in a session of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agents.i18n import gettext as _
from agents.mcp.config import AGENTS, SEPARATOR
from agents.tools import Tool, schema_of

# Begins what an agent's list of tools has for another agent: `agent__researcher`, and `agent__*` for all.
PREFIX = f"{AGENTS}{SEPARATOR}"
EVERY = f"{PREFIX}*"
LONGEST_TASK = 100_000
# How deep agents may ask other agents: one that was asked may ask again, and that one may not.
MOST_LEVELS = 2
# How many tasks an agent may give in one turn.
MOST_TASKS = 10

_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_DESCRIPTION = """\
Give a task to another agent, {title}, and get its answer.

It works in a session of its own, with its own tools and instructions, and sees nothing of this conversation: write \
down all that it needs to know, and what you expect back. Several calls in one response work at the same time."""


class Task(BaseModel):
    """The arguments of a call."""

    model_config = ConfigDict(extra="forbid")

    task: Annotated[str, Field(min_length=1, max_length=LONGEST_TASK, description="The whole task, as a message")]


def is_delegate(name: str) -> bool:
    """Return whether an entry of a list of tools stands for other agents."""
    return name.startswith(PREFIX) and len(name) > len(PREFIX)


def tool_name(agent: str) -> str:
    """Return the name under which models call an agent."""
    return f"{PREFIX}{_OTHER.sub('_', agent)}"[:64]


def chosen(entries: Iterable[str], agents: Iterable[str], own: str) -> list[str]:
    """Return which of these agents a list of tools names. `agent__*` does not include the agent itself."""
    named = [entry.removeprefix(PREFIX) for entry in entries if is_delegate(entry)]
    return [name for name in agents if name in named or ("*" in named and name != own)]


def delegate(agent: str, title: str) -> Tool:
    """Make the tool by which a model gives an agent a task. It is never run here."""
    return Tool(
        name=tool_name(agent),
        description=_DESCRIPTION.format(title=title),
        parameters=schema_of(Task),
        function=_never,
        arguments=Task,
        delegates=True,
        about=_("Gives tasks to the agent {title}", title=title),
    )


def _never(task: str) -> str:
    raise AssertionError("another agent does this")
