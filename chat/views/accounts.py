"""Coming in: signing in, one-time links, invitations."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from chat.forms import JoinForm, SignInForm
from chat.models import Invitation, Session, User
from chat.services import accounts, sharing
from chat.services.errors import Refused

# Passwords are checked by it, and links vouch for the same people.
BACKEND = "django.contrib.auth.backends.ModelBackend"
GONE = 410

sign_in = LoginView.as_view(
    template_name="accounts/sign_in.html", authentication_form=SignInForm, redirect_authenticated_user=True
)


class SignOut(LogoutView):
    """Sign out, and let the browser delete what it keeps of this site: drafts, unsent messages."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        if request.method == "POST":
            response.headers["Clear-Site-Data"] = '"storage"'
        return response


@never_cache
@require_GET  # not HEAD: a link that is only looked at must not be used up
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by a one-time link and go to `next`, or home."""
    user = accounts.redeem(token)
    if user is None:
        return render(request, "accounts/link_over.html", status=GONE)
    login(request, user, BACKEND)
    return HttpResponseRedirect(_safe_next(request) or reverse("home"))


@never_cache
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Accept an invitation: as the signed-in user, or with a new account."""
    try:
        invitation = sharing.invitation_for(token)
    except Refused as refused:
        present = sharing.session_by_used_link(token, request.user) if isinstance(request.user, User) else None
        if present is not None:
            return redirect("session", present.pk)
        return render(request, "accounts/join_over.html", {"refused": refused}, status=GONE)
    form = JoinForm(request.POST or None)
    if request.method == "GET":
        return _join_page(request, invitation, form)
    if not isinstance(request.user, User) and not form.is_valid():
        return _join_page(request, invitation, form, status=422)
    try:
        return redirect("session", _join(request, token, form).pk)
    except Refused as refused:
        return _join_page(request, invitation, form, refused, status=422)


def _join(request: HttpRequest, token: str, form: JoinForm) -> Session:
    if isinstance(request.user, User):
        return sharing.accept(token=token, user=request.user)
    user, session = accounts.register(token=token, **form.cleaned_data)
    login(request, user, BACKEND)
    return session


def _join_page(
    request: HttpRequest, invitation: Invitation, form: JoinForm, refused: Refused | None = None, status: int = 200
) -> HttpResponse:
    values = {
        "host": invitation.created_by.sender,
        "title": invitation.session.title,
        "role": invitation.role,
        "form": form,
        "refused": refused,
    }
    return render(request, "accounts/join.html", values, status=status)


def _safe_next(request: HttpRequest) -> str:
    target = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""
