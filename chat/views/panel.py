"""The panel beside a session: system prompt, tools, members and usage."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import is_guest_in, session_for
from chat.agents_setup import registry
from chat.commands import LONGEST_PROMPT
from chat.models import SessionRole
from chat.queries import cast, presets
from chat.queries.mcp_servers import with_servers
from chat.queries.usage import usage_of
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
    there = cast.members(row) or [cast.Member(row.agent, own.title, row.provider, row.model)]
    values = {
        "session": row,
        "agent": own.title,
        "agents": there,
        "offered": [each for each in presets.presets() if each.name not in {agent.name for agent in there}],
        "may_choose": can_edit and not is_guest_in(request.user, row),
        "tools": [
            (tool.name, _first_paragraph(tool.description)) for tool in registry().usable_tools(own.tools, own.servers)
        ],
        "members": members(row),
        "usage": usage_of(row),
        "can_edit": can_edit,
        "longest_prompt": LONGEST_PROMPT,
    }
    return render(request, "chat/session/panel.html", values)


def _first_paragraph(description: str) -> str:
    """Return the part of a tool's description that is for users; the rest is for the model."""
    return " ".join(description.strip().split("\n\n")[0].split())
