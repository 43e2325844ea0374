"""Which tool calls people have to approve: rules that name a tool, and patterns for its main argument.

A rule is a tool's name, or a name with a pattern in parentheses: `web_fetch`, `bash(git status*)`, `files_*`. `*`
stands for any text. The pattern is compared with the argument that says most about the call: a command, an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from typing import Literal

from agents.messages import Json, ToolCall

Verdict = Literal["run", "ask", "deny"]
# Who may approve: anyone who may answer the agent, or people with this role or a higher one.
Approvers = Literal["", "admin", "owner"]
APPROVERS: tuple[Approvers, ...] = ("", "admin", "owner")
MOST_APPROVALS = 10
# Parts of a command that are compared with each rule.
MOST_PARTS = 1_000

# The main argument of a call is its only one, or the first of these that it has.
TELLING = ("command", "cmd", "query", "url", "path", "file_path", "pattern", "expression", "code", "script")
COMMANDS = ("command", "cmd")
_RULE = re.compile(r"(?P<tool>[A-Za-z0-9_*-]{1,200})(?:\((?P<argument>[^\x00]{0,1000})\))?", re.DOTALL)
# What separates commands for a shell, and what lets a command do more than its text says.
_SEPARATORS = re.compile(r"&&|\|\||[;|&\n\r]")
_EXPANSIONS = re.compile(r"[`$<>(){}\\]")


@dataclass(frozen=True, slots=True)
class Requirement:
    """Whose approval a call needs, and from how many different people."""

    approvals: int = 1
    approvers: Approvers = ""

    @property
    def is_plain(self) -> bool:
        """Whether anyone who may answer can approve, alone."""
        return self == PLAIN

    def with_also(self, other: Requirement) -> Requirement:
        """Return what satisfies both."""
        approvers = max(self.approvers, other.approvers, key=APPROVERS.index)
        return Requirement(max(self.approvals, other.approvals), approvers)


PLAIN = Requirement()


@dataclass(frozen=True, slots=True)
class Guard:
    """A rule for calls that need the approval of several people, or of people with a role, each time."""

    rule: str
    needs: Requirement


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of an agent and its workspace, and those by which people have approved its calls in advance.

    The strongest that matches decides: `deny`, `guarded`, `approved`, `ask`, `allow`. Without a matching rule the tool
    itself says whether it needs an approval.

    A call that can send something out, while text from elsewhere is in the conversation, needs an approval, too. What
    people have approved in advance counts only if they knew that: `approved_sending`.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    guarded: tuple[Guard, ...] = ()
    approved_sending: tuple[str, ...] = ()

    def verdict(self, call: ToolCall, *, needs_approval: bool, is_risky: bool = False) -> Verdict:
        """Decide about a call; `is_risky`: it can send out what text from elsewhere asks for."""
        approved = self.approved_sending if is_risky else self.approved
        if any(matches(rule, call, anywhere=True) for rule in self.deny):
            return "deny"
        if call.approved:
            return "run"
        if not self.requirement(call).is_plain:
            return "ask"
        if any(matches(rule, call) for rule in approved):
            return "run"
        if any(matches(rule, call, anywhere=True) for rule in self.ask):
            return "ask"
        if any(matches(rule, call) for rule in self.allow):
            return "run"
        return "ask" if needs_approval or is_risky else "run"

    def requirement(self, call: ToolCall) -> Requirement:
        """Return whose approval a call needs if people are asked: what all matching rules want."""
        needed = PLAIN
        for guard in self.guarded:
            if matches(guard.rule, call, anywhere=True):
                needed = needed.with_also(guard.needs)
        return needed


NO_RULES = Rules()


def check_rule(text: str) -> str:
    """Return a rule without spaces around it. Raises ValueError if it is none."""
    rule = text.strip()
    if not _RULE.fullmatch(rule):
        raise ValueError(f"{text!r} is no rule: write a tool's name, or one with a pattern, as in bash(git status*)")
    return rule


def matches(rule: str, call: ToolCall, *, anywhere: bool = False) -> bool:
    """Return whether a rule matches a call.

    A command for a shell matches a pattern if all of its parts do and none has a variable, a redirection or the like:
    `git status; rm -rf .` does not match `git status*`. With `anywhere` one part is enough. A command of very many
    parts counts as what the rule is careful about: it matches with `anywhere`, and else does not.
    """
    parsed = _RULE.fullmatch(rule)
    if parsed is None or not fnmatchcase(call.name, parsed["tool"]):
        return False
    pattern = parsed["argument"]
    if pattern is None:
        return True
    name, value = main_argument(call.arguments)
    if not isinstance(value, str):
        return False
    if name not in COMMANDS:
        return _fits(value.strip(), pattern)
    parts = _parts(value)
    is_cut = len(parts) > MOST_PARTS
    if anywhere:
        return is_cut or any(_fits(part, pattern) for part in (value.strip(), *parts))
    return bool(parts) and not is_cut and not _EXPANSIONS.search(value) and all(_fits(part, pattern) for part in parts)


def main_argument(arguments: Json) -> tuple[str, object]:
    """Return the name and value of the argument that says most about a call; ("", None) if none does."""
    if len(arguments) == 1:
        return next(iter(arguments.items()))
    return next(((name, arguments[name]) for name in TELLING if isinstance(arguments.get(name), str)), ("", None))


@lru_cache(maxsize=4)  # a workspace can have 200 rules, which are compared with the same call
def _parts(command: str) -> tuple[str, ...]:
    """Return the first parts of a command, one more than are compared."""
    return tuple(islice(_all_parts(command), MOST_PARTS + 1))


def _all_parts(command: str) -> Iterator[str]:
    start = 0
    for separator in _SEPARATORS.finditer(command):
        if part := command[start : separator.start()].strip():
            yield part
        start = separator.end()
    if part := command[start:].strip():
        yield part


def _fits(text: str, pattern: str) -> bool:
    """Match with `*` alone as a wildcard. `git *` matches `git`, too."""
    if pattern.endswith(" *") and text == pattern[:-2].strip():
        return True
    first, *others = pattern.strip().split("*")
    if not others:
        return text == first
    *between, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    # Not a regular expression: one with many stars would hold up the process for ever.
    for part in between:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def guard_of(rule: object, approvals: object = 1, approvers: object = "") -> Guard:
    """Return a checked guard. Raises ValueError."""
    if type(approvals) is not int or not 1 <= approvals <= MOST_APPROVALS:
        raise ValueError(f"approvals: choose between 1 and {MOST_APPROVALS}")
    if approvers not in APPROVERS:
        raise ValueError("approvers: write admin, owner, or nothing for everyone who may answer")
    if not isinstance(rule, str):
        raise ValueError("a rule is a text")
    return Guard(check_rule(rule), Requirement(approvals, approvers))


def stored_guards(guards: Iterable[Guard]) -> list[Json]:
    """Return guards as JSON."""
    return [
        {"rule": each.rule, "approvals": each.needs.approvals, "approvers": each.needs.approvers} for each in guards
    ]


def valid_guards(values: object) -> tuple[Guard, ...]:
    """Return the valid guards in a JSON list, which may have been edited by hand."""
    found = []
    for each in values if isinstance(values, list) else []:
        with suppress(ValueError, TypeError):
            found.append(guard_of(**each))
    return tuple(found)


def valid_rules(values: object) -> tuple[str, ...]:
    """Return the valid rules in a JSON list, which may have been edited by hand."""
    rules = values if isinstance(values, list) else []
    return tuple(rule for rule in rules if isinstance(rule, str) and _RULE.fullmatch(rule))
