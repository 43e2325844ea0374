"""Claims, epochs and leases, tested directly on the rows: which worker may run a session."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from chat import ids
from chat.bus import wakeups
from chat.bus.wakeups import Wakeup
from chat.models import ChatMessage, RunState, Session, SessionRun, User, Worker
from chat.runner.resume import open_claim, read_open_turn
from chat.runs import lease
from chat.runs.changes import CloseTurn, InsertMessage
from chat.runs.lease import Claim
from chat.services.messages.sending import send_message
from chat.services.runs.control import cancel
from chat.services.runs.recording import Job, Outcome, record
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person
from tests.support.workers import declare_dead, expire

pytestmark = pytest.mark.django_db


def due(ana: User) -> Session:
    session = create_session(owner=ana)
    send_message(session=session, author=ana, text="Hi")
    return session


def close(claim: Claim) -> bool:
    """End the turn; return False if the claim is lost."""
    done = InsertMessage(ids.message_id(), "turn_done", {"type": "turn_done"})
    number = SessionRun.objects.get(pk=claim.session_id).written + 1
    return record([Job(claim, number, [done, CloseTurn()])], []).jobs[0].outcome is Outcome.WRITTEN


def test_only_work_that_is_due_is_claimed(ana: User) -> None:
    """RUN-01: a due session is claimed once, with the first epoch. Idle sessions are not claimed."""
    create_session(owner=ana)
    worker = lease.register_worker()
    assert not lease.is_work_due()
    session = due(ana)
    assert lease.is_work_due()
    assert lease.claim(worker, 10) == [Claim(session.pk, 1, worker)]
    assert lease.claim(worker, 10) == lease.claim(lease.register_worker(), 10) == []
    assert not lease.is_work_due()


def test_claims_are_a_few_at_a_time(ana: User) -> None:
    """RUN-15: a worker claims a few sessions at a time, so that several workers share the work."""
    sessions = {due(ana).pk for _ in range(5)}
    worker = lease.register_worker()
    batches = [lease.claim(worker, 2) for _ in range(4)]
    assert [len(batch) for batch in batches] == [2, 2, 1, 0]
    assert {claim.session_id for batch in batches for claim in batch} == sessions


def test_session_that_has_waited_longest_is_claimed_first(ana: User) -> None:
    """RUN-15: sessions are claimed in the order of their first unserved request.

    Further requests do not change the order.
    """
    sessions = [due(ana) for _ in range(4)]
    for age, session in enumerate(sessions):
        SessionRun.objects.filter(pk=session.pk).update(due_since=F("due_since") - timedelta(hours=age))
    lease.request(sessions[3].pk)
    worker = lease.register_worker()
    claimed = [claim.session_id for _ in range(4) for claim in lease.claim(worker, 1)]
    assert claimed == [session.pk for session in reversed(sessions)]


def test_session_that_was_served_waits_from_its_next_request_on(ana: User) -> None:
    """RUN-15: a session that ran for an hour is not served before sessions that were requested during that hour."""
    session, worker = due(ana), lease.register_worker()
    SessionRun.objects.filter(pk=session.pk).update(due_since=F("due_since") - timedelta(hours=1))
    (claim,) = lease.claim(worker, 1)
    assert close(claim)
    other = due(ana)
    send_message(session=session, author=ana, text="Again")
    assert [claim.session_id for claim in lease.claim(worker, 2)] == [other.pk, session.pk]


def test_worker_whose_lease_is_over_claims_nothing(ana: User) -> None:
    """RUN-15: a worker that was suspended past its lease claims nothing until it renews, because others may declare it
    dead."""
    due(ana)
    worker = lease.register_worker()
    expire(worker)
    assert lease.claim(worker, 10) == lease.claim("w_unknown", 10) == []
    assert lease.renew(worker)
    assert len(lease.claim(worker, 10)) == 1


def test_session_of_a_dead_worker_is_taken_over_with_a_higher_epoch(ana: User) -> None:
    """RUN-15: after a takeover, the old claim cannot write."""
    session, first, second = due(ana), lease.register_worker(), lease.register_worker()
    (old,) = lease.claim(first, 10)
    assert lease.claim(second, 10) == []
    declare_dead(first)
    assert lease.is_work_due()
    (new,) = lease.claim(second, 10)
    assert new == Claim(session.pk, old.epoch + 1, second)
    assert open_claim(old, 0.0) is None
    assert not close(old)
    assert close(new)
    assert ChatMessage.objects.filter(session=session, type="turn_done").count() == 1


def test_worker_that_gave_a_sign_of_life_is_not_taken_over(ana: User) -> None:
    """RUN-15: the decision that a worker is dead and the takeover are one compare-and-set."""
    due(ana)
    worker = lease.register_worker()
    lease.claim(worker, 10)
    seen = lease.other_workers("")[worker]
    expire(worker)  # any change shows that the worker lives
    assert not lease.take_over(worker, seen)
    assert not lease.take_over("w_unknown", seen)
    assert SessionRun.objects.get().owner_id == worker
    assert lease.take_over(worker, lease.other_workers("")[worker])
    assert not Worker.objects.exists()


def test_late_lease_is_renewed_unless_other_workers_have_the_sessions() -> None:
    """RUN-15: a database outage that affects all workers costs no turn."""
    worker = lease.register_worker()
    expire(worker)
    before = Worker.objects.get(pk=worker).lease_until
    assert lease.renew(worker)
    assert Worker.objects.get(pk=worker).lease_until > before
    declare_dead(worker)
    assert not lease.renew(worker)
    assert not lease.renew("w_unknown")


def test_worker_that_retires_gives_its_sessions_back(ana: User) -> None:
    """RUN-15: a retiring worker returns its sessions immediately.

    The next claim has a new epoch and no failed attempt.
    """
    session, worker = due(ana), lease.register_worker()
    lease.claim(worker, 10)
    lease.release_worker(worker)
    assert not Worker.objects.filter(pk=worker).exists()
    second = lease.register_worker()
    assert lease.claim(second, 10) == [Claim(session.pk, 2, second)]
    assert SessionRun.objects.get().attempts == 1


def test_workspaces_take_turns_when_more_is_due_than_a_worker_takes(ana: User) -> None:
    """RUN-01: the backlog of one workspace does not delay the others."""
    backlog = [due(ana) for _ in range(6)]
    late = due(person("Zoe"))
    for age, session in enumerate(reversed(backlog), start=1):
        SessionRun.objects.filter(pk=session.pk).update(due_since=F("due_since") - timedelta(hours=age))
    claimed = [claim.session_id for claim in lease.claim(lease.register_worker(), 3)]
    assert sorted(claimed) == sorted([backlog[0].pk, backlog[1].pk, late.pk])


def test_workspaces_take_turns_when_places_become_free_one_by_one(ana: User) -> None:
    """RUN-01: the workspace with the fewest running sessions is next, however old and long the backlog of another one
    is."""
    backlog = [due(ana) for _ in range(30)]
    zoe = person("Zoe")
    late = [due(zoe) for _ in range(2)]
    worker = lease.register_worker()
    claimed = [claim.session_id for _ in range(5) for claim in lease.claim(worker, 1)]
    assert claimed == [backlog[0].pk, late[0].pk, backlog[1].pk, late[1].pk, backlog[2].pk]


def test_session_that_is_handed_over_does_not_count_as_failed(ana: User) -> None:
    """RUN-15: a handover is not a failed attempt; only turns that make processes fail are given up."""
    session, worker = due(ana), lease.register_worker()
    for _ in range(5):
        (claim,) = lease.claim(worker, 1)
        lease.give_back(claim, failed=False)
    assert SessionRun.objects.get(pk=session.pk).attempts == 0


def test_claim_is_given_back_by_its_holder_alone(ana: User) -> None:
    """RUN-15: an old claim cannot give back the new one."""
    due(ana)
    first, second = lease.register_worker(), lease.register_worker()
    (old,) = lease.claim(first, 10)
    declare_dead(first)
    (new,) = lease.claim(second, 10)
    lease.give_back(old)
    lease.give_back(Claim(new.session_id, new.epoch, "w_another"))
    third = lease.register_worker()
    assert lease.claim(third, 10) == []
    lease.give_back(new)
    assert lease.claim(third, 10) == [Claim(new.session_id, 3, third)]


def test_owned_session_is_adopted_once(ana: User) -> None:
    """RUN-15: a worker adopts a session whose claim it never learned of. The adoption has the rights of any claim."""
    session, worker = due(ana), lease.register_worker()
    (claim,) = lease.claim(worker, 1)
    adopted = lease.adopt(claim)
    assert adopted == Claim(session.pk, 2, worker)
    assert lease.adopt(claim) is None
    assert lease.adopt(Claim(session.pk, 2, "w_another")) is None
    assert not close(claim)
    assert close(adopted)


def test_request_that_comes_while_a_claim_runs_is_not_lost(ana: User) -> None:
    """RUN-06: requests that arrive while a claim runs are served before the session is released."""
    session, worker = due(ana), lease.register_worker()
    (claim,) = lease.claim(worker, 10)
    send_message(session=session, author=ana, text="More")
    assert close(claim)
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.owner_id) == ("running", worker)
    assert close(claim)
    run.refresh_from_db()
    assert (run.state, run.owner_id, run.done) == ("idle", None, run.wanted)


def test_epoch_alone_opens_nothing(ana: User) -> None:
    """RUN-15: the epoch alone does not open a claim, because after a failover another worker may have the same
    epoch."""
    due(ana)
    (claim,) = lease.claim(lease.register_worker(), 10)
    for opening in (open_claim, read_open_turn):
        assert opening(replace(claim, worker_id=lease.register_worker()), 0.0) is None
        assert opening(claim, 0.0) is not None


def test_claim_without_work_is_given_back(ana: User) -> None:
    """RUN-15: a claim is given back if the session was requested but has no open turn and no queued message."""
    session, worker = create_session(owner=ana), lease.register_worker()
    lease.request(session.pk)
    (claim,) = lease.claim(worker, 10)
    assert open_claim(claim, 0.0) is None
    assert not lease.is_work_due()


def test_stop_is_found_by_the_worker_that_owns_the_run(ana: User) -> None:
    """RUN-07: the owner's heartbeat finds a stop that any process has written."""
    session, worker = due(ana), lease.register_worker()
    (claim,) = lease.claim(worker, 10)
    turn = SessionRun.objects.get(pk=session.pk).turn_id
    assert lease.run_rows(worker, []) == {session.pk: lease.RunRow(1, worker, RunState.RUNNING, turn)}
    cancel(session=session, author=ana)
    assert lease.run_rows(worker, []) == {session.pk: lease.RunRow(1, worker, RunState.CANCELLING, turn)}
    lease.give_back(claim)
    assert lease.run_rows(worker, []) == {}
    assert lease.run_rows(worker, [session.pk])[session.pk].owner is None


def at_once(*works: Callable[[], object]) -> None:
    """Run functions in threads that start together, and raise their errors here."""
    start, failures = threading.Barrier(len(works)), []

    def do(work: Callable[[], object]) -> None:
        start.wait(20)
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=do, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_worker_locks_only_what_it_claims(ana: User) -> None:
    """RUN-15: a worker locks only the rows that it claims, because others skip locked rows and do not retry
    immediately."""
    sessions = [due(ana).pk for _ in range(5)]
    claimed, looked = threading.Event(), threading.Event()
    claims, free = list[Claim](), list[str]()

    def claim() -> None:
        with transaction.atomic():
            claims.extend(lease.claim(lease.register_worker(), 2))
            claimed.set()
            assert looked.wait(20)

    def look() -> None:
        assert claimed.wait(20)
        with transaction.atomic():
            runs = SessionRun.objects.filter(pk__in=sessions).select_for_update(skip_locked=True)
            free.extend(run.pk for run in runs)
        looked.set()

    at_once(claim, look)
    assert {claim.session_id for claim in claims} | set(free) == set(sessions)
    assert len(claims) == 2


@pytest.mark.django_db(transaction=True)
def test_no_session_is_claimed_twice_at_once(ana: User) -> None:
    """RUN-15: eight workers that claim at the same time get each session once."""
    sessions = {due(ana).pk for _ in range(12)}
    claims: list[Claim] = []

    def work() -> None:
        worker = lease.register_worker()
        while some := lease.claim(worker, 2):
            claims.extend(some)

    at_once(*[work] * 8)
    assert Counter(claim.session_id for claim in claims) == Counter(sessions)
    assert {claim.epoch for claim in claims} == {1}


@pytest.mark.django_db(transaction=True)
def test_epochs_only_grow_and_never_repeat(ana: User) -> None:
    """RUN-15: workers lose, give back and take over claims at random.

    There is one holder at a time, each with its own epoch.
    """
    session = due(ana)
    claims: list[Claim] = []
    written: list[int] = []

    def work() -> None:
        chance, worker = random.Random(), lease.register_worker()
        for _ in range(10):
            for claim in lease.claim(worker, 5):
                claims.append(claim)
                marker = InsertMessage(f"m_{claim.epoch}", "message_updated", {"type": "text", "role": "system"})
                if record([Job(claim, 1, [marker])], []).jobs[0].outcome is Outcome.WRITTEN:
                    written.append(claim.epoch)
                if chance.random() < 0.5:
                    lease.give_back(claim)
                else:
                    declare_dead(worker)
            if not lease.renew(worker):
                worker = lease.register_worker()

    at_once(*[work] * 4)
    epochs = [claim.epoch for claim in claims]
    assert sorted(epochs) == list(range(1, len(epochs) + 1))
    kept = ChatMessage.objects.filter(session=session, role="system").order_by("sequence")
    assert [int(row.pk[2:]) for row in kept] == sorted(written)


@pytest.mark.django_db(transaction=True)
def test_no_message_is_left_behind_when_a_turn_ends(ana: User) -> None:
    """RUN-06: users send while turns end in other threads.

    No message stays queued in an idle session, and all are answered.
    """
    session, worker = due(ana), lease.register_worker()
    sent, wake = threading.Event(), threading.Event()

    def take(_: Wakeup) -> bool:
        wake.set()
        return True

    unsubscribe = wakeups.listen(take)

    def serve() -> None:
        while not sent.is_set() or lease.is_work_due():
            wake.wait(1)
            wake.clear()
            for claim in lease.claim(worker, 1):
                opening = open_claim(claim, 0.0)
                while opening is not None and close(claim):
                    opening = opening if SessionRun.objects.get(pk=session.pk).owner_id else None

    def talk() -> None:
        for number in range(15):
            send_message(session=session, author=ana, text=f"{number}")

    def talk_all() -> None:
        try:
            at_once(talk, talk, talk)
        finally:
            sent.set()
            wake.set()

    at_once(serve, talk_all)
    unsubscribe()
    run = SessionRun.objects.get(pk=session.pk)
    rows = ChatMessage.objects.filter(session=session)
    assert (run.state, run.done) == ("idle", run.wanted)
    assert not rows.filter(status="queued").exists()
    assert rows.filter(type="text", sequence__isnull=False).count() == 46
    assert rows.filter(type="turn_start").count() == rows.filter(type="turn_done").count()


def test_finding_work_reads_no_sessions_at_rest(ana: User) -> None:
    """RUN-01: the queries for due and for owned sessions use indexes that leave out sessions at rest."""
    made = Session.objects.bulk_create(Session(owner=ana, workspace=ana.workspaces.get()) for _ in range(2000))
    SessionRun.objects.bulk_create(SessionRun(session=each, wanted=3, done=3) for each in made)
    worker = lease.register_worker()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    assert "run_due" in plan(lease.is_work_due)
    assert "run_due" in plan(lambda: lease.claim(worker, 20))
    assert "run_by_owner" in plan(lambda: lease.run_rows(worker, []))


def plan(ask: Callable[[], object]) -> str:
    """Return the plan of the one query that a function runs."""
    with CaptureQueriesContext(connection) as captured:
        ask()
    (sql,) = [query["sql"] for query in captured.captured_queries if query["sql"].startswith("SELECT")]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN' if connection.vendor == 'sqlite' else ''} {sql}")
        return str(cursor.fetchall())
