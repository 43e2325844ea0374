"""`manage.py importsessions` and `exportsessions`: import files for a user, and export into folders and archives."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from chat.management.commands import exportsessions
from chat.models import Session, User, Workspace
from chat.transfer.public import export_session
from tests.transfer import samples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]


def run(*words: object) -> tuple[str, str]:
    """Run a command; return its output and its errors."""
    out, err = StringIO(), StringIO()
    call_command(*map(str, words), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([samples.chatgpt("One"), samples.chatgpt("Two")]))
    return path


def test_a_file_is_listed_then_imported(ana: User, file: Path, settings: Settings) -> None:
    """A file beyond the page's limits is listed and imported, and the missing parts are reported."""
    settings.MAX_IMPORT_MB = 0
    listed, _ = run("importsessions", file, "--owner", ana.username)
    assert [line.split("\t")[-1] for line in listed.splitlines()[1:]] == ["One", "Two"]
    assert not Session.objects.exists()
    printed, _ = run("importsessions", file, "--owner", ana.username, "--only", 1)
    assert "\t4\tTwo\n\t1 message of another branch was left out." in printed
    assert Session.objects.get().owner == ana
    run("importsessions", file, "--owner", ana.username, "--all", "--workspace", ana.workspaces.get().pk)
    assert Session.objects.count() == 3


def test_some_conversations_are_imported(ana: User, file: Path) -> None:
    """The indexes are those of the list and may come before the file; a wrong one is explained."""
    with pytest.raises(CommandError, match="'x' is not an index; use --only 0, or --only 0,3 for several"):
        run("importsessions", "--owner", ana.username, "--only", "x", file)
    run("importsessions", "--owner", ana.username, "--only", "0", file)
    assert [session.title for session in Session.objects.all()] == ["One"]
    run("importsessions", "--only", "0,1", file, "--only", "0", "--owner", ana.username)
    assert Session.objects.count() == 3
    with pytest.raises(CommandError, match="--only works with one file"):
        run("importsessions", file, file, "--owner", ana.username, "--only", "0")


def test_refused_size_is_that_of_the_command(ana: User, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The limit of the size is the command's, not the page's."""
    file.write_text(file.read_text() + " " * (3 << 20))
    for words in ((), ("--all",)):
        with pytest.raises(CommandError, match="1 could not be imported"):
            call_command("importsessions", str(file), "--owner", ana.username, "--max-mb", "2", *words)
        assert capsys.readouterr().err == f"{file}: The file is too large (2 MB max).\n"


def test_what_cannot_be_imported_is_an_error(ana: User, file: Path, tmp_path: Path) -> None:
    """A file that cannot be imported is an error, and the other files are imported."""
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    with pytest.raises(CommandError, match="2 could not be imported") as failed:
        run("importsessions", bad, tmp_path / "none.json", file, "--owner", ana.username, "--all")
    assert failed.value.returncode == 1
    assert Session.objects.count() == 2
    elsewhere = Workspace.objects.create(name="Elsewhere")
    for words in (("--owner", "unknown"), ("--owner", ana.username, "--workspace", elsewhere.pk)):
        with pytest.raises(CommandError):
            run("importsessions", file, "--all", *words)


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_sessions_are_exported(ana: User, bo: User, file: Path, tmp_path: Path, form: str) -> None:
    """Sessions are exported to a folder and to an archive, and the JSON files can be imported."""
    run("importsessions", file, "--owner", ana.username, "--all")
    folder, archive = tmp_path / "out", tmp_path / "out.zip"
    run("exportsessions", "--owner", ana.username, "--format", form, "--to", folder)
    run("exportsessions", "--workspace", ana.workspaces.get().pk, "--format", form, "--to", archive)
    names = sorted(path.name for path in folder.iterdir())
    assert sorted(zipfile.ZipFile(archive).namelist()) == names
    assert len(names) == 2
    if form == "json":
        run("importsessions", archive, "--owner", bo.username, "--all")
        assert set(Session.objects.filter(owner=bo).values_list("title", flat=True)) == {"One", "Two"}
    with pytest.raises(CommandError):  # an existing file is not replaced
        run("exportsessions", "--all", "--to", archive)
    with pytest.raises(CommandError, match="no sessions"):
        run("exportsessions", "--owner", User.objects.create_user("new").username, "--to", tmp_path / "x")


@pytest.mark.sqlite
def test_sessions_that_cannot_be_read_do_not_cost_the_others(ana: User, file: Path, tmp_path: Path) -> None:
    """A session with a value that another program has written is named, and the others are exported."""
    run("importsessions", file, "--owner", ana.username, "--all")
    damaged = Session.objects.get(title="One").pk
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chat_session SET title = CAST(x'e46b' AS TEXT) WHERE id = %s", [damaged])
    said = StringIO()
    with pytest.raises(CommandError, match=r"^1 session could not be exported\.$"):
        call_command("exportsessions", "--all", "--to", str(tmp_path / "out"), stdout=StringIO(), stderr=said)
    assert f"{damaged}: This session can’t be exported" in said.getvalue()
    assert ["Two" in path.name for path in (tmp_path / "out").iterdir()] == [True]


@pytest.mark.django_db(transaction=True)
def test_sessions_are_exported_while_a_server_writes(
    ana: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes of a running server between the exports of two sessions do not end the command."""
    workspace = ana.workspaces.get()
    Session.objects.bulk_create([Session(owner=ana, workspace=workspace) for _ in range(201)])

    def write() -> None:
        User.objects.filter(pk=ana.pk).update(last_name="Other")
        connection.close()

    def export_after_a_write(*about: Any) -> Iterator[str]:
        with ThreadPoolExecutor(1) as others:
            others.submit(write).result()
        return export_session(*about)

    monkeypatch.setattr(exportsessions, "export_session", export_after_a_write)
    run("exportsessions", "--all", "--to", tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 201
