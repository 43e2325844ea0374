"""Begin turns: insert the marker, deliver queued messages, resume a turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from agents.messages import Json
from chat import ids
from chat.bus.events import StatusChanged
from chat.errors import Busy
from chat.limits.quotas import require_turn
from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType, RunState, Session, SessionRun, User
from chat.projections.subsessions import shown_call, shown_subsession
from chat.queries.attachments import fetch_attachments
from chat.queries.cast import AGENTS, REPEATS, addressed_agents, turn_mode
from chat.row_statements import update_row
from chat.runs import lease
from chat.services.transaction import SessionTransaction


def open_turn(
    tx: SessionTransaction,
    started_by: int | None,
    agents: Sequence[str],
    *,
    follows: bool = False,
    workflow_id: str = "",
    repeats: str = "",
) -> str:
    """Begin a turn with its marker, and return its id. The caller adds the messages to answer.

    The first of the `agents` answers in it, the others in turns that follow it, which have no messages of their own.
    With the id of a schedule as `workflow_id`, the mode of the turn is `run` (MSG-09). `repeats` is the id of the
    failed turn whose agent answers again.
    """
    turn_id = ids.turn_id()
    now = start_run(tx.run, turn_id, started_by)
    marker = ChatMessage(type=MessageType.TURN_START, turn_id=turn_id, workflow_id=workflow_id, timestamp=now)
    marker.mode = turn_mode(tx.session, marker)
    if follows or list(agents) != [tx.session.agent]:
        marker.agent_id, marker.arguments = agents[0], {AGENTS: list(agents)}
    if repeats:
        marker.arguments = {AGENTS: list(agents), REPEATS: repeats}
    tx.insert("turn_start", marker)
    return turn_id


def start_run(run: SessionRun, turn_id: str, started_by: int | None, *, compacting: bool = False) -> datetime:
    """Set the columns of a run for a turn that runs from now on, and return the time of its start.

    `started_by` is None if no user started it.
    """
    now = timezone.now()
    run.turn_id, run.turn_started_at, run.state = turn_id, now, RunState.RUNNING
    run.started_by_id, run.stopped_by, run.compacting = started_by, None, compacting
    update_row(run, ["turn_id", "turn_started_at", "state", "started_by", "stopped_by", "compacting"])
    return now


def deliver_queued(tx: SessionTransaction, unfinished: Sequence[str] = ()) -> bool:
    """Deliver the queued messages (RUN-06), in a new turn if an agent has to answer any. Return whether a turn began.

    `unfinished` are the agents that have not answered the earlier messages. They answer first.
    """
    if tx.session.status == Session.Status.DELETED:
        return False
    queued = list(ChatMessage.objects.deliverable(tx.session.pk)) if tx.has_queued else []
    if deliver(tx, queued, unfinished):
        return True
    if unfinished:
        marker = tx.messages().filter(turn_id=tx.run.turn_id, type=MessageType.TURN_START).first()
        workflow_id = marker.workflow_id if marker is not None else ""
        open_turn(tx, tx.run.started_by_id, unfinished, follows=True, workflow_id=workflow_id)
        tx.events.append(StatusChanged("thinking"))
    return bool(unfinished)


def deliver(tx: SessionTransaction, queued: Sequence[ChatMessage], unfinished: Sequence[str] = ()) -> bool:
    """Deliver these queued messages, in a new turn if an agent has to answer any. Return whether a turn began."""
    fetch_attachments(queued)
    asking = [row for row in queued if row.for_agent]
    turn_id = _open_turn_for(tx, asking, unfinished) if asking else ""
    for row in queued:
        tx.update("user_message", row, _delivery_columns(tx, turn_id), {"model": tx.session.model})
    if asking:
        tx.events.append(StatusChanged("thinking"))
    return bool(asking)


def _open_turn_for(tx: SessionTransaction, asking: Sequence[ChatMessage], unfinished: Sequence[str]) -> str:
    """Begin a turn for the agents that these messages address.

    The first user who waits for an answer to one of the messages has started it. If all are messages of schedules, it
    belongs to the first of these.
    """
    agents = [name for row in asking for name in addressed_agents(tx.session, row.text)]
    agents = list(dict.fromkeys([*unfinished, *agents])) or [tx.session.agent]
    by_users = [row for row in asking if not row.workflow_id]
    first = (by_users or asking)[0]
    return open_turn(tx, first.user_id, agents, workflow_id="" if unfinished else first.workflow_id)


def _delivery_columns(tx: SessionTransaction, turn_id: str) -> dict[str, object]:
    return {"status": MessageStatus.COMPLETE, "sequence": tx.next_sequence(), "turn_id": turn_id, "held": False}


def end_call(
    tx: SessionTransaction, call: ChatMessage, result: str, now: datetime, *, is_error: bool = False, **fields: object
) -> None:
    """End a tool call with its result. `fields` are further columns of its row."""
    ended = {
        **fields,
        "status": MessageStatus.FAILED if is_error else MessageStatus.COMPLETE,
        "result": result,
        "is_error": is_error,
        "ended_at": now,
        "duration_ms": max(0, round((now - call.timestamp).total_seconds() * 1000)),
    }
    tx.update("tool_exec_end", call, ended)


def end_wait(tx: SessionTransaction, message_id: str, fields: Json, if_approved: str) -> None:
    """Write the end of a call that waits, unless it has its result. `if_approved` is the result of an approved call."""
    call = ChatMessage.objects.get(pk=message_id)
    if call.status in (MessageStatus.WAITING, MessageStatus.PENDING):
        result = {"result": if_approved} if call.status == MessageStatus.PENDING else {}
        tx.update("tool_exec_end", call, {**fields, **result})


def resume_waiting(tx: SessionTransaction) -> None:
    """Resume a turn that waits for people (UI-12). The caller requests the run."""
    if tx.run.state == RunState.WAITING:
        tx.run.state, tx.run.delegating = RunState.RUNNING, False
        update_row(tx.run, ["state", "delegating"])
        tx.events.append(StatusChanged("thinking"))


def wait_for_other_agents(tx: SessionTransaction) -> None:
    """Mark the session as waiting only for other agents if, after an answer, no question to people is open."""
    if tx.run.state != RunState.WAITING or tx.run.delegating:
        return
    calls = tx.messages().filter(status=MessageStatus.WAITING)
    if not calls.filter(subsession__isnull=True).exists():
        tx.run.delegating = True
        update_row(tx.run, ["delegating"])
        show_delegated(tx)


def show_delegated(tx: SessionTransaction) -> None:
    """Publish for which other agents the session waits, if it waits only for other agents."""
    calls = delegated_calls(tx)
    call = shown_call(calls)
    if tx.run.delegating and call is not None:
        tx.events.append(StatusChanged("tool_calling", call.tool_name, asked=shown_subsession(call, calls)))


def delegated_calls(tx: SessionTransaction) -> list[ChatMessage]:
    """Return the calls on which other agents work, in order, with the columns that the status needs."""
    calls = tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=False).order_by("sequence")
    return list(calls.only("tool_name", "subsession"))


def require_idle(run: SessionRun) -> None:
    """Raise Busy while a turn runs or waits. The error states what the turn waits for."""
    if run.state == RunState.WAITING and not run.delegating:
        raise Busy(_("The agent is waiting for an answer. Answer first, or stop it."))
    if run.state != RunState.IDLE:
        raise Busy


def hold_queued(tx: SessionTransaction) -> None:
    """Hold the queued messages that the agent would answer, until a user sends them (RUN-06)."""
    queued = list(ChatMessage.objects.to_answer(tx.session.pk))
    fetch_attachments(queued)
    for row in queued:
        tx.update("message_updated", row, {"held": True})


def resume_turn(tx: SessionTransaction, turn_id: str, author: User) -> None:
    """Reopen a turn whose end was withdrawn (RUN-12), as started by the author, and request a run.

    The author waits for it, so the turn of a schedule has the session's mode from now on. Raise QuotaExceeded.
    """
    require_turn(author)
    markers = tx.messages().filter(turn_id=turn_id, type=MessageType.TURN_START)
    for marker in markers.exclude(workflow_id=""):
        tx.update("message_updated", marker, {"workflow_id": "", "mode": tx.session.mode})
    start_run(tx.run, turn_id, author.pk)
    tx.events.append(StatusChanged("thinking"))
    lease.request(tx.session.pk)


def is_unaddressed(row: ChatMessage) -> bool:
    """Return whether a text was for no agent when it was sent, and so is in no turn (RUN-17)."""
    is_input = row.type == MessageType.TEXT and row.role in (MessageRole.USER, MessageRole.SYSTEM)
    return is_input and not row.turn_id


def answer_unaddressed(tx: SessionTransaction, text: str, author: User) -> None:
    """Begin a turn that answers a text which was for no agent, and request a run. Raise QuotaExceeded.

    The agents that the text mentions answer. If there are none, the session's own agent does.
    """
    answer_with(tx, addressed_agents(tx.session, text) or [tx.session.agent], author)


def answer_with(tx: SessionTransaction, agents: Sequence[str], author: User, *, repeats: str = "") -> None:
    """Begin a turn without a message, in which these agents answer the existing messages. Raise QuotaExceeded."""
    require_turn(author)
    open_turn(tx, author.pk, agents, follows=True, repeats=repeats)
    tx.events.append(StatusChanged("thinking"))
    lease.request(tx.session.pk)


def address_again(tx: SessionTransaction, turn_id: str, default: Sequence[str] = ()) -> None:
    """Give a turn to the agents that its messages address now, as messages may have been edited, or agents added.

    If they address none, the turn goes to the `default`. Without one, it keeps its agents.
    """
    rows = list(tx.messages().filter(turn_id=turn_id).order_by("sequence"))
    sent = [row for row in rows if row.type == MessageType.TEXT and row.role == MessageRole.USER and row.for_agent]
    agents = list(dict.fromkeys(name for row in sent for name in addressed_agents(tx.session, row.text)))
    agents = agents or list(default)
    marker = next((row for row in rows if row.type == MessageType.TURN_START), None)
    if not agents or marker is None:
        return
    is_own = agents == [tx.session.agent]
    fields = {"agent_id": "" if is_own else agents[0], "arguments": None if is_own else {AGENTS: agents}}
    if (marker.agent_id, marker.arguments) != tuple(fields.values()):
        fetch_attachments([marker])
        tx.update("message_updated", marker, fields)
