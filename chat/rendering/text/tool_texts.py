"""What people read of a tool, in the active language."""

from __future__ import annotations

from django.utils.translation import gettext as _

from agents.delegates import EVERY, PREFIX, is_delegate
from agents.i18n import TranslatableText
from agents.mcp.config import SEPARATOR
from agents.tools import Tool
from chat.rendering.text.translation import translate


def tool_text(tool: Tool) -> str:
    """Say what a tool does. Tools of MCP servers and of the operator have their own words."""
    summary = tool.summary
    return translate(summary, summary.to_json()) if isinstance(summary, TranslatableText) else summary


def entry_text(name: str, tool: Tool | None) -> str:
    """Say what an entry of an agent's list of tools gives it: a tool, other agents, or those of an MCP server."""
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
