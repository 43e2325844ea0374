"""Several changes asked for at once: all of them are made, or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from agents.messages import Json
from chat.access import session_for
from chat.commands import Request
from chat.dispatch import execute
from chat.errors import NoSuchMessage, ServiceError
from chat.models import ChatMessage, Session, User
from chat.queries import messages
from chat.services.sessions.actions import SessionAction, organise
from chat.services.transaction import SessionTransaction


@transaction.atomic
def amend(
    *,
    user: User,
    session_id: str,
    commands: Sequence[Request] = (),
    deeds: Sequence[SessionAction] = (),
    seen: Collection[int] | None = None,
) -> list[Json]:
    """Apply commands and list actions to a session; return the result of each command.

    ServiceError as "stale", with the present `revision`, when the session's revision is none of those `seen`; and as
    each of the commands would be.
    """
    session, _role = session_for(user, session_id)
    if seen is not None and (revision := _locked(session).revision) not in seen:
        raise ServiceError("stale", _("The session was changed in the meantime."), revision=revision)
    for deed in set(deeds) - {SessionAction.ARCHIVE}:
        organise(user=user, deed=deed, session_ids=[session_id])
    answers = [execute(user, session_id, command) for command in commands]
    if SessionAction.ARCHIVE in deeds:  # after it nothing is written any more
        organise(user=user, deed=SessionAction.ARCHIVE, session_ids=[session_id])
    return answers


@transaction.atomic
def amend_message(
    *, user: User, session_id: str, message_id: str, commands: Sequence[Request], seen: Collection[int] | None = None
) -> list[Json]:
    """Change a message as commands say; returns what each answers.

    ServiceError as "stale", with the present message as `current` and its `revision`, when that is none of those
    `seen`.
    """
    if seen is not None:
        session, _role = session_for(user, session_id)
        _locked(session)
        _require_unchanged(session, message_id, seen)
    return [execute(user, session_id, command) for command in commands]


def _locked(session: Session) -> Session:
    return SessionTransaction.lock(session.pk).session


def _require_unchanged(session: Session, message_id: str, seen: Collection[int]) -> None:
    if not ChatMessage.objects.filter(pk=message_id, session=session).exists():
        raise NoSuchMessage
    present = messages.message_snapshot(message_id)
    if present is None or present.revision not in seen:
        words = _("The message was changed in the meantime.")
        current, revision = (present.to_json(), present.revision) if present else (None, None)
        raise ServiceError("stale", words, current=current, revision=revision)
