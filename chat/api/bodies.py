"""What clients send: how a body is read, and the shapes that it may have."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Schema
from ninja.parser import Parser
from pydantic import ConfigDict

from chat import long_json


class NotJson(ValueError):  # noqa: N818  # named for what the body is
    """The body says that it is something else than JSON."""


class JsonParser(Parser):
    """Takes bodies that say that they are JSON, so that no form of another site can be one by chance."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise NotJson(request.content_type)
        return long_json.loads(request.body)


class Body(Schema):
    """Any body: a field that nobody knows is a mistake, and is told as one."""

    model_config = ConfigDict(extra="forbid", strict=True)
