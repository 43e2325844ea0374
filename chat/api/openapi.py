"""The API's description of itself: what ninja knows of it, and what all of its operations have in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI
from ninja.openapi import get_schema
from ninja.openapi.schema import OpenAPISchema
from pydantic.json_schema import models_json_schema

from chat.api.problems import MEDIA_TYPE, Problem

Json = dict[str, Any]
PROBLEM = {"$ref": "#/components/responses/Problem"}
ALWAYS = (401, 403, 422)
OF_WRITING = (409,)
OF_BODIES = (400, 413, 415)
# These name one beside their path, and it may not be there either.
NAMING_WORKSPACES = ("/sessions", "/sessions/import")
TAG = {"ETag": {"description": "What `If-None-Match` and `If-Match` take.", "schema": {"type": "string"}}}
LOCATION = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "description": "The ETag of what you have: answered by 304 if it is still that.",
    "required": False,
    "schema": {"type": "string"},
}
MATCH = {
    "in": "header",
    "name": "If-Match",
    "description": "The ETag of what you have seen: refused by 412, as `stale`, if it has changed since.",
    "required": False,
    "schema": {"type": "string"},
}


class Described(NinjaAPI):
    """An API whose description is whole. It does not change while the process lives."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Json | None = None) -> OpenAPISchema:
        return self._described

    @cached_property
    def _described(self) -> OpenAPISchema:
        schema = get_schema(api=self, path_prefix=self.get_root_path({}))
        complete(schema)
        return schema


def complete(schema: Json) -> None:
    """Add to each operation how it refuses, and the headers that it heeds."""
    components = schema["components"]
    _refs, definitions = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
    components["schemas"] |= definitions["$defs"]
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    described = "A problem (RFC 9457): `code` is stable and for programs, `detail` is for people."
    components["responses"] = {"Problem": {"description": described, "content": content}}
    for method, path, operation in _operations(schema):
        _complete(method, path, operation)


def _operations(schema: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _complete(method: str, path: str, operation: Json) -> None:
    answers, parameters = operation["responses"], operation.setdefault("parameters", [])
    for status in _refusals(method, path, operation):
        answers.setdefault(status, PROBLEM)
    tagged = [status for status, told in answers.items() if "application/json" in told.get("content", {})]
    for status in tagged:
        answers[status].setdefault("headers", TAG | (LOCATION if status == HTTPStatus.CREATED else {}))
    if tagged and method == "get":
        parameters.append(NONE_MATCH)
        answers.setdefault(304, {"description": "You have it.", "headers": TAG})
    if _heeds_if_match(method, path):
        parameters.append(MATCH)
        answers.setdefault(412, PROBLEM)


def _refusals(method: str, path: str, operation: Json) -> Iterator[int]:
    yield from ALWAYS
    if "{" in path or path.endswith(NAMING_WORKSPACES):
        yield 404
    if method != "get":
        yield from OF_WRITING
    if "requestBody" in operation:
        yield from OF_BODIES


def _heeds_if_match(method: str, path: str) -> bool:
    about_one = "{message_id}" in path if method == "post" else path.endswith(("{session_id}", "{message_id}"))
    return method != "get" and about_one
