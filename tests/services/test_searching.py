"""Search: which messages it finds, for whom and in which order, and that the index follows every change."""

from __future__ import annotations

import tracemalloc

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from chat.models import ChatMessage, Session, User
from chat.queries import search
from chat.services.sessions.actions import SessionAction, apply_action
from chat.services.sessions.lifecycle import create_session
from tests.support.rows import say
from tests.support.testing_node import TestNode, let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


def texts(user: User, query: str) -> list[str]:
    """Return the texts of the found messages, in order."""
    found = search.search(user, query).messages
    return [ChatMessage.objects.get(pk=hit.id).text for hit in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("winter", ["Late winter rain", "Winter is coming"]),
        ("int", ["Late winter rain", "Winter is coming"]),  # a part of a word
        ("WINTER rain", ["Late winter rain"]),  # all terms, in any order
        ("rain winter", ["Late winter rain"]),
        ("winter summer", []),
        ("is winter", ["Winter is coming"]),  # one term is too short for the index
        ("is", ["Winter is coming"]),
        ("数据库", ["我们的数据库很慢"]),
        ("据库", ["我们的数据库很慢"]),
        ("慢", ["我们的数据库很慢"]),
        ("зима", ["Зима близко"]),  # any script and any case
        ('"quoted" AND', ['He said "quoted" AND left']),
        ("100%", ["100% of it_all"]),
        ("0%", ["100% of it_all"]),
        ("it_", ["100% of it_all"]),
        ("%", ["100% of it_all"]),
        ("*", []),
        ("", []),
        ("\0", []),
    ],
)
def test_terms_are_found_anywhere_newest_first(ana: User, session: Session, query: str, expected: list[str]) -> None:
    """UI-11: all terms must match, as parts of words and in CJK too. Characters of query languages have no effect."""
    for text in (
        "Winter is coming",
        "Late winter rain",
        "我们的数据库很慢",
        "Зима близко",
        'He said "quoted" AND left',
        "100% of it_all",
    ):
        say(session, ana, text)
    assert texts(ana, query) == expected


def test_users_find_only_what_they_may_see(ana: User, bo: User, session: Session) -> None:
    """LIVE-06: the owner and viewers find a session's messages; other members of the workspace and staff do not."""
    say(session, ana, "The secret word")
    strangers = [person("Cy", session.workspace), User.objects.create_superuser("root")]
    let_in(session, bo, "viewer")
    found = {user.username: search.search(user, "secret") for user in (ana, bo, *strangers)}
    assert {name: len(each.messages) for name, each in found.items()} == {"ana": 1, "bo": 1, "cy": 0, "root": 0}
    assert [len(search.search(user, "plan").sessions) for user in (ana, bo, *strangers)] == [1, 1, 0, 0]
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[session.pk])
    assert search.search(bo, "secret") == search.search(bo, "plan") == search.Found([], [])
    apply_action(user=ana, action=SessionAction.UNDELETE, session_ids=[session.pk])
    assert texts(bo, "secret") == ["The secret word"]


@pytest.mark.parametrize("word", ["分析", "deployment"])
def test_sessions_with_the_newest_messages_are_found(ana: User, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-11: if more sessions than the limit have a word, those that had it last are found."""
    monkeypatch.setattr(search, "MAX_SESSIONS", 2)
    first, second, third = (create_session(owner=ana) for _ in range(3))
    for each in (first, second, third, first):
        say(each, ana, f"An {word} again")
    found = search.sessions_with(word, Session.objects.all(), in_messages=True)
    assert set(found) == {first, third}


def test_the_index_follows_every_change(ana: User, session: Session) -> None:
    """MSG-11: the index follows edits, removals, restorations and deletions. Excluded messages are still found."""
    row = say(session, ana, "The first words")
    row.text = "Other words"
    row.save()
    assert [texts(ana, query) for query in ("first", "other words")] == [[], ["Other words"]]
    row.include_in_context = False
    row.save()
    assert texts(ana, "other") == ["Other words"]
    sequence = row.sequence
    ChatMessage.objects.filter(pk=row.pk).update(removed_at="2026-01-01T00:00Z", sequence=None)
    assert texts(ana, "other") == []
    ChatMessage.objects.filter(pk=row.pk).update(removed_at=None, sequence=sequence)
    assert texts(ana, "other") == ["Other words"]
    row.delete()
    assert texts(ana, "other") == []
    assert documents() == 0


def documents() -> int:
    """Return the number of texts in the index."""
    if connection.vendor != "sqlite":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO chat_search(chat_search) VALUES('integrity-check')")
        cursor.execute("SELECT count(*) FROM chat_searchdoc")
        return int(cursor.fetchone()[0])


def test_an_edited_message_keeps_its_place(ana: User, session: Session) -> None:
    first, _second = say(session, ana, "same one"), say(session, ana, "same two")
    first.text = "same old one"
    first.save()
    assert texts(ana, "same") == ["same two", "same old one"]


async def test_an_answer_is_found_when_it_is_finished(node: TestNode, ana: User) -> None:
    node.script([["A whole ", "sentence."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    assert await node.do(texts, ana, "hole sent") == ["A whole sentence."]


def test_streaming_rows_are_not_in_the_index(ana: User, session: Session) -> None:
    """Streaming rows are not indexed, so that tokens do not cost index writes."""
    row = say(session, None, "Half an ans", status="streaming")
    assert (texts(ana, "half"), documents()) == ([], 0)
    row.text, row.status = "Half an answer", "complete"
    row.save()
    assert texts(ana, "answer") == ["Half an answer"]


def test_whole_words_come_before_parts_of_words(ana: User, session: Session) -> None:
    """UI-11: exact matches of the query come first, however old, then matches of all words, then parts of words."""
    for text in ("Item 42? Yes", "42? Which item?", *(f"Item {number}42?" for number in range(1, 90)), "Items 42?"):
        say(session, ana, text)
    found = texts(ana, "item 42?")
    assert found[:3] == ["Item 42? Yes", "Items 42?", "Item 8942?"]
    for title in ("Area 51", "Are we", "Our area"):
        create_session(owner=ana, title=title)
    titles = [hit.title.replace("<mark>", "").replace("</mark>", "") for hit in search.search(ana, "are").sessions]
    assert titles == ["Are we", "Area 51", "Our area"]


@pytest.mark.parametrize("place", [0, search.HEAD - 500, search.HEAD, 150_000])
def test_search_reads_little_of_long_messages(ana: User, session: Session, place: int) -> None:
    """A search reads sixty messages of up to 2 MB each without keeping all of them in memory."""
    text = f"{'word ' * (place // 5)}winter{' word' * 40_000}"
    for _ in range(search.POOL * search.LIMIT):
        say(session, ana, text)
    tracemalloc.start()
    try:
        found = search.search(ana, "winter").messages
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == search.LIMIT
    assert all("<mark>winter</mark>" in hit.snippet and hit.snippet.endswith("…") for hit in found)
    assert peak < 4_000_000


def test_session_titles_match_in_any_case(ana: User, session: Session) -> None:
    create_session(owner=ana, title="Über PLÄNE")
    create_session(owner=ana)
    titles = [str(hit.title) for hit in search.search(ana, "pläne ÜBER").sessions]
    assert titles == ["<mark>Über</mark> <mark>PLÄNE</mark>"]


def test_closest_titles_come_first(ana: User) -> None:
    """UI-11: equal titles come first, then titles that begin with the query, then others.

    The newest comes first in each group.
    """
    for title in ("Plan B", "plan", "The plan", "Plan A"):
        create_session(owner=ana, title=title)
    found = search.search(ana, "PLAN", limit=3).sessions
    assert [(hit.rank, hit.title.replace("<mark>", "").replace("</mark>", "")) for hit in found] == [
        (0, "plan"),
        (1, "Plan A"),
        (1, "Plan B"),
    ]


@pytest.mark.parametrize(
    ("text", "query", "html"),
    [
        ("<b>bold</b> & more", "bold", "&lt;b&gt;<mark>bold</mark>&lt;/b&gt; &amp; more"),
        ("<script>", "<script>", "<mark>&lt;script&gt;</mark>"),
        ("amp & amp;", "amp", "<mark>amp</mark> &amp; <mark>amp</mark>;"),
        ("aaa", "a aa", "<mark>aa</mark><mark>a</mark>"),
        ("İstanbul ISTANBUL", "istanbul", "<mark>İstanbul</mark> <mark>ISTANBUL</mark>"),
    ],
)
def test_hits_are_marked_in_escaped_text(text: str, query: str, html: str) -> None:
    """MSG-12: texts of users and models are escaped."""
    assert search.marked(text, search.terms_of(query)) == html


def test_a_long_text_is_cut_around_its_first_hit() -> None:
    cut = search.around_hit("x" * 5000 + "\n the   needle " + "y" * 5000, ["needle"])
    assert cut.startswith("…xxx")
    assert cut.endswith("yyy…")
    assert " the needle " in cut
    assert len(cut) <= search.SNIPPET + 2


@pytest.mark.parametrize(
    ("text", "term", "cut"),
    [
        ("### Lists\n\n- **bold** and `code`", "bold", "Lists bold and code"),
        ("| Rust | 2015 |\n|---|---|\n| Go | 2009 |", "rust", "Rust · 2015 Go · 2009"),
        ("> [The plan](https://plans.example/a) is ~~old~~", "plan", "The plan is old"),
        ("See [it](https://plans.example/a)", "plans.example", "See [it](https://plans.example/a)"),
        ("```python\nx = a * b * c\n```", "a * b", "x = a * b * c"),
        ("many people " * 40, "many people", "many people many"),
    ],
)
def test_snippet_is_plain_text_without_markdown(text: str, term: str, cut: str) -> None:
    """Markdown characters are left out of a snippet unless they are part of the hit."""
    assert search.around_hit(text, [term]).startswith(cut)


def test_snippet_is_cut_between_words() -> None:
    cut = search.around_hit("interesting words " * 30 + "needle " + "surprising ends " * 30, ["needle"])
    assert cut.strip("…").split()[0] in ("interesting", "words")
    assert cut.strip("…").split()[-1] in ("surprising", "ends")


@given(
    text=st.text(st.sampled_from("ab *_`#|-[](!)>~\n\t"), max_size=1500), term=st.sampled_from(["a", "ab", "**", "]("])
)
def test_snippet_has_the_hit_and_is_short(text: str, term: str) -> None:
    cut = search.around_hit(text, [term])
    assert len(cut) <= search.SNIPPET + 2
    assert term in cut or term not in text
