"""The pages for two-step verification. To change it, users must have confirmed their identity recently."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from allauth.mfa.adapter import get_adapter
from allauth.mfa.totp.internal import auth as totp
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chat.errors import ServiceError
from chat.security.encryption import decrypt, encrypt
from chat.services.people import second_factor
from chat.services.people.second_factor import PASSED
from chat.sign_in.adapters import CONFIRMED_AT
from chat.views.accounts import check_second_factor, safe_next, second_factor_values
from chat.views.forms import ConfirmForm
from chat.views.requests import SignedInRequest, may_use_passkeys, number, signed_in

P = ParamSpec("P")
# The time for which a confirmation is valid, in seconds.
CONFIRMED_FOR = 600
# A session key. Its value is the encrypted secret in the QR code, until the user has set up the app.
NEW_APP = "new_app"
# A session key. Its value is the id of a passkey and the new name that the user entered before the confirmation.
RENAMING = "renaming_passkey"
REMOVED = {"app": gettext_lazy("Authenticator app removed."), "passkey": gettext_lazy("Passkey removed.")}


def confirmed(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Require that the user has confirmed their identity recently. Otherwise redirect to the page that asks for it."""

    @never_cache
    @require_http_methods(["GET", "POST"])
    @signed_in  # type: ignore[arg-type]  # what wraps() returns names its first argument
    @wraps(view)
    def answer(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if _is_confirmed(request):
            return view(request, *args, **kwargs)
        return HttpResponseRedirect(f"{reverse('confirm')}?{urlencode({'next': request.path})}")

    return answer


def _is_confirmed(request: SignedInRequest) -> bool:
    if time.time() - request.session.get(CONFIRMED_AT, 0) < CONFIRMED_FOR:
        return True
    # A user who signed in by a link may have neither a password nor a second factor to confirm with.
    return not request.user.has_usable_password() and not second_factor.factors_of(request.user)


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def confirm(request: SignedInRequest) -> HttpResponse:
    """Ask for the second factor, or for the password if the user has none, and redirect to `next`."""
    values = second_factor_values(request, request.user)
    form = ConfirmForm(request.user, request.POST or None)
    refused = None
    if request.method == "POST":
        try:
            if values["factors"]:
                check_second_factor(request, request.user)
                request.session[PASSED] = True
        except ServiceError as refusal:
            refused = refusal
        if refused is None and (values["factors"] or form.is_valid()):
            request.session[CONFIRMED_AT] = time.time()
            return HttpResponseRedirect(safe_next(request) or reverse("two-step"))
    is_wrong = refused is not None or bool(form.errors)
    values |= {"form": form, "refused": refused, "next": safe_next(request)}
    return render(request, "accounts/confirm.html", values, status=422 if is_wrong else 200)


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def two_step(request: SignedInRequest) -> HttpResponseBase:
    """Show the second factors that the user has set up. A POST changes them."""
    if request.method != "POST":
        return _page(request)
    if request.POST.get("part") == "rename" and not _is_confirmed(request):  # _change asks for the confirmation first
        entered = request.POST.get("name", "")[: second_factor.MAX_NAME_LENGTH]
        request.session[RENAMING] = {"id": number(request.POST.get("id", "")), "name": entered}
    return _change(request)


@confirmed
def _change(request: SignedInRequest) -> HttpResponse:
    part, row_id = request.POST.get("part", ""), number(request.POST.get("id", "")) or 0
    try:
        match part:
            case "codes":
                return _codes_page(request, second_factor.make_recovery_codes(user=request.user))
            case "rename":
                second_factor.rename_passkey(user=request.user, passkey_id=row_id, name=request.POST.get("name", ""))
                messages.success(request, _("Passkey renamed."))
            case "remove":
                key = request.session.session_key
                removed = second_factor.remove(user=request.user, authenticator_id=row_id, session_key=key)
                request.session[PASSED] = bool(second_factor.factors_of(request.user))
                is_off = "" if request.session[PASSED] else _("Two-step verification is now off.")
                messages.success(request, f"{REMOVED[removed]} {is_off}".rstrip())
    except ServiceError as refused:
        if part == "rename":  # the form stays open, with what the user entered
            request.session[RENAMING] = {"id": row_id, "name": request.POST.get("name", "")}
        return _page(request, refused)
    return redirect("two-step")


@confirmed
def add_app(request: SignedInRequest) -> HttpResponse:
    """Show the QR code of a new secret. A POST has the app's first code, which finishes the setup."""
    refused = None
    if request.method == "GET" or NEW_APP not in request.session:
        request.session[NEW_APP] = encrypt(totp.generate_totp_secret())
    secret = decrypt(request.session[NEW_APP])
    if request.method == "POST":
        try:
            codes = second_factor.add_app(
                user=request.user,
                secret=secret,
                code=request.POST.get("code", ""),
                session_key=request.session.session_key,
            )
        except ServiceError as refusal:
            refused = refusal
        else:
            del request.session[NEW_APP]
            return _show_added(request, codes, _("Authenticator app set up."))
    adapter = get_adapter()
    values = {
        "qr_code": adapter.build_totp_svg(adapter.build_totp_url(request.user, secret)),
        "secret": " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        "refused": refused,
    }
    return render(request, "settings/two_step_app.html", values, status=422 if refused else 200)


@confirmed
def add_passkey(request: SignedInRequest) -> HttpResponse:
    """Show the form with which the browser creates a passkey. A POST stores the passkey under a name."""
    refused = None
    if request.method == "POST":
        try:
            codes = second_factor.add_passkey(
                user=request.user,
                name=request.POST.get("name", ""),
                credential=request.POST.get("credential", ""),
                session_key=request.session.session_key,
            )
        except ServiceError as refusal:
            refused = refusal
        else:
            return _show_added(request, codes, _("Passkey added."))
    if not may_use_passkeys(request):
        return redirect("two-step")
    values = {
        "passkey_options": second_factor.new_passkey_options(user=request.user),
        "name": request.POST.get("name", ""),
        "refused": refused,
    }
    return render(request, "settings/two_step_passkey.html", values, status=422 if refused else 200)


def _show_added(request: SignedInRequest, codes: list[str], message: str) -> HttpResponse:
    request.session[PASSED] = True
    messages.success(request, message)
    return _codes_page(request, codes) if codes else redirect("two-step")


def _codes_page(request: SignedInRequest, codes: list[str]) -> HttpResponse:
    """Show new recovery codes in the response itself, because they cannot be shown again."""
    return render(request, "settings/recovery_codes.html", {"codes": codes})


def _page(request: SignedInRequest, refused: ServiceError | None = None) -> HttpResponse:
    factors = second_factor.factors_of(request.user)
    values: dict[str, Any] = {
        "factors": factors,
        "is_last": len(factors) == 1,
        "locks_out": len(factors.passkeys) == 1 and not request.user.has_usable_password(),
        "is_missing": second_factor.is_missing(request.user, request.session),
        "is_required": second_factor.is_required(request.user),
        "may_use_passkeys": may_use_passkeys(request),
        "renaming": request.session.pop(RENAMING, None),
        "refused": refused,
    }
    return render(request, "settings/two_step.html", values, status=422 if refused else 200)
