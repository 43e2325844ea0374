"""Uploaded files of conversations, which are imported in several requests."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.fixtures import Settings

from chat.limits.quotas import QuotaExceeded
from chat.management.backup.making import stored_names
from chat.models import Session, User
from chat.services import import_uploads
from chat.services.batches import Deadline
from chat.services.maintenance import jobs
from tests.api.asking import code, token_of
from tests.transfer import samples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]
# A lifetime with which all uploads have expired.
LONG_AGO = timedelta(hours=-1)
JSON = "application/json"


@pytest.fixture
def client(ana: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {token_of(ana)}"})


def uploaded(client: Client, count: int = 3) -> Any:
    talks = [samples.chatgpt(f"Talk {number}") for number in range(count)]
    file = SimpleUploadedFile("conversations.json", json.dumps(talks).encode(), JSON)
    return client.post("/api/imports", {"file": file})


def test_a_file_is_listed_and_imported_in_parts(client: Client) -> None:
    """The titles, sizes and counts are listed first, and then parts are imported without another upload."""
    made = uploaded(client)
    listed = made.json()
    address = made["Location"]
    assert made.status_code == 201
    assert [(each["index"], each["title"], each["messages"], each["source"]) for each in listed["conversations"]] == [
        (number, f"Talk {number}", 4, "chatgpt") for number in range(3)
    ]
    assert all(each["size"] > 1000 for each in listed["conversations"])
    assert client.get(address).json() == listed
    for chosen in ([2], [0, 1]):
        answer = client.post(f"{address}/sessions", {"conversations": chosen}, JSON)
        assert [each["title"] for each in answer.json()["sessions"]] == [f"Talk {number}" for number in chosen]
    assert client.delete(address).status_code == 204
    assert code(client.get(address)) == (404, "no_such_import")
    assert Session.objects.count() == 3


def test_more_than_a_hundred_are_imported_at_once(client: Client) -> None:
    answer = client.post(f"{uploaded(client, 101)['Location']}/sessions", {"conversations": list(range(101))}, JSON)
    assert len(answer.json()["sessions"]) == 101


def test_an_unknown_field_of_an_import_is_refused(client: Client) -> None:
    """A misspelled field must not import into another workspace, or with other ids, than the client meant."""
    body = {"conversations": [0], "workspce": 1}

    assert code(client.post(f"{uploaded(client)['Location']}/sessions", body, JSON)) == (422, "malformed")
    assert not Session.objects.exists()


def test_upload_cannot_be_used_by_another_user(client: Client, bo: User) -> None:
    """Another user can't use an upload (LIVE-06)."""
    address = uploaded(client)["Location"]
    stranger = Client(headers={"Authorization": f"Bearer {token_of(bo)}"})
    assert code(stranger.get(address)) == (404, "no_such_import")
    assert code(stranger.post(f"{address}/sessions", {"conversations": [0]}, JSON)) == (404, "no_such_import")
    stranger.delete(address)
    assert client.get(address).status_code == 200
    assert code(client.get("/api/imports/..%2F1"))[0] == 404


def test_uploads_go_after_an_hour_and_by_number(client: Client, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new upload deletes those that have expired, and the oldest if there are more than three."""
    first = uploaded(client)["Location"]
    with monkeypatch.context() as later:
        later.setattr(import_uploads, "KEPT", LONG_AGO)
        assert code(client.get(first)) == (404, "no_such_import")
        second = uploaded(client)["Location"]
    assert list(stored_names(default_storage)) == [f"imports/{ana.pk}/{second.rpartition('/')[2]}"]
    for _ in range(4):
        last = uploaded(client)["Location"]
    assert len(list(stored_names(default_storage))) == 3
    assert client.get(last).status_code == 200
    import_uploads.discard_all(ana.pk)
    assert not list(stored_names(default_storage))


def test_expired_uploads_are_deleted_by_the_maintenance(
    client: Client, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded(client)
    monkeypatch.setattr(import_uploads, "KEPT", LONG_AGO)
    jobs.delete_expired(Deadline())
    assert not list(stored_names(default_storage))


def test_uploads_count_as_stored(ana: User, settings: Settings) -> None:
    """An upload beyond the quota is refused before it is stored."""
    settings.QUOTAS = "stored_megabytes=1"
    with pytest.raises(QuotaExceeded):
        import_uploads.keep(owner=ana, file=ContentFile(b" " * (1024 * 1024 + 1)))
    assert not default_storage.exists(f"imports/{ana.pk}")
