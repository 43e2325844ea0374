"""Uploading and reading files over the API."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.fixtures import Settings

from chat.models import Session, SessionRole, User
from tests.api.asking import code, token_of
from tests.support import files
from tests.support.testing_node import let_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]


def client_of(user: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {token_of(user)}"})


def test_file_goes_with_a_message(session: Session, ana: User, bo: User) -> None:
    """MSG-04: a file is uploaded, sent, and read by a user who sees the session."""
    let_in(session, bo, SessionRole.VIEWER)
    mine, his = client_of(ana), client_of(bo)
    data = files.picture()
    made = mine.post(f"/api/sessions/{session.pk}/attachments", {"file": SimpleUploadedFile("Bild ü.png", data)})
    attachment = made.json()
    assert (made.status_code, attachment["kind"], attachment["name"], made["Location"]) == (
        201,
        "image",
        "Bild ü.png",
        attachment["url"],
    )
    assert his.get(attachment["url"]).status_code == 404
    body = {"text": "", "attachments": [attachment["id"]]}
    sent = mine.post(f"/api/sessions/{session.pk}/messages", body, "application/json").json()
    message = his.get(f"/api/sessions/{session.pk}/messages/{sent['id']}").json()
    assert [each["id"] for each in message["attachments"]] == [attachment["id"]]
    whole = his.get(attachment["url"])
    assert (len(whole.content), whole.content[:4]) == (attachment["size"], b"\x89PNG")
    assert (whole["Content-Type"], whole["Cache-Control"]) == ("image/png", "private, no-store")
    assert whole["Content-Disposition"].startswith("attachment;")
    assert code(mine.delete(attachment["url"])) == (409, "already_sent")


@pytest.mark.parametrize("address", ["sessions/{session}/attachments", "workspaces/{workspace}/knowledge"])
def test_quotation_marks_in_names_are_kept(session: Session, ana: User, address: str) -> None:
    """MSG-04: clients, such as curl, write a quotation mark in the name of a file as %22."""
    path = f"/api/{address.format(session=session.pk, workspace=session.workspace_id)}"
    made = client_of(ana).post(path, {"file": SimpleUploadedFile("Say %22Hi%22 100%.txt", b"Hi")})
    assert made.json()["name"] == 'Say "Hi" 100%.txt'


def test_unsent_file_is_taken_back(session: Session, ana: User) -> None:
    """MSG-11: a file that was not sent can be deleted."""
    client = client_of(ana)
    address = f"/api/sessions/{session.pk}/attachments"
    url = client.post(address, {"file": SimpleUploadedFile("a.txt", b"Hi")}).json()["url"]
    assert client.delete(url).status_code == 204
    assert code(client.get(url)) == (404, "no_such_attachment")


def test_what_is_no_file_is_refused(session: Session, ana: User, settings: Settings) -> None:
    """MSG-12: unsupported types, files that are too large, and requests without a form are refused."""
    client, address = client_of(ana), f"/api/sessions/{session.pk}/attachments"
    assert code(client.post(address, {"file": SimpleUploadedFile("a.exe", b"MZ\0\0")})) == (415, "unsupported")
    assert code(client.post(address, {"file": "no file"})) == (422, "malformed")
    assert code(client.post(address, b"--x\r\nno", "multipart/form-data; boundary=x"))[0] in (400, 422)
    assert code(client.post(address, {"text": "Hi"}, "application/json")) == (422, "malformed")
    settings.MAX_ATTACHMENT_MB = 0
    assert code(client.post(address, {"file": SimpleUploadedFile("a.txt", b"Hi")})) == (413, "too_large")


def test_parts_of_a_file_are_read(session: Session, ana: User) -> None:
    """MSG-12: requests for one range return it, if the client's version is current.

    Others return the whole file, or an error with its size.
    """
    client, address = client_of(ana), f"/api/sessions/{session.pk}/attachments"
    url = client.post(address, {"file": SimpleUploadedFile("a.txt", b"0123456789")}).json()["url"]
    whole = client.get(url)
    assert (whole["Accept-Ranges"], whole.content) == ("bytes", b"0123456789")
    assert client.get(url, headers={"If-None-Match": whole["ETag"]}).status_code == 304
    for asked, part, where in (
        ("bytes=2-4", b"234", "bytes 2-4/10"),
        ("bytes=8-", b"89", "bytes 8-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=5-999", b"56789", "bytes 5-9/10"),
    ):
        answer = client.get(url, headers={"Range": asked, "If-Range": whole["ETag"], "Accept-Encoding": "gzip"})
        assert (answer.status_code, answer.content, answer["Content-Range"]) == (206, part, where)
    for odd in ("bytes=4-2", "bytes=-", "bytes=1-2,4-5", "lines=1-2", "bytes=x-", "bytes=0-" + "9" * 40):
        assert client.get(url, headers={"Range": odd}).status_code == 200
    assert client.get(url, headers={"Range": "bytes=2-4", "If-Range": '"other"'}).content == b"0123456789"
    for beyond in ("bytes=10-", "bytes=-0"):
        refused = client.get(url, headers={"Range": beyond})
        assert (code(refused), refused["Content-Range"]) == ((416, "range_not_satisfiable"), "bytes */10")


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("Grüße".encode(), "utf-8"),
        ("Grüße".encode("cp1252"), "windows-1252"),
        ("你好,世界".encode("gb18030"), "gb18030"),
        ("Grüße".encode("utf-16"), "utf-16"),
    ],
)
def test_text_says_in_which_encoding_it_is(session: Session, ana: User, data: bytes, charset: str) -> None:
    """A text file is served with its encoding (MSG-12)."""
    client, address = client_of(ana), f"/api/sessions/{session.pk}/attachments"
    url = client.post(address, {"file": SimpleUploadedFile("a.txt", data)}).json()["url"]
    assert client.get(url)["Content-Type"] == f"text/plain; charset={charset}"


def test_file_of_another_user_is_not_one_s_own_to_delete(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: an editor cannot delete a file that another user has sent."""
    let_in(session, bo, SessionRole.EDITOR)
    mine = client_of(ana)
    address = f"/api/sessions/{session.pk}/attachments"
    attachment = mine.post(address, {"file": SimpleUploadedFile("a.txt", b"Hi")}).json()
    body = {"text": "", "attachments": [attachment["id"]]}
    mine.post(f"/api/sessions/{session.pk}/messages", body, "application/json")
    assert code(client_of(bo).delete(attachment["url"])) == (403, "forbidden")
