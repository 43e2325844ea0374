"""Questions that an MCP server asks users during a call: a form, or a page to open (elicitation).

All of their text comes from the server. The protocol has three answers: {"action": "accept", "content": {…}},
{"action": "decline"} and {"action": "cancel"}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from yarl import URL

from agents.i18n import gettext as _
from agents.messages import Json
from agents.questions import MAX_ITEMS, FormField, InvalidAnswer, Label, Question
from agents.safe_text import clean

MAX_MESSAGE_LENGTH = 2_000
MAX_LABEL_LENGTH = 200
MAX_HELP_LENGTH = 500
MAX_URL_LENGTH = 2_000
# The most characters of a form as JSON, because it is stored in the call's row.
MAX_FORM_LENGTH = 40_000
# The most characters of a field with one line. A text that may be longer gets a field with several lines.
ONE_LINE = 200
_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@]{1,190}")

Format = Literal["", "email", "uri", "date-time"]
CANCELLED: Json = {"action": "cancel"}


class Unusable(ValueError):
    """The server's question cannot be asked. The message says why, for the server."""


class ServerField(FormField):
    """A field of a server's form, with the conditions of its schema.

    `values` are sent to the server in place of the `options` at the same index. If empty, the options are sent.
    """

    values: list[str] = Field(default_factory=list, max_length=MAX_ITEMS)
    whole: bool = False
    minimum: float | None = None
    maximum: float | None = None
    # The limits for the characters of a text, or for the number of chosen options.
    least: int | None = None
    most: int | None = None
    format: Format = ""

    def check(self, value: object) -> Any:
        checked = super().check(value)
        if checked is None:
            return None
        if self.type == "number":
            self._check_number(checked)
        elif self.type in ("text", "long_text"):
            self._check_text(checked)
        elif self.type == "choices":
            self._check_size(len(checked))
        return checked

    def for_server(self, checked: Any) -> Any:
        """Return a checked value in the form for the server."""
        if not self.values:
            return checked
        by_option = dict(zip(self.options, self.values, strict=True))
        return [by_option[one] for one in checked] if isinstance(checked, list) else by_option[checked]

    def _check_number(self, number: float) -> None:
        if self.whole and not isinstance(number, int):
            raise InvalidAnswer(_("“{field}” must be a whole number.", field=self.label))
        if self.minimum is not None and number < self.minimum:
            raise InvalidAnswer(_("“{field}” must be at least {least}.", field=self.label, least=f"{self.minimum:g}"))
        if self.maximum is not None and number > self.maximum:
            raise InvalidAnswer(_("“{field}” must be at most {most}.", field=self.label, most=f"{self.maximum:g}"))

    def _check_text(self, text: str) -> None:
        if self.least is not None and len(text) < self.least:
            words = _("“{field}” must have at least {least} characters.", field=self.label, least=self.least)
            raise InvalidAnswer(words)
        if self.most is not None and len(text) > self.most:
            raise InvalidAnswer(_("“{field}” is too long.", field=self.label))
        if self.format == "email" and not _EMAIL.fullmatch(text):
            raise InvalidAnswer(_("“{field}” must be an email address.", field=self.label))
        if self.format == "uri" and not _is_address(text):
            raise InvalidAnswer(_("“{field}” must be a web address.", field=self.label))
        if self.format == "date-time" and not _is_time(text):
            raise InvalidAnswer(_("“{field}” must be a time such as 2026-01-31T09:30:00Z.", field=self.label))

    def _check_size(self, count: int) -> None:
        if (self.least is not None and count < self.least) or (self.most is not None and count > self.most):
            raise InvalidAnswer(_("Choose another number of options for “{field}”.", field=self.label))


class Elicitation(Question):
    """A question of a server. With a `url`, it asks users to open that page, and it has no fields."""

    kind = "elicitation"
    server: Label
    message: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE_LENGTH)]
    fields: list[ServerField] = Field(default_factory=list, max_length=MAX_ITEMS)
    url: Annotated[str, Field(max_length=MAX_URL_LENGTH)] = ""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not _is_address(url):
            raise ValueError("It is not a web address.")
        return url

    @property
    def host(self) -> str:
        """The host of the address in its ASCII form (punycode), which reveals letters that look like others."""
        return URL(self.url).raw_host or "" if self.url else ""

    def check(self, value: object) -> Json:
        match value:
            case {"action": ("decline" | "cancel") as action, **rest} if not rest:
                return {"action": action}
            case {"action": "accept", **rest} if set(rest) <= ({"content"} if self.fields else set()):
                return {"action": "accept", **({"content": self._content(rest.get("content"))} if self.fields else {})}
        raise InvalidAnswer(_("Answer the question, decline it, or dismiss it."))

    def _content(self, content: object) -> Json:
        if not isinstance(content, Mapping) or not {field.id for field in self.fields} >= set(content):
            raise InvalidAnswer(_("Fill in the form’s fields."))
        read = {field.id: field.check(content.get(field.id)) for field in self.fields}
        return {name: one for name, one in read.items() if one is not None}

    def for_server(self, answer: Json) -> Json:
        """Return a checked answer in the form for the server."""
        if answer.get("action") != "accept" or self.url:
            return {"action": answer["action"]}
        content = answer.get("content", {})
        given = {field.id: field.for_server(content[field.id]) for field in self.fields if field.id in content}
        return {"action": "accept", "content": given}


def form_of(server: str, message: str, schema: Mapping[str, Any]) -> Elicitation:
    """Return a server's form. Raise Unusable if Parley cannot show it."""
    properties = schema.get("properties", {})
    required = schema.get("required") or ()
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        raise Unusable("requestedSchema must be an object with properties")
    if len(properties) > MAX_ITEMS:
        raise Unusable(f"a form can have at most {MAX_ITEMS} fields")
    try:
        fields = [_field(name, each, is_required=name in required) for name, each in properties.items()]
        question = Elicitation(server=server, message=_message(message), fields=fields)
    except (TypeError, ValueError) as error:
        raise Unusable(f"the form cannot be shown: {' '.join(str(error).split())[:300]}") from error
    if len(question.model_dump_json(exclude_defaults=True)) > MAX_FORM_LENGTH:
        raise Unusable(f"the form has more than {MAX_FORM_LENGTH:,} characters")
    return question


def link_of(server: str, message: str, url: str) -> Elicitation:
    """Return a server's request to open a page. Raise Unusable if users may not be sent to its address."""
    if len(url) > MAX_URL_LENGTH or not _is_address(url):
        raise Unusable("url must be a web address with http or https and without a password")
    return Elicitation(server=server, message=_message(message), url=url)


def _message(text: str) -> str:
    return clean(text)[:MAX_MESSAGE_LENGTH].strip() or "?"


def _field(name: str, schema: Any, *, is_required: bool) -> ServerField:
    if not isinstance(schema, Mapping):
        raise Unusable(f"the schema of {name} is not an object")
    about: Json = {
        "id": name,
        "label": clean(str(schema.get("title") or name))[:MAX_LABEL_LENGTH],
        "help": clean(str(schema.get("description") or ""))[:MAX_HELP_LENGTH],
        "required": is_required,
        "default": _default(schema.get("default")),
    }
    return ServerField.model_validate(about | _kind(name, schema))


def _kind(name: str, schema: Mapping[str, Any]) -> Json:
    match schema.get("type"):
        case "boolean":
            return {"type": "yes_no"}
        case "number" | "integer" as kind:
            limits = {"minimum": schema.get("minimum"), "maximum": schema.get("maximum")}
            return {"type": "number", "whole": kind == "integer", **limits}
        case "array":
            items = schema.get("items")
            choices = _choices(items if isinstance(items, Mapping) else {}, "anyOf")
            if not choices:
                raise Unusable(f"{name} is a list, but not of options")
            return {"type": "choices", "least": schema.get("minItems"), "most": schema.get("maxItems"), **choices}
        case "string":
            return _text_kind(schema)
    raise Unusable(f"{name} has the type {schema.get('type')!r}, which a form cannot have")


def _text_kind(schema: Mapping[str, Any]) -> Json:
    if choices := _choices(schema, "oneOf"):
        return {"type": "choice", **choices}
    kept = schema.get("format")
    if kept == "date":
        return {"type": "date"}
    most = schema.get("maxLength")
    is_long = isinstance(most, int) and most > ONE_LINE
    return {
        "type": "long_text" if is_long else "text",
        "least": schema.get("minLength"),
        "most": most,
        "format": kept if kept in ("email", "uri", "date-time") else "",
    }


def _choices(schema: Mapping[str, Any], titled: str) -> Json:
    """Return the options that users see with the values for the server, or {} if the schema has no options."""
    pairs = list(_titled_options(schema, titled))
    if not pairs:
        return {}
    values = [value for value, _title in pairs]
    titles = [clean(title)[:MAX_LABEL_LENGTH] for _value, title in pairs]
    # If two titles are the same, users need the values to distinguish the options.
    return {"options": titles if len(set(titles)) == len(titles) else values, "values": values}


def _titled_options(schema: Mapping[str, Any], titled: str) -> Iterator[tuple[str, str]]:
    listed = schema.get("enum")
    if isinstance(listed, list):
        names = schema.get("enumNames")
        known = names if isinstance(names, list) and len(names) == len(listed) else listed
        yield from ((str(value), str(name)) for value, name in zip(listed, known, strict=True))
        return
    for each in schema.get(titled) or schema.get("oneOf") or ():
        if isinstance(each, Mapping) and "const" in each:
            yield str(each["const"]), str(each.get("title") or each["const"])


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):  # a field has one default
        return _default(value[0]) if len(value) == 1 else ""
    return clean(str(value))[:MAX_MESSAGE_LENGTH] if isinstance(value, str | int | float) else ""


def _is_address(text: str) -> bool:
    if not re.match(r"https?://[^\s/?#@\\]+([/?#]|$)", text) or re.search(r"\s", text):
        return False
    try:
        return bool(URL(text).raw_host)
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def read_elicitation(payload: object) -> Elicitation | None:
    """Return the question of a stored payload, or None if the payload is not an elicitation."""
    try:
        return Elicitation.model_validate(payload)
    except ValidationError:
        return None
