"""From a command to its service: check the access, count the command, call its handler. For sockets and REST."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.messages import Json
from chat import commands
from chat.access import require_no_guest, session_for
from chat.bus import publisher
from chat.commands import SessionCommand
from chat.errors import NoSuchMessage, ServiceError
from chat.limits.rates import spend
from chat.models import ChatMessage, Session, User
from chat.queries import forked_files, messages
from chat.queries.attachments import describe
from chat.services.idempotency import create_once
from chat.services.messages import context_inclusion, editing, sending, starting, suggestions
from chat.services.runs import answering, attempts, compaction, control
from chat.services.sessions import agents, forking, lifecycle, user_state
from chat.services.sessions.actions import SessionAction, apply_action
from chat.services.transaction import SessionTransaction

Command = TypeVar("Command", bound=SessionCommand)
Handler = Callable[[User, Session, Command], Json | None]
HANDLERS: dict[type[SessionCommand], Handler[Any]] = {}


def execute(user: User, session_id: str, command: SessionCommand) -> Json:
    """Execute a command for a user, and return the content of its `ack`. Raise ServiceError."""
    if isinstance(command, commands.SendMessage):
        spend("sends", user.pk)
        if not command.attachments:
            # Only a plain message begins its turn here. Its transaction checks the access.
            sent = starting.begin_turn(author=user, session_id=session_id, text=command.text, key=command.key)
            if sent is not None:
                return asdict(sent)
    session, _role = session_for(user, session_id, command.needs)
    if command.limit is not None:
        spend(command.limit, user.pk)
    if not command.for_guests:
        require_no_guest(user, session)
    return HANDLERS[type(command)](user, session, command) or {}


@transaction.atomic
def amend(
    *,
    user: User,
    session_id: str,
    commands: Sequence[SessionCommand] = (),
    actions: Collection[SessionAction] = (),
    seen: Collection[int] | None = None,
) -> list[Json]:
    """Apply all of several commands and list actions to a session, or none. Return the result of each command.

    Raise ServiceError "stale", with the present `revision`, if `seen` is given and does not include the session's
    revision; and the errors of the commands.
    """
    session, _role = session_for(user, session_id)
    if seen is not None and (revision := SessionTransaction.lock(session.pk).session.revision) not in seen:
        raise ServiceError("stale", _("The session was changed in the meantime."), revision=revision)
    for action in set(actions) - {SessionAction.ARCHIVE}:
        apply_action(user=user, action=action, session_ids=[session_id])
    results = [execute(user, session_id, command) for command in commands]
    if SessionAction.ARCHIVE in actions:  # last, because an archived session accepts no changes
        apply_action(user=user, action=SessionAction.ARCHIVE, session_ids=[session_id])
    return results


@transaction.atomic
def amend_message(
    *,
    user: User,
    session_id: str,
    message_id: str,
    commands: Sequence[SessionCommand],
    seen: Collection[int] | None = None,
) -> list[Json]:
    """Apply all of several commands to a message, or none. Return the result of each.

    Raise ServiceError "stale", with the present message as `current` and its `revision`, if `seen` is given and does
    not include that revision.
    """
    if seen is not None:
        _require_unchanged(user, session_id, message_id, seen)
    return [execute(user, session_id, command) for command in commands]


def fork_message(
    *, user: User, session_id: str, message_id: str, command: SessionCommand, seen: Collection[int] | None = None
) -> Json:
    """Fork at a message, outside of a transaction, because a copy takes seconds. Raise as `amend_message` does."""
    if seen is not None:
        with transaction.atomic():
            _require_unchanged(user, session_id, message_id, seen)
    return execute(user, session_id, command)


def _require_unchanged(user: User, session_id: str, message_id: str, seen: Collection[int]) -> None:
    session, _role = session_for(user, session_id)
    SessionTransaction.lock(session.pk)
    if not ChatMessage.objects.filter(pk=message_id, session=session).exists():
        raise NoSuchMessage
    present = messages.message_snapshot(message_id)
    if present is None or present.revision not in seen:
        current, revision = (present.to_json(), present.revision) if present else (None, None)
        message = _("The message was changed in the meantime.")
        raise ServiceError("stale", message, current=current, revision=revision)


def handles(kind: type[Command]) -> Callable[[Handler[Command]], Handler[Command]]:
    """Register the handler of a command. It returns the content of the `ack` besides the command's `ref`, or None."""

    def register(handler: Handler[Command]) -> Handler[Command]:
        HANDLERS[kind] = handler
        return handler

    return register


@handles(commands.SendMessage)
def _send(user: User, session: Session, command: commands.SendMessage) -> Json:
    sent = sending.send_message(
        session=session, author=user, text=command.text, key=command.key, attachment_ids=command.attachments
    )
    return {**asdict(sent), "turn_id": sent.turn_id or None}


@handles(commands.Answer)
def _answer(user: User, session: Session, command: commands.Answer) -> Json:
    revision = answering.answer(session=session, author=user, message_id=command.id, value=command.value)
    return {"revision": revision}


@handles(commands.EditQueued)
def _edit_queued(user: User, session: Session, command: commands.EditQueued) -> Json:
    revision = sending.edit_queued(
        session=session, author=user, message_id=command.id, text=command.text, seen=command.revision
    )
    return {"revision": revision}


@handles(commands.Withdraw)
def _withdraw(user: User, session: Session, command: commands.Withdraw) -> Json:
    files = sending.withdraw(session=session, author=user, message_id=command.id)
    return {"attachments": [describe(file) for file in files]}


@handles(commands.SendNow)
def _send_now(user: User, session: Session, command: commands.SendNow) -> Json:
    return {"sent": sending.send_now(session=session, author=user, message_id=command.id)}


@handles(commands.Editing)
def _editing(user: User, session: Session, command: commands.Editing) -> None:
    """Check that the user may edit the message. The consumer records the editor, because it ends with the socket."""
    if command.open:
        message_id = None if command.id == commands.SYSTEM_PROMPT else command.id
        editing.require_editor(session=session, author=user, message_id=message_id)


@handles(commands.Typing)
def _typing(user: User, session: Session, command: commands.Typing) -> None:
    publisher.notify_typing(session.pk, user.pk)


@handles(commands.Compact)
def _compact(user: User, session: Session, command: commands.Compact) -> None:
    compaction.compact(session=session, author=user)


@handles(commands.CancelRun)
def _cancel(user: User, session: Session, command: commands.CancelRun) -> Json:
    return {"stopping": control.cancel(session=session, author=user)}


@handles(commands.Retry)
def _retry(user: User, session: Session, command: commands.Retry) -> Json:
    withdrawal = control.retry(
        session=session,
        author=user,
        message_id=command.id,
        edited=command.edited,
        at_most=command.at_most,
        preview=command.preview,
    )
    return asdict(withdrawal)


@handles(commands.ContinueAnswer)
def _continue(user: User, session: Session, _command: commands.ContinueAnswer) -> Json:
    return {"turn_id": control.continue_answer(session=session, author=user)}


@handles(commands.RunTools)
def _run_tools(user: User, session: Session, command: commands.RunTools) -> Json:
    withdrawal = control.run_tools(
        session=session, author=user, message_id=command.id, at_most=command.at_most, preview=command.preview
    )
    return asdict(withdrawal)


@handles(commands.RestoreAttempt)
def _restore_attempt(user: User, session: Session, command: commands.RestoreAttempt) -> Json:
    withdrawal = attempts.restore_attempt(
        session=session, author=user, attempt=command.attempt, at_most=command.at_most, preview=command.preview
    )
    return asdict(withdrawal)


@handles(commands.SwitchAttempt)
def _switch_attempt(user: User, session: Session, command: commands.SwitchAttempt) -> Json:
    withdrawal = attempts.switch_attempt(
        session=session,
        author=user,
        message_id=command.id,
        number=command.number,
        at_most=command.at_most,
        preview=command.preview,
    )
    return asdict(withdrawal)


@handles(commands.Edit)
def _edit(user: User, session: Session, command: commands.Edit) -> Json:
    revision = editing.edit(
        session=session, author=user, message_id=command.id, text=command.text, seen=command.revision
    )
    return {"revision": revision}


@handles(commands.SuggestEdit)
def _suggest_edit(user: User, session: Session, command: commands.SuggestEdit) -> Json:
    suggestion = suggestions.suggest(
        session=session, author=user, message_id=command.id, text=command.text, seen=command.revision
    )
    return {"suggestion": suggestion.pk}


@handles(commands.AcceptSuggestion)
def _accept_suggestion(user: User, session: Session, command: commands.AcceptSuggestion) -> Json:
    revision = suggestions.accept(session=session, author=user, suggestion_id=command.id, seen=command.revision)
    return {"revision": revision}


@handles(commands.DismissSuggestion)
def _dismiss_suggestion(user: User, session: Session, command: commands.DismissSuggestion) -> None:
    suggestions.dismiss(session=session, author=user, suggestion_id=command.id)


@handles(commands.Exclude)
def _exclude(user: User, session: Session, command: commands.Exclude) -> None:
    seen = command.revision
    editing.set_included(session=session, author=user, message_id=command.id, included=False, seen=seen)


@handles(commands.Include)
def _include(user: User, session: Session, command: commands.Include) -> None:
    seen = command.revision
    editing.set_included(session=session, author=user, message_id=command.id, included=True, seen=seen)


@handles(commands.ExcludeBefore)
def _exclude_before(user: User, session: Session, command: commands.ExcludeBefore) -> Json:
    changed = context_inclusion.include_before(session=session, author=user, message_id=command.id, included=False)
    return asdict(changed)


@handles(commands.IncludeBefore)
def _include_before(user: User, session: Session, command: commands.IncludeBefore) -> Json:
    changed = context_inclusion.include_before(
        session=session, author=user, message_id=command.id, included=True, since=command.since
    )
    return asdict(changed)


@handles(commands.Remove)
def _remove(user: User, session: Session, command: commands.Remove) -> None:
    editing.remove(session=session, author=user, message_id=command.id)


@handles(commands.Restore)
def _restore(user: User, session: Session, command: commands.Restore) -> None:
    editing.restore(session=session, author=user, message_id=command.id)


@handles(commands.Fork)
def _fork(user: User, session: Session, command: commands.Fork) -> Json:
    text, run = command.text, (command.text is not None) if command.run is None else command.run
    fork = partial(forking.fork, session=session, author=user, message_id=command.id, text=text, run=run)
    made, repeated = create_once(
        user=user,
        purpose=f"fork {session.pk} {command.id}",
        key=command.key,
        request={"text": text, "run": run},
        make=lambda pk, digest: fork(session_id=pk, key_digest=digest),
    )
    url, notice = reverse("session", args=[made.pk]), forked_files.notice(made)
    return {"session": made.pk, "url": url, "repeated": repeated, "notice": notice}


@handles(commands.SetModel)
def _set_model(user: User, session: Session, command: commands.SetModel) -> None:
    lifecycle.set_model(session=session, author=user, provider=command.provider, model=command.model)


@handles(commands.SetAgent)
def _set_agent(user: User, session: Session, command: commands.SetAgent) -> None:
    lifecycle.set_agent(session=session, author=user, agent=command.agent)


@handles(commands.AddAgent)
def _add_agent(user: User, session: Session, command: commands.AddAgent) -> None:
    agents.add_agent(session=session, author=user, agent=command.agent, again=command.again)


@handles(commands.RemoveAgent)
def _remove_agent(user: User, session: Session, command: commands.RemoveAgent) -> None:
    agents.remove_agent(session=session, author=user, agent=command.agent)


@handles(commands.Configure)
def _configure(user: User, session: Session, command: commands.Configure) -> None:
    lifecycle.configure(
        session=session,
        author=user,
        tools=command.tools,
        max_rounds=command.max_rounds,
        mode=command.mode,
        replies=command.replies,
        reasoning_effort=command.reasoning_effort,
        thinking_budget=command.thinking_budget,
        compact_at=command.compact_at,
        memory=command.memory,
        knowledge=command.knowledge,
    )


@handles(commands.Rename)
def _rename(user: User, session: Session, command: commands.Rename) -> None:
    lifecycle.rename(session=session, author=user, title=command.title)


@handles(commands.SetSystemPrompt)
def _set_system_prompt(user: User, session: Session, command: commands.SetSystemPrompt) -> None:
    lifecycle.set_system_prompt(session=session, author=user, system_prompt=command.system_prompt, seen=command.seen)


@handles(commands.MarkRead)
def _mark_read(user: User, session: Session, command: commands.MarkRead) -> None:
    user_state.mark_read(session=session, user=user, revision=command.revision)


@handles(commands.SaveDraft)
def _save_draft(user: User, session: Session, command: commands.SaveDraft) -> None:
    user_state.save_draft(session=session, user=user, text=command.text)
