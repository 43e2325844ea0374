"""Exports of other programs that are damaged or malicious."""

from __future__ import annotations

import base64
import copy
import io
import json
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.messages import Json
from chat.errors import ServiceError
from chat.models import Attachment, ChatMessage, Session, User
from chat.services.runs.attempts import attempts_of, restore_attempt
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session
from chat.transfer.importing import files as import_files
from chat.transfer.importing.files import import_file, list_conversations
from chat.transfer.reading import conversations as reading
from tests.support.effort import cases
from tests.support.files import picture
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.rest import check_rest
from tests.transfer import archives, samples
from tests.transfer.conftest import document
from tests.transfer.test_foreign import file_of
from tests.transfer.test_strangers import spoil

pytestmark = pytest.mark.usefixtures("own_files")
EXPORTS = {
    "chatgpt": samples.chatgpt(),
    "claude": samples.claude(),
    "open_webui": archives.open_webui(),
    "librechat": archives.librechat(recursive=False),
    "librechat_tree": archives.librechat(recursive=True),
}


def open_webui_saying(text: str) -> Json:
    messages = {"a": {"role": "assistant", "content": text, "parentId": None}}
    return {"title": "x", "chat": {"history": {"currentId": "a", "messages": messages}}}


@pytest.mark.parametrize("name", EXPORTS)
@settings(max_examples=cases(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.both_databases
def test_whatever_is_changed_in_an_export_it_is_taken_or_refused(name: str, ana: User, data: st.DataObject) -> None:
    """MSG-10, MSG-12, CTX-03: an export with some values replaced is imported or refused, and a refused import leaves
    nothing."""
    made = copy.deepcopy(EXPORTS[name])
    for _change in range(data.draw(st.integers(1, 4))):
        spoil(made, data)
    before = Session.objects.count()
    come: list[Session] = []
    with suppress(ServiceError):
        come = [each.session for each in import_file(owner=ana, file=file_of(made)).imported]
    assert Session.objects.count() == before + len(come)
    for session in come:
        check_rest(session)
        document(session)


@pytest.mark.parametrize("count", [800])
def test_long_conversation_in_a_tree_is_read(ana: User, count: int) -> None:
    """MSG-10: LibreChat nests each message in its predecessor, so a long conversation is a deep value.

    It is imported.
    """
    said = [
        {"messageId": f"m{place}", "isCreatedByUser": place % 2 == 0, "text": f"Text {place}", "children": []}
        for place in range(count)
    ]
    nested = "".join(json.dumps(each)[:-2] for each in said) + "]}" * count
    whole = f'{{"conversationId":"1","title":"Long","recursive":true,"messagesTree":[{nested}]}}'
    [made] = import_file(owner=ana, file=io.BytesIO(whole.encode())).imported
    rows = ChatMessage.objects.filter(session=made.session, type="text").order_by("sequence")
    assert [row.text for row in rows] == [each["text"] for each in said]


def test_names_in_an_archive_are_no_paths(ana: User) -> None:
    """CTX-01: names of entries are never used as paths: the bytes are stored under Parley's own names or not at all."""
    names = ["../../file-cat1-cat.png", "/etc/file-note-note.txt", "..\\file-plot"]
    archive = repacked({name: picture() for name in names}, keep=["conversations.json"])
    before = files_outside_the_store()
    [made] = import_file(owner=ana, file=archive).imported
    stored = {Path(each.file.path) for each in Attachment.objects.filter(session=made.session)}
    assert len(stored) >= 1
    assert all(Path(django_settings.MEDIA_ROOT).resolve() in path.resolve().parents for path in stored)
    assert files_outside_the_store() == before


def test_link_in_an_archive_is_not_followed(ana: User, tmp_path: Path) -> None:
    """CTX-01: a link to a file of the server becomes a file with that path as its text."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the server's")
    link = zipfile.ZipInfo("file-note-note.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = repacked({link: str(secret)}, keep=["conversations.json", "file-cat1-cat.png"])
    [made] = import_file(owner=ana, file=archive).imported
    texts = [Path(each.file.path).read_text() for each in Attachment.objects.filter(session=made.session, kind="text")]
    assert texts == [str(secret)]


def test_file_that_is_not_what_it_is_called_is_not_a_picture(ana: User) -> None:
    """CTX-01: the bytes decide the type of a file, so HTML that is declared as a picture is not served as one."""
    archive = repacked({"file-cat1-cat.png": b"<script>alert(1)</script>"}, keep=["conversations.json"])
    [made] = import_file(owner=ana, file=archive).imported
    assert not Attachment.objects.filter(session=made.session, kind="image").exists()


def test_damaged_and_encrypted_files_are_named_as_missing(ana: User) -> None:
    """CTX-01: the conversation is imported without the files that cannot be read."""
    whole = archives.chatgpt_archive().getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        entry = archive.getinfo("file-cat1-cat.png")
    damaged = bytearray(whole)
    first = entry.header_offset + 30 + len(entry.filename)
    damaged[first : first + 20] = b"\xff" * 20
    encrypted = bytearray(whole)
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = encrypted.find(b"file-cat1-cat.png")
        at = encrypted.rfind(signature, 0, at) if signature == b"PK\x03\x04" else directory_of(encrypted)
        encrypted[at + place] |= 1
    for data in (damaged, encrypted):
        [made] = import_file(owner=ana, file=io.BytesIO(bytes(data)), keep_ids=False).imported
        assert not Attachment.objects.filter(session=made.session, name="cat.png").exists()
        assert "1 file could not be used: cat.png." in made.notes


def test_archives_in_archives_end(settings: Any) -> None:
    """MSG-12: nested archives are unpacked to a limited depth, and together up to the limit of the size."""
    settings.MAX_IMPORT_MB = 2
    inner = archives.packed({"conversations.json": b" " * 1_500_000}).getvalue()
    bomb = archives.packed({f"{number}.zip": inner for number in range(4)})
    assert refusal_of(bomb) == "too_large"
    deep = archives.chatgpt_archive()
    for _level in range(6):
        deep = archives.packed({"inner.zip": deep.getvalue()})
    assert refusal_of(deep) == "nothing_known"


def test_entries_with_one_name_are_read_once() -> None:
    """MSG-12: entries with the same name are read once, because each read would unpack the last of them, which may be
    large."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("conversations.json", json.dumps([samples.chatgpt("One")]))
        for title in ("Two", "Three"):
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr("conversations.json", json.dumps([samples.chatgpt(title)]))
    assert [each.title for each in list_conversations(made).conversations] == ["Three"]


@pytest.mark.parametrize(
    "hostile",
    [
        b'[["' + b'\\"' * 120_000,
        b'{"mapping": {"a": "' + b'\\"' * 120_000,
        json.dumps(open_webui_saying('<details type="reasoning" ' + "a" * 200_000 + ">Hm</details>")).encode(),
        json.dumps(open_webui_saying('<details type="reasoning" id="' * 8_000)).encode(),
    ],
    ids=["string without an end", "key without an end", "long attribute", "attributes without an end"],
)
def test_small_file_does_not_hold_the_server(hostile: bytes) -> None:
    """MSG-12: small files are parsed while requests are served, so no pattern may search them repeatedly.

    With such a pattern each of these files takes minutes of CPU.
    """
    started = thread_time()
    with suppress(ServiceError):
        list_conversations(io.BytesIO(hostile))
    assert thread_time() - started < 5


@pytest.mark.parametrize("is_plain", [True, False])
def test_dear_ways_of_packing_are_read_in_a_process(monkeypatch: pytest.MonkeyPatch, is_plain: bool) -> None:
    """MSG-12: a small entry may declare a dictionary of gigabytes, so such formats are read in a process."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED if is_plain else zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", json.dumps([samples.chatgpt("Trip")]))
    if is_plain:
        monkeypatch.setattr(import_files, "_processes", None)  # not used
    else:
        monkeypatch.setattr(reading, "outlines", None)
    assert [each.title for each in list_conversations(made).conversations] == ["Trip"]


@pytest.mark.parametrize("damage", ["no end", "no record", "crossing"])
def test_damaged_attempt_does_no_harm(ana: User, damage: str) -> None:
    """RUN-12, CTX-03: an attempt without the end of its turn gets one. Messages of an attempt without a record become
    ordinary removed messages."""
    session = create_session(owner=ana)
    rows = fill(session, START, HI, {**ANSWER, "response_id": "r_1"}, DONE, START, HI, DONE)
    retry(session=session, author=ana, message_id=rows[2].pk)
    written = document(session)
    of_attempt = [each for each in written["messages"] if each.get("attempt")]
    match damage:
        case "no end":
            written["messages"].remove(of_attempt[-1])
        case "no record":
            of_attempt[0]["revisions"] = []
        case "crossing":
            of_attempt[1]["type"] = "turn_start"
    [made] = import_file(owner=ana, file=file_of(written), keep_ids=False).imported
    attempts = attempts_of(made.session)
    assert len(attempts) == (damage != "no record")
    for attempt in attempts:
        restore_attempt(session=made.session, author=ana, attempt=attempt.id)
    check_rest(made.session)
    kept = ChatMessage.objects.filter(session=made.session, type="text")
    assert kept.count() == len([each for each in written["messages"] if each.get("type", "text") == "text"])


def test_pictures_in_a_question_of_librechat_come_along(ana: User) -> None:
    """CTX-01, MSG-10: pictures with bytes in the export are imported. Others are counted and named in their places."""
    data = base64.b64encode(picture()).decode()
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image_file", "image_file": {"file_id": "f1"}},
        {"type": "hologram"},
    ]
    said = {"messageId": "a", "isCreatedByUser": True, "text": "", "content": parts}
    [made] = import_file(owner=ana, file=file_of({"conversationId": "1", "messages": [said]})).imported
    row = ChatMessage.objects.get(session=made.session, role="user")
    assert row.text == "What is it?\n\n[Image: not in the export]"
    assert [each.kind for each in row.attachments.all()] == ["image"]
    assert len(made.notes) == 2


def refusal_of(file: io.BytesIO) -> str:
    with pytest.raises(ServiceError) as refused:
        list_conversations(file)
    return refused.value.code


def repacked(changed: dict[Any, Any], keep: list[str]) -> io.BytesIO:
    """Return the sample archive with some of its files and with others."""
    made = io.BytesIO()
    with zipfile.ZipFile(archives.chatgpt_archive()) as known, zipfile.ZipFile(made, "w") as archive:
        for name in keep:
            archive.writestr(name, known.read(name))
        for name, data in changed.items():
            archive.writestr(name, data)
    return made


def directory_of(data: bytearray) -> int:
    """Return the position of the picture's entry in the archive's directory."""
    name = data.rfind(b"file-cat1-cat.png")
    return data.rfind(b"PK\x01\x02", 0, name)


def files_outside_the_store() -> set[Path]:
    store = Path(django_settings.MEDIA_ROOT)
    return {path for path in store.parent.rglob("*") if path.is_file() and store not in path.parents}
