"""Where allauth asks Parley: which steps signing in has, how it ends, and how second factors are stored and named."""

from __future__ import annotations

import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from chat.models import User
from chat.origin import address_of
from chat.security import encryption
from chat.services.people import login_throttle
from chat.services.people.second_factor import PASSED

# Session key: when the person last confirmed who they are, in seconds since the epoch.
CONFIRMED_AT = "confirmed_at"


class AccountAdapter(DefaultAccountAdapter):
    """Signing in: what comes after the first step, and what the finished session holds."""

    def get_login_stages(self) -> list[str]:
        return ["allauth.mfa.stages.AuthenticateStage"]

    def login(self, request: HttpRequest, user: User) -> None:  # type: ignore[override]  # there are no other users
        super().login(request, user)
        records = get_authentication_records(request, user)
        request.session[PASSED] = any(record["method"] == "mfa" for record in records)
        request.session[CONFIRMED_AT] = time.time()
        request.session.set_expiry(None)  # before signing in it may have been short

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        response: HttpResponse = super().post_login(request, user, **kwargs)
        login_throttle.know_browser(request, response, user)
        return response

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        messages.error(request, _("This account is deactivated."))
        return redirect("sign-in")

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Ignore allauth's messages: Parley's views add their own."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return address_of(request)


class MFAAdapter(DefaultMFAAdapter):
    """Second factors: stored encrypted, shown under the user name."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text)

    def get_totp_label(self, user: User) -> str:  # type: ignore[override]  # as above
        return user.username

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": "Parley"}

    def get_public_key_credential_user_entity(self, user: User) -> dict[str, Any]:  # type: ignore[override]  # as above
        entity: dict[str, Any] = super().get_public_key_credential_user_entity(user)
        return {**entity, "display_name": user.sender, "name": user.username}
