"""Reading requests: the bases of bodies, and checks that ninja does not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Schema
from ninja.operation import Operation
from ninja.parser import Parser
from pydantic import AfterValidator, ConfigDict, Field

from chat import long_json
from chat.command_frames import MalformedCommand

# Above all ids, and what PostgreSQL and SQLite can compare with a column.
MAX_ID = 2**62
# A name of an agent, provider or model. PostgreSQL stores no NUL characters.
Name = Annotated[str, Field(max_length=80, pattern=r"^[^\x00]*$")]


class NotJson(ValueError):  # named for what the body is
    """The body's content type is not JSON."""


class JsonParser(Parser):
    """Accept a body only if its content type is JSON, so that an HTML form of another site cannot send one.

    ninja's parser ignores the content type.
    """

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise NotJson(request.content_type)
        return long_json.loads(request.body)


def _id_of_a_row(number: int) -> int:
    return number if 0 < number < MAX_ID else 0


# An id in an address. No row has one that the database cannot hold, and none has 0: the operation says what is missing.
RowId = Annotated[int, AfterValidator(_id_of_a_row)]


class Body(Schema):
    """The base of request bodies. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


def refuse_unknown_query(operation: Operation) -> None:
    """Make an operation answer 422 to query parameters that it does not have, as bodies do for unknown fields.

    ninja takes the known parameters out of the query before it validates them, so `extra="forbid"` has no effect there.
    """
    view = operation.view_func
    models = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    known = {name for model in models for name in getattr(model, "__ninja_flatten_map__", {})}

    @wraps(view)
    def checked(request: HttpRequest, **values: Any) -> HttpResponseBase:
        if unknown := sorted(request.GET.keys() - known):
            raise MalformedCommand(f"{unknown[0][:80]}: There is no such query parameter.")
        response: HttpResponseBase = view(request, **values)
        return response

    typed: Callable[..., Any] = checked
    operation.view_func = typed
