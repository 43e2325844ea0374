"""The OpenAPI description: what ninja generates, completed for readers and client generators.

ninja describes the parameters, bodies and successful responses of the operations. This module adds problems, ETags and
their headers, events and tags, and changes names that generators do not accept.
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
BODY_STATUSES = (400, 408, 413, 415, 507)
# Operations that answer 404 if an id in their body or query does not exist, such as that of a workspace.
ID_IN_INPUT = ("/sessions", "/agents", "/sessions/import", "/invitations/accept")
ETAG = {
    "ETag": {
        "description": "The entity tag of the object. Send it in `If-None-Match` or `If-Match`.",
        "schema": {"type": "string"},
    }
}
UNCHANGED = "The object has not changed: it still has the entity tag of `If-None-Match`."
# Operations that create objects without an address of their own, or several of them.
WITHOUT_ADDRESS = ("/notes", "/invitations", "/webhooks", "/sessions/import", "/imports/{import_id}/sessions")
LOCATION = {"Location": {"description": "The path of the new object.", "schema": {"type": "string"}}}
RETRY_AFTER = {
    "Retry-After": {
        "description": "The number of seconds after which to repeat the request.",
        "schema": {"type": "integer"},
    },
}
IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "description": "One or more entity tags. If one of them is current, the response is 304 without a body.",
    "required": False,
    "schema": {"type": "string"},
}
IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "description": "One or more entity tags. If none of them is current, the request is refused (412, `stale`).",
    "required": False,
    "schema": {"type": "string"},
}
# Descriptions of the ids in paths.
PATH_PARAMETERS = {
    "agent_name": "The `name` of the agent.",
    "attachment_id": "The id of the file, which begins with `a_`.",
    "attempt": "The id of the attempt, as `listAttempts` returns it.",
    "delivery_id": "The id of the delivery, which begins with `d_`.",
    "file_id": "The id of the file, which begins with `k_`.",
    "import_id": "The id of the uploaded file, as `createImport` returns it.",
    "invitation_id": "The id of the invitation link.",
    "message_id": "The id of the message, which begins with `m_`.",
    "name": "The `name` of the agent, as `listAgents` returns it.",
    "note_id": "The id of the note.",
    "number": "The number of the attempt among those that follow the message, from 1.",
    "response_id": "The `response_id` of a message, which begins with `r_`.",
    "rule_id": "The id of the rule.",
    "schedule_id": "The id of the schedule.",
    "session_id": "The id of the session, which begins with `s_`.",
    "suggestion_id": "The id of the suggestion, which begins with `e_`.",
    "user_id": "The id of the user.",
    "version": "The `version` of an entry that `listVersions` returns.",
    "webhook_id": "The id of the webhook.",
    "workspace_id": "The id of the workspace, as `getMe` returns it.",
}
# The ends of paths of objects whose ETag contains a revision.
ONE_OBJECT = ("{session_id}", "{message_id}", "{schedule_id}", "/agents/{agent_name}")
# Greater limits of numbers, such as that of ids, say nothing about their meaning.
MAX_NAMED = 10**9
UPLOAD = "The content of the file, as a part of the form."
TAGS = {
    "Workspaces": "Your account, and your workspaces with their members, guests, agents, tool rules and usage.",
    "Notes": "Texts that agents remember across sessions, about one user or for a whole workspace.",
    "Knowledge": "The files of a workspace that agents search and read.",
    "Catalogue": "The models and agents that sessions can use, and search.",
    "Sessions": "List, create, read, change, delete and restore sessions. A session is one conversation.",
    "Sharing": "The users who have access to a session, and invitation links to it.",
    "Messages": "Read, send, change and remove messages. Changes take effect with the agent's next response.",
    "History": "Earlier versions of messages and of the system prompt, and removed messages.",
    "Schedules": "Messages that are sent in a session at set times, in the name of the user who added the schedule.",
    "Webhooks": "Addresses that receive signed requests when an event happens in a workspace (docs/webhooks.md).",
    "Turns": "Control the work of a session's agents: stop, continue, retry, compact and fork. Mark a session as read.",
    "Files": "Files that are attached to messages.",
    "Session files": "The files in the folder of a session, which the tools of its agents read and write.",
    "Events": "A live stream of everything that happens in a session.",
    "Steps": "A session in the message format of model APIs, in pages or as a live stream.",
    "Context": "The next request to the model, earlier requests, and token usage.",
    "Transfer": "Export and import sessions, and export all your data.",
}


class ParleyAPI(NinjaAPI):
    """An API with a complete description. The description is built once and cached."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Json | None = None) -> OpenAPISchema:
        return self._schema

    @cached_property
    def _schema(self) -> OpenAPISchema:
        # The prefix of the current request is not used, because some servers take it from a header.
        prefix = get_script_prefix()
        set_script_prefix(settings.FORCE_SCRIPT_NAME or "/")
        try:
            schema = get_schema(api=self, path_prefix=self.get_root_path({}))
        finally:
            set_script_prefix(prefix)
        complete(schema)
        return schema


def complete(schema: Json) -> None:
    """Add what all operations have in common, and adapt names and schemas to client generators. Changes `schema`."""
    components = schema["components"]
    _refs, definitions = models_json_schema([(Problem, "serialization")], ref_template=SCHEMAS + "{model}")
    components["schemas"] = event_schemas() | components["schemas"] | definitions["$defs"]
    components["responses"] = {
        "Problem": _problem_response(
            "The request was refused. The body is a problem document (RFC 9457) with a stable `code`."
        ),
        "TooManyRequests": _problem_response("A rate limit, a limit of streams or a quota is exceeded.", RETRY_AFTER),
        "Unavailable": _problem_response("The database cannot be reached, or is too busy.", RETRY_AFTER),
    }
    for method, path, operation in _operations(schema):
        _complete(method, path, operation)
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    _tidy(schema)
    _rename(schema)
    _move_facts_of_bodies(schema)
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
        has_address = status == HTTPStatus.CREATED and not path.endswith(WITHOUT_ADDRESS)
        response.setdefault("headers", tag | (LOCATION if has_address else {}))
        if method == "get" and IF_NONE_MATCH not in parameters:
            parameters.append(IF_NONE_MATCH)
    if IF_NONE_MATCH in parameters:
        responses.setdefault(304, {"description": UNCHANGED, "headers": ETAG})
    _describe(operation)
    if _takes_if_match(method, path):
        parameters.append(IF_MATCH)
        responses.setdefault(412, PROBLEM)


def _describe(operation: Json) -> None:
    """Describe ids in the path and uploaded files, and append limits and defaults to the descriptions of queries."""
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            parameter.setdefault("description", PATH_PARAMETERS[parameter["name"]])
        if parameter["in"] == "query":
            schema = parameter["schema"]
            facts = [*_range(schema), *_default(schema.get("default"))]
            parameter["description"] = " ".join([parameter["description"], *facts])
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data", {}).get("schema", {})
    form.get("properties", {}).get("file", {}).setdefault("description", UPLOAD)


def _problems(method: str, path: str, operation: Json) -> Iterator[tuple[int, Json]]:
    yield from COMMON_RESPONSES.items()
    if "{" in path or path.endswith(ID_IN_INPUT):
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
    """Remove the suffix `Out` of schema names. It only avoids conflicts with the names of other Python classes."""
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


def _move_facts_of_bodies(schema: Json) -> None:
    """Describe the limits and defaults of body fields, and remove the defaults from their schemas.

    Client generators treat a field with a default as required.
    """
    schemas = schema["components"]["schemas"]
    bodies = [
        operation["requestBody"] for _method, _path, operation in _operations(schema) if "requestBody" in operation
    ]
    for name in _reachable(bodies, schemas):
        for field in schemas[name].get("properties", {}).values():
            description, default = field.get("description"), _default(field.pop("default", None))
            facts = [description, *_range(field), *_sizes(field), *default] if description else [*default]
            if facts:
                field["description"] = " ".join(facts)


def _range(schema: Json) -> Iterator[str]:
    """Yield the range of a number as a phrase, unless its description already has one."""
    for each in (schema, *schema.get("anyOf", ())):
        least, most = each.get("minimum"), each.get("maximum")
        if least is not None and most is not None and most < MAX_NAMED and "From " not in schema["description"]:
            yield f"From {least:,} to {most:,}."


def _sizes(schema: Json) -> Iterator[str]:
    """Yield the maximum size of a text or a list as a phrase."""
    for each in (schema, *schema.get("anyOf", ())):
        if "maxLength" in each:
            yield f"At most {each['maxLength']:,} characters."
        if "maxItems" in each:
            yield f"At most {each['maxItems']:,} entries."


def _default(value: Any) -> Iterator[str]:
    if value not in (None, "", []):
        yield f"Default: {json.dumps(value)}."


def _prune(schema: Json) -> None:
    """Remove schemas that are not used."""
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
