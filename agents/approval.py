"""Rules that decide which tool calls users have to approve.

A rule is a tool's name, or a name with a pattern in parentheses: `web_fetch`, `bash(ls *)`, `files_*`. `*`
matches any text. The pattern is compared with the main argument of the call, such as the command or the address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from typing import Literal, get_args

from agents.messages import Json, ToolCall

# What happens with a call. A rule of a workspace says "allow" instead of "run" (`ApprovalRule.Verdict`).
Verdict = Literal["run", "ask", "deny"]
# Who may approve: "" is anyone who may answer the agent; otherwise users with this role or a higher one. The weakest
# requirement is first.
Approvers = Literal["", "admin", "owner"]
APPROVERS: tuple[Approvers, ...] = get_args(Approvers)
MAX_APPROVALS = 10
# The number of parts of a command that are compared with each rule.
MAX_PARTS = 1_000

# If a call has several arguments, the first of these that it has is its main argument.
MAIN_ARGUMENTS = ("command", "cmd", "query", "url", "path", "file_path", "pattern", "expression", "code", "script")
COMMANDS = ("command", "cmd")
_RULE = re.compile(r"(?P<tool>[A-Za-z0-9_*-]{1,200})(?:\((?P<argument>[^\x00]{0,1000})\))?", re.DOTALL)
# The separators of shell commands, and the characters by which a command can do more than its text shows.
_SEPARATORS = re.compile(r"&&|\|\||[;|&\n\r]")
_EXPANSIONS = re.compile(r"[`$<>(){}\\]")
# A first word of a command that is only the name or the path of a program: no assignment, quotes or wildcards.
_PROGRAM = re.compile(r"[\w.,:@%+/-]+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """The number of different users who must approve a call, and the role that they need."""

    approvals: int = 1
    approvers: Approvers = ""

    @property
    def is_plain(self) -> bool:
        """Whether the approval of one user who may answer the agent is enough."""
        return self == PLAIN

    def with_also(self, other: Requirement) -> Requirement:
        """Return the weakest requirement that satisfies both."""
        approvers = max(self.approvers, other.approvers, key=APPROVERS.index)
        return Requirement(max(self.approvals, other.approvals), approvers)


PLAIN = Requirement()


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A rule, and what its calls need each time if users are asked."""

    rule: str
    needs: Requirement


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an agent and its workspace, and the rules by which users have approved its calls in advance.

    If several rules match, this order decides: `deny`, `guarded`, `approved`, `ask`, `allow`. If no rule matches, the
    tool's own setting decides whether it needs an approval. Rules in `guarded` need several approvals, or those of a
    role, each time.

    A call that can send data out also needs an approval while the conversation contains text from elsewhere. For such
    a call, only the approvals in `approved_sending` count, because their users knew of the risk.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    guarded: tuple[ParsedRule, ...] = ()
    approved_sending: tuple[str, ...] = ()

    def verdict(
        self, call: ToolCall, *, needs_approval: bool, is_risky: bool = False, is_declared: bool = True
    ) -> Verdict:
        """Decide about a call.

        `is_risky` means that it can send out data at the request of text from elsewhere. `is_declared` is False if it
        has arguments that its tool does not declare.
        """
        approved = self.approved_sending if is_risky else self.approved
        if any(matches(rule, call, anywhere=True, is_declared=is_declared) for rule in self.deny):
            return "deny"
        if call.approved:
            return "run"
        if not self.requirement(call, is_declared=is_declared).is_plain:
            return "ask"
        if any(matches(rule, call, is_declared=is_declared) for rule in approved):
            return "run"
        if any(matches(rule, call, anywhere=True, is_declared=is_declared) for rule in self.ask):
            return "ask"
        if any(matches(rule, call, is_declared=is_declared) for rule in self.allow):
            return "run"
        return "ask" if needs_approval or is_risky else "run"

    def requirement(self, call: ToolCall, *, is_declared: bool = True) -> Requirement:
        """Return the approval that a call needs if users are asked. It satisfies all guarded rules that match."""
        needed = PLAIN
        for guarded in self.guarded:
            if matches(guarded.rule, call, anywhere=True, is_declared=is_declared):
                needed = needed.with_also(guarded.needs)
        return needed


NO_RULES = Rules()


def check_rule(text: str) -> str:
    """Return a rule without the spaces around it. Raise ValueError if the text is not a rule."""
    rule = text.strip()
    if not _RULE.fullmatch(rule):
        raise ValueError(f"{text!r} is not a rule. Use a tool's name, or one with a pattern, such as bash(ls *)")
    return rule


def matches(rule: str, call: ToolCall, *, anywhere: bool = False, is_declared: bool = True) -> bool:
    """Return whether a rule matches a call.

    A shell command matches a pattern if all of its parts match and none has a variable, a redirection or the like:
    `ls; rm -rf .` does not match `ls *`. With `anywhere`, one matching part is enough, and so is any argument that
    could be the main one. A command of more than MAX_PARTS parts gets the careful answer: it matches
    with `anywhere`, and does not match otherwise. If `is_declared` is False, any argument could be the main one,
    because the tool may ignore the others. Then the call matches a pattern only with `anywhere`.
    """
    parsed = _RULE.fullmatch(rule)
    if parsed is None or not fnmatchcase(call.name, parsed["tool"]):
        return False
    pattern = parsed["argument"]
    if pattern is None:
        return True
    if anywhere:
        return any(_fits_anywhere(name, value, pattern) for name, value in _possible_main(call.arguments, is_declared))
    name, value = main_argument(call.arguments)
    if not isinstance(value, str) or not is_declared:
        return False
    if name not in COMMANDS:
        return _fits(value.strip(), pattern)
    parts = _parts(value)
    is_cut = len(parts) > MAX_PARTS
    if not parts or is_cut or _EXPANSIONS.search(value):
        return False
    return all(_fits(part, pattern) and _runs_named_program(part, pattern) for part in parts)


def _runs_named_program(part: str, pattern: str) -> bool:
    """Return whether a part of a command starts a program that the pattern may stand for.

    `ls*` is for `lsblk`, but not for another program behind an assignment, `ls=1 rm x`, or in another folder,
    `ls/../../usr/bin/rm x`. A pattern that begins with a star may stand for any program.
    """
    named, started = (next(iter(text.split(maxsplit=1)), "") for text in (pattern, part))
    if "*" not in named or named.startswith("*"):
        return True
    return started.count("/") <= named.count("/") and _PROGRAM.fullmatch(started) is not None


def _fits_anywhere(name: str, value: str, pattern: str) -> bool:
    parts = _parts(value) if name in COMMANDS else ()
    return len(parts) > MAX_PARTS or any(_fits(part, pattern) for part in (value.strip(), *parts))


def main_argument(arguments: Json) -> tuple[str, object]:
    """Return the name and value of the call's main argument, or ("", None) if it has none."""
    if len(arguments) == 1:
        return next(iter(arguments.items()))
    return next(
        ((name, arguments[name]) for name in MAIN_ARGUMENTS if isinstance(arguments.get(name), str)), ("", None)
    )


def _possible_main(arguments: Json, is_declared: bool) -> list[tuple[str, str]]:
    """Return the texts that could be the call's main argument: those named in MAIN_ARGUMENTS, or all if it has none.

    A rule is compared with all of them, because a model could add an argument to avoid the rule.
    """
    texts = [(name, value) for name, value in arguments.items() if isinstance(value, str)]
    named = [(name, value) for name, value in texts if name in MAIN_ARGUMENTS]
    return named if named and is_declared else texts


@lru_cache(maxsize=4)  # up to 200 rules of a workspace are compared with the same command
def _parts(command: str) -> tuple[str, ...]:
    """Return the first MAX_PARTS + 1 parts of a command. The last one shows that the command has too many."""
    return tuple(islice(_all_parts(command), MAX_PARTS + 1))


def _all_parts(command: str) -> Iterator[str]:
    start = 0
    for separator in _SEPARATORS.finditer(command):
        if part := command[start : separator.start()].strip():
            yield part
        start = separator.end()
    if part := command[start:].strip():
        yield part


def _fits(text: str, pattern: str) -> bool:
    """Return whether the text matches the pattern. `*` is the only wildcard, and `git *` also matches `git`."""
    if pattern.endswith(" *") and text == pattern[:-2].strip():
        return True
    first, *others = pattern.strip().split("*")
    if not others:
        return text == first
    *between, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    # Not a regular expression, because a pattern with many stars could block the process for ever.
    for part in between:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def parse_rule(rule: object, approvals: object = 1, approvers: object = "") -> ParsedRule:
    """Return a rule with these values. Raise ValueError if one of them is not allowed."""
    if type(approvals) is not int or not 1 <= approvals <= MAX_APPROVALS:
        raise ValueError(f"approvals: must be from 1 to {MAX_APPROVALS}")
    if approvers not in APPROVERS:
        raise ValueError("approvers: must be admin, owner, or empty for everyone who may answer")
    if not isinstance(rule, str):
        raise ValueError("a rule must be a string")
    return ParsedRule(check_rule(rule), Requirement(approvals, approvers))


def stored_guarded_rules(rules: Iterable[ParsedRule]) -> list[Json]:
    """Return guarded rules as JSON."""
    return [{"rule": each.rule, "approvals": each.needs.approvals, "approvers": each.needs.approvers} for each in rules]


def valid_guarded_rules(values: object) -> tuple[ParsedRule, ...]:
    """Return the valid guarded rules in a stored JSON list. Skip all others, because the list may have been edited."""
    found = []
    for each in values if isinstance(values, list) else []:
        with suppress(ValueError, TypeError):
            found.append(parse_rule(**each))
    return tuple(found)


def valid_rules(values: object) -> tuple[str, ...]:
    """Return the valid rules in a stored JSON list. Skip all others, because the list may have been edited."""
    rules = values if isinstance(values, list) else []
    return tuple(rule for rule in rules if isinstance(rule, str) and _RULE.fullmatch(rule))
