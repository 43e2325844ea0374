"""Schedules: who may add, change, remove and restore them, and their limits."""

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
    User,
    Workspace,
)
from chat.queries.schedules import schedules_of
from chat.services.deletion import purging, users
from chat.services.maintenance.scheduled_runs import start_due
from chat.services.sessions import actions, forking, retention, schedules
from chat.services.sessions.lifecycle import create_session
from tests.services.test_personal_export import archive_of, read
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
    """Set when the schedule is due, without waiting."""
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


def become_guest(_session: Session, bo: User) -> None:
    Membership.objects.filter(user=bo).update(role=Membership.Role.GUEST)


def end_turn(session: Session, status: str) -> None:
    """End the open turn like its worker."""
    run = SessionRun.objects.get(pk=session.pk)
    last = ChatMessage.objects.filter(session=session).order_by("-sequence").values_list("sequence", flat=True)[0] or 0
    values: dict[str, Any] = {"type": MessageType.TURN_DONE, "turn_id": run.turn_id, "status": status}
    ChatMessage.objects.create(session=session, sequence=last + 1, **values)
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="", done=run.wanted)


def test_run_now_works_while_it_is_off(session: Session, ana: User) -> None:
    """UI-24: "Run now" does not change the next instants, and a second one waits for the first."""
    row = added(session, ana)
    schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, is_on=False)
    first = schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
    second = schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
    assert (first.queued, second.queued) == (False, True)
    assert code_of(lambda: schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)) == "queued"
    row = fresh(row)
    assert (row.next_at, row.is_on, row.last_message_id) == (None, False, second.id)


def test_only_editors_of_the_team_add_schedules(session: Session, bo: User, workspace: Workspace) -> None:
    """UI-24: viewers, guests and users outside of the workspace cannot add schedules."""
    let_in(session, bo, "viewer")
    assert code_of(lambda: added(session, bo)) == "forbidden"
    let_in(session, bo, "editor")
    become_guest(session, bo)
    assert code_of(lambda: added(session, bo)) == "forbidden"
    assert code_of(lambda: added(session, person("Cy"))) == "no_such_session"
    assert not Schedule.objects.exists()


def test_only_its_user_changes_what_is_sent_in_their_name(session: Session, ana: User, bo: User) -> None:
    """UI-24: the session's owner can only turn off, delete and restore the schedule of another user.
    Other editors can only see it.
    """
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
    """LIVE-06: ids of other sessions, removed schedules and invalid ids get the same error."""
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
    """RUN-19, MSG-12: bad values are refused when a schedule is added or changed, and then nothing changes."""
    settings.MAX_MESSAGE_CHARS = 1000
    good: dict[str, Any] = {"text": "Hi", "cron": DAILY, "zone": "UTC"}
    assert code_of(lambda: schedules.add(author=ana, session_id=session.pk, **{**good, **values})) == code
    row = added(session, ana)
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert code_of(lambda: schedules.change(**whose, **values)) == code
    assert fresh(row).text == row.text


def test_session_has_twenty_schedules_at_most(session: Session, ana: User) -> None:
    """UI-24: a removed schedule does not count, and is restored only if the limit allows it."""
    rows = [added(session, ana) for _ in range(schedules.MAX_SCHEDULES)]
    assert code_of(lambda: added(session, ana)) == "invalid"
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": rows[0].pk}
    schedules.remove(**whose)
    added(session, ana)
    assert code_of(lambda: schedules.restore(**whose)) == "invalid"


def test_user_has_a_limit_of_schedules_in_all_sessions(
    session: Session, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-24: a user's schedules are limited, because many at one moment would delay those of other users."""
    monkeypatch.setattr(schedules, "MAX_OF_USER", 2)
    others = create_session(owner=ana)
    rows = [added(session, ana), added(others, ana)]
    assert code_of(lambda: added(others, ana)) == "invalid"
    added(create_session(owner=bo), bo)
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": rows[0].pk}
    schedules.remove(**whose)
    added(others, ana)
    assert code_of(lambda: schedules.restore(**whose)) == "invalid"


def test_removed_schedule_sends_nothing_and_comes_back_as_it_was(session: Session, ana: User) -> None:
    """UI-24: a removed schedule sends nothing, and Undo restores it unchanged."""
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


def test_schedule_that_its_user_removed_is_off_if_another_user_restores_it(
    session: Session, ana: User, bo: User
) -> None:
    """UI-24: only its user lets a schedule send messages in their name, so the session's owner cannot undo that."""
    let_in(session, bo, "editor")
    row = added(session, bo)
    whose: dict[str, Any] = {"session_id": session.pk, "schedule_id": row.pk}
    schedules.remove(author=bo, **whose)
    restored = schedules.restore(author=ana, **whose)
    assert (restored.removed_at, restored.is_on, restored.next_at) == (None, False, None)
    assert schedules.change(author=bo, **whose, is_on=True).next_at is not None


def test_the_last_removed_schedules_can_be_restored_until_they_are_purged(session: Session, ana: User) -> None:
    """UI-24: only the last removed schedules are kept, and their texts are purged after a while."""
    for _ in range(schedules.MAX_REMOVED + 2):
        schedules.remove(author=ana, session_id=session.pk, schedule_id=added(session, ana).pk)
    assert Schedule.objects.count() == schedules.MAX_REMOVED
    kept = added(session, ana)
    assert purging.purge(before=timezone.now() + timedelta(seconds=1))["schedules"] == schedules.MAX_REMOVED
    assert list(Schedule.objects.all()) == [kept]


def test_next_instant_follows_a_change_of_times_only(session: Session, ana: User) -> None:
    """UI-24: changing only the text does not move the next instant."""
    row = due(added(session, ana))
    whose: dict[str, Any] = {"author": ana, "session_id": session.pk, "schedule_id": row.pk}
    assert schedules.change(**whose, text="Other").next_at == NOON
    moved = schedules.change(**whose, zone="Asia/Tokyo").next_at
    assert moved is not None
    assert (moved.hour, moved.minute) == (0, 0)


def test_archived_session_takes_no_schedules(session: Session, ana: User) -> None:
    """UI-24: in an archived session, schedules can only be turned off and removed."""
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
    """RUN-19: a database constraint ensures that a removed schedule has no next instant."""
    row = added(session, ana)
    with pytest.raises(IntegrityError), transaction.atomic():
        Schedule.objects.filter(pk=row.pk).update(removed_at=timezone.now())


def test_erased_user_leaves_no_schedules(session: Session, ana: User, bo: User) -> None:
    """RUN-19: the user's schedules and their texts in messages are erased. Other schedules of the session stay."""
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
    """RUN-19, RUN-13: in a fork, the scheduled turn has the session's mode, because the user who forked waits for
    it."""
    due(added(session, ana))
    start_due(NOON)
    end_turn(session, "complete")
    (message,) = sent(session)
    copy = forking.fork(session=session, author=ana, message_id=message.pk, run=True)
    reworded = forking.fork(session=session, author=ana, message_id=message.pk, text="Mine", run=True)
    assert Schedule.objects.filter(session__in=(copy, reworded)).count() == 0
    assert ChatMessage.objects.filter(session=reworded, text="Mine", workflow_id="", arguments__isnull=True).exists()
    marker = ChatMessage.objects.get(session=copy, type="turn_start")
    assert (marker.mode, marker.workflow_id) == ("agent", "")


def test_session_with_a_schedule_is_in_use(session: Session, ana: User) -> None:
    """OPS-05: a schedule keeps its session from being pruned as long as it is on."""
    row = added(session, ana)
    Session.objects.filter(pk=session.pk).update(updated_at=timezone.now() - timedelta(days=400))
    before = timezone.now() - timedelta(days=365)
    assert not retention.unused(before).exists()
    schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, is_on=False)
    assert retention.unused(before).get() == session


def test_export_of_one_s_data_has_one_s_schedules(session: Session, ana: User, bo: User) -> None:
    """UI-24: the export contains the user's own schedules only."""
    let_in(session, bo, "editor")
    added(session, bo, text="Of Bo")
    added(session, ana, text="Of Ana")
    (kept,) = read(archive_of(ana), "account.json")["schedules"]
    assert (kept["text"], kept["cron"], kept["session_id"]) == ("Of Ana", DAILY, session.pk)
