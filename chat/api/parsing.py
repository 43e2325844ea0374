"""The parsing of requests: a base class for bodies, and checks that ninja lacks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Schema
from ninja.operation import Operation
from ninja.parser import Parser
from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from chat import long_json
from chat.command_frames import MalformedCommand

# Larger than all ids, but small enough for PostgreSQL and SQLite to compare with a column.
MAX_ID = 2**62
# A name of an agent, provider or model. PostgreSQL stores no NUL characters.
Name = Annotated[str, Field(max_length=80, pattern=r"^[^\x00]*$")]


class NotJson(ValueError):
    """The error of a body whose content type is not JSON."""


class JsonParser(Parser):
    """A parser that accepts only bodies with the content type JSON, which HTML forms of other sites cannot send.

    ninja's own parser ignores the content type. Raises NotJson for others.
    """

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise NotJson(request.content_type)
        return long_json.loads(request.body)


def _id_of_a_row(number: int) -> int:
    return number if 0 < number < MAX_ID else 0


# An id in a URL. An id that the database cannot store becomes 0, which no row has: the operation then reports that the
# object does not exist.
RowId = Annotated[int, AfterValidator(_id_of_a_row)]


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("The time is before the year 1 or after the year 9999 in UTC.") from None


# A time with an offset that the database can compare with its own, which are in UTC.
Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class Body(Schema):
    """The base of request bodies. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


def refuse_unknown_query(operation: Operation) -> None:
    """Make an operation answer 422 to unknown query parameters, as it does for unknown fields of a body.

    `extra="forbid"` has no effect on queries, because ninja validates only the parameters that it knows.
    """
    view = operation.view_func
    models = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    known = {name for model in models for name in getattr(model, "__ninja_flatten_map__", {})}

    @wraps(view)
    def checked(request: HttpRequest, **values: Any) -> HttpResponseBase:
        if unknown := sorted(request.GET.keys() - known):
            raise MalformedCommand(f"{unknown[0][:80]}: Unknown query parameter.")
        response: HttpResponseBase = view(request, **values)
        return response

    typed: Callable[..., Any] = checked
    operation.view_func = typed
