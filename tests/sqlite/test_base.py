"""SQLite: writers take turns, a commit that has returned is on the disk, and one sync serves many commits."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, connections, transaction

from chat.models import Workspace
from chat.overrides.sqlite import base
from chat.overrides.sqlite.base import DatabaseWrapper, log_of
from tests.support.server import ROOT

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sqlite,  # PostgreSQL does all of this itself
]


# Commit on a failing disk, then try to print.
FAILING_DISK = """
import django; django.setup()
from django.db import connection, transaction
from chat.overrides.sqlite import base
def fail(log): raise OSError(5, "Input/output error")
base._sync_file = fail
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE t (n integer)")
    try:
        with transaction.atomic():
            cursor.execute("INSERT INTO t VALUES (1)")
    finally:
        print("late")
"""


class Disk:
    """The real disk, which a test can block: `reached` counts attempts to sync, and `syncs` completed ones."""

    def __init__(self) -> None:
        self.door = threading.Event()
        self.door.set()
        self.reached = threading.Semaphore(0)
        self.syncs = 0
        self._sync = base._sync_file

    def __call__(self, log: int) -> None:
        self.reached.release()
        assert self.door.wait(20)
        self._sync(log)
        self.syncs += 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(base, "_sync_file", disk)
    return disk


@pytest.fixture
def threads() -> Iterator[Callable[[Callable[[], object]], Future[object]]]:
    """A function that runs another one in a thread with its own connection, which is closed afterwards."""

    def closing(function: Callable[[], object]) -> object:
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        yield lambda function: pool.submit(closing, function)


def write_lock() -> threading.Lock:
    return log_of(str(connection.settings_dict["NAME"])).write_lock


def write(name: str = "W") -> None:
    with transaction.atomic():
        Workspace.objects.create(name=name)


def synchronous() -> int:
    with connection.cursor() as cursor:
        return int(cursor.execute("PRAGMA synchronous").fetchone()[0])


def test_transaction_takes_its_turn_and_gives_it_back(disk: Disk) -> None:
    """MSG-01: one writer at a time; outside the transaction, each statement waits for the disk again."""
    with transaction.atomic():
        assert write_lock().locked()
        Workspace.objects.create(name="A")
    assert not write_lock().locked()
    assert disk.syncs == 1
    assert synchronous() == 2


def test_failed_transaction_gives_its_turn_back(disk: Disk) -> None:
    """MSG-01: however a transaction ends, the next one can begin."""

    def fail() -> None:
        with transaction.atomic():
            Workspace.objects.create(name="A")
            connection.cursor().execute("no such statement")

    with pytest.raises(DatabaseError):
        fail()
    assert not write_lock().locked()
    assert (Workspace.objects.count(), disk.syncs, synchronous()) == (0, 0, 2)


def test_closing_in_a_transaction_gives_the_turn_back() -> None:
    """RUN-15: a broken connection lets the other writers continue."""

    def fail() -> None:
        with transaction.atomic():
            connection.close()
            Workspace.objects.count()

    with pytest.raises(DatabaseError):
        fail()
    assert not write_lock().locked()
    write()


def test_transaction_that_changes_nothing_does_not_wait_for_the_disk(disk: Disk) -> None:
    with transaction.atomic():
        Workspace.objects.count()
    assert disk.syncs == 0


def test_connection_that_need_not_wait_does_not(disk: Disk) -> None:
    mine = connections["default"]
    assert isinstance(mine, DatabaseWrapper)
    mine.waits_for_disk = False
    try:
        write()
        assert (disk.syncs, synchronous()) == (0, 1)
    finally:
        mine.waits_for_disk = True
        write()
    assert (disk.syncs, synchronous()) == (1, 2)


def test_others_write_while_one_waits_for_the_disk(
    disk: Disk, threads: Callable[[Callable[[], object]], Future[object]]
) -> None:
    """MSG-01: five commits that find the disk busy share one sync, and none returns before it."""
    disk.door.clear()
    first = threads(write)
    assert disk.reached.acquire(timeout=20)
    others = [threads(write) for _ in range(5)]
    while Workspace.objects.count() < 6:  # they commit one by one while the first still waits for its sync
        threading.Event().wait(0.005)
    with write_lock():
        pass  # the last writer has released the lock, so its commit counts
    assert not wait([first, *others], timeout=0).done
    disk.door.set()
    for done in (first, *others):
        done.result(20)
    assert disk.syncs == 2


def test_commit_that_returned_survives_a_power_cut(
    threads: Callable[[Callable[[], object]], Future[object]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """MSG-01: before a commit returns, the disk has stored its row, and the row can be read from that data alone.

    A sync that returns guarantees the log's content at the time when it began. Each commit's row is looked up in a copy
    of the database made from only that content.
    """
    name = str(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = Path(name).read_bytes()
    really_sync = base._sync_file
    stored = [b""]

    def sync(log: int) -> None:
        content = os.pread(log, os.fstat(log).st_size, 0)
        really_sync(log)
        stored.append(content)

    monkeypatch.setattr(base, "_sync_file", sync)

    def write_and_cut_power(number: int) -> bytes:
        write(f"W{number}")
        return stored[-1]

    cuts = [threads(partial(write_and_cut_power, number)) for number in range(40)]
    for number, cut in enumerate(cuts):
        after = tmp_path / f"{number}.sqlite3"
        after.write_bytes(before)
        log = cut.result(60)
        assert isinstance(log, bytes)
        Path(f"{after}-wal").write_bytes(log)
        with closing(sqlite3.connect(after)) as restarted:
            found = restarted.execute("SELECT count(*) FROM chat_workspace WHERE name = ?", [f"W{number}"]).fetchone()
            assert found == (1,), f"the commit of W{number} had returned and is lost"
    assert Path(name).read_bytes() == before, "SQLite has checkpointed, and the log alone does not hold all rows"


def test_without_group_sync_sqlite_syncs_each_commit(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """With GROUP_SYNC off, SQLite syncs the log itself, and writers still take turns."""
    monkeypatch.setattr(base, "GROUP_SYNC", False)
    with transaction.atomic():
        assert write_lock().locked()
        assert synchronous() == 2
        Workspace.objects.create(name="A")
    assert (disk.syncs, write_lock().locked(), Workspace.objects.count()) == (0, False, 1)


def test_without_serialized_writes_sqlite_makes_writers_wait(
    threads: Callable[[Callable[[], object]], Future[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both switches off, Django's own backend is used, which is slower and equally correct."""
    monkeypatch.setattr(base, "GROUP_SYNC", False)
    monkeypatch.setattr(base, "SERIALIZE_WRITES", False)
    with transaction.atomic():
        assert not write_lock().locked()
        Workspace.objects.create(name="A")
    for done in [threads(write) for _ in range(8)]:
        done.result(60)
    assert Workspace.objects.count() == 9


@pytest.mark.parametrize("converts_once", [True, False])
def test_placeholders_are_converted_in_every_form(monkeypatch: pytest.MonkeyPatch, converts_once: bool) -> None:
    """With CONVERT_ONCE off, Django converts each statement again. A statement can be used with either form."""
    monkeypatch.setattr(base, "CONVERT_ONCE", converts_once)
    with connection.cursor() as cursor:
        for _ in range(2):
            found = cursor.execute("SELECT %s, '%%s'", ["a"]).fetchone()
            assert found == ("a", "%s")
            found = cursor.execute("SELECT %(b)s, %(a)s, '%%'", {"a": 1, "b": 2}).fetchone()
            assert found == (2, 1, "%")
        assert cursor.execute("SELECT '%s'").fetchone() == ("%s",)


def test_commit_is_never_reported_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-01: the row is committed. If its sync fails, the process exits: a later sync could succeed without it."""
    ended: list[OSError] = []

    def fail(log: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(base, "_sync_file", fail)
    monkeypatch.setattr(base, "_end_process", ended.append)
    write()
    assert not write_lock().locked()
    assert [error.errno for error in ended] == [errno.EIO]
    assert Workspace.objects.count() == 1


def test_process_whose_disk_fails_ends_at_once(tmp_path: Path) -> None:
    """MSG-01: the process logs an error and exits with a code after which a service manager restarts it."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PARLEY_DATA": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/t.sqlite3",
    }
    command = [sys.executable, "-c", FAILING_DISK]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert ended.returncode == os.EX_IOERR
    assert "Cannot write to the disk: [Errno 5]" in ended.stderr
    assert ended.stdout == ""


def test_log_that_cannot_be_opened_is_reported_before_anything_is_written(
    threads: Callable[[Callable[[], object]], Future[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-01: without free descriptors, the write fails with an error and no row, and blocks no other writer."""

    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    write()
    log = log_of(str(connection.settings_dict["NAME"]))
    with monkeypatch.context() as patch:
        patch.setattr(log, "_file", -1)  # as in a process that has not written yet
        patch.setattr(os, "open", fail)
        with pytest.raises(DatabaseError, match="Too many open files"):
            write("B")
        assert not write_lock().locked()
    threads(lambda: write("C")).result(20)
    assert set(Workspace.objects.values_list("name", flat=True)) == {"W", "C"}


def test_log_is_opened_once(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-01: a commit needs no new descriptor, and notices when the log was replaced."""
    write()
    opened: list[str] = []
    really_open = os.open

    def noted(path: str, *args: int) -> int:
        opened.append(path)
        return really_open(path, *args)

    monkeypatch.setattr(os, "open", noted)
    write()
    write()
    assert opened == []
    log = log_of(str(connection.settings_dict["NAME"]))
    other = really_open(os.devnull, os.O_RDONLY)
    os.close(log._file)
    log._file = other  # another file than the log, as after the last connection was closed
    write()
    assert (opened, disk.syncs) == ([f"{connection.settings_dict['NAME']}-wal"], 4)


def test_many_writers_all_get_their_turn(threads: Callable[[Callable[[], object]], Future[object]]) -> None:
    """MSG-01: none of the forty transactions in each of eight threads is rejected."""

    def write_much() -> None:
        for _ in range(40):
            write()

    work = [threads(write_much) for _ in range(8)]
    for done in work:
        done.result(60)
    assert Workspace.objects.count() == 320


def test_database_without_a_log_is_left_to_sqlite() -> None:
    """Without a write-ahead log, here in memory, there is no log to sync, and commits still work."""
    wrapper = DatabaseWrapper({**connections["default"].settings_dict, "NAME": ":memory:"}, "memory")
    with closing(wrapper), wrapper.cursor() as cursor:
        cursor.execute("create table t (n integer)")
        with atomic_on(wrapper):
            cursor.execute("insert into t values (1)")
        cursor.execute("pragma synchronous")
        assert cursor.fetchone() == (2,)  # FULL, as set, because nothing else syncs this database
        cursor.execute("select n from t")
        assert cursor.fetchone() == (1,)


@contextmanager
def atomic_on(wrapper: DatabaseWrapper) -> Iterator[None]:
    wrapper._start_transaction_under_autocommit()
    yield
    wrapper._commit()
