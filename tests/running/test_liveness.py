"""How workers are declared dead: by their locks and their leases, never by comparing clocks."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from django.db import connection

from chat.models import User
from chat.runs import lease
from chat.runs.lease import Renewal
from chat.runs.lease_keeper import LeaseKeeper
from chat.runs.liveness import AdvisoryLock, FileLock, Watch
from chat.services.messages.sending import send_message
from chat.services.sessions.lifecycle import create_session
from tests.running.claims_machine import SimulatedLock
from tests.support.database import maintenance

SIGN = Renewal(datetime(2026, 1, 1, tzinfo=UTC), 10.0)
LATER = Renewal(SIGN.lease_until + timedelta(seconds=2), 10.0)
# A time written by a clock that was an hour ahead.
AHEAD = Renewal(SIGN.lease_until + timedelta(hours=1), 10.0)
HOLDER = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def dead(watch: Watch, now: float, *signs: tuple[str, Renewal], free: tuple[str, ...] = ()) -> set[str]:
    return set(watch.find_dead(dict(signs), free, began=now, ended=now))


@pytest.mark.parametrize("sign", [SIGN, AHEAD])
def test_worker_without_a_sign_for_its_lease_is_dead(sign: Renewal) -> None:
    """RUN-15: the lease counts from when it was first seen, whatever time it names."""
    watch = Watch(gap=6.0, grace=1.0)
    for now in (0.0, 5.0, 9.9):
        assert dead(watch, now, ("w", sign)) == set()
    assert dead(watch, 10.0, ("w", sign)) == {"w"}


def test_any_change_is_a_sign_of_life() -> None:
    """RUN-15: any change is a sign of life, even from a worker whose database clock was set back."""
    watch = Watch(gap=6.0, grace=1.0)
    for now, sign in ((0.0, LATER), (5.0, SIGN), (10.0, SIGN), (14.9, SIGN)):
        assert dead(watch, now, ("w", sign)) == set()
    assert dead(watch, 15.0, ("w", SIGN)) == {"w"}


def test_worker_that_could_not_check_declares_no_other_dead() -> None:
    """RUN-15: after an outage or a slow check no worker is declared dead, because the other workers may have been
    affected too."""
    watch = Watch(gap=6.0, grace=1.0)
    dead(watch, 0.0, ("w", SIGN), free=("w",))
    assert dead(watch, 30.0, ("w", SIGN), free=("w",)) == set()
    assert watch.find_dead({"w": SIGN}, {"w"}, began=30.5, ended=45.0) == {}
    assert dead(watch, 45.5, ("w", SIGN), free=("w",)) == set()


def test_worker_whose_lock_is_free_for_a_while_is_dead() -> None:
    """RUN-15: a worker is dead if its lock stays free for a while, unless it takes the lock again or shows a sign of
    life."""
    watch = Watch(gap=6.0, grace=1.0)
    assert dead(watch, 0.0, ("w", SIGN), free=("w",)) == set()
    assert dead(watch, 0.9, ("w", SIGN)) == set()
    assert dead(watch, 1.0, ("w", SIGN), free=("w",)) == set()
    assert dead(watch, 1.9, ("w", LATER), free=("w",)) == set()
    assert dead(watch, 2.8, ("w", LATER), free=("w",)) == set()
    assert dead(watch, 2.9, ("w", LATER), free=("w",)) == {"w"}


def test_process_that_has_ended_lets_go_of_its_file(tmp_path: Path) -> None:
    """RUN-15: the operating system releases the lock on the file, however the process ended."""
    lock = FileLock(tmp_path / "parley.sqlite3")
    lock.hold("w_mine")
    path = tmp_path / "parley.sqlite3.workers" / "w_other"
    with Popen([sys.executable, "-c", HOLDER, str(path)], stdin=PIPE, stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert lock.free(["w_mine", "w_other", "w_unknown"]) == set()
        other.kill()
        other.wait(20)
    assert lock.free(["w_mine", "w_other", "w_unknown"]) == {"w_other"}
    lock.forget("w_other")
    assert lock.free(["w_other"]) == set()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_worker_that_cannot_write_its_file_continues(tmp_path: Path) -> None:
    """RUN-15: a worker that cannot write its lock file relies on its lease."""
    (tmp_path / "parley.sqlite3.workers").write_text("no folder")
    lock = FileLock(tmp_path / "parley.sqlite3")
    lock.hold("w_mine")
    assert lock.free(["w_mine"]) == set()
    lock.release()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_connection_that_ends_lets_go_of_its_lock() -> None:
    """RUN-15: the server releases the lock of a closed connection. A lock that was taken twice needs one release."""
    lock = AdvisoryLock(0.0)
    lock.hold("w_mine")
    lock.hold("w_mine")
    assert lock.free(["w_mine", "w_other"]) == {"w_other"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (mine,) = cursor.fetchone()
    with maintenance() as server:
        server.execute("SELECT pg_terminate_backend(%s, 10000)", [mine])
    connection.close()
    assert lock.free(["w_mine", "w_other"]) == {"w_mine", "w_other"}
    connection.close()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_free_locks_prove_nothing_after_a_restart_of_the_database() -> None:
    """RUN-15: after a restart of the database, free locks are ignored until the workers have had time to reconnect."""
    assert AdvisoryLock(10**6).free(["w_other"]) == set()


@pytest.mark.both_databases
@pytest.mark.django_db
def test_dead_worker_is_found_between_two_beats(ana: User) -> None:
    """RUN-15: a dead worker is found between two heartbeats, and the next heartbeat reports that its sessions are
    due."""
    now = 0.0
    keepers = [LeaseKeeper(SimulatedLock(), clock=lambda: now) for _ in range(2)]
    survivor, victim = keepers
    assert [keeper.beat({}).freed for keeper in keepers] == [False, False]
    session = create_session(owner=ana)
    send_message(session=session, author=ana, text="Hi")
    assert len(lease.claim(victim.worker_id, 1)) == 1
    assert not survivor.free_dead_workers()
    assert survivor.has_others
    SimulatedLock.free_ones.add(victim.worker_id)
    assert not survivor.free_dead_workers()
    now += survivor.grace + 0.1
    assert survivor.free_dead_workers()
    assert lease.is_work_due()
    assert [survivor.beat({}).freed, survivor.beat({}).freed] == [True, False]
    assert not survivor.has_others
