"""`manage.py backup` and `restore` on both databases."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import CompletedProcess
from types import FrameType
from typing import Any

import psycopg
import pytest
from django.core.files.base import ContentFile
from django.db import connection
from pytest_django import Settings

from agents.sandbox.browsing import MAX_DEPTH
from chat.management.backup import databases, making, restoring
from chat.management.backup.archive import MANIFEST, Archive, ArchiveWriter, BackupError
from chat.management.backup.leftovers import working_in
from chat.management.commands import backup
from chat.management.paths import explained
from tests.commands.process import manage, manage_forked, serving
from tests.support.database import empty_database
from tests.support.prepared import copy
from tests.support.s3 import S3Server

# A session with a file, and a workspace with a link and a program.
FILL = """
from pathlib import Path
from django.conf import settings
from django.core.files.base import ContentFile
from chat.models import Attachment
from chat.services.sessions import lifecycle
from chat.services.people import accounts
from tests.support.filled import ANSWER, DONE, HI, START, fill
ana = accounts.first_administrator()
session = lifecycle.create_session(owner=ana, title="Kept")
rows = fill(session, START, {**HI, "text": "Grüße 👋"}, ANSWER, DONE)
columns = {"session": session, "message": rows[1], "user": ana, "kind": "text", "media_type": "text/plain"}
file = Attachment(name="a.txt", size=5, **columns)
file.file.save("x", ContentFile(b"bytes"))
folder = Path(settings.WORKSPACES) / session.pk
folder.mkdir(parents=True)
(folder / "run.sh").write_text("#!/bin/sh")
(folder / "run.sh").chmod(0o755)
(folder / "link").symlink_to("run.sh")
"""
# Store the marks of the files and the key, as the first start does.
MARK = """
from chat.services.maintenance.files_mark import require_own_files
from chat.services.maintenance.key_mark import require_own_key
require_own_files()
require_own_key()
"""
SHOW = """
import json, os
from pathlib import Path
from django.conf import settings
from chat.models import Attachment, ChatMessage
folder = next(Path(settings.WORKSPACES).iterdir())
print(json.dumps([
    list(ChatMessage.objects.order_by("sequence").values_list("id", "type", "text")),
    [each.file.open().read().decode() for each in Attachment.objects.all()],
    [oct((folder / "run.sh").stat().st_mode), os.readlink(folder / "link"), settings.SECRET_KEY],
]))
"""


class Place:
    """An installation: a data folder and, on PostgreSQL, its own database."""

    def __init__(self, data: Path, settings: dict[str, str]) -> None:
        self.data = data
        self.settings = settings

    def run(self, *words: str) -> CompletedProcess[str]:
        return manage_forked(*words, data=self.data, **self.settings)

    def do(self, *words: str) -> str:
        """Run a command that succeeds and return its output."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def shown(self) -> str:
        return self.do("shell", "-v0", "-c", SHOW)


@pytest.fixture(scope="module")
def filled(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder to copy, with a session, its file and a workspace; on PostgreSQL without rows."""
    data = tmp_path_factory.mktemp("filled") / "data"
    if connection.vendor == "postgresql":
        data.mkdir()
    else:
        Place(copy(prepared, data), {}).do("shell", "-v0", "-c", FILL)
    return data


@pytest.fixture
def places(tmp_path: Path, filled: Path) -> Iterator[tuple[Place, Place]]:
    """A place with data, and an empty one."""
    with ExitStack() as databases:

        def place(name: str) -> Place:
            is_postgres = connection.vendor == "postgresql"
            settings = {"DATABASE_URL": databases.enter_context(empty_database())} if is_postgres else {}
            return Place(tmp_path / name, settings)

        full, empty = place("full"), place("empty")
        shutil.copytree(filled, full.data, symlinks=True)
        if full.settings:
            full.do("migrate", "-v0")
            full.do("shell", "-v0", "-c", FILL)
        yield full, empty


@pytest.mark.both_databases
@pytest.mark.server
def test_backup_is_restored_to_an_empty_place(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: rows, files, workspaces and the key are restored without differences."""
    full, empty = places
    archive = tmp_path / "backup.tar"

    files = sum(path.is_file() for path in (full.data / "files").rglob("*"))  # one more if a server has run
    assert f"the database, {files} files, 1 session files" in full.do("backup", str(archive))
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert "is complete" in empty.do("restore", "--check", str(archive))
    assert not empty.data.exists()
    restored = empty.do("restore", str(archive))
    assert ("Restored." in restored, "previous data" in restored) == (True, False)
    assert not (empty.data / "backups").exists()

    assert empty.shown() == full.shown()
    assert empty.do("verify") == "No problems found. Checked 1 sessions, 4 messages, 1 files.\n"
    assert empty.run("restore", str(archive)).stderr.startswith("CommandError: There is already data in the database")


@pytest.mark.postgres
@pytest.mark.server
def test_restore_ignores_what_a_pooler_keeps_open(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: idle connections of a pooler have no name. Other connections are servers that must be stopped first."""
    full, empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    address = empty.settings["DATABASE_URL"]
    with psycopg.connect(address, application_name="parley"):
        refused = empty.run("restore", str(archive)).stderr
        assert refused == "CommandError: The database has 1 other connections. Stop all servers and workers first.\n"
    with psycopg.connect(address, application_name=""):
        assert "Restored." in empty.do("restore", str(archive))


@pytest.mark.both_databases
@pytest.mark.server
def test_restored_database_takes_the_key_of_its_next_start(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06, OPS-10: a restore to PostgreSQL clears the mark of the key, because another machine may have another key.

    On SQLite the mark stays, because any start replaces it with its own and reports that.
    """
    full, empty = places
    archive = tmp_path / "backup.tar"
    full.do("shell", "-v0", "-c", MARK)
    full.do("backup", str(archive))
    empty.do("restore", str(archive))
    read = "from chat.models import Installation; print(Installation.objects.get().key_mark)"
    kept = full.do("shell", "-v0", "-c", read)
    assert empty.do("shell", "-v0", "-c", read) == (kept if connection.vendor == "sqlite" else "\n")


@pytest.mark.both_databases
@pytest.mark.server
def test_backup_without_the_key_of_the_database_is_refused(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06, OPS-10: without the server's key, a backup would contain another one. No command on data makes one."""
    full, _empty = places
    full.do("shell", "-v0", "-c", MARK)
    own = (full.data / "secret_key").read_text().strip()
    (full.data / "secret_key").unlink()
    (full.data / "vapid_key").unlink()

    failed = full.run("backup", str(tmp_path / "backup.tar"))

    assert "SECRET_KEY is not that of the servers on this database. Set SECRET_KEY" in failed.stderr
    full.do("endlogins")
    assert not (full.data / "secret_key").exists()
    assert not (full.data / "vapid_key").exists()
    full.settings |= {"SECRET_KEY": "a new key" * 5, "SECRET_KEY_FALLBACKS": own}
    full.do("backup", str(tmp_path / "backup.tar"))


@pytest.mark.server
def test_restore_says_if_the_key_is_another(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: the notice appears exactly if the next start can read nothing that the earlier key has encrypted.

    A key in the settings takes precedence over the restored file, and earlier keys can be among its fallbacks.
    """
    full, empty = places
    first, second = tmp_path / "with-key.tar", tmp_path / "without-key.tar"
    full.do("backup", str(first))
    own = (full.data / "secret_key").read_text().strip()
    (full.data / "secret_key").unlink()
    full.settings["SECRET_KEY"] = own
    full.do("backup", str(second))

    def notice(archive: Path, **keys: str) -> str:
        place = Place(empty.data, {**empty.settings, **keys})
        said = place.do("restore", "--replace", str(archive)).partition("To avoid this, ")[2]
        shutil.rmtree(empty.data)
        return said.partition("\n")[0]

    other = "another key" * 5
    set_fallbacks = "set SECRET_KEY_FALLBACKS to the earlier key"
    assert notice(first) == notice(first, SECRET_KEY=own) == notice(second, SECRET_KEY=own) == ""
    assert notice(second, SECRET_KEY=other, SECRET_KEY_FALLBACKS=own) == ""
    assert notice(first, SECRET_KEY=other) == f"{set_fallbacks}, which is in {empty.data}/secret_key."
    assert notice(second, SECRET_KEY=other) == notice(second) == f"{set_fallbacks}."


@pytest.mark.both_databases
@pytest.mark.server
def test_restore_that_replaces_puts_what_was_there_aside(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: a restore of the wrong archive loses nothing, because the replaced data is kept."""
    full, _empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    before = full.shown()
    full.do("shell", "-v0", "-c", "from chat.models import *; ChatMessage.objects.update(text='later')")

    assert "The previous data is in" in full.do("restore", "--replace", str(archive))

    assert full.shown() == before
    (aside,) = full.data.glob("backups/before-restore-*")
    kept = "database.sqlite3" if connection.vendor == "sqlite" else "database.dump"
    names = {path.name.replace("parley.sqlite3", kept) for path in aside.iterdir()}
    assert {kept, "files", "workspaces", "secret_key", "vapid_key"} <= names
    assert list(full.data.glob(".restore-*")) == []


@pytest.mark.server
def test_backup_without_the_files_of_the_database_is_refused(
    places: tuple[Place, Place], tmp_path: Path, s3: S3Server
) -> None:
    """OPS-06, OPS-10: with another folder or bucket than the server's, a backup would have no files."""
    full, _empty = places
    if connection.vendor == "postgresql":
        pytest.skip("the database has no mark, because no server has started on it")
    archive = tmp_path / "backup.tar"
    database = {"DATABASE_URL": f"sqlite:///{full.data}/parley.sqlite3"}
    forgotten = Place(tmp_path / "elsewhere", database).run("backup", str(archive))
    other = Place(full.data, s3.environment(tmp_path.name)).run("backup", str(archive))
    for ended in (forgotten, other):
        assert ended.returncode == 1
        assert "does not have the files of this database. Set PARLEY_DATA, or S3_BUCKET" in ended.stderr
    assert not archive.exists()


@pytest.mark.server
def test_backup_of_an_older_database_checks_the_marks_that_it_has(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: a backup is also made after a new version was installed and before its first start."""
    full, _empty = places
    if connection.vendor == "postgresql":
        pytest.skip("the database has no mark, because no server has started on it")
    change = "ALTER TABLE chat_installation DROP COLUMN files_mark"
    full.do("shell", "-v0", "-c", f"from django.db import connection; connection.cursor().execute({change!r})")
    refused = Place(full.data, {"SECRET_KEY": "x" * 50}).run("backup", str(tmp_path / "first.tar"))
    assert (refused.returncode, "SECRET_KEY is not that of the servers" in refused.stderr) == (1, True)
    change = "DROP TABLE chat_installation"
    full.do("shell", "-v0", "-c", f"from django.db import connection; connection.cursor().execute({change!r})")
    full.do("backup", str(tmp_path / "second.tar"))


@pytest.mark.server
def test_backup_without_the_folder_of_session_files_says_so(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: session files that agents have used are missing in the backup if WORKSPACES is another folder."""
    full, _empty = places
    (full.data / "workspaces").rename(full.data / "elsewhere")
    assert full.run("backup", str(tmp_path / "first.tar")).stderr == ""
    used = "from chat.models import *; ChatMessage.objects.filter(role='assistant').update(tool_name='bash')"
    full.do("shell", "-v0", "-c", used)
    said = full.run("backup", str(tmp_path / "second.tar")).stderr
    assert f"no session files, because {full.data}/workspaces does not exist" in said


@pytest.mark.server
def test_files_in_a_bucket_are_backed_up_and_restored(
    places: tuple[Place, Place], tmp_path: Path, s3: S3Server
) -> None:
    """OPS-06: a restore works with another bucket and with the same one, in which the replaced files are kept."""
    full, empty = places
    archive, prefix = tmp_path / "backup.tar", tmp_path.name
    full.settings |= s3.environment(f"{prefix}/full")
    empty.settings |= s3.environment(f"{prefix}/empty")
    store, folder = s3.storage(f"{prefix}/full"), full.data / "files"
    files = list(filter(Path.is_file, folder.rglob("*")))
    for path in files:  # copied as docs/deployment.md describes
        store.save(path.relative_to(folder).as_posix(), ContentFile(path.read_bytes()))
    before = full.shown()
    full.do("backup", str(archive))

    assert "Restored." in empty.do("restore", str(archive))
    assert empty.shown() == before
    assert "There is already data in the database, the files and" in empty.run("restore", str(archive)).stderr

    store.save("attachments/later", ContentFile(b"later"))
    assert f"{len(files) + 1} files that were in the bucket before are now under before-restore-" in full.do(
        "restore", "--replace", str(archive)
    )
    assert full.shown() == before
    (aside,) = (name for name in store.listdir("")[0] if name.startswith("before-restore-"))
    assert store.open(f"{aside}/attachments/later").read() == b"later"
    assert not store.exists("attachments/later")
    full.do("backup", str(tmp_path / "again.tar"))
    with closing(Archive(tmp_path / "again.tar")) as again, closing(Archive(archive)) as first:
        assert set(again.names("files/")) == set(first.names("files/"))


@pytest.mark.server
def test_archive_that_cannot_be_extracted_changes_nothing(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: the database is replaced only after all files have been extracted."""
    full, empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    before = full.shown()
    add_entries(archive, {"files/a": b"bytes", "files/a/b": b"bytes"})  # no file system can have both

    refused = full.run("restore", "--replace", str(archive))

    assert refused.returncode == 1
    assert "incomplete" not in refused.stdout
    assert full.shown() == before
    assert list(full.data.glob("backups/before-restore-*")) == []
    assert empty.run("restore", str(archive)).returncode == 1
    assert not empty.data.exists()


def replace_program(name: str, folder: Path, script: str) -> dict[str, str]:
    """Put a shell script before a program of PostgreSQL. It can run the program as "$program"."""
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\nprogram={shutil.which(name)}\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.postgres
@pytest.mark.server
def test_dump_is_restored_to_a_server_older_than_pg_restore(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: pg_restore 17 sets a parameter that older servers refuse."""
    full, empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    later = """
    "$program" "$@" || exit
    for word; do case $word in
        --file=*) sed -i 's/^SET lock_timeout = 0;$/&\\nSET transaction_timeout = 0;/' "${word#--file=}" ;;
        --dbname*) echo 'unrecognized configuration parameter "transaction_timeout"' >&2; exit 1 ;;
    esac; done"""
    empty.settings |= replace_program("pg_restore", tmp_path / "bin", later)
    empty.do("restore", str(archive))
    assert empty.shown() == full.shown()


@pytest.mark.postgres
@pytest.mark.server
@pytest.mark.parametrize("program", ["pg_dump", "pg_restore"])
def test_programs_older_than_the_server_are_refused_before_anything_changes(
    places: tuple[Place, Place], tmp_path: Path, program: str
) -> None:
    """OPS-06: the message names both versions, and the data is still there."""
    full, _empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    before = full.shown()
    older = f"""
    [ "$1" != --version ] || {{ echo "{program} (PostgreSQL) 9.6.24"; exit; }}
    echo "aborting because of server version mismatch" >&2; exit 1"""
    full.settings |= replace_program(program, tmp_path / "bin", older)
    failed = full.run("restore", "--replace", str(archive))
    assert f"{program} is of version 9, but the server is of version" in failed.stderr
    assert full.shown() == before
    assert list(full.data.glob("backups/before-restore-*")) == []


@pytest.mark.server
def test_restore_that_fails_in_between_says_where_everything_is(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: the error names the replaced data and the next steps."""
    full, _empty = places
    archive = tmp_path / "backup.tar"
    full.do("backup", str(archive))
    (full.data / "files").rename(full.data / "elsewhere")
    (full.data / "files").symlink_to("missing")

    failed = full.run("restore", "--replace", str(archive))

    assert failed.returncode == 1
    (aside,) = full.data.glob("backups/before-restore-*")
    assert "The restore is incomplete" in failed.stdout
    assert f"The previous data is in {aside}." in failed.stdout
    (full.data / "files").unlink()
    full.do("restore", "--replace", str(archive))


@pytest.mark.server
def test_database_that_is_damaged_is_replaced(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: a restore replaces a damaged database, which is what backups are for, but only with --replace."""
    if connection.vendor == "postgresql":
        pytest.skip("a damaged database of PostgreSQL is repaired by PostgreSQL's programs")
    full, _empty = places
    archive, database = tmp_path / "backup.tar", full.data / "parley.sqlite3"
    full.do("backup", str(archive))
    before = full.shown()
    for damage in (b"not a database" * 1000, database.read_bytes()[:4096] + b"\xff" * 400_000):
        for file in full.data.glob("parley.sqlite3-*"):
            file.unlink()
        database.write_bytes(damage)

        refused = full.run("restore", str(archive))
        assert refused.stderr.startswith("CommandError: There is already data in the database")
        full.do("restore", "--replace", str(archive))

        assert full.shown() == before
        shutil.rmtree(full.data / "backups")


@pytest.mark.sqlite
def test_database_on_another_file_system_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-06: the database that `DATABASE_URL` names can be on another file system than PARLEY_DATA."""
    present, dump, aside = tmp_path / "parley.sqlite3", tmp_path / "dump", tmp_path / "aside"
    present.write_text("present")
    dump.write_text("dump")
    monkeypatch.setitem(connection.settings_dict, "NAME", str(present))
    rename = os.rename

    def rename_within_one(source: str | Path, target: str | Path) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_within_one)
    databases.restore(dump, aside)
    assert ((aside / "parley.sqlite3").read_text(), present.read_text()) == ("present", "dump")


@pytest.mark.server
def test_restore_to_places_that_cannot_be_used_changes_nothing(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: a restore whose data would have no place is refused before anything changes, with the place and a
    remedy."""
    full, empty = places
    archive, file = tmp_path / "backup.tar", tmp_path / "file"
    full.do("backup", str(archive))
    file.write_text("")
    choose = "Choose a path in a folder that exists."

    def refused(data: Path, **settings: str) -> str:
        ended = Place(data, {**empty.settings, **settings}).run("restore", "--replace", str(archive))
        assert (ended.returncode, ended.stdout) == (1, "")
        return ended.stderr.removeprefix("CommandError: ").strip()

    assert refused(file) == f"{file}: Not a directory. {choose}"
    assert refused(empty.data, WORKSPACES=str(file / "x")) == f"{file}: Not a directory. {choose}"
    expected = f"{file} is not a folder. Move it away, or change the setting that names it."
    assert refused(empty.data, WORKSPACES=str(file)) == expected
    if connection.vendor == "sqlite":
        address = {"DATABASE_URL": f"sqlite:///{tmp_path}"}
        assert refused(empty.data, **address) == f"{tmp_path} is not a file. Move it away, or change DATABASE_URL."
        assert refused(empty.data, DATABASE_URL=f"sqlite:///{file}/x/y").endswith(choose)
    assert not empty.data.exists()


@pytest.mark.server
def test_backup_to_a_path_that_cannot_be_used_names_path_and_remedy(data: Path, tmp_path: Path) -> None:
    """OPS-06: a backup to an unusable path ends with one line, which names the path, the reason and a remedy."""
    file = tmp_path / "file"
    file.write_text("")

    def refused(path: Path) -> str:
        ended = manage_forked("backup", str(path), data=data)
        assert ended.returncode == 1
        return ended.stderr.removeprefix("CommandError: ").strip()

    reason = "Not a directory. Choose a path in a folder that exists."
    assert refused(file / "x.tar") == f"The backup failed: {file}: {reason}"
    assert refused(tmp_path) == f"{tmp_path} is a folder. Name a new file in it, such as {tmp_path}/parley.tar."
    assert refused(file) == f"{file} already exists. Choose another file."
    assert refused(tmp_path / ("x" * 300)).endswith("File name too long. Choose a path with shorter names.")


@pytest.mark.server
def test_large_file_of_a_session_needs_no_other_disk(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: the copy of a file is made next to the archive, because /tmp is often small."""
    full, _empty = places
    large = full.data / "workspaces/s_large/large.bin"
    large.parent.mkdir(parents=True)
    large.write_bytes(bytes(making.IN_MEMORY + 1))
    full.settings["TMPDIR"] = "/proc"  # nothing can be written there
    assert "2 session files" in full.do("backup", str(tmp_path / "backup.tar"))


@pytest.mark.server
def test_what_killed_commands_have_left_is_deleted(places: tuple[Place, Place]) -> None:
    """OPS-06: the copies of a backup that was killed are deleted, and those of a running one are not."""
    full, _empty = places
    folder = full.data / "backups"
    folder.mkdir()
    left = [folder / ".parley-backup-x" / "database.sqlite3", folder / "parley-20260101-000000.tar.new"]
    left.append(full.data / ".restore-x" / "database.sqlite3")
    others = [folder / "mine.tar.new", folder / "before-update-20260101-000000.new"]
    for path in (*left, *others):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with working_in(folder):
        full.do("backup")
    assert left[0].exists()
    full.do("backup", str(folder / "own.tar"))
    full.do("restore", "--replace", str(folder / "own.tar"))
    assert [path for path in left if path.exists()] == []
    assert [path for path in others if path.exists()] == others


@pytest.mark.server
def test_what_cannot_be_read_in_a_workspace_is_named(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: a backup leaves out and names files that cannot be read, such as those that agents' commands create."""
    full, _empty = places
    workspace = next((full.data / "workspaces").iterdir())
    deep = os.open(workspace, os.O_RDONLY)
    for _level in range(25):  # longer than a path may be
        os.mkdir("d" * 200, dir_fd=deep)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)

    ended = full.run("backup", str(tmp_path / "backup.tar"))

    assert ended.returncode == 0
    assert "1 session files, 1 unreadable entries left out" in ended.stdout
    assert ended.stderr.count("Left out of the backup") == 1
    assert "File name too long" in ended.stderr


def test_folders_that_commands_nest_or_turn_into_links_do_no_harm(tmp_path: Path) -> None:
    """OPS-06: very deeply nested folders are left out, and the targets of links are not in the backup."""
    root, outside = tmp_path / "workspaces", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (root / "s_1" / "changed").mkdir(parents=True)
    (root / "s_1" / "changed" / "file").write_text("mine")
    (root / "s_1" / "kept").write_text("kept")
    deep = os.open(root / "s_1", os.O_RDONLY)
    for _level in range(MAX_DEPTH + 10):
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    problems: list[str] = []
    found = making._walk(root, making._Unreadable(problems.append))
    first = next(found)[1]
    (root / "s_1" / "changed").rename(tmp_path / "moved")
    (root / "s_1" / "changed").symlink_to(outside)
    assert [first, *(path for _folder, path in found)] == ["s_1/kept"]
    assert len(problems) == 1


@pytest.mark.both_databases
@pytest.mark.server
def test_database_that_a_server_uses_is_not_replaced(places: tuple[Place, Place], tmp_path: Path) -> None:
    """OPS-06: the database in use is not replaced, because its server would continue to write to the old one.

    A backup works.
    """
    full, _empty = places
    archive = tmp_path / "backup.tar"
    with serving(full.data, **full.settings):
        full.do("backup", str(archive))
        refused = full.run("restore", "--replace", str(archive))
    assert refused.returncode == 1
    assert "Stop" in refused.stderr
    full.do("restore", "--replace", str(archive))


@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write for another account")
def test_root_gives_backups_to_the_account_of_the_data(data: Path, tmp_path: Path) -> None:
    """OPS-06: otherwise the backups of this account and the next update could not write to the folder of backups."""
    for path in (data, *data.iterdir()):
        os.chown(path, 54321, 54322)
    ended = manage_forked("backup", "--keep", "14", data=data)
    (archive,) = (data / "backups").iterdir()
    assert ended.returncode == 0, ended.stderr
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (archive, archive.parent)} == {(54321, 54322)}

    ended = manage_forked("restore", "--replace", str(archive), data=data)
    assert ended.returncode == 1
    assert "belongs to the account 54321, which could not use what root writes there" in ended.stderr
    assert manage_forked("restore", "--check", str(archive), data=data).returncode == 0

    os.chown(data / "secret_key", 0, 0)  # the server runs as root
    assert manage_forked("restore", "--replace", str(archive), data=data).returncode == 0


@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of root")
def test_error_names_the_owner_of_the_folder_of_backups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """OPS-06: root has made the folder. Advice to use Parley's account would lead nowhere."""
    monkeypatch.setattr(making, "folder", lambda: tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    explained = backup.Command()._explained(PermissionError(errno.EACCES, "Permission denied"), tmp_path / "x.tar")
    assert explained.startswith(f"{tmp_path} belongs to the account root. Make the account that runs Parley its owner")


@pytest.mark.server
def test_backups_that_are_kept(data: Path) -> None:
    """OPS-06: only the newest backups are kept, so that daily ones do not fill the disk."""
    folder = data / "backups"
    folder.mkdir()
    for day in (1, 2):
        (folder / f"parley-2026010{day}-000000.tar").touch()
    (folder / "before-update-20260101-000000.sqlite3").touch()

    assert manage("backup", "--keep", "2", data=data).returncode == 0

    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 3
    assert {"before-update-20260101-000000.sqlite3", "parley-20260102-000000.tar"} < set(kept)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "small.tar"
    with ArchiveWriter(path) as writer:
        writer.add("database.sqlite3", io.BytesIO(b"rows"), 4)
        writer.add("files/a", io.BytesIO(b"bytes"), 5)
        writer.finish(made_at="now", database="sqlite", migrations=[], key="")
    return path


def check(path: Path) -> None:
    with closing(Archive(path)) as found:
        found.check()


def rewrite(path: Path, change: dict[str, bytes | None], *, kind: bytes = tarfile.REGTYPE, link: str = "") -> None:
    """Replace, add, or with None remove members of an archive."""
    with tarfile.open(path) as before:
        members = {info.name: (before.extractfile(info) or io.BytesIO()).read() for info in before}
    members = {name: data for name, data in {**members, **change}.items() if data is not None}
    with tarfile.open(path, "w") as after:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if name in change:
                info.type, info.linkname = kind, link
            after.addfile(info, io.BytesIO(data))


def add_entries(path: Path, added: dict[str, bytes]) -> None:
    """Add files to an archive and to its manifest."""
    with tarfile.open(path) as before:
        found = before.extractfile(MANIFEST)
        assert found is not None
        manifest = json.load(found)
        members = [(info, before.extractfile(info) if info.isreg() else None) for info in before]
        kept = [(info, file.read() if file else b"") for info, file in members if info.name != MANIFEST]
    for name, data in added.items():
        manifest["entries"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    with tarfile.open(path, "w") as after:
        for name, data in {**added, MANIFEST: json.dumps(manifest).encode()}.items():
            kept.append((tarfile.TarInfo(name), data))
        for info, data in kept:
            info.size = len(data)
            after.addfile(info, io.BytesIO(data))


def test_whole_archive_is_accepted(archive: Path) -> None:
    check(archive)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files/a": b"bytez"}, "files/a is damaged"),
        ({"files/a": None}, "files/a is missing"),
        ({"files/b": b"more"}, "an entry that is not in its manifest"),
        ({"../etc/passwd": b"root"}, "an entry that is not in its manifest"),
        ({MANIFEST: None}, "not a complete backup"),
        ({MANIFEST: b"{"}, "not a complete backup"),
        ({MANIFEST: json.dumps({"format": 9, "entries": {}}).encode()}, "another version"),
    ],
)
def test_damaged_archive_is_refused_before_anything_changes(
    archive: Path, change: dict[str, bytes | None], message: str
) -> None:
    """OPS-06: a damaged archive is refused before anything changes."""
    rewrite(archive, change)

    with pytest.raises(BackupError, match=message):
        check(archive)


def test_archive_that_names_places_outside_is_refused(archive: Path) -> None:
    """OPS-06: an archive cannot write outside of its folder, even with a matching manifest."""
    with tarfile.open(archive) as before:
        found = before.extractfile(MANIFEST)
        assert found is not None
        manifest = json.load(found)
    manifest["entries"]["files/../../x"] = manifest["entries"]["files/a"]
    rewrite(archive, {"files/../../x": b"bytes", MANIFEST: json.dumps(manifest).encode()})

    with pytest.raises(BackupError, match="an entry that is not in its manifest"):
        check(archive)


def test_archive_that_writes_through_its_own_link_is_refused(tmp_path: Path) -> None:
    """OPS-06: an archive with a link and then a file below it is refused."""
    with ArchiveWriter(tmp_path / "made.tar") as writer:
        writer.add_link("workspaces/s_1/out", "/etc")
        writer.add("workspaces/s_1/out/in/x", io.BytesIO(b"bytes"), 5)
        writer.finish(made_at="now", database="sqlite", migrations=[], key="")
    with pytest.raises(BackupError, match="an entry that is not in its manifest"):
        check(tmp_path / "made.tar")


def test_unfinished_archive_has_no_name(tmp_path: Path) -> None:
    """OPS-06: a backup that fails leaves no file that could be mistaken for one."""
    path = tmp_path / "cut.tar"
    with pytest.raises(BackupError), ArchiveWriter(path) as writer:
        writer.add("files/a", io.BytesIO(b"short"), 99)

    assert list(tmp_path.iterdir()) == []


def test_truncated_file_is_refused(archive: Path) -> None:
    """OPS-06: a file that was copied in part is refused."""
    os.truncate(archive, 2000)

    with pytest.raises(BackupError, match="not a complete backup"):
        check(archive)


@pytest.mark.parametrize("name", ["missing.tar", "folder", "archive.tar.gz", "pipe"])
def test_path_without_an_archive_is_refused_in_plain_words(tmp_path: Path, archive: Path, name: str) -> None:
    """OPS-06: the reason does not quote an exception of Python, and a pipe does not block the command."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "archive.tar.gz").write_bytes(gzip.compress(archive.read_bytes()))
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(BackupError) as refused:
        check(tmp_path / name)

    expected = {
        "missing.tar": "missing.tar: No such file or directory. Name an archive that `manage.py backup` has made",
        "folder": "folder is not a file. Name an archive that `manage.py backup` has made",
        "archive.tar.gz": "is not a complete backup of Parley: it is another kind of file, or its end is missing.",
        "pipe": "pipe is not a file.",
    }
    assert expected[name] in str(refused.value)
    assert "Errno" not in str(refused.value)


def test_full_disk_is_not_reported_as_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """OPS-06: an error of writing the archive stays an OSError, whose message names the disk."""
    with ArchiveWriter(tmp_path / "x.tar") as writer, open("/dev/full", "wb", buffering=0) as full:
        writer._open.fileobj = full
        with pytest.raises(OSError, match="No space left") as failed:
            writer.add("files/a", io.BytesIO(b"x" * 100_000), 100_000)

    assert "Free some space" in explained(failed.value, tmp_path)


def test_only_places_that_a_restore_changes_must_be_writable(
    archive: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-06: an empty folder of sessions stays where it is if the archive has none, so its parent is not checked."""
    checked: list[Path] = []
    monkeypatch.setattr(restoring, "require_writable", checked.append)
    settings.DATA_DIR, settings.WORKSPACES = tmp_path / "data", tmp_path / "mounted" / "workspaces"
    settings.WORKSPACES.mkdir(parents=True)

    with closing(Archive(archive)) as opened:
        restoring.require_places(opened)
        assert settings.WORKSPACES.parent not in checked

        (settings.WORKSPACES / "s_1").mkdir()
        restoring.require_places(opened)
        assert settings.WORKSPACES.parent in checked


def lines_of_extraction(folder: Path, files: int) -> int:
    """Return the number of lines of Python that extracting an archive with this many files executes."""
    path = folder / f"{files}.tar"
    with ArchiveWriter(path) as writer:
        for number in range(files):
            writer.add(f"files/{number}", io.BytesIO(b"x"), 1)
        writer.finish(made_at="now", database="sqlite", migrations=[], key="")
    count = 0

    def counting(frame: FrameType, event: str, given: object) -> Any:
        nonlocal count
        count += event == "line"
        return counting

    with closing(Archive(path)) as found:
        found.check()
        traced = sys.gettrace()
        sys.settrace(counting)
        try:
            for name in found.names("files/"):
                found.extract(name, folder / str(files) / name)
        finally:
            sys.settrace(traced)
    return count


def test_the_work_of_a_restore_grows_with_its_files(tmp_path: Path) -> None:
    """OPS-06: four times the files need four times the work, not sixteen times."""
    assert lines_of_extraction(tmp_path, 400) < 5 * lines_of_extraction(tmp_path, 100)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_file_has_its_permissions_whatever_the_umask_is(tmp_path: Path, umask: int) -> None:
    """OPS-06: files have their permissions, although the command that protects the data folder changes the umask."""
    with ArchiveWriter(tmp_path / "a.tar") as writer:
        writer.add("run.sh", io.BytesIO(b"#!/bin/sh"), 9, mode=0o755)
        writer.finish(made_at="now", database="sqlite", migrations=[], key="")
    before = os.umask(umask)
    try:
        with closing(Archive(tmp_path / "a.tar")) as found:
            found.extract("run.sh", tmp_path / "out" / "run.sh")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out" / "run.sh").stat().st_mode) == 0o755
