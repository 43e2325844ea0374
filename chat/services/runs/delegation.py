"""Give tasks to other agents. Each works in its own session, whose last answer is the result of the call.

The session begins in the transaction in which its call begins to wait. `report_to_caller` writes the result once, in a
transaction of the caller's session: after the last turn, or in the maintenance job if a process ended in between.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.delegates import MAX_LEVELS, MAX_TASKS
from agents.messages import Json
from agents.prices import total_of
from agents.safe_text import safe_text
from chat.agents_setup import registry
from chat.bus.events import StatusChanged
from chat.errors import NoSuchSession, ServiceError
from chat.limits.quotas import require_turn
from chat.models import (
    IMPORTED,
    NEVER_APPROVED,
    ChatMessage,
    MessageRole,
    MessageStatus,
    MessageType,
    RunState,
    Session,
    SessionRun,
    Share,
    User,
    without_files,
)
from chat.projections.context import TOOL_INTERRUPTED
from chat.projections.subsessions import GONE, Answer, answer_of, shown_subsession
from chat.queries import presets, subsessions
from chat.queries.attachments import fetch_attachments
from chat.queries.usage import usage_of
from chat.runs import lease
from chat.services.runs.turns import delegated_calls, end_call, open_turn, resume_waiting, show_delegated
from chat.services.sessions.titles import opening_words
from chat.services.transaction import SessionTransaction, notify_session_lists
from chat.snapshots import money_of
from chat.subsession_snapshot import Wait

NOT_OFFERED = "Not run: this agent is not available here."
TOO_DEEP = f"Not run: agents can delegate tasks at most {MAX_LEVELS} levels deep. Do the task yourself."
TOO_MANY = f"Not run: an agent can start up to {MAX_TASKS} tasks in one turn."


def begin(tx: SessionTransaction, call: ChatMessage, *, has_new_address: bool = False) -> None:
    """Create the session in which another agent works on a waiting call. If it is refused, end the call as failed.

    If a user has stopped the turn since the model made the call, only end the call, because no one would stop the other
    agent. `has_new_address`: the task has an address that the caller's agent may have made up from what it has read.
    """
    if tx.run.state == RunState.CANCELLING:
        ended = {"status": MessageStatus.INTERRUPTED, "result": TOOL_INTERRUPTED, "is_error": True}
        tx.update("tool_exec_end", call, {**ended, "ended_at": timezone.now()})
        return
    agent = presets.own(tx.session, call.agent_id)
    preset = subsessions.preset_for(call, agent)
    refusal = _refusal(tx, call) or ("" if preset else NOT_OFFERED)
    if refusal or preset is None:
        _end_call(tx, call, Answer(refusal, is_error=True))
        return
    title = preset.title
    is_foreign = _has_foreign_text(tx)
    child = Session.objects.create(
        workspace_id=tx.session.workspace_id,
        owner_id=tx.session.owner_id,
        title=opening_words(_task(call)),
        mode=Session.Mode.RUN if call.mode == Session.Mode.RUN else tx.session.mode,
        agent=preset.name,
        provider=preset.provider,
        model=preset.model,
        system_prompt=preset.system_prompt,
        # The task may repeat text from elsewhere, so the session is treated like an imported one.
        config={**presets.copy_of(preset), **({IMPORTED: True} if is_foreign else {})},
        context_window=registry().context_window(preset.provider, preset.model),
        workspace_role=tx.session.workspace_role,
        caller_session=tx.session,
        caller_message_id=call.pk,
    )
    SessionRun.objects.create(session=child)
    people = Share.objects.filter(session=tx.session).order_by("created_at", "pk")
    Share.objects.bulk_create([Share(session=child, user_id=each.user_id, role=each.role) for each in people])
    origin = (agent.title or agent.name) if is_foreign and has_new_address else ""
    _add_task(child, agent.title, _task(call), tx.run.started_by_id, origin)
    notify_session_lists(sessions=[child.pk])
    tx.update("message_updated", call, {"subsession": {"id": child.pk, "agent": preset.name, "title": title}})
    asked = shown_subsession(call, delegated_calls(tx))
    tx.events.append(StatusChanged("tool_calling", call.tool_name, asked=asked))


def _task(call: ChatMessage) -> str:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return str(arguments.get("task", ""))


def _refusal(tx: SessionTransaction, call: ChatMessage) -> str:
    if subsessions.level(tx.session) >= MAX_LEVELS:
        return TOO_DEEP
    given = tx.messages().filter(turn_id=call.turn_id, subsession__isnull=False)
    if given.count() >= MAX_TASKS:
        return TOO_MANY
    author = User.objects.filter(pk=tx.run.started_by_id or tx.session.owner_id).first()
    try:
        if author is not None:
            require_turn(author)
    except ServiceError as refusal:
        return f"Not run: {refusal.message}"
    return ""


def _has_foreign_text(tx: SessionTransaction) -> bool:
    """Return whether the agent may have read text from elsewhere: an import, a file, or a row with a foreign origin."""
    has_origin = ~Q(origin="") & ~NEVER_APPROVED  # as `foreign_origin` does for one row
    rows = tx.messages().filter(Q(attachments__isnull=False) | has_origin, include_in_context=True)
    return bool(tx.session.config_values.get(IMPORTED)) or rows.exists()


def _add_task(child: Session, sender: str, task: str, started_by: int | None, origin: str) -> None:
    """Add the task as a message of the calling agent. The turn counts for the user who started the caller's turn.

    With an `origin`, the task is text from elsewhere, so that addresses in it do not count as written by a user.
    """
    tx = SessionTransaction.lock(child.pk)
    turn_id = open_turn(tx, started_by, [child.agent])
    row = ChatMessage(
        type=MessageType.TEXT,
        role=MessageRole.USER,
        text=task,
        sender=sender[:200],
        origin=origin[:200],
        turn_id=turn_id,
        mode=child.mode,
    )
    tx.add_rows([row])
    without_files(row)
    tx.record_event("user_message", row, {"model": child.model})
    tx.events.append(StatusChanged("thinking"))
    tx.save()
    lease.request(child.pk)


def report_to_caller(caller_id: str) -> int:
    """Write the results of a session's calls whose agents have ended, and resume its turn. Return how many.

    The other calls store whether their agents wait for people.
    """
    with suppress(NoSuchSession), transaction.atomic():
        return _report(SessionTransaction.lock(caller_id))
    return 0


def report_to_caller_on_commit(caller_id: str | None) -> None:
    """Report to a session when the transaction commits. Do nothing for None, if no session has called this one.

    If the process ends before, the maintenance job reports.
    """
    if caller_id:
        transaction.on_commit(partial(report_to_caller, caller_id))


def _report(tx: SessionTransaction) -> int:
    calls = list(tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=False).order_by("sequence"))
    ended = changed = 0
    for call in calls:
        children = Session.objects.filter(caller_session=tx.session, caller_message_id=call.pk)
        child = children.select_related("run").first()
        if child is not None and child.status != Session.Status.DELETED and child.run.state != RunState.IDLE:
            changed += _update_wait(tx, call, child.pk)
            continue
        ended += 1
        is_there = child is not None and child.status != Session.Status.DELETED
        rows = list(ChatMessage.objects.in_conversation(child.pk).order_by("sequence")) if child and is_there else []
        fetch_attachments(rows)
        answer = answer_of(rows) if is_there else Answer(GONE, is_error=True)
        _end_call(tx, call, answer, _usage_fields(call, child, rows))
    if not ended and not changed:
        return 0
    people_are_asked = tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=True).exists()
    # Messages that were sent instead of an answer have only waited for the other agents.
    if ended == len(calls) and (not people_are_asked or ChatMessage.objects.for_break(tx.session.pk).exists()):
        resume_waiting(tx)
        lease.request(tx.session.pk)
    else:
        show_delegated(tx)
    tx.save(is_activity=ended > 0)
    if changed:
        report_to_caller_on_commit(tx.session.caller_session_id)
    return ended


def _update_wait(tx: SessionTransaction, call: ChatMessage, child_id: str) -> bool:
    """Store in a call what its session waits for from people. Return whether that has changed."""
    wait = subsessions.waits_for(child_id)
    if call.subsession is None or wait == Wait.of(call.subsession):
        return False
    tx.update("message_updated", call, {"subsession": {**call.subsession, **wait.to_json()}})
    return True


def _usage_fields(call: ChatMessage, child: Session | None, rows: list[ChatMessage]) -> Json:
    """Return what the card shows of a session that has ended: tokens and costs, including sessions below it."""
    if child is None:
        return {}
    below = [row.subsession for row in rows if isinstance(row.subsession, dict)]
    costs = [money_of(each) for one in below for each in one.get("costs") or ()]
    sums = total_of([*usage_of(child).costs, *costs])
    return {
        "tokens": child.total_tokens + sum(int(each.get("tokens") or 0) for each in below),
        "costs": [{"amount": str(each.amount), "currency": each.currency} for each in sums],
    }


def _end_call(tx: SessionTransaction, call: ChatMessage, answer: Answer, used: Json | None = None) -> None:
    fields: Json = {"origin": answer.origin[:200]}
    if call.subsession:
        fields["subsession"] = {**call.subsession, **(used or {}), **Wait().to_json()}
    end_call(tx, call, safe_text(answer.text), timezone.now(), is_error=answer.is_error, **fields)


def stop(session_id: str, author_id: int | None) -> None:
    """Stop the agents that work for a session which is being stopped or deleted, in the caller's transaction."""
    for child in subsessions.below(session_id):
        lease.ask_to_stop(child, author_id)


def report_forgotten() -> int:
    """Report agents that have ended or wait for people, if a process could not. Return how many have ended."""
    ended = subsessions.ended_calls().values_list("session", flat=True)
    outdated = (call.session_id for call in subsessions.outdated_calls())
    return sum(report_to_caller(session_id) for session_id in dict.fromkeys([*ended, *outdated]))
