"""Lock the rows of a batch of runs, and read the values on which its changes depend, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from django.db import connection

from chat.models import Session, SessionRun
from chat.queries.webhooks import HAS_WEBHOOKS
from chat.row_statements import columns_of, lock_values, names_of, row_of
from chat.runs.lease import Claim
from chat.services.transaction import SessionTransaction

# Locks sessions before their runs, in the order of their ids. On PostgreSQL the statement can wait for another
# transaction. Then the two locked rows have the changes of that transaction, but the subqueries do not. So
# `revision_before` differs from the session's revision.
_LOCK = """
    SELECT {session}, {run},
        (SELECT revision FROM chat_session WHERE id = s.id) AS revision_before,
        COALESCE((SELECT MAX(sequence) FROM chat_chatmessage WHERE session_id = s.id), 0) AS last_sequence,
        EXISTS (SELECT 1 FROM chat_chatmessage
            WHERE session_id = s.id AND status = 'queued' AND removed_at IS NULL) AS has_queued,
        {has_webhooks} AS has_webhooks
    FROM chat_session s
        JOIN chat_sessionrun r ON r.session_id = s.id
    WHERE s.id IN ({marks})
    ORDER BY s.id {lock}
"""


class ClaimColumns(NamedTuple):
    """The columns of a locked run by which a claim is checked."""

    pk: str
    epoch: int
    owner_id: str | None
    claimant: str
    written: int

    def admits(self, claim: Claim) -> bool:
        return (self.epoch, self.owner_id) == (claim.epoch, claim.worker_id)

    def has(self, claim: Claim, number: int) -> bool:
        """Return whether the claim's job with this number was written, even if the claim was released since."""
        return (self.epoch, self.claimant) == (claim.epoch, claim.worker_id) and self.written >= number


_columns_of = attrgetter(*ClaimColumns._fields)
CLAIM_COLUMNS = ("session_id", *ClaimColumns._fields[1:])


@dataclass(frozen=True, slots=True)
class Locked:
    """The locked rows of a batch, by session. `sessions` have changed rows; `busy` were locked by others."""

    sessions: dict[str, SessionTransaction]
    runs: dict[str, ClaimColumns]
    busy: set[str]


def lock(with_rows: set[str], with_text: set[str], *, wait: bool) -> Locked:
    """Lock the rows of a batch: sessions whose rows change, and only the runs of sessions that have just new text.

    Most batches have only texts, which need only some columns of the runs. If `wait` is False, rows that another
    transaction has locked are left out.
    """
    sessions = {tx.session.pk: tx for tx in _transactions(sorted(with_rows), wait=wait)} if with_rows else {}
    runs = {session_id: ClaimColumns._make(_columns_of(tx.run)) for session_id, tx in sessions.items()}
    if only_text := with_text - with_rows:
        rows = lock_values(SessionRun, CLAIM_COLUMNS, sorted(only_text), wait=wait)
        runs |= {row[0]: ClaimColumns._make(row) for row in rows}
    missing = (with_rows | with_text) - runs.keys()
    # With `wait`, missing rows have been deleted.
    busy = set() if wait else set(SessionRun.objects.filter(pk__in=missing).values_list("pk", flat=True))
    return Locked(sessions, runs, busy)


def _transactions(session_ids: Sequence[str], *, wait: bool) -> list[SessionTransaction]:
    statement, of_session, of_run = _statement(connection.vendor, len(session_ids), wait)
    with connection.cursor() as cursor:
        cursor.execute(statement, session_ids)
        rows = cursor.fetchall()
    locked = []
    for row in rows:
        session, run = row_of(Session, row[:of_session]), row_of(SessionRun, row[of_session : of_session + of_run])
        revision_before, last_sequence, has_queued, has_webhooks = row[of_session + of_run :]
        is_consistent = revision_before == session.revision
        tx = SessionTransaction(
            session,
            run,
            last_sequence if is_consistent else None,
            has_queued=bool(has_queued) or not is_consistent,
            has_webhooks=bool(has_webhooks),
        )
        locked.append(tx)
    return locked


@lru_cache(maxsize=512)
def _statement(vendor: str, count: int, wait: bool) -> tuple[str, int, int]:
    """Return the statement for `count` sessions, and the number of columns of the session and of the run."""
    lock = "" if vendor == "sqlite" else "FOR UPDATE OF s, r" if wait else "FOR UPDATE OF s, r SKIP LOCKED"
    session, run, marks = names_of(Session, "s"), names_of(SessionRun, "r"), ", ".join(["%s"] * count)
    has_webhooks = HAS_WEBHOOKS.format(session="s")
    statement = _LOCK.format(session=session, run=run, has_webhooks=has_webhooks, marks=marks, lock=lock)
    return statement, len(columns_of(Session, vendor)), len(columns_of(SessionRun, vendor))
