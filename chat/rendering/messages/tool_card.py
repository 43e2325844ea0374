"""A tool call as a card: its icon and state, its arguments on one line and in full, and its result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING

from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from agents.toolbox.web_search import ORIGIN
from chat.rendering.text import terminal
from chat.rendering.text.json_text import coloured, laid_out
from chat.snapshots import MessageSnapshot, ToolSnapshot

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

LINE = 120
# The part of long arguments and results that is shown at first.
FIRST_LINES = 200
FIRST_CHARACTERS = 10_000
# The lines that a terminal shows of a command that is running.
LAST_LINES = 16
_ICONS = {
    "web_fetch": "globe",
    "web_search": "globe",
    "calculator": "calculator",
    "current_time": "clock",
    "read_file": "file-text",
    "write_file": "square-pen",
    "edit_file": "square-pen",
    "list_files": "list-checks",
    "search_files": "search",
}
# The most informative argument: the first of these that is given.
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


@dataclass(frozen=True, slots=True)
class Output:
    """Safe HTML: `shown` at first, and the `rest` behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int

    def __bool__(self) -> bool:
        return bool(self.shown)


@dataclass(frozen=True)
class ToolCard:
    """The values of the card's template. Expensive values are computed when the template reads them."""

    tool: ToolSnapshot
    state: str  # waiting, running, interrupted, failed or done

    @classmethod
    def of(cls, message: MessageSnapshot) -> ToolCard:
        """Return the card of a tool_group message. Raises ValueError for a message without a tool."""
        if message.tool is None:
            raise ValueError(f"{message.id} has no tool")
        state = "failed" if message.tool.is_error else "done"
        return cls(message.tool, _STATES.get(message.status, state))

    @property
    def is_terminal(self) -> bool:
        return self.tool.name in terminal.TOOLS

    @property
    def origin(self) -> str:
        """Where the text of the result comes from; "" if the name of the tool says it."""
        origin = self.tool.origin if self.state == "done" else ""
        if origin == ORIGIN:
            return str(_("the web"))
        return "" if origin == self.tool.name else origin

    @property
    def icon(self) -> str:
        return "terminal" if self.is_terminal else _ICONS.get(self.tool.name, "wrench")

    @property
    def mark(self) -> str:
        """The icon of the state. `mark_name` is its label."""
        return _MARKS[self.state][0]

    @property
    def mark_name(self) -> StrPromise:
        return _MARKS[self.state][1]

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "interrupted")

    @cached_property
    def line(self) -> str:
        """The arguments on one line: only the value if there is one argument, or one that is most informative."""
        value = _telling(self.tool.arguments)
        text = value if isinstance(value, str) else "" if not value and value != 0 else _json(value)
        text = " ".join(text[: 4 * LINE].split())
        return text if len(text) <= LINE else f"{text[: LINE - 1]}…"

    @cached_property
    def command(self) -> str:
        """The command that a terminal shows after its prompt."""
        arguments = self.tool.arguments
        if isinstance(arguments, dict):
            for key in ("command", "cmd", "code", "script"):
                if isinstance(arguments.get(key), str):
                    return str(arguments[key])
        return self.line

    @cached_property
    def arguments(self) -> Output:
        """The arguments in full, coloured once the call is over."""
        text = _json(self.tool.arguments) if self.tool.arguments not in ({}, None) else ""
        return output(text, in_colour=self.is_over)

    @cached_property
    def result(self) -> Output:
        return output(self.tool.result, in_colour=True)

    @property
    def has_screen(self) -> bool:
        """Whether a terminal is shown: for a command that is over, or that has printed something."""
        return self.is_terminal and (self.is_over or (self.state == "running" and bool(self.tool.result)))

    @cached_property
    def screen(self) -> terminal.Screen:
        """The output. Of a running command its last lines, so that what is new needs no scrolling."""
        result = self.tool.result
        return terminal.screen(result if self.is_over else "\n".join(result.rstrip("\n").split("\n")[-LAST_LINES:]))


def _telling(arguments: object) -> object:
    if not isinstance(arguments, dict):
        return arguments
    if len(arguments) == 1:
        return next(iter(arguments.values()))
    return next((arguments[name] for name in _TELLING if isinstance(arguments.get(name), str)), arguments)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # hand-made rows may have anything here
        return str(value)


def output(text: str, *, in_colour: bool) -> Output:
    """Render text, indented if it is JSON. Only the part that is shown at first has colours."""
    lines = laid_out(text).split("\n")
    cut = _cut(lines)
    first = "\n".join(lines[:cut])
    is_json = in_colour and first[:1] in ("{", "[") and len(first) <= 2 * FIRST_CHARACTERS
    shown = coloured(first) if is_json else _escaped(first)
    return Output(shown, _escaped("\n".join(lines[cut:])), len(lines))


def _cut(lines: list[str]) -> int:
    """Return how many lines to show at first: whole lines, at least one."""
    characters = accumulate(len(line) + 1 for line in lines[:FIRST_LINES])
    return sum(1 for count in characters if count <= FIRST_CHARACTERS) or 1


def _escaped(text: str) -> SafeString:
    return mark_safe(escape(text, quote=False))  # noqa: S308  # escaped
