"""What a request to a model may depend on beside the session's messages, in one statement.

Most sessions have no files, summaries, servers, notes and rules. Each would take a query of its own to find nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import connection

from chat.models import Session

_LOOK = """
    SELECT
        EXISTS (SELECT 1 FROM chat_attachment WHERE session_id = %(session)s) AS has_files,
        EXISTS (SELECT 1 FROM chat_chatmessage
            WHERE session_id = %(session)s AND summarises IS NOT NULL) AS has_summaries,
        EXISTS (SELECT 1 FROM chat_mcpserver WHERE workspace_id = %(workspace)s AND is_enabled) AS has_servers,
        EXISTS (SELECT 1 FROM chat_memorynote WHERE workspace_id = %(workspace)s)
            OR EXISTS (SELECT 1 FROM chat_memorynote WHERE user_id = %(owner)s) AS has_notes,
        EXISTS (SELECT 1 FROM chat_approvalrule WHERE workspace_id = %(workspace)s) AS has_rules,
        EXISTS (SELECT 1 FROM chat_sessionrun r JOIN chat_chatmessage m ON m.run_id = r.turn_id
            WHERE r.session_id = %(session)s AND NOT r.turn_id = '' AND m.session_id = r.session_id
                AND m.type = 'turn_start' AND NOT m.workflow_id = '') AS is_scheduled,
        -- Removed rows have changed, too.
        (SELECT id FROM chat_chatmessage WHERE session_id = %(session)s ORDER BY revision DESC LIMIT 1) AS newest_id,
        (SELECT MAX(revision) FROM chat_chatmessage WHERE session_id = %(session)s) AS newest_revision,
        (SELECT revision FROM chat_modelrequest WHERE session_id = %(session)s
            ORDER BY created_at DESC, response_id DESC LIMIT 1) AS last_request
"""


class RequestFacts(NamedTuple):
    """Whether there is any of these, removed summaries and notes included.

    `is_scheduled`: a schedule has begun the open turn.
    `newest_id` and `newest_revision` are of the message that was changed last, removed ones included. `last_request` is
    the session's revision at its last request that is on record; None if there is none.
    """

    has_files: bool
    has_summaries: bool
    has_servers: bool
    has_notes: bool
    has_rules: bool
    is_scheduled: bool
    newest_id: str | None
    newest_revision: int | None
    last_request: int | None


def request_facts(session: Session) -> RequestFacts:
    """Read them."""
    values: dict[str, Any] = {"session": session.pk, "workspace": session.workspace_id, "owner": session.owner_id}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, values)
        return RequestFacts(*cursor.fetchone())
