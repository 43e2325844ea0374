"""`manage.py prune` deletes sessions that no one has used for a long time, after a confirmation."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chat.models import SecurityEvent, Session, SessionRun, User, UserSessionState, Workspace
from chat.runs import lease
from chat.services.messages import sending
from chat.services.sessions import actions, lifecycle, retention, user_state
from tests.support.filled import ANSWER, DONE, START, fill

pytestmark = pytest.mark.django_db
NOTHING = "There are no sessions that no one has used for 365 days. Nothing was changed."


def prune(*words: str) -> str:
    out = io.StringIO()
    call_command("prune", *words, stdout=out)
    return out.getvalue()


def aged(owner: User, days: int) -> Session:
    """Return a session that no one has used for `days` days."""
    session = lifecycle.create_session(owner=owner, title=f"{days} days")
    fill(session, START, ANSWER, DONE)
    Session.objects.filter(pk=session.pk).update(updated_at=timezone.now() - timedelta(days=days))
    return session


def status(session: Session) -> str:
    return Session.objects.get(pk=session.pk).status


@pytest.fixture
def old(ana: User) -> Session:
    return aged(ana, 400)


def test_prune_says_how_much_and_changes_nothing(old: Session, ana: User) -> None:
    """OPS-05: without confirmation, prune reports the number of sessions and deletes nothing."""
    aged(ana, 10)

    summary = "No one has used 1 session with 3 messages and 0.0 MB of files for 365 days. Nothing was changed"
    assert summary in prune("--days", "365")
    assert status(old) == "active"


@pytest.mark.parametrize("confirmed", [(), ("--yes",)])
def test_prune_says_if_there_is_nothing_to_delete(ana: User, confirmed: tuple[str, ...]) -> None:
    aged(ana, 10)
    assert prune("--days", "365", *confirmed).strip() == NOTHING


def test_wrong_number_or_workspace_is_refused(old: Session) -> None:
    """OPS-05: a wrong number of days or an unknown workspace is an error with exit code 1."""
    for days, problem in (("0", "--days must be 1 or more, not 0"), ("-5", "is not a number of days from 0")):
        with pytest.raises(CommandError, match=problem):
            prune("--days", days)
    with pytest.raises(CommandError, match="There is no workspace 99000") as refused:
        prune("--days", "365", "--workspace", "99000")
    assert refused.value.returncode == 1


def test_pruned_session_can_be_restored(old: Session, ana: User) -> None:
    """OPS-05, ADM-02: the owner finds a pruned session among the deleted ones, and the security log has the reason."""
    assert prune("--days", "365", "--yes").startswith("Deleted 1 of 1 session with 3 messages")
    assert status(old) == "deleted"
    event = SecurityEvent.objects.get(kind="session_deleted")
    assert (event.actor_id, event.person_id, event.details) == (None, ana.pk, {"reason": "retention"})

    actions.undelete(user=ana, session_id=old.pk)

    assert status(old) == "active"


def test_what_is_in_use_stays(old: Session, ana: User, bo: User) -> None:
    """OPS-05: pinned sessions, and sessions whose agent waits for an answer, are kept."""
    waiting = aged(ana, 400)
    SessionRun.objects.filter(pk=waiting.pk).update(state="waiting", turn_id="t_1")
    user_state.pin(session=old, user=ana)

    assert NOTHING in prune("--days", "365", "--yes")
    assert (status(old), status(waiting)) == ("active", "active")


def test_session_with_a_new_draft_stays(old: Session, ana: User) -> None:
    """OPS-05: a user who has written in the composer since has used the session, although nothing was sent."""
    user_state.save_draft(session=old, user=ana, text="Not finished")

    assert NOTHING in prune("--days", "365", "--yes")
    UserSessionState.objects.update(draft_at=timezone.now() - timedelta(days=366))
    assert prune("--days", "365", "--yes").startswith("Deleted 1 of 1 session")


def test_session_that_is_used_in_the_meantime_stays(old: Session) -> None:
    """OPS-05: a session that is used between counting and deleting is kept."""
    before = timezone.now() - timedelta(days=365)
    sending.send_message(session=old, author=old.owner, text="One more thing")
    lease.revoke(old.pk)  # its agent has no work
    SessionRun.objects.filter(pk=old.pk).update(state="idle", turn_id="")

    assert not retention.delete_if_unused(old.pk, before)
    assert status(old) == "active"


def worked_for(caller: Session, days: int = 400) -> Session:
    """Return a session in which an agent worked for another agent."""
    child = aged(caller.owner, days)
    Session.objects.filter(pk=child.pk).update(caller_session=caller)
    return child


def test_sessions_of_agents_go_with_the_one_that_asked(old: Session) -> None:
    """OPS-05, RUN-18: subsessions are counted and deleted with the session that asked, never alone, because its card
    links to them."""
    child = worked_for(old)
    below = worked_for(child)
    assert "3 sessions with 9 messages" in prune("--days", "365")
    assert prune("--days", "365", "--yes").startswith("Deleted 3 of 3 sessions with 9 messages")
    assert [status(each) for each in (old, child, below)] == ["deleted"] * 3
    actions.undelete(user=old.owner, session_id=old.pk)
    assert [status(each) for each in (old, child, below)] == ["active"] * 3


@pytest.mark.parametrize("use", ["pinned", "waiting", "recent"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_use_of_one_session_keeps_those_that_belong_to_it(old: Session, ana: User, use: str, level: int) -> None:
    """OPS-05, RUN-18: a session and its subsessions are deleted together or not at all."""
    child = worked_for(old)
    below = worked_for(child)
    used = (old, child, below)[level]
    if use == "pinned":
        user_state.pin(session=used, user=ana)
    elif use == "waiting":
        SessionRun.objects.filter(pk=used.pk).update(state="waiting", turn_id="t_1")
    else:
        Session.objects.filter(pk=used.pk).update(updated_at=timezone.now())
    assert NOTHING in prune("--days", "365", "--yes")
    assert [status(each) for each in (old, child, below)] == ["active"] * 3


def test_a_restored_session_is_in_use_again(old: Session, ana: User) -> None:
    """OPS-05: the next run does not delete a restored session again. A deletion undone immediately changes nothing."""
    last_used = Session.objects.get(pk=old.pk).updated_at
    actions.delete(user=ana, session_id=old.pk)
    actions.undelete(user=ana, session_id=old.pk)
    assert Session.objects.get(pk=old.pk).updated_at == last_used
    prune("--days", "365", "--yes")
    Session.objects.filter(pk=old.pk).update(deleted_at=timezone.now() - timedelta(days=1))
    actions.undelete(user=ana, session_id=old.pk)
    prune("--days", "365", "--yes")
    assert status(old) == "active"


def test_prune_of_one_workspace_leaves_the_others(old: Session, bo: User) -> None:
    """OPS-05: pruning one workspace leaves the others alone, because teams have different rules."""
    workspace = Workspace.objects.create(name="Elsewhere")
    other = aged(bo, 400)
    Session.objects.filter(pk=other.pk).update(workspace=workspace)

    prune("--days", "365", "--yes", "--workspace", str(workspace.pk))

    assert (status(old), status(other)) == ("active", "deleted")


def test_retention_is_off_unless_it_is_set(old: Session, settings: object) -> None:
    """OPS-05: retention is off by default, so that no update deletes sessions."""
    with pytest.raises(CommandError, match="RETENTION_DAYS"):
        prune("--yes")
