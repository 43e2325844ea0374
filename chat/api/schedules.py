"""Schedules of a session: messages that are sent at set times."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Router, Schema
from pydantic import Field

from agents.messages import Json
from chat.api.auth import ApiRequest, session_of
from chat.api.message_schemas import SESSION_ID
from chat.api.parsing import Body
from chat.api.responses import if_match_revisions, iso, json_response, no_content
from chat.errors import Invalid
from chat.models import Schedule
from chat.queries.schedules import outcome_now, schedule_in, schedules_of
from chat.recurrence import LONGEST_CRON
from chat.services.sessions import schedules

router = Router(tags=["Schedules"])
PATH = "/sessions/{session_id}/schedules"
ONE = f"{PATH}/{{schedule_id}}"
CRON = "Five fields: minute, hour, day of the month, month, day of the week. At most every 5 minutes"
TEXT = "The message"
ZONE = "The IANA name of the time zone in which the expression is read"
Paused = Literal["", "access", "archived", "deleted", "failures", "invalid", "staff"]
RunOutcome = Literal[
    "", "queued", "held", "running", "waiting", "completed", "interrupted", "failed", "refused", "withdrawn"
]


class ScheduleOut(Schema):
    """A message that is sent as its owner, in a turn of the mode `run`."""

    id: str
    session: str = Field(examples=[SESSION_ID])
    owner_id: int
    owner: str
    text: str
    cron: str = Field(description=CRON, examples=["0 9 * * 1-5"])
    zone: str = Field(description=ZONE, examples=["Europe/Berlin"])
    is_on: bool
    next_at: datetime | None = Field(description="When it is due next; null while it is off")
    paused: Paused = Field(
        description="Why Parley has turned it off: its owner may not write in the session any more, the session was "
        "archived or deleted, five runs in a row have failed, its times cannot be used, or staff have paused it; "
        "empty otherwise"
    )
    failures: int = Field(description="Failed runs since the last success")
    last_run_at: datetime | None
    last_message_id: str = Field(description="The message of the last run; empty without one")
    last_outcome: RunOutcome = Field(description="What became of the last run; `refused`: no message was sent")
    last_error: str = Field(description="The code of the refusal")
    created_at: datetime
    updated_at: datetime
    revision: int = Field(
        description="Another one after each change by a person; runs, and pauses by Parley, leave it as it is"
    )


class Schedules(Schema):
    """The oldest first."""

    schedules: list[ScheduleOut]


class NewSchedule(Body):
    text: str = Field(min_length=1, description=TEXT, examples=["Summarize the new error reports."])
    cron: str = Field(max_length=LONGEST_CRON, description=CRON, examples=["0 9 * * 1-5"])
    zone: str = Field("UTC", max_length=64, description=ZONE, examples=["Europe/Berlin"])
    is_on: bool = Field(True, description="Whether it sends its message")


class ScheduleChange(Body):
    """Fields that are left out or null keep their values. `is_on` ends a pause."""

    text: str | None = Field(None, min_length=1, description=TEXT)
    cron: str | None = Field(None, max_length=LONGEST_CRON, description=CRON)
    zone: str | None = Field(None, max_length=64, description=ZONE)
    is_on: bool | None = Field(None, description="Whether it sends its message; true also ends a pause")
    revision: int | None = Field(
        None, description="The schedule's revision that you read: refused as `stale` if it was changed since"
    )


class StartedRun(Schema):
    """The message that was sent; `turn_id` is null while it is queued."""

    id: str
    queued: bool
    turn_id: str | None


@router.get(PATH, response=Schedules, operation_id="listSchedules", summary="List the schedules of a session")
def list_schedules(request: ApiRequest, session_id: str) -> HttpResponse:
    """Anyone in the session may."""
    listed = schedules_of(session_of(request, session_id))
    return json_response(request, {"schedules": [_out(each.row, each.outcome) for each in listed]})


@router.post(PATH, response={201: ScheduleOut}, operation_id="addSchedule", summary="Add a schedule")
def add_schedule(request: ApiRequest, session_id: str, body: NewSchedule) -> HttpResponse:
    """Its messages are sent as you. Editors may, except guests of the workspace; a session has at most 20."""
    row = schedules.add(
        author=request.user, session_id=session_id, text=body.text, cron=body.cron, zone=body.zone, is_on=body.is_on
    )
    return json_response(request, _out(row), status=201, tagged=False)


@router.get(ONE, response=ScheduleOut, operation_id="getSchedule", summary="Read a schedule")
def get_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Anyone in the session may."""
    return _one(request, schedule_in(session_of(request, session_id), schedule_id))


@router.patch(ONE, response=ScheduleOut, operation_id="changeSchedule", summary="Change a schedule")
def change_schedule(request: ApiRequest, session_id: str, schedule_id: str, body: ScheduleChange) -> HttpResponse:
    """Only its owner may. The session's owner may turn it off."""
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
    """Its owner and the session's owner may. `restore` brings it back; the messages that it has sent stay."""
    seen = if_match_revisions(request)
    schedules.remove(author=request.user, session_id=session_id, schedule_id=schedule_id, seen=seen)
    return no_content()


@router.post(
    f"{ONE}/restore", response=ScheduleOut, operation_id="restoreSchedule", summary="Restore a removed schedule"
)
def restore_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """The last twenty can be restored, until they are purged."""
    row = schedules.restore(author=request.user, session_id=session_id, schedule_id=schedule_id)
    return _one(request, row)


@router.post(f"{ONE}/run", response=StartedRun, operation_id="runSchedule", summary="Run a schedule now")
def run_schedule(request: ApiRequest, session_id: str, schedule_id: str) -> HttpResponse:
    """Send its message now, whether it is on or off. Only its owner may, and not while the last one is queued."""
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
