"""Access to a file from its upload until its message is removed."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Attachment, ChatMessage
from tests.access.people import ANONYMOUS, EDITOR, EVERYONE, GUEST, OWNER, VIEWER, People
from tests.support import files

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]


def client_of(people: People, name: str) -> Client:
    client = Client()
    if (user := people.users[name]) is not None:
        client.force_login(user)
    return client


def who_gets(people: People, row: Attachment) -> set[str]:
    """Return the actors who get the file, after checking its thumbnail for all and the answers to the others."""
    got: dict[str, set[int]] = {name: set() for name in EVERYONE}
    for route in ("attachment", "attachment-thumb"):
        for name in EVERYONE:
            got[name].add(client_of(people, name).get(reverse(route, args=[row.pk])).status_code)
    assert got.pop(ANONYMOUS) == {302}
    assert all(codes in ({200}, {404}) for codes in got.values())
    return {name for name, codes in got.items() if codes == {200}}


def test_who_may_see_a_file(people: People) -> None:
    """LIVE-06: before it is sent, only its uploader sees a file; after that, all users of the session.
    After its message was removed, no one does. RefusedRequests never do.
    """
    file = SimpleUploadedFile("a.png", files.picture())
    client_of(people, EDITOR).post(reverse("session-attachments", args=[people.session.pk]), {"file": file})
    row = Attachment.objects.get()
    assert who_gets(people, row) == {EDITOR}
    row.message = message = ChatMessage.objects.create(session=people.session, sequence=1, role="user")
    row.save()
    assert who_gets(people, row) == {OWNER, EDITOR, VIEWER, GUEST}
    message.sequence, message.removed_at = None, timezone.now()
    message.save()
    assert who_gets(people, row) == set()
