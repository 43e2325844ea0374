"""Answer the questions of an agent, and decide about tool calls that wait for approval (UI-12)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.messages import Json, ToolCall
from agents.questions import InvalidAnswer, Question, read_question
from agents.safe_text import clean
from chat.access import may, may_approve, still_may_approve
from chat.agents_setup import registry
from chat.errors import Forbidden, Invalid, NoSuchMessage, NoSuchSession, ServiceError
from chat.models import (
    APPROVED,
    SENDING,
    ChatMessage,
    MessageRevision,
    MessageStatus,
    QuestionKind,
    RunState,
    Session,
    SessionRevision,
    SessionRun,
    User,
)
from chat.permissions import Permission
from chat.queries import cast, presets
from chat.queries.cast import AGENTS
from chat.queries.workspace_rules import with_workspace_rules
from chat.runs import lease
from chat.runs.approvals import Standing, standing_of, with_decision
from chat.runs.elicitations import records_of
from chat.runs.sanitize import sanitize_json
from chat.services.batches import Deadline
from chat.services.messages.editing import edit_marks
from chat.services.messages.senders import sender_in
from chat.services.messages.validation import validate_arguments, validate_json
from chat.services.people import memory, security_log, workspace_rules
from chat.services.runs import asking, delegation
from chat.services.runs.turns import end_call, resume_waiting, wait_for_other_agents
from chat.services.sessions.fields import change_config
from chat.services.transaction import SessionTransaction, notify_session_lists, save_revision

# Results for the model, so they are not translated.
REFUSED = "[Not run: {name} refused this call.]"
EXPIRED = "[Not answered: no one answered for {days} days]"


@transaction.atomic
def answer(*, session: Session, author: User, message_id: str, value: object) -> int:
    """Answer a tool call that waits for people. The first answer counts. Return the message's revision.

    An approved call runs, with the author's arguments, if any; otherwise the answer is the call's result.

    Raise ServiceError "already_answered" if the call no longer waits, with the name of the user who answered, and
    "not_storable" for characters that cannot be stored; Invalid if the answer does not fit the question; Forbidden if
    only owners and admins of the workspace may approve all calls of a tool.
    """
    validate_json(value)
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    row = _waiting_call(tx, message_id)
    if row.is_asking:
        return _answer_running(tx, row, author, value)
    checked = _check(_question_of(row), value)
    answered: Json = {
        "answer": sanitize_json(checked),
        "answered_by": author,
        "answered_by_name": sender_in(tx.session, author),
        "answered_at": timezone.now(),
    }
    if row.question == QuestionKind.APPROVAL:
        _decide(tx, row, author, checked, answered)
    else:
        result = _store_note(tx.session, author, checked) if row.question == QuestionKind.MEMORY else checked
        end_call(tx, row, clean(json.dumps(result, ensure_ascii=False)), answered["answered_at"], **answered)
    is_resumed = row.status == MessageStatus.PENDING or not tx.messages().filter(status=MessageStatus.WAITING).exists()
    if is_resumed:
        resume_waiting(tx)
    else:
        wait_for_other_agents(tx)
    tx.save()
    delegation.report_to_caller_on_commit(tx.session.caller_session_id)
    if is_resumed:
        lease.request(session.pk)
    return row.revision


def _waiting_call(tx: SessionTransaction, message_id: str) -> ChatMessage:
    """Return the call that waits for people. Raise ServiceError if it does not wait any more, or asks no question."""
    row = tx.messages().filter(pk=message_id).first()
    if row is None or not (row.question or row.asked):
        raise NoSuchMessage
    if row.status != MessageStatus.WAITING or row.subsession is not None:
        raise _already_answered(row)
    return row


def _answer_running(tx: SessionTransaction, row: ChatMessage, author: User, value: object) -> int:
    """Answer the question of a running call. `number` in the value is that of the question that the author saw."""
    question = asking.open_question(row)
    if question is None:
        raise _unreadable()
    if isinstance(value, dict) and "number" in value:
        number, value = value["number"], {name: each for name, each in value.items() if name != "number"}
        if number != len(records_of(row.asked)):
            raise _already_answered(row)
    asking.record_answer(tx, row, author, _check(question, value))
    tx.save()
    delegation.report_to_caller_on_commit(tx.session.caller_session_id)
    return row.revision


def expire(deadline: Deadline) -> int:
    """Resume turns that have waited for answers for ANSWER_DAYS. Return how many."""
    runs = expired()
    count = 0
    for session_id in list(runs.values_list("pk", flat=True)):
        if deadline.is_over:
            break
        with suppress(NoSuchSession), transaction.atomic():
            tx = SessionTransaction.lock(session_id)
            if runs.filter(pk=session_id).exists():
                _expire(tx)
                count += 1
    return count


def expired() -> QuerySet[SessionRun]:
    """Return the runs that have waited for answers for too long."""
    waiting = SessionRun.objects.filter(state=RunState.WAITING, delegating=False)
    if not settings.ANSWER_DAYS:
        return waiting.none()
    return waiting.filter(waiting_since__lte=timezone.now() - timedelta(days=settings.ANSWER_DAYS))


def _expire(tx: SessionTransaction) -> None:
    result = EXPIRED.format(days=settings.ANSWER_DAYS)
    fields = {"status": MessageStatus.INTERRUPTED, "result": result, "is_error": True, "ended_at": timezone.now()}
    for row in tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=True).order_by("sequence"):
        tx.update("tool_exec_end", row, fields)
    resume_waiting(tx)
    tx.save()
    delegation.report_to_caller_on_commit(tx.session.caller_session_id)
    lease.request(tx.session.pk)


def _question_of(row: ChatMessage) -> Question:
    """Return a call's question. Raise ServiceError if an edit of the arguments has made it unreadable."""
    question = read_question(row.question, {} if row.question == QuestionKind.APPROVAL else row.arguments)
    if question is None:
        raise _unreadable()
    return question


def _unreadable() -> ServiceError:
    return ServiceError("unreadable_question", _("This question can’t be read. Send a message instead."))


def _check(question: Question, value: object) -> Any:
    try:
        return question.check(value)
    except InvalidAnswer as error:
        (words,) = error.args
        raise Invalid(_(words.template).format_map(words.values)) from None


def _store_note(session: Session, author: User, answer: Json) -> Json:
    """Store an accepted note. Return the answer for the model, which states if the note is only a proposal yet."""
    if answer["decision"] != "save":
        return answer
    if answer["scope"] == "me":
        memory.keep_mine(user=author, text=answer["note"], session=session)
        return answer
    note = memory.keep_ours(author=author, workspace_id=session.workspace_id, text=answer["note"], session=session)
    return answer if note.accepted else {**answer, "waits_for": "an owner or admin of the workspace"}


def _already_answered(row: ChatMessage) -> ServiceError:
    given = [str(each["answered_by"]) for each in records_of(row.asked) if each.get("answered_by")]
    name = next(reversed(given), row.answered_by_name)
    if name:
        message = _("%(name)s has already answered.") % {"name": name}
    else:
        message = _("The agent no longer waits for this answer.")
    return ServiceError("already_answered", message, by=name)


def _standing(session: Session, row: ChatMessage, decision: Json) -> Standing | None:
    """Return the approvals that a call needs and has, or None if any user who may answer can decide alone.

    If the decision has other arguments, they can match rules that the model's arguments did not match. Such rules can
    only add to what the call needs. The arguments of an MCP server's tool, whose schema is not known here, count as not
    declared, so that no additional argument can evade a rule.
    """
    standing = standing_of(row.approval)
    arguments = decision.get("arguments")
    if not decision["approved"] or arguments is None or arguments == row.arguments:
        return standing
    agent = cast.known_agent(session, [row.agent_id])
    rules = with_workspace_rules(presets.own(session, agent).rules, session, agent)
    call, tool = ToolCall(row.tool_call_id, row.tool_name, sanitize_json(arguments)), registry().tool(row.tool_name)
    needs = rules.requirement(call, is_declared=tool is not None and tool.declares(call))
    if standing is not None:
        return replace(standing, needs=standing.needs.with_also(needs))
    return None if needs.is_plain else Standing(needs, ())


def _decide(tx: SessionTransaction, row: ChatMessage, author: User, decision: Json, answered: Json) -> None:
    """Let a call run, or refuse it, unless it needs further approvals."""
    if standing := _standing(tx.session, row, decision):
        _decide_with_others(tx, row, author, decision, answered, standing)
    else:
        _apply_decision(tx, row, author, decision, answered)


def _apply_decision(tx: SessionTransaction, row: ChatMessage, author: User, decision: Json, answered: Json) -> None:
    """Let a call run, or refuse it."""
    _log_decision(tx, row, author, decision)
    if not decision["approved"]:
        parts = [REFUSED.format(name=answered["answered_by_name"]), decision["comment"]]
        text = clean(" ".join(filter(None, parts)))
        end_call(tx, row, text, answered["answered_at"], is_error=True, **{**answered, "origin": ""})
        return
    _approve_for_later(tx, row, author, decision["scope"])
    edited = _edit_arguments(tx, row, author, decision.get("arguments"))
    tx.update("message_updated", row, {**answered, **edited, "origin": "", "status": MessageStatus.PENDING})


def _decide_with_others(
    tx: SessionTransaction, row: ChatMessage, author: User, decision: Json, answered: Json, standing: Standing
) -> None:
    """Record a decision about a call that needs several approvals, or approvals by a role.

    A refusal ends the call, and the last approval lets it run. Approvals of users who may no longer give them do not
    count. Raise Forbidden for users without the role, Invalid for approvals in advance, ServiceError
    "already_approved".
    """
    edited: Json = {}
    standing = standing.only_of(still_may_approve(standing.approved_by, tx.session, standing.needs.approvers))
    if decision["approved"]:
        if not may_approve(author, tx.session, standing.needs.approvers):
            raise Forbidden(_NOT_AN_APPROVER[standing.needs.approvers]())
        if decision["scope"] != "once":
            raise Invalid(_("This tool needs an approval each time."))
        edited = _edit_arguments(tx, row, author, decision.pop("arguments", None))
        if author.pk in standing.approved_by and not edited:
            raise ServiceError("already_approved", _("You already approved this. Others must approve it, too."))
    approval = with_decision(
        standing,
        user_id=author.pk,
        name=answered["answered_by_name"],
        at=answered["answered_at"],
        approved=decision["approved"],
        edited=bool(edited),
    )
    after = standing_of(approval)
    fields = {"approval": approval, **edited}
    if after is None or not decision["approved"] or not after.missing:
        _apply_decision(tx, row, author, decision, {**answered, **fields})
        return
    _log_decision(tx, row, author, decision)
    tx.update("message_updated", row, fields)
    notify_session_lists(sessions=[tx.session.pk])  # the session no longer waits for the author


_NOT_AN_APPROVER: dict[str, Callable[[], str]] = {
    "admin": lambda: _("Only owners and admins of the workspace can approve this."),
    "owner": lambda: _("Only owners of the workspace can approve this."),
}


def _log_decision(tx: SessionTransaction, row: ChatMessage, author: User, decision: Json) -> None:
    details = {"tool": row.tool_name, "approved": int(decision["approved"]), "scope": decision["scope"]}
    security_log.record(
        security_log.Kind.TOOL_DECIDED, actor=author, person=tx.session.owner_id, target=tx.session, **details
    )


def _edit_arguments(tx: SessionTransaction, row: ChatMessage, author: User, arguments: Json | None) -> Json:
    """Return the columns of a call with other arguments, and save a revision. Raise Invalid for invalid arguments."""
    if arguments is None or arguments == row.arguments:
        return {}
    validate_arguments(arguments)
    tool = registry().tool(row.tool_name)
    problem = tool.problem(ToolCall(row.tool_call_id, row.tool_name, arguments)) if tool else None
    if problem is not None:
        raise Invalid(problem.content)
    save_revision(row, author, MessageRevision.Kind.EDIT)
    return {"arguments": sanitize_json(arguments), **edit_marks(tx, row, author)}


def _approve_for_later(tx: SessionTransaction, row: ChatMessage, author: User, scope: str) -> None:
    """Approve further calls of the tool: in this session, or by this agent in all sessions of the workspace.

    If the card stated that the call could send out text from elsewhere, approve that, too, but for this session only.
    """
    session = tx.session
    sending = [f"{SENDING}{row.tool_name}"] if row.origin and scope != "once" else []
    if added := [*([row.tool_name] if scope == "session" else []), *sending]:
        entries = presets.copies_of_others(session)
        if any(entry["name"] == row.agent_id != session.agent for entry in entries):
            named = [_with_rules(each, added) if each["name"] == row.agent_id else each for each in entries]
            change_config(tx, author, SessionRevision.Kind.APPROVAL, **{AGENTS: named})
        else:
            rules = _with_rules(session.config_values, added)[APPROVED]
            change_config(tx, author, SessionRevision.Kind.APPROVAL, **{APPROVED: rules})
    if scope == "agent":
        if not may(author, Permission.MANAGE_RULES, session.workspace_id):
            raise Forbidden(_("Only owners and admins of the workspace can always allow a tool."))
        agent = cast.known_agent(session, [row.agent_id])
        workspace_rules.allow_always(session=session, author=author, agent=agent, tool=row.tool_name)


def _with_rules(config: Json, added: Sequence[str]) -> Json:
    """Return an agent's configuration with more rules by which users have approved its calls."""
    stored = config.get(APPROVED)
    rules = [rule for rule in stored if isinstance(rule, str)] if isinstance(stored, list) else []
    return {**config, APPROVED: list(dict.fromkeys([*rules, *added]))}
