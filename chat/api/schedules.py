"""Schedules of a session: messages that are sent at set times."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from ninja import Router, Schema
from pydantic import Field

from agents.messages import Json
from chat.api.auth import ApiRequest, session_of
from chat.api.message_schemas import EXAMPLE_SESSION_ID
from chat.api.parsing import Body
from chat.api.responses import if_match_revisions, iso, json_response, no_content
from chat.errors import Invalid
from chat.models import Schedule
from chat.queries.schedules import outcome_now, schedule_in, schedules_of
from chat.recurrence import MAX_CRON_LENGTH
from chat.services.sessions import schedules

router = Router(tags=["Schedules"])
PATH = "/sessions/{session_id}/schedules"
ONE = f"{PATH}/{{schedule_id}}"
CRON = (
    "The times as a cron expression with five fields: minute, hour, day of the month, month, and day of the week. It "
    "can be due at most every 5 minutes."
)
TEXT = "The text of the message to send."
ZONE = "The IANA name of the time zone of the cron expression."
Paused = Literal["", "access", "archived", "deleted", "failures", "invalid", "staff"]
RunOutcome = Literal[
    "", "queued", "held", "running", "waiting", "completed", "interrupted", "failed", "refused", "withdrawn"
]


class ScheduleOut(Schema):
    """A message that is sent at set times in its owner's name. Its turns have the mode `run`."""

    id: str = Field(description="The id of the schedule.")
    session: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the session.")
    owner_id: int = Field(description="The id of the user who added the schedule.")
    owner: str = Field(description="The name of the user who added the schedule.")
    text: str = Field(description="The text of the message.")
    cron: str = Field(description=CRON, examples=["0 9 * * 1-5"])
    zone: str = Field(description=ZONE, examples=["Europe/Berlin"])
    is_on: bool = Field(description="Whether the schedule is on. It sends messages only while it is on.")
    next_at: datetime | None = Field(
        description="The time at which the next message is due. Null while the schedule is off."
    )
    paused: Paused = Field(
        description="The reason why Parley has turned the schedule off. `access`: its owner may no longer write in "
        "the session. `archived`, `deleted`: the session was archived or deleted. `failures`: five runs in a row have "
        "failed. `invalid`: its times cannot be used. `staff`: staff have paused it. Empty otherwise."
    )
    failures: int = Field(description="The number of failed runs since the last successful run.")
    last_run_at: datetime | None = Field(description="The time of the last run. Null if there was none.")
    last_message_id: str = Field(description="The id of the message of the last run. Empty if there is none.")
    last_outcome: RunOutcome = Field(
        description="The outcome of the last run. `queued`, `held`, `withdrawn`: the state of its message. `running`, "
        "`waiting`, `completed`, `interrupted`, `failed`: the state of its turn. `refused`: no message was sent. "
        "Empty if there was no run."
    )
    last_error: str = Field(description="The code of the error if `last_outcome` is `refused`. Empty otherwise.")
    created_at: datetime = Field(description="The time at which the schedule was added.")
    updated_at: datetime = Field(description="The time of the last change by a user.")
    revision: int = Field(
        description="A number that increases with each change by a user. Runs, and pauses by Parley, do not change it."
    )


class Schedules(Schema):
    """The schedules of a session."""

    schedules: list[ScheduleOut] = Field(description="The schedules, oldest first.")


class NewSchedule(Body):
    """A schedule to add."""

    text: str = Field(min_length=1, description=TEXT, examples=["Summarize the new error reports."])
    cron: str = Field(max_length=MAX_CRON_LENGTH, description=CRON, examples=["0 9 * * 1-5"])
    zone: str = Field("UTC", max_length=64, description=ZONE, examples=["Europe/Berlin"])
    is_on: bool = Field(True, description="Whether the schedule is on.")


class ScheduleChange(Body):
    """Changes of a schedule. Fields that are left out or null keep their values."""

    text: str | None = Field(None, min_length=1, description=TEXT)
    cron: str | None = Field(None, max_length=MAX_CRON_LENGTH, description=CRON)
    zone: str | None = Field(None, max_length=64, description=ZONE)
    is_on: bool | None = Field(None, description="Whether the schedule is on. `true` also ends a pause.")
    revision: int | None = Field(
        None,
        description="The `revision` of the schedule that you have read. If it was changed since, the request is "
        "refused as `stale`.",
    )


class StartedRun(Schema):
    """The message that a run has sent."""

    id: str = Field(description="The id of the message.")
    queued: bool = Field(description="Whether the message was queued because the agent is working.")
    turn_id: str | None = Field(description="The id of the turn. Null while the message is queued.")


@router.get(PATH, response=Schedules, operation_id="listSchedules", summary="List the schedules of a session")
def list_schedules(request: ApiRequest, session_id: str) -> HttpResponse:
    """List the schedules of a session. All users with access to the session may list them."""
    listed = schedules_of(session_of(request, session_id))
    return json_response(request, {"schedules": [_out(each.row, each.outcome) for each in listed]})


@router.post(PATH, response={201: ScheduleOut}, operation_id="addSchedule", summary="Add a schedule")
def add_schedule(request: ApiRequest, session_id: str, body: NewSchedule) -> HttpResponse:
    """Add a schedule. Its messages are sent in your name. A session can have at most 20 schedules.

    Editors may add schedules, unless they are guests of the workspace.
    """
    row = schedules.add(
        author=request.user, session_id=session_id, text=body.text, cron=body.cron, zone=body.zone, is_on=body.is_on
    )
    location = reverse("api:get_schedule", args=[session_id, row.pk])
    return json_response(request, _out(row), status=201, location=location, tagged=False)


@router.get(ONE, response=ScheduleOut, operation_id="getSchedule", summary="Retrieve a schedule")
def get_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Return a schedule. All users with access to the session may read it."""
    return _one(request, schedule_in(session_of(request, session_id), schedule_id))


@router.patch(ONE, response=ScheduleOut, operation_id="changeSchedule", summary="Change a schedule")
def change_schedule(request: ApiRequest, session_id: str, schedule_id: str, body: ScheduleChange) -> HttpResponse:
    """Change a schedule. Only its owner may change it. The owner of the session may also turn it off."""
    given = body.model_dump(exclude_none=True, exclude={"revision"})
    if not given:
        raise Invalid(_("Choose what to change."))
    seen = if_match_revisions(request)
    if body.revision is not None:
        seen = {body.revision} & set(seen or [body.revision])
    row = schedules.change(author=request.user, session_id=session_id, schedule_id=schedule_id, seen=seen, **given)
    return _one(request, row)


@router.delete(ONE, response={204: None}, operation_id="removeSchedule", summary="Remove a schedule")
def remove_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Remove a schedule. The messages that it has sent stay. `restoreSchedule` restores it.

    Only the owner of the schedule and the owner of the session may remove it.
    """
    seen = if_match_revisions(request)
    schedules.remove(author=request.user, session_id=session_id, schedule_id=schedule_id, seen=seen)
    return no_content()


@router.post(
    f"{ONE}/restore", response=ScheduleOut, operation_id="restoreSchedule", summary="Restore a removed schedule"
)
def restore_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Restore a removed schedule. Unless you are its owner, it is off then, and only its owner can turn it on.

    Only the last 20 removed schedules of a session can be restored, until they are purged.
    """
    row = schedules.restore(author=request.user, session_id=session_id, schedule_id=schedule_id)
    return _one(request, row)


@router.post(f"{ONE}/run", response=StartedRun, operation_id="runSchedule", summary="Run a schedule now")
def run_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Send the message of a schedule immediately, whether the schedule is on or off. Only its owner may do this.

    The request is refused as `queued` while the message of the last run is queued.
    """
    sent = schedules.run_now(author=request.user, session_id=session_id, schedule_id=schedule_id)
    answer = {"id": sent.id, "queued": sent.queued, "turn_id": sent.turn_id or None}
    return json_response(request, answer, tagged=False)


def _one(request: ApiRequest, row: Schedule) -> HttpResponse:
    return json_response(request, _out(row), revision=row.revision)


def _out(row: Schedule, outcome: str | None = None) -> Json:
    return {
        "id": row.pk,
        "session": row.session_id,
        "owner_id": row.owner_id,
        "owner": row.owner.sender,
        "text": row.text,
        "cron": row.cron,
        "zone": row.zone,
        "is_on": row.is_on,
        "next_at": iso(row.next_at),
        "paused": row.paused,
        "failures": row.failures,
        "last_run_at": iso(row.last_run_at),
        "last_message_id": row.last_message_id,
        "last_outcome": outcome_now(row) if outcome is None else outcome,
        "last_error": row.last_error,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
        "revision": row.revision,
    }
