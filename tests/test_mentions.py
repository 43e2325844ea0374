"""Which texts mention an agent."""

from __future__ import annotations

import pytest

from chat.mentions import mentions

NAMES = ["researcher", "The Writer", "助手"]


@pytest.mark.parametrize(
    "text",
    [
        "@agent hello",
        "hello @AGENT",
        "(@agent)",
        "Hi @researcher, what is new?",
        "@the writer: begin",
        "@助手你好",
        "你好@agent",
        "a\n@agent",
    ],
)
def test_name_after_an_at_sign_is_a_mention(text: str) -> None:
    assert mentions(text, NAMES)


@pytest.mark.parametrize("text", ["agent", "@agents", "me@agent", "a.b@researcher", "@agent_2", "@ agent", "@", "@bo"])
def test_other_texts_are_none(text: str) -> None:
    assert not mentions(text, NAMES)


def test_agent_without_a_title_has_one_name() -> None:
    assert mentions("@agent", [""])
    assert not mentions("@", [""])
