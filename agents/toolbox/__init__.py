"""The tools that come with Parley, by the names that a configuration gives to an agent."""

from __future__ import annotations

from collections.abc import Mapping

from agents.toolbox.calculator import calculator
from agents.toolbox.current_time import current_time
from agents.toolbox.web_fetch import web_fetch
from agents.toolbox.widgets import WIDGET_TOOLS
from agents.tools import Tool

# What an agent has whose configuration names no tools.
DEFAULT_TOOLS = (current_time, calculator, web_fetch, *WIDGET_TOOLS)
TOOLBOX: Mapping[str, Tool] = {tool.name: tool for tool in DEFAULT_TOOLS}
