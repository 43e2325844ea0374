"""Limits of imports: large and hostile files, many files, clients that disconnect, and servers that crash."""

from __future__ import annotations

import base64
import io
import itertools
import json
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.messages import Json
from agents.process_pool import Limits, ProcessPool
from chat.access import deleted_session_for, session_for_staff, sessions_of
from chat.disconnects import Disconnect
from chat.errors import NoSuchSession, ServiceError
from chat.models import Attachment, ChatMessage, Session, User
from chat.services.deletion import purging
from chat.transfer.importing import files as import_files
from chat.transfer.importing import session as importing
from chat.transfer.importing.files import import_file, list_conversations
from chat.transfer.importing.session import FileReader, IdsTaken, SessionImport
from chat.transfer.reading import conversations as reading
from tests.support.files import picture
from tests.transfer import samples
from tests.transfer.test_foreign import file_of
from tests.transfer.test_strangers import talk_of

pytestmark = pytest.mark.usefixtures("own_files")
PICTURE = base64.b64encode(picture()).decode()
NOTE = base64.b64encode(b"Hi there").decode()


def code_of(file: Any, owner: User, **options: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        import_file(owner=owner, file=file, **options)
    return refused.value.code


@pytest.fixture
def in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting by which even small files are read in a process, which is kept for the next file."""
    monkeypatch.setattr(import_files, "SMALL_FILE_BYTES", -1)


def limited(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    allowed = {"cpu_seconds": 20, "seconds": 60, "memory_mb": 512, "output_bytes": 10**8, "queue_seconds": 60, **limits}
    pool = ProcessPool("chat.transfer.reading.child", Limits(**allowed), size=1)  # type: ignore[arg-type]
    monkeypatch.setattr(import_files, "_processes", pool)


@pytest.mark.usefixtures("in_a_process")
def test_a_large_file_comes_in_as_a_small_one_does(ana: User) -> None:
    """A large file is imported from memory or disk, and its skipped parts use no memory."""
    both = [samples.chatgpt(), {**samples.claude(), "x": [{}] * 200_000}]
    with tempfile.NamedTemporaryFile() as file:
        file.write(json.dumps(both).encode())
        file.flush()
        made = import_file(owner=ana, file=file).imported
    assert [(each.session.title, each.messages) for each in made] == [("Trip to Kyoto", 4), ("Naming a café", 5)]
    assert Attachment.objects.get(session=made[1].session).name == "brief.txt"
    assert [each.title for each in list_conversations(file_of(both[:1])).conversations] == ["Trip to Kyoto"]


def test_a_file_that_takes_all_memory_is_refused(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-15: a file whose parsing needs too much memory is refused, and the server's own memory is not used for it."""
    limited(monkeypatch, memory_mb=100)
    hostile = io.BytesIO(b'{"mapping":{"a":[' + b"{}," * 1_000_000 + b"{}]}}")
    assert code_of(hostile, ana) == "too_large"
    assert not Session.objects.exists()


def test_a_file_that_takes_too_long_is_refused(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-12: a file is refused after the time limit, however long it would take."""
    limited(monkeypatch, cpu_seconds=0.2)
    slow = io.BytesIO(b'{"x":[' + b"{}," * 2_000_000 + b'{}],"mapping":{}}')
    assert code_of(slow, ana) == "too_large"


def test_an_archive_of_millions_of_files_is_refused_unread(ana: User) -> None:
    """An archive of millions of files is refused before reading, because its directory would take gigabytes."""
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 90_000_000, 0, 0)
    assert code_of(io.BytesIO(b"PK\x03\x04" + end), ana) == "too_large"


def test_an_archive_that_unpacks_to_much_is_read_in_a_process(ana: User, settings: Any) -> None:
    settings.MAX_IMPORT_MB = 5
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([samples.chatgpt()]) + " " * 2_000_000)
    assert not import_files._is_small(packed)
    assert import_files._is_small(file_of([samples.chatgpt()]))


def test_texts_are_as_long_as_those_that_may_be_sent(ana: User, settings: Any) -> None:
    """MSG-12: an imported text can be as long as a message that is sent, and not longer."""
    settings.MAX_MESSAGE_CHARS = 20
    with pytest.raises(ServiceError, match="longer than 20 characters"):
        import_file(owner=ana, file=file_of(talk_of({"role": "user", "text": "x" * 21})))
    assert import_file(owner=ana, file=file_of(talk_of({"role": "user", "text": "x" * 20}))).imported


@pytest.mark.parametrize(("most", "seconds", "kept"), [(2, 60, 2), (200, -1, 0)])
def test_files_of_an_import_are_bounded(
    ana: User, monkeypatch: pytest.MonkeyPatch, most: int, seconds: float, kept: int
) -> None:
    """The files of an import are limited, because each may use a core for seconds. Omitted ones are reported."""
    monkeypatch.setattr(importing, "MAX_FILES", most)
    monkeypatch.setattr(importing, "MAX_SECONDS", seconds)
    message = {"role": "user", "attachments": [{"name": "a.png", "data": PICTURE}, {"name": "b.txt", "data": NOTE}]}
    talks = [talk_of(message, title="One"), talk_of(message, title="Two")]
    made = import_file(owner=ana, file=file_of(talks)).imported
    assert Attachment.objects.count() == kept
    assert [len(each.notes) for each in made] == ([0, 1] if kept else [1, 1])
    assert "were left out: an import can have up to" in made[1].notes[0]


def test_unusable_files_do_not_use_up_the_number_of_files(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files that are stored count for the limit."""
    monkeypatch.setattr(importing, "MAX_FILES", 2)
    noise = base64.b64encode(bytes(range(256))).decode()
    files = [{"name": f"{number}.bin", "data": noise} for number in range(5)]
    message = {"role": "user", "attachments": [*files, {"name": "a.png", "data": PICTURE}, {"name": "b", "data": NOTE}]}
    [made] = import_file(owner=ana, file=file_of(talk_of(message))).imported
    assert list(Attachment.objects.order_by("position").values_list("name", flat=True)) == ["a.png", "b"]
    assert [note.partition(":")[0] for note in made.notes] == ["5 files could not be used"]


def test_time_for_the_files_of_an_import_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit is for all files together; each of these takes 25 seconds by the clock."""
    clock = itertools.count(0, 25)
    monkeypatch.setattr(importing, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    reader = FileReader(User(pk=1))
    is_spent = []
    for _ in range(3):
        assert reader.read(b"Hi there") is not None
        is_spent.append(reader.is_spent)
    assert is_spent == [False, False, True]


@pytest.mark.parametrize("status", ["queued", "streaming"])
def test_removed_messages_need_no_note(ana: User, status: str) -> None:
    """MSG-11: removed messages are neither counted nor reported."""
    gone = {"role": "user", "text": "Gone", "status": status, "removed_at": "2026-01-01T00:00:00Z"}
    (made,) = import_file(owner=ana, file=file_of(talk_of({"role": "user", "text": "Hi"}, gone))).imported
    assert (made.notes, made.messages) == ([], 1)


def steps(talk: Json, owner: User, **options: Any) -> Iterator[tuple[SessionImport, bytes, bytes]]:
    """Yield each part of a conversation with the import that writes it."""
    parts = reading.conversations(file_of(talk), 10**8, None, 10**6, 10**6)
    head = reading.Head.model_validate_json(next(parts)[1:])
    workspace = owner.workspaces.get()
    made = SessionImport(
        head, owner=owner, workspace=workspace, files=FileReader(owner), is_own=False, keep_ids=True, **options
    )
    for part in parts:
        yield made, part[:1], part[1:]


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_import_commits_in_batches_and_shows_the_session_only_when_complete(
    ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-01: batches are separate transactions, and the last one makes the session visible."""
    monkeypatch.setattr(reading, "MAX_BYTES", 1)
    written = []
    for made, kind, body in steps(talk_of({"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Ho"}), ana):
        if kind != reading.END:
            made.add(kind, body)
        assert not connection.in_atomic_block
        assert not sessions_of(ana).exists()
        for session in Session.objects.all():
            with pytest.raises(NoSuchSession):
                deleted_session_for(ana, session.pk)
        written.append(ChatMessage.objects.count())
    assert written == [0, 0, 0, 1, 2, 2]  # ids come first
    made.finish()
    assert sessions_of(ana).get().run.state == "idle"


def test_what_a_crash_leaves_is_deleted_in_time(ana: User, tmp_path: Path) -> None:
    """Rows and files of an abandoned session are deleted, and those of a running import are not."""
    talk = talk_of({"role": "user", "text": "Hi", "attachments": [{"name": "a.png", "data": PICTURE}]})
    parts = steps({**talk, "changes": [], "requests": []}, ana)
    for made, kind, body in parts:
        if kind == reading.END:
            break
        made.add(kind, body)
    left = Session.objects.get()
    assert Attachment.objects.count() == 1
    assert not purging.purge(before=None)
    staff = User.objects.create_superuser("root")
    with pytest.raises(NoSuchSession):
        session_for_staff(staff, left.pk, needs_change=False)
    Session.objects.update(building_until=timezone.now())
    assert purging.purge(before=None)["sessions"] == 1
    assert not Session.objects.exists()
    assert not ChatMessage.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(NoSuchSession):  # a batch that is too late
        made.finish()


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_loser_of_the_same_ids_leaves_the_winner_s_session_alone(ana: User) -> None:
    """MSG-02: if two imports of the same file run in parallel, the second one does not delete the session of the
    first."""
    talk = talk_of({"role": "user", "text": "Hi"}, id="s_" + "1" * 24)
    first, second = list(steps(talk, ana)), list(steps(talk, ana))
    taken = 0
    for parts in zip(first, second, strict=True):
        for made, kind, body in parts:
            try:
                if kind != reading.END:
                    made.add(kind, body)
            except IdsTaken:
                taken += 1
                made.discard()
    assert taken
    assert first[0][0].finish().kept_ids
    assert Session.objects.get().pk == talk["session"]["id"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_leftovers_of_a_crash_give_their_ids_back(ana: User) -> None:
    """MSG-02: the next import of the same file uses the ids without waiting for the maintenance."""
    talk = talk_of({"role": "user", "text": "Hi"}, id="s_" + "1" * 24)
    for made, kind, body in steps(talk, ana):
        if kind != reading.END:
            made.add(kind, body)
    Session.objects.update(building_until=timezone.now())
    [again] = import_file(owner=ana, file=file_of(talk)).imported
    assert again.kept_ids
    assert Session.objects.get().pk == talk["session"]["id"]


@pytest.mark.both_databases
def test_ids_taken_by_a_concurrent_import_are_replaced_by_new_ones(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-02: if another import of the same file was faster, the session gets new ids."""
    talk = talk_of({"id": "m_" + "1" * 24, "role": "user", "text": "Hi"})
    import_file(owner=ana, file=file_of(talk))
    monkeypatch.setattr(importing, "_is_in_use", lambda ids: False)
    [made] = import_file(owner=ana, file=file_of(talk)).imported
    assert not made.kept_ids
    assert ChatMessage.objects.count() == 2
    assert not Session.objects.exclude(building_until=None).exists()


@pytest.mark.usefixtures("in_a_process")
@pytest.mark.parametrize("after", [0, 3])
def test_an_import_ends_when_its_client_goes(ana: User, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Sessions that were complete stay, and nothing else of the import does."""
    client, taken = Disconnect(), list[bytes]()
    add = SessionImport.add

    def goes(self: SessionImport, kind: bytes, body: bytes) -> None:
        taken.append(kind)
        add(self, kind, body)
        if len(taken) == after:
            client.set()

    monkeypatch.setattr(SessionImport, "add", goes)
    if not after:
        client.set()
    talk = talk_of({"role": "user", "text": "Hi"})
    if after:
        made = import_file(owner=ana, file=file_of([talk] * 3), client=client)
        assert (len(made.imported), made.problems) == (1, ["The import was cancelled."])
        assert Session.objects.count() == 1
    else:
        assert code_of(file_of(talk), ana, client=client) == "cancelled"
        assert not taken
