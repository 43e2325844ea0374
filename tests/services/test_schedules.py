"""Schedules: who may do what with them, when they are sent, what is made up for, and why they pause."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.errors import ServiceError
from chat.models import (
    ChatMessage,
    Membership,
    MessageRole,
    MessageType,
    Schedule,
    Session,
    SessionRun,
    Share,
    User,
    Workspace,
)
from chat.queries.schedules import schedules_of
from chat.queries.turn_outcomes import Outcome
from chat.runs import lease
from chat.services.deletion import purging, users
from chat.services.maintenance import scheduled_runs
from chat.services.maintenance.scheduled_runs import INTERVAL, look, settle, start_due
from chat.services.messages import editing, sending
from chat.services.messages.sending import send_message
from chat.services.sessions import actions, forking, lifecycle, retention, schedules
from chat.services.sessions.lifecycle import create_session
from tests.services.test_messages import together
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
DAILY = "0 9 * * *"


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Reports")


def added(session: Session, author: User, *, cron: str = DAILY, text: str = "Summarize the reports.") -> Schedule:
    return schedules.add(author=author, session_id=session.pk, text=text, cron=cron, zone="UTC")


def due(row: Schedule, at: datetime = NOON) -> Schedule:
    """Make it due at a time, without waiting for it."""
    Schedule.objects.filter(pk=row.pk).update(next_at=at)
    return fresh(row)


def fresh(row: Schedule) -> Schedule:
    return Schedule.objects.select_related("owner", "session").get(pk=row.pk)


def sent(session: Session) -> list[ChatMessage]:
    rows = ChatMessage.objects.filter(session=session, role=MessageRole.USER, removed_at=None)
    return list(rows.order_by("created_at", "pk"))


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(ServiceError) as refused, transaction.atomic():
        action()
    return refused.value.code


def end_turn(session: Session, status: str) -> None:
    """End the open turn as its worker would."""
    run = SessionRun.objects.get(pk=session.pk)
    last = ChatMessage.objects.filter(session=session).order_by("-sequence").values_list("sequence", flat=True)[0] or 0
    values: dict[str, Any] = {"type": MessageType.TURN_DONE, "turn_id": run.turn_id, "status": status}
    ChatMessage.objects.create(session=session, sequence=last + 1, **values)
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="", done=run.wanted)


def test_due_schedule_sends_its_message_in_run_mode(session: Session, ana: User) -> None:
    """RUN-19, MSG-09: as its user, marked with its id, in a turn of the mode `run`; the session's mode stays."""
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


def test_instant_is_sent_once(session: Session, ana: User) -> None:
    """RUN-19: the next look finds nothing, and neither does one with an old clock."""
    due(added(session, ana))
    assert [start_due(NOON), start_due(NOON), start_due(NOON - timedelta(minutes=1))] == [1, 0, 0]


@pytest.mark.django_db(transaction=True)
def test_processes_that_look_at_once_send_one_message(ana: User) -> None:
    """RUN-19: the instant is claimed in the transaction that sends."""
    sessions = [create_session(owner=ana, title=f"Reports {number}") for number in range(3)]
    rows = [due(added(session, ana)) for session in sessions]
    counts = together(*[lambda: start_due(NOON)] * 4)
    assert sum(count for count in counts if isinstance(count, int)) == 3
    assert [len(sent(session)) for session in sessions] == [1, 1, 1]
    assert {fresh(row).next_at for row in rows} == {datetime(2026, 11, 27, 9, tzinfo=UTC)}


@pytest.mark.django_db(transaction=True)
def test_change_at_the_instant_neither_doubles_nor_blocks(ana: User) -> None:
    """RUN-19: who edits a schedule while it is started waits for that, or is waited for."""
    session = create_session(owner=ana, title="Reports")
    row = due(added(session, ana))

    def edit() -> Schedule:
        return schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, text="Now")

    assert len(together(lambda: start_due(NOON), edit, lambda: start_due(NOON))) == 3
    assert len(sent(session)) == 1
    assert fresh(row).text == "Now"


def test_after_an_outage_the_last_missed_instant_runs(session: Session, ana: User) -> None:
    """RUN-19: once, and none of the earlier ones."""
    row = due(added(session, ana, cron="0 */6 * * *"), NOON - timedelta(days=3))
    assert start_due(NOON + timedelta(hours=1)) == 1
    (message,) = sent(session)
    assert message.idempotency_key == f"schedule:{row.pk}:20261126T120000Z"
    assert fresh(row).next_at == NOON + timedelta(hours=6)
    assert start_due(NOON + timedelta(hours=1)) == 0


def test_crash_after_the_message_leaves_nothing_to_send_again(
    session: Session, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-19: the message and the claim are stored together, or neither is."""
    row = due(added(session, ana))

    def crash(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(scheduled_runs, "record_run", crash)
    assert start_due(NOON) == 0
    assert (sent(session), fresh(row).next_at) == ([], NOON)
    monkeypatch.undo()
    assert start_due(NOON) == 1


def test_message_waits_while_a_turn_runs_and_one_is_enough(session: Session, ana: User) -> None:
    """RUN-19: it is queued as a user's message is; the next instants add nothing until it is delivered."""
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
    """RUN-19: a success in between begins the count again; a user turns the schedule on again."""
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


def test_refused_message_counts_as_a_failure(session: Session, ana: User) -> None:
    """RUN-19: a quota or a full disk is shown, and does not stop other schedules."""
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
    """RUN-19: a user who stops it wants something else."""
    row = due(added(session, ana))
    start_due(NOON)
    end_turn(session, "interrupted")
    settle()
    assert (fresh(row).last_outcome, fresh(row).failures) == ("interrupted", 0)


def test_deleted_message_is_noted(session: Session, ana: User) -> None:
    """RUN-19: the dialog leads to messages that are there."""
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


def become_guest(_session: Session, bo: User) -> None:
    Membership.objects.filter(user=bo).update(role=Membership.Role.GUEST)


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
    """RUN-19: and stays paused when the session is restored."""
    row = due(added(session, ana))
    actions.apply_action(user=ana, action=actions.SessionAction(action), session_ids=[session.pk])
    assert start_due(NOON) == 0
    assert (fresh(row).paused, fresh(row).is_on, sent(session)) == (reason, False, [])


def test_row_that_cannot_be_read_pauses_and_others_run(session: Session, ana: User) -> None:
    """RUN-19: written by hand, or for a time zone that no longer exists."""
    bad, good = due(added(session, ana)), due(added(create_session(owner=ana, title="B"), ana))
    Schedule.objects.filter(pk=bad.pk).update(zone="Europe/Atlantis")
    assert start_due(NOON) == 1
    assert (fresh(bad).paused, fresh(good).paused) == ("invalid", "")


def test_look_says_when_the_next_one_is_due(session: Session, ana: User) -> None:
    """RUN-19: at the instant itself, and every ten seconds in case another process adds one."""
    assert look() == INTERVAL
    row = added(session, ana)
    due(row, timezone.now() + timedelta(hours=1))
    assert look() == INTERVAL
    due(row, timezone.now() + timedelta(seconds=4))
    assert 0 < look() < 4.5
    due(row, timezone.now() - timedelta(seconds=1))
    look()
    assert len(sent(session)) == 1


def test_run_now_works_while_it_is_off(session: Session, ana: User) -> None:
    """UI-24: it changes nothing about the next instants, and a second one waits for the first."""
    row = added(session, ana)
    schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, is_on=False)
    first = schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
    second = schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
    assert (first.queued, second.queued) == (False, True)
    assert code_of(lambda: schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)) == "queued"
    row = fresh(row)
    assert (row.next_at, row.is_on, row.last_message_id) == (None, False, second.id)


def test_scheduled_message_is_for_the_agent_of_a_team(session: Session, ana: User, bo: User) -> None:
    """RUN-19: where the agent answers only mentions, too."""
    let_in(session, bo, "editor")
    lifecycle.configure(session=session, author=ana, replies="mentions")
    due(added(session, ana))
    start_due(NOON)
    (message,) = sent(session)
    assert (message.for_agent, bool(message.turn_id)) == (True, True)


def test_only_editors_of_the_team_add_schedules(session: Session, bo: User, workspace: Workspace) -> None:
    """UI-24: neither viewers, nor guests, nor others."""
    let_in(session, bo, "viewer")
    assert code_of(lambda: added(session, bo)) == "forbidden"
    let_in(session, bo, "editor")
    become_guest(session, bo)
    assert code_of(lambda: added(session, bo)) == "forbidden"
    assert code_of(lambda: added(session, person("Cy"))) == "no_such_session"
    assert not Schedule.objects.exists()


def test_only_its_user_changes_what_is_sent_in_their_name(session: Session, ana: User, bo: User) -> None:
    """UI-24: the session's owner can turn it off, delete and restore it; other editors can only see it."""
    let_in(session, bo, "editor")
    row, own = added(session, bo), added(session, ana)
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert code_of(lambda: schedules.change(**whose, text="Pay Ana")) == "forbidden"
    assert code_of(lambda: schedules.change(**whose, is_on=False, text="Pay Ana")) == "forbidden"
    assert code_of(lambda: schedules.change(**whose, is_on=True)) == "forbidden"
    assert code_of(lambda: schedules.run_now(**whose)) == "forbidden"
    assert not schedules.change(**whose, is_on=False).is_on
    schedules.remove(**whose)
    assert schedules.restore(**whose).removed_at is None
    other: dict[str, Any] = {"author": bo, "session_id": session.pk, "schedule_id": own.pk}
    assert code_of(lambda: schedules.remove(**other)) == "forbidden"
    assert code_of(lambda: schedules.restore(**other)) == "forbidden"
    assert code_of(lambda: schedules.run_now(**other)) == "forbidden"
    assert code_of(lambda: schedules.change(**other, is_on=False)) == "forbidden"


def test_schedule_of_another_session_is_not_found(session: Session, ana: User) -> None:
    """LIVE-06: an id of another session, a removed one, and nonsense are alike."""
    row, elsewhere = added(session, ana), create_session(owner=ana)
    for session_id, schedule_id in (
        (elsewhere.pk, row.pk),
        (session.pk, "c_none"),
        (session.pk, "\0"),
        (session.pk, ""),
    ):
        change = partial(schedules.change, author=ana, session_id=session_id, schedule_id=schedule_id, is_on=False)
        assert code_of(change) == "no_such_schedule"
    schedules.remove(author=ana, session_id=session.pk, schedule_id=row.pk)
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert code_of(lambda: schedules.run_now(**whose)) == "no_such_schedule"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"text": "  "}, "empty"),
        ({"text": "a\0"}, "not_storable"),
        ({"text": "\ud800"}, "not_storable"),
        ({"text": "x" * 1001}, "too_long"),
        ({"cron": "0 25 * * *"}, "invalid"),
        ({"cron": "* * * * *"}, "invalid"),
        ({"cron": ""}, "invalid"),
        ({"zone": "Mars/Olympus"}, "invalid"),
        ({"zone": "\0"}, "invalid"),
        ({"zone": ""}, "invalid"),
    ],
)
def test_bad_values_are_refused(
    session: Session, ana: User, settings: Settings, values: dict[str, Any], code: str
) -> None:
    """RUN-19, MSG-12: when a schedule is added and when it is changed, which changes nothing then."""
    settings.MAX_MESSAGE_CHARS = 1000
    good: dict[str, Any] = {"text": "Hi", "cron": DAILY, "zone": "UTC"}
    assert code_of(lambda: schedules.add(author=ana, session_id=session.pk, **{**good, **values})) == code
    row = added(session, ana)
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert code_of(lambda: schedules.change(**whose, **values)) == code
    assert fresh(row).text == row.text


def test_session_has_twenty_schedules_at_most(session: Session, ana: User) -> None:
    """UI-24: a removed one makes room, and comes back only if there is room."""
    rows = [added(session, ana) for _ in range(schedules.MOST)]
    assert code_of(lambda: added(session, ana)) == "invalid"
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": rows[0].pk}
    schedules.remove(**whose)
    added(session, ana)
    assert code_of(lambda: schedules.restore(**whose)) == "invalid"


def test_removed_schedule_sends_nothing_and_comes_back_as_it_was(session: Session, ana: User) -> None:
    """UI-24: Undo."""
    on, off = due(added(session, ana)), added(session, ana)
    whose: list[dict[str, Any]] = [
        {"author": ana, "session_id": session.pk, "schedule_id": row.pk} for row in (on, off)
    ]
    schedules.change(**whose[1], is_on=False)
    for each in (*whose, *whose):
        schedules.remove(**each)
    assert start_due(NOON) == 0
    assert schedules_of(session) == []
    restored = [schedules.restore(**each) for each in whose]
    assert [(row.is_on, row.next_at is not None) for row in restored] == [(True, True), (False, False)]


def test_the_last_removed_schedules_can_be_restored_until_they_are_purged(session: Session, ana: User) -> None:
    """UI-24: what was removed does not pile up, and its text does not stay for ever."""
    for _ in range(schedules.MOST_REMOVED + 2):
        schedules.remove(author=ana, session_id=session.pk, schedule_id=added(session, ana).pk)
    assert Schedule.objects.count() == schedules.MOST_REMOVED
    kept = added(session, ana)
    assert purging.purge(before=timezone.now() + timedelta(seconds=1))["schedules"] == schedules.MOST_REMOVED
    assert list(Schedule.objects.all()) == [kept]


def test_next_instant_follows_a_change_of_times_only(session: Session, ana: User) -> None:
    """UI-24: another text does not move it."""
    row = due(added(session, ana))
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert schedules.change(**whose, text="Other").next_at == NOON
    moved = schedules.change(**whose, zone="Asia/Tokyo").next_at
    assert moved is not None
    assert (moved.hour, moved.minute) == (0, 0)


def test_archived_session_takes_no_schedules(session: Session, ana: User) -> None:
    """UI-24: they can be turned off and removed there."""
    row = added(session, ana)
    actions.apply_action(user=ana, action=actions.SessionAction.ARCHIVE, session_ids=[session.pk])
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    schedules.change(**whose, is_on=False)
    assert code_of(lambda: added(session, ana)) == "archived"
    assert code_of(lambda: schedules.change(**whose, is_on=True)) == "archived"
    assert code_of(lambda: schedules.run_now(**whose)) == "archived"
    schedules.remove(**whose)
    assert code_of(lambda: schedules.restore(**whose)) == "archived"


def test_removed_schedule_has_no_next_instant(session: Session, ana: User) -> None:
    """RUN-19: a constraint says so, however the row is written."""
    row = added(session, ana)
    with pytest.raises(IntegrityError), transaction.atomic():
        Schedule.objects.filter(pk=row.pk).update(removed_at=timezone.now())


def test_erased_user_leaves_no_schedules(session: Session, ana: User, bo: User) -> None:
    """RUN-19: their texts are gone from the rows and from the messages; the session's other schedules stay."""
    let_in(session, bo, "editor")
    due(added(session, bo, text="The secret of Bo"))
    kept = added(session, ana)
    start_due(NOON)
    end_turn(session, "complete")
    users.close_account(bo, None)
    assert users.erase_user(bo.pk)
    assert list(Schedule.objects.all()) == [kept]
    assert [message.text for message in sent(session)] == ["[erased]"]


def test_fork_copies_no_schedules_and_its_turns_have_the_mode_of_the_session(session: Session, ana: User) -> None:
    """RUN-19, RUN-13: who continues a scheduled turn waits for it."""
    due(added(session, ana))
    start_due(NOON)
    end_turn(session, "complete")
    (message,) = sent(session)
    copy = forking.fork(session=session, author=ana, message_id=message.pk, run=True)
    assert Schedule.objects.filter(session=copy).count() == 0
    marker = ChatMessage.objects.get(session=copy, type="turn_start")
    assert (marker.mode, marker.workflow_id) == ("agent", "")


def test_session_with_a_schedule_is_in_use(session: Session, ana: User) -> None:
    """OPS-05: a yearly schedule outlives the days of the setting; one that is off does not keep its session."""
    row = added(session, ana)
    Session.objects.filter(pk=session.pk).update(updated_at=timezone.now() - timedelta(days=400))
    before = timezone.now() - timedelta(days=365)
    assert not retention.unused(before).exists()
    schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, is_on=False)
    assert retention.unused(before).get() == session
