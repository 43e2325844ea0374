"""The common parts of all admin pages: groups, headings, times, numbers, menus and buttons."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpRequest
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.admin.people import PersonAdmin
from chat.models import ApiToken, ChatMessage, Session, User
from chat.zones import ZONE_COOKIE
from tests.admin.pages import message_page, page_of, said, soup_of
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, TOOL, fill
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/chat/session/"
NOON = datetime(2026, 2, 3, 12, 0, tzinfo=UTC)
DJANGO_WORDS = (
    "Site administration",
    "Authentication and Authorization",
    "Authentication and authorization",
    "Select ",
)


@pytest.fixture
def root(db: None) -> Client:
    return signed_in(User.objects.create_superuser("root"))


def groups_of(client: Client) -> dict[str, list[str]]:
    cards = soup_of(client.get("/admin/")).select(".card:not(.recent)")
    return {card.h2.get_text(): [a.get_text() for a in card.select(".card-link")] for card in cards if card.h2}


def test_index_groups_the_pages(root: Client) -> None:
    """ADM-01: the groups are the product's, not Django's apps; every page is in one."""
    assert groups_of(root) == {
        "Sessions and agents": ["Sessions", "Agents", "MCP servers", "Shares", "Invitations", "Tool rules"],
        "People and access": ["People", "Groups", "Workspaces", "Workspace invitations", "API tokens"],
        "Operations": ["Runs", "Schedules", "Workers"],
        "Logs": ["Security events", "Admin log entries", "Erasures"],
    }


def test_index_shows_what_one_may_see(staff_with: Callable[..., User]) -> None:
    """ADM-01: empty groups are left out, and a user without permissions gets a note."""
    assert groups_of(signed_in(staff_with("view_session"))) == {"Sessions and agents": ["Sessions"]}
    assert "You don’t have permission to view or edit anything." in said(
        signed_in(staff_with(name="rob")).get("/admin/")
    )


def test_index_lists_ones_latest_changes(root: Client, session: Session) -> None:
    """ADM-01: the latest changes name their objects, with a constant number of queries."""

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert "Changed Title" in said(root.get("/admin/"))
        return len(queries)

    def change() -> None:
        message = '[{"changed": {"fields": ["Title"]}}]'
        user = User.objects.get(username="root")
        LogEntry.objects.log_actions(user.pk, [session], CHANGE, change_message=message, single_object=True)

    change()
    cost()
    few = cost()
    for _ in range(7):
        change()
    assert cost() == few


def test_pages_of_apps_lead_to_the_index(root: Client) -> None:
    """ADM-01: Django's page for one app redirects to the index, because it does not fit the groups."""
    assert root.get("/admin/chat/")["Location"] == "/admin/"


@pytest.mark.parametrize(
    "address", ["/admin/", LIST, "/admin/auth/group/", "/admin/chat/user/", "/admin/chat/user/add/"]
)
def test_headings_are_plain(root: Client, address: str) -> None:
    """ADM-01: headings and breadcrumbs do not name Django's apps."""
    page = soup_of(root.get(address))
    assert len(page.select("h1")) == 1
    assert not [words for words in DJANGO_WORDS if words in page.get_text()]


def test_page_of_an_object_is_named_after_it(root: Client) -> None:
    """ADM-01: heading, title and breadcrumbs name the object."""
    group = Group.objects.create(name="Editors of notes")
    page = soup_of(root.get(f"/admin/auth/group/{group.pk}/change/"))
    crumbs = [item.get_text(strip=True) for item in page.select(".crumbs li")]
    assert crumbs == ["Admin", "Groups", "Editors of notes"]
    assert [page.h1 and page.h1.get_text(), page.title and page.title.get_text().split(" | ")[:2]] == [
        "Editors of notes",
        ["Editors of notes", "Groups"],
    ]


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("", "2026-02-03 12:00:00 UTC"),
        ("Asia/Shanghai", "2026-02-03 20:00:00 CST"),
        ("../x", "2026-02-03 12:00:00 UTC"),
    ],
)
def test_times_name_the_viewers_zone(admin: Client, session: Session, zone: str, shown: str) -> None:
    """UI-02, ADM-01: each time is an element that the browser formats. Its initial text names the zone."""
    row = fill(session, START, HI, DONE)[1]
    Session.objects.update(updated_at=NOON)
    ChatMessage.objects.update(timestamp=NOON)
    admin.cookies[ZONE_COOKIE] = zone
    for address in (LIST, page_of(session), message_page(row)):
        times = {time["datetime"]: time.get_text() for time in soup_of(admin.get(address)).select("main time")}
        assert times["2026-02-03T12:00:00+00:00"] == shown


def test_all_lists_have_times_as_elements(root: Client, ana: User, session: Session) -> None:
    """UI-02: times of users and API tokens are elements as well, in lists and on pages, and no time lacks a zone."""
    token = ApiToken.objects.create(user=ana, name="T", scope="read", digest="x", last_used_at=NOON)
    User.objects.filter(pk=ana.pk).update(last_login=NOON)
    for address in (
        "/admin/chat/user/",
        f"/admin/chat/user/{ana.pk}/change/",
        "/admin/chat/apitoken/",
        f"/admin/chat/apitoken/{token.pk}/change/",
    ):
        times = [time["datetime"] for time in soup_of(root.get(address)).select("main time")]
        assert "2026-02-03T12:00:00+00:00" in times
        assert "noon" not in said(root.get(address))


def test_today_is_the_viewers_day(admin: Client) -> None:
    """ADM-01: filters by date begin at the viewer's midnight."""
    admin.cookies[ZONE_COOKIE] = "Asia/Shanghai"
    choices = {a.get_text(strip=True): unquote(str(a["href"])) for a in soup_of(admin.get(LIST)).select(".drop-item")}
    assert "00:00:00+08:00" in choices["Today"]


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        (HI, "Message 2 · Ana"),
        ({**ANSWER, "model": "large"}, "Message 2 · large"),
        (TOOL, "Message 2 · double"),
        (ERROR, "Message 2 · Error"),
    ],
)
def test_message_page_is_named_after_the_message(
    admin: Client, session: Session, fields: dict[str, Any], title: str
) -> None:
    """ADM-01: heading and breadcrumb have the message's place and author, because "User" would not distinguish
    messages."""
    row = fill(session, START, fields, DONE)[1]
    page = soup_of(admin.get(message_page(row)))
    assert page.h1 is not None
    assert page.h1.bdi is not None
    assert page.h1.bdi.get_text() == title
    assert page.select(".crumbs li")[-1].get_text() == title


def test_large_numbers_are_grouped(admin: Client, session: Session) -> None:
    """ADM-01: digits are grouped in lists, on the session's page and on the message's."""
    row = fill(session, START, {**ANSWER, "total_tokens": 16046, "duration_ms": 183_000}, DONE)[1]
    Session.objects.update(total_tokens=1_234_567, revision=2345)
    assert "1,234,567" in said(admin.get(LIST))
    page = said(admin.get(page_of(session)))
    assert [words for words in ("1,234,567", "16,046 tokens", "2,345") if words not in page] == []
    page = said(admin.get(message_page(row)))
    assert [words for words in ("16,046", "3m 3s") if words not in page] == []


def test_each_message_has_one_menu(admin: Client, session: Session) -> None:
    """ADM-01, ADM-03: a message's menu has all its actions and needs no script."""
    fill(session, START, HI, ANSWER, DONE)
    rows = soup_of(admin.get(page_of(session))).select(".message-row")
    for row in rows:
        menus = row.select("details.row-menu")
        assert len(menus) == 1
        assert row.select("button") == menus[0].select("button")
        assert menus[0].summary is not None
        assert str(menus[0].summary["aria-label"]).startswith("More actions: Message ")
        items = [item.get_text(strip=True) for item in menus[0].select(".drop-item")]
        assert items == ["Edit", "Exclude from context", "Retry from here", "Fork from here", "Remove"]
    assert len(rows) == 2


def test_buttons_are_the_products(root: Client, session: Session) -> None:
    """ADM-01: Save, Cancel and the other buttons of a form have the product's style on all pages."""
    row = fill(session, START, HI, DONE)[1]
    for address in (page_of(session), message_page(row), "/admin/chat/user/add/", "/admin/chat/workspace/add/"):
        buttons = soup_of(root.get(address)).select(".submit-row > *")
        assert buttons
        assert [button for button in buttons if "button" not in (button.get("class") or [])] == []


def test_form_of_a_new_user_is_in_one_language(root: Client) -> None:
    """UI-13: Django's sentence above the form has no translation, so the product has its own."""
    page = said(root.get("/admin/chat/user/add/", headers={"Accept-Language": "zh-hans"}))
    assert "After you’ve created" not in page
    assert "保存后可编辑更多选项。" in page


def test_account_theme_and_clock_hold_in_the_admin(staff_with: Callable[..., User]) -> None:
    """UI-02: the admin uses the account's settings, like the product's pages."""
    user = staff_with("view_session")
    User.objects.filter(pk=user.pk).update(theme="dark", clock="12")
    html = soup_of(signed_in(user).get("/admin/")).html
    assert html is not None
    assert (html["data-theme"], html["data-clock"]) == ("dark", "12")


def test_values_that_no_row_can_have_are_refused(root: Client) -> None:
    """MSG-12, ADM-01: a value that no row can have is refused with an error page; form fields have their own
    validation."""
    answer = root.get("/admin/chat/user/", {"date_joined__year": "9" * 23})
    assert (answer.status_code, "isn’t valid" in said(answer)) == (400, True)
    form = root.post("/admin/auth/group/add/", {"name": "a\0b", "permissions": "x"})
    assert (form.status_code, "Null characters are not allowed." in said(form)) == (200, True)
    assert not Group.objects.filter(name__startswith="a").exists()


@pytest.mark.parametrize("error", [ValueError, OverflowError])
def test_errors_of_ours_are_no_refusals(root: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    """ADM-01: errors of Parley are logged and answered with 500, not treated as refusals."""

    def broken(request: HttpRequest, user: User) -> str:
        raise error("ours")

    monkeypatch.setattr(PersonAdmin, "shown_name", broken)
    with pytest.raises(error):
        root.get("/admin/chat/user/")
