"""The tools that are part of Parley, with the names that an agent's configuration uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agents.sandbox import probe
from agents.toolbox.calculator import calculator
from agents.toolbox.current_time import current_time
from agents.toolbox.terminal import bash, python
from agents.toolbox.web_fetch import web_fetch
from agents.toolbox.web_search import web_search
from agents.toolbox.widgets import WIDGET_TOOLS, remember
from agents.toolbox.workspace_files import FILE_TOOLS
from agents.tools import Tool

# The tools of an agent whose configuration lists none.
DEFAULT_TOOLS = (current_time, calculator, web_fetch, *WIDGET_TOOLS)
# This tool needs a search service. If one is configured, agents whose configuration lists no tools get it, too.
SEARCH = web_search.name
# Tools that need a sandbox, which not all machines can run.
SANDBOX_TOOLS = (bash, python, *FILE_TOOLS)
TOOLBOX: Mapping[str, Tool] = {tool.name: tool for tool in (*DEFAULT_TOOLS, remember, web_search, *SANDBOX_TOOLS)}
NO_TOOLS: Mapping[str, Tool] = {}


def available(
    names: Iterable[str], search: Tool | None = None, added: Mapping[str, Tool] = NO_TOOLS
) -> tuple[Tool, ...]:
    """Return the tools with these names, without those that are unknown or cannot run on this machine.

    `search` is `web_search` with its service, or None if no service is configured. `added` are tools of the operator.
    """
    toolbox = {**added, **TOOLBOX, SEARCH: search}
    tools = [tool for name in names if (tool := toolbox.get(name)) is not None]
    if any(tool in SANDBOX_TOOLS for tool in tools) and probe.problem():
        tools = [tool for tool in tools if tool not in SANDBOX_TOOLS]
    return tuple(tools)
