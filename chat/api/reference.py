"""The API reference: a page that is rendered from the OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from chat.api.api import api
from chat.api.openapi import TAGS
from chat.api.schemas import SCHEMAS

Json = Mapping[str, Any]
# Statuses that all operations can return. The page describes them once.
COMMON = {401, 403, 422, 429, 503}


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of an object. `kind` is the location of a parameter: path, query or header."""

    name: str
    type: SafeString
    description: SafeString
    required: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """A successful response of an operation. `type` is empty if there is no body."""

    status: str
    type: SafeString
    description: SafeString


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path. `body` is the type of the request body. `errors` has statuses with their names."""

    id: str
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: list[Field]
    body: SafeString
    answers: list[Response]
    errors: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one tag."""

    name: str
    text: str
    operations: list[Operation]


@dataclass(frozen=True, slots=True)
class Object:
    """A schema with its fields. `type` is empty unless the schema is a union, which has no fields."""

    name: str
    description: SafeString
    type: SafeString
    fields: list[Field]


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the reference. It needs no sign-in, because the OpenAPI description is public as well."""
    groups, objects = reference()
    origin = settings.PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
    example = f'curl -H "Authorization: Bearer parley_…" {origin}/api/me'
    values = {"example": example, "groups": groups, "objects": objects}
    return render(request, "api/reference.html", values)


@lru_cache(maxsize=1)
def reference() -> tuple[list[Group], list[Object]]:
    """Return the operations by tag, and the schemas. The result is cached because the description never changes."""
    schema = api.get_openapi_schema()
    operations = [
        (operation["tags"][0], _operation(path, method, operation))
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    groups = [Group(name, text, [each for tag, each in operations if tag == name]) for name, text in TAGS.items()]
    objects = [
        Object(
            name,
            coded(each.get("description", "")),
            type_of(each) if "oneOf" in each else SafeString(),
            list(_fields(each)),
        )
        for name, each in schema["components"]["schemas"].items()
    ]
    return groups, objects


def coded(text: str) -> SafeString:
    """Return a text as HTML in which the parts in backquotes are `<code>`."""
    pieces = text.split("`")
    return format_html_join("", "{}", ((_code(piece) if place % 2 else piece,) for place, piece in enumerate(pieces)))


def type_of(schema: Json) -> SafeString:
    """Return the type of a schema in words, with links to the schemas that it refers to."""
    if (reference := schema.get("$ref")) is not None:
        name = reference.removeprefix(SCHEMAS)
        return format_html('<a href="#{0}">{0}</a>', name)
    if (options := schema.get("anyOf", schema.get("oneOf"))) is not None:
        return _either(map(type_of, options))
    if "const" in schema or "enum" in schema:
        return _either(_code(f'"{value}"') for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return format_html("list of {}", type_of(schema.get("items", {})))
    if (kind := schema.get("type")) is None:
        return SafeString("any value")
    return format_html("{} ({})", kind, schema["format"]) if "format" in schema else format_html("{}", kind)


def _operation(path: str, method: str, operation: Json) -> Operation:
    parameters = [
        Field(
            each["name"],
            type_of(each["schema"]),
            coded(each.get("description", "")),
            each["required"],
            each["in"],
        )
        for each in operation["parameters"]
    ]
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=coded(operation["description"]),
        parameters=parameters,
        body=_content(operation.get("requestBody", {})),
        answers=[
            Response(str(status), _content(each), coded(each["description"]))
            for status, each in sorted(operation["responses"].items())
            if "$ref" not in each
        ],
        errors=[
            (str(status), HTTPStatus(status).phrase)
            for status, each in sorted(operation["responses"].items())
            if "$ref" in each and status not in COMMON
        ],
    )


def _content(described: Json) -> SafeString:
    """Return the type of a body, with its media type unless that is JSON."""
    content = described.get("content", {})
    if len(content) == 1 and "application/json" in content:
        return type_of(content["application/json"]["schema"])
    return _either(_media(media_type, each["schema"]) for media_type, each in content.items())


def _media(media_type: str, schema: Json) -> SafeString:
    if (part := schema.get("contentSchema")) is not None:
        return format_html("{} of {}", _code(media_type), type_of(part))
    return format_html("{} ({})", _code(media_type), _form(schema)) if "properties" in schema else _code(media_type)


def _form(schema: Json) -> SafeString:
    return format_html_join(", ", "{}: {}", ((_code(field.name), field.type) for field in _fields(schema)))


def _fields(schema: Json) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        yield Field(name, type_of(each), coded(each.get("description", "")), name in required)


def _either(options: Iterable[SafeString]) -> SafeString:
    return format_html_join(" or ", "{}", ((each,) for each in options))


def _code(text: str) -> SafeString:
    return format_html("<code>{}</code>", text)
