"""Store the tokens of sign-ins to MCP servers. Owners and admins of the workspace may sign in and disconnect."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.mcp.sign_in import Client, Grant
from chat.errors import Invalid
from chat.models import McpServer, User
from chat.security.encryption import DecryptionError, decrypt, encrypt
from chat.services.people.mcp_servers import forget_sign_in, locked_server, log
from chat.services.people.security_log import Kind

logger = logging.getLogger(__name__)

# In characters. Beyond it, only the rights that the last call has lacked are kept.
MAX_LACKING_LENGTH = 2_000


@transaction.atomic
def connect(*, author: User, server_id: int, url: str, grant: Grant) -> McpServer:
    """Store the tokens of a sign-in at an address. Raise ServiceError, also if the server has another address now."""
    server = locked_server(author, server_id)
    if server.url != url:
        raise Invalid(_("The server’s address has changed. Connect it again."))
    server.sign_in = encrypt(json.dumps(grant.to_json()))
    server.sign_in_status, server.signed_in_by = McpServer.SignIn.CONNECTED, author
    server.renewing_until = None
    server.revision += 1
    server.save()
    log(Kind.MCP_SERVER_CONNECTED, author, server)
    return server


@transaction.atomic
def disconnect(*, author: User, server_id: int) -> McpServer:
    """Delete the tokens of a server. Raise ServiceError."""
    server = locked_server(author, server_id)
    forget_sign_in(server)
    server.revision += 1
    server.save()
    log(Kind.MCP_SERVER_DISCONNECTED, author, server)
    return server


def client_of(server: McpServer) -> Client | None:
    """Return the client that an admin registered at the authorization server, or None."""
    kept = _decrypted(server.oauth_client)
    return Client(**json.loads(kept)) if kept else None


def grant_of(server_id: int) -> Grant | None:
    """Return the tokens of a server, or None if no one is signed in, the sign-in has expired, or it was removed."""
    server = McpServer.objects.filter(pk=server_id, removed_at=None).first()
    return _grant_in(server) if server is not None else None


def _grant_in(server: McpServer) -> Grant | None:
    kept = _decrypted(server.sign_in) if server.sign_in_status == McpServer.SignIn.CONNECTED else ""
    return Grant.from_json(json.loads(kept)) if kept else None


def begin_renewal(server_id: int, seconds: float) -> bool:
    """Reserve the renewal of the token for this process for `seconds`, because a refresh token can be used once.

    Return False if another process is renewing the token.
    """
    now = timezone.now()
    free = McpServer.objects.filter(Q(renewing_until=None) | Q(renewing_until__lte=now), pk=server_id)
    return bool(free.update(renewing_until=now + timedelta(seconds=seconds)))


def end_renewal(server_id: int, before: Grant, after: Grant | None) -> Grant | None:
    """Store the renewed tokens, unless a user has signed in again since. If `after` is None, the sign-in has expired.

    Tokens of a removed server are stored, too, because a token can be renewed once, and the server can be restored.
    Return the tokens to use now, or None if there are none, for example after a disconnect in the meantime.
    """
    with transaction.atomic():
        server = McpServer.objects.select_for_update().filter(pk=server_id).first()
        if server is None:
            return None
        server.renewing_until = None
        stored = _grant_in(server)
        if stored is not None and stored == before:
            if after is None:
                server.sign_in_status = McpServer.SignIn.EXPIRED
                logger.warning("The sign-in to the MCP server %s has ended", server.name)
            else:
                server.sign_in = encrypt(json.dumps(replace(after, lacking=stored.lacking).to_json()))
        server.save(update_fields=["sign_in", "sign_in_status", "renewing_until"])
        return grant_of(server_id)


@transaction.atomic
def add_lacking(server_id: int, refused: str, scope: str) -> None:
    """Store rights that the refused token of a server lacks, for the next sign-in.

    Do nothing if the server has another token, because a user may have connected it again with these rights.
    """
    server = McpServer.objects.select_for_update().filter(pk=server_id, removed_at=None).first()
    grant = _grant_in(server) if server is not None else None
    if server is None or grant is None or grant.access_token != refused:
        return
    if grant.lacking is not None and set(scope.split()) <= set(grant.lacking.split()):
        return
    both = " ".join(dict.fromkeys(f"{grant.lacking or ''} {scope}".split()))
    grant = replace(grant, lacking=both if len(both) <= MAX_LACKING_LENGTH else scope)
    server.sign_in = encrypt(json.dumps(grant.to_json()))
    server.save(update_fields=["sign_in"])


def lacking_of(server: McpServer) -> str | None:
    """Return the rights that the sign-in to a server lacks, as `Grant.lacking`."""
    grant = _grant_in(server)
    return grant.lacking if grant is not None else None


def give_up_renewal(server_id: int) -> None:
    """Release the renewal of the token, so that another process can try it."""
    McpServer.objects.filter(pk=server_id).update(renewing_until=None, updated_at=F("updated_at"))


def _decrypted(text: str) -> str:
    """Return a decrypted text, or "" if SECRET_KEY has changed since."""
    try:
        return decrypt(text) if text else ""
    except DecryptionError:
        logger.warning("Could not decrypt the sign-in of an MCP server. Connect the server again")
        return ""
