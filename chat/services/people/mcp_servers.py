"""Add, change and remove the MCP servers of a workspace, as its owner or admin, or as staff in the admin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.mcp.config import server_name
from chat.access import workspace_where, workspaces_where
from chat.agents_setup import registry
from chat.errors import Invalid, ServiceError
from chat.models import McpServer, User, Workspace
from chat.permissions import Permission
from chat.queries.mcp_servers import headers_of
from chat.security.encryption import encrypt
from chat.services.messages.validation import validate_characters
from chat.services.people.outside_addresses import checked_address, host_of
from chat.services.people.security_log import Kind, record

MAX_SERVERS = 20
MAX_HEADERS = 20
MAX_HEADER_LENGTH = 8_000
MAX_CLIENT_LENGTH = 2_000
MAX_TOOLS = 200
# How long a removed server can be restored.
KEPT = timedelta(days=30)
MIN_LIMIT, MAX_LIMIT = 1.0, 3600.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# Headers that the transport and the protocol set themselves.
RESERVED_HEADERS = {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "upgrade"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server from a form. `headers` None keeps the stored headers; `tools` None allows all tools."""

    name: str
    url: str
    headers: Mapping[str, str] | None = None
    # The client's id and secret, if an admin registered it at the authorization server; None keeps the stored client.
    oauth_client: tuple[str, str] | None = None
    tools: Sequence[str] | None = None
    time_limit: float = 60.0
    approval: str = McpServer.Approval.UNLESS_READ_ONLY
    for_all_agents: bool = True
    is_enabled: bool = True


def servers_of(user: User, workspace_id: int) -> QuerySet[McpServer]:
    """Return the servers of a workspace whose tools the user manages. Raise NoSuchWorkspace, Forbidden."""
    workspace = workspace_where(user, Permission.MANAGE_TOOLS, workspace_id)
    return McpServer.objects.filter(workspace=workspace, removed_at=None).order_by("name")


def managed_server(user: User, server_id: int, *, removed: bool = False) -> McpServer:
    """Fetch a server, or one that was removed, of a workspace whose tools the user manages. Raise ServiceError."""
    managed = workspaces_where(user, Permission.MANAGE_TOOLS)
    rows = McpServer.objects.filter(pk=server_id, workspace__in=managed, removed_at__isnull=not removed)
    server = rows.first()
    if server is None:
        raise _no_such_server()
    return server


def _no_such_server() -> ServiceError:
    return ServiceError("no_such_server", _("This MCP server no longer exists."))


@transaction.atomic
def add(*, author: User, workspace_id: int, given: Settings) -> McpServer:
    """Add a server to a workspace whose tools the author manages. Raise ServiceError."""
    workspace = workspace_where(author, Permission.MANAGE_TOOLS, workspace_id)
    _require_room(workspace.pk)
    server = McpServer(workspace=workspace)
    apply(server, given)
    save(server)
    log(Kind.MCP_SERVER_ADDED, author, server)
    return server


@transaction.atomic
def change(*, author: User, server_id: int, given: Settings, revision: int | None = None) -> McpServer:
    """Change a server.

    Raise ServiceError, "stale" if a `revision` is given and the server has another one now.
    """
    server = locked_server(author, server_id)
    if revision is not None and revision != server.revision:
        words = _("The saved settings have changed since you opened this form.")
        raise ServiceError("stale", words, revision=server.revision)
    apply(server, given)
    save(server)
    log(Kind.MCP_SERVER_CHANGED, author, server)
    return server


@transaction.atomic
def remove(*, author: User, server_id: int) -> McpServer:
    """Remove a server, so that no agent can use it. It can be restored with its secrets. Raise ServiceError."""
    server = locked_server(author, server_id)
    server.removed_at = timezone.now()
    server.save(update_fields=["removed_at"])
    log(Kind.MCP_SERVER_REMOVED, author, server)
    return server


@transaction.atomic
def restore(*, author: User, server_id: int) -> McpServer:
    """Restore a removed server. Raise ServiceError, also if a server with its name was added since."""
    server = locked_server(author, server_id, removed=True)
    _require_room(server.workspace_id)
    server.removed_at = None
    server.save(update_fields=["removed_at"])
    log(Kind.MCP_SERVER_ADDED, author, server)
    return server


def removed_long_ago() -> QuerySet[McpServer]:
    """Return the servers that can no longer be restored."""
    return McpServer.objects.filter(removed_at__lt=timezone.now() - KEPT)


def locked_server(author: User, server_id: int, *, removed: bool = False) -> McpServer:
    """Lock a server, as `managed_server` finds it, in the caller's transaction. Raise ServiceError."""
    found = managed_server(author, server_id, removed=removed)
    rows = McpServer.objects.select_for_update().filter(pk=found.pk, removed_at__isnull=not removed)
    server = rows.first()
    if server is None:
        raise _no_such_server()
    return server


def _require_room(workspace_id: int) -> None:
    # The lock makes two simultaneous requests count one after the other.
    Workspace.objects.select_for_update().get(pk=workspace_id)
    if McpServer.objects.filter(workspace=workspace_id, removed_at=None).count() >= MAX_SERVERS:
        raise Invalid(_("A workspace can have up to %(count)d MCP servers.") % {"count": MAX_SERVERS})


def apply(server: McpServer, given: Settings) -> None:
    """Validate settings and set them on a server, without saving it. A new host clears the secrets. Raise Invalid."""
    name = _name(server, given.name)
    url = checked_address(given.url, internal_hosts=settings.MCP_INTERNAL_HOSTS, setting="MCP_INTERNAL_HOSTS")
    if server.pk and _is_other_host(server, url):
        server.secret_headers = server.oauth_client = ""
        forget_sign_in(server)
    if given.oauth_client is not None:
        server.oauth_client = _oauth_client(*given.oauth_client)
    if given.headers is not None:
        server.secret_headers = encrypt(json.dumps(_headers(given.headers))) if given.headers else ""
    if given.approval not in McpServer.Approval.values:
        raise Invalid(_("That’s not one of the options."))
    if not MIN_LIMIT <= given.time_limit <= MAX_LIMIT:
        raise Invalid(_("Enter a time limit between 1 and 3600 seconds."))
    if given.tools is not None and (len(given.tools) > MAX_TOOLS or any(len(each) > 200 for each in given.tools)):
        raise Invalid(_("You can list up to %(count)d tools.") % {"count": MAX_TOOLS})
    server.name, server.url, server.approval = name, url, given.approval
    server.tools = None if given.tools is None else [validate_characters(each) for each in given.tools]
    server.time_limit, server.for_all_agents, server.is_enabled = (
        given.time_limit,
        given.for_all_agents,
        given.is_enabled,
    )
    server.revision += 1


def save(server: McpServer) -> None:
    """Save a server. Delete a removed server of the same name, which can then no longer be restored."""
    removed = McpServer.objects.filter(workspace=server.workspace_id, removed_at__isnull=False).exclude(pk=server.pk)
    for each in removed:
        if each.name.casefold() == server.name.casefold():
            each.delete()
    server.save()


def has_secrets(server: McpServer) -> bool:
    """Return whether anything is stored for a server that is sent only to its host."""
    return bool(server.secret_headers or server.oauth_client or server.sign_in)


def loses_secrets(server: McpServer, url: str) -> bool:
    """Return whether a server has secrets that it may not keep at another address."""
    return has_secrets(server) and _is_other_host(server, url)


def _is_other_host(server: McpServer, url: str) -> bool:
    return host_of(url) != host_of(server.url)


def forget_sign_in(server: McpServer) -> None:
    """Clear the tokens of a server, without saving it."""
    server.sign_in = server.sign_in_status = ""
    server.signed_in_by = None


def log(kind: Kind, author: User, server: McpServer) -> None:
    """Record an action on a server in the security log."""
    record(kind, actor=author, target=server, name=server.name, host=host_of(server.url))


def headers_from(lines: Iterable[str]) -> dict[str, str]:
    """Parse lines of “Name: value”. Raise Invalid."""
    headers: dict[str, str] = {}
    for line in filter(str.strip, lines):
        name, _colon, value = line.partition(":")
        if not value.strip():  # a request with an empty header would be refused by the server, without the reason
            raise Invalid(_("Write each header as “Name: value”."))
        name = name.strip()
        if name.casefold() in map(str.casefold, headers):
            raise Invalid(_("Enter “%(name)s” only once.") % {"name": name[:100]})
        headers[name] = value.strip()
    return headers


def header_names(server: McpServer) -> list[str]:
    """Return the names of the stored headers. Their values are never shown."""
    return list(headers_of(server))


def _name(server: McpServer, name: str) -> str:
    try:
        name = server_name(name.strip())
    except ValueError:
        words = _("Enter a name of 1 to 24 letters and digits, with single - and _ between them.")
        raise Invalid(words) from None
    if name in registry().server_names():
        raise Invalid(_("The configuration file has an MCP server “%(name)s”. Choose another name.") % {"name": name})
    others = McpServer.objects.filter(workspace=server.workspace_id).exclude(pk=server.pk)
    names = others.filter(removed_at=None).values_list("name", flat=True)
    if any(each.casefold() == name.casefold() for each in names):
        raise Invalid(_("This workspace already has an MCP server “%(name)s”.") % {"name": name})
    return name


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    if len(headers) > MAX_HEADERS:
        raise Invalid(_("You can set up to %(count)d headers.") % {"count": MAX_HEADERS})
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise Invalid(_("“%(name)s” can’t be used as a header.") % {"name": name[:100]})
        if len(value) > MAX_HEADER_LENGTH:
            words = _("The value of “%(name)s” can have up to %(count)d characters.")
            raise Invalid(words % {"name": name, "count": MAX_HEADER_LENGTH})
        if not value.isprintable() or not value.isascii():
            raise Invalid(_("The value of “%(name)s” has characters that a header can’t have.") % {"name": name})
    return dict(headers)


def _oauth_client(client_id: str, secret: str) -> str:
    client_id, secret = client_id.strip(), secret.strip()
    if not all(
        each.isprintable() and each.isascii() and len(each) <= MAX_CLIENT_LENGTH for each in (client_id, secret)
    ):
        raise Invalid(_("The OAuth client ID or secret contains invalid characters."))
    if secret and not client_id:
        raise Invalid(_("Enter the OAuth client ID, too."))
    return encrypt(json.dumps({"id": client_id, "secret": secret})) if client_id else ""
