"""Descriptions and names of tools for users, in the active language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.delegates import EVERY, PREFIX, is_delegate
from agents.mcp.config import SEPARATOR
from agents.tools import Tool
from chat.rendering.text.translation import translated


def tool_text(tool: Tool) -> str:
    """Return what a tool does. Tools of MCP servers and of the operator have descriptions of their own."""
    return translated(tool.summary)


def entry_text(name: str, tool: Tool | None) -> str:
    """Return what an entry of an agent's list of tools provides: a tool, other agents, or a server's tools."""
    if tool is not None:
        return tool_text(tool)
    if name == EVERY:
        return _("Gives tasks to other agents")
    if is_delegate(name):
        return _("Gives tasks to the agent {title}").format(title=name.removeprefix(PREFIX))
    server, separator, rest = name.partition(SEPARATOR)
    if not separator:
        return ""
    return _("All tools of the MCP server %(name)s") % {"name": server} if rest == "*" else ""


# The names that users see of the tools that are part of Parley, in groups.
GROUPS: Mapping[Promise, Mapping[str, Promise]] = {
    gettext_lazy("General"): {
        "calculator": gettext_lazy("Calculator"),
        "current_time": gettext_lazy("Date and time"),
        "remember": gettext_lazy("Memory"),
    },
    gettext_lazy("Web"): {
        "web_search": gettext_lazy("Web search"),
        "web_fetch": gettext_lazy("Read web pages"),
    },
    gettext_lazy("Questions to people"): {
        "confirmation": gettext_lazy("Yes or no"),
        "selection": gettext_lazy("Choice from a list"),
        "form": gettext_lazy("Form"),
        "plan_review": gettext_lazy("Plan review"),
        "feedback": gettext_lazy("Feedback"),
        "action_selection": gettext_lazy("Next steps"),
    },
    gettext_lazy("Files and commands"): {
        "read_file": gettext_lazy("Read files"),
        "list_files": gettext_lazy("List files"),
        "search_files": gettext_lazy("Search files"),
        "write_file": gettext_lazy("Write files"),
        "edit_file": gettext_lazy("Edit files"),
        "bash": gettext_lazy("Commands"),
        "python": gettext_lazy("Python"),
    },
}


def grouped(names: Iterable[str], agents: Mapping[str, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Sort entries of a list of tools into groups. Return each group's heading, and the entries with their titles.

    `agents` are the titles of agents by their names. Tools of the operator are in the group "More".
    """
    left = sorted(names)
    found = [
        (str(label), [(name, str(known[name])) for name in known if name in left]) for label, known in GROUPS.items()
    ]
    named = {name for _label, entries in found for name, _title in entries}
    others = [name for name in left if name not in named]
    delegates = [(name, _agent_title(name, agents)) for name in others if is_delegate(name)]
    servers = [name for name in others if not is_delegate(name) and SEPARATOR in name]
    rest = [name for name in others if not is_delegate(name) and SEPARATOR not in name]
    found += [
        (_("Other agents"), delegates),
        (_("MCP servers"), [(name, name.partition(SEPARATOR)[0]) for name in servers]),
        (_("More"), [(name, name.replace("_", " ").capitalize()) for name in rest]),
    ]
    return [(label, entries) for label, entries in found if entries]


def _agent_title(name: str, agents: Mapping[str, str]) -> str:
    agent = name.removeprefix(PREFIX)
    return _("All other agents") if name == EVERY else agents.get(agent, agent)
