"""Choose and activate the language of a user, and join texts in it (UI-13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

P = ParamSpec("P")
T = TypeVar("T")


def offered_language(code: str) -> str:
    """Return the language if Parley offers it, otherwise English."""
    return code if code in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


def of_request(request: HttpRequest) -> str:
    """Return the first of these languages: the user's choice, the cookie's, the browser's, English."""
    chosen = getattr(request.user, "language", "")
    return chosen if chosen in dict(settings.LANGUAGES) else translation.get_language_from_request(request)


def of_header(accept_language: str) -> str:
    """Return the best offered language for an Accept-Language header."""
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = accept_language
    return translation.get_language_from_request(request)


def in_language(language: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a language. It is active in this thread only, so work in other threads must set it again."""
    with translation.override(language):
        return function(*args, **kwargs)


def listed(parts: Iterable[str]) -> str:
    """Return the parts with the active language's mark between them: Chinese has another one than the comma."""
    return _(", ").join(parts)
