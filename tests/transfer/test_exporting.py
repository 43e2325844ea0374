"""The contents of a session's export, and what it leaves out."""

from __future__ import annotations

import base64
import json
import re
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override
from markdown_it import MarkdownIt

from chat.models import ChatMessage, Session, User
from chat.projections.fences import contained
from chat.transfer.exporting.personal import export_person
from chat.transfer.exporting.sessions import export_json, export_markdown
from tests.support.files import picture
from tests.transfer.conftest import document


def test_json_holds_everything_in_order(talk: Session) -> None:
    """MSG-01, MSG-11: live rows come in their order, then the others, and all with revisions and files."""
    made = document(talk)
    messages = made["messages"]
    assert (made["format"], made["version"]) == ("parley.session", 1)
    assert [each.get("sequence") for each in messages] == [1, 2, 3, 4, 5, 6, None, None]
    assert [[change["kind"] for change in each.get("revisions", [])] for each in messages] == [
        [],
        ["edit"],
        [],
        ["exclude"],
        [],
        [],
        ["remove"],
        [],
    ]
    assert base64.b64decode(messages[1]["attachments"][0]["data"]) != b""
    assert [(change["kind"], change["by"]) for change in made["changes"]] == [("system_prompt", "Ana")]
    assert made["requests"][0]["rows"] == [[messages[1]["id"], 2]]


def test_json_names_people_and_tells_no_more_of_them(talk: Session, ana: User) -> None:
    """The file has no ids, user names or addresses of users, because its readers may be elsewhere."""
    User.objects.filter(pk=ana.pk).update(username="ana.secret", email="ana@secret.example")
    text = "".join(export_json(Session.objects.get(pk=talk.pk)))
    assert "secret" not in text
    records = [change["before"] for each in json.loads(text)["messages"] for change in each.get("revisions", [])]
    assert {record["user_id"] for record in records if "text" in record} == {None}


def test_part_export_holds_what_a_viewer_sees(talk: Session) -> None:
    """MSG-11: an export for viewers has neither removed messages nor earlier texts.

    It has queued messages, which everyone sees.
    """
    made = document(talk, whole=False)
    assert set(made) == {"format", "version", "session", "messages"}
    assert [each.get("status") for each in made["messages"]][-2:] == [None, "queued"]
    assert not any("revisions" in each or "removed_at" in each for each in made["messages"])


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.both_databases
def test_neither_form_asks_for_each_message(talk: Session, ana: User, count: int) -> None:
    """The number of queries is the same for one message and for thirty."""
    ChatMessage.objects.bulk_create(
        ChatMessage(session=talk, sequence=number, role="user", text="x", user=ana) for number in range(7, 7 + count)
    )
    with CaptureQueriesContext(connection) as json_queries:
        document(talk)
    with CaptureQueriesContext(connection) as markdown_queries:
        list(export_markdown(talk))
    assert (len(json_queries), len(markdown_queries)) == (10, 4)


@pytest.mark.both_databases
def test_export_comes_piece_by_piece(talk: Session, ana: User) -> None:
    """The first pieces of a long session are sent before the last rows are read, so that only a part is in memory."""
    ChatMessage.objects.bulk_create(
        ChatMessage(session=talk, sequence=number, role="user", text=f"n{number}") for number in range(7, 1000)
    )
    with CaptureQueriesContext(connection) as begun:
        pieces = export_json(talk)
        while '"n7"' not in next(pieces):
            pass
    early = len(begun)
    with CaptureQueriesContext(connection) as rest:
        assert '"n999"' in "".join(pieces)
    assert early < len(begun) + len(rest)


def test_no_query_stays_open_while_a_client_reads(talk: Session, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow client keeps no query open, because SQLite's log would grow by all writes, such as 1 GB in a minute."""
    monkeypatch.delattr(QuerySet, "iterator")
    assert '"changes"' in "".join(export_json(talk))
    assert "".join(export_markdown(talk))
    assert b"".join(export_person(user=ana, author=ana))


def test_markdown_keeps_speakers_apart_whatever_they_say(talk: Session) -> None:
    """MSG-12: every message has its heading, and no text, name or result can hide what follows it."""
    made = "".join(export_markdown(talk, zone=ZoneInfo("Asia/Shanghai")))
    tokens = MarkdownIt("commonmark").parse(made)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings[0] == "会议: plan/v2 “A”"
    assert headings[1] == "Ana · 2026-02-28 22:30 CST · edited"
    assert [heading.split(" · ")[2:] for heading in headings[2:]] == [
        [],
        ["excluded from context"],
        ["interrupted"],
        ["queued"],
    ]
    assert "图.png (166" in made
    assert "The provider is busy." not in made


def test_markdown_names_the_agents_of_a_session(talk: Session) -> None:
    """CTX-06: agents that share a model have their own names in the headings."""
    talk.chat_messages.filter(sequence=3).update(sender="Critic", model="one")
    assert "### Critic ·" in "".join(export_markdown(talk))


def test_markdown_is_in_the_language_of_who_asked(talk: Session) -> None:
    """UI-13: the language is the user's, also in pieces that are generated after the response began."""
    with override("zh-hans"):
        pieces = export_markdown(talk)
    assert "<summary>System prompt" not in next(pieces)


@pytest.mark.parametrize("text", ["```\nx", "~~~~\nx", "- a\n\n  ```\n  x", "<!-- x", "<pre>\nx", "> ```\nx\n```"])
def test_text_that_stays_open_is_contained(text: str) -> None:
    """MSG-12: an unclosed fence, comment or block of HTML ends with its message."""
    *_before, _open, inline, _close = MarkdownIt("commonmark").parse(f"{contained(text)}\n\nafter")
    assert (inline.content, inline.level) == ("after", 1)


def test_picture_is_given_whole(talk: Session) -> None:
    """The export has the bytes of the picture, which begin like the uploaded ones."""
    data = base64.b64decode(document(talk)["messages"][1]["attachments"][0]["data"])
    assert data[:8] == picture()[:8]


def test_citations_are_footnotes(talk: Session) -> None:
    """UI-14: each cited source is a footnote, also if one pair of brackets has several numbers.

    Code and formulas cite nothing.
    """
    found = [{"number": number, "title": f"T{number}", "url": f"https://{number}.example"} for number in (1, 2)]
    text = "Noon [1], six [1, 2], [2，9] and [8, 9]: `a[1, 2]`, $[1, 2]$"
    ChatMessage.objects.create(session=talk, role="assistant", text=text, sources=found, sequence=900)
    exported = re.sub(r"\[\^\d+-", "[^", "".join(export_markdown(talk)))
    assert "Noon [^1], six [^1][^2], [^2][9] and [8, 9]: `a[1, 2]`, $[1, 2]$" in exported
    assert "[^2]: [T2](<https://2.example>)" in exported
