"""Files on an S3 server: differences from a folder, and outages of the server.

Tests with the marker `each_storage` cover everything else about files on S3.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from io import BytesIO
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.errors import FilesRefused, FilesUnavailable, ServiceError
from chat.management.backup.making import stored_names
from chat.models import Attachment, ChatMessage, Session, User
from chat.s3 import S3Storage
from chat.services import import_uploads
from chat.services.deletion import purging, requests
from chat.services.messages import attachments
from chat.services.messages.sending import send_message
from chat.services.people import knowledge
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import code, token_of
from tests.conftest import store_in
from tests.support.s3 import S3Server
from tests.transfer import samples

DATA = bytes(range(256)) * 4096


@pytest.fixture
def storage(s3: S3Server, request: pytest.FixtureRequest) -> S3Storage:
    return s3.storage(f"{request.node.name}/deep")


def test_file_is_read_from_any_position(storage: S3Storage) -> None:
    """MSG-12: ranges and archives are read without reading the whole file."""
    storage.save("a/b", ContentFile(DATA))
    with storage.open("a/b") as file:
        assert (file.size, file.read(3), file.seek(-3, 2), file.read(), file.read()) == (
            len(DATA),
            DATA[:3],
            len(DATA) - 3,
            DATA[-3:],
            b"",
        )
        file.seek(1000)
        assert file.read(len(DATA)) == DATA[1000:]


@pytest.mark.parametrize("content", [ContentFile(b"words"), File(BytesIO(b"words")), File(File(BytesIO(b"words")))])
def test_file_is_stored_whatever_holds_it(storage: S3Storage, content: File[Any]) -> None:
    """MSG-12: also if it has been read, and if Django's wrapper of it has no name."""
    content.read(2)
    storage.save("a", content)
    assert storage.open("a").read() == b"words"


def test_names_are_listed_below_the_prefix(storage: S3Storage) -> None:
    """OPS-06: other installations use the bucket, too."""
    for name in ("top", "a/one", "a/two", "a/b/three"):
        storage.save(name, ContentFile(b"x"))
    assert storage.listdir("") == (["a"], ["top"])
    assert storage.listdir("a") == (["b"], ["one", "two"])
    assert storage.listdir("elsewhere") == ([], [])
    assert list(stored_names(storage)) == ["top", "a/one", "a/two", "a/b/three"]
    storage.move("a/one", "c")
    assert (storage.exists("a/one"), storage.open("c").read()) == (False, b"x")
    storage.delete("c")
    storage.delete("c")  # a missing file is not an error, as in a folder


def test_missing_file_is_deleted_on_servers_that_answer_404(
    storage: S3Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-06: Google Cloud Storage does. An erasure may delete a file twice."""

    def not_found(**_: str) -> None:
        response: Any = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        raise ClientError(response, "DeleteObject")

    monkeypatch.setattr(storage._client, "delete_object", not_found)
    storage.delete("gone")


def test_what_is_missing_and_what_is_refused_differ(storage: S3Storage, s3: S3Server) -> None:
    """MSG-10: a lost file is not found; a wrong setting is a matter of the operator."""
    for ask in (storage.open, storage.size, storage.get_modified_time):
        with pytest.raises(FileNotFoundError):
            ask("gone")
    with pytest.raises(FilesRefused) as refused:
        type(storage)(**{**s3.options(""), "bucket": "no-such-bucket"}).listdir("")
    assert "NoSuchBucket" in refused.value.reason
    with pytest.raises(OSError, match="not available"):
        type(storage)(**{**s3.options(""), "endpoint": closed_endpoint()}).exists("a")


class CutAfter:
    """A proxy that cuts the first connection after `most` bytes. Unless it is `lasting`, it then refuses others."""

    def __init__(self, server: S3Server, most: int, *, lasting: bool) -> None:
        host, port = server.endpoint.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._most, self._lasting = most, lasting
        self._has_cut = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            passed = 0
            while data := server.recv(1 << 16):
                passed += len(data)
                if passed > self._most and not self._has_cut:
                    self._has_cut = True
                    if not self._lasting:
                        self._listening.shutdown(socket.SHUT_RDWR)
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        return


@pytest.mark.parametrize("survives", [True, False])
def test_connection_that_breaks_is_opened_once_more(storage: S3Storage, s3: S3Server, survives: bool) -> None:
    """MSG-12: a download goes on where it was; if that does not help, it ends with an error and not as a short file."""
    storage.save("a", ContentFile(DATA))
    with closing(CutAfter(s3, len(DATA) // 2, lasting=survives)) as proxy:
        cut = type(storage)(**{**s3.options(storage._prefix.rstrip("/")), "endpoint": proxy.endpoint})
        with cut.open("a") as file:
            if survives:
                assert file.read() == DATA
            else:
                with pytest.raises(FilesUnavailable):
                    file.read()


def closed_endpoint() -> str:
    with socket.create_server(("127.0.0.1", 0)) as once:
        return f"http://127.0.0.1:{once.getsockname()[1]}"


@pytest.fixture
def on_s3(s3: S3Server, settings: Settings, request: pytest.FixtureRequest) -> Callable[[], None]:
    """Store files on the S3 server. The fixture's value is a function that ends an outage."""

    def back() -> None:
        store_in(s3, request.node.name, settings)

    back()
    return back


@pytest.fixture
def away(settings: Settings) -> Callable[[], None]:
    """A function that begins an outage of the S3 server."""

    def go() -> None:
        found = settings.STORAGES["default"]
        options = {**found["OPTIONS"], "endpoint": closed_endpoint()}
        settings.STORAGES = {**settings.STORAGES, "default": {**found, "OPTIONS": options}}

    return go


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


@pytest.fixture
def client(ana: User) -> Client:
    client = Client(headers={"Authorization": f"Bearer {token_of(ana)}"}, raise_request_exception=False)
    client.force_login(ana)
    return client


def uploaded(session: Session, author: User) -> Attachment:
    file: File[Any] = File(BytesIO(b"words"))
    return attachments.upload(session=session, author=author, name="a.txt", size=5, file=file)


@pytest.mark.django_db
def test_outage_refuses_uploads_and_downloads_and_loses_nothing(
    on_s3: Callable[[], None], away: Callable[[], None], client: Client, ana: User, session: Session
) -> None:
    """MSG-12: clients are asked to try again; there is no row without a file, and afterwards all is as before."""
    kept = uploaded(session, ana)
    page, api = reverse("attachment", args=[kept.pk]), f"/api/attachments/{kept.pk}"
    away()
    composer, sessions = reverse("session-attachments", args=[session.pk]), f"/api/sessions/{session.pk}"
    upload = client.post(composer, {"file": SimpleUploadedFile("b.txt", b"b")})
    assert (upload.status_code, upload.json()["code"]) == (503, "unavailable")
    refused = client.post(f"{sessions}/attachments", {"file": SimpleUploadedFile("b.txt", b"b")})
    assert code(refused) == (503, "unavailable")
    talk = SimpleUploadedFile("a.json", json.dumps([samples.chatgpt()]).encode())
    assert code(client.post("/api/imports", {"file": talk})) == (503, "unavailable")
    for address in (page, api):
        refused = client.get(address)
        assert (refused.status_code, "Retry-After" in refused) == (503, True)
    assert code(client.get(api)) == (503, "unavailable")
    assert client.get(page, headers={"Accept": "application/json"}).json()["code"] == "unavailable"
    sent = client.post(
        f"/api/sessions/{session.pk}/messages", {"text": "", "attachments": [kept.pk]}, "application/json"
    )
    assert sent.status_code == 201  # needs no bytes
    on_s3()
    assert list(Attachment.objects.values_list("pk", flat=True)) == [kept.pk]
    assert (client.get(page).content, client.get(api).content) == (b"words", b"words")


class Silent(Storage):
    """A storage that does not respond. `deletions` are the names to delete, and the threads that wait for them."""

    deletions: ClassVar[list[tuple[str, threading.Thread]]] = []

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: File[Any]) -> str:
        raise FilesUnavailable

    def delete(self, name: str) -> None:
        self.deletions.append((name, threading.current_thread()))
        raise FilesUnavailable


@pytest.mark.django_db
def test_upload_waits_for_a_silent_storage_only_once(settings: Settings, ana: User, session: Session) -> None:
    """OPS-10: the deletion of what may have been stored does not delay the refusal, and is tried only once."""
    Silent.deletions.clear()
    silent = {"BACKEND": f"{__name__}.Silent"}
    settings.STORAGES = {**settings.STORAGES, "default": silent}
    note: File[Any] = File(BytesIO(b"# Words"))
    for store in (
        partial(uploaded, session, ana),
        partial(knowledge.add, author=ana, workspace_id=session.workspace_id, name="b.md", size=7, file=note),
    ):
        with pytest.raises(ServiceError) as refused:
            store()
        assert refused.value.code == "unavailable"
    for thread in threading.enumerate():
        if thread.name == "parley-discard":
            thread.join()
    assert len(Silent.deletions) == 2
    assert all(thread is not threading.current_thread() for _name, thread in Silent.deletions)


@pytest.mark.django_db
def test_nothing_is_forgotten_that_could_not_be_deleted(
    on_s3: Callable[[], None], away: Callable[[], None], ana: User, bo: User, session: Session
) -> None:
    """MSG-11: purging and erasing during an outage change no row, and finish when it is over."""
    sent = send_message(session=session, author=ana, text="", attachment_ids=[uploaded(session, ana).pk])
    import_uploads.keep(owner=bo, file=ContentFile(b"[]"))
    bo.picture.save("picture", ContentFile(b"face"))
    ChatMessage.objects.filter(pk=sent.id).update(removed_at=timezone.now(), sequence=None)
    erasure = requests.request_user(user=bo, author=None)
    away()
    later = timezone.now() + timedelta(days=1)
    with pytest.raises(FilesUnavailable):
        purging.purge(before=later)
    with pytest.raises(FilesUnavailable):
        requests.carry_out(erasure)
    assert (Attachment.objects.count(), User.objects.filter(pk=bo.pk).count()) == (1, 1)
    on_s3()
    assert len(list(stored_names(default_storage))) == 3
    purging.purge(before=later)
    assert requests.carry_out(erasure)
    assert list(stored_names(default_storage)) == []


@pytest.mark.django_db
def test_verification_does_not_take_an_outage_for_lost_files(
    on_s3: Callable[[], None], away: Callable[[], None], ana: User, session: Session
) -> None:
    """OPS-04: it says that it could not look."""
    send_message(session=session, author=ana, text="", attachment_ids=[uploaded(session, ana).pk])
    call_command("verify", verbosity=0)
    away()
    with pytest.raises(CommandError, match="0 problems found, but the files could not be checked"):
        call_command("verify", verbosity=0)
