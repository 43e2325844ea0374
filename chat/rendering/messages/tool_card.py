"""A tool call as a card with its icon, its state, its arguments on one line and in full, and its result."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from agents.approval import MAIN_ARGUMENTS
from agents.messages import Json, unreadable_text
from agents.toolbox.web_search import ORIGIN
from chat.rendering.messages.file_changes import FileChange, change_of
from chat.rendering.messages.written_arguments import arguments_html
from chat.rendering.text import terminal
from chat.rendering.text.formatting import money, tokens
from chat.rendering.text.json_text import colored, indent_json
from chat.snapshots import MessageSnapshot, ToolSnapshot, money_of

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

LINE = 120
# The part of long arguments and results that is shown first.
FIRST_LINES = 200
FIRST_CHARACTERS = 10_000
# The number of lines that a terminal shows of a running command.
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
    "search_knowledge": "search",
    "read_knowledge": "file-text",
}
# The media types of images that are sent to browsers unchanged (`chat/files/sniffing.py`).
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PROGRESS = re.compile(r"(?P<value>[0-9.]+) of (?P<total>[0-9]+(?:\.[0-9]+)?)(?:: (?P<text>.*))?")
# The end of the result of a command that has failed, written by `note` in `agents/toolbox/terminal.py`.
_EXIT_CODE = re.compile(r"(?:^|\n)\[Exit code -?[0-9]+\]$")
_STATES = {
    "streaming": "writing",
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
    "writing": ("loader-circle", _("being written")),
}


@dataclass(frozen=True, slots=True)
class Output:
    """Safe HTML. `shown` is visible first, and the `rest` is behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int

    def __bool__(self) -> bool:
        return bool(self.shown)


@dataclass(frozen=True, slots=True)
class Progress:
    """A line such as “3 of 10: Reading”. `total` is "" if the call does not report it."""

    value: str
    total: str
    text: str

    @classmethod
    def of(cls, line: str) -> Progress:
        found = _PROGRESS.fullmatch(line)
        if found is None or float(found["total"]) <= 0:
            return cls("", "", line[:LINE])
        return cls(found["value"], found["total"], (found["text"] or f"{found['value']} / {found['total']}")[:LINE])


@dataclass(frozen=True, slots=True)
class FileLink:
    """A file that a call has returned. `kind` is how the page shows it: image, audio or other."""

    name: str
    kind: str
    size: int
    address: str

    @classmethod
    def of(cls, session_id: str, file: Json) -> FileLink:
        path = file["path"]
        kind, media_type = "other", file["media_type"]
        if media_type in _IMAGES:
            kind = "image"
        elif media_type.startswith("audio/"):
            kind = "audio"
        address = f"{reverse('session-file', args=[session_id])}?{urlencode({'path': path})}"
        return cls(path.rpartition("/")[2], kind, file["size"], address)


@dataclass(frozen=True)
class ToolCard:
    """The values of the card's template. Expensive values are computed when the template reads them."""

    tool: ToolSnapshot
    session_id: str
    state: str  # writing, waiting, running, interrupted, failed or done
    # The part of the arguments that the model has written so far.
    written: str = ""

    @classmethod
    def of(cls, message: MessageSnapshot) -> ToolCard:
        """Return the card of a tool_group message. Raise ValueError for a message without a tool."""
        if message.tool is None:
            raise ValueError(f"{message.id} has no tool")
        state = "failed" if message.tool.is_error or _has_exited_badly(message.tool) else "done"
        if message.tool.subsession and message.status == "waiting":
            state = "waiting" if message.tool.subsession.wait.kind else "running"
            return cls(message.tool, message.session_id, state)
        return cls(message.tool, message.session_id, _STATES.get(message.status, state), message.text)

    @property
    def is_terminal(self) -> bool:
        return self.tool.name in terminal.TOOLS

    @property
    def origin(self) -> str:
        """The source of the result's text, or "" if the tool's name already says it."""
        origin = self.tool.origin if self.is_over and not self.tool.is_error else ""
        if origin == ORIGIN:
            return str(_("the web"))
        return "" if origin == self.tool.name else origin

    @property
    def icon(self) -> str:
        if self.tool.subsession:
            return "sparkles"
        return "terminal" if self.is_terminal else _ICONS.get(self.tool.name, "wrench")

    @property
    def name(self) -> str:
        """The name of the tool. For a call of another agent, the agent's title."""
        return (self.tool.subsession.title if self.tool.subsession else "") or self.tool.name

    @property
    def used(self) -> str:
        """The tokens that another agent has used, and their cost if it is known."""
        session = self.tool.subsession
        if session is None or not session.tokens:  # 0 if it was stopped or deleted before it reported any
            return ""
        costs = (money(money_of(each)) for each in session.costs)
        return " · ".join((_("%(count)s tokens") % {"count": tokens(session.tokens)}, *costs))

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
    def written_html(self) -> SafeString:
        """The arguments of a call that the model is writing, or was writing when it was interrupted."""
        return arguments_html(self.written)

    @cached_property
    def line(self) -> str:
        """The arguments on one line. If one of them is the main one, this is only its value."""
        value = _shown_arguments(self.tool.arguments)
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
        """The arguments in full. They are colored once the call is over."""
        text = unreadable_text(self.tool.arguments)
        if text is None:
            text = _json(self.tool.arguments) if self.tool.arguments not in ({}, None) else ""
        return output(text, in_color=self.is_over)

    @cached_property
    def change(self) -> FileChange | None:
        """The change of a call that edits a file. It is shown instead of the arguments."""
        is_known = self.state in ("done", "waiting", "running")
        return change_of(self.tool, is_done=self.state == "done") if is_known else None

    @cached_property
    def progress(self) -> Progress | None:
        """The progress of a running call, from the last line that it has reported."""
        reported = self.tool.result.rstrip("\n") if self.state == "running" and not self.is_terminal else ""
        return Progress.of(reported.rsplit("\n", 1)[-1]) if reported else None

    @cached_property
    def files(self) -> list[FileLink]:
        """The files that the call has returned, with their addresses."""
        return [FileLink.of(self.session_id, file) for file in self.tool.files] if self.is_over else []

    @cached_property
    def result(self) -> Output:
        return output(self.tool.result, in_color=True)

    @property
    def has_screen(self) -> bool:
        """Whether a terminal is shown. It is if a command is over or has printed something."""
        return self.is_terminal and (self.is_over or (self.state == "running" and bool(self.tool.result)))

    @cached_property
    def screen(self) -> terminal.Screen:
        """The output.

        For a running command these are its last lines, so that new output is visible without scrolling.
        """
        result = self.tool.result
        return terminal.screen(result if self.is_over else "\n".join(result.rstrip("\n").split("\n")[-LAST_LINES:]))


def _has_exited_badly(tool: ToolSnapshot) -> bool:
    """Return whether a command has ended with an exit code other than 0. That is not an error of the tool."""
    return tool.name in terminal.TOOLS and bool(_EXIT_CODE.search(tool.result))


def _shown_arguments(arguments: object) -> object:
    if not isinstance(arguments, dict):
        return arguments
    if len(arguments) == 1:
        return next(iter(arguments.values()))
    return next((arguments[name] for name in MAIN_ARGUMENTS if isinstance(arguments.get(name), str)), arguments)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # rows that were not written by Parley may contain anything here
        return str(value)


def output(text: str, *, in_color: bool) -> Output:
    """Render text, indented if it is JSON. Only the part that is shown first has colors."""
    lines = indent_json(text).split("\n")
    # Whole lines are shown first, and at least one.
    characters = accumulate(len(line) + 1 for line in lines[:FIRST_LINES])
    cut = sum(1 for count in characters if count <= FIRST_CHARACTERS) or 1
    first = "\n".join(lines[:cut])
    is_json = in_color and first[:1] in ("{", "[") and len(first) <= 2 * FIRST_CHARACTERS
    shown = colored(first) if is_json else _escaped(first)
    return Output(shown, _escaped("\n".join(lines[cut:])), len(lines))


def _escaped(text: str) -> SafeString:
    return mark_safe(escape(text, quote=False))  # noqa: S308  # escaped
