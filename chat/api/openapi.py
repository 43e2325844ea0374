"""The OpenAPI description: ninja's own, completed with what ninja does not know, for readers and client generators.

ninja knows the parameters, bodies and successful responses of the operations. Missing are problems, ETags and their
headers, events, tags, and names that generators accept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.urls import get_script_prefix, set_script_prefix
from ninja import NinjaAPI
from ninja.openapi import get_schema
from ninja.openapi.schema import OpenAPISchema
from pydantic.json_schema import models_json_schema

from agents.messages import Json
from chat.api.errors import MEDIA_TYPE, Problem
from chat.api.schemas import SCHEMAS, event_schemas

PROBLEM = {"$ref": "#/components/responses/Problem"}
COMMON_RESPONSES = {
    401: PROBLEM,
    403: PROBLEM,
    422: PROBLEM,
    429: {"$ref": "#/components/responses/TooManyRequests"},
    503: {"$ref": "#/components/responses/Unavailable"},
}
WRITE_STATUSES = (409,)
BODY_STATUSES = (400, 413, 415)
# Operations whose body has an id that may not exist: a workspace, an invitation.
ID_IN_BODY = ("/sessions", "/sessions/import", "/invitations/accept")
ETAG = {"ETag": {"description": "For `If-None-Match` and `If-Match`", "schema": {"type": "string"}}}
LOCATION = {"Location": {"description": "The address of the new object", "schema": {"type": "string"}}}
RETRY_AFTER = {
    "Retry-After": {"description": "Seconds after which to try again", "schema": {"type": "integer"}},
}
IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "description": "An ETag: the answer is 304 if the object still has it",
    "required": False,
    "schema": {"type": "string"},
}
IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "description": "ETags: the answer is 412 (`stale`) if the object has none of them any more",
    "required": False,
    "schema": {"type": "string"},
}
# What the ids in paths are of.
PATH_PARAMETERS = {
    "agent_name": "The agent's `name`",
    "attachment_id": "The attachment's id",
    "attempt": "The attempt's id, as in the history of removed messages",
    "delivery_id": "The delivery's id",
    "file_id": "The file's id",
    "import_id": "The id of the uploaded file",
    "invitation_id": "The invitation's id",
    "message_id": "The message's id: m_…",
    "name": "The agent's name, as in `GET /agents`",
    "note_id": "The note's id",
    "number": "Counts the attempts of the message from 1",
    "response_id": "The response's id, as in a message",
    "rule_id": "The rule's id",
    "schedule_id": "The schedule's id",
    "session_id": "The session's id: s_…",
    "suggestion_id": "The suggestion's id",
    "user_id": "The user's id",
    "version": "The number of the version, as in `listVersions`",
    "webhook_id": "The webhook's id",
    "workspace_id": "The workspace's id, as in `GET /me`",
}
# Paths of objects whose ETag names a revision.
ONE_OBJECT = ("{session_id}", "{message_id}", "{schedule_id}")
UPLOAD = "The file"
TAGS = {
    "Workspaces": "You, your workspaces and their members.",
    "Notes": "What agents remember across sessions: about you, and in a workspace.",
    "Knowledge": "The files of a workspace that agents search and read.",
    "Catalogue": "The models and agents of this server, and search.",
    "Sessions": "Conversations: list, begin, read, change, delete and restore them.",
    "Sharing": "Who has access to a session, and invitation links.",
    "Messages": "What a session consists of. Changes take effect with the agent's next response.",
    "History": "Versions of messages and of the system prompt, and removed messages.",
    "Schedules": "Messages that are sent in a session at set times, without a user waiting.",
    "Webhooks": "Addresses that get signed requests when something happens in a workspace (docs/webhooks.md).",
    "Turns": "Stop the agent, retry, fork, mark as read.",
    "Files": "Attachments of messages.",
    "Workspace files": "The files that an agent's tools work on, in the folder of the session.",
    "Events": "Everything that happens in a session, live.",
    "Steps": "A session in the form in which models see it, as pages and live.",
    "Context": "What the model is sent next, what it was sent before, and token usage.",
    "Transfer": "Export and import of sessions, and the export of all your data.",
}


class ParleyAPI(NinjaAPI):
    """An API with a complete description, which is built once."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Json | None = None) -> OpenAPISchema:
        return self._schema

    @cached_property
    def _schema(self) -> OpenAPISchema:
        # Not the prefix of the first request: some servers take that from a header.
        prefix = get_script_prefix()
        set_script_prefix(settings.FORCE_SCRIPT_NAME or "/")
        try:
            schema = get_schema(api=self, path_prefix=self.get_root_path({}))
        finally:
            set_script_prefix(prefix)
        complete(schema)
        return schema


def complete(schema: Json) -> None:
    """Add what all operations have in common, and change names and schemas to what generators accept."""
    components = schema["components"]
    _refs, definitions = models_json_schema([(Problem, "serialization")], ref_template=SCHEMAS + "{model}")
    components["schemas"] = event_schemas() | components["schemas"] | definitions["$defs"]
    components["responses"] = {
        "Problem": _problem_response("A problem (RFC 9457): `code` is stable and for programs, `detail` for people."),
        "TooManyRequests": _problem_response("Too many requests.", RETRY_AFTER),
        "Unavailable": _problem_response("The database cannot be reached.", RETRY_AFTER),
    }
    for method, path, operation in _operations(schema):
        _complete(method, path, operation)
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    _tidy(schema)
    _rename(schema)
    _drop_defaults_of_bodies(schema)
    _prune(schema)


def _problem_response(description: str, headers: Json | None = None) -> Json:
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{SCHEMAS}Problem"}}}
    return {"description": description, "content": content, **({"headers": headers} if headers else {})}


def _operations(schema: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _complete(method: str, path: str, operation: Json) -> None:
    responses, parameters = operation["responses"], operation.setdefault("parameters", [])
    for status, problem in _problems(method, path, operation):
        responses.setdefault(status, problem)
    for status, response in responses.items():
        if "application/json" not in response.get("content", {}) or "application/octet-stream" in response["content"]:
            continue
        tag = ETAG if method in ("get", "patch") else {}
        response.setdefault("headers", tag | (LOCATION if status == HTTPStatus.CREATED else {}))
        if method == "get" and IF_NONE_MATCH not in parameters:
            parameters.append(IF_NONE_MATCH)
    if IF_NONE_MATCH in parameters:
        responses.setdefault(304, {"description": "The object still has that ETag", "headers": ETAG})
    _describe(operation)
    if _takes_if_match(method, path):
        parameters.append(IF_MATCH)
        responses.setdefault(412, PROBLEM)


def _describe(operation: Json) -> None:
    """Describe the ids in the path, and an uploaded file, which are parameters of many functions."""
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            parameter.setdefault("description", PATH_PARAMETERS[parameter["name"]])
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data", {}).get("schema", {})
    form.get("properties", {}).get("file", {}).setdefault("description", UPLOAD)


def _problems(method: str, path: str, operation: Json) -> Iterator[tuple[int, Json]]:
    yield from COMMON_RESPONSES.items()
    if "{" in path or path.endswith(ID_IN_BODY):
        yield 404, PROBLEM
    if method != "get":
        yield from ((status, PROBLEM) for status in WRITE_STATUSES)
    if "requestBody" in operation:
        yield from ((status, PROBLEM) for status in BODY_STATUSES)


def _takes_if_match(method: str, path: str) -> bool:
    is_one_object = "{message_id}" in path if method == "post" else path.endswith(ONE_OBJECT)
    return method not in ("get", "put") and is_one_object


def _tidy(value: Any) -> None:
    """Remove the titles that pydantic derives from names, and convert examples of parameters to OpenAPI's form."""
    if isinstance(value, list):
        for each in value:
            _tidy(each)
    if not isinstance(value, dict):
        return
    if value.keys() & {"type", "anyOf", "$ref", "properties"} and isinstance(value.get("title"), str):
        del value["title"]
    if "in" in value and isinstance(value.get("examples"), list):
        value["examples"] = {f"example {number}": {"value": each} for number, each in enumerate(value["examples"], 1)}
    for each in value.values():
        _tidy(each)


def _rename(schema: Json) -> None:
    """Rename `SessionOut` to `Session`: the suffix only avoids conflicts with other Python classes."""
    schemas = schema["components"]["schemas"]
    names = {name: name.removesuffix("Out") for name in schemas}
    if len(set(names.values())) != len(names):
        raise ValueError("two schemas have one name")
    schema["components"]["schemas"] = {names[name]: each for name, each in schemas.items()}
    for reference in _references(schema):
        name = reference["$ref"].removeprefix(SCHEMAS)
        reference["$ref"] = SCHEMAS + names[name]


def _references(value: Any) -> Iterator[Json]:
    """Yield the objects that refer to a schema."""
    if isinstance(value, dict):
        if str(value.get("$ref", "")).startswith(SCHEMAS):
            yield value
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _drop_defaults_of_bodies(schema: Json) -> None:
    """Move defaults of body fields into descriptions: generators take fields with a default for required ones."""
    schemas = schema["components"]["schemas"]
    bodies = [
        operation["requestBody"] for _method, _path, operation in _operations(schema) if "requestBody" in operation
    ]
    for name in _reachable(bodies, schemas):
        for field in schemas[name].get("properties", {}).values():
            default = field.pop("default", None)
            if default not in (None, "", []):
                description = field.get("description")
                text = f"Default: {json.dumps(default)}"
                field["description"] = f"{description}. {text}" if description else text


def _prune(schema: Json) -> None:
    """Remove the schemas that nothing refers to."""
    components = schema["components"]
    used = _reachable([schema["paths"], components["responses"]], components["schemas"])
    components["schemas"] = {name: each for name, each in sorted(components["schemas"].items()) if name in used}


def _reachable(start: Any, schemas: Json) -> set[str]:
    """Return the names of the schemas that `start` refers to, directly or through other schemas."""
    names: set[str] = set()
    waiting = [start]
    while waiting:
        for reference in _references(waiting.pop()):
            name = reference["$ref"].removeprefix(SCHEMAS)
            if name not in names:
                names.add(name)
                waiting.append(schemas[name])
    return names
