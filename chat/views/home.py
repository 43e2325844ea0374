"""The home page, the session list in the sidebar, and creating sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from secrets import token_urlsafe
from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.registry import Prompt, opening
from chat.access import may_begin_sessions, require_no_guest, session_for, workspace_for
from chat.agents_setup import registry
from chat.errors import ServiceError
from chat.models import Session, SessionRole, User, Workspace
from chat.queries import presets
from chat.queries.needing import needing_elsewhere
from chat.queries.session_list import listing, recent
from chat.rendering.text.formatting import color, initials
from chat.services.idempotency import MAX_KEY_LENGTH, create_once
from chat.services.people.second_factor import can_sign_in_again
from chat.services.people.workspaces import ListedWorkspace, UserWorkspaces, enter, listed_workspaces
from chat.services.sessions.lifecycle import Choice, begin_session, send_first_message
from chat.services.sessions.replies import AUTOMATIC
from chat.services.sessions.user_state import save_draft
from chat.views.profile_pictures import picture_urls
from chat.views.requests import SignedInRequest, is_script, number, signed_in, status_of
from chat.zones import zone_of

RECENT = 4
# Commands with which an operator connects a model. The home page shows them while only the demo agent is available.
SETTINGS_OF_MODELS = (
    ("Anthropic", "ANTHROPIC_API_KEY=sk-ant-… make run"),
    ("OpenAI", "OPENAI_API_KEY=sk-… make run"),
    ("Ollama, vLLM, LM Studio", "OPENAI_BASE_URL=http://localhost:11434/v1 make run"),
)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that the home page offers for a new session."""

    name: str
    title: str
    model: str
    prompts: tuple[Prompt, ...]


@never_cache
@require_GET
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    """Show the home page. `?q=` prefills the composer, and `?agent=` selects the agent."""
    return _prefill(request)


@never_cache
@require_GET
@signed_in
def workspace(request: SignedInRequest, workspace_id: str) -> HttpResponse:
    """Switch to a workspace and show its home page."""
    enter(user=request.user, workspace_id=number(workspace_id))
    return _prefill(request)


@never_cache
@require_GET
@signed_in
def session_list(request: SignedInRequest) -> HttpResponse:
    """Render the session list of a `workspace`, so that an open page can refresh it."""
    workspaces = listed_workspaces(request.user, number(request.GET.get("workspace", "")))
    return render(
        request, "chat/session_list.html", sidebar_values(request, workspaces, request.GET.get("current", ""))
    )


@require_POST
@signed_in
def new_session(request: SignedInRequest) -> HttpResponse:
    """Create a session in the form's `workspace`, send `text` as its first message, and open it.

    If `upload_first` has already created the session, the form contains its id in `session` and the ids of the files in
    `attachments`. If the form is sent again because the response was lost, its `key` leads to the same session
    (MSG-02). Scripts get the session's URL or the error as JSON.
    """
    text = request.POST.get("text", "").replace("\r\n", "\n")
    agent = request.POST.get("agent", "")
    try:
        begun = _begin_with(request, text)
    except ServiceError as refused:
        if is_script(request):
            return JsonResponse({"message": refused.message}, status=status_of(refused))
        return _home(request, text=text, agent=agent, refused=refused.message, status=status_of(refused))
    address = reverse("session", args=[begun.pk])
    return JsonResponse({"address": address}, status=201) if is_script(request) else redirect(address)


def begin(request: SignedInRequest, text: str = "") -> tuple[Session, bool]:
    """Create a session with the values of the home page's form, once for the form's `key`.

    Return the session, and whether it existed already. Raise ServiceError.
    """
    key, choice = _form_key(request), _read_choice(request)

    def make(session_id: str, key_digest: str | None) -> Session:
        return begin_session(
            owner=request.user,
            workspace=named_workspace(request),
            text=text,
            key=key,
            replies=AUTOMATIC,
            session_id=session_id,
            key_digest=key_digest,
            **choice,
        )

    create = partial(create_once, user=request.user, purpose="home", request={}, make=make)
    try:
        return create(key=key)
    except ServiceError as refused:
        if refused.code != "key_taken":
            raise
        return create(key=key and f"{key} again")  # the session of this key is deleted


def _begin_with(request: SignedInRequest, text: str) -> Session:
    """Create the session of the form and send its first message, unless that is done already. Return the session.

    The message's key was used for another text if the user has changed the text after the response was lost. The new
    text then becomes the session's draft, because the agent already answers the first one.
    """
    session_id = request.POST.get("session")
    if not session_id:
        begun, existed = begin(request, text)
        if not existed:
            return begun
        session_id = begun.pk
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    require_no_guest(request.user, row)
    files, key, choice = request.POST.getlist("attachments"), _form_key(request), _read_choice(request)
    try:
        send_first_message(session=row, author=request.user, text=text, attachments=files, key=key, **choice)
    except ServiceError as refused:
        if refused.code != "key_taken":
            raise
        save_draft(session=row, user=request.user, text=text)
    return row


def _form_key(request: SignedInRequest) -> str | None:
    return request.POST.get("key", "")[:MAX_KEY_LENGTH] or None


def _read_choice(request: SignedInRequest) -> Choice:
    provider, _slash, model = request.POST.get("model", "").partition("/")
    return {"agent": request.POST.get("agent", ""), "provider": provider, "model": model}


def named_workspace(request: SignedInRequest) -> Workspace | None:
    """Return the workspace in the form, or None if the form has none. Raise NoSuchWorkspace."""
    named = request.POST.get("workspace", "")
    return workspace_for(request.user, number(named)) if named else None


def sidebar_values(request: SignedInRequest, workspaces: UserWorkspaces, current: str = "") -> dict[str, Any]:
    """Return the template context of the sidebar. `current` is the id of the open session."""
    shown = request.GET.get("shown", "")
    archived = request.GET.get("archived") == "yes"
    count = int(shown) if shown.isascii() and shown.isdigit() and len(shown) < 6 else 0
    found = listing(request.user, zone_of(request), shown=count, archived=archived, within=workspaces.within)
    may_begin = workspaces.here is not None or may_begin_sessions(request.user)
    # The archive lists no session that needs the user.
    is_partial = archived or workspaces.several
    within = None if archived else workspaces.within
    elsewhere = needing_elsewhere(request.user, within) if is_partial else []
    return {
        "workspaces": workspaces,
        "switcher": json.dumps([_choice(each, workspaces) for each in workspaces.mine] if workspaces.several else []),
        "elsewhere": elsewhere,
        "home": _address(workspaces.here) if workspaces.here and workspaces.several else reverse("home"),
        "listing": found,
        "may_begin": may_begin,
        "owners": json.dumps(picture_urls(found.owners)),
        "archived": archived,
        "current": current,
        # Lazy, because only complete pages use it, and pages reload the list often.
        "has_way_back": SimpleLazyObject(lambda: can_sign_in_again(request.user)),
    }


def _choice(workspace: ListedWorkspace, workspaces: UserWorkspaces) -> dict[str, Any]:
    """Return a workspace in the form that the page's script needs."""
    return {
        "id": workspace.id,
        "name": workspace.name,
        "initials": initials(workspace.name),
        "color": color(workspace.name),
        "address": _address(workspace),
        "here": workspace == workspaces.here,
        "unread": workspace.unread,
    }


def _address(workspace: ListedWorkspace) -> str:
    return reverse("workspace", args=[workspace.id])


def agents(user: User, here: ListedWorkspace | None) -> list[Agent]:
    """Return the agents to choose from in a workspace. The default agent comes first."""
    known = presets.presets(user, here.id if here else None)
    return [
        Agent(each.name, each.title, each.model, translated_prompts(each.prompts) or default_prompts())
        for each in known
    ]


def translated_prompts(prompts: Iterable[str]) -> tuple[Prompt, ...]:
    """Return a preset's prompts in the user's language. Prompts without a translation stay unchanged."""
    return tuple(Prompt(_translated(each), _translated(each.heading), each.icon) for each in map(opening, prompts))


def _translated(text: str) -> str:
    return _(text) if text else ""  # gettext("") would return the header of the catalog


def default_prompts() -> tuple[Prompt, ...]:
    """Return the prompts for presets that have none."""
    return (
        Prompt(_("Plan a project with me, step by step"), _("Make a plan"), "list-checks"),
        Prompt(_("Explain this code: …"), _("Understand code"), "code"),
        Prompt(_("Compare in a table: …"), _("Weigh options"), "table"),
        Prompt(_("Draft a message to my team: …"), _("Write something"), "square-pen"),
    )


def _prefill(request: SignedInRequest) -> HttpResponse:
    return _home(request, text=request.GET.get("q", ""), agent=request.GET.get("agent", ""))


def _home(
    request: SignedInRequest, *, text: str = "", agent: str = "", refused: str = "", status: int = 200
) -> HttpResponse:
    workspaces = listed_workspaces(request.user)
    first_name = next(iter(request.user.sender.split()), "")
    if workspaces.here is None and not may_begin_sessions(request.user):
        found = recent(request.user, RECENT)
        values = {
            "first_name": first_name,
            "recent": found,
            "has_own": any(each.owner is None for each in found),  # of a workspace that the user is no longer in
            **sidebar_values(request, workspaces),
        }
        return render(request, "chat/guest_home.html", values, status=status)
    known = agents(request.user, workspaces.here)
    values = {
        "agents": known,
        "agent": next((each for each in known if each.name == agent), known[0]),
        "settings_of_models": SETTINGS_OF_MODELS,
        "is_demo": not registry().has_models(),
        "first_name": first_name,
        "text": text,
        "key": token_urlsafe(9),
        "limit": settings.MAX_MESSAGE_CHARS,
        "refused": refused,
        "recent": recent(request.user, RECENT, workspaces.within),
        **sidebar_values(request, workspaces),
    }
    return render(request, "chat/home.html", values, status=status)
