"""Exporting and importing on the pages."""

from __future__ import annotations

import json
import zlib
from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, Client

from chat.downloads import file_name
from chat.models import Session, User, Workspace
from chat.services.sessions.lifecycle import create_session
from tests.support import filled
from tests.support.testing_node import person
from tests.transfer import samples
from tests.transfer.conftest import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(client: Client, ana: User) -> Client:
    client.force_login(ana)
    return client


def send(site: Client, value: object, **form: Any) -> Any:
    file = SimpleUploadedFile("conversations.json", json.dumps(value).encode(), "application/json")
    return site.post("/import/file", {"file": file, **form}, headers={"Accept": "application/json"})


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Plan", "Plan.md"),
        ("会议: plan/v2 “A”", "会议 plan v2 “A”.md"),
        ("..", "s_1.md"),
        ("", "s_1.md"),
        ("a\u202egnp.exe", "agnp.exe.md"),
        ("x" * 200, "x" * 80 + ".md"),
    ],
)
def test_files_are_named_after_the_session(title: str, name: str) -> None:
    """MSG-12: file names can be in any script, without misleading characters and those that some systems refuse."""
    assert file_name(title, "s_1", "md") == name


def test_download_has_its_name_and_no_cache(talk: Session, site: Client) -> None:
    """The file name follows RFC 6266, here in Chinese, and the download is not cached."""
    answer = site.get(f"/sessions/{talk.pk}/export", {"format": "json"})
    assert answer["Content-Disposition"].startswith("attachment; filename*=utf-8''%E4%BC%9A%E8%AE%AE%20plan%20v2")
    assert {"private", "no-store"} <= {part.strip() for part in answer["Cache-Control"].split(",")}
    assert json.loads(answer.getvalue())["session"]["id"] == talk.pk


async def test_download_is_streamed_off_the_event_loop(transactional_db: None, own_files: None) -> None:
    """The rows are read in threads while the download is sent."""
    ana = await sync_to_async(lambda: person("Ana", Workspace.objects.create(name="Team")))()
    talk = await sync_to_async(fill)(ana)
    client = AsyncClient()
    await client.aforce_login(ana)
    answer: Any = await client.get(f"/sessions/{talk.pk}/export", {"format": "markdown"})
    text = b"".join([piece async for piece in answer.streaming_content]).decode()
    assert text.startswith("# 会议")
    assert text.endswith("And 8?\n")


async def test_compressed_export_is_one_stream(transactional_db: None, own_files: None) -> None:
    """Browsers read only the first of several gzip streams in a response, so the rest of the export would be lost."""
    ana = await sync_to_async(lambda: person("Ana", Workspace.objects.create(name="Team")))()
    talk = await sync_to_async(create_session)(owner=ana)
    random = Random(1)  # texts that do not compress, so that the export is sent in several pieces
    texts = [random.randbytes(200_000).hex() for _ in range(10)]
    await sync_to_async(filled.fill)(talk, *({**filled.HI, "user": ana, "text": text} for text in texts))
    client = AsyncClient()
    await client.aforce_login(ana)

    address = f"/sessions/{talk.pk}/export"
    answer: Any = await client.get(address, {"format": "markdown"}, headers={"Accept-Encoding": "gzip"})

    assert (answer["Content-Encoding"], "X-Accel-Buffering" in answer) == ("gzip", False)
    pieces = [piece async for piece in answer.streaming_content]
    assert len(pieces) > 1
    unpacker = zlib.decompressobj(wbits=31)
    content = unpacker.decompress(b"".join(pieces)).decode()
    assert (unpacker.eof, unpacker.unused_data) == (True, b"")
    assert all(text in content for text in texts)


def test_dialogs_show_the_export_formats_and_the_import_limit(talk: Session, site: Client, settings: Any) -> None:
    """The export dialog lists what can be exported (UI-11)."""
    settings.MAX_IMPORT_MB = 7
    export = site.get(f"/sessions/{talk.pk}/export").content.decode()
    assert "?format=json" in export
    assert "?format=markdown" in export
    assert "7 MB max" in site.get("/import").content.decode()


def test_one_conversation_comes_in_at_once(site: Client) -> None:
    """A file with a single conversation is imported without a choice."""
    answer = send(site, [samples.chatgpt()])
    [made] = answer.json()["sessions"]
    assert (answer.status_code, made["title"], made["facts"]) == (201, "Trip to Kyoto", "4 messages")
    assert site.get(made["address"]).status_code == 200


def test_several_are_chosen_from(own_files: None, site: Client) -> None:
    """The list describes each conversation, and the chosen ones are imported."""
    both = [samples.chatgpt(), samples.claude("")]
    answer = send(site, both).json()
    listed = answer["conversations"]
    assert [(each["index"], each["title"], each["facts"]) for each in listed] == [
        (0, "Trip to Kyoto", "ChatGPT · 4 messages"),
        (1, "Find a name.", "Claude · 5 messages"),
    ]
    assert not Session.objects.exists()
    form = {"upload": answer["upload"], "conversation": ["0", "1"]}
    made = site.post("/import/file", form, headers={"Accept": "application/json"})
    assert [each["title"] for each in made.json()["sessions"]] == ["Trip to Kyoto", "Find a name."]
    gone = site.post("/import/file", {"upload": "0" * 24}, headers={"Accept": "application/json"})
    assert (gone.status_code, gone.json()["code"]) == (404, "no_such_import")


@pytest.mark.parametrize(
    ("form", "code"), [({"conversation": "x"}, "invalid"), ({"conversation": "7"}, "nothing_known")]
)
def test_odd_choices_are_refused(site: Client, form: dict[str, str], code: str) -> None:
    """Unknown export options are refused (MSG-12)."""
    answer = send(site, [samples.chatgpt(), samples.chatgpt()], **form)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_too_large_a_form_is_refused_unread(site: Client, settings: Any) -> None:
    settings.MAX_IMPORT_MB = 0
    answer = send(site, {"a": "x" * 100_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_title_that_is_there_already_is_marked(site: Client, ana: User) -> None:
    """The list distinguishes an imported session from the original, and the panel shows the time of the import."""
    for _ in range(3):
        assert send(site, [samples.chatgpt("Plan")]).status_code == 201
    titles = list(Session.objects.filter(owner=ana).order_by("created_at", "pk").values_list("title", flat=True))
    assert sorted(titles) == ["Plan", "Plan (imported)", "Plan (imported)"]
    page = site.get(f"/sessions/{Session.objects.filter(owner=ana)[0].pk}/panel").content.decode()
    assert "Imported on <time" in page
    assert " from a file" in page
