"""Managing schedules over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.models import ChatMessage, Schedule, Session, User
from chat.services.maintenance import scheduled_runs
from tests.api.asking import Asker, code, token_of
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
REPORT = {"text": "Summarize the reports.", "cron": "0 9 * * mon-fri", "zone": "Europe/Berlin"}


def path(session: Session, rest: str = "") -> str:
    return f"/api/sessions/{session.pk}/schedules{rest}"


def listed(asker: Asker, session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asker.get(path(session)).json()["schedules"]
    return found


def test_program_adds_changes_runs_and_removes(asker: Asker, session: Session, ana: User) -> None:
    """UI-24: schedules are managed by the same services as in the dialog."""
    made = asker.post(path(session), REPORT)
    assert made.status_code == 201
    row = made.json()
    assert (row["cron"], row["zone"], row["is_on"], row["owner_id"]) == (
        "0 9 * * MON-FRI",
        "Europe/Berlin",
        True,
        ana.pk,
    )
    assert (row["paused"], row["last_outcome"], row["last_run_at"], bool(row["next_at"])) == ("", "", None, True)
    assert listed(asker, session) == [row]
    assert asker.get(made["Location"]).json() == row
    one = f"/{row['id']}"
    changed = asker.patch(path(session, one), {"cron": "*/5 * * * *", "is_on": False}).json()
    assert (changed["cron"], changed["is_on"], changed["next_at"]) == ("*/5 * * * *", False, None)
    run = asker.post(path(session, f"{one}/run")).json()
    message = ChatMessage.objects.get(pk=run["id"])
    assert (run["queued"], run["turn_id"]) == (False, message.turn_id)
    assert [(each["last_outcome"], each["last_message_id"]) for each in listed(asker, session)] == [
        ("running", message.pk)
    ]
    shown = asker.get(f"/api/sessions/{session.pk}/messages/{message.pk}").json()
    assert (shown["mode"], shown["workflow_id"]) == ("run", row["id"])
    assert shown["schedule"] == {"cron": "*/5 * * * *", "zone": "Europe/Berlin"}
    assert asker.post(path(session, f"{one}/run")).json()["queued"]
    assert code(asker.post(path(session, f"{one}/run"))) == (409, "queued")
    assert asker.delete(path(session, one)).status_code == 204
    assert listed(asker, session) == []
    assert asker.post(path(session, f"{one}/restore")).json()["id"] == row["id"]
    assert [each["id"] for each in listed(asker, session)] == [row["id"]]


def test_viewers_see_schedules_and_change_none(asker: Asker, session: Session, bo: User) -> None:
    """UI-24: viewers with a token see schedules and cannot add, change or run them."""
    row = asker.post(path(session), REPORT).json()
    let_in(session, bo, "viewer")
    viewer = Asker(token_of(bo))
    assert listed(viewer, session) == [row]
    assert code(viewer.post(path(session), REPORT)) == (403, "forbidden")
    assert code(viewer.patch(path(session, f"/{row['id']}"), {"is_on": False})) == (403, "forbidden")
    assert code(viewer.post(path(session, f"/{row['id']}/run"))) == (403, "forbidden")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"text": ""}, (422, "malformed")),
        ({"text": " "}, (422, "empty")),
        ({"text": "a\0"}, (422, "not_storable")),
        ({"text": 5}, (422, "malformed")),
        ({"cron": "every day"}, (422, "invalid")),
        ({"cron": "* * * * *"}, (422, "invalid")),
        ({"cron": "0 9 * * *\0"}, (422, "invalid")),
        ({"cron": "1," * 100}, (422, "malformed")),
        ({"zone": "Europe/Atlantis"}, (422, "invalid")),
        ({"zone": "x" * 65}, (422, "malformed")),
        ({"is_on": "yes"}, (422, "malformed")),
        ({"next_at": "2026-01-01"}, (422, "malformed")),
    ],
)
def test_bad_values_are_clear_errors(asker: Asker, session: Session, change: Any, refusal: tuple[int, str]) -> None:
    """RUN-19, MSG-12: bad values get clear errors, never a 500, and nothing is stored."""
    assert code(asker.post(path(session), {**REPORT, **change})) == refusal
    assert not Schedule.objects.exists()
    row = asker.post(path(session), REPORT).json()
    assert code(asker.patch(path(session, f"/{row['id']}"), change)) == refusal
    assert listed(asker, session) == [row]


def test_unknown_schedules_are_not_found(asker: Asker, session: Session) -> None:
    """MSG-12: unknown and malformed ids are not found."""
    for odd in ("c_none", "%00", "😀", "c_" + "0" * 300):
        assert code(asker.patch(path(session, f"/{odd}"), {"is_on": True})) == (404, "no_such_schedule")
        assert code(asker.post(path(session, f"/{odd}/run"))) == (404, "no_such_schedule")
    row = asker.post(path(session), REPORT).json()
    assert code(asker.patch(path(session, f"/{row['id']}"), {})) == (422, "invalid")


def test_change_of_what_is_no_longer_so_is_refused(asker: Asker, session: Session) -> None:
    """UI-24, MSG-11: a change with an outdated revision or tag is refused, and the error has the current revision."""
    row = asker.post(path(session), REPORT).json()
    one = path(session, f"/{row['id']}")
    tag = asker.get(one)["ETag"]
    assert asker.get(one).json() == row
    changed = asker.patch(one, {"text": "Mine", "revision": row["revision"]}, if_match=tag)
    assert (changed.json()["text"], changed["ETag"]) == ("Mine", asker.get(one)["ETag"])
    for given, headers, refusal in (
        ({"revision": row["revision"]}, {}, (409, "stale")),
        ({}, {"if_match": tag}, (412, "stale")),
        ({"revision": row["revision"]}, {"if_match": changed["ETag"]}, (412, "stale")),
        ({"revision": changed.json()["revision"]}, {"if_match": tag}, (412, "stale")),
        ({"revision": 10**30}, {}, (409, "stale")),
        ({}, {"if_match": '"x"'}, (412, "stale")),
    ):
        refused = asker.patch(one, {"cron": "0 1 * * *", **given}, **headers)
        assert code(refused) == refusal
        assert refused.json().get("revision", changed.json()["revision"]) == changed.json()["revision"]
    assert code(asker.delete(one, if_match=tag)) == (412, "stale")
    assert listed(asker, session) == [changed.json()]
    assert asker.patch(one, {"is_on": False}, if_match=changed["ETag"]).json()["is_on"] is False
    assert asker.patch(one, {"is_on": True}).json()["is_on"] is True
    assert asker.delete(one, if_match=asker.get(one)["ETag"]).status_code == 204
    assert code(asker.get(one)) == (404, "no_such_schedule")


def test_runs_do_not_change_the_revision(asker: Asker, session: Session) -> None:
    """UI-24: a run does not change the revision, so an open edit is not refused."""
    row = asker.post(path(session), REPORT).json()
    one = path(session, f"/{row['id']}")
    for gone in ({}, {"text": ""}, {"text": "Hi", "zone": "Atlantis"}):  # it runs, is refused, and is paused
        Schedule.objects.update(next_at=timezone.now() - timedelta(minutes=1), **gone)
        scheduled_runs.check_schedules()
    asker.post(f"{one}/run")
    now = asker.get(one).json()
    assert (now["paused"], now["failures"], now["last_run_at"] is not None) == ("invalid", 1, True)
    assert now["revision"] == row["revision"]


@pytest.mark.parametrize("revision", [True, "1", 1.5, [], {}])
def test_revision_is_a_number(asker: Asker, session: Session, revision: Any) -> None:
    """MSG-12: the revision must be a number, and a request with only a revision changes nothing."""
    row = asker.post(path(session), REPORT).json()
    one = path(session, f"/{row['id']}")
    assert code(asker.patch(one, {"text": "Mine", "revision": revision})) == (422, "malformed")
    assert code(asker.patch(one, {"revision": row["revision"]})) == (422, "invalid")
