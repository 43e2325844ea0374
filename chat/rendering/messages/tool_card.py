"""A tool call as a card shows it: its icon, a line of its arguments, and both ends in full."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from chat.rendering.messages.output import Output, output
from chat.rendering.text import terminal
from chat.snapshots import MessageSnapshot, ToolSnapshot

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

LINE = 120
_ICONS = {"web_fetch": "globe", "web_search": "globe", "calculator": "calculator", "current_time": "clock"}
# Of several arguments, the one that says most.
_TELLING = ("command", "cmd", "query", "url", "path", "file_path", "pattern", "expression", "code", "script")
_STATES = {
    "pending": "waiting",
    "running": "running",
    "waiting": "waiting",
    "interrupted": "interrupted",
    "failed": "failed",
}
_MARKS = {
    "done": ("check", _("done")),
    "failed": ("x", _("failed")),
    "interrupted": ("ban", _("interrupted")),
    "waiting": ("pause", _("waiting")),
    "running": ("loader-circle", _("running")),
}


@dataclass(frozen=True)
class ToolCard:
    """What the card's template asks for; the costly parts only when they are asked for."""

    tool: ToolSnapshot
    state: str  # waiting, running, interrupted, failed or done

    @classmethod
    def of(cls, message: MessageSnapshot) -> ToolCard:
        """Take a tool_group. Raises ValueError for a message without a tool."""
        if message.tool is None:
            raise ValueError(f"{message.id} has no tool")
        state = "failed" if message.tool.is_error else "done"
        return cls(message.tool, _STATES.get(message.status, state))

    @property
    def is_terminal(self) -> bool:
        return self.tool.name in terminal.TOOLS

    @property
    def icon(self) -> str:
        return "terminal" if self.is_terminal else _ICONS.get(self.tool.name, "wrench")

    @property
    def mark(self) -> str:
        """The icon of the state; `mark_name` is its word."""
        return _MARKS[self.state][0]

    @property
    def mark_name(self) -> StrPromise:
        return _MARKS[self.state][1]

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "interrupted")

    @cached_property
    def line(self) -> str:
        """The arguments on one line: the value alone when there is only one, or one that says most."""
        value = _telling(self.tool.arguments)
        text = value if isinstance(value, str) else "" if not value and value != 0 else _json(value)
        text = " ".join(text[: 4 * LINE].split())
        return text if len(text) <= LINE else f"{text[: LINE - 1]}…"

    @cached_property
    def command(self) -> str:
        """What a terminal shows after its prompt."""
        arguments = self.tool.arguments
        if isinstance(arguments, dict):
            for key in ("command", "cmd", "code", "script"):
                if isinstance(arguments.get(key), str):
                    return str(arguments[key])
        return self.line

    @cached_property
    def arguments(self) -> Output:
        """The arguments in full; in colour once nothing changes any more."""
        text = _json(self.tool.arguments) if self.tool.arguments not in ({}, None) else ""
        return output(text, in_colour=self.is_over)

    @cached_property
    def result(self) -> Output:
        return output(self.tool.result, in_colour=True)

    @cached_property
    def screen(self) -> terminal.Screen:
        return terminal.screen(self.tool.result)


def _telling(arguments: object) -> object:
    if not isinstance(arguments, dict):
        return arguments
    if len(arguments) == 1:
        return next(iter(arguments.values()))
    return next((arguments[name] for name in _TELLING if isinstance(arguments.get(name), str)), arguments)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # hand-made snapshots may hold anything
        return str(value)
