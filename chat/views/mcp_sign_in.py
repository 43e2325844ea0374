"""The OAuth sign-in to an MCP server of a workspace: the start, and the return from the authorization server."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from yarl import URL

from agents.mcp.sign_in import Callback, PendingSignIn, SignInFailed
from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import McpServer
from chat.overrides.postgres.lending import return_connection
from chat.queries.mcp_servers import as_added
from chat.rendering.text.translation import translated
from chat.security.encryption import DecryptionError, decrypt, encrypt
from chat.services.people import mcp_servers, mcp_sign_in
from chat.views.requests import SignedInRequest, absolute, signed_in

# A session key: the sign-ins that this browser has started and not finished, by the digest of their `state`.
PENDING = "mcp_sign_ins"
PENDING_SECONDS = 600
MAX_PENDING = 5


def begin(request: SignedInRequest, server: McpServer) -> PendingSignIn:
    """Start a sign-in and store it in this browser's session. Raise ServiceError.

    The result contains the URL at which the user signs in.
    """
    from agents.mcp import oauth  # imported here because the import takes a second

    spend("mcp_checks", request.user.pk)
    try:
        client, lacking = mcp_sign_in.client_of(server), mcp_sign_in.lacking_of(server) or ""
        return_connection()
        begun = async_to_sync(oauth.begin)(as_added(server), _callback(request), client, lacking)
    except SignInFailed as error:
        raise _failure(server, error) from error
    kept = {"server": server.pk, "url": server.url, "begun": asdict(begun), "callback": _callback(request)}
    pending = request.session.get(PENDING, {})
    newest = sorted(pending.items(), key=lambda each: each[1]["at"])[1 - MAX_PENDING :]
    mine = {"at": time.time(), "kept": encrypt(json.dumps(kept))}
    request.session[PENDING] = {**dict(newest), _digest(begun.state): mine}
    return begun


@never_cache
@require_GET
@signed_in
def callback(request: SignedInRequest) -> HttpResponse:
    """Finish a sign-in when the authorization server redirects the browser back.

    Each `state` is valid once, and only in the session that started the sign-in.
    """
    kept = _take(request, request.GET.get("state", ""))
    if kept is None:
        messages.error(request, _("This sign-in is no longer valid. Connect the server again."))
        return redirect("home")
    try:
        server = mcp_servers.managed_server(request.user, kept["server"])
    except ServiceError as refused:
        messages.error(request, refused.message)
        return redirect("home")
    try:
        _finish(request, server, kept)
    except ServiceError as refused:
        messages.error(request, refused.message)
        return redirect("mcp-servers", server.workspace_id)
    messages.success(request, _("“%(name)s” is connected.") % {"name": server.name})
    return redirect("mcp-servers", server.workspace_id)


def _finish(request: SignedInRequest, server: McpServer, kept: dict[str, Any]) -> None:
    from agents.mcp import oauth  # as above

    if "code" not in request.GET:
        reason = request.GET.get("error", "")[:100] or _("no reason was given")
        words = _("Couldn’t connect “%(name)s”: %(reason)s.")
        raise Invalid(words % {"name": server.name, "reason": reason})
    spend("mcp_checks", request.user.pk)
    returned = Callback(request.GET["code"], request.GET.get("iss"))
    begun = PendingSignIn(**kept["begun"])
    try:
        return_connection()
        grant = async_to_sync(oauth.finish)(as_added(server), kept["callback"], begun, returned)
    except SignInFailed as error:
        raise _failure(server, error) from error
    mcp_sign_in.connect(author=request.user, server_id=server.pk, url=kept["url"], grant=grant)


def host_of(begun: PendingSignIn) -> str:
    return URL(begun.url).raw_host or ""


def _callback(request: SignedInRequest) -> str:
    return absolute(request, reverse("mcp-callback"))


def _take(request: SignedInRequest, state: str) -> dict[str, Any] | None:
    """Remove a sign-in from the session and return it, or None if it does not exist or is too old."""
    pending = request.session.get(PENDING, {})
    mine = pending.pop(_digest(state), None)
    if mine is None:
        return None
    request.session[PENDING] = pending
    request.session.save()  # immediately, so that the state cannot be used a second time
    if time.time() - mine["at"] > PENDING_SECONDS:
        return None
    try:
        kept: dict[str, Any] = json.loads(decrypt(mine["kept"]))
    except DecryptionError:
        return None
    return kept


def _digest(state: str) -> str:
    return sha256(state.encode()).hexdigest()


def _failure(server: McpServer, error: SignInFailed) -> Invalid:
    words = _("Couldn’t connect “%(name)s”: %(reason)s.")
    return Invalid(words % {"name": server.name, "reason": translated(error.args[0])})
