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
# The bodies that count as none. Clients send them if they always send JSON; PHP writes an empty object as [].
NO_BODY = (b"", b"{}", b"[]", b"null")
# The field of a form in which Django reads the token of the page.
CSRF_FIELD = "csrfmiddlewaretoken"
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


def refuse_unknown_input(operation: Operation) -> None:
    """Make an operation answer 422 to what it would ignore, as it does for unknown fields of a body.

    This is a query parameter or a form field that it does not know, and a body if it takes none. `extra="forbid"` has
    no effect on queries and forms, because ninja validates only the fields that it knows.
    """
    view = operation.view_func
    parameters, fields = _names(operation, "query"), _names(operation, "form", "file")
    takes_json = any(model.__ninja_param_source__ == "body" for model in operation.models)
    takes_nothing = not takes_json and not fields and "GET" not in operation.methods

    @wraps(view)
    def checked(request: HttpRequest, **values: Any) -> HttpResponseBase:
        if unknown := sorted(request.GET.keys() - parameters):
            raise MalformedCommand(f"{unknown[0][:80]}: Unknown query parameter.")
        if fields and (unknown := sorted({*request.POST, *request.FILES} - fields - {CSRF_FIELD})):
            raise MalformedCommand(f"{unknown[0][:80]}: Unknown form field.")
        if takes_nothing and b"".join(request.body.split()) not in NO_BODY:
            hint = f" Send these as query parameters: {', '.join(sorted(parameters))}." if parameters else ""
            raise MalformedCommand(f"This request takes no body.{hint}")
        response: HttpResponseBase = view(request, **values)
        return response

    typed: Callable[..., Any] = checked
    operation.view_func = typed


def _names(operation: Operation, *sources: str) -> set[str]:
    """Return the names of an operation's values from these sources. Values in a schema have the names of its fields."""
    models = [model for model in operation.models if model.__ninja_param_source__ in sources]
    return {name for model in models for name in getattr(model, "__ninja_flatten_map__", model.model_fields)}
