"""Invalid input from every actor to every page: it is refused or ignored, and never causes a server error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from chat.zones import ZONE_COOKIE
from tests.access.people import ANONYMOUS, EVERYONE, OWNER, People
from tests.access.test_pages import MATRIX, OF_SESSIONS, Row
from tests.support.effort import share_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]
FORM = "application/x-www-form-urlencoded"
# In an address or a form: NUL, half a surrogate pair, invalid UTF-8, paths, markup, formats and numbers.
JUNK = (
    b"",
    b"a\0b",
    b"\xed\xa0\x80\xff",
    "\U0001f600\u202e".encode(),
    b"../../etc/passwd",
    b"//evil.example/",
    b"'\"><script>alert(1)</script>%s%(count)s{0.__class__}",
    b"-1",
    b"9" * 5000,
    b"9" * 40,
    "\u0661\u0662".encode(),
)
# The fields that pages read; every page gets all of them.
NAMES = {name for row in MATRIX for name in row.data} | {
    *("q", "agent", "model", "text", "shown", "archived", "current", "next", "id", "before", "after", "around"),
    *("address", "signature", "file", "picture", "name", "part", "theme", "language", "clock", "send_key", "notify"),
    *("username", "password", "display_name", "old_password", "new_password1", "new_password2"),
}
BODIES = (
    (FORM, b"%00=%00&&&=%ED%A0%80&%"),
    (f"{FORM}; charset=nonsense", b"title=x"),
    (f"{FORM}; charset=utf-16", b"title=x"),
    ("application/json", b'{"title": ['),
    ("multipart/form-data", b"no boundary"),
    ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
    ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="file"; filename="a\0b"\r\n\r\n'),
    ("multipart/form-data; boundary=\u00fc".encode().decode("latin-1"), b""),
    ("nonsense", b"\xff" * 1000),
    ("", b"\0"),
)
HEADERS: tuple[dict[str, str], ...] = (
    {"HX-Request": "true", "HX-Current-URL": "http://[evil"},
    {"HX-Request": "true", "HX-Current-URL": "//evil.example//other"},
    {"Accept-Language": "x" * 600 + "-" + "y" * 600},
    {"Accept-Language": ",;q=nan,zh-hans;q=9e9"},
    {"Cookie": f"{settings.LANGUAGE_COOKIE_NAME}={'x' * 600}; {ZONE_COOKIE}=../../../etc/passwd"},
    {"Cookie": f"{settings.LANGUAGE_COOKIE_NAME}=../en; {ZONE_COOKIE}={'x' * 5000}"},
    {"Cookie": f"{settings.SESSION_COOKIE_NAME}=\xff%00; {settings.CSRF_COOKIE_NAME}=x; {ZONE_COOKIE}=\xff"},
    {"If-None-Match": "\xff", "Range": "bytes=9-1", "Accept": "\0"},
    {"X-Forwarded-For": "\xff, , ,", "X-Forwarded-Proto": "\xff"},
    {"Host": "evil.example"},
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE")
# Users who have left or signed out see nothing more.
LASTING = [row for row in MATRIX if row.route != "sign-out" and row.data.get("action") != "leave"]
ROUTES = {row.route: row for row in LASTING if row.data.get("action") != "delete"}


def client_of(people: People, actor: str) -> Client:
    client = Client(raise_request_exception=True)
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    return client


def address(people: People, row: Row) -> str:
    return reverse(row.route, args=row.args or ((people.session.pk,) if row in OF_SESSIONS else ()))


def throw(
    client: Client, method: str, path: str, body: bytes = b"", kind: str = FORM, headers: dict[str, str] | None = None
) -> None:
    """Send a request and undo its changes.

    Django's client raises an exception of a view, so each answer is the view's own.
    """
    answer = client.generic(method, path, body, content_type=kind, headers=headers)
    assert answer.status_code < 500 or answer.status_code == 502, (method, path[:200], body[:80], headers)


def send(client: Client, method: str, path: str, fields: dict[str, Any]) -> None:
    if method == "GET":
        throw(client, "GET", f"{path}?{urlencode(fields)}")
    else:
        throw(client, method, path, urlencode(fields).encode())


@pytest.mark.parametrize("actor", [pytest.param(OWNER, marks=pytest.mark.both_databases), ANONYMOUS])
def test_junk_in_what_pages_are_asked(people: People, actor: str) -> None:
    """MSG-12: each page gets the same invalid value in every field of its address or form."""
    client = client_of(people, actor)
    for number, row in enumerate(ROUTES.values()):
        for junk in share_of(JUNK, number):
            send(client, row.method, address(people, row), dict.fromkeys(sorted(NAMES), junk))


@pytest.mark.both_databases
def test_junk_in_one_field_only(people: People) -> None:
    """MSG-12: one field is invalid and the others are valid."""
    client = client_of(people, OWNER)
    for number, row in enumerate(LASTING):
        for name in row.data:
            for junk in share_of(JUNK, number):
                send(client, row.method, address(people, row), {**row.data, "session": people.session.pk, name: junk})


def paths(people: People) -> Iterator[str]:
    for number, row in enumerate(ROUTES.values()):
        found = reverse(row.route, args=["0"] * (len(row.args) or row in OF_SESSIONS))
        before, zero, after = found.partition("0")
        yield from (f"{before}{quote_from_bytes(junk)}{after}" for junk in share_of(JUNK, number) if zero)


@pytest.mark.both_databases
def test_junk_where_an_id_should_be(people: People) -> None:
    """MSG-12: all addresses get invalid values in place of ids."""
    for actor in (OWNER, ANONYMOUS):
        client = client_of(people, actor)
        for path in paths(people):
            throw(client, "GET", path)
            throw(client, "POST", path, b"id=x")


@pytest.mark.parametrize("actor", EVERYONE)
def test_other_methods_than_those_of_a_page(people: People, actor: str) -> None:
    """Other HTTP methods than a page's own get 405, never a 500 (MSG-12)."""
    client = client_of(people, actor)
    for row in ROUTES.values():
        for method in METHODS:
            throw(client, method, address(people, row))


@pytest.mark.parametrize("actor", [OWNER, ANONYMOUS])
def test_bodies_and_headers_that_are_none(people: People, actor: str) -> None:
    """MSG-12: broken forms, JSON in place of a form, and invalid cookies and languages cause no server error."""
    for number, row in enumerate(ROUTES.values()):
        client = client_of(people, actor)
        for kind, body in share_of(BODIES, number):
            throw(client, "POST", address(people, row), body, kind)
        for headers in share_of(HEADERS, number):
            throw(client, "GET", address(people, row), headers=headers)
            throw(client, "POST", address(people, row), b"title=x", headers=headers)
