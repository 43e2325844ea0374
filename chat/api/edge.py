"""What leaves the API: whatever refused a request on its way there, the answer is a problem and no page."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.api.problems import CODES, MEDIA_TYPE, problem, words
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


problems = finishing(_as_problem)
