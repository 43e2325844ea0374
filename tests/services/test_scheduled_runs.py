"""Runs of schedules: when they are sent, which missed ones are made up for, what is recorded, and why they pause."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from chat.errors import ServiceError
from chat.models import (
    ChatMessage,
    Membership,
    MessageStatus,
    Schedule,
    Session,
    Share,
    User,
    Webhook,
    WebhookDelivery,
)
from chat.queries.schedules import schedules_of
from chat.queries.turn_outcomes import Outcome
from chat.runs import lease
from chat.services.deletion import users
from chat.services.maintenance import scheduled_runs
from chat.services.maintenance.scheduled_runs import INTERVAL, bring_forward, check_schedules, settle, start_due
from chat.services.messages import editing, sending
from chat.services.messages.sending import send_message
from chat.services.sessions import actions, lifecycle, schedules, user_state
from chat.services.sessions.lifecycle import create_session
from tests.services.test_messages import together
from tests.services.test_schedules import DAILY, NOON, added, become_guest, due, end_turn, fresh, sent
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Reports")


def test_due_schedule_sends_its_message_in_run_mode(session: Session, ana: User) -> None:
    """RUN-19, MSG-09: the message is sent as the schedule's user with the schedule's id.

    Only its turn has the mode `run`.
    """
    row = due(added(session, ana))
    assert start_due(NOON + timedelta(seconds=3)) == 1
    marker, message = ChatMessage.objects.filter(session=session).order_by("sequence")
    assert (marker.type, marker.mode, marker.workflow_id) == ("turn_start", "run", row.pk)
    assert (message.text, message.user_id, message.sender) == ("Summarize the reports.", ana.pk, "Ana")
    assert (message.mode, message.workflow_id, message.turn_id) == ("run", row.pk, marker.turn_id)
    assert message.arguments == {"schedule": {"cron": DAILY, "zone": "UTC"}}
    assert Session.objects.get(pk=session.pk).mode == "agent"
    row = fresh(row)
    assert (row.next_at, row.last_message_id) == (datetime(2026, 11, 27, 9, tzinfo=UTC), message.pk)
    assert lease.is_work_due()


def test_draft_of_its_user_is_kept(session: Session, ana: User) -> None:
    """UI-09: a scheduled message does not clear a draft with the same text; only a message that the user sends does."""
    user_state.save_draft(session=session, user=ana, text="Sum")
    due(added(session, ana))
    assert start_due(NOON) == 1
    assert user_state.state_of(ana, session).draft == "Sum"


def test_webhooks_do_not_take_it_for_a_message_of_a_person(session: Session, ana: User) -> None:
    """HOOK-01: a scheduled message makes no event "message.sent" for webhooks; a user's message does."""
    Webhook.objects.create(workspace=session.workspace, url="https://example.com", events=["message.sent"])
    due(added(session, ana))
    assert start_due(NOON) == 1
    assert not WebhookDelivery.objects.exists()
    send_message(session=session, author=ana, text="Hello")
    assert WebhookDelivery.objects.count() == 1


def test_instant_is_sent_once(session: Session, ana: User) -> None:
    """RUN-19: the next check finds nothing to send, not even in a process with a slow clock."""
    due(added(session, ana))
    assert [start_due(NOON), start_due(NOON), start_due(NOON - timedelta(minutes=1))] == [1, 0, 0]


def test_schedule_runs_again_after_the_clock_was_wrong(session: Session, ana: User) -> None:
    """RUN-19: after a correction of the machine's clock, the next instant is that of the right time."""
    row = due(added(session, ana))
    assert start_due(NOON + timedelta(days=100)) == 1
    assert fresh(row).next_at == datetime(2027, 3, 7, 9, tzinfo=UTC)
    end_turn(session, MessageStatus.COMPLETE)
    check_schedules(NOON)
    assert fresh(row).next_at == datetime(2026, 11, 27, 9, tzinfo=UTC)
    assert [start_due(NOON), start_due(NOON + timedelta(days=1))] == [0, 1]
    assert [bring_forward(NOON + timedelta(days=1)), len(sent(session))] == [0, 2]


def test_schedule_that_was_changed_while_the_clock_was_wrong(session: Session, ana: User) -> None:
    """RUN-19: a schedule that has not run yet is corrected, too. Clocks that differ by minutes change nothing."""
    row = added(session, ana)
    Schedule.objects.filter(pk=row.pk).update(next_at=NOON + timedelta(days=99), updated_at=NOON + timedelta(days=98))
    assert bring_forward(NOON + timedelta(days=98, minutes=-50)) == 0
    assert [bring_forward(NOON), bring_forward(NOON)] == [1, 0]
    assert fresh(row).next_at == datetime(2026, 11, 27, 9, tzinfo=UTC)


def test_instant_that_was_sent_too_early_is_not_sent_again(session: Session, ana: User) -> None:
    """RUN-19: an instant is sent once, also if the clock was ahead when it was sent."""
    due(added(session, ana))
    tomorrow = NOON + timedelta(days=1)
    assert start_due(tomorrow) == 1
    end_turn(session, MessageStatus.COMPLETE)
    check_schedules(NOON)
    start_due(tomorrow)
    assert len(sent(session)) == 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_look_at_once_send_one_message(ana: User) -> None:
    """RUN-19: the transaction that sends also claims the instant, so parallel checks send one message."""
    sessions = [create_session(owner=ana, title=f"Reports {number}") for number in range(3)]
    rows = [due(added(session, ana)) for session in sessions]
    counts = together(*[lambda: start_due(NOON)] * 4)
    assert sum(count for count in counts if isinstance(count, int)) == 3
    assert [len(sent(session)) for session in sessions] == [1, 1, 1]
    assert {fresh(row).next_at for row in rows} == {datetime(2026, 11, 27, 9, tzinfo=UTC)}


@pytest.mark.django_db(transaction=True)
def test_change_at_the_instant_neither_doubles_nor_blocks(ana: User) -> None:
    """RUN-19: an edit of a schedule during its start waits for the start, or the start waits for the edit."""
    session = create_session(owner=ana, title="Reports")
    row = due(added(session, ana))

    def edit() -> Schedule:
        return schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, text="Now")

    assert len(together(lambda: start_due(NOON), edit, lambda: start_due(NOON))) == 3
    assert len(sent(session)) == 1
    assert fresh(row).text == "Now"


def test_after_an_outage_the_last_missed_instant_runs(session: Session, ana: User) -> None:
    """RUN-19: after an outage, the last missed instant runs once, and the earlier ones do not run."""
    row = due(added(session, ana, cron="0 */6 * * *"), NOON - timedelta(days=3))
    assert start_due(NOON + timedelta(hours=1)) == 1
    (message,) = sent(session)
    assert message.idempotency_key == f"schedule:{row.pk}:20261126T120000Z"
    assert fresh(row).next_at == NOON + timedelta(hours=6)
    assert start_due(NOON + timedelta(hours=1)) == 0


def test_crash_after_the_message_leaves_nothing_to_send_again(
    session: Session, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-19: the message and the claim are stored together or not at all."""
    row = due(added(session, ana))

    def crash(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(scheduled_runs, "record_run", crash)
    assert start_due(NOON) == 0
    assert (sent(session), fresh(row).next_at) == ([], NOON)
    monkeypatch.undo()
    assert start_due(NOON) == 1


def test_message_waits_while_a_turn_runs_and_one_is_enough(session: Session, ana: User) -> None:
    """RUN-19: the message is queued like a user's. Further instants add none until it is delivered."""
    send_message(session=session, author=ana, text="Hi")
    row = due(added(session, ana))
    assert start_due(NOON) == 1
    assert [(each.text, each.status) for each in sent(session)][1:] == [("Summarize the reports.", "queued")]
    assert not ChatMessage.objects.for_break(session.pk).exists()
    due(row, NOON + timedelta(days=1))
    assert start_due(NOON + timedelta(days=1)) == 0
    assert len(sent(session)) == 2
    assert fresh(row).next_at == NOON + timedelta(hours=45)


def test_run_is_noted_and_five_failures_in_a_row_pause(session: Session, ana: User) -> None:
    """RUN-19: five failures in a row pause the schedule.

    A success resets the count, and a user turns the schedule on again.
    """
    row = added(session, ana)
    for number, status in enumerate(["failed", "failed", "complete", *["failed"] * 5]):
        at = NOON + timedelta(days=number)
        due(row, at)
        assert start_due(at) == 1
        assert [listed.outcome for listed in schedules_of(session)] == ["running"]
        end_turn(session, status)
        settle()
    row = fresh(row)
    assert (row.is_on, row.paused, row.next_at, row.failures, row.last_outcome) == (
        False,
        "failures",
        None,
        5,
        "failed",
    )
    row = schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, is_on=True)
    assert (row.is_on, row.paused, row.failures) == (True, "", 0)
    assert row.next_at is not None


def test_run_now_counts_the_failure_of_the_run_before(session: Session, ana: User) -> None:
    """RUN-19: a failure counts even if a user starts the next run before the end of the last one is recorded."""
    row = added(session, ana)
    for _ in range(5):
        schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
        end_turn(session, "failed")
    settle()
    assert (fresh(row).failures, fresh(row).paused) == (5, "failures")


def test_refused_message_counts_as_a_failure(session: Session, ana: User) -> None:
    """RUN-19: a quota or a full disk counts as a failure, is shown, and does not affect other schedules."""
    other = create_session(owner=person("Cy"), title="Other")
    rows = [due(added(session, ana)), due(added(other, other.owner))]
    with pytest.MonkeyPatch.context() as patch:
        refuse_for(patch, ana)
        assert start_due(NOON) == 1
    row = fresh(rows[0])
    assert (row.last_outcome, row.last_error, row.failures) == ("refused", "quota_exceeded", 1)
    assert (row.last_message_id, sent(session), len(sent(other))) == ("", [], 1)


def refuse_for(patch: pytest.MonkeyPatch, user: User) -> None:
    def require_turn(author: User, *, starts: bool = True) -> None:
        if author.pk == user.pk:
            raise ServiceError("quota_exceeded", "Enough.")

    patch.setattr(sending, "require_turn", require_turn)


def test_stopped_run_is_no_failure(session: Session, ana: User) -> None:
    """RUN-19: a run that a user stopped is not a failure."""
    row = due(added(session, ana))
    start_due(NOON)
    end_turn(session, "interrupted")
    settle()
    assert (fresh(row).last_outcome, fresh(row).failures) == ("interrupted", 0)


def test_deleted_message_is_noted(session: Session, ana: User) -> None:
    """RUN-19: if the message is deleted, the recorded run no longer links to it."""
    row = due(added(session, ana))
    start_due(NOON)
    end_turn(session, "complete")
    editing.remove(session=session, author=ana, message_id=fresh(row).last_message_id)
    settle()
    (listed,) = schedules_of(session)
    assert (listed.outcome, listed.has_message) == (Outcome.WITHDRAWN, False)


def lose_share(session: Session, bo: User) -> None:
    Share.objects.filter(session=session, user=bo).delete()


def become_viewer(session: Session, bo: User) -> None:
    let_in(session, bo, "viewer")


def leave_workspace(_session: Session, bo: User) -> None:
    Membership.objects.filter(user=bo).delete()


def close_account(_session: Session, bo: User) -> None:
    users.close_account(bo, None)


@pytest.mark.parametrize("happens", [lose_share, become_viewer, become_guest, leave_workspace, close_account])
def test_schedule_pauses_when_its_user_loses_access(
    session: Session, bo: User, happens: Callable[[Session, User], None]
) -> None:
    """RUN-19, LIVE-06: no message is sent in the name of a user who could not send it."""
    let_in(session, bo, "editor")
    row = due(added(session, bo))
    happens(session, bo)
    assert start_due(NOON) == 0
    row = fresh(row)
    assert (row.is_on, row.paused, row.next_at, sent(session)) == (False, "access", None, [])


@pytest.mark.parametrize(("action", "reason"), [("archive", "archived"), ("delete", "deleted")])
def test_schedule_pauses_with_its_session(session: Session, ana: User, action: str, reason: str) -> None:
    """RUN-19: the schedule pauses with its session, and stays paused when the session is restored."""
    row = due(added(session, ana))
    actions.apply_action(user=ana, action=actions.SessionAction(action), session_ids=[session.pk])
    assert start_due(NOON) == 0
    assert (fresh(row).paused, fresh(row).is_on, sent(session)) == (reason, False, [])


def test_row_that_cannot_be_read_pauses_and_others_run(session: Session, ana: User) -> None:
    """RUN-19: a schedule with an unknown time zone pauses, and other schedules run."""
    bad, good = due(added(session, ana)), due(added(create_session(owner=ana, title="B"), ana))
    Schedule.objects.filter(pk=bad.pk).update(zone="Europe/Atlantis")
    assert start_due(NOON) == 1
    assert (fresh(bad).paused, fresh(good).paused) == ("invalid", "")


def test_look_says_when_the_next_one_is_due(session: Session, ana: User) -> None:
    """RUN-19: the next check is at the due instant, and at least every ten seconds, because another process may add a
    schedule."""
    assert check_schedules() == INTERVAL
    row = added(session, ana)
    due(row, timezone.now() + timedelta(hours=1))
    assert check_schedules() == INTERVAL
    due(row, timezone.now() + timedelta(seconds=4))
    assert 0 < check_schedules() < 4.5
    due(row, timezone.now() - timedelta(seconds=1))
    check_schedules()
    assert len(sent(session)) == 1


def test_scheduled_message_is_for_the_agent_of_a_team(session: Session, ana: User, bo: User) -> None:
    """RUN-19: the agent answers a scheduled message even if it otherwise answers only mentions."""
    let_in(session, bo, "editor")
    lifecycle.configure(session=session, author=ana, replies="mentions")
    due(added(session, ana))
    start_due(NOON)
    (message,) = sent(session)
    assert (message.for_agent, bool(message.turn_id)) == (True, True)
