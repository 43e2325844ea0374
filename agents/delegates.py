"""Tools by which an agent gives tasks to other agents, which work on them in subsessions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agents.i18n import gettext as _
from agents.tools import Tool, schema_of

# The beginning of an entry for another agent in an agent's list of tools: `agent__researcher`, or `agent__*` for all.
PREFIX = "agent__"
EVERY = f"{PREFIX}*"
MAX_TASK_LENGTH = 100_000
# How deep delegation may go: an agent that got a task may give one to another agent, but that agent may not.
MAX_LEVELS = 2
# The number of tasks that an agent may give in one turn.
MAX_TASKS = 10

_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_DESCRIPTION = """\
Give a task to another agent, {title}, and get its answer.

It works in a session of its own, with its own tools and instructions, and sees nothing of this conversation: write \
down all that it needs to know, and what you expect back. Several calls in one response work at the same time."""


class Task(BaseModel):
    """The arguments of a call."""

    model_config = ConfigDict(extra="forbid")

    # Vendors refuse a message without visible text.
    task: Annotated[
        str, Field(min_length=1, max_length=MAX_TASK_LENGTH, pattern=r"\S", description="The whole task, as a message")
    ]


def is_delegate(name: str) -> bool:
    """Return whether an entry of a list of tools names other agents."""
    return name.startswith(PREFIX) and len(name) > len(PREFIX)


def tool_name(agent: str) -> str:
    """Return the name under which models call an agent."""
    return f"{PREFIX}{_OTHER.sub('_', agent)}"[:64]


def chosen_agents(entries: Iterable[str], agents: Iterable[str], own: str) -> list[str]:
    """Return the agents that a list of tools names. `agent__*` names all of them except the agent `own`."""
    named = [entry.removeprefix(PREFIX) for entry in entries if is_delegate(entry)]
    return [name for name in agents if name in named or ("*" in named and name != own)]


def delegate(agent: str, title: str) -> Tool:
    """Return the tool by which a model gives a task to an agent.

    Its function never runs: the turn waits for the other agent's result instead (`ToolDelegated`).
    """
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
