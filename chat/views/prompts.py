"""Prompts of the MCP servers that a session's agent uses, for the composer."""

from __future__ import annotations

import json

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.errors import ToolError
from agents.mcp.config import SEPARATOR
from agents.mcp.pool import PromptRefusedError
from agents.registry import AgentPreset
from chat.access import session_for
from chat.agents_setup import registry
from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import SessionRole
from chat.overrides.postgres.lending import return_connection
from chat.queries import presets
from chat.queries.mcp_servers import with_servers
from chat.views.requests import SignedInRequest, signed_in
from chat.views.uploads import for_scripts

MAX_ARGUMENT_LENGTH = 20_000
MAX_PROMPT_LENGTH = 100_000


@never_cache
@require_GET
@signed_in
def prompts(request: SignedInRequest, session_id: str) -> HttpResponse:
    """List the prompts, with their arguments."""
    preset = _preset(request, session_id)
    found = [
        {
            "name": prompt.name,
            "title": prompt.title,
            "arguments": [
                {"name": name, "description": words, "required": required} for name, words, required in prompt.arguments
            ],
        }
        for prompt in registry().servers.prompts(preset.tools, preset.servers)
    ]
    return JsonResponse({"prompts": found})


@for_scripts
def prompt(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the text of the prompt `name` with the JSON object `arguments`.

    Raise ServiceError if the server refuses or does not respond, or if the text is empty or too long.
    """
    preset = _preset(request, session_id)
    arguments = _arguments(request.POST.get("arguments", "{}"))
    spend("changes", request.user.pk)
    name = request.POST.get("name", "")
    server = name.partition(SEPARATOR)[0]
    return_connection()
    try:
        text = registry().servers.fill_prompt(name, arguments, preset.tools, preset.servers)
    except PromptRefusedError as refused:
        words = _("The MCP server “%(server)s” refused this: %(reason)s")
        raise ServiceError("prompt_failed", words % {"server": server, "reason": refused.reason}) from refused
    except ToolError as error:  # the error's own text is for models, not for users
        words = _("The MCP server “%(server)s” isn’t available now. Try again later.")
        raise ServiceError("prompt_failed", words % {"server": server}) from error
    if not text.strip():
        raise ServiceError("prompt_failed", _("This prompt has no text."))
    if len(text) > MAX_PROMPT_LENGTH:
        raise Invalid(_("The text is too long."))
    return JsonResponse({"text": text})


def _preset(request: SignedInRequest, session_id: str) -> AgentPreset:
    session, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    return with_servers(presets.own(session), session)


def _arguments(written: str) -> dict[str, str]:
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(not isinstance(each, str) for each in found.values()):
        raise Invalid(_("The request is malformed."))
    if any(len(each) > MAX_ARGUMENT_LENGTH for each in found.values()):
        raise Invalid(_("The text is too long."))
    return {name: text for name, text in found.items() if text}
