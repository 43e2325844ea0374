"""A client program that uses the API with a token."""

from __future__ import annotations

from typing import Any

from django.test import Client

from chat.models import User
from chat.services.people import api_tokens


class Asker:
    """Django's test client with a token in each request and JSON as the body; `headers` are added to each request."""

    def __init__(self, secret: str) -> None:
        self._client = Client(headers={"Authorization": f"Bearer {secret}"})

    def get(self, path: str, **headers: str) -> Any:
        return self._client.get(path, headers=_named(headers))

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        return self._send("post", path, body, headers)

    def put(self, path: str, body: object = None, **headers: str) -> Any:
        return self._send("put", path, body, headers)

    def patch(self, path: str, body: object = None, **headers: str) -> Any:
        return self._send("patch", path, body, headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self._send("delete", path, None, headers)

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> Any:
        if body is None:  # Django's own methods would send an empty form
            return self._client.generic(method.upper(), path, headers=_named(headers))
        send = getattr(self._client, method)
        return send(path, data=body, content_type="application/json", headers=_named(headers))


def _named(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with their HTTP names, so that `if_match` becomes If-Match."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def token_of(user: User, scope: str = "write") -> str:
    """Make a token for a user and return its secret."""
    return api_tokens.create(user=user, name="Script", scope=scope, days=0)[1]


def code(answer: Any) -> tuple[int, str]:
    """Return the code of a refusal."""
    assert answer["Content-Type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]
