"""The panel beside a session: system prompt, tools, members and usage."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.messages import Json
from chat.access import is_guest_in, may, session_for, sharing_workspace
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.models import IMPORTED, Session, SessionRole
from chat.permissions import Permission
from chat.queries import cast, presets
from chat.queries.knowledge import ALL, files_for, select_files, tools_of
from chat.queries.mcp_servers import with_servers
from chat.queries.usage import usage_of
from chat.rendering.text.tool_texts import tool_text
from chat.services.people.sharing import members
from chat.views.requests import SignedInRequest, signed_in


@never_cache
@require_GET
@signed_in
def panel(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the panel's content."""
    row, role = session_for(request.user, session_id)
    own = with_servers(presets.own(row), row)
    can_edit = role.covers(SessionRole.EDITOR) and row.status == row.Status.ACTIVE
    is_guest = is_guest_in(request.user, row)
    is_member = may(request.user, Permission.SEE_MEMBERS, row.workspace_id)
    there = cast.members(row) or [cast.Member(row.agent, own.title, row.provider, row.model, own.icon)]
    names = {agent.name for agent in there}
    values = {
        "session": row,
        "agent": own.title,
        "agents": there,
        "offered": [each for each in presets.presets(request.user, row.workspace_id) if each.name not in names],
        "may_choose": can_edit and not is_guest,
        "tools": [(tool.name, tool_text(tool)) for tool in tools_of(row, own)],
        "knowledge": _knowledge(row, own.knowledge, is_member=is_member),
        "members": members(row),
        "usage": usage_of(row),
        "imported_at": _imported_at(row),
        "can_edit": can_edit,
        "longest_prompt": MAX_SYSTEM_PROMPT_LENGTH,
    }
    return render(request, "chat/session/panel.html", values)


def _imported_at(session: Session) -> datetime | None:
    """Return when the session was imported from a file, or None. Sessions of earlier versions have no record of it."""
    found = session.config_values.get(IMPORTED)
    try:
        return datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        return None


def _knowledge(session: Session, entries: Collection[str], *, is_member: bool) -> Json:
    """Return the files that the agent uses. Members of the workspace also see the other files that it could use."""
    files = list(files_for(session))
    used = {each.pk for each in select_files(files, entries)}
    shown = files if is_member else [each for each in files if each.pk in used]
    return {
        "all": ALL in entries,
        "files": [(each, each.pk in used) for each in shown],
        "used": len(used),
        "may_open": is_member and (bool(files) or sharing_workspace(session).exists()),
    }
