"""The page of a session and its older messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.agents_setup import registry
from chat.models import Role
from chat.rendering.frames import message_html, session_parts, status_html
from chat.services import reading
from chat.services.access import session_for
from chat.views.home import listed
from chat.views.requests import SignedInRequest, signed_in

STYLES = [
    f"css/{name}.css" for name in ("rail", "header", "message", "tool", "content", "highlight", "composer", "dialog")
]
# Fetched at once instead of one import after the other.
SCRIPTS = [
    "vendor/htmx/htmx.esm.min.js",
    "vendor/alpine/module.esm.min.js",
    *(
        f"js/{name}.js"
        for name in (
            "actions", "clipboard", "composer", "inbox", "limit", "live", "messages", "notice", "outbox", "parts",
            "patch", "queue", "refresh", "scroll", "shell", "stream", "time",
        )
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The models of one provider, as the picker lists them."""

    provider: str
    models: list[str]


@never_cache
@require_GET
@signed_in
def session(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show a session: its newest messages, and all that keeps them live."""
    row, role = session_for(request.user, session_id)
    # Its revision is read before the messages: they may be newer, never older, and the socket goes on from there.
    snapshot = reading.session_snapshot(row)
    page = reading.page_of(row)
    preset = registry().preset(row.agent)  # its title is the agent's name before any model is known (UI-06)
    values = {
        "session": snapshot,
        "parts": session_parts(snapshot),
        "queued": [message_html(message) for message in page.queued],
        "thinking": status_html("thinking", ""),
        "can_edit": role.covers(Role.EDITOR),
        "can_share": role.covers(Role.OWNER),
        "models": models(),
        "agent_name": preset.title,
        "prompts": preset.prompts,
        "limit": settings.MAX_MESSAGE_CHARS,
        "sessions": listed(request.user),
        "current": row.pk,
        "styles": STYLES,
        "scripts": SCRIPTS,
        **_messages(page),
    }
    return render(request, "chat/session.html", values)


@never_cache
@require_GET
@signed_in
def older_messages(request: SignedInRequest, session_id: str) -> HttpResponse:
    """The page of messages before a sequence number."""
    row, _role = session_for(request.user, session_id)
    page = reading.page_of(row, before_sequence=_before(request))
    return render(request, "chat/session/older.html", {"session": row, **_messages(page)})


def _before(request: HttpRequest) -> int:
    text = request.GET.get("before", "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Http404
    return int(text)


def _messages(page: reading.Page) -> dict[str, Any]:
    return {
        "messages": [message_html(message) for message in page.messages],
        "has_older": page.has_older,
        "before": page.messages[0].sequence if page.messages else None,
    }


def models() -> list[ModelGroup]:
    """What the model picker offers."""
    known: dict[str, list[str]] = {}
    for choice in registry().known_models():
        known.setdefault(choice.provider, []).append(choice.model)
    return [ModelGroup(provider, names) for provider, names in known.items()]
