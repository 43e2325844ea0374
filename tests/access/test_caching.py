"""Caching, and changes by proxies: nothing is cached, except files in their viewer's browser. HTML is not changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from chat.asgi.refusals import refuse
from chat.errors import ServiceError
from tests.access.people import EVERYONE, OWNER, STAFF, People
from tests.access.test_pages import MATRIX, Row, asked
from tests.support import files

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]


def answer_to(client: Client, people: People, row: Row) -> Any:
    address, data = asked(people, row)
    return client.get(address, data) if row.method == "GET" else client.post(address, data)


def kept(answer: Any) -> set[str]:
    """Return the caching directives of an answer."""
    return set(answer["Cache-Control"].split(", "))


@pytest.mark.parametrize("actor", EVERYONE)
def test_no_page_is_kept(people: People, actor: str) -> None:
    """LIVE-06: no answer or refusal is cached, so that another user of the browser or the proxy sees nothing."""
    client = Client()
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    loose = {
        row: found for row in MATRIX if not (found := kept(answer_to(client, people, row))) >= {"private", "no-store"}
    }
    assert loose == {}


def test_proxies_may_not_change_html(people: People) -> None:
    """Cloudflare would replace email addresses by “[email protected]”. Other answers may be changed."""
    client = Client(raise_request_exception=False)
    client.force_login(people[OWNER])
    answers = [answer_to(client, people, row) for row in MATRIX]
    marked = {(answer["Content-Type"].startswith("text/html"), "no-transform" in kept(answer)) for answer in answers}
    assert marked == {(True, True), (False, False)}


@pytest.mark.parametrize("address", ["/admin/", "/admin/chat/session/", "/no/such/page", "/static/no-such-page.html"])
def test_proxies_may_not_change_pages_of_staff_and_errors(people: People, address: str) -> None:
    client = Client()
    client.force_login(people[STAFF])
    assert kept(client.get(address)) >= {"private", "no-store", "no-transform"}


async def test_proxies_may_not_change_a_refusal() -> None:
    """A page that refuses a request before Django sees it is HTML, too."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/sessions", "headers": []}
    await refuse(scope, send, 413, lambda: ServiceError("too_large", "The request is too large."))
    assert (b"cache-control", b"private, no-store, no-transform") in sent[0]["headers"]


def test_files_stay_in_their_viewer_s_browser(people: People) -> None:
    """LIVE-06: a file never changes, so the viewer's browser may cache it."""
    client = Client()
    client.force_login(people[OWNER])
    upload = {"file": SimpleUploadedFile("a.png", files.picture())}
    made = client.post(reverse("session-attachments", args=[people.session.pk]), upload).json()
    for address in (made["url"], made["thumb"]):
        assert client.get(address)["Cache-Control"] == "private, max-age=86400"
