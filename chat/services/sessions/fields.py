"""Change a session's columns, and save revisions of the old values (MSG-11)."""

from __future__ import annotations

from chat.models import Session, SessionRevision, User
from chat.services.transaction import SessionTransaction

Kind = SessionRevision.Kind
# The columns of each kind of revision. A change is of a kind if it sets the first of the kind's columns.
RECORDED: dict[Kind, tuple[str, ...]] = {
    Kind.TITLE: ("title",),
    Kind.SYSTEM_PROMPT: ("system_prompt",),
    Kind.MODEL: ("model", "provider", "context_window"),
    Kind.AGENT: ("agent", "config", "mode", "replies", "replies_auto"),
}


def change(tx: SessionTransaction, author: User | None, **values: object) -> None:
    """Set columns of a session that the caller has locked. Equal values change nothing.

    `author` is None if the server changes them.
    """
    before = {column: getattr(tx.session, column) for column in values}
    changed = {column: value for column, value in values.items() if value != before[column]}
    if not changed:
        return
    for column, value in changed.items():
        setattr(tx.session, column, value)
    tx.session_changed()
    for kind, (first, *others) in RECORDED.items():
        was = {column: before[column] for column in (first, *others) if column in changed}
        if was and first in values:
            _save_revision(tx.session, author, kind, was)
    tx.save(*changed, is_activity=False)


def change_config(tx: SessionTransaction, author: User, kind: Kind, **values: object) -> None:
    """Set values in the `config` of a session that the caller has locked, and save a revision of this kind."""
    before = tx.session.config
    config = {**tx.session.config_values, **values}
    if config != before:
        tx.session.config = config
        tx.session_changed()
        _save_revision(tx.session, author, kind, {"config": before})
        tx.save("config", is_activity=False)


def _save_revision(session: Session, author: User | None, kind: Kind, before: dict[str, object]) -> None:
    SessionRevision.objects.create(session=session, user=author, kind=kind, revision=session.revision, before=before)
