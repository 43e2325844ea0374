"""The names of tools by which agents give tasks to other agents."""

from __future__ import annotations

# The beginning of an entry for another agent in an agent's list of tools: `agent__researcher`, or `agent__*` for all.
PREFIX = "agent__"


def is_delegate(name: str) -> bool:
    """Return whether an entry of a list of tools names other agents."""
    return name.startswith(PREFIX) and len(name) > len(PREFIX)
