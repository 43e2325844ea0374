"""What leaves the API: whatever refused a request on its way there, the answer is a problem and no page."""

from __future__ import annotations

import math

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.api.problems import CODES, MEDIA_TYPE, problem, words
from chat.limits.rates import Window
from chat.middleware import finishing

PREFIX = "/api/"


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    told = response.headers.get("Content-Type", "").startswith(MEDIA_TYPE)
    if told or response.status_code < 400 or not request.path_info.startswith(PREFIX):
        return response
    status = response.status_code
    answer = problem(CODES.get(status, "internal" if status >= 500 else "malformed"), words(status), status)
    if "Allow" in response.headers:
        answer["Allow"] = response.headers["Allow"]
    return answer


def _with_rate(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Tell a program how many requests it may still make (draft-ietf-httpapi-ratelimit-headers)."""
    window: Window | None = getattr(request, "window", None)
    if window is not None and window.rate.amount:
        name, resets_in = window.name, math.ceil(window.resets_in)
        response["RateLimit-Policy"] = f'"{name}";q={window.rate.amount};w={window.rate.seconds}'
        response["RateLimit"] = f'"{name}";r={window.remaining};t={resets_in}'
    return response


problems = finishing(lambda request, response: _with_rate(request, _as_problem(request, response)))
