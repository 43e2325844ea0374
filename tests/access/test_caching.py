"""Caching of answers: nothing may be cached, except files in the browser of their viewer."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.access.people import EVERYONE, OWNER, People
from tests.access.test_pages import MATRIX, Row, asked
from tests.support import files

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]


def kept(client: Client, people: People, row: Row) -> set[str]:
    """Return the caching headers of the answer to a row's request."""
    address, data = asked(people, row)
    answer = client.get(address, data) if row.method == "GET" else client.post(address, data)
    return set(answer["Cache-Control"].split(", "))


@pytest.mark.parametrize("actor", EVERYONE)
def test_no_page_is_kept(people: People, actor: str) -> None:
    """LIVE-06: no answer or refusal is cached, so that another user of the browser or the proxy sees nothing."""
    client = Client()
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    loose = {row: found for row in MATRIX if not (found := kept(client, people, row)) >= {"private", "no-store"}}
    assert loose == {}


def test_files_stay_in_their_viewer_s_browser(people: People) -> None:
    """LIVE-06: a file never changes, so the viewer's browser may cache it."""
    client = Client()
    client.force_login(people[OWNER])
    upload = {"file": SimpleUploadedFile("a.png", files.picture())}
    made = client.post(reverse("session-attachments", args=[people.session.pk]), upload).json()
    for address in (made["url"], made["thumb"]):
        assert client.get(address)["Cache-Control"] == "private, max-age=86400"
