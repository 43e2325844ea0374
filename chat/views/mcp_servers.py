"""The page of a workspace's MCP servers, for its owners and admins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import McpServer, Workspace
from chat.overrides.postgres.lending import return_connection
from chat.permissions import Permission
from chat.queries.mcp_servers import as_added, is_shadowed
from chat.rendering.text.translation import translated
from chat.runner.mcp_tokens import TokenStore
from chat.services.people import mcp_servers as service
from chat.services.people import mcp_sign_in as sign_in_service
from chat.services.people.mcp_servers import Settings
from chat.views import mcp_sign_in
from chat.views.requests import SignedInRequest, number, workspace_page

if TYPE_CHECKING:
    from agents.mcp.examine import Offer

Values = dict[str, Any]
# Only secrets have autocomplete="off": browsers empty such fields when the user comes back by the Back button.
INPUT = {"class": "input", "spellcheck": "false"}
# The fields that few servers need, in the folded part of the form.
ADVANCED = ("client_id", "client_secret", "tools", "time_limit")


class ServerForm(forms.Form):
    """The form of an MCP server. The service validates the values."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=24,
        widget=forms.TextInput(INPUT),
        help_text=gettext_lazy("The first part of its tools’ names: “tickets” makes tickets__find."),
    )
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=2000,
        widget=forms.TextInput({**INPUT, "inputmode": "url", "placeholder": "https://example.com/mcp"}),
    )
    headers = forms.CharField(
        label=gettext_lazy("Secret headers"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            {
                **INPUT,
                "rows": 2,
                "placeholder": "Authorization: Bearer …",
                "autocomplete": "off",
                "data-secret": True,
            }
        ),
        help_text=gettext_lazy("One per line, as “Name: value”. Stored encrypted and never shown again."),
    )
    client_id = forms.CharField(
        label=gettext_lazy("OAuth client ID"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(INPUT),
        help_text=gettext_lazy("Only if the server asks for a sign-in and doesn’t let Parley register itself."),
    )
    client_secret = forms.CharField(
        label=gettext_lazy("OAuth client secret"),
        required=False,
        max_length=2000,
        widget=forms.PasswordInput({**INPUT, "autocomplete": "new-password"}),
        help_text=gettext_lazy("Stored encrypted and never shown again."),
    )
    tools = forms.CharField(
        label=gettext_lazy("Tools"),
        required=False,
        widget=forms.Textarea({**INPUT, "rows": 2}),
        help_text=gettext_lazy("The tools that agents may use, one per line. Empty: all."),
    )
    approval = forms.ChoiceField(
        label=gettext_lazy("Ask before a call"),
        choices=[
            # The model's label does not fit on phones.
            (McpServer.Approval.UNLESS_READ_ONLY, gettext_lazy("unless the tool is read-only")),
            (McpServer.Approval.ALWAYS, McpServer.Approval.ALWAYS.label),
            (McpServer.Approval.NEVER, McpServer.Approval.NEVER.label),
        ],
        widget=forms.Select({"class": "select wide"}),
        help_text=gettext_lazy("The server states which of its tools are read-only."),
    )
    time_limit = forms.FloatField(
        label=gettext_lazy("Time limit of a call, in seconds"),
        widget=forms.NumberInput({"class": "input", "min": 1, "max": 3600, "step": "any"}),
    )
    for_all_agents = forms.BooleanField(
        label=gettext_lazy("All agents of the workspace may use it"),
        required=False,
        help_text=gettext_lazy("Otherwise only agents whose tools name it, as NAME__*."),
    )
    is_enabled = forms.BooleanField(label=gettext_lazy("Available"), required=False)

    def describe_stored(self, server: McpServer) -> None:
        """Add to the help texts what is stored for a server, and what keeps or replaces it."""
        added: dict[str, str] = {}
        if names := service.header_names(server):
            words = _("Stored: %(names)s. Leave the field empty to keep them; what you enter replaces all of them.")
            added["headers"] = words % {"names": ", ".join(names)}
        if server.oauth_client:
            added["client_id"] = _(
                "An OAuth client is stored. Leave both fields empty to keep it, or enter another one."
            )
        if service.has_secrets(server):
            added["url"] = _("A change of the host deletes the stored secrets.")
        for name, words in added.items():
            field = self.fields[name]
            field.help_text = f"{field.help_text} {escape(words)}".strip()

    def usual(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in ADVANCED]

    def advanced(self) -> list[forms.BoundField]:
        return [self[name] for name in ADVANCED]

    def has_advanced(self) -> bool:
        """Return whether a field that few servers need was filled in, or has an error."""
        return any(self[name].errors or self[name].value() for name in ("client_id", "client_secret", "tools"))

    def settings(self, *, keeps_headers: bool) -> Settings:
        """Return the values for the service. Raise Invalid with the first error.

        `keeps_headers`: empty secret fields keep the stored values.
        """
        if not self.is_valid():
            field, errors = next(iter(self.errors.items()))
            label = self.fields[field].label if field in self.fields else field
            sentence = f"{label}: {errors[0]}"
            raise Invalid(sentence)
        given = dict(self.cleaned_data)
        headers = service.headers_from(given.pop("headers").splitlines())
        tools = [line.strip() for line in given.pop("tools").splitlines() if line.strip()]
        client = given.pop("client_id"), given.pop("client_secret")
        return Settings(
            **given,
            headers=None if keeps_headers and not headers else headers,
            oauth_client=None if keeps_headers and not any(client) else client,
            tools=tools or None,
        )


@workspace_page(Permission.MANAGE_TOOLS)
def mcp_servers(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show the MCP servers of a workspace, or handle the form named by `part`."""
    if request.method == "GET":
        return _page(request, workspace)
    part = request.POST.get("part", "")
    try:
        result = PARTS[part](request, workspace) if part in PARTS else ""
    except ServiceError as refused:
        return _page(request, workspace, _refused(request, part, refused), status=422)
    if isinstance(result, HttpResponse):
        return result
    messages.success(request, result)
    return redirect("mcp-servers", workspace.pk)


def _refused(request: SignedInRequest, part: str, refused: ServiceError) -> Values:
    """Return the values of the page for a refused form, which keeps what the user has entered."""
    if part == "change" and refused.code == "no_such_server":
        words = _("This MCP server was removed in the meantime. Your entries are in this form.")
        return {"refused": {"add": words}}
    newer = refused.details.get("revision")
    return {"refused": {part: refused.message}, "refused_id": _server_id(request), "newer": newer}


def _add(request: SignedInRequest, workspace: Workspace) -> str:
    given = ServerForm(request.POST).settings(keeps_headers=False)
    server = service.add(author=request.user, workspace_id=workspace.pk, given=given)
    return _("“%(name)s” added. Test the connection.") % {"name": server.name}


def _change(request: SignedInRequest, workspace: Workspace) -> str:
    keeps = "forget_headers" not in request.POST
    given = ServerForm(request.POST).settings(keeps_headers=keeps)
    # `replace` is the revision that the user has decided to overwrite.
    seen = number(request.POST.get("replace", "")) or number(request.POST.get("revision", ""))
    before = service.managed_server(request.user, _server_id(request))
    server = service.change(author=request.user, server_id=before.pk, given=given, revision=seen)
    if keeps and service.loses_secrets(before, server.url):
        return _("“%(name)s” saved. The secrets for the previous host were deleted.") % {"name": server.name}
    return _("“%(name)s” saved.") % {"name": server.name}


def _remove(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    server = service.remove(author=request.user, server_id=_server_id(request))
    messages.success(request, _("“%(name)s” removed.") % {"name": server.name}, extra_tags=f"restore {server.pk}")
    return redirect("mcp-servers", workspace.pk)


def _restore(request: SignedInRequest, workspace: Workspace) -> str:
    server = service.restore(author=request.user, server_id=number(request.POST.get("undo", "")) or 0)
    return _("“%(name)s” restored.") % {"name": server.name}


def _test(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Connect to a server and show its tools, or why the connection failed."""
    from agents.mcp.examine import examine  # imported here because the import takes a second

    server = service.managed_server(request.user, _server_id(request))
    spend("mcp_checks", request.user.pk)

    async def examined() -> Offer:
        store = TokenStore()
        try:
            return await examine(added, store.of(added) if added.is_signed_in else None)
        finally:
            await store.close()

    added = as_added(server)
    return_connection()
    offer = _in_language(async_to_sync(examined)())
    return _page(request, workspace, {"tested": server.pk, "offer": offer})


def _in_language(offer: Offer) -> Offer:
    """Return an offer with its problems in the user's language."""
    skipped = tuple(replace(each, problem=translated(each.problem)) for each in offer.skipped)
    return replace(offer, problem=translated(offer.problem), skipped=skipped)


def _connect(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show the link to the authorization server. The Content Security Policy forbids forms that redirect to it."""
    server = service.managed_server(request.user, _server_id(request))
    begun = mcp_sign_in.begin(request, server)
    values = {"connecting": server.pk, "sign_in_url": begun.url, "sign_in_host": mcp_sign_in.host_of(begun)}
    return _page(request, workspace, values)


def _disconnect(request: SignedInRequest, workspace: Workspace) -> str:
    server = sign_in_service.disconnect(author=request.user, server_id=_server_id(request))
    return _("“%(name)s” disconnected.") % {"name": server.name}


PARTS: dict[str, Callable[[SignedInRequest, Workspace], str | HttpResponse]] = {
    "add": _add,
    "change": _change,
    "remove": _remove,
    "restore": _restore,
    "test": _test,
    "connect": _connect,
    "disconnect": _disconnect,
}


def _server_id(request: SignedInRequest) -> int:
    return number(request.POST.get("server", "")) or 0


def _page(
    request: SignedInRequest, workspace: Workspace, more: Values | None = None, status: int = 200
) -> HttpResponse:
    more = more or {}
    refused_part = next(iter(more.get("refused", {})), "")
    values = {
        "workspace": workspace,
        "servers": [_row(request, server, more) for server in service.servers_of(request.user, workspace.pk)],
        "form": ServerForm(request.POST if refused_part == "add" else None, initial=_initial(), auto_id="new-%s"),
        "refused": {},
        **more,
    }
    return render(request, "workspace/mcp_servers.html", values, status=status)


def _row(request: SignedInRequest, server: McpServer, more: Values) -> Values:
    is_refused = "change" in more.get("refused", {}) and more.get("refused_id") == server.pk
    initial = {
        **{name: getattr(server, name) for name in ("name", "url", "approval")},
        "time_limit": f"{server.time_limit:g}",
        **{name: getattr(server, name) for name in ("for_all_agents", "is_enabled")},
        "tools": "\n".join(server.tools or ()),
    }
    form = ServerForm(request.POST if is_refused else None, initial=initial, auto_id=f"server-{server.pk}-%s")
    form.describe_stored(server)
    return {
        "row": server,
        "form": form,
        "is_open": is_refused,
        "revision": request.POST.get("revision", "") if is_refused else server.revision,
        "headers": service.header_names(server),
        "lacks_rights": sign_in_service.lacking_of(server) is not None,
        "has_stored": bool(server.secret_headers or server.oauth_client),
        "is_shadowed": is_shadowed(server),
    }


def _initial() -> Values:
    return {
        "approval": McpServer.Approval.UNLESS_READ_ONLY,
        "time_limit": 60,
        "for_all_agents": True,
        "is_enabled": True,
    }
