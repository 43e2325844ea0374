"""Cards for the questions of MCP servers during a call, and for the answers (UI-18)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from agents.elicitation import form_of, link_of
from agents.messages import Json
from chat.rendering.messages import frames
from tests.rendering.test_frames import message, text_of

FORM = form_of("inn", "<b>When?</b>", {"properties": {"n": {"type": "integer", "title": "How many"}}})
LINK = link_of("inn", "Pay", "https://pay.example.com/?a=1&b=2")


def record(question: Any = FORM, **values: Any) -> Json:
    return {"question": question.model_dump(exclude_defaults=True), **values}


def shown(*asked: Any, status: str = "complete", **columns: Any) -> str:
    values = {"type": "tool_group", "tool_name": "inn__book", "arguments": {}, "asked": list(asked), **columns}
    return frames.message_html(message(status=status, **values))


def test_open_question_is_a_form_marked_as_the_servers() -> None:
    html = shown(
        record(answer={"action": "decline"}, answered_by="Bo"), record(), status="waiting", question="approval"
    )
    assert 'data-question="elicitation"' in html
    assert 'name="number" value="2"' in html
    assert "<b>When?" not in html
    assert "The MCP server inn needs an answer to continue with inn__book" in text_of(html)
    assert "Don’t enter passwords." in text_of(html)


@pytest.mark.parametrize(("language", "words"), [("zh-hans", "忽略"), ("zh-hant", "略過")])
def test_question_is_dismissed_and_not_only_closed(language: str, words: str) -> None:
    """UI-13: the button that answers the server has another word than the button that closes a notice."""
    with translation.override(language):
        html = shown(record(), status="waiting")
    assert f'value="cancel">{words}</button>' in html


def test_page_to_open_is_a_link_without_access_to_this_one() -> None:
    html = shown(record(LINK), status="waiting")
    assert 'href="https://pay.example.com/?a=1&amp;b=2"' in html
    assert 'rel="noopener noreferrer"' in html
    assert "pay.example.com" in text_of(html)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (record(answer={"action": "accept", "content": {"n": 4}}, answered_by="Bo"), "Bo answered a question from inn"),
        (record(answer={"action": "accept"}), "Someone answered a question from inn"),
        (record(answer={"action": "decline"}, answered_by="Bo"), "Bo declined a question from inn"),
        (record(answer={"action": "cancel"}, answered_by="Bo"), "Bo dismissed a question from inn"),
        (record(LINK, answer={"action": "accept"}, answered_by="Bo"), "Bo opened pay.example.com for inn"),
        (record(withdrawn="expired"), "No one answered a question from inn in time"),
        (record(withdrawn="skipped"), "A question from inn was not answered"),
        (record(), "A question from inn was not answered"),
    ],
)
def test_what_became_of_a_question_is_a_line_of_the_call(asked: Json, words: str) -> None:
    assert words in text_of(shown(asked))


def test_reply_in_the_minute_of_its_message_has_no_time_of_its_own() -> None:
    """A reply in the same minute as its message shows no time of its own, because the message shows it."""
    now = timezone.now()
    answer = {"answer": {"action": "decline"}, "answered_by": "Bo"}
    html = shown(
        *(record(**answer, answered_at=at.isoformat()) for at in (now, now + timedelta(hours=1))), timestamp=now
    )
    assert text_of(html).count("Bo declined a question from inn") == 2
    assert text_of(html).count("Bo declined a question from inn ·") == 1


@pytest.mark.parametrize("asked", [None, 1, {}, {"question": 1}, record(answer="yes"), record(answer={"action": 1})])
@pytest.mark.parametrize("status", ["waiting", "complete"])
def test_what_was_set_by_hand_breaks_nothing(asked: Any, status: str) -> None:
    """MSG-10: a call with invalid hand-edited data is shown without its question."""
    assert "inn__book" in text_of(shown(asked, status=status))
