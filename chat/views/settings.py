"""The settings page: preferences, notifications, profile, password, API tokens and guests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.password_validation import password_validators_help_text_html
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat.access import still_active
from chat.downloads import file_name, passed_on, while_permitted
from chat.errors import Invalid, ServiceError
from chat.queries.memory import kept_and_removed
from chat.queries.session_list import deleted_sessions
from chat.security import web_push
from chat.services.people import accounts, guests, memory
from chat.services.people import preferences as service
from chat.services.people.second_factor import can_sign_in_again
from chat.transfer import public as transfer
from chat.views import push, tokens
from chat.views.forms import password_form
from chat.views.profile_pictures import picture_url
from chat.views.requests import SignedInRequest, number, signed_in
from chat.zones import zone_of

Values = dict[str, Any]


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def settings_page(request: SignedInRequest) -> HttpResponse:
    """Show all settings, or handle the form named by `part`."""
    if request.method == "GET":
        return _page(request)
    part = request.POST.get("part", "")
    try:
        result = PARTS[part](request) if part in PARTS else ""
    except ServiceError as refused:
        request.user.refresh_from_db()  # the page shows the stored values, not the refused ones
        stale_note = number(request.POST.get("note_id", "")) if refused.code == "stale" else None
        values = {"refused": {part: refused.message}, "stale_note": stale_note, **tokens.refused_form(request)}
        return _page(request, values, status=422)
    if isinstance(result, HttpResponse):
        return result
    messages.success(request, result)
    return redirect("settings")


@require_POST
@signed_in
def export(request: SignedInRequest) -> HttpResponseBase:
    """Stream all data of the user as one archive."""
    try:
        archive = transfer.export_person(user=request.user, author=request.user, zone=zone_of(request))
    except ServiceError as refused:
        return _page(request, {"refused": {"data": refused.message}}, status=409)
    pieces = while_permitted(archive, lambda: still_active(request.user))
    name = file_name(f"Parley {request.user.username}", "parley", "zip")
    return passed_on(request, pieces, name=name, media_type="application/zip", close=archive.close)


@require_POST
@signed_in
def preferences(request: SignedInRequest) -> HttpResponse:
    """Store preferences that a page's script sends. The response is empty unless they are refused."""
    try:
        service.choose(user=request.user, values=_read_form(request))
    except ServiceError as refused:
        return HttpResponse(refused.message, status=422, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


def _choose(request: SignedInRequest) -> str:
    values = _read_form(request)
    service.choose(user=request.user, values=values)
    with translation.override(request.user.language or translation.get_language()):
        return _("Saved.")


def _choose_notifications(request: SignedInRequest) -> str:
    # Browsers do not send an unchecked box.
    service.choose(user=request.user, values={"notify": request.POST.get("notify", "no")})
    return _("Saved.")


def _read_form(request: SignedInRequest) -> dict[str, str]:
    return {name: request.POST[name] for name in service.choices() if name in request.POST}


def _name(request: SignedInRequest) -> str:
    service.rename(user=request.user, name=request.POST.get("name", ""))
    return _("Name saved.")


def _picture(request: SignedInRequest) -> str:
    upload = request.FILES.get("picture")
    if upload is None:
        raise Invalid(_("Choose a picture first."))
    service.set_picture(user=request.user, upload=upload)
    return _("Picture saved.")


def _no_picture(request: SignedInRequest) -> str:
    service.remove_picture(user=request.user)
    return _("Picture removed.")


def _password(request: SignedInRequest) -> str | HttpResponse:
    form = password_form(request.user, request.POST)
    if not form.is_valid():
        request.user.refresh_from_db()
        return _page(request, {"password": form}, status=422)
    new, key = form.cleaned_data["new_password1"], request.session.session_key
    accounts.set_password(user=request.user, password=new, keep=key)
    update_session_auth_hash(request, request.user)
    return _("Password changed. Other browsers were signed out.")


def _sign_out_elsewhere(request: SignedInRequest) -> str:
    count = accounts.sign_out_elsewhere(user=request.user, keep=request.session.session_key)
    if not count:
        return _("No other devices are signed in.")
    return ngettext("Signed out %(count)d other device.", "Signed out %(count)d other devices.", count) % {
        "count": count
    }


def _token(request: SignedInRequest) -> HttpResponse:
    """Show the new token in the response itself, because it is not stored."""
    return _page(request, {"made": tokens.make(request)})


def _change_guest(request: SignedInRequest) -> str:
    """Make a guest a member, or remove the guest. Invalid ids become 0, which no row has."""
    who = {name: number(request.POST.get(name, "")) or 0 for name in ("workspace_id", "user_id")}
    if request.POST.get("act") == "remove":
        guests.remove(author=request.user, **who)
        return _("Guest removed.")
    made = guests.make_member(author=request.user, **who)
    names = {"name": made.user.sender, "workspace": made.workspace.name}
    return _("%(name)s is now a member of “%(workspace)s”.") % names


def _memory(request: SignedInRequest) -> str:
    """Add, edit, remove or restore a note."""
    act, text = request.POST.get("act", ""), request.POST.get("text", "")
    if act == "add":
        memory.keep_mine(user=request.user, text=text)
        return _("Note added.")
    note_id = number(request.POST.get("note_id", "")) or 0
    memory.change_mine(user=request.user, note_id=note_id, act=act, text=text, seen=request.POST.get("version"))
    return _("Note removed. You can restore it below.") if act == "remove" else _("Saved.")


PARTS: dict[str, Callable[[SignedInRequest], str | HttpResponse]] = {
    "preferences": _choose,
    "notifications": _choose_notifications,
    "push_remove": push.remove,
    "name": _name,
    "picture": _picture,
    "no-picture": _no_picture,
    "password": _password,
    "elsewhere": _sign_out_elsewhere,
    "token": _token,
    "revoke": tokens.revoke,
    "guests": _change_guest,
    "memory": _memory,
}


def _page(request: SignedInRequest, more: Values | None = None, status: int = 200) -> HttpResponse:
    notes, removed = kept_and_removed(user=request.user)
    managed = guests.guests_managed_by(request.user)
    values = {
        "has_way_back": can_sign_in_again(request.user),
        "picture": picture_url(request.user),
        "languages": settings.LANGUAGES,
        "password": password_form(request.user),
        "password_help": password_validators_help_text_html(),
        "refused": {},
        "guests": [
            {"membership": each, "picture": picture_url(each.user), "count": each.session_count} for each in managed
        ],
        "notes": notes,
        "removed_notes": removed,
        "deleted_sessions": deleted_sessions(request.user),
        "push_key": web_push.public_key(),
        **push.browsers(request),
        **tokens.values(request),
        **(more or {}),
    }
    return render(request, "settings/page.html", values, status=status)
