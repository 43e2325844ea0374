"""The tools that come with Parley, by the names that a configuration gives to an agent."""

from __future__ import annotations

from collections.abc import Mapping

from agents.toolbox.calculator import calculator
from agents.toolbox.current_time import current_time
from agents.toolbox.web_fetch import web_fetch
from agents.tools import Tool

TOOLBOX: Mapping[str, Tool] = {tool.name: tool for tool in (current_time, calculator, web_fetch)}
