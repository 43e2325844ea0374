"""Upload and download files: permissions and safe delivery."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.storage import Storage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.files.user_locks import UserLocks
from chat.management.backup.making import stored_names
from chat.models import Attachment, ChatMessage, Session, SessionRole, User
from chat.services.messages import attachments
from chat.services.messages.sending import send_message, withdraw
from chat.services.sessions.lifecycle import create_session
from tests.support import files
from tests.support.signed_in import signed_in
from tests.support.testing_node import let_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]


@pytest.fixture
def ana_s(ana: User) -> Client:
    return signed_in(ana)


def post(
    client: Client, session: Session, data: bytes, name: str = "a.png", kind: str = "image/png", key: str = ""
) -> HttpResponse:
    address = reverse("session-attachments", args=[session.pk])
    response: Any = client.post(address, {"file": SimpleUploadedFile(name, data, kind), "upload": key})
    return response  # type: ignore[no-any-return]


def taken(client: Client, session: Session, data: bytes, name: str = "a.png", key: str = "") -> dict[str, Any]:
    response: Any = post(client, session, data, name, key=key)
    assert response.status_code == 201, response.content
    described: dict[str, Any] = response.json()
    return described


def refused(response: Any) -> tuple[int, str]:
    assert response.json()["message"]
    return response.status_code, response.json()["code"]


def sent(attachment_id: str, session: Session) -> ChatMessage:
    message = ChatMessage.objects.create(session=session, sequence=1, role="user")
    Attachment.objects.filter(pk=attachment_id).update(message=message)
    return message


def stored() -> list[str]:
    return list(stored_names(default_storage))


def test_an_upload_is_described(ana_s: Client, session: Session) -> None:
    """UI-09: the answer to an upload has what the composer shows about the file."""
    picture = files.picture("JPEG", (1200, 900))
    described = taken(ana_s, session, picture, "été.jpg")
    row = Attachment.objects.get()
    assert described == {
        "id": row.pk,
        "name": "été.jpg",
        "kind": "image",
        "media_type": "image/jpeg",
        "size": row.size,
        "width": 1200,
        "height": 900,
        "pages": None,
        "url": f"/attachments/{row.pk}",
        "thumb": f"/attachments/{row.pk}/thumb",
    }


def test_a_file_is_stored_once_for_its_key(ana_s: Client, session: Session) -> None:
    """MSG-02: the browser uploads a file again after a lost response. A file that was sent since is refused."""
    first = taken(ana_s, session, b"a", key="k")
    with patch.object(attachments, "MAX_UNSENT", 1):  # which the file itself has used up
        assert taken(ana_s, session, b"a", key="k") == first
    assert taken(ana_s, session, b"a", key="k2")["id"] != first["id"]
    assert taken(ana_s, create_session(owner=session.owner), b"a", key="k")["id"] != first["id"]
    sent(first["id"], session)
    assert refused(post(ana_s, session, b"a", key="k")) == (422, "already_sent")


def test_two_processes_store_the_file_of_a_key_once(
    ana_s: Client, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-02: the slower process returns the file of the quicker one, whose stored file stays."""
    save, quicker = Storage.save, list[dict[str, Any]]()

    def interrupted(storage: Storage, name: str, content: Any) -> str:
        monkeypatch.setattr(Storage, "save", save)
        monkeypatch.setattr(attachments, "_locks", UserLocks())  # the other process has its own
        quicker.append(taken(ana_s, session, b"a", key="k"))
        return str(save(storage, name, content))

    monkeypatch.setattr(Storage, "save", interrupted)
    assert taken(ana_s, session, b"a", key="k") == quicker[0]
    assert stored() == [Attachment.objects.get().file.name]


def test_the_bytes_decide_what_a_file_is(ana_s: Client, session: Session) -> None:
    """MSG-12: the data decides the media type, not the file's name or what the browser sends."""
    page = b"<html><script>alert(document.domain)</script></html>"
    assert taken(ana_s, session, page, "photo.png")["kind"] == "text"
    assert taken(ana_s, session, b"<svg/>", "photo.svg")["kind"] == "text"
    assert taken(ana_s, session, files.pdf("x"), "photo.jpg")["kind"] == "pdf"
    assert taken(ana_s, session, files.picture("GIF"), "notes.txt")["media_type"] == "image/gif"
    assert refused(post(ana_s, session, b"MZ\x90\0\x03", "photo.png")) == (415, "unsupported")


def test_a_file_that_is_two_things_is_one_of_them(ana_s: Client, session: Session) -> None:
    """MSG-12: a script with a GIF header is refused, data after an image is cut off, a PDF is sandboxed."""
    assert refused(post(ana_s, session, b"GIF89a=1;alert(document.domain)//")) == (422, "broken_image")
    rider = b"<script>alert(1)</script>"
    shown = ana_s.get(taken(ana_s, session, files.picture("JPEG") + rider, "a.html")["url"])
    assert (shown["Content-Type"], rider in shown.content) == ("image/jpeg", False)
    paper = ana_s.get(taken(ana_s, session, files.pdf("x") + rider, "a.html")["url"])
    assert (paper["Content-Type"], paper["X-Content-Type-Options"]) == ("application/pdf", "nosniff")
    assert paper["Content-Security-Policy"].startswith("sandbox; default-src 'none'")


def test_files_that_cannot_be_used_are_refused_in_words(ana_s: Client, session: Session, settings: Settings) -> None:
    """Unsupported files are refused with a reason (MSG-12)."""
    settings.MAX_ATTACHMENT_MB = 1
    assert refused(post(ana_s, session, b"")) == (422, "empty")
    assert refused(post(ana_s, session, files.picture()[:40])) == (422, "broken_image")
    assert refused(post(ana_s, session, files.locked_pdf("x"))) == (422, "locked_pdf")
    assert refused(post(ana_s, session, b"x" * (1024 * 1024 + 1))) == (413, "too_large")


def test_upload_is_checked_for_its_origin_and_its_file(ana_s: Client, session: Session, settings: Settings) -> None:
    """MSG-12: an upload needs a CSRF token and a file. tests/asgi and tests/servers test bodies that are too large."""
    settings.MAX_ATTACHMENT_MB = 1
    address = reverse("session-attachments", args=[session.pk])
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = ana_s.cookies
    assert careful.post(address, {}).status_code == 403
    nothing = ana_s.post(reverse("session-attachments", args=[session.pk]))
    assert refused(nothing) == (422, "no_file")
    assert post(ana_s, session, b"x" * 1024 * 1024).status_code == 201
    assert len(stored()) == 1


def test_names_lead_nowhere(ana_s: Client, session: Session) -> None:
    """MSG-12: Parley chooses where a file is stored."""
    described = taken(ana_s, session, b"root", "../../../etc/pass\u202ewd")
    assert described["name"] == "passwd"
    [path] = stored()
    assert re.fullmatch(rf"attachments/{session.pk}/{described['id']}-[0-9a-f]{{8}}", path)


def test_number_of_unsent_files_is_limited_and_old_ones_are_deleted(
    ana_s: Client, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-12: the number of unsent files is limited, and old ones are deleted."""
    monkeypatch.setattr(attachments, "MAX_UNSENT", 2)
    first, second = (taken(ana_s, session, files.picture()) for _ in range(2))
    assert refused(post(ana_s, session, b"third")) == (422, "too_many_unsent")
    old = timezone.now() - attachments.UNSENT_KEPT
    Attachment.objects.filter(pk=first["id"]).update(created_at=old)
    third = taken(ana_s, session, b"third")
    assert {row.pk for row in Attachment.objects.all()} == {second["id"], third["id"]}
    assert not [name for name in stored() if first["id"] in name]


def test_a_file_comes_back_safely(ana_s: Client, session: Session) -> None:
    """MSG-12: whatever a file contains, the browser may display it but never run it."""
    picture = files.picture("PNG")
    shown = ana_s.get(taken(ana_s, session, picture, 'a "b" 日本.png')["url"])
    assert (shown["Content-Type"], shown["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert shown["Content-Disposition"] == (
        "inline; filename=\"a _b_ __.png\"; filename*=UTF-8''a%20%22b%22%20%E6%97%A5%E6%9C%AC.png"
    )
    assert shown["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert "private" in shown["Cache-Control"]
    page = ana_s.get(taken(ana_s, session, b"<script>alert(1)</script>", "a.html")["url"])
    assert (page["Content-Type"], page["Content-Disposition"][:11]) == ("text/plain", "attachment;")
    assert page.content == b"<script>alert(1)</script>"


def test_a_file_is_not_sent_twice_to_a_browser_that_has_it(ana_s: Client, session: Session) -> None:
    """UI-01: the thumbnail has an ETag of its own."""
    described = taken(ana_s, session, files.picture())
    tags = {ana_s.get(described[what])["ETag"] for what in ("url", "thumb")}
    assert len(tags) == 2
    again = [ana_s.get(described["url"], headers={"If-None-Match": tag}).status_code for tag in sorted(tags)]
    assert again == [304, 200]
    assert ana_s.get(described["url"], headers={"If-None-Match": f"W/{min(tags)}"}).status_code == 304
    assert ana_s.get(described["thumb"])["Content-Type"] == "image/webp"
    text = taken(ana_s, session, b"words")
    assert ana_s.get(reverse("attachment-thumb", args=[text["id"]])).status_code == 404


def test_user_who_lost_access_cannot_open_or_remove_their_files(session: Session, bo: User) -> None:
    """A user who lost access can't open their files in the session (LIVE-06)."""
    let_in(session, bo, SessionRole.EDITOR)
    client = signed_in(bo)
    described = taken(client, session, b"mine")
    session.shares.all().delete()
    assert client.get(described["url"]).status_code == 404
    assert client.post(reverse("attachment-remove", args=[described["id"]])).status_code == 404


def test_sender_gets_the_files_of_a_message_that_another_user_removed_from_the_queue(
    session: Session, ana: User, bo: User, ana_s: Client
) -> None:
    """MSG-11, RUN-06: the list of removed messages has the text, and links to the files for their sender."""
    let_in(session, bo, SessionRole.EDITOR)
    bo_s = signed_in(bo)
    file = taken(bo_s, session, files.picture())
    send_message(session=session, author=ana, text="Work!")
    queued = send_message(session=session, author=bo, text="Then this", attachment_ids=[file["id"]])
    withdraw(session=session, author=ana, message_id=queued.id)
    removed = reverse("session-removed", args=[session.pk])
    for client, may_see in ((bo_s, True), (ana_s, False)):
        html = client.get(removed).content.decode()
        assert "Removed from the queue" in html
        assert "Replaced by a retry" not in html
        assert "Then this" in html
        assert (file["url"] in html) == may_see
        assert client.get(file["url"]).status_code == (200 if may_see else 404)


def test_an_unsent_file_can_be_removed_by_its_uploader(ana_s: Client, session: Session, bo: User) -> None:
    """UI-09: removing an unsent file also deletes its data."""
    let_in(session, bo, SessionRole.EDITOR)
    address = reverse("attachment-remove", args=[taken(ana_s, session, files.picture("GIF"))["id"]])
    assert refused(signed_in(bo).post(address)) == (404, "no_such_attachment")
    assert len(stored()) == 3
    assert ana_s.post(address).status_code == 204
    assert stored() == []
    assert refused(ana_s.post(address)) == (404, "no_such_attachment")


def test_a_sent_file_cannot_be_removed(ana_s: Client, session: Session) -> None:
    """A sent file can't be deleted (MSG-11)."""
    described = taken(ana_s, session, b"words")
    sent(described["id"], session)
    address = reverse("attachment-remove", args=[described["id"]])
    assert refused(ana_s.post(address)) == (422, "already_sent")
    assert len(stored()) == 1


def test_a_file_stays_while_another_row_has_it(ana_s: Client, session: Session) -> None:
    """RUN-13: copies of a conversation share its files."""
    original = Attachment.objects.get(pk=taken(ana_s, session, b"words")["id"])
    fork = create_session(owner=session.owner)
    Attachment.objects.create(
        session=fork, user=original.user, name="copy", kind="text", media_type="text/plain", size=5, file=original.file
    )
    assert ana_s.post(reverse("attachment-remove", args=[original.pk])).status_code == 204
    assert len(stored()) == 1


def test_a_file_that_is_lost_is_not_found(ana_s: Client, session: Session) -> None:
    """MSG-10: a row whose file is missing breaks nothing."""
    described = taken(ana_s, session, b"words")
    default_storage.delete(Attachment.objects.get().file.name or "")
    assert ana_s.get(described["url"]).status_code == 404


def test_a_script_learns_that_its_sign_in_is_over(session: Session) -> None:
    """LIVE-06: a script whose sign-in is over gets an error, instead of a redirect to a page that it cannot show."""
    assert refused(post(Client(), session, b"words")) == (401, "signed_out")


def test_an_upload_without_a_token_is_refused(ana: User, session: Session) -> None:
    """LIVE-06: another site cannot upload in a user's name."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ana)
    assert post(client, session, b"words").status_code == 403


def test_what_is_packed_already_is_not_packed_again(ana_s: Client, session: Session) -> None:
    """UI-01: compressing large photographs would keep a core busy on each view."""
    for data, packed in ((files.picture(size=(300, 300), compress_level=0), False), (b"words " * 200, True)):
        answer = ana_s.get(taken(ana_s, session, data)["url"], headers={"Accept-Encoding": "gzip"})
        assert ("Content-Encoding" in answer) == packed


def test_parts_of_a_large_file_are_read(ana_s: Client, session: Session) -> None:
    """MSG-12: browsers request ranges of a PDF file to show it, and large files are streamed."""
    paper = files.pdf("x") + bytes(range(256)) * 8192
    url = taken(ana_s, session, paper)["url"]
    whole = ana_s.get(url)
    assert (whole["Accept-Ranges"], whole["Content-Length"], whole.getvalue()) == ("bytes", str(len(paper)), paper)
    for asked, part in (("bytes=1000-1999", paper[1000:2000]), ("bytes=100-", paper[100:]), ("bytes=-9", paper[-9:])):
        answer = ana_s.get(url, headers={"Range": asked})
        assert (answer.status_code, answer["Content-Length"]) == (206, str(len(part)))
        assert answer.getvalue() == part
    beyond = ana_s.get(url, headers={"Range": f"bytes={len(paper)}-"})
    assert (beyond.status_code, beyond["Content-Range"]) == (416, f"bytes */{len(paper)}")
