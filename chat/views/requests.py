"""What the views share: requests of people who are signed in, and refusals as answers of a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse

from chat.models import User
from chat.services.errors import Forbidden, NoSuchSession

P = ParamSpec("P")


class SignedInRequest(HttpRequest):
    """A request behind `signed_in`."""

    user: User


def signed_in(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let signed-in people in; what they may not know of is not found, what they may not do is forbidden."""

    @login_required
    @wraps(view)
    def answer(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NoSuchSession as refused:
            raise Http404(str(refused)) from refused
        except Forbidden as refused:
            raise PermissionDenied(str(refused)) from refused

    return answer  # type: ignore[return-value]  # login_required's stub forgets the narrower request
