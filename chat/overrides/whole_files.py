"""Send static files in one piece. WhiteNoise's FileResponse costs an ASGI server a switch to a thread for each chunk.

Overridden: `WhiteNoiseMiddleware.serve`. It calls `StaticFile.get_response` and reads `status`, `headers` and `file` of
the result. None of them is documented. Gain: see docs/performance.md.
"""

from __future__ import annotations

import os

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]  # it ships no types
from whitenoise.responders import StaticFile  # type: ignore[import-untyped]  # likewise

# Off: WhiteNoise's own responses.
SEND_WHOLE_FILES = True


class WholeFileMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # likewise
    """Serves each static file in one piece. The files are small and in the operating system's cache."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """Return the file, 304, or 404 if another process has deleted the file with its old version."""
        try:
            if not SEND_WHOLE_FILES:
                response: HttpResponse = WhiteNoiseMiddleware.serve(static_file, request)
                return response
            answer = static_file.get_response(request.method, request.META)
        except FileNotFoundError:
            return HttpResponse(status=404)
        with answer.file or open(os.devnull, "rb") as file:
            response = HttpResponse(file.read(), status=int(answer.status))
        del response["Content-Type"]
        for name, value in answer.headers:
            response[name] = value
        if "immutable" in response["Cache-Control"]:  # browsers never revalidate it
            del response["ETag"], response["Last-Modified"]
        response["X-Content-Type-Options"] = "nosniff"
        return response
