"""The session page: access, content and cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from agents.events import ReasoningDelta, TextDelta
from agents.messages import Message, Text
from agents.providers.base import Request
from agents.providers.demo.provider import DemoProvider
from chat.models import ChatMessage, Membership, MessageRevision, Session, User, Workspace
from chat.services.messages.sending import send_message
from chat.services.sessions.lifecycle import create_session
from chat.services.transaction import save_revision
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
Said = Callable[[int], list[ChatMessage]]


def page_of(client: Client, session: Session) -> str:
    response = client.get(reverse("session", args=[session.pk]))
    assert response.status_code == 200
    return response.content.decode()


def drawn(html: str) -> list[str]:
    """Return the sequence numbers of the drawn messages, in order."""
    return [part.split('"')[0] for part in html.split('data-sequence="')[1:]]


def test_page_shows_messages_in_order(signed_in: SignIn, ana: User, session: Session, said: Said) -> None:
    """UI-01, UI-04: messages are in the order of their sequence; turn starts are not shown."""
    said(8)
    html = page_of(signed_in(ana), session)
    assert drawn(html) == ["2", "3", "4", "5", "6", "7", "8"]
    assert "Worked for 1 minute 15 seconds" in html


def test_page_tells_the_script_where_to_go_on(signed_in: SignIn, ana: User, session: Session) -> None:
    """LIVE-02, RUN-03: the page contains the revision and the agent's current status."""
    send_message(session=session, author=ana, text="Hello")
    session.refresh_from_db()
    html = page_of(signed_in(ana), session)
    assert f'data-revision="{session.revision}"' in html
    assert 'data-status="thinking"' in html
    assert f'data-socket="/ws/sessions/{session.pk}/page?' in html
    assert f'data-viewer-id="{ana.pk}"' in html


def test_queued_messages_stand_above_the_composer(signed_in: SignIn, ana: User, session: Session) -> None:
    """RUN-06: waiting messages are in the queue and not in the message list."""
    send_message(session=session, author=ana, text="First")
    send_message(session=session, author=ana, text="Second")
    messages, queue = page_of(signed_in(ana), session).split('id="queue"')
    assert ("First" in messages, "Second" in messages, "Second" in queue) == (True, False, True)


def test_stop_can_be_pressed_while_the_agent_works(signed_in: SignIn, ana: User, session: Session) -> None:
    """RUN-07: Stop is always shown, and enabled while the agent works."""
    idle = re.search('data-action="stop" +disabled', page_of(signed_in(ana), session)) is not None
    send_message(session=session, author=ana, text="Go")
    html = page_of(signed_in(ana), session)
    assert (idle, re.search('data-action="stop" *>', html) is not None) == (True, True)


def test_viewer_reads_without_controls(signed_in: SignIn, bo: User, session: Session, said: Said) -> None:
    """A viewer has no composer, no Stop, no title field and no model picker."""
    said(8)
    let_in(session, bo, "viewer")
    html = page_of(signed_in(bo), session)
    assert 'data-can-edit="no"' in html
    assert "View only" in html
    controls = (
        'id="composer"',
        'data-action="stop"',
        'x-data="title"',
        'id="model"',
    )
    assert [control for control in controls if control in html] == []
    assert "Your draft is kept." not in html


def test_editor_writes(signed_in: SignIn, bo: User, session: Session) -> None:
    """An editor has all the controls that a viewer lacks."""
    let_in(session, bo, "editor")
    html = page_of(signed_in(bo), session)
    controls = ('id="composer"', 'x-data="title"', 'id="model"', 'data-action="stop"')
    assert [control for control in controls if control not in html] == []
    assert "Your draft is kept." in html


@pytest.mark.parametrize(("role", "manages"), [("owner", "yes"), ("admin", "yes"), ("member", "no"), ("guest", "no")])
def test_page_knows_who_manages_the_workspace(
    signed_in: SignIn, bo: User, session: Session, role: str, manages: str
) -> None:
    """UI-12: owners and admins of the session's workspace may always allow a tool; no other role elsewhere counts."""
    let_in(session, bo, "editor")
    Membership.objects.filter(user=bo).delete()
    Membership.objects.create(user=bo, workspace=Workspace.objects.create(name="Bo's"), role="owner")
    Membership.objects.create(user=bo, workspace=session.workspace, role=role)
    html = page_of(signed_in(bo), session)
    assert f'data-manages="{manages}"' in html
    assert f'data-workspace-role="{"" if role == "guest" else role}"' in html


@pytest.mark.parametrize("address", ["session", "session-messages", "session-share"])
def test_stranger_and_unknown_session_are_the_same_404(
    signed_in: SignIn, bo: User, session: Session, address: str
) -> None:
    """A stranger gets the same 404 as for a session that does not exist, so that ids cannot be probed."""
    client = signed_in(bo)
    theirs = client.get(reverse(address, args=[session.pk]) + "?before=9")
    no_one = client.get(reverse(address, args=["s_000000000000000000000000"]) + "?before=9")
    assert (theirs.status_code, no_one.status_code) == (404, 404)
    assert theirs.content == no_one.content


@pytest.mark.parametrize("address", ["session", "session-messages", "session-share"])
def test_anonymous_is_asked_to_sign_in(client: Client, session: Session, address: str) -> None:
    path = reverse(address, args=[session.pk])
    response = client.get(path)
    assert (response.status_code, response.headers["Location"]) == (302, f"{reverse('sign-in')}?next={path}")


def test_session_may_have_any_name_in_its_address(signed_in: SignIn, ana: User) -> None:
    """An id that was mangled on its way is not found, and breaks nothing."""
    client = signed_in(ana)
    assert [client.get(f"/sessions/{name}/").status_code for name in ("%00", "é", "x" * 500, "'")] == [404] * 4


def test_newest_fifty_are_shown_and_older_ones_fetched(
    signed_in: SignIn, ana: User, session: Session, said: Said
) -> None:
    """Older messages come in pages of 50, without duplicates or gaps."""
    said(120)
    client = signed_in(ana)
    html = page_of(client, session)
    shown = [drawn(html)]
    while 'data-before="' in html:
        before = html.split('data-before="')[1].split('"')[0]
        html = client.get(reverse("session-messages", args=[session.pk]), {"before": before}).content.decode()
        shown.insert(0, drawn(html))
    kept = [str(number) for number in range(1, 121) if number % 8 != 1]
    assert [number for page in shown for number in page] == kept
    assert len(shown) == 3


@pytest.mark.parametrize("before", ["", "x", "-1", "1.5", "9" * 30, "²"])
def test_older_page_of_nonsense_is_not_found(signed_in: SignIn, ana: User, session: Session, before: str) -> None:
    response = signed_in(ana).get(reverse("session-messages", args=[session.pk]), {"before": before})
    assert response.status_code == 404


def test_one_bad_row_leaves_the_page_standing(signed_in: SignIn, ana: User, session: Session, said: Said) -> None:
    """MSG-10: a row that cannot be rendered shows a card; the rest of the page is complete."""
    rows = said(8)
    ChatMessage.objects.filter(pk=rows[3].pk).update(arguments={"a": "x"}, result="[" * 100_000)
    html = page_of(signed_in(ana), session)
    assert ("Question 2" in html, "Problem 6" in html, drawn(html)[2]) == (True, True, "4")


@pytest.mark.parametrize("column", ["mentions", "asked", "approval", "files", "sources", "subsession", "provider_data"])
@pytest.mark.parametrize("value", [[1], "x", 7, {"a": 1}, [[1, "x", None]]])
def test_a_column_of_another_form_leaves_the_page_complete(
    signed_in: SignIn, ana: User, session: Session, said: Said, column: str, value: object
) -> None:
    """MSG-10: values of another form than Parley writes, such as in hand-written rows, count as none."""
    said(8)
    ChatMessage.objects.filter(session=session, type__in=("text", "tool_group")).update(**{column: value})
    html = page_of(signed_in(ana), session)
    assert drawn(html) == ["2", "3", "4", "5", "6", "7", "8"]


def test_page_and_its_socket_speak_the_same_language(signed_in: SignIn, ana: User, session: Session) -> None:
    """LIVE-01, UI-13: updates to a page are in the language in which it was loaded."""
    client = signed_in(ana)
    address = reverse("session", args=[session.pk])
    for language in ("en", "zh-hans"):
        html = client.get(address, headers={"Accept-Language": language}).content.decode()
        page, socket = (re.findall(pattern, html) for pattern in (r'<html lang="([^"]*)"', r"[?;]lang=([^&\"]*)"))
        assert page == socket


def test_any_message_can_be_shown_with_what_stands_around_it(
    signed_in: SignIn, ana: User, session: Session, said: Said
) -> None:
    """A deep link opens any message; from there the reader can load both directions, and return to the end.

    A printed page that is only part of the session says so.
    """
    rows = said(200)
    client = signed_in(ana)
    address = reverse("session-messages", args=[session.pk])

    def page(**asked: str) -> str:
        return client.get(address, asked).content.decode()

    around = page(around=rows[99].pk)
    shown = [int(number) for number in drawn(around)]
    assert 100 in shown
    before, after = (int(around.split(f'data-{end}="')[1].split('"')[0]) for end in ("before", "after"))
    assert (before, after) == (76, 125)
    newer = page(after=str(after))
    assert int(drawn(newer)[0]) > after
    assert ('id="newer"' in newer, 'id="older"' in newer) == (True, False)
    assert drawn(page(after="190"))[-1] == "200"
    assert "data-after" not in page(after="190")
    assert [each.count("weren’t loaded") for each in (around, newer, page(after="190"))] == [2, 1, 0]
    start = page(start="yes")
    assert (drawn(start)[0], "data-before" in start, "data-after" in start) == ("2", False, True)
    assert drawn(page()) == drawn(client.get(reverse("session", args=[session.pk])).content.decode())


def test_page_begins_at_a_moment(signed_in: SignIn, ana: User, session: Session, said: Said) -> None:
    """The reader goes to a date: the first message since then with its neighbors; the newest if there is none."""
    rows = said(200)
    moments = [row.timestamp for row in rows]
    for number, row in enumerate(rows):
        row.timestamp = moments[-1] - timedelta(days=200 - number)
    ChatMessage.objects.bulk_update(rows, ["timestamp"])
    client = signed_in(ana)
    address = reverse("session-messages", args=[session.pk])

    def page(**asked: str) -> str:
        return client.get(address, asked).content.decode()

    since = rows[99].timestamp - timedelta(hours=1)
    assert page(since=since.isoformat()) == page(around=rows[99].pk)
    assert page(since=(moments[-1] + timedelta(days=1)).isoformat()) == page()


NOWHERE = [
    {"around": "m_unknown"},
    {"around": "\0"},
    {"around": "é"},
    {"after": "x"},
    {"since": "yesterday"},
    {"since": "2026-02-30T00:00Z"},
    {"since": "2026-02-28T00:00"},
    {"since": "9999-12-31T23:59:59-23:00"},
    {"since": "0001-01-01T00:00:00+23:00"},
    {"since": "\0"},
]


@pytest.mark.parametrize("asked", NOWHERE)
def test_page_around_nothing_is_not_found(
    signed_in: SignIn, ana: User, session: Session, asked: dict[str, str]
) -> None:
    assert signed_in(ana).get(reverse("session-messages", args=[session.pk]), asked).status_code == 404


def test_source_is_the_message_to_the_letter(signed_in: SignIn, ana: User, session: Session, said: Said) -> None:
    """MSG-12: a text's source is exactly what was written; a tool call's source is its name, arguments and result."""
    rows = said(8)
    written = "# A\n\n  **b** <c> &amp; \t👩‍👩‍👧 שלום\n"
    ChatMessage.objects.filter(pk=rows[1].pk).update(text=written)
    client = signed_in(ana)
    answers = [client.get(reverse("session-source", args=[session.pk]), {"id": row.pk}) for row in (rows[1], rows[3])]
    assert answers[0].headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answers[0].content.decode() == written
    assert answers[1].content.decode() == '**bash**\n\n```json\n{\n  "command": "ls"\n}\n```\n\n```\na\nb\n```'


def test_details_of_an_answer_have_its_figures_and_a_link_to_the_history(
    signed_in: SignIn, ana: User, session: Session, said: Said
) -> None:
    """MSG-06, MSG-11: the details have model, provider, tokens, times and id, and a link to the history."""
    row = said(8)[4]
    figures = {"input_tokens": 15_234, "output_tokens": 812, "first_token_latency_ms": 840, "provider": "demo"}
    ChatMessage.objects.filter(pk=row.pk).update(**figures)
    row.refresh_from_db()
    save_revision(row, ana, MessageRevision.Kind.EDIT)
    html = signed_in(ana).get(reverse("session-details", args=[session.pk]), {"id": row.pk}).content.decode()
    words = ("one", "demo", "15,234", "812", "840ms", "12s", row.pk, 'data-action="history"')
    assert [word for word in words if word not in html] == []


@pytest.mark.parametrize("route", ["session-source", "session-details"])
def test_messages_of_other_sessions_are_not_found(
    signed_in: SignIn, ana: User, session: Session, said: Said, route: str
) -> None:
    """LIVE-06: a message is found in its own session only, and not after it was removed."""
    row = said(2)[1]
    client = signed_in(ana)
    other = create_session(owner=ana, title="Other")
    assert client.get(reverse(route, args=[other.pk]), {"id": row.pk}).status_code == 404
    for nothing in ("", "m_unknown", "\0", "é"):
        assert client.get(reverse(route, args=[session.pk]), {"id": nothing}).status_code == 404
    ChatMessage.objects.filter(pk=row.pk).update(sequence=None, removed_at=row.timestamp)
    assert client.get(reverse(route, args=[session.pk]), {"id": row.pk}).status_code == 404


def test_words_are_found_in_the_whole_session(signed_in: SignIn, ana: User, session: Session, said: Said) -> None:
    """The search finds messages that the page has not loaded."""
    rows = said(120)
    answer = signed_in(ana).get(reverse("session-find", args=[session.pk]), {"q": "QUESTION 2"})
    expected = [row.pk for row in rows if row.text.startswith("Question 2")]
    assert answer.json() == {"ids": expected, "counts": [1] * len(expected), "more": False}


def test_searches_in_a_session_have_a_limit(signed_in: SignIn, ana: User, session: Session, settings: Settings) -> None:
    """MSG-12: searches are limited, because each reads all texts of the session while others wait for the database."""
    settings.LIMITS = "finds=2/minute"
    client, address = signed_in(ana), reverse("session-find", args=[session.pk])
    assert [client.get(address, {"q": "plan"}).status_code for _ in range(3)] == [200, 200, 429]


def test_comparisons_of_texts_have_a_limit(
    signed_in: SignIn, ana: User, session: Session, said: Said, settings: Settings
) -> None:
    """MSG-12: each computes differences, which may take long for long texts."""
    settings.LIMITS = "finds=1/minute"
    client, message = signed_in(ana), said(1)[0].pk
    suggestions = reverse("session-suggestions", args=[session.pk])
    compare = reverse("session-compare", args=[session.pk])
    assert client.get(suggestions, {"id": message}).status_code == 200
    assert client.get(suggestions, {"id": message}).status_code == 429
    assert client.post(compare, {"id": message, "mine": "Hi"}).status_code == 429


def test_empty_session_offers_what_the_demo_agent_understands(
    signed_in: SignIn, ana: User, bo: User, session: Session
) -> None:
    """The demo agent answers each prompt differently; viewers get no prompts."""
    html = page_of(signed_in(ana), session)
    offered = re.findall(r'data-action="prompt" value="([^"]+)"', html)
    assert len(offered) == 4
    # "help" gets the same answer as any other text.
    assert len({first_words(prompt) for prompt in [*offered, "anything else"]}) == 4
    let_in(session, bo, "viewer")
    assert 'data-action="prompt"' not in page_of(signed_in(bo), session)


def first_words(prompt: str) -> str:
    """Return what the demo agent answers first, reasoning included."""
    request = Request("demo", (Message("user", (Text(prompt),)),))

    async def ask() -> str:
        async with aclosing(DemoProvider(tokens_per_second=0).stream(request)) as events:
            return "".join([event.text async for event in events if isinstance(event, ReasoningDelta | TextDelta)])

    return asyncio.run(ask())


def test_query_count_does_not_grow_with_the_messages(
    signed_in: SignIn, ana: User, session: Session, said: Said
) -> None:
    """The session page and its older messages take the same number of queries at 2 and at 30 messages."""
    client = signed_in(ana)
    older = reverse("session-messages", args=[session.pk]) + "?before=100"

    def counts() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as page:
            page_of(client, session)
        with CaptureQueriesContext(connection) as more:
            client.get(older)
        return len(page), len(more)

    said(2)  # with files in users' messages, which take one more query
    at_two = counts()
    ChatMessage.objects.all().delete()
    said(30)
    assert counts() == at_two
    assert at_two[0] <= 14


def test_query_count_does_not_grow_with_the_sessions(signed_in: SignIn, ana: User, session: Session) -> None:
    """The session lists take the same number of queries, too."""
    client = signed_in(ana)

    def counts() -> list[int]:
        found = []
        for address in (reverse("home"), reverse("sessions"), reverse("session", args=[session.pk])):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(address).status_code == 200
            found.append(len(queries))
        return found

    at_one = counts()
    for number in range(30):
        owner = person(f"P{number}", session.workspace)
        let_in(create_session(owner=owner, workspace=session.workspace), ana, "viewer")
    assert counts() == at_one
