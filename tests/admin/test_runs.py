"""Workers and runs in the admin: their contents, and the actions that operators confirm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Session, SessionRun, User, Worker
from chat.runs import lease
from chat.services.messages import sending
from tests.admin.pages import said, soup_of
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
RUNS = reverse("admin:chat_sessionrun_changelist")
WORKERS = reverse("admin:chat_worker_changelist")


@pytest.fixture
def operator(staff_with: Callable[..., User]) -> Client:
    return signed_in(staff_with("view_worker", "change_worker", "view_sessionrun", "change_sessionrun", name="ona"))


@pytest.fixture
def worker(db: None) -> str:
    return lease.register_worker()


@pytest.fixture
def running(session: Session, worker: str) -> Session:
    """A session whose turn the worker runs."""
    sending.send_message(session=session, author=session.owner, text="Secret words")
    lease.claim(worker, 10)
    SessionRun.objects.filter(pk=session.pk).update(turn_started_at=timezone.now() - timedelta(minutes=5), attempts=2)
    return session


def act(client: Client, address: str, action: str, *pks: str, sure: bool = False) -> Any:
    data = {"action": action, "_selected_action": list(pks), **({"sure": "yes"} if sure else {})}
    return client.post(address, data, follow=True)


def cells(page: Any) -> list[list[str]]:
    rows = soup_of(page).select("#result_list tbody tr")
    return [[" ".join(cell.get_text(" ").split()) for cell in row.select("td, th")][1:] for row in rows]


def log() -> list[tuple[str | None, str]]:
    return list(LogEntry.objects.order_by("pk").values_list("object_id", "change_message"))


def test_workers_show_what_they_do(operator: Client, running: Session, worker: str) -> None:
    """OPS-08: the list shows which workers are alive and how many places they have."""
    dead = Worker.objects.create(label="gone 7", lease_until=timezone.now() - timedelta(minutes=3))

    (first, second) = cells(operator.get(WORKERS))

    assert first[0].endswith(f"({worker})")
    assert first[1:4] == ["working", "1", "2000"]
    assert first[5] == "just now"
    assert (second[0], second[1], second[5]) == (f"gone 7 ({dead.pk})", "no heartbeat", "3 minutes ago")


def test_runs_show_age_attempts_and_worker_but_no_words(operator: Client, running: Session, session: Session) -> None:
    """OPS-08, ADM-01: titles are hidden, because operators need not read conversations and a title may quote one."""
    page = operator.get(RUNS)

    (row,) = cells(page)
    label = Worker.objects.get().label
    assert row == [running.pk, "running", "5 minutes", "—", "2", label]
    assert "Secret" not in said(page)
    assert "Plan" not in said(page)


def test_run_that_no_worker_takes_says_since_when(operator: Client, session: Session) -> None:
    """OPS-08: the waiting time of a run is the first sign that workers are missing."""
    sending.send_message(session=session, author=session.owner, text="Hello?")
    SessionRun.objects.filter(pk=session.pk).update(due_since=timezone.now() - timedelta(minutes=2))

    (row,) = cells(operator.get(RUNS))

    assert row[3:] == ["2 minutes", "0", "—"]


def test_worker_is_drained_when_that_is_confirmed(operator: Client, worker: str) -> None:
    """OPS-08: draining a worker needs a confirmation, is logged, and can be undone."""
    page = act(operator, WORKERS, "drain", worker)
    assert "The workers take no more sessions" in said(page)
    assert not Worker.objects.get().draining

    act(operator, WORKERS, "drain", worker, sure=True)

    assert lease.is_drained(worker)
    assert cells(operator.get(WORKERS))[0][1] == "draining"
    act(operator, WORKERS, "undrain", worker)
    assert not lease.is_drained(worker)
    assert log() == [(worker, "Drained the worker."), (worker, "Let the worker take sessions again.")]


def test_run_is_handed_over_when_that_is_confirmed(operator: Client, running: Session, worker: str) -> None:
    """OPS-08: the worker reads the request at its next heartbeat."""
    assert "Nothing is lost" in said(act(operator, RUNS, "hand_over", running.pk))
    assert not lease.run_rows(worker, [])[running.pk].is_leaving

    act(operator, RUNS, "hand_over", running.pk, sure=True)

    assert lease.run_rows(worker, [])[running.pk].is_leaving
    assert log() == [(running.pk, "Requested a handover to another worker.")]


def test_turn_is_closed_when_that_is_confirmed(operator: Client, running: Session, worker: str) -> None:
    """OPS-08: the turn is stopped and taken from its worker, which may hang."""
    assert "Partial answers are kept" in said(act(operator, RUNS, "close", running.pk))
    assert SessionRun.objects.get().owner_id == worker

    act(operator, RUNS, "close", running.pk, sure=True)

    run = SessionRun.objects.get()
    assert (run.state, run.owner_id, run.stopped_by.username if run.stopped_by else "") == ("cancelling", None, "ona")
    assert log() == [(running.pk, "Closed the turn.")]
    other = lease.register_worker()
    assert lease.claim(worker, 1) == []
    assert [claim.session_id for claim in lease.claim(other, 1)] == [running.pk]


def test_what_cannot_be_changed_is_said(operator: Client, session: Session) -> None:
    """OPS-08: a turn without a worker cannot be handed over, and the page reports it."""
    sending.send_message(session=session, author=session.owner, text="Hello?")

    assert "None of the selected items" in said(act(operator, RUNS, "hand_over", session.pk))


def test_staff_without_the_permission_only_look(staff_with: Callable[..., User], running: Session, worker: str) -> None:
    """OPS-08: viewing and changing have separate permissions."""
    kim = signed_in(staff_with("view_worker", "view_sessionrun", name="kim"))

    for address, action, pk in ((WORKERS, "drain", worker), (RUNS, "close", running.pk)):
        assert kim.get(address).status_code == 200
        act(kim, address, action, pk, sure=True)
    assert (Worker.objects.get().draining, SessionRun.objects.get().state) == (False, "running")
    assert log() == []
