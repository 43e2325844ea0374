"""The archive with all data of one user, which is written piece by piece."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from contextlib import closing
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.base import ContentFile
from django.db import connection
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from chat import downloads
from chat.agents_setup import sandbox
from chat.models import Attachment, Session, Share, User
from chat.queries.attachments import data_of
from chat.services.messages.editing import edit
from chat.services.messages.suggestions import suggest
from chat.services.people import api_tokens
from chat.services.people.secrets import hash_token
from chat.services.people.sharing import invite, share
from chat.services.sessions import incomplete
from chat.services.sessions.actions import delete
from chat.services.sessions.lifecycle import create_session
from chat.services.sessions.user_state import save_draft
from chat.transfer.exporting.personal import ExportRunning, export_person
from chat.transfer.importing.files import import_file, list_conversations
from tests.support.filled import ANSWER, DONE, HI, START, fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]
COMMITTED = pytest.mark.django_db(transaction=True)  # the response is made in other threads
WORDS = "Words in the file"


def attach(session: Session, message: Any, user: User, data: bytes = WORDS.encode()) -> Attachment:
    file = Attachment(session=session, message=message, user=user, name="a.txt", kind="text", media_type="text/plain")
    file.size = len(data)
    file.file.save("a", ContentFile(data))
    return file


def archive_of(user: User) -> zipfile.ZipFile:
    made = zipfile.ZipFile(BytesIO(b"".join(export_person(user=user, author=user))))
    assert made.testzip() is None
    return made


def read(archive: zipfile.ZipFile, name: str) -> Any:
    return json.loads(archive.read(name))


@pytest.mark.sqlite
def test_session_that_cannot_be_read_is_named(ana: User) -> None:
    """A session with a value that another program has written is left out, with the reason. The rest is complete."""
    own, damaged = create_session(owner=ana, title="Plan"), create_session(owner=ana, title="Damaged")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chat_session SET title = CAST(x'e46b' AS TEXT) WHERE id = %s", [damaged.pk])
    archive = archive_of(ana)
    assert b"manage.py verify" in archive.read(f"unreadable-sessions/{damaged.pk}.txt")
    assert f"sessions/{own.pk} Plan/session.json" in archive.namelist()
    assert not any(name.startswith(f"sessions/{damaged.pk}") for name in archive.namelist())


def test_archive_has_everything_of_theirs(ana: User, bo: User, settings: Settings, tmp_path: Path) -> None:
    """The archive has the user's sessions with the files of agents, also deleted ones, and their own texts and files in
    sessions of others.

    It has neither other texts of those sessions nor secrets.
    """
    settings.WORKSPACES = str(tmp_path / "workspaces")
    own, gone = create_session(owner=ana, title="Plan: A/B"), create_session(owner=ana, title="Gone")
    report = sandbox(own.pk).workspace / "src" / "报告.csv"
    report.parent.mkdir(parents=True)
    report.write_text("a,b\n")
    rows = fill(own, START, {**HI, "user": ana}, ANSWER, DONE)
    file = attach(own, rows[1], ana)
    delete(user=ana, session_id=gone.pk)
    theirs, lost = create_session(owner=bo, title="Bo's"), create_session(owner=bo, title="Secret title")
    share(session=theirs, author=bo, user=ana, role="editor")
    said = fill(theirs, START, {**HI, "text": "Mine", "user": ana}, {**HI, "text": "His", "user": bo}, DONE)
    fill(lost, {**HI, "text": "Once", "user": ana})
    edit(session=theirs, author=ana, message_id=said[1].pk, text="Still mine")
    sent = attach(theirs, said[1], ana)
    save_draft(session=theirs, user=ana, text="Almost said")
    share(session=own, author=ana, user=bo, role="viewer")
    invite(session=own, author=ana, role="viewer")
    suggest(session=theirs, author=ana, message_id=said[2].pk, text="Better")
    _token, secret = api_tokens.create(user=ana, name="Script", scope="read", days=0)
    archive = archive_of(ana)
    folder = f"sessions/{own.pk} Plan A B"
    assert archive.namelist() == [
        "README.txt",
        "account.json",
        "drafts.json",
        "security-events.json",
        f"{folder}/session.json",
        f"{folder}/session.md",
        f"{folder}/files/{file.pk} a.txt",
        f"{folder}/session-files/src/报告.csv",
        f"deleted-sessions/{gone.pk} Gone/session.json",
        f"deleted-sessions/{gone.pk} Gone/session.md",
        "other-sessions/messages.json",
        "other-sessions/suggestions.json",
        f"other-sessions/files/{sent.pk} a.txt",
    ]
    assert archive.read(f"{folder}/files/{file.pk} a.txt") == WORDS.encode()
    assert archive.read(f"{folder}/session-files/src/报告.csv") == b"a,b\n"
    exported = [
        (each["session"], each["title"], each["text"]) for each in read(archive, "other-sessions/messages.json")
    ]
    assert sorted(exported) == sorted([(theirs.pk, "Bo's", "Still mine"), (lost.pk, None, "Once")])
    suggested = read(archive, "other-sessions/suggestions.json")
    assert [(each["message"], each["text"]) for each in suggested] == [(said[2].pk, "Better")]
    events = read(archive, "security-events.json")
    assert {"what": "token_made", "by_me": True} in [
        {name: each[name] for name in ("what", "by_me")} for each in events
    ]
    account = read(archive, "account.json")
    assert (account["username"], [token["name"] for token in account["api_tokens"]]) == ("ana", ["Script"])
    assert [each["title"] for each in account["shared_with_me"]] == ["Bo's"]
    assert [each["with"] for each in account["shared_by_me"]] == ["Bo"]
    assert len(account["invitations"]) == 1
    assert [each["draft"] for each in read(archive, "drafts.json")] == ["Almost said"]
    everything = b"".join(map(archive.read, archive.namelist())).decode()
    for word in (secret, ana.password, hash_token(secret), "His", "Secret title"):
        assert word not in everything


def test_summaries_of_sessions_of_others_are_left_out(ana: User, bo: User) -> None:
    """CTX-07: a summary that a user requested repeats what others have written, as they may have edited it since."""
    theirs = create_session(owner=bo)
    share(session=theirs, author=bo, user=ana, role="editor")
    summary = {"role": "system", "text": "Bo wants tea.", "sender": "Ana", "user": ana, "summarises": 2}
    fill(theirs, {**HI, "user": bo}, ANSWER, summary, {**HI, "text": "Mine", "user": ana})
    assert [each["text"] for each in read(archive_of(ana), "other-sessions/messages.json")] == ["Mine"]


def test_sessions_of_the_archive_come_in_again(ana: User) -> None:
    """The sessions of an archive can be imported with their files."""
    own = create_session(owner=ana, title="Plan")
    attach(own, fill(own, START, {**HI, "user": ana}, DONE)[1], ana)
    archive = archive_of(ana)
    content = archive.read(f"sessions/{own.pk} Plan/session.json")
    made = import_file(owner=ana, file=BytesIO(content), keep_ids=False).imported[0]
    assert made.notes == []
    assert data_of(Attachment.objects.get(session=made.session)) == WORDS.encode()


def test_sessions_of_the_whole_archive_are_listed_whatever_their_files_are(
    ana: User, settings: Settings, tmp_path: Path
) -> None:
    """MSG-10: files of users and agents in the archive are not taken for conversations, and do not hide the sessions.

    Deleted sessions are left out, so importing everything restores none of them.
    """
    settings.WORKSPACES = str(tmp_path / "workspaces")
    own, gone = create_session(owner=ana, title="Plan"), create_session(owner=ana, title="Gone")
    folder = sandbox(own.pk).workspace
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "report.zip", "w") as report:
        report.writestr("report.txt", "Text")
        report.writestr("sessions/s_1 Other/session.json", '{"format": "parley.session"}')
    (folder / "conversations.json").write_text('[{"title": "Not ours", "mapping": {}}]')
    (folder / "damaged.json").write_text("{")
    (folder / "damaged.zip").write_text("PK")
    delete(user=ana, session_id=gone.pk)
    packed = BytesIO(b"".join(export_person(user=ana, author=ana)))
    again = BytesIO()  # the folder of the unpacked archive, packed again
    with zipfile.ZipFile(packed) as archive, zipfile.ZipFile(again, "w") as copy:
        for name in archive.namelist():
            copy.writestr(f"export/{name}", archive.read(name))
    for file in (packed, again):
        found = list_conversations(file)
        assert ([each.title for each in found.conversations], found.problems) == (["Plan"], [])


def test_memory_is_bounded(ana: User) -> None:
    """Only a part of one file or session is in memory at a time, however large it is."""
    own = create_session(owner=ana, title="Plan")
    random = Random(1)  # random bytes, which do not compress
    rows = fill(own, *({**HI, "user": ana, "text": random.randbytes(200_000).hex()} for _ in range(10)))
    attach(own, rows[1], ana, data=random.randbytes(12_000_000))
    pieces = export_person(user=ana, author=ana)
    tracemalloc.start()
    try:
        largest = max(map(len, pieces))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert largest < 2_000_000
    assert peak < 12_000_000


def begun(user: User) -> closing[Any]:
    """Begin an export, read its first bytes, and break it off when the context ends."""
    pieces = export_person(user=user, author=user)
    next(pieces)
    return closing(pieces)


def test_one_at_a_time(ana: User, bo: User) -> None:
    """A user has one export at a time. An export that breaks off frees the slot."""
    with begun(ana), begun(bo), pytest.raises(ExportRunning):
        export_person(user=ana, author=ana)
    with begun(ana):
        pass
    export_person(user=ana, author=ana).close()  # as if the client left before it has read anything
    with begun(ana):
        pass


def test_unfinished_copies_are_left_out(ana: User) -> None:
    """RUN-13: unfinished forks are left out, because no one can see them."""
    made = create_session(owner=ana)
    Session.objects.filter(pk=made.pk).update(**incomplete.new_columns())
    assert not [name for name in archive_of(ana).namelist() if "session.json" in name]


@COMMITTED
@pytest.mark.parametrize("way", ["page", "api"])
async def test_archive_is_streamed(ana: User, way: str) -> None:
    """The settings and the API stream the archive. A second export at the same time is refused with a message."""
    client = AsyncClient()
    await client.aforce_login(ana)

    async def ask() -> Any:
        return await (client.post("/settings/export") if way == "page" else client.get("/api/me/export"))

    answer = await ask()
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Disposition"] == 'attachment; filename="Parley ana.zip"'
    refused = await ask()
    assert refused.status_code == 409
    assert b"Your export is already being created." in refused.content
    content = b"".join([piece async for piece in answer.streaming_content])
    assert "account.json" in zipfile.ZipFile(BytesIO(content)).namelist()
    again = await ask()
    assert again.status_code == 200
    await sync_to_async(again.close)()


@COMMITTED
@pytest.mark.parametrize("way", ["page", "api", "token"])
async def test_archive_ends_with_the_account(ana: User, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """LIVE-06: an export is cut off when its user is deactivated or its token revoked, and the next export can
    begin."""
    monkeypatch.setattr(downloads, "RECHECKED", 0.0)
    client = AsyncClient()
    token, secret = await sync_to_async(api_tokens.create)(user=ana, name="Script", scope="read", days=0)
    headers = {"Authorization": f"Bearer {secret}"} if way == "token" else {}
    if way != "token":
        await client.aforce_login(ana)

    async def ask() -> Any:
        if way == "page":
            return await client.post("/settings/export")
        return await client.get("/api/me/export", headers=headers)

    answer = await ask()
    if way == "token":
        await sync_to_async(api_tokens.revoke)(user=ana, token_id=token.pk)
    else:
        await sync_to_async(User.objects.filter(pk=ana.pk).update)(is_active=False)
    with pytest.raises(downloads.CutOffError):
        _content = [piece async for piece in answer.streaming_content]

    def again() -> None:
        with begun(ana):
            pass

    await sync_to_async(again)()


def test_export_needs_a_post(ana: User, client: Client) -> None:
    """The export needs a POST, so that a link on another site cannot start it."""
    client.force_login(ana)
    assert client.get("/settings/export").status_code == 405
    assert not Share.objects.exists()
