"""The descriptions in docs/api.md and in the OpenAPI schema, compared with the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.messages import Json
from chat.api.api import api
from chat.api.errors import STATUS
from tests.support.agreement import agree

DOCS = Path(__file__).parents[2] / "docs"
DEFAULT = re.compile(r'^Default: (true|false|[0-9\["].*)\.$')
CELL = re.compile(r"`([A-Z]+)(?: ([^`]+))?`")


def operations() -> Iterator[str]:
    """Return the operations in the table.

    A method alone has the path after it, and "…" stands for the longer path before it.
    """
    table = (DOCS / "api.md").read_text().split("## Operations")[1].split("## Errors")[0]
    for row in table.splitlines():
        cells = CELL.findall(row.split("|")[1]) if row.startswith("| `") else []
        paths = [path for _method, path in cells if path]
        for method, path in cells:
            last = path or paths[-1]
            whole = last if last.startswith("/") else _longer(paths[0]) + last.removeprefix("…")
            yield f"{method} {whole}"


def _longer(path: str) -> str:
    """Return the part of a row's first path that "…" stands for: everything up to the resource's id."""
    return path[: path.rindex("}") + 1]


def test_every_operation_is_in_the_table() -> None:
    """LIVE-03: the table has every operation, and no other."""
    described = {f"{m.upper()} {p[4:]}" for p, methods in api.get_openapi_schema()["paths"].items() for m in methods}
    listed = list(operations())
    agree(
        listed,
        described,
        missing='Add {} to the table of "Operations" in docs/api.md.',
        extra='Remove {} from the table of "Operations" in docs/api.md: the API has no such operation.',
    )
    assert len(listed) == len(set(listed))


def test_every_code_of_a_status_is_explained() -> None:
    """The document of the protocol explains each error code (LIVE-03)."""
    table = (DOCS / "protocol.md").read_text().split("## Codes")[1].split("\n## ")[0]
    unexplained = sorted(code for code in STATUS if f"`{code}`" not in table)
    assert not unexplained, f'Describe them in the table of "Codes" in docs/protocol.md: {", ".join(unexplained)}'


def test_every_operation_says_what_it_does() -> None:
    """LIVE-03: the API description explains each operation, the authentication and the errors."""
    schema = api.get_openapi_schema()
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert operation["description"]
            assert operation["tags"]
            assert operation["security"] == [{"Bearer": []}, {"Cookie": []}]
            assert {401, 403, 422} <= set(operation["responses"])
    assert set(schema["components"]["securitySchemes"]) == {"Bearer", "Cookie"}


@pytest.mark.parametrize("path", ["/api/agents", "/api/sessions", "/api/sessions/{session_id}"])
def test_unknown_ids_are_described(path: str) -> None:
    """LIVE-03: generated clients know only the problems of the description."""
    assert 404 in api.get_openapi_schema()["paths"][path]["get"]["responses"]


def test_every_field_of_a_request_is_described() -> None:
    """LIVE-03: each parameter and each field of a body has a description."""
    schema = api.get_openapi_schema()
    lacking = set()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            for parameter in operation["parameters"]:
                if not (parameter.get("description") or parameter["schema"].get("description")):
                    lacking.add(f"{method} {path}: {parameter['name']}")
            body = operation.get("requestBody", {})
            lacking |= {f"{method} {path}: {name}" for name in undescribed(body, schema["components"]["schemas"])}
    assert not lacking, "Give these a description, by Field(description=…): " + "; ".join(sorted(lacking))


def test_every_field_of_an_object_is_described() -> None:
    """LIVE-03: responses and events have descriptions, too. A field that refers to an object has that object's."""
    lacking = {
        f"{name}.{field}"
        for name, schema in api.get_openapi_schema()["components"]["schemas"].items()
        for field, each in schema.get("properties", {}).items()
        if not each.get("description") and not {"$ref", "const"} & each.keys()
    }
    assert not lacking, "Give these a description, by Field(description=…): " + "; ".join(sorted(lacking))


def undescribed(value: Any, schemas: Json) -> Iterator[str]:
    """Return the fields of a body, including nested ones, that have no description. A default is not a description."""
    if isinstance(value, list):
        for each in value:
            yield from undescribed(each, schemas)
    if not isinstance(value, dict):
        return
    for name, field in value.get("properties", {}).items():
        if "const" not in field and not DEFAULT.sub("", field.get("description", "")):
            yield name
    if "$ref" in value:
        yield from undescribed(schemas[value["$ref"].rpartition("/")[2]], schemas)
    for each in value.values():
        yield from undescribed(each, schemas)
