"""The sign-in: a first step by password, passkey, link or invitation, and a second step if the user has set one up."""

from __future__ import annotations

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.internal.stagekit import clear_login
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.contrib.admin import site as admin_site
from django.contrib.auth import logout
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat.errors import ServiceError
from chat.limits import rates
from chat.models import Invitation, Session, User, Workspace, WorkspaceInvitation
from chat.origin import address_of, network_of
from chat.services.people import accounts, joining, second_factor
from chat.views.forms import JoinForm, SignInForm
from chat.views.requests import SignedInRequest, may_use_passkeys, signed_in, status_of

GONE = 410
# The lifetime of an anonymous session with a passkey challenge, in seconds.
CHALLENGE_LIFE = 600
HIDES_NOTICES = "hides_notices"
# A key in the state of a login that waits for its second step: the user's session auth hash at the first step.
PASSWORD_THEN = "password_then"  # noqa: S105  # a key, not a password


class SignInView(LoginView):
    """The first step, by user name and password."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        return begin_sign_in(self.request, form.get_user(), "password", self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        signed_out = self.request.GET.get("signed_out", "")
        return super().get_context_data(
            **kwargs, may_use_passkeys=may_use_passkeys(self.request), signed_out=signed_out
        )


sign_in = SignInView.as_view()


def begin_sign_in(request: HttpRequest, user: User, method: str, next_url: str = "", **more: Any) -> HttpResponse:
    """Sign in a user who has passed the first step by `method`, after the second step if they have set one up.

    If another user is signed in in this browser, that user is signed out first.
    """
    if request.user.is_authenticated:
        logout(request)
    record_authentication(request, user, method, **more)
    state = {PASSWORD_THEN: user.get_session_auth_hash()}
    return perform_login(request, Login(user=user, redirect_url=next_url or reverse("home"), state=state))


class SignOut(LogoutView):
    """Sign out, and make the browser delete its local data: drafts and unsent messages."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        if request.method == "POST":
            response.headers["Clear-Site-Data"] = '"storage"'
        return response


@never_cache
@require_http_methods(["GET", "POST"])
def second_step(request: HttpRequest) -> HttpResponse:
    """Show the form for the second factor, or check it, for a user who has passed the first step in this browser."""
    stage = LoginStageController.enter(request, "mfa_authenticate")
    if request.user.is_authenticated or stage is None or not isinstance(stage.login.user, User):
        return redirect("home" if request.user.is_authenticated else "sign-in")
    user = stage.login.user
    if not constant_time_compare(stage.login.state.get(PASSWORD_THEN, ""), user.get_session_auth_hash()):
        clear_login(request)  # the password has changed since the first step
        return redirect("sign-in")
    refused = None
    if request.method == "POST":
        try:
            used = check_second_factor(request, user)
        except ServiceError as refusal:
            refused = refusal
        else:
            record_authentication(request, user, "mfa", id=used.pk, type=used.type)
            response: HttpResponse = stage.exit()
            return response
    values = {"person": user, "refused": refused, **second_factor_values(request, user)}
    return render(request, "accounts/second_step.html", values, status=422 if refused else 200)


def check_second_factor(request: HttpRequest, user: User) -> Authenticator:
    """Check the code or the passkey of a form. Raise ServiceError."""
    if credential := request.POST.get("credential"):
        return second_factor.check_passkey(user=user, credential=credential)
    return second_factor.check_code(user=user, code=request.POST.get("code", ""))


def second_factor_values(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the context of `accounts/second_factor.html`."""
    factors = second_factor.factors_of(user)
    values: dict[str, Any] = {"factors": factors, "may_use_passkeys": may_use_passkeys(request)}
    if factors.passkeys and values["may_use_passkeys"]:
        values["passkey_options"] = second_factor.passkey_options(user=user)
    return values


@never_cache
@require_http_methods(["GET", "POST"])
def passkey_sign_in(request: HttpRequest) -> HttpResponse:
    """Return the challenge for a passkey on GET, or sign in with the passkey's response on POST."""
    if request.user.is_authenticated:
        return redirect("home")
    if request.method == "GET":
        rates.count("passkeys", network_of(address_of(request))).require()
        request.session.set_expiry(CHALLENGE_LIFE)
        return JsonResponse(second_factor.passkey_options(user=None))
    try:
        used = second_factor.check_passkey(user=None, credential=request.POST.get("credential", ""))
    except ServiceError as refused:
        messages.error(request, refused.message)
        return redirect("sign-in")
    details = {"id": used.pk, "type": used.type, "passwordless": True}
    return begin_sign_in(request, used.user, "mfa", safe_next(request), **details)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show the user of a one-time sign-in link, or on POST consume the link and sign in.

    A GET does not consume the link, because link previews, mail scanners and prefetching browsers send GETs.
    """
    rates.count("links", network_of(address_of(request))).require()
    is_post = request.method == "POST"
    user = accounts.redeem(token) if is_post else accounts.link_owner(token)
    if user is None:
        return render(request, "accounts/link_over.html", status=GONE)
    if is_post:
        return begin_sign_in(request, user, "link", safe_next(request))
    return render(request, "accounts/sign_in_link.html", {"person": user})


@never_cache
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation, or on POST accept it with the current account or a new one."""
    try:
        invitation = joining.invitation_for(token)
    except ServiceError as refused:
        present = joining.by_used_link(token, request.user) if isinstance(request.user, User) else None
        if present is not None:
            return redirect(_address_of(present))
        return render(request, "accounts/join_over.html", {"refused": refused}, status=GONE)
    form = JoinForm(request.POST or None)
    if request.method == "GET":
        return _join_page(request, invitation, form)
    try:
        if isinstance(request.user, User):
            return redirect(_address_of(joining.accept(token=token, user=request.user)))
        # A refused form costs as much as an accepted one, and tells whether a user name exists.
        used = rates.count("join_forms", network_of(address_of(request)))
        if not used.is_admitted:
            form = JoinForm(initial=request.POST.dict())  # keeps the entered values, and checks none of them
        used.require()
        if not form.is_valid():
            return _join_page(request, invitation, form, status=422)
        user, joined = accounts.register(token=token, **form.cleaned_data)
        return begin_sign_in(request, user, "invitation", _address_of(joined))
    except ServiceError as refused:
        return _join_page(request, invitation, form, refused, status=status_of(refused))


def _address_of(joined: Session | Workspace) -> str:
    return reverse("session" if isinstance(joined, Session) else "workspace", args=[joined.pk])


def _join_page(
    request: HttpRequest,
    invitation: Invitation | WorkspaceInvitation,
    form: Form,
    refused: ServiceError | None = None,
    status: int = 200,
) -> HttpResponse:
    values = {
        "host": invitation.created_by.sender,
        "title": invitation.session.title if isinstance(invitation, Invitation) else invitation.workspace.name,
        "role": invitation.role if isinstance(invitation, Invitation) else "member",
        "form": form,
        "refused": refused,
    }
    return render(request, "accounts/join.html", values, status=status)


@never_cache
def admin_sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Redirect to the sign-in page, because the admin has none of its own."""
    target = safe_next(request) or reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(target, reverse("sign-in"))
    if not admin_site.has_permission(request):
        raise PermissionDenied
    return HttpResponseRedirect(target)


def admin_password(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Redirect to the settings, where passwords are changed."""
    return redirect("settings")


@require_POST
@signed_in
def dismiss_notices(request: SignedInRequest) -> HttpResponse:
    """Dismiss the notices about the user's account.

    A browser that has signed in by a link only hides them in its own session, because a notice may warn about that
    link.
    """
    records = get_authentication_records(request, request.user)
    if any(record["method"] == "link" for record in records) and not request.session.get(second_factor.PASSED):
        request.session[HIDES_NOTICES] = True
    else:
        accounts.dismiss_notices(user=request.user)
    return HttpResponseRedirect(safe_next(request) or reverse("home"))


def safe_next(request: HttpRequest) -> str:
    """Return the URL in `next` if it is on this site, else ""."""
    target = request.POST.get("next") or request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""
