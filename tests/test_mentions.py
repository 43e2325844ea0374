"""Mentions of agents and users in texts."""

from __future__ import annotations

import pytest

from chat.mentions import MAX_LOOKED_AT, Mention, mentioned_people, mentions

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
        "@agent에게 물어봐",
        "@agentครับ",
        "@@ -1,3 +1,4 @@\n" * 200 + "@agent please review",
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


PEOPLE = [("Bo", 1), ("bo.k", 1), ("王小明", 2), ("Иван", 3), ("Ana", 4), ("Ana (ana)", 4), ("Ana", 5)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ask @bo, please", [Mention(1, 4, 3)]),
        ("(@bo.k) @Bo", [Mention(1, 1, 5), Mention(1, 8, 3)]),
        ("请@王小明看一下", [Mention(2, 1, 4)]),
        ("@Ana (ana) knows", [Mention(4, 0, 10)]),
        ("@Ana knows", [Mention(4, 0, 4), Mention(5, 0, 4)]),
        ("@Иванова, x@Bo.de, @Bob, @Bo-Li", []),
    ],
)
def test_people_are_mentioned_by_their_names(text: str, found: list[Mention]) -> None:
    """LIVE-07: the longest name that fits, with the place of each; a name of two users mentions both."""
    assert mentioned_people(text, PEOPLE) == found


def test_signs_that_cannot_mention_anyone_do_not_count() -> None:
    """LIVE-07: a pasted diff is in front of the mention."""
    diff = "@@ -1,3 +1,4 @@\n" * 200
    assert mentioned_people(f"{diff}@Bo", PEOPLE) == [Mention(1, len(diff), 3)]


def test_long_text_of_at_signs_costs_little() -> None:
    """LIVE-07: only the first ones are looked at, because each can cost as much as there are names."""
    assert mentioned_people("@" * 100_000 + "@Bo", PEOPLE) == []
    assert len(mentioned_people("@Bo " * 500, PEOPLE)) == MAX_LOOKED_AT


@pytest.mark.parametrize(
    "text",
    [
        "see `@Bo`",
        "``@Bo``",
        "```\n@Bo\n```",
        "~~~python\n@Bo.setter\n~~~\n",
        "https://social.example/@Bo",
        "www.social.example/@Bo",
    ],
)
def test_names_in_code_and_addresses_are_none(text: str) -> None:
    """LIVE-07, RUN-17: neither people nor agents, and the text after it counts by its own places."""
    assert mentioned_people(text, PEOPLE) == []
    assert not mentions(text.replace("@Bo", "@agent"), NAMES)
    after = f"{text}\n@Bo"
    assert mentioned_people(after, PEOPLE) == [Mention(1, len(after) - 3, 3)]


@pytest.mark.parametrize("text", ["`@Bo", "```\n@Bo", "` @Bo\n`"])
def test_code_that_is_not_closed_is_text(text: str) -> None:
    """LIVE-07: as the page shows it."""
    assert [each.user_id for each in mentioned_people(text, PEOPLE)] == [1]
