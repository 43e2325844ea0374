"""Which language somebody is spoken to in, and speaking it: the one place that chooses and switches (UI-13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation

P = ParamSpec("P")
T = TypeVar("T")


def offered(code: str) -> str:
    """Give the language back if Parley offers it; English if not."""
    return code if code in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


def of_request(request: HttpRequest) -> str:
    """What the person chose; without a choice the cookie's, else their browser's, else English."""
    chosen = getattr(request.user, "language", "")
    return chosen if chosen in dict(settings.LANGUAGES) else translation.get_language_from_request(request)


def of_header(accept_language: str) -> str:
    """The language that an Accept-Language header likes best of those that Parley offers."""
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = accept_language
    return translation.get_language_from_request(request)


def speaking(language: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call something in a language. The language is the thread's: who hands work to a thread hands this over."""
    with translation.override(language):
        return function(*args, **kwargs)
