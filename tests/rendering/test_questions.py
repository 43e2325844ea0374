"""Cards for the questions of agents, their answers and decisions (UI-12)."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from agents.messages import Json
from chat.rendering.messages import frames
from tests.rendering.test_frames import message, text_of

CHOICES = [{"id": "a", "label": "Apples"}, {"id": "b", "label": "Pears & plums"}]
QUESTIONS: dict[str, Json] = {
    "selection": {"question": "Which?", "choices": CHOICES},
    "confirmation": {"question": "Sure?", "details": "It is **gone** then.", "danger": True},
    "plan_review": {"title": "The plan", "plan": "1. Do *this*"},
    "feedback": {"question": "Well?", "items": CHOICES},
    "action_selection": {"question": "What next?", "actions": CHOICES},
    "form": {
        "title": "Please",
        "fields": [
            {"id": "n", "label": "Number", "type": "number"},
            {"id": "y", "label": "Sure", "type": "yes_no"},
            {"id": "c", "label": "Colors", "type": "choices", "options": ["Red", "Blue"]},
        ],
    },
}


def asked(kind: str, arguments: object = None, **columns: Any) -> str:
    """Return the HTML of a waiting call, with other columns if given."""
    payload = QUESTIONS.get(kind) if arguments is None else arguments
    values = {"type": "tool_group", "tool_name": kind, "question": kind, "arguments": payload, "model": "one"}
    return frames.message_html(message(**{**values, "status": "waiting", **columns}))


def answered(kind: str, answer: object, **columns: Any) -> str:
    who = {"answer": answer, "answered_by_name": "Bo", "answered_at": timezone.now()}
    return asked(kind, **{"status": "complete", **who, **columns})


@pytest.mark.parametrize("kind", QUESTIONS)
def test_waiting_question_is_a_form_of_its_kind(kind: str) -> None:
    html = asked(kind)
    title = QUESTIONS[kind].get("question") or QUESTIONS[kind]["title"]
    assert f'data-question="{kind}"' in html
    assert f'data-asks="one asks: {title}"' in html
    assert "tool-name" not in html


def test_card_names_the_agent_that_asks() -> None:
    """UI-06: in a session with several agents, the card has the agent's name, because agents can share a model."""
    assert f'data-asks="Critic asks: {QUESTIONS["selection"]["question"]}"' in asked("selection", sender="Critic")
    approval = text_of(asked("approval", {"command": "ls"}, tool_name="bash", sender="Critic"))
    assert "Critic wants to run bash" in approval
    assert "one wants" not in approval


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        ("selection", ["b"], "Pears &amp; plums"),
        ("selection", [], "Nothing chosen"),
        ("confirmation", {"confirmed": True}, "Yes"),
        ("confirmation", {"confirmed": False}, "No"),
        ("plan_review", {"decision": "reject", "comment": "Too soon"}, "Rejected Comment Too soon"),
        ("feedback", {"a": "Sour"}, "Apples Sour"),
        ("action_selection", "a", "Apples"),
        ("form", {"n": 2, "y": False}, "Number 2 Sure No Colors –"),
        ("form", {"c": ["Red", "Blue"]}, "Number – Sure – Colors Red, Blue"),
        ("form", "edited by hand", "&quot;edited by hand&quot;"),
        ("selection", None, "null"),
    ],
)
def test_answer_is_shown_as_people_read_it(kind: str, answer: object, words: str) -> None:
    """An answered question has no controls, and shows the user who answered."""
    html = answered(kind, answer)
    assert f"{words} Bo answered · " in text_of(html)
    assert "<form" not in html


def test_answers_are_listed_in_the_way_of_the_language() -> None:
    """UI-13: between the parts of a list, and before the time, no mark of English remains in Chinese."""
    with translation.override("zh-hans"):
        shown = text_of(answered("form", {"c": ["Red", "Blue"]}))
    assert re.search(r"Red、Blue Bo 已回答 · \d\d:\d\d", shown)


def test_changed_plan_is_shown() -> None:
    html = answered("plan_review", {"decision": "edit", "plan": "1. Do **that**"})
    assert "Approved with changes" in html
    assert "<strong>that</strong>" in html
    assert "<em>this</em>" not in html


def test_accepted_note_says_what_it_waits_for() -> None:
    """MSG-12: a member's note for the workspace is shown as a proposal, which the result tells the model."""
    answer = {"decision": "save", "note": "Use tabs", "scope": "workspace"}
    columns = {"arguments": {"note": "Use tabs", "scope": "workspace"}}
    proposal = {**answer, "waits_for": "an owner or admin of the workspace"}
    assert "Waiting for an owner or admin" in answered("memory", answer, result=json.dumps(proposal), **columns)
    assert "Waits for" not in answered("memory", answer, result=json.dumps(answer), **columns)


def test_arguments_that_are_texts_have_fields() -> None:
    """Text arguments have a field each. Other arguments, and texts that a field would change, are edited as JSON."""
    html = asked("approval", {"path": "a.txt", "content": "\none\n"}, tool_name="write_file")
    assert re.findall('name="(argument[^"]*)"', html) == ["argument-path", "argument-content"]
    assert ">\n\none\n</textarea>" in html
    for other in ({}, {"path": "a", "mode": 1}, {"path": "a\r\nb"}):
        assert re.findall('name="(argument[^"]*)"', asked("approval", other, tool_name="write_file")) == ["arguments"]


@pytest.mark.parametrize(
    ("tool", "result", "mark"),
    [
        ("bash", "out\n[Exit code 3]", "failed"),
        ("bash", "[Exit code 1]", "failed"),
        ("bash", "[Exit code 1] and more", "done"),
        ("bash", "fine", "done"),
        ("web_fetch", "[Exit code 1]", "done"),
    ],
)
def test_command_that_ends_with_a_code_is_marked_as_failed(tool: str, result: str, mark: str) -> None:
    """UI-10: the mark is there for screen readers, too, and the model's text does not change."""
    html = asked("", {"command": "x"}, tool_name=tool, result=result, status="complete")
    assert f'<span class="sr-only">{mark}</span>' in html


def test_question_without_an_answer_says_so() -> None:
    html = asked("selection", status="interrupted", result="[Not answered]")
    assert text_of(html).split("Which? ")[1].startswith("Not answered")


@pytest.mark.parametrize("arguments", [{}, "no object", {"question": "Which?", "choices": "none"}])
def test_unreadable_question_is_a_tool_card(arguments: object) -> None:
    """A question with invalid hand-edited arguments is shown as a tool card."""
    html = asked("selection", arguments)
    assert 'class="tool"' in html
    assert "<form" not in html


def test_approval_shows_what_would_run() -> None:
    """A command is shown as in a terminal, other arguments as a table with boxes for long ones, and all as editable
    JSON."""
    arguments = {"command": "ls <b>", "timeout": 5, "note": "one\ntwo"}
    html = asked("approval", arguments, tool_name="bash")
    words = text_of(html)
    assert "one wants to run bash" in words
    assert "$ ls &lt;b&gt;" in words
    assert 'timeout</bdi></th><td><code dir="auto">5</code>' in re.sub(r">\s+<", "><", html)
    assert 'id="m_0123456789abcdef01234567-argument-2"' in html
    assert "&quot;timeout&quot;: 5" in html


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"approved": True, "scope": "once"}, "complete", "Bo allowed this once"),
        ({"approved": True, "scope": "session"}, "running", "Bo allowed this for the session"),
        ({"approved": True, "scope": "agent"}, "pending", "Bo always allows this for this agent"),
        ({"approved": False, "comment": " No. "}, "failed", "Bo refused: No."),
        ({"approved": False, "comment": ""}, "failed", "Bo refused"),
        ("edited by hand", "failed", "Bo refused"),
    ],
)
def test_decision_is_shown_below_the_call(answer: object, status: str, words: str) -> None:
    later = timezone.now() + timedelta(hours=1)
    columns = {"arguments": {"target": "x"}, "tool_name": "deploy", "status": status, "answered_at": later}
    html = answered("approval", answer, **columns)
    assert 'class="decision">' in html
    assert f"{words} ·" in text_of(html)
    assert 'class="tool annotated"' in html


def test_decision_in_the_minute_of_its_message_has_no_time_of_its_own() -> None:
    """A decision in the same minute as its message shows no time of its own, because the message shows it."""
    at = timezone.now()
    answer = {"approved": True, "scope": "once"}
    html = answered("approval", answer, arguments={"target": "x"}, tool_name="deploy", timestamp=at, answered_at=at)
    assert "Bo allowed this once" in text_of(html)
    assert "allowed this once ·" not in text_of(html)


@pytest.mark.parametrize(
    ("status", "words"), [("interrupted", "Not answered"), ("complete", "Allowed by an earlier approval")]
)
def test_call_without_a_decision_of_its_own(status: str, words: str) -> None:
    assert words in text_of(asked("approval", {"target": "x"}, tool_name="deploy", status=status))


def test_long_plan_is_not_rendered_on_the_event_loop() -> None:
    """Another process renders a long plan, like a long answer."""
    plan = "\n".join(f"- [{number}](https://example.org/{number}) *a* `b`" for number in range(500))
    waiting = {"type": "tool_group", "question": "plan_review", "status": "waiting"}
    assert frames.is_quick(message(**waiting, arguments=QUESTIONS["plan_review"]))
    assert not frames.is_quick(message(**waiting, arguments={"title": "Long", "plan": plan[:20_000]}))
