"""The part of the settings page for API tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.services.people import api_tokens
from chat.views.requests import SignedInRequest, number


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token, with its secret."""

    name: str
    secret: str


def values(request: SignedInRequest) -> dict[str, Any]:
    """Return the template context of this part."""
    return {
        "tokens": api_tokens.tokens_of(request.user),
        "now": timezone.now(),
        "scopes": list(api_tokens.SCOPES.items()),
        "lives": [(str(days), _life(days)) for days in api_tokens.LIVES],
        "asked": {},
    }


def refused_form(request: SignedInRequest) -> dict[str, Any]:
    """Return the template context with the values of a refused form."""
    return {"asked": {name: request.POST.get(name, "") for name in ("token_name", "scope", "days", "text")}}


def make(request: SignedInRequest) -> NewToken:
    """Create a token with the values of the form. Raise ServiceError."""
    days = number(request.POST.get("days", ""))
    token, secret = api_tokens.create(
        user=request.user,
        name=request.POST.get("token_name", ""),
        scope=request.POST.get("scope", ""),
        days=-1 if days is None else days,
    )
    return NewToken(token.name, secret)


def revoke(request: SignedInRequest) -> str:
    """Revoke the `token` in the form and return a message. Raise ServiceError."""
    token = api_tokens.revoke(user=request.user, token_id=number(request.POST.get("token", "")) or 0)
    return _("Token “%(name)s” revoked.") % {"name": token.name}


def _life(days: int) -> str:
    if not days:
        return _("never")
    return ngettext("in %(count)d day", "in %(count)d days", days) % {"count": days}
