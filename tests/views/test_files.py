"""Files of a session's workspace: in the panel's tab, as downloads, and over the API."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat import downloads
from chat.agents_setup import sandbox
from chat.models import FORKED_FILES, ChatMessage, Session, Share, User
from chat.services.people import api_tokens
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def folder(settings: Settings, tmp_path: Path, session: Session) -> Path:
    settings.WORKSPACES = str(tmp_path / "workspaces")
    made = sandbox(session.pk).workspace
    (made / "src").mkdir(parents=True)
    (made / "src" / "main.py").write_text("def f():\n    return '<b>'\n")
    (made / "数据 1.csv").write_text('name,"a,b"\nx,<i>\n')
    (made / "picture").write_bytes(PNG)
    (made / "page.html").write_text("<script>alert(1)</script>")
    (made / "blob").write_bytes(b"a\0b")
    return made


@pytest.fixture
def ana_s(client: Client, ana: User) -> Client:
    client.force_login(ana)
    return client


def get(client: Client, session: Session, name: str = "session-files", **query: str) -> Any:
    return client.get(reverse(name, args=[session.pk]), query)


def text(response: Any) -> str:
    assert response.status_code == 200
    return str(response.content.decode())


def body(response: Any) -> bytes:
    return b"".join(response)


def test_a_folder_shows_what_is_in_it(ana_s: Client, session: Session, folder: Path) -> None:
    """UI-10: folders can be opened, files have their size, and all can be downloaded."""
    page = text(get(ana_s, session))
    assert 'data-path="src"' in page
    assert "数据 1.csv" in page
    assert 'files/content?path=%E6%95%B0%E6%8D%AE%201.csv"' in page
    assert "files/archive" in page
    assert 'data-path="src/main.py"' in text(get(ana_s, session, path="src"))


def test_an_empty_folder_for_attachments_is_not_shown(ana_s: Client, session: Session, folder: Path) -> None:
    """UI-10: each command makes the folder, also in a session without attachments."""
    (folder / "attachments").mkdir()
    assert 'data-path="attachments"' not in text(get(ana_s, session))
    (folder / "attachments" / "a.txt").touch()
    assert 'data-path="attachments"' in text(get(ana_s, session))


def test_an_unused_workspace_is_empty(ana_s: Client, session: Session, settings: Settings, tmp_path: Path) -> None:
    settings.WORKSPACES = str(tmp_path / "none")
    answer = get(ana_s, session)
    assert "No files yet" in text(answer)
    assert b"files-path" not in answer.content
    assert not (tmp_path / "none").exists()
    assert zipfile.ZipFile(io.BytesIO(body(get(ana_s, session, "session-files-archive")))).namelist() == []


def test_the_export_dialog_offers_the_files(ana_s: Client, session: Session, folder: Path) -> None:
    """The dialog offers the workspace's files as an archive, and does not list them as part of the JSON export."""
    page = text(get(ana_s, session, "session-export"))
    assert f'href="{reverse("session-files-archive", args=[session.pk])}"' in page
    assert "Messages, attachments, edits and deleted messages" in page


def test_the_export_dialog_of_a_session_without_files(
    ana_s: Client, session: Session, settings: Settings, tmp_path: Path
) -> None:
    settings.WORKSPACES = str(tmp_path / "none")
    assert "files/archive" not in text(get(ana_s, session, "session-export"))


def test_text_is_highlighted_and_escaped(ana_s: Client, session: Session, folder: Path) -> None:
    page = text(get(ana_s, session, path="src/main.py"))
    assert "<span" in page.split("data-copy>")[1]
    assert "&lt;b&gt;" in page
    assert "<script>alert" not in text(get(ana_s, session, path="page.html"))


def test_tables_and_images_have_a_preview_and_other_binary_files_have_none(
    ana_s: Client, session: Session, folder: Path
) -> None:
    page = text(get(ana_s, session, path="数据 1.csv"))
    assert '<th scope="col" dir="auto">a,b</th>' in page
    assert '<td dir="auto">&lt;i&gt;</td>' in page
    assert "<img" in text(get(ana_s, session, path="picture"))
    assert "be previewed" in text(get(ana_s, session, path="blob"))


def test_a_huge_file_is_shown_in_part(ana_s: Client, session: Session, folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.write(b"line\n" * 100_000)
        file.truncate(400_000_000)
    page = text(get(ana_s, session, path="huge"))
    assert "only the beginning" in page
    assert len(page) < 1_000_000


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("session-file", {"path": "page.html"}),
        ("session-file", {"path": "picture", "show": "1"}),
        ("session-files-archive", {}),
    ],
)
def test_binary_downloads_are_not_buffered(
    ana_s: Client, session: Session, folder: Path, name: str, query: dict[str, str]
) -> None:
    """nginx stores at most 1 GB of a response, then stops reading, and Parley ends responses that no one reads."""
    (folder / "page.html").write_text("a" * 1000)
    response = ana_s.get(reverse(name, args=[session.pk]), query, headers={"Accept-Encoding": "gzip"})
    assert (response["X-Accel-Buffering"], "Content-Encoding" in response) == ("no", False)
    size = response.get("Content-Length", "")
    assert size == ("" if name == "session-files-archive" else str(len(body(response))))


def test_only_images_and_pdf_open_in_the_browser(ana_s: Client, session: Session, folder: Path) -> None:
    """LIVE-06: other files are downloaded, so that nothing that a command has written runs in Parley's origin."""
    shown = get(ana_s, session, "session-file", path="picture", show="1")
    assert (shown["Content-Type"], shown["Content-Disposition"].partition(";")[0]) == ("image/png", "inline")
    assert body(shown) == PNG
    page = get(ana_s, session, "session-file", path="page.html", show="1")
    assert body(page) == b"<script>alert(1)</script>"
    assert page["Content-Type"] == "application/octet-stream"
    assert page["Content-Disposition"].startswith("attachment")
    assert page["Content-Security-Policy"].startswith("sandbox")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "link", "pipe", "src", "nothing", "", "a\0", "link-out/x"])
def test_what_is_no_file_of_the_workspace_is_not_found(
    ana_s: Client, session: Session, folder: Path, path: str
) -> None:
    """LIVE-06: no path, link or pipe leads outside of the workspace or blocks."""
    (folder.parent / "x").write_text("other")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "link-out").symlink_to("..")
    os.mkfifo(folder / "pipe")
    assert get(ana_s, session, "session-file", path=path).status_code == 404
    answer = ana_s.get(f"/api/sessions/{session.pk}/workspace/file", {"path": path})
    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_file")
    if path not in ("src", ""):
        assert "no longer there" in text(get(ana_s, session, path=path))
        assert get(ana_s, session, "session-files-archive", path=path).status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "/sessions/{id}/files/archive",
        "/api/sessions/{id}/workspace/archive",
        "/sessions/{id}/export?format=markdown",
        "/api/sessions/{id}/export",
    ],
)
def test_download_ends_for_someone_who_loses_access(
    client: Client, session: Session, folder: Path, bo: User, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """LIVE-06: a slow client that loses access gets no later data, and its download breaks off."""
    let_in(session, bo, "viewer")
    fill(session, START, HI, *[{**ANSWER, "text": "long " * 200_000} for _ in range(5)], DONE)
    for place in range(5):
        (folder / f"noise {place}").write_bytes(os.urandom(300_000))
    monkeypatch.setattr(downloads, "RECHECKED", 0.0)
    client.force_login(bo)
    response = client.get(address.format(id=session.pk))
    pieces, more = iter(response), list[bytes]()
    assert next(pieces)
    (folder / "src" / "late.py").write_text("not for Bo")
    ChatMessage.objects.filter(session=session, type="text", role="assistant").update(text="not for Bo")
    Share.objects.filter(user=bo).delete()
    with pytest.raises(downloads.CutOffError):
        more.extend(pieces)
    assert b"not for Bo" not in b"".join(more)


@pytest.mark.parametrize("address", ["/api/sessions/{id}/workspace/archive", "/api/sessions/{id}/export"])
def test_download_ends_with_its_token(
    client: Client, session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """LIVE-06: a slow download breaks off when its token is revoked."""
    fill(session, START, HI, *[{**ANSWER, "text": "long " * 200_000} for _ in range(5)], DONE)
    for place in range(5):
        (folder / f"noise {place}").write_bytes(os.urandom(300_000))
    monkeypatch.setattr(downloads, "RECHECKED", 0.0)
    token, secret = api_tokens.create(user=ana, name="Script", scope="read", days=0)
    response = client.get(address.format(id=session.pk), headers={"Authorization": f"Bearer {secret}"})
    pieces = iter(response)
    assert [len(next(pieces)) > 0 for _ in range(2)] == [True, True]
    api_tokens.revoke(user=ana, token_id=token.pk)
    with pytest.raises(downloads.CutOffError):
        list(pieces)


def test_an_archive_has_all_files_of_a_folder(ana_s: Client, session: Session, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    whole = zipfile.ZipFile(io.BytesIO(body(get(ana_s, session, "session-files-archive"))))
    assert set(whole.namelist()) == {"src/main.py", "数据 1.csv", "picture", "page.html", "blob"}
    assert whole.read("picture") == PNG
    answer = ana_s.get(f"/api/sessions/{session.pk}/workspace/archive", {"path": "src"})
    assert 'filename="src.zip"' in answer["Content-Disposition"]
    assert zipfile.ZipFile(io.BytesIO(body(answer))).namelist() == ["main.py"]


def test_archives_count_as_exports(ana_s: Client, session: Session, folder: Path, settings: Settings) -> None:
    """An archive of a large folder uses a core for many seconds, on the page and by the API."""
    settings.LIMITS = "exports=2/minute"
    address = f"/api/sessions/{session.pk}/workspace/archive"
    assert body(get(ana_s, session, "session-files-archive"))
    assert body(ana_s.get(address))
    refused = [get(ana_s, session, "session-files-archive"), ana_s.get(address)]
    assert [each.status_code for each in refused] == [429, 429]
    assert body(ana_s.get(f"/api/sessions/{session.pk}/workspace/file", {"path": "src/main.py"}))


def test_the_api_lists_a_folder(ana_s: Client, session: Session, folder: Path) -> None:
    os.utime(folder / "blob", (1e15, 1e15))  # no date can represent this
    listed = ana_s.get(f"/api/sessions/{session.pk}/workspace").json()
    assert (listed["path"], listed["left_out"]) == ("", 0)
    assert (listed["entries"][0]["name"], listed["entries"][0]["kind"]) == ("src", "folder")
    answer = ana_s.get(f"/api/sessions/{session.pk}/workspace/file", {"path": "src/main.py"})
    assert body(answer) == (folder / "src" / "main.py").read_bytes()
    assert answer["Content-Length"] == str((folder / "src" / "main.py").stat().st_size)


def call(session: Session, sequence: int, turn: str, **columns: Any) -> None:
    fields = {"type": "tool_group", "role": "assistant", "turn_id": turn, "sequence": sequence, **columns}
    ChatMessage.objects.create(session=session, **fields)


def test_the_last_turn_s_changes_are_shown(ana_s: Client, session: Session, folder: Path) -> None:
    """UI-10: the tab shows the diff of the last turn in which the file tools changed files."""
    call(session, 1, "t_1", tool_name="write_file", arguments={"path": "old", "content": "old"}, result="Wrote old")
    edit = {"path": "src/main.py", "old": "a\nb", "new": "a\n<c>"}
    call(session, 2, "t_2", tool_name="edit_file", arguments=edit, result="Changed src/main.py at line 7.")
    page = text(get(ana_s, session))
    assert "<del>b</del><ins>&lt;c&gt;</ins>" in page
    assert "@@ -7,2 +7,2 @@" in page
    assert '<bdi class="mono">old</bdi>' not in page


def test_changes_of_files_that_are_gone_are_not_shown(ana_s: Client, session: Session, folder: Path) -> None:
    """UI-10: changes of deleted files are not shown, and a path may begin with the sandbox's folder."""
    for number, path in enumerate(("gone.md", "/workspace/page.html"), 1):
        made = {"tool_name": "write_file", "arguments": {"path": path, "content": "a"}, "result": "Wrote it"}
        call(session, number, "t_1", **made)
    page = text(get(ana_s, session))
    assert "gone.md" not in page
    assert '<bdi class="mono">/workspace/page.html</bdi>' in page


def test_a_fork_says_whose_files_it_lacks(ana_s: Client, session: Session, folder: Path, bo: User) -> None:
    """RUN-13: a fork without its original's files says so and links to the original, if the user may see that.
    Such forks were made by an older version, or before there were files."""
    fork = Session.objects.create(owner=session.owner, workspace=session.workspace, parent_session=session)
    page = text(get(ana_s, fork))
    assert "has files that this fork" in page
    assert f'href="/sessions/{session.pk}/"' in page
    assert "this fork" not in text(get(ana_s, session))
    Session.objects.filter(pk=session.pk).update(owner=bo)
    assert "this fork" not in text(get(ana_s, fork))


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ({"left_out": 0, "reason": None}, ["may be newer than the messages"]),
        ({"left_out": 2, "reason": None}, ["may be newer than the messages", "2 entries couldn’t be copied"]),
        ({"left_out": 0, "reason": "size"}, ["too many, or they’re too large"]),
        ({"left_out": 0, "reason": "failed"}, ["The original’s files weren’t copied."]),
    ],
)
def test_a_fork_says_what_became_of_the_files(ana_s: Client, session: Session, kept: Any, says: list[str]) -> None:
    """RUN-13: the result of the copy is shown above the fork's messages and in its Files tab, even if the original is
    gone."""
    config = {FORKED_FILES: {"at": "2026-11-27T06:40:00+00:00", **kept}}
    fork = create_session(owner=session.owner)
    Session.objects.filter(pk=fork.pk).update(config=config)
    for page in (text(get(ana_s, fork)), text(ana_s.get(reverse("session", args=[fork.pk])))):
        assert [each for each in says if each not in page] == []
        assert ("2026-11-27T06:40" in page) == (kept["reason"] is None)
