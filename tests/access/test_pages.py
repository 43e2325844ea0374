"""Every page for everybody: a route without a row here fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.access.people import (
    ANONYMOUS,
    EDITOR,
    EVERYBODY,
    OWNER,
    SIGNED_IN,
    STAFF,
    STRANGERS,
    VIEWER,
    People,
)

pytestmark = pytest.mark.django_db
TO_SIGN_IN = "to sign-in"
Expected = dict[str, int | str]


def all_of(status: int | str) -> Expected:
    return dict.fromkeys(EVERYBODY, status)


def signed_in(status: int | str) -> Expected:
    return {**dict.fromkeys(SIGNED_IN, status), ANONYMOUS: TO_SIGN_IN}


def seeing(status: int) -> Expected:
    """For everybody in the session."""
    return {**signed_in(404), OWNER: status, EDITOR: status, VIEWER: status}


def owning(status: int) -> Expected:
    """For its owner; others who are in it learn that it is not theirs to do."""
    return {**seeing(403), OWNER: status}


@dataclass(frozen=True)
class Row:
    """What everybody gets for a request."""

    method: str
    route: str
    expected: Expected = field(repr=False, hash=False)
    data: dict[str, str] = field(default_factory=dict, hash=False)
    args: tuple[str, ...] = ()


MATRIX = [
    Row("GET", "home", signed_in(200)),
    Row("GET", "rail", signed_in(200)),
    Row("GET", "sign-in", {**all_of(302), ANONYMOUS: 200}),
    Row("POST", "sign-out", all_of(302)),
    Row("GET", "sign-out", all_of(405)),
    Row("GET", "sign-in-link", all_of(410), args=("no-such-token",)),
    Row("GET", "join", all_of(410), args=("no-such-token",)),
    Row("POST", "join", all_of(410), args=("no-such-token",)),
    Row("POST", "new-session", signed_in(302)),
    Row("GET", "new-session", {**all_of(405)}),
    Row("GET", "session", seeing(200)),
    Row("GET", "session-messages", seeing(200), {"before": "1"}),
    Row("GET", "session-share", owning(200)),
    Row("POST", "session-share-member", owning(200), {"user": "stranger", "role": "viewer"}),
    Row("POST", "session-share-member", owning(422), {"user": "stranger", "role": "owner"}),
    Row("POST", "session-share-member", owning(422), {"user": "outsider", "role": "viewer"}),
    Row("POST", "session-share-remove", owning(200), {"user": "viewer"}),
    Row("POST", "session-share-invite", owning(200), {"role": "viewer"}),
    Row("POST", "session-share-revoke", owning(200)),
]
# A session's routes; their ids are of no use to strangers.
OF_SESSIONS = [row for row in MATRIX if row.route == "session" or row.route.startswith("session-")]


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """The names of all routes, those of the admin as their addresses."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        else:
            yield address if address.startswith("admin/") else str(pattern.name)


def ask(people: People, actor: str, row: Row, session_id: str | None = None) -> tuple[int | str, bytes]:
    client = Client()
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    args = row.args or ((session_id or people.session.pk,) if row in OF_SESSIONS else ())
    address = reverse(row.route, args=args)
    response = client.get(address, row.data) if row.method == "GET" else client.post(address, row.data)
    if response.status_code == 302 and response["Location"].startswith(reverse("sign-in") + "?next="):
        return TO_SIGN_IN, b""
    return response.status_code, response.content


def test_every_route_has_a_row() -> None:
    """LIVE-06: access of a new page is a decision that stands here."""
    known = {row.route for row in MATRIX}
    assert {name for name in routes(get_resolver().url_patterns) if not name.startswith("admin/")} == known


@pytest.mark.parametrize("actor", EVERYBODY)
def test_everybody_gets_what_the_matrix_says(people: People, actor: str) -> None:
    """LIVE-06."""
    assert {row: ask(people, actor, row)[0] for row in MATRIX} == {row: row.expected[actor] for row in MATRIX}


@pytest.mark.parametrize("actor", [*STRANGERS, ANONYMOUS])
def test_strangers_do_not_learn_whether_a_session_exists(people: People, actor: str) -> None:
    """LIVE-06: the same answer, to the byte, for sessions of others and for those that never were."""
    unknown = "s_" + "0" * 24
    assert [ask(people, actor, row) for row in OF_SESSIONS] == [ask(people, actor, row, unknown) for row in OF_SESSIONS]


def test_odd_ids_are_not_found(people: People) -> None:
    """MSG-12: whatever stands where an id should."""
    for session_id in ("%00", "s_" + "0" * 300, "😀"):
        for row in OF_SESSIONS:
            assert ask(people, OWNER, row, session_id)[0] == 404


def test_lists_show_one_s_own_sessions_and_shared_ones(people: People) -> None:
    """LIVE-06: nobody sees even the title of what is not theirs; not staff either."""
    for route in ("home", "rail"):
        shown = {actor: b"Plan" in ask(people, actor, Row("GET", route, {}))[1] for actor in SIGNED_IN}
        assert shown == {**dict.fromkeys(SIGNED_IN, False), OWNER: True, EDITOR: True, VIEWER: True}


def test_admin_is_for_staff(people: People) -> None:
    """LIVE-06: all of its addresses that need no argument."""
    addresses = [name for name in routes(get_resolver().url_patterns) if name.startswith("admin/") and "<" not in name]
    closed = [name for name in addresses if name not in ("admin/login/", "admin/logout/") and "(" not in name]
    assert closed
    for actor in EVERYBODY:
        client = Client()
        if (user := people.users[actor]) is not None:
            client.force_login(user)
        for address in closed if actor != STAFF else []:
            response = client.get("/" + address)
            assert response.status_code == 302
            assert response["Location"].startswith("/admin/login/")


def test_posts_without_a_token_are_refused(people: People) -> None:
    """LIVE-06: no other site can act in somebody's name."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people[OWNER])
    for row in MATRIX:
        if row.method == "POST":
            args = row.args or ((people.session.pk,) if row in OF_SESSIONS else ())
            assert client.post(reverse(row.route, args=args), row.data).status_code == 403
