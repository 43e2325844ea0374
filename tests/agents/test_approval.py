"""UI-12: the rules that say which calls people have to approve."""

from __future__ import annotations

import pytest

from agents.approval import Rules, Verdict, check_rule, matches, valid_rules
from agents.messages import ToolCall


def bash(command: str) -> ToolCall:
    return ToolCall("c1", "bash", {"command": command, "timeout": 5})


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash", "rm -rf ."),
        ("*", "rm -rf ."),
        ("ba*", "ls"),
        ("bash(git status*)", "git status"),
        ("bash(git status*)", "git status --short"),
        ("bash(git *)", "git"),
        ("bash(git *)", "git add a && git commit -m x"),
        ("bash(git *)", " git log | git grep x ; "),
        ("bash(*)", "ls\nls"),
    ],
)
def test_rule_matches(rule: str, command: str) -> None:
    assert matches(rule, bash(command))


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("web_fetch", "ls"),
        ("bash(git status*)", "git push"),
        ("bash(git status)", "git status --short"),
        ("bash(git *)", "gitk"),
        ("bash(git *)", "git status; rm -rf ."),
        ("bash(git *)", "git status\nrm -rf ."),
        ("bash(git *)", "git status & rm -rf ."),
        ("bash(git *)", "git log $(rm -rf .)"),
        ("bash(git *)", "git log `rm -rf .`"),
        ("bash(git *)", "git log > /etc/passwd"),
        ("bash(git *)", "git log <(rm x)"),
        ("bash(*)", ""),
        ("bash(git.*)", "gitx"),
        ("bash(", "ls"),
    ],
)
def test_rule_does_not_match_what_it_does_not_name(rule: str, command: str) -> None:
    """Nothing that a command does besides its own text passes a pattern."""
    assert not matches(rule, bash(command))


def test_pattern_is_compared_with_the_main_argument() -> None:
    fetch = ToolCall("c1", "web_fetch", {"url": "https://example.com/a?b=(1)", "raw": True})
    assert matches("web_fetch(https://example.com/*)", fetch)
    assert not matches("web_fetch(https://example.org/*)", fetch)
    assert not matches("web_fetch(*)", ToolCall("c1", "web_fetch", {"one": 1, "two": 2}))


RULES = Rules(
    allow=("bash(git *)", "bash(ls*)"), ask=("bash(git push*)",), deny=("bash(sudo *)",), approved=("bash(git push)",)
)


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("ls", "run"),
        ("git status", "run"),
        ("git push", "run"),
        ("git push --force", "ask"),
        ("ls; git push --force", "ask"),
        ("ls; sudo ls", "deny"),
        ("make", "ask"),
    ],
)
def test_strongest_rule_decides(command: str, verdict: Verdict) -> None:
    """deny, approved, ask, allow, and else the tool itself; deny and ask look at each part of a command."""
    assert RULES.verdict(bash(command), needs_approval=True) == verdict


def test_approved_call_runs_unless_it_is_denied() -> None:
    assert RULES.verdict(ToolCall("c", "bash", {"command": "make"}, approved=True), needs_approval=True) == "run"
    assert RULES.verdict(ToolCall("c", "bash", {"command": "sudo x"}, approved=True), needs_approval=True) == "deny"
    assert Rules().verdict(bash("ls"), needs_approval=False) == "run"


@pytest.mark.parametrize("text", ["", "bash(", "bash)", "bash git", "b" * 201])
def test_text_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no rule"):
        check_rule(text)


def test_rules_edited_by_hand_count_as_far_as_they_are_valid() -> None:
    assert valid_rules(["bash", 1, None, "bash("]) == ("bash",)
    assert valid_rules("bash") == ()
