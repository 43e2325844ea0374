"""Users' own text on the page: exact, with links to the addresses that they show."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.rendering.messages.as_markdown import as_markdown
from chat.rendering.text.user_text import user_text_html
from chat.snapshots import AgentMentionSnapshot, AttachmentSnapshot, MentionSnapshot
from tests.rendering.test_frames import message, tool

PIECES = st.sampled_from(
    [
        "`",
        "``",
        "```",
        "~~~",
        "\n",
        " ",
        "a",
        "<b>",
        "&amp;",
        '"',
        "https://x.y/z",
        "https://x.y查",
        "http://",
        ")",
        "(",
        ".",
        "שלום",
        "。",
    ]
)


def shown(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", user_text_html(text)))


@given(st.lists(PIECES, max_size=30).map("".join))
def test_not_a_character_is_changed(text: str) -> None:
    """User text is shown unchanged (MSG-12)."""
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("See https://example.org/a?b=1&c=2.", ["https://example.org/a?b=1&amp;c=2"]),
        ("(https://en.wikipedia.org/wiki/A_(b))", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("看https://example.org/中文。好", ["https://example.org/中文"]),
        ("看www.example.org。(www.b.org/c)", ["https://www.example.org", "https://www.b.org/c"]),
        (
            "访问https://a.com查看，www.b.org和http://localhost:3000即可",
            ["https://a.com", "https://www.b.org", "http://localhost:3000"],
        ),
        (
            "https://a.com’s, https://b.com—it, https://c.com→d, https://d.com✅",
            ["https://a.com", "https://b.com", "https://c.com", "https://d.com"],
        ),
        ("看www.a.com或www.b.com和https://c.com:80", ["https://www.a.com", "https://www.b.com", "https://c.com:80"]),
        ("https://a.com然后运行x.py，https://b.c.com的README.md", ["https://a.com", "https://b.c.com"]),
        ("https://qq邮箱.com", ["https://qq邮箱.com"]),
        ("https://a.com和https://b.com/c…", ["https://a.com", "https://b.com/c"]),
        (
            "https://例子.中国/路 https://münchen.de/ä https://हिन्दी.भारत",
            ["https://例子.中国/路", "https://münchen.de/ä", "https://हिन्दी.भारत"],
        ),
        (
            "https://u:p@a.com:80/b http://[::1]/c https://a.com\u200bb",
            ["https://u:p@a.com:80/b", "http://[::1]/c", "https://a.com"],
        ),
        ("http://localhost:{port}/c https://a.com:${PORT}/x", []),
        ("https://a.{b}.com https://$A.com https://a.com:99999/b https://a.com\\@b.com", ["https://a.com"]),
        ("main.py, www.x, a.www.b.c, x@www.b.c, https:// and https://.", []),
        ("HTTPS://X.Y and http://z", ["HTTPS://X.Y", "http://z"]),
        ('https://x.y/"onclick="alert(1)', ["https://x.y/"]),
        ("javascript:alert(1) ftp://x data:text/html,x", []),
        ("`https://not.a/link` and ``https://nor.this``", []),
        ("```\nhttps://not.a/link\n```", []),
    ],
)
def test_addresses_are_links(text: str, addresses: list[str]) -> None:
    """Links open in a new tab and send no referrer; code and other schemes are not linked."""
    made = user_text_html(text)
    assert re.findall(r'<a href="([^"]*)"', made) == addresses
    assert made.count('target="_blank" rel="noopener noreferrer nofollow"') == len(addresses)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("run `ls -l` now", ["`ls -l`"]),
        ("```python\nprint(1)\n```\nafter", ["```python\nprint(1)\n```\n"]),
        ("~~~\na `b`\n~~~", ["~~~\na `b`\n~~~"]),
        ("``` not closed\n`", []),
        ("a ` b\n` c", []),
    ],
)
def test_code_stands_out(text: str, code: list[str]) -> None:
    marked = re.findall(r"<code[^>]*>(.*?)</code>", user_text_html(text), re.DOTALL)
    assert [re.sub(r"<[^>]*>", "", each) for each in marked] == code


def test_long_runs_of_marks_are_quick() -> None:
    """MSG-12: a megabyte of any text is rendered in time."""
    addresses = ("https://", "www.", "www.a.", 'https://a/"', "https://a)", "https://a中", "https://a.b{", "https://a:")
    for piece in (*addresses, "`", "``` ", "```\n", "(", "~~~\n", "`a"):
        text = piece * (200_000 // len(piece))
        assert shown(text) == text


def test_copied_code_cannot_end_its_own_fence() -> None:
    """MSG-12: fences are longer than those in the text, and JSON arguments and results are indented."""
    copied = as_markdown(tool(arguments={"a": [1]}, result="```\nx\n```\n"))
    assert copied == '**web_fetch**\n\n```json\n{\n  "a": [\n    1\n  ]\n}\n```\n\n````\n```\nx\n```\n````'
    assert as_markdown(message(text=" *x*\n")) == " *x*\n"


def test_copied_message_has_links_to_its_files() -> None:
    """MSG-12: files with any name get links. If no site is configured, only the text is copied."""
    file = AttachmentSnapshot("a_1", "a [b]_*`.png", "image", "image/png", 1, 1, 1, None)
    links = "- [a \\[b\\]\\_\\*\\`.png](https://parley.example/attachments/a_1)"
    said, silent = (replace(message(text=text), attachments=(file,)) for text in (" Hi\n", ""))
    assert as_markdown(said, "https://parley.example") == f" Hi\n\n\n{links}"
    assert as_markdown(silent, "https://parley.example") == links
    assert as_markdown(said) == " Hi\n"


def test_mentions_are_marked_outside_of_code_and_links() -> None:
    """LIVE-07: mentions have their users, and the text does not change."""
    text = "@Bo: `@Bo` https://example.com/@Bo @Ana"
    mentions = [MentionSnapshot(7, 0, 3), MentionSnapshot(8, 35, 4), MentionSnapshot(9, 35, 4)]
    made = user_text_html(text, mentions)
    assert re.findall(r'<span class="mention" data-mentions="([^"]*)">(.*?)</span>', made) == [
        ("7", "@Bo"),
        ("8 9", "@Ana"),
    ]
    assert html.unescape(re.sub(r"<[^>]*>", "", made)) == text


def test_no_part_of_a_longer_name_is_marked() -> None:
    """LIVE-07: a name that is only a part of a longer name is not marked."""
    made = user_text_html("@Bo, ask @Bobby or x@Bo.com", [MentionSnapshot(1, 0, 3)])
    assert made.count('class="mention"') == 1
    assert made.startswith("<span")


def test_name_of_a_mention_is_escaped() -> None:
    """LIVE-07: a display name with HTML is escaped."""
    made = user_text_html("Hi @<b>Bo", [MentionSnapshot(7, 3, 6)])
    assert made == 'Hi <span class="mention" data-mentions="7">@&lt;b&gt;Bo</span>'


def test_mentions_of_agents_are_chips() -> None:
    """RUN-17: mentions of agents are chips, and a place that no longer has an @ is ignored."""
    agents = [AgentMentionSnapshot("one", 0, 6), AgentMentionSnapshot("two", 11, 14), AgentMentionSnapshot("two", 7, 3)]
    made = user_text_html("@agent and @Code Reviewer, `@agent`", [], agents)
    assert re.findall(r'<span class="mention">(.*?)</span>', made) == ["@agent", "@Code Reviewer"]
