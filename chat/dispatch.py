"""What a command does: the gate, then the service. Sockets and other faces all come through here."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import assert_never

from django.urls import reverse

from agents.messages import Json
from chat.access import require_no_guest, session_for
from chat.bus import publisher
from chat.commands import (
    AcceptSuggestion,
    CancelRun,
    Configure,
    DismissSuggestion,
    Edit,
    EditQueued,
    Exclude,
    ExcludeBefore,
    Fork,
    Include,
    IncludeBefore,
    MarkRead,
    Remove,
    Rename,
    Request,
    Restore,
    RestoreAttempt,
    Retry,
    RunTools,
    SaveDraft,
    SendMessage,
    SendNow,
    SetAgent,
    SetModel,
    SetSystemPrompt,
    SuggestEdit,
    Typing,
    Withdraw,
)
from chat.limits.rates import spend
from chat.models import User
from chat.queries.attachments import described
from chat.services.idempotency import once
from chat.services.messages import context_inclusion, editing, sending, suggestions
from chat.services.runs import attempts, control
from chat.services.sessions import forking, lifecycle, user_state

# Sending and forking count in their services; stopping the agent is never refused.
UNCOUNTED = (SendMessage, Fork, CancelRun, Typing, MarkRead, SaveDraft)
TURNS = (Retry, RunTools, RestoreAttempt, SendNow)


def execute(user: User, session_id: str, command: Request) -> Json:
    """Execute a command for a user; return the contents of its `ack`. Raises ServiceError."""
    session, _role = session_for(user, session_id, command.needs)
    if (limit := _limit_of(command)) is not None:
        spend(limit, user.pk)
    if isinstance(command, Fork | SetModel | SetAgent | Configure):
        require_no_guest(user, session)
    match command:
        case SendMessage():
            sent = sending.send_message(
                session=session, author=user, text=command.text, key=command.key, attachment_ids=command.attachments
            )
            return {**asdict(sent), "turn_id": sent.turn_id or None}
        case EditQueued(id=message_id, text=text, revision=seen):
            revision = sending.edit_queued(session=session, author=user, message_id=message_id, text=text, seen=seen)
            return {"revision": revision}
        case Withdraw():
            files = sending.withdraw(session=session, author=user, message_id=command.id)
            return {"attachments": [described(file) for file in files]}
        case SendNow():
            return {"sent": sending.send_now(session=session, author=user, message_id=command.id)}
        case Typing():
            publisher.typing(session.pk, user.pk)
        case CancelRun():
            return {"stopping": control.cancel(session=session, author=user)}
        case Retry(id=message_id) | RunTools(id=message_id):
            do = control.retry_here if isinstance(command, Retry) else control.run_tools
            limits: Json = {"at_most": command.at_most, "preview": command.preview}
            return asdict(do(session=session, author=user, message_id=message_id, **limits))
        case RestoreAttempt(attempt=attempt):
            limits = {"at_most": command.at_most, "preview": command.preview}
            return asdict(attempts.restore_attempt(session=session, author=user, attempt=attempt, **limits))
        case Edit(id=message_id, text=text, revision=seen):
            revision = editing.edit(session=session, author=user, message_id=message_id, text=text, seen=seen)
            return {"revision": revision}
        case SuggestEdit(id=message_id, text=text, revision=seen):
            suggested = suggestions.suggest(session=session, author=user, message_id=message_id, text=text, seen=seen)
            return {"suggestion": suggested.pk}
        case AcceptSuggestion(id=suggestion_id, revision=seen):
            revision = suggestions.accept(session=session, author=user, suggestion_id=suggestion_id, seen=seen)
            return {"revision": revision}
        case DismissSuggestion(id=suggestion_id):
            suggestions.dismiss(session=session, author=user, suggestion_id=suggestion_id)
        case Exclude() | Include():
            included = isinstance(command, Include)
            editing.include(session=session, author=user, message_id=command.id, included=included)
        case ExcludeBefore(id=message_id):
            changed = context_inclusion.include_before(
                session=session, author=user, message_id=message_id, included=False
            )
            return asdict(changed)
        case IncludeBefore(id=message_id, since=known):
            changed = context_inclusion.include_before(
                session=session, author=user, message_id=message_id, included=True, since=known
            )
            return asdict(changed)
        case Remove():
            editing.remove(session=session, author=user, message_id=command.id)
        case Restore():
            editing.restore(session=session, author=user, message_id=command.id)
        case Fork(id=message_id, text=text):
            run = (text is not None) if command.run is None else command.run
            fork = partial(forking.fork, session=session, author=user, message_id=message_id, text=text, run=run)
            purpose = f"fork {session.pk} {message_id}"
            made, repeated = once(
                user=user,
                purpose=purpose,
                key=command.key,
                request={"text": text, "run": run},
                make=lambda pk, digest: fork(session_id=pk, key_digest=digest),
            )
            return {"session": made.pk, "url": reverse("session", args=[made.pk]), "repeated": repeated}
        case SetModel():
            lifecycle.set_model(session=session, author=user, provider=command.provider, model=command.model)
        case SetAgent():
            lifecycle.set_agent(session=session, author=user, agent=command.agent)
        case Configure():
            lifecycle.configure(
                session=session,
                author=user,
                tools=command.tools,
                max_rounds=command.max_rounds,
                mode=command.mode,
                reasoning_effort=command.reasoning_effort,
                thinking_budget=command.thinking_budget,
            )
        case Rename():
            lifecycle.rename(session=session, author=user, title=command.title)
        case SetSystemPrompt(system_prompt=prompt, seen=known):
            lifecycle.set_system_prompt(session=session, author=user, system_prompt=prompt, seen=known)
        case MarkRead():
            user_state.mark_read(session=session, user=user, revision=command.revision)
        case SaveDraft():
            user_state.save_draft(session=session, user=user, text=command.text)
        case _:
            assert_never(command)
    return {}


def _limit_of(command: Request) -> str | None:
    if isinstance(command, UNCOUNTED):
        return None
    return "turns" if isinstance(command, TURNS) else "changes"
