"""The list of all sessions in the admin: search, content and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.models import Session, SessionRun, User
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import said, soup_of
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.signed_in import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
LIST = "/admin/chat/session/"


def listed(client: Client, **asked: str) -> list[str]:
    """Return the titles in the list."""
    page = client.get(LIST, asked)
    assert page.status_code == 200, page.get("Location")
    return [cell.get_text() for cell in soup_of(page).select("#result_list :is(.field-named, .field-numbered)")]


@pytest.fixture
def several(ana: User, bo: User) -> dict[str, Session]:
    """Sessions that differ in every filter; later ones were active later."""
    made = {
        "Plan": create_session(owner=ana, title="Plan", provider="p", model="one"),
        "Élan vital": create_session(owner=ana, title="Élan vital", provider="p", model="two"),
        "周报": create_session(owner=bo, title="周报", provider="p", model="two"),
        "Gone": create_session(owner=bo, title="Gone"),
    }
    fill(made["Plan"], START, {**HI, "text": "Where are the ferrets?"}, {**ANSWER, "text": "前往第三季度"}, DONE)
    Session.objects.filter(title="Gone").update(status="deleted")
    Session.objects.filter(title="周报").update(status="archived", total_tokens=28512)
    SessionRun.objects.filter(session__title="Plan").update(state="running", turn_id="t_1")
    return made


def test_list_has_all_sessions_the_latest_first(admin: Client, several: dict[str, Session]) -> None:
    """ADM-01: the list has the sessions of all users, including deleted ones, with their properties."""
    assert listed(admin) == ["Gone", "周报", "Élan vital", "Plan"]
    page = soup_of(admin.get(LIST))
    rows = [[cell.get_text() for cell in row.select("td, th")][2:6] for row in page.select("#result_list tbody tr")]
    assert rows == [
        ["Deleted", "bo", "0", "0"],
        ["Archived", "bo", "0", "28,512"],
        ["Active", "ana", "0", "0"],
        ["Working", "ana", "2", "0"],
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("plan", ["Plan"]),
        ("élan", ["Élan vital"]),
        ("ÉLAN VITAL", ["Élan vital"]),
        ("周", ["周报"]),
        ("ana", ["Élan vital", "Plan"]),
        ("bo", ["Gone", "周报"]),
        ("ferrets", ["Plan"]),
        ("FERRET where", ["Plan"]),
        ("ferrets unicorns", []),
        ("第三季度", ["Plan"]),
        ("季度", ["Plan"]),
        ("%", []),
        ("_", []),
        ('" OR 1', []),
        ("\0", ["Gone", "周报", "Élan vital", "Plan"]),
        (" ", ["Gone", "周报", "Élan vital", "Plan"]),
        ("x" * 5000, []),
    ],
)
def test_search_looks_into_titles_owners_and_words(
    admin: Client, several: dict[str, Session], query: str, found: list[str]
) -> None:
    """ADM-01, MSG-12: the search uses every term, in any script, with any punctuation."""
    assert listed(admin, q=query) == found


def test_search_tells_nothing_of_words_that_one_may_not_read(
    client: Client, staff_with: Callable[..., User], several: dict[str, Session]
) -> None:
    """ADM-01: staff who may not read messages see ids instead of titles, and find sessions by their owner."""
    client.force_login(staff_with("view_session"))
    assert [listed(client, q=words) for words in ("ferrets", "plan")] == [[], []]
    assert several["Plan"].pk in listed(client, q="ana")
    assert "Plan" not in listed(client)


@pytest.mark.parametrize(
    "condition", ["title__startswith=P", "title=Plan", "system_prompt__contains=a", "config__has_key=x"]
)
def test_address_tells_nothing_of_hidden_columns(
    client: Client, staff_with: Callable[..., User], several: dict[str, Session], condition: str
) -> None:
    """ADM-01: a condition in the address does not reveal a title or a prompt, letter by letter and without a log."""
    client.force_login(staff_with("view_session"))
    response = client.get(f"{LIST}?{condition}")
    assert response.status_code == 400
    assert several["Plan"].pk not in response.content.decode()


def test_search_knows_ids(admin: Client, several: dict[str, Session]) -> None:
    """ADM-01: the search finds ids as they appear in addresses and logs."""
    assert listed(admin, q=several["周报"].pk) == ["周报"]


def test_filters_narrow_the_list(admin: Client, several: dict[str, Session], ana: User) -> None:
    """ADM-01: the filters are workspace, owner, status, run state, model and date, and combine with the search."""
    everything = ["Gone", "周报", "Élan vital", "Plan"]
    assert listed(admin, status="archived") == ["周报"]
    assert listed(admin, run="running") == ["Plan"]
    assert listed(admin, owner=str(ana.pk)) == ["Élan vital", "Plan"]
    assert listed(admin, workspace=str(several["Plan"].workspace_id)) == everything
    assert listed(admin, model="two") == ["周报", "Élan vital"]
    assert listed(admin, model="two", status="active", q="vital") == ["Élan vital"]
    assert listed(admin, updated_at__gte="2001-01-01 00:00:00+00:00", updated_at__lt="2002-01-01 00:00:00+00:00") == []
    assert listed(admin, o="1") == list(Session.objects.order_by("title").values_list("title", flat=True))


@pytest.mark.parametrize(
    "asked",
    [
        {"owner": "x"},
        {"owner": "9" * 40},
        {"workspace": "\0"},
        {"model": "\0"},
        {"status": "none"},
        {"status": "none", "q": "hello"},
        {"status": "\0"},
        {"run": "'"},
        {"p": "99"},
        {"p": "x"},
        {"o": "99"},
        {"updated_at__gte": "x"},
        {"owner__password__startswith": "a"},
    ],
)
def test_odd_questions_have_an_answer(admin: Client, several: dict[str, Session], asked: dict[str, str]) -> None:
    """MSG-12: invalid parameters cause no server error, and reveal nothing about users that the list does not show."""
    assert admin.get(LIST, asked).status_code in (200, 302, 400)


def test_list_costs_the_same_however_long_it_is(admin: Client, ana: User) -> None:
    """ADM-01: the number of queries does not depend on the rows, messages or runs."""

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert listed(admin)
        return len(queries)

    fill(create_session(owner=ana, title="0"), HI)
    cost()
    few = cost()
    for number in range(1, 60):
        fill(create_session(owner=ana, title=str(number)), HI, ANSWER)
    assert cost() == few


def test_list_is_paged(admin: Client, ana: User) -> None:
    """The list of sessions has pages (ADM-01)."""
    for number in range(60):
        create_session(owner=ana, title=str(number))
    assert listed(admin, p="2") == [str(number) for number in range(9, -1, -1)]
    assert "60 sessions" in said(admin.get(LIST))


def test_what_may_be_done_is_offered(staff_with: Callable[..., User], several: dict[str, Session]) -> None:
    """ADM-03: the actions depend on the user's permissions."""

    def offered(user: User) -> set[Any]:
        page = soup_of(signed_in(user).get(LIST))
        return {option["value"] for option in page.select("select[name=action] option")} - {""}

    exports = {"export_json", "export_markdown"}
    assert offered(staff_with("view_session", "view_chatmessage", name="rob")) == exports
    changing = {"stop", "archive", "unarchive", "undelete"}
    assert offered(staff_with("change_session", name="kim")) == changing
    assert offered(staff_with("view_session", "erase_session", name="eve")) == {"erase_sessions"}
    assert offered(User.objects.create_superuser("root")) == exports | changing | {"erase_sessions"}


def test_nothing_is_added_or_deleted_here(session: Session) -> None:
    """ADM-01: sessions are created and deleted on the main pages, where deletion can be undone; also by superusers."""
    root = signed_in(User.objects.create_superuser("root"))
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.get(f"{LIST}{session.pk.replace('_', '_5F')}/delete/").status_code == 403
